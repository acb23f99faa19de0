//! Arrays of npz and npy files of any program: floats of 16 to 64 bits, integers and strings, one array at a time, so that
//! the images beside them are never read. (`data` reads neither float16 nor strings, which other people's files hold.)

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;

use half::f16;
use npyz::zip::{ZipArchive, result::ZipError};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};

use crate::data::open_file;
use crate::error::{Error, Result};

/// Longest header that is read, in bytes; NumPy writes about 120.
const MAX_HEADER: usize = 1 << 14;
/// Deepest nesting of a header: `npyz` parses recursively, and a plain array has a dictionary with a tuple.
const MAX_DEPTH: usize = 8;

/// Elements in C order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    /// float16, float32 or float64.
    Float(Vec<f64>),
    /// bool and integers.
    Int(Vec<i64>),
    /// Byte or Unicode strings, without the zeros behind them.
    Text(Vec<String>),
}

/// An array: as many values as the product of its shape.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Values,
    /// NumPy's name of the type, for messages.
    pub(super) kind: String,
}

/// An open npz.
pub(super) struct Archive<'a> {
    path: &'a Path,
    zip: ZipArchive<BufReader<File>>,
}

impl<'a> Archive<'a> {
    pub(super) fn open(path: &'a Path) -> Result<Self> {
        let zip = ZipArchive::new(open_file(path)?)
            .map_err(|e| Error::file(path, format!("no npz archive, or a damaged one: {e}")))?;
        Ok(Self { path, zip })
    }

    /// Names of the arrays, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.zip.file_names().map(|n| n.trim_end_matches(".npy").to_owned()).collect();
        names.sort_unstable();
        names
    }

    /// An array, or `None` where there is none of that name.
    pub(super) fn read(&mut self, name: &str) -> Result<Option<Array>> {
        let bad = |cause: String| Error::file(self.path, format!("array {name}: {cause}"));
        let mut entry = match self.zip.by_name(&format!("{name}.npy")) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(e) => return Err(bad(e.to_string())),
        };
        let size = entry.size();
        read_array(&mut entry, size).map(Some).map_err(bad)
    }
}

/// The array of a `.npy` file.
pub(super) fn read_npy_file(path: &Path) -> Result<Array> {
    let mut file = open_file(path)?;
    let size = file.get_ref().metadata().map_err(|e| Error::io(path, e))?.len();
    read_array(&mut file, size).map_err(|cause| Error::file(path, cause))
}

fn read_array(reader: &mut dyn Read, size: u64) -> Result<Array, String> {
    let (header, taken) = read_header(reader)?;
    let DType::Plain(plain) = header.dtype() else {
        return Err(format!("type {} has fields; a plain array is needed", header.dtype().descr()));
    };
    let (kind, width) = (plain.to_string(), usize::try_from(plain.size_field()).unwrap_or(usize::MAX));
    let bytes = if plain.type_char() == TypeChar::UnicodeStr { width.saturating_mul(4) } else { width };
    let shape: Vec<usize> = header.shape().iter().map(|&dim| usize::try_from(dim).unwrap_or(usize::MAX)).collect();
    let announced = shape.iter().try_fold(bytes as u64, |product, &dim| product.checked_mul(dim as u64));
    let found = size.saturating_sub(taken as u64);
    if announced != Some(found) {
        return Err(format!("shape {shape:?} of type {kind} does not fit {found} bytes: damaged or cut short"));
    }
    let mut data = Vec::new();
    (&mut *reader).take(found).read_to_end(&mut data).map_err(|e| format!("unreadable values: {e}"))?;
    if data.len() as u64 != found {
        return Err(format!("ends after {} of {found} bytes", data.len()));
    }
    // A zip entry checks its checksum at its end.
    reader.read(&mut [0]).map_err(|e| e.to_string())?;
    let big = plain.endianness() == Endianness::Big;
    let values = decode(&data, plain.type_char(), bytes, big).ok_or_else(|| {
        format!("type {kind} is not read; float16, float32, float64, integers up to 63 bits and strings are")
    })??;
    let values = if header.order() == Order::Fortran { values.in_c_order(&shape) } else { values };
    Ok(Array { shape, values, kind })
}

/// The header, and the bytes it took. Bounded before it is parsed.
fn read_header(reader: &mut dyn Read) -> Result<(NpyHeader, usize), String> {
    let mut head = Vec::new();
    let mut more = |head: &mut Vec<u8>, n: usize| -> Result<(), String> {
        let wanted = head.len() + n;
        (&mut *reader).take(n as u64).read_to_end(head).map_err(|e| format!("unreadable header: {e}"))?;
        if head.len() == wanted { Ok(()) } else { Err("is cut short within its header".into()) }
    };
    more(&mut head, 10)?;
    if !head.starts_with(b"\x93NUMPY") {
        return Err("is not in NumPy's NPY format".into());
    }
    let long = head[6] > 1;
    if long {
        more(&mut head, 2)?;
    }
    let length = head[8..].iter().rev().fold(0usize, |sum, &byte| sum << 8 | usize::from(byte));
    if length > MAX_HEADER {
        return Err(format!("a header of {length} bytes (at most {MAX_HEADER} are read)"));
    }
    more(&mut head, length)?;
    let depth = head.iter().filter(|byte| b"([{".contains(byte)).count();
    if depth > MAX_DEPTH {
        return Err("header not understood".into());
    }
    let header = NpyHeader::from_reader(Cursor::new(&head)).map_err(|e| format!("header not understood: {e}"))?;
    Ok((header, head.len()))
}

