//! One NumPy array in the NPY format
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).
//!
//! Not taken from `npyz`: its header parser recurses as deep as an untrusted header nests and
//! allocates what it announces. Numbers of any width and byte order become one of four vectors.

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::path::Path;

use half::f16;

use super::source::open_file;
use crate::error::{Error, Result};

/// What every NPY file begins with.
pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longest header that is read, in bytes; NumPy writes about 120.
const MAX_HEADER: u64 = 1 << 14;
/// Largest size in the shape of an array that holds nothing: no byte of the file bears it out, and its readers count by it.
const EMPTY: usize = u32::MAX as usize;
/// Bytes decoded at a time.
const CHUNK: usize = 1 << 18;

/// Which types of elements are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Types {
    /// float32, float64, bool and integers: images, and what is known about them.
    Numbers,
    /// float16 and strings as well: what other people's programs write.
    All,
}

impl Types {
    fn refuse(self, descr: &str) -> String {
        let read = match self {
            Self::Numbers => "float32, float64, bool and integers of 8 to 64 bits are",
            Self::All => "float16, float32, float64, bool, integers up to 63 bits and strings are",
        };
        format!("type {descr} is not read; {read}")
    }
}

/// The elements of an array in C order.
#[derive(Debug, PartialEq)]
pub(crate) enum Values {
    U8(Vec<u8>),
    /// Every other integer type, and bool.
    I64(Vec<i64>),
    /// float32; also float16, whose every number is one of float32.
    F32(Vec<f32>),
    F64(Vec<f64>),
    /// Byte (as Latin-1) or Unicode strings, without the zeros behind them.
    Text(Vec<String>),
}

impl Values {
    /// What to call the type in a message.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "uint8",
            Self::I64(_) => "integer",
            Self::F32(_) => "float32",
            Self::F64(_) => "float64",
            Self::Text(_) => "strings",
        }
    }

    /// Floating-point numbers; `None` for others.
    pub(crate) fn floats(self) -> Option<Vec<f64>> {
        match self {
            Self::F32(values) => Some(values.into_iter().map(f64::from).collect()),
            Self::F64(values) => Some(values),
            _ => None,
        }
    }

    /// Whole numbers; `None` for others.
    pub(crate) fn integers(self) -> Option<Vec<i64>> {
        match self {
            Self::U8(values) => Some(values.into_iter().map(i64::from).collect()),
            Self::I64(values) => Some(values),
            _ => None,
        }
    }

    /// Numbers of any type, those beyond 2⁵³ rounded; `None` for strings.
    pub(super) fn numbers(self) -> Option<Vec<f64>> {
        match self {
            Self::U8(_) | Self::I64(_) => self.integers().map(|v| v.into_iter().map(|v| v as f64).collect()),
            _ => self.floats(),
        }
    }
}

/// An array as read: as many values as the product of its shape.
#[derive(Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values,
    /// NumPy's name of the stored type, e.g. `<f4`, for messages.
    pub(crate) descr: String,
}

/// The three facts of a header.
pub(super) struct Header {
    /// Byte order, kind and item size, e.g. `<f4`.
    pub(super) descr: String,
    pub(super) fortran: bool,
    pub(super) shape: Vec<usize>,
}

/// The array of a `.npy` file.
///
/// # Errors
/// Names the file, and the system's refusal or what [`read_npy`] says.
pub(crate) fn read_npy_file(path: &Path, types: Types) -> Result<Array> {
    let mut file = open_file(path)?;
    let size = file.get_ref().metadata().map_err(|e| Error::io(path, e))?.len();
    read_npy(&mut file, size, types).map_err(|cause| Error::file(path, cause))
}

/// Reads an array of `size` bytes to the end of `reader`, where a zip entry checks its checksum.
///
/// The shape must account for every byte of `size` first. Memory grows with the bytes read.
pub(crate) fn read_npy(reader: &mut dyn Read, size: u64, types: Types) -> Result<Array, String> {
    let (Header { descr, fortran, shape }, taken) = read_header(reader)?;
    let item = Item::of(&descr, types)?;
    let announced = shape
        .iter()
        .try_fold(item.bytes as u64, |product, &dim| product.checked_mul(dim as u64))
        .filter(|&bytes| bytes > 0 || shape.iter().all(|&dim| dim <= EMPTY))
        .ok_or_else(|| format!("impossible shape {shape:?}"))?;
    let found = size.saturating_sub(taken);
    if announced != found {
        return Err(format!("shape {shape:?} of type {descr} needs {announced} bytes, the array holds {found}"));
    }
    let values = item.read(reader, announced).map_err(|e| format!("unreadable values: {e}"))?;
    match reader.read(&mut [0]) {
        Ok(0) => {}
        Ok(_) => return Err(format!("longer than the {size} bytes that were announced")),
        Err(e) => return Err(e.to_string()),
    }
    let values = if fortran { values.in_c_order(&shape) } else { values };
    Ok(Array { shape, values, descr })
}

