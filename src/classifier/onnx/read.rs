//! An ONNX file read, and checked before anything is computed: what is missing, what is no graph, and what asks for more
//! time or memory than any network of images does.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::Metadata;
use std::path::Path;

use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, TensorProto};
use tract_onnx::prelude::Framework;

use super::file::{arrays, external, folder};
use super::operators;
use crate::data::open_bounded;
use crate::error::{Error, Result, in_line};

/// Most bytes of a file: protobuf's own limit. Larger networks keep their arrays in files beside it.
const LONGEST: u64 = 2 << 30;
/// Most numbers of one value inside a network: 1 GiB of float32.
pub(super) const LARGEST: usize = 1 << 28;
/// Most bytes of all arrays in files beside it: a billion float32. The runtime makes room for all of them at once, and a file
/// may be longer than what it takes on the disk.
const BESIDE: u64 = 4 << 30;
/// Most by which an array may grow in one node.
const GROWTH: f64 = 65_536.0;
/// Most numbers of an array that holds sizes.
const SIZES: usize = 64;
/// Arrays that may show the same bytes of a file beside it, on average.
const TIED: u64 = 4;

/// What the windows of a node are described by, and the largest number there. No image has more
/// rows, and the runtime walks through as many as a damaged file asks for; what is padded lies in
/// memory, too, and no network pads by as much as it looks at.
const WINDOWS: [(&str, u64); 5] = [
    ("kernel_shape", 1 << 16),
    ("strides", 1 << 16),
    ("dilations", 1 << 16),
    ("pads", PADDING),
    ("output_padding", PADDING),
];
/// Widest padding.
const PADDING: u64 = 512;

/// Reads a file, without the arrays that lie beside it.
///
/// # Errors
/// When it cannot be read, is larger than 2 GiB, is no ONNX file, is damaged, or a file beside it is missing or too
/// short.
pub(super) fn read(path: &Path) -> Result<ModelProto> {
    let mut file = open_bounded(path, LONGEST).map_err(|e| Error::io(path, e))?;
    let decoded = tract_onnx::onnx().proto_model_for_read(&mut file);
    let model = decoded.map_err(|e| match e.downcast::<std::io::Error>() {
        Ok(refused) => Error::io(path, refused),
        Err(e) => Error::file(path, format!("no ONNX file, or a damaged one ({e:#})")),
    })?;
    check(&model, path).map_err(|cause| Error::file(path, cause))?;
    Ok(model)
}

/// Whether there is a network, and nothing of it is missing.
fn check(model: &ModelProto, path: &Path) -> Result<(), String> {
    let graph = model.graph.as_ref().filter(|graph| !graph.node.is_empty());
    let graph = graph.ok_or("no ONNX file, or an empty one: it holds no network")?;
    if graph.output.is_empty() {
        return Err("its network has no output".into());
    }
    if !graph.sparse_initializer.is_empty() {
        return Err("it has sparse weights, which are not read here: export it with dense ones".into());
    }
    check_names(graph)?;
    let nodes = operators::nodes(graph);
    check_windows(&nodes)?;
    check_sizes(graph, &nodes)?;
    check_data_files(&arrays(graph, &nodes), path)
}

/// Whether every node reads what is there before it, and gives names that are new: a graph that gave one twice could read
/// itself for ever.
fn check_names(graph: &GraphProto) -> Result<(), String> {
    let mut known: HashSet<&str> = graph.initializer.iter().map(|array| array.name.as_str()).collect();
    known.extend(graph.input.iter().map(|input| input.name.as_str()));
    for node in &graph.node {
        let named = || (operators::name(node), &node.op_type);
        if let Some(lost) = node.input.iter().find(|name| !name.is_empty() && !known.contains(name.as_str())) {
            let (name, operator) = named();
            return Err(format!("damaged: node '{name}' ({operator}) reads '{lost}', which nothing before it gives"));
        }
        for output in node.output.iter().filter(|output| !output.is_empty()) {
            if !known.insert(output) {
                let (name, operator) = named();
                return Err(format!("damaged: node '{name}' ({operator}) gives '{output}', which was there before it"));
            }
        }
    }
    match graph.output.iter().find(|output| !known.contains(output.name.as_str())) {
        Some(lost) => Err(format!("damaged: nothing gives its output '{}'", lost.name)),
        None => Ok(()),
    }
}

fn check_windows(nodes: &[&NodeProto]) -> Result<(), String> {
    for node in nodes {
        for attribute in &node.attribute {
            let Some((_, largest)) = WINDOWS.iter().find(|(name, _)| *name == attribute.name) else { continue };
            if let Some(wrong) = attribute.ints.iter().find(|number| number.unsigned_abs() > *largest) {
                let (name, operator, what) = (operators::name(node), &node.op_type, &attribute.name);
                return Err(format!("damaged: node '{name}' ({operator}) has {wrong} among its {what}"));
            }
        }
    }
    Ok(())
}

