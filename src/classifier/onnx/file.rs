//! An ONNX file as it lies on the disk: read, checked for what is missing, and described before
//! anything is computed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::Dimension as Axis;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Length;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto, ValueInfoProto, type_proto};
use tract_onnx::prelude::Framework;

use super::normalisation::Normalisation;
use super::operators::{self, Unsupported};
use crate::data::open_regular;
use crate::error::{Error, Result, in_line};

/// Length of one axis of an input or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Extent {
    /// Fixed by the file.
    Known(usize),
    /// Left open, under the name the file gives it; `?` where it gives none.
    Open(String),
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(n) => write!(f, "{n}"),
            Self::Open(name) => f.write_str(name),
        }
    }
}

/// An input or output of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Its name in the file.
    pub name: String,
    /// Format of its numbers, as ONNX calls it: `FLOAT`, `UINT8`, …
    pub dtype: String,
    /// Its axes, where the file gives them.
    pub extents: Option<Vec<Extent>>,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents = self.extents.as_ref().map_or("of unknown shape".into(), |extents| {
            format!("[{}]", extents.iter().map(Extent::to_string).collect::<Vec<_>>().join(", "))
        });
        write!(f, "'{}' {extents} {}", self.name, self.dtype)
    }
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// The file.
    pub path: PathBuf,
    /// Program that wrote it and its version; empty where it does not say.
    pub producer: String,
    /// Version of the operators (opset).
    pub opset: i64,
    /// Version of the file format.
    pub ir_version: i64,
    /// Inputs that have to be given; weights that are listed as inputs are none.
    pub inputs: Vec<Port>,
    /// Outputs of the graph, in the order of the file.
    pub outputs: Vec<Port>,
    /// Numbers in floating-point arrays of the file: the parameters, and running statistics where
    /// they are not folded away.
    pub parameters: u64,
    /// Nodes by operator, bodies of loops and conditions included.
    pub operators: BTreeMap<String, usize>,
    /// Operators that cannot be run here.
    pub unsupported: Vec<Unsupported>,
    /// Files beside it that hold weights.
    pub data_files: BTreeSet<String>,
    /// Its `metadata_props`.
    pub metadata: BTreeMap<String, String>,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ports: &[Port]| ports.iter().map(Port::to_string).collect::<Vec<_>>().join(", ");
        writeln!(f, "{}: {} parameters, opset {}", self.path.display(), self.parameters, self.opset)?;
        if !self.producer.is_empty() {
            writeln!(f, "written by {}", self.producer)?;
        }
        writeln!(f, "input {}", list(&self.inputs))?;
        write!(f, "output {}", list(&self.outputs))?;
        if !self.unsupported.is_empty() {
            write!(f, "\n{}", operators::complaint(&self.unsupported, self.opset))?;
        }
        Ok(())
    }
}

impl Description {
    pub(super) fn of(path: &Path, model: &ModelProto) -> Self {
        let nothing = GraphProto::default();
        let graph = model.graph.as_ref().unwrap_or(&nothing);
        let given: HashSet<_> = graph.initializer.iter().map(|array| array.name.as_str()).collect();
        let nodes = operators::nodes(graph);
        let arrays = arrays(graph, &nodes);
        let numbers = |array: &&TensorProto| array.dims.iter().map(|&n| u64::try_from(n).unwrap_or(0)).product::<u64>();
        let mut operators = BTreeMap::new();
        nodes.iter().for_each(|node| *operators.entry(node.op_type.clone()).or_default() += 1);
        Self {
            path: path.to_owned(),
            producer: format!("{} {}", model.producer_name, model.producer_version).trim().to_owned(),
            opset: operators::opset(model),
            ir_version: model.ir_version,
            inputs: graph.input.iter().filter(|input| !given.contains(input.name.as_str())).map(port).collect(),
            outputs: graph.output.iter().map(port).collect(),
            parameters: arrays.iter().filter(|array| is_float(array)).map(numbers).sum(),
            operators,
            unsupported: operators::unsupported(model, path),
            data_files: arrays.iter().filter_map(|array| external(array, "location").map(str::to_owned)).collect(),
            metadata: model.metadata_props.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect(),
        }
    }

    /// The normalisation the file asks for; `None` where it is silent.
    ///
    /// # Errors
    /// When what it says is none.
    pub fn normalisation(&self) -> Result<Option<Normalisation>> {
        Normalisation::of_metadata(|key| self.metadata.get(key).map(String::as_str))
            .map_err(|e| Error::file(&self.path, e.to_string()))
    }
}

fn is_float(array: &TensorProto) -> bool {
    use DataType::{Bfloat16, Double, Float, Float16};
    DataType::try_from(array.data_type).is_ok_and(|dtype| [Float, Double, Float16, Bfloat16].contains(&dtype))
}

fn port(value: &ValueInfoProto) -> Port {
    let tensor = value.r#type.as_ref().and_then(|kind| kind.value.as_ref()).map(|type_proto::Value::TensorType(t)| t);
    let extent = |dimension: &Axis| match &dimension.value {
        Some(Length::DimValue(n)) if *n > 0 => Extent::Known(usize::try_from(*n).unwrap_or(usize::MAX)),
        Some(Length::DimParam(name)) if !name.is_empty() => Extent::Open(name.clone()),
        // Some exporters write 0 or −1 for an open axis.
        _ => Extent::Open("?".into()),
    };
    let dtype = tensor.and_then(|tensor| DataType::try_from(tensor.elem_type).ok());
    Port {
        name: value.name.clone(),
        dtype: dtype.map_or("no tensor", |dtype| dtype.as_str_name()).to_owned(),
        extents: tensor.and_then(|tensor| tensor.shape.as_ref()).map(|shape| shape.dim.iter().map(extent).collect()),
    }
}