/// Reads magic, version and dictionary; returns how many bytes they took.
pub(super) fn read_header(reader: &mut dyn Read) -> Result<(Header, u64), String> {
    let mut exact = |n: u64| -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        (&mut *reader).take(n).read_to_end(&mut bytes).map_err(|e| format!("unreadable header: {e}"))?;
        if bytes.len() as u64 == n { Ok(bytes) } else { Err("truncated header".into()) }
    };
    let start = exact(8)?;
    if !start.starts_with(MAGIC) {
        return Err("is not in NumPy's NPY format".into());
    }
    let length_bytes = match start[..] {
        [.., 1, 0] => 2,
        [.., 2 | 3, 0] => 4,
        _ => return Err("unknown version of the NPY format".into()),
    };
    let length = exact(length_bytes)?.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
    if length > MAX_HEADER {
        return Err(format!("a header of {length} bytes (at most {MAX_HEADER} are read)"));
    }
    let text = String::from_utf8_lossy(&exact(length)?).into_owned();
    let header = parse_header(&text).ok_or_else(|| {
        format!("header not understood: {} (what is read is a plain array without fields)", text.trim_end())
    })?;
    Ok((header, 8 + length_bytes + length))
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`; no structured types.
fn parse_header(text: &str) -> Option<Header> {
    // NumPy writes one kind of quotes and reads both.
    let text = text.replace('"', "'");
    let after = |key: &str| text.split_once(key).map(|(_, rest)| rest.trim_start());
    let (descr, _) = after("'descr':")?.strip_prefix('\'')?.split_once('\'')?;
    let order = after("'fortran_order':")?;
    let fortran = order.starts_with("True");
    if !fortran && !order.starts_with("False") {
        return None;
    }
    let (shape, _) = after("'shape':")?.strip_prefix('(')?.split_once(')')?;
    let shape = shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(|size| size.parse().ok())
        .collect::<Option<Vec<usize>>>()?;
    Some(Header { descr: descr.to_owned(), fortran, shape })
}

/// The type of an array's elements.
struct Item {
    kind: Kind,
    /// Bytes of one.
    bytes: usize,
    /// Most significant byte first.
    big: bool,
}

/// What an element is.
enum Kind {
    Float,
    Bool,
    Unsigned,
    Signed,
    /// A string of so many bytes a character.
    Text(usize),
}

impl Item {
    /// The type that NumPy calls `descr`: byte order, kind and size.
    fn of(descr: &str, types: Types) -> Result<Self, String> {
        let parse = || {
            let (&[order, kind], size) = descr.as_bytes().split_first_chunk()?;
            let size: usize = std::str::from_utf8(size).ok()?.parse().ok()?;
            let big = match order {
                b'<' | b'|' => false,
                b'>' => true,
                b'=' => cfg!(target_endian = "big"),
                _ => return None,
            };
            let (kind, bytes) = match (kind, size) {
                (b'f', 4 | 8) => (Kind::Float, size),
                (b'f', 2) if types == Types::All => (Kind::Float, size),
                (b'b', 1) => (Kind::Bool, size),
                (b'u', 1 | 2 | 4 | 8) => (Kind::Unsigned, size),
                (b'i', 1 | 2 | 4 | 8) => (Kind::Signed, size),
                (b'S' | b'a', _) if types == Types::All => (Kind::Text(1), size),
                (b'U', _) if types == Types::All => (Kind::Text(4), size.checked_mul(4)?),
                _ => return None,
            };
            Some(Self { kind, bytes, big })
        };
        parse().ok_or_else(|| types.refuse(descr))
    }

    /// Reads `total` bytes of elements.
    fn read(&self, reader: &mut dyn Read, total: u64) -> io::Result<Values> {
        let big = self.big;
        let int = |value: u64| {
            i64::try_from(value).map_err(|_| io::Error::other(format!("{value} does not fit into 63 bits")))
        };
        Ok(match (&self.kind, self.bytes) {
            (Kind::Float, 2) => Values::F32(collect(reader, total, big, |b| Ok(f16::from_le_bytes(b).to_f32()))?),
            (Kind::Float, 4) => Values::F32(collect(reader, total, big, |b| Ok(f32::from_le_bytes(b)))?),
            (Kind::Float, _) => Values::F64(collect(reader, total, big, |b| Ok(f64::from_le_bytes(b)))?),
            (Kind::Bool, _) => Values::I64(collect(reader, total, big, |[b]| Ok(i64::from(b != 0)))?),
            (Kind::Unsigned, 1) => Values::U8(collect(reader, total, big, |[b]| Ok(b))?),
            (Kind::Unsigned, 2) => Values::I64(collect(reader, total, big, |b| Ok(u16::from_le_bytes(b).into()))?),
            (Kind::Unsigned, 4) => Values::I64(collect(reader, total, big, |b| Ok(u32::from_le_bytes(b).into()))?),
            (Kind::Unsigned, _) => Values::I64(collect(reader, total, big, |b| int(u64::from_le_bytes(b)))?),
            (Kind::Signed, 1) => Values::I64(collect(reader, total, big, |b| Ok(i8::from_le_bytes(b).into()))?),
            (Kind::Signed, 2) => Values::I64(collect(reader, total, big, |b| Ok(i16::from_le_bytes(b).into()))?),
            (Kind::Signed, 4) => Values::I64(collect(reader, total, big, |b| Ok(i32::from_le_bytes(b).into()))?),
            (Kind::Signed, _) => Values::I64(collect(reader, total, big, |b| Ok(i64::from_le_bytes(b)))?),
            (&Kind::Text(unit), bytes) => {
                let mut texts = Vec::new();
                pieces(reader, total, bytes, |piece| {
                    texts.extend(piece.chunks_exact(bytes).map(|item| text(item, unit, big)));
                    Ok(())
                })?;
                Values::Text(texts)
            }
        })
    }
}

/// The string of an element, `unit` bytes a character.
fn text(item: &[u8], unit: usize, big: bool) -> String {
    let add = |sum: u32, &byte: &u8| sum << 8 | u32::from(byte);
    let code = |unit: &[u8]| if big { unit.iter().fold(0, add) } else { unit.iter().rev().fold(0, add) };
    let character = |unit| char::from_u32(code(unit)).unwrap_or(char::REPLACEMENT_CHARACTER);
    let text: String = item.chunks_exact(unit).map(character).collect();
    text.trim_end_matches('\0').to_owned()
}

/// Decodes `total` bytes, `N` a value, chunk by chunk.
fn collect<T, const N: usize>(
    reader: &mut dyn Read,
    total: u64,
    big: bool,
    value: impl Fn([u8; N]) -> io::Result<T>,
) -> io::Result<Vec<T>> {
    let mut values = Vec::new();
    pieces(reader, total, N, |piece| {
        for item in piece.as_chunks_mut::<N>().0 {
            if big {
                item.reverse();
            }
            values.push(value(*item)?);
        }
        Ok(())
    })?;
    Ok(values)
}

/// Reads `total` bytes, some whole elements of `bytes` each at a time.
fn pieces(
    reader: &mut dyn Read,
    total: u64,
    bytes: usize,
    mut each: impl FnMut(&mut [u8]) -> io::Result<()>,
) -> io::Result<()> {
    // Elements of no bytes make no piece, however many there are.
    let most = CHUNK.checked_div(bytes).unwrap_or(0).max(1).saturating_mul(bytes);
    let mut left = total;
    let mut buffer = Vec::new();
    while left > 0 {
        let next = left.min(most as u64);
        buffer.clear();
        (&mut *reader).take(next).read_to_end(&mut buffer)?;
        if (buffer.len() as u64) < next {
            let short = left - buffer.len() as u64;
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("ends {short} bytes early")));
        }
        each(&mut buffer)?;
        left -= next;
    }
    Ok(())
}

impl Values {
    /// Values stored with the first index running fastest, brought into C order.
    fn in_c_order(self, shape: &[usize]) -> Self {
        match self {
            Self::U8(values) => Self::U8(c_order(&values, shape)),
            Self::I64(values) => Self::I64(c_order(&values, shape)),
            Self::F32(values) => Self::F32(c_order(&values, shape)),
            Self::F64(values) => Self::F64(c_order(&values, shape)),
            Self::Text(values) => Self::Text(c_order(&values, shape)),
        }
    }
}

fn c_order<T: Clone>(values: &[T], shape: &[usize]) -> Vec<T> {
    let strides: Vec<usize> = shape.iter().scan(1, |next, &dim| Some(std::mem::replace(next, *next * dim))).collect();
    let mut index = vec![0; shape.len()];
    (0..values.len())
        .map(|_| {
            let at: usize = index.iter().zip(&strides).map(|(i, stride)| i * stride).sum();
            for (i, &dim) in index.iter_mut().zip(shape).rev() {
                *i += 1;
                if *i < dim {
                    break;
                }
                *i = 0;
            }
            values[at].clone()
        })
        .collect()
}