/// Whether the sizes that nodes read from arrays of the file are such as networks have. What a network computes as a size is
/// looked at when its values have shapes ([`Plan`](super::plan::Plan)).
fn check_sizes(graph: &GraphProto, nodes: &[&NodeProto]) -> Result<(), String> {
    let bodies = nodes.iter().flat_map(|node| &node.attribute).filter_map(|attribute| attribute.g.as_ref());
    let given = graph.initializer.iter().chain(bodies.flat_map(|body| &body.initializer));
    let mut constants: HashMap<&str, Vec<f64>> =
        given.filter_map(|array| Some((array.name.as_str(), numbers(array)?))).collect();
    for node in nodes.iter().filter(|node| node.op_type == "Constant") {
        if let (Some(name), Some(values)) = (node.output.first(), constant(node)) {
            constants.insert(name, values);
        }
    }
    for node in nodes {
        let named = |at: usize| node.input.get(at).filter(|name| !name.is_empty());
        let input = |at: usize| named(at).and_then(|name| constants.get(name.as_str()));
        let volume = |sizes: &Vec<f64>| sizes.iter().map(|size| size.abs()).product::<f64>();
        let most = LARGEST as f64;
        let is_sound = match node.op_type.as_str() {
            "Pad" => input(1).is_none_or(|pads| pads.iter().all(|pad| pad.abs() <= PADDING as f64)),
            "Tile" => input(1).is_none_or(|times| volume(times) <= GROWTH),
            "Expand" => input(1).is_none_or(|shape| volume(shape) <= most),
            "ConstantOfShape" => input(0).is_none_or(|shape| volume(shape) <= most),
            "OneHot" => input(1).is_none_or(|depth| volume(depth) <= GROWTH),
            // Scales were its second input once, behind which regions stand today.
            "Resize" => {
                input(1).filter(|_| node.input.len() == 2).or(input(2)).is_none_or(|scales| volume(scales) <= GROWTH)
                    && input(3).is_none_or(|sizes| volume(sizes) <= most)
            }
            "Range" => match [0, 1, 2].map(|at| input(at).and_then(|values| values.first())) {
                [Some(start), Some(limit), Some(step)] => (limit - start) / step <= most,
                _ => true,
            },
            _ => true,
        };
        if !is_sound {
            let (name, operator) = (operators::name(node), &node.op_type);
            return Err(format!("damaged: node '{name}' ({operator}) asks for sizes that no network of images has"));
        }
    }
    Ok(())
}

/// The few numbers of an array that lies in the file; none of arrays that are larger than sizes are.
fn numbers(array: &TensorProto) -> Option<Vec<f64>> {
    let count = array.dims.iter().try_fold(1usize, |all, &n| all.checked_mul(usize::try_from(n).ok()?))?;
    if count > SIZES {
        return None;
    }
    fn raw<const N: usize>(array: &TensorProto, number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        array.raw_data.as_chunks::<N>().0.iter().map(|&bytes| number(bytes)).collect()
    }
    let values = match DataType::try_from(array.data_type).ok()? {
        DataType::Int64 if array.raw_data.is_empty() => array.int64_data.iter().map(|&v| v as f64).collect(),
        DataType::Int64 => raw(array, |bytes| i64::from_le_bytes(bytes) as f64),
        DataType::Int32 if array.raw_data.is_empty() => array.int32_data.iter().map(|&v| f64::from(v)).collect(),
        DataType::Int32 => raw(array, |bytes| f64::from(i32::from_le_bytes(bytes))),
        DataType::Float if array.raw_data.is_empty() => array.float_data.iter().map(|&v| f64::from(v)).collect(),
        DataType::Float => raw(array, |bytes| f64::from(f32::from_le_bytes(bytes))),
        DataType::Double if array.raw_data.is_empty() => array.double_data.clone(),
        DataType::Double => raw(array, f64::from_le_bytes),
        _ => return None,
    };
    Some(values)
}

/// What a Constant gives, in any of the forms that it may be written.
fn constant(node: &NodeProto) -> Option<Vec<f64>> {
    node.attribute.iter().find_map(|attribute| match attribute.name.as_str() {
        "value" => attribute.t.as_ref().and_then(numbers),
        "value_int" => Some(vec![attribute.i as f64]),
        "value_float" => Some(vec![f64::from(attribute.f)]),
        "value_ints" => Some(attribute.ints.iter().map(|&v| v as f64).collect()),
        "value_floats" => Some(attribute.floats.iter().map(|&v| f64::from(v)).collect()),
        _ => None,
    })
}

