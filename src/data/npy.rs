//! One NumPy array in the NPY format (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).
//!
//! Written here rather than taken from `npyz`, whose header parser recurses as deep as an untrusted header nests and
//! allocates what it announces. Numbers of any width and byte order become one of four vectors.

use std::io::{self, Read};

/// What every NPY file begins with.
pub(super) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longest header that is read, in bytes; NumPy writes about 120.
const MAX_HEADER: u64 = 1 << 14;
/// Bytes decoded at a time.
const CHUNK: usize = 1 << 18;

/// The elements of an array in C order.
#[derive(Debug, PartialEq)]
pub(super) enum Values {
    U8(Vec<u8>),
    /// Every other integer type, and bool.
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Values {
    /// What to call the type in a message.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "uint8",
            Self::I64(_) => "integer",
            Self::F32(_) => "float32",
            Self::F64(_) => "float64",
        }
    }
}

/// An array as read: as many values as the product of its shape.
#[derive(Debug, PartialEq)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) values: Values,
}

/// The three facts of a header.
pub(super) struct Header {
    /// Byte order, kind and item size, e.g. `<f4`.
    pub(super) descr: String,
    pub(super) fortran: bool,
    pub(super) shape: Vec<usize>,
}

/// Reads an array of `size` bytes altogether from `reader`, to its very end (where a zip entry checks its checksum).
///
/// The shape must account for every byte of `size` before the first value is read, and memory grows with what is read.
pub(super) fn read_npy(reader: &mut dyn Read, size: u64) -> Result<Array, String> {
    let (header, taken) = read_header(reader)?;
    let (big, kind, width) = parse_descr(&header.descr)?;
    let announced = header
        .shape
        .iter()
        .try_fold(width as u64, |product, &dim| product.checked_mul(dim as u64))
        .ok_or_else(|| format!("impossible shape {:?}", header.shape))?;
    let found = size.saturating_sub(taken);
    if announced != found {
        return Err(format!(
            "shape {:?} of type {} needs {announced} bytes, the entry holds {found}",
            header.shape, header.descr
        ));
    }
    let mut values = read_values(reader, announced, big, (kind, width))
        .map_err(|e| format!("unreadable values: {e}"))?
        .ok_or_else(|| unsupported(&header.descr))?;
    match reader.read(&mut [0]) {
        Ok(0) => {}
        Ok(_) => {
            return Err(format!("longer than the {size} bytes the archive announces"));
        }
        Err(e) => return Err(e.to_string()),
    }
    if header.fortran {
        values = values.in_c_order(&header.shape);
    }
    Ok(Array { shape: header.shape, values })
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
    let header = parse_header(&text).ok_or_else(|| format!("header not understood: {}", text.trim_end()))?;
    Ok((header, 8 + length_bytes + length))
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`; structured types are not understood.
fn parse_header(text: &str) -> Option<Header> {
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

/// Byte order (big?), kind and item size of a type string.
fn parse_descr(descr: &str) -> Result<(bool, u8, usize), String> {
    let parsed = match *descr.as_bytes() {
        [order @ (b'<' | b'>' | b'|' | b'='), kind, width @ b'1'..=b'8'] => {
            let big = order == b'>' || order == b'=' && cfg!(target_endian = "big");
            Some((big, kind, usize::from(width - b'0')))
        }
        _ => None,
    };
    parsed.ok_or_else(|| unsupported(descr))
}

fn unsupported(descr: &str) -> String {
    format!("type {descr} is not read; float32, float64, bool and integers of 8 to 64 bits are")
}

/// Reads `total` bytes of numbers; `None` for a type that is no supported number.
fn read_values(reader: &mut dyn Read, total: u64, big: bool, kind: (u8, usize)) -> io::Result<Option<Values>> {
    let int =
        |value: u64| i64::try_from(value).map_err(|_| io::Error::other(format!("{value} does not fit into 63 bits")));
    Ok(Some(match kind {
        (b'f', 4) => Values::F32(collect(reader, total, big, |b| Ok(f32::from_le_bytes(b)))?),
        (b'f', 8) => Values::F64(collect(reader, total, big, |b| Ok(f64::from_le_bytes(b)))?),
        (b'u', 1) => Values::U8(collect(reader, total, big, |[b]| Ok(b))?),
        (b'b', 1) => Values::I64(collect(reader, total, big, |[b]| Ok(i64::from(b != 0)))?),
        (b'u', 2) => Values::I64(collect(reader, total, big, |b| Ok(u16::from_le_bytes(b).into()))?),
        (b'u', 4) => Values::I64(collect(reader, total, big, |b| Ok(u32::from_le_bytes(b).into()))?),
        (b'u', 8) => Values::I64(collect(reader, total, big, |b| int(u64::from_le_bytes(b)))?),
        (b'i', 1) => Values::I64(collect(reader, total, big, |b| Ok(i8::from_le_bytes(b).into()))?),
        (b'i', 2) => Values::I64(collect(reader, total, big, |b| Ok(i16::from_le_bytes(b).into()))?),
        (b'i', 4) => Values::I64(collect(reader, total, big, |b| Ok(i32::from_le_bytes(b).into()))?),
        (b'i', 8) => Values::I64(collect(reader, total, big, |b| Ok(i64::from_le_bytes(b)))?),
        _ => return Ok(None),
    }))
}

/// Decodes `total` bytes, `N` a value, chunk by chunk.
fn collect<T, const N: usize>(
    reader: &mut dyn Read,
    total: u64,
    big: bool,
    value: impl Fn([u8; N]) -> io::Result<T>,
) -> io::Result<Vec<T>> {
    let mut values = Vec::new();
    let mut left = total;
    let mut buffer = Vec::new();
    while left > 0 {
        let next = left.min(CHUNK as u64);
        buffer.clear();
        (&mut *reader).take(next).read_to_end(&mut buffer)?;
        if (buffer.len() as u64) < next {
            let short = left - buffer.len() as u64;
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("ends {short} bytes early")));
        }
        let (items, _) = buffer.as_chunks_mut::<N>();
        for item in items {
            if big {
                item.reverse();
            }
            values.push(value(*item)?);
        }
        left -= next;
    }
    Ok(values)
}

impl Values {
    /// Values stored with the first index running fastest, brought into C order.
    fn in_c_order(self, shape: &[usize]) -> Self {
        match self {
            Self::U8(values) => Self::U8(c_order(&values, shape)),
            Self::I64(values) => Self::I64(c_order(&values, shape)),
            Self::F32(values) => Self::F32(c_order(&values, shape)),
            Self::F64(values) => Self::F64(c_order(&values, shape)),
        }
    }
}

fn c_order<T: Copy>(values: &[T], shape: &[usize]) -> Vec<T> {
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
            values[at]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::world::{write_header, write_values};
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Array, String> {
        read_npy(&mut &bytes[..], bytes.len() as u64)
    }

    #[test]
    fn byte_and_index_order_are_seen_through() {
        let big = npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", &[0, 1, 0xff, 0xff]);
        assert_eq!(read(&big).unwrap(), Array { shape: vec![2], values: Values::I64(vec![1, -1]) });
        let fortran = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", &[1, 4, 2, 5, 3, 6]);
        assert_eq!(read(&fortran).unwrap().values, Values::U8(vec![1, 2, 3, 4, 5, 6]));
        let mut own = Vec::new();
        write_header(&mut own, "<f4", &[2]).unwrap();
        assert!(own.len().is_multiple_of(64));
        write_values(&mut own, &[1.5f32, -2.0], f32::to_le_bytes).unwrap();
        assert_eq!(read(&own).unwrap(), Array { shape: vec![2], values: Values::F32(vec![1.5, -2.0]) });
    }

    #[test]
    fn a_header_is_not_believed() {
        let cases = [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967295, 4294967295, 9), }", "impossible shape"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967295,), }", "holds 4"),
            ("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "type <c8"),
            ("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", "type <f2"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "not understood"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "not understood"),
            ("((((((((((((((((((((((", "not understood"),
        ];
        for (header, cause) in cases {
            let error = read(&npy(header, &[0; 4])).unwrap_err();
            assert!(error.contains(cause), "{header}: {error}");
        }
        let whole = npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", &[0xff; 8]);
        assert!(read(&whole).unwrap_err().contains("63 bits"));
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err());
        }
        let huge = b"\x93NUMPY\x02\x00\xff\xff\xff\xff";
        assert!(read(huge).unwrap_err().contains("header of 4294967295 bytes"));
    }
}