/// All arrays of a file: its own, those of bodies, and those of constant nodes.
fn arrays<'a>(graph: &'a GraphProto, nodes: &[&'a NodeProto]) -> Vec<&'a TensorProto> {
    let attributes = || nodes.iter().flat_map(|node| &node.attribute);
    let bodies = attributes().filter_map(|attribute| attribute.g.as_ref()).flat_map(|body| &body.initializer);
    let constants = attributes().filter_map(|attribute| attribute.t.as_ref());
    graph.initializer.iter().chain(bodies).chain(constants).collect()
}

/// What an array that lies in another file says about that.
fn external<'a>(array: &'a TensorProto, key: &str) -> Option<&'a str> {
    let outside = array.data_location == Some(DataLocation::External as i32);
    array.external_data.iter().find(|entry| outside && entry.key == key).map(|entry| entry.value.as_str())
}

/// Reads a file, without the arrays that lie beside it.
///
/// # Errors
/// When it cannot be read, is no ONNX file, is damaged, or a file beside it is missing or too
/// short.
pub(super) fn read(path: &Path) -> Result<ModelProto> {
    let mut file = open_regular(path).map_err(|e| Error::io(path, e))?;
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
    let mut known: HashSet<&str> = graph.initializer.iter().map(|array| array.name.as_str()).collect();
    known.extend(graph.input.iter().map(|input| input.name.as_str()));
    for node in &graph.node {
        if let Some(lost) = node.input.iter().find(|name| !name.is_empty() && !known.contains(name.as_str())) {
            let (name, operator) = (operators::name(node), &node.op_type);
            return Err(format!("damaged: node '{name}' ({operator}) reads '{lost}', which nothing before it gives"));
        }
        known.extend(node.output.iter().map(String::as_str));
    }
    if let Some(lost) = graph.output.iter().find(|output| !known.contains(output.name.as_str())) {
        return Err(format!("damaged: nothing gives its output '{}'", lost.name));
    }
    let nodes = operators::nodes(graph);
    check_windows(&nodes)?;
    check_data_files(&arrays(graph, &nodes), path)
}

/// What the windows of a node are described by, and the largest number there. No image has more
/// rows, and the runtime walks through as many as a damaged file asks for; what is padded lies in
/// memory, too, and no network pads by as much as it looks at.
const WINDOWS: [(&str, u64); 5] =
    [("kernel_shape", 1 << 16), ("strides", 1 << 16), ("dilations", 1 << 16), ("pads", 512), ("output_padding", 512)];

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

/// Whether the files beside it are there and long enough.
fn check_data_files(arrays: &[&TensorProto], path: &Path) -> Result<(), String> {
    let mut ends: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for array in arrays {
        let Some(location) = external(array, "location") else { continue };
        let number = |key| external(array, key).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let (count, end) = ends.entry(location).or_default();
        *count += 1;
        *end = number("offset").saturating_add(number("length")).max(*end);
    }
    let folder = folder(path);
    if folder.to_str().is_none() && !ends.is_empty() {
        return Err(
            "its weights lie in a file beside it, in a folder whose name is no Unicode: rename the folder".into()
        );
    }
    for (location, (count, end)) in ends {
        match std::fs::metadata(folder.join(location)) {
            Err(e) => {
                let plain = in_line(location);
                return Err(format!(
                    "{count} of its arrays lie in '{plain}' beside it, which cannot be read ({e}): put both into one folder"
                ));
            }
            Ok(found) if found.len() < end => {
                let (has, location) = (found.len(), in_line(location));
                return Err(format!(
                    "its arrays in '{location}' end at byte {end}, and that file has {has}: it is cut off"
                ));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Where files beside it lie.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Gives an input the shape it is run with.
pub(super) fn fix_shape(model: &mut ModelProto, input: &str, axes: [usize; 4]) {
    let inputs = model.graph.iter_mut().flat_map(|graph| &mut graph.input).filter(|value| value.name == input);
    for kind in inputs.filter_map(|value| value.r#type.as_mut()?.value.as_mut()) {
        let type_proto::Value::TensorType(tensor) = kind;
        let dim = axes.map(|n| Axis { value: i64::try_from(n).ok().map(Length::DimValue), ..Default::default() });
        tensor.shape = Some(TensorShapeProto { dim: dim.to_vec() });
    }
}

#[cfg(test)]
mod tests {
    use tract_onnx::pb::StringStringEntryProto;

    use super::*;

    /// What a file says of its neighbours begins no line and commands no terminal.
    #[test]
    fn a_strange_place_of_arrays_is_told_in_one_line() {
        let entry = |value: &str| StringStringEntryProto { key: "location".into(), value: value.into() };
        let array = |value: &str| TensorProto {
            data_location: Some(DataLocation::External as i32),
            external_data: vec![entry(value)],
            ..Default::default()
        };
        let said = check_data_files(&[&array("a\u{1b}[31m\nbayescope: all is well")], Path::new("w.onnx")).unwrap_err();
        assert!(!said.contains('\n') && !said.contains('\u{1b}'), "{said:?}");
        assert!(said.contains("bayescope: all is well"), "{said}");
    }
}