/// The bytes of a file beside it that an array names.
struct Part<'a> {
    array: &'a TensorProto,
    offset: u64,
    length: Option<u64>,
}

impl Part<'_> {
    /// Bytes in a file of so many: one of no length has the rest of it.
    fn bytes(&self, file: u64) -> u64 {
        self.length.unwrap_or(file.saturating_sub(self.offset))
    }

    /// Whether these are the bytes of as many numbers as its shape has, before anybody makes room for them.
    fn check(&self, file: u64) -> Result<(), String> {
        // The runtime reads no array of another type.
        let Some(item) = item_bytes(self.array.data_type) else { return Ok(()) };
        let (shape, bytes) = (&self.array.dims, self.bytes(file));
        let numbers = shape.iter().try_fold(1u64, |all, &n| all.checked_mul(u64::try_from(n).ok()?));
        let (name, shape) = (in_line(&self.array.name), operators::shortened(&format!("{shape:?}")));
        match numbers {
            Some(numbers) if numbers <= LARGEST as u64 && numbers * item == bytes => Ok(()),
            Some(numbers) if numbers <= LARGEST as u64 => Err(format!(
                "damaged: array '{name}' of shape {shape} takes {} bytes, and says that it has {bytes} beside it",
                numbers * item
            )),
            _ => Err(format!("array '{name}' has the shape {shape}, and {LARGEST} numbers are the most")),
        }
    }
}