/// Numbers or strings of `width` bytes each; `None` for a type that is not read.
fn decode(data: &[u8], kind: TypeChar, width: usize, big: bool) -> Option<Result<Values, String>> {
    let known = match kind {
        TypeChar::Bool => width == 1,
        TypeChar::Int | TypeChar::Uint => [1, 2, 4, 8].contains(&width),
        TypeChar::Float => [2, 4, 8].contains(&width),
        TypeChar::ByteStr | TypeChar::UnicodeStr => true,
        _ => false,
    };
    if !known {
        return None;
    }
    if width == 0 {
        return Some(Ok(Values::Text(Vec::new())));
    }
    let items = data.chunks_exact(width);
    Some(match kind {
        TypeChar::Float => Ok(Values::Float(items.map(|item| float(bits(item, big), width)).collect())),
        TypeChar::Int => {
            let shift = 64 - 8 * width as u32;
            Ok(Values::Int(items.map(|item| ((bits(item, big) << shift) as i64) >> shift).collect()))
        }
        TypeChar::Bool | TypeChar::Uint => items
            .map(|item| i64::try_from(bits(item, big)).map_err(|_| "an integer of more than 63 bits".to_owned()))
            .collect::<Result<_, _>>()
            .map(Values::Int),
        TypeChar::ByteStr => Ok(Values::Text(items.map(|item| text(item.iter().map(|&b| u32::from(b)))).collect())),
        _ => Ok(Values::Text(items.map(|item| text(item.chunks_exact(4).map(|c| bits(c, big) as u32))).collect())),
    })
}

fn bits(item: &[u8], big: bool) -> u64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    if big { item.iter().fold(0, add) } else { item.iter().rev().fold(0, add) }
}

fn float(bits: u64, width: usize) -> f64 {
    match width {
        2 => f16::from_bits(bits as u16).to_f64(),
        4 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

fn text(codes: impl Iterator<Item = u32>) -> String {
    let text: String = codes.map(|code| char::from_u32(code).unwrap_or('\u{fffd}')).collect();
    text.trim_end_matches('\0').to_owned()
}

impl Values {
    fn in_c_order(self, shape: &[usize]) -> Self {
        match self {
            Self::Float(values) => Self::Float(transposed(values, shape)),
            Self::Int(values) => Self::Int(transposed(values, shape)),
            Self::Text(values) => Self::Text(transposed(values, shape)),
        }
    }
}

/// Values with the first index running fastest, in C order. More than two dimensions are refused by all who ask, and are
/// left as they are.
fn transposed<T: Clone>(values: Vec<T>, shape: &[usize]) -> Vec<T> {
    match *shape {
        [rows, columns] => (0..rows * columns).map(|at| values[at % columns * rows + at / columns].clone()).collect(),
        _ => values,
    }
}

impl Array {
    /// Shape and type, for messages.
    pub(super) fn described(&self) -> String {
        format!("type {} of shape {:?}", self.kind, self.shape)
    }

    /// Numbers of a matrix [n, K], and K.
    pub(super) fn matrix(self) -> Result<(Vec<f64>, usize), String> {
        let described = self.described();
        match (&self.shape[..], self.values) {
            (&[_, classes], Values::Float(values)) => Ok((values, classes)),
            _ => Err(format!("{described}; floating-point numbers of shape [images, classes] are needed")),
        }
    }

    /// Integers of a vector [n] or [n, 1].
    pub(super) fn integers(self) -> Result<Vec<i64>, String> {
        let described = self.described();
        match (&self.shape[..], self.values) {
            ([_] | [_, 1], Values::Int(values)) => Ok(values),
            _ => Err(format!("{described}; integers of shape [images] are needed")),
        }
    }

    /// The one string of an array of no or one element.
    pub(super) fn single_text(self) -> Option<String> {
        match self.values {
            Values::Text(texts) if texts.len() == 1 => texts.into_iter().next(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Array, String> {
        read_array(&mut &bytes[..], bytes.len() as u64)
    }

    fn header(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
    }

    #[test]
    fn widths_byte_orders_and_strings_are_seen_through() {
        let half = npy(&header("<f2", "False", "(2,)"), &[0x00, 0x3c, 0x01, 0x00]);
        assert_eq!(read(&half).unwrap().values, Values::Float(vec![1.0, 2f64.powi(-24)]));
        let big = npy(&header(">i2", "False", "(2,)"), &[0, 1, 0xff, 0xff]);
        assert_eq!(read(&big).unwrap().values, Values::Int(vec![1, -1]));
        let fortran = npy(&header("|u1", "True", "(2, 3)"), &[1, 4, 2, 5, 3, 6]);
        assert_eq!(read(&fortran).unwrap().values, Values::Int(vec![1, 2, 3, 4, 5, 6]));
        let bytes = npy(&header("|S3", "False", "()"), b"ab\0");
        assert_eq!(read(&bytes).unwrap().single_text().unwrap(), "ab");
        let unicode = npy(&header("<U2", "False", "(1,)"), &[0xc4, 3, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read(&unicode).unwrap().single_text().unwrap(), "τ");
    }

    #[test]
    fn damage_is_refused_at_every_byte() {
        let whole = npy(&header("<f8", "False", "(2,)"), &[0; 16]);
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
        }
        let nested = npy(&"(".repeat(10_000), &[]);
        assert!(read(&nested).unwrap_err().contains("not understood"));
        let cases = [("<f8", "(4294967295, 4294967295, 9)"), ("<c8", "(2,)"), ("|O", "(2,)"), ("<f8", "(-1,)")];
        for (descr, shape) in cases {
            assert!(read(&npy(&header(descr, "False", shape), &[0; 16])).is_err(), "{descr} {shape}");
        }
    }
}