/// Bytes of a number of a type; `None` of types that the runtime does not have.
fn item_bytes(data_type: i32) -> Option<u64> {
    use DataType::{Bool, Double, Float, Float16, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
    match DataType::try_from(data_type).ok()? {
        Bool | Int8 | Uint8 => Some(1),
        Float16 | Int16 | Uint16 => Some(2),
        Float | Int32 | Uint32 => Some(4),
        Double | Int64 | Uint64 => Some(8),
        _ => None,
    }
}

/// Whether the files beside it are there, hold its arrays and no more of each than its shape says, and are not read over and
/// over.
fn check_data_files(arrays: &[&TensorProto], path: &Path) -> Result<(), String> {
    let mut parts: BTreeMap<&str, Vec<Part<'_>>> = BTreeMap::new();
    for &array in arrays {
        let Some(location) = external(array, "location") else { continue };
        let number = |key| external(array, key).and_then(|text| text.parse::<u64>().ok());
        let part = Part { array, offset: number("offset").unwrap_or(0), length: number("length") };
        parts.entry(location).or_default().push(part);
    }
    let folder = folder(path);
    if folder.to_str().is_none() && !parts.is_empty() {
        return Err(
            "its weights lie in a file beside it, in a folder whose name is no Unicode: rename the folder".into()
        );
    }
    let mut beside = 0u64;
    for (location, parts) in parts {
        let found = std::fs::metadata(folder.join(location)).map_err(|e| {
            let (count, plain) = (parts.len(), in_line(location));
            format!(
                "{count} of its arrays lie in '{plain}' beside it, which cannot be read ({e}): put both into one folder"
            )
        })?;
        beside = beside.saturating_add(check_parts(&parts, location, &found)?);
    }
    if beside > BESIDE {
        return Err(format!("its arrays in files beside it have {beside} bytes in all, and {BESIDE} are the most"));
    }
    Ok(())
}

/// Whether the file `found` holds these arrays; how many bytes they have in all.
fn check_parts(parts: &[Part<'_>], location: &str, found: &Metadata) -> Result<u64, String> {
    let (plain, has) = (in_line(location), found.len());
    // A pipe would be waited for.
    if !found.is_file() {
        return Err(format!("its arrays in '{plain}' lie in no regular file"));
    }
    let end = parts.iter().map(|part| part.offset.saturating_add(part.length.unwrap_or(0))).max().unwrap_or(0);
    if has < end {
        return Err(format!("its arrays in '{plain}' end at byte {end}, and that file has {has}: it is cut off"));
    }
    let all = parts.iter().map(|part| part.bytes(has)).fold(0, u64::saturating_add);
    if all > has.saturating_mul(TIED) {
        return Err(format!("damaged: its arrays in '{plain}' have {all} bytes, and that file has {has}"));
    }
    parts.iter().try_for_each(|part| part.check(has)).map(|()| all)
}

#[cfg(test)]
mod tests {
    use tract_onnx::pb::StringStringEntryProto;
    use tract_onnx::pb::tensor_proto::DataLocation;

    use super::*;

    fn outside(entries: &[(&str, &str)]) -> TensorProto {
        let entry = |&(key, value): &(&str, &str)| StringStringEntryProto { key: key.into(), value: value.into() };
        TensorProto {
            data_location: Some(DataLocation::External as i32),
            external_data: entries.iter().map(entry).collect(),
            ..Default::default()
        }
    }

    /// What a file says of its neighbours begins no line and commands no terminal.
    #[test]
    fn a_strange_place_of_arrays_is_told_in_one_line() {
        let array = outside(&[("location", "a\u{1b}[31m\nbayescope: all is well")]);
        let said = check_data_files(&[&array], Path::new("w.onnx")).unwrap_err();
        assert!(!said.contains('\n') && !said.contains('\u{1b}'), "{said:?}");
        assert!(said.contains("bayescope: all is well"), "{said}");
    }

    #[test]
    fn arrays_beside_a_file_lie_in_a_regular_one_and_share_few_bytes() {
        let place = tempfile::tempdir().unwrap();
        let (path, data) = (place.path().join("w.onnx"), place.path().join("w.data"));
        std::fs::create_dir(&data).unwrap();
        let two = outside(&[("location", "w.data"), ("offset", "4"), ("length", "8")]);
        let array = TensorProto { data_type: DataType::Float as i32, dims: vec![2], ..two };
        assert!(check_data_files(&[&array], &path).unwrap_err().contains("no regular file"));
        std::fs::remove_dir(&data).unwrap();
        std::fs::write(&data, [0; 12]).unwrap();
        check_data_files(&[&array; 6], &path).unwrap();
        assert!(check_data_files(&[&array; 7], &path).unwrap_err().contains("56 bytes"));
        let rest = outside(&[("location", "w.data")]);
        check_data_files(&[&rest; 4], &path).unwrap();
        assert!(check_data_files(&[&rest; 5], &path).unwrap_err().contains("60 bytes"));
    }

    /// The files have no blocks on the disk, and nobody reads them.
    #[test]
    fn arrays_beside_a_file_have_as_many_bytes_as_their_shapes_and_no_more_than_a_network() {
        let place = tempfile::tempdir().unwrap();
        let (path, data) = (place.path().join("w.onnx"), place.path().join("w.data"));
        let long = |bytes: u64| std::fs::File::create(&data).unwrap().set_len(bytes).unwrap();
        let array = |kind: DataType, dims: &[i64], entries: &[(&str, &str)]| TensorProto {
            name: "w".into(),
            data_type: kind as i32,
            dims: dims.to_vec(),
            ..outside(&[[("location", "w.data")].as_slice(), entries].concat())
        };
        let check = |arrays: &[&TensorProto]| check_data_files(arrays, &path);
        long(12 << 30);
        let claims = array(DataType::Float, &[1024, 10], &[("length", "12884901888")]);
        let said = check(&[&claims]).unwrap_err();
        assert!(
            said.contains("array 'w' of shape [1024, 10] takes 40960 bytes") && said.contains("12884901888"),
            "{said}"
        );
        assert!(check(&[&array(DataType::Float, &[1024, 10], &[])]).unwrap_err().contains("12884901888"));
        let sound = array(DataType::Double, &[1024, 10], &[("length", "81920"), ("offset", "12884819968")]);
        assert!(check(&[&sound, &sound]).is_ok());
        // 2³² numbers of one byte, and five arrays of the most numbers.
        let huge = array(DataType::Uint8, &[1 << 16, 1 << 16], &[("length", "4294967296")]);
        assert!(check(&[&huge]).unwrap_err().contains("268435456 numbers are the most"));
        assert!(check(&[&array(DataType::Float, &[-1, -1], &[])]).unwrap_err().contains("shape [-1, -1]"));
        let each = array(DataType::Float, &[1 << 28], &[("length", "1073741824")]);
        assert!(check(&[&each; 4]).is_ok());
        assert!(check(&[&each; 5]).unwrap_err().contains("5368709120 bytes in all"));
    }

    #[test]
    fn a_file_beyond_the_limit_of_its_format_is_refused_unread() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("long.onnx");
        std::fs::File::create(&path).unwrap().set_len(LONGEST + 1).unwrap();
        let why = read(&path).unwrap_err().to_string();
        assert!(why.contains("long.onnx") && why.contains("larger than the 2147483648 bytes"), "{why}");
    }

    #[test]
    fn sizes_are_read_however_they_are_written() {
        let mut array = TensorProto { dims: vec![2], data_type: DataType::Int64 as i32, ..Default::default() };
        array.int64_data = vec![3, -4];
        assert_eq!(numbers(&array), Some(vec![3.0, -4.0]));
        array.raw_data = [5i64, 6].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(numbers(&array), Some(vec![5.0, 6.0]));
        array.data_type = DataType::Float as i32;
        array.raw_data = [0.5f32, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(numbers(&array), Some(vec![0.5, 2.0]));
        array.dims = vec![1 << 40, 1 << 40];
        assert_eq!(numbers(&array), None);
    }
}
