//! The part of MATLAB's MAT-file format, version 5, that numeric arrays need (MathWorks, *MAT-File
//! Format*, chapter 1): little-endian files, compressed or not. Values are streamed; memory holds
//! one array's description.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;

/// Bytes before the first element.
const HEADER: u64 = 128;
/// Types of data.
const INT8: u32 = 1;
const UINT8: u32 = 2;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const DOUBLE: u32 = 9;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// Longest name and most dimensions that are read, in bytes.
const MAX_SMALL: u64 = 256;

/// A numeric array: its description, and its values still to be read.
pub(super) struct Matrix<'a> {
    pub name: String,
    /// First index fastest.
    pub dims: Vec<usize>,
    kind: u32,
    values: io::Take<&'a mut dyn Read>,
}

/// Reads the arrays of a file one after the other.
pub(super) fn read<E: From<String>>(
    mut file: impl Read,
    mut each: impl FnMut(Matrix<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut header = Vec::new();
    (&mut file).take(HEADER).read_to_end(&mut header).map_err(said)?;
    if header.len() as u64 != HEADER || !header.starts_with(b"MATLAB 5.0") {
        return Err("is no MAT-file of version 5 (MATLAB's `save -v7` writes one)".to_owned().into());
    }
    if !header.ends_with(&[0x00, 0x01, b'I', b'M']) {
        return Err("is a big-endian MAT-file, which is not read".to_owned().into());
    }
    loop {
        let mut tag = Vec::new();
        (&mut file).take(8).read_to_end(&mut tag).map_err(said)?;
        if tag.is_empty() {
            return Ok(());
        }
        let [kind, length] = words(&tag).ok_or_else(|| "is cut short".to_owned())?;
        let mut element = (&mut file).take(length.into());
        match kind {
            COMPRESSED => {
                let mut inner = ZlibDecoder::new(&mut element);
                let tag = Tag::read(&mut inner)?;
                if tag.kind == MATRIX {
                    matrix(&mut inner, &mut each)?;
                }
                // To the end, where the checksum is.
                io::copy(&mut inner, &mut io::sink()).map_err(said)?;
            }
            MATRIX => matrix(&mut element, &mut each)?,
            _ => {}
        }
        io::copy(&mut element, &mut io::sink()).map_err(said)?;
        if element.limit() > 0 {
            return Err("is cut short".to_owned().into());
        }
    }
}

/// Hands a numeric array over; arrays of other kinds (cells, structures, texts) are passed by.
fn matrix<E: From<String>>(reader: &mut dyn Read, each: &mut impl FnMut(Matrix<'_>) -> Result<(), E>) -> Result<(), E> {
    let flags = small(reader, UINT32)?;
    // Classes 6 to 15 are the numeric ones; 0x08 in the next byte tells of an imaginary part.
    let numeric = flags.len() == 8 && (6..=15).contains(&flags[0]) && flags[1] & 0x08 == 0;
    if !numeric {
        return Ok(());
    }
    let dims = small(reader, INT32)?;
    let (dims, _) = dims.as_chunks::<4>();
    let dims = dims.iter().map(|&dim| usize::try_from(i32::from_le_bytes(dim)).ok()).collect::<Option<Vec<_>>>();
    let dims = dims.ok_or_else(|| "has an array with a negative size".to_owned())?;
    let name = String::from_utf8_lossy(&small(reader, INT8)?).into_owned();
    let tag = Tag::read(reader)?;
    let mut inline = &tag.inline[..tag.inline.len().min(tag.length as usize)];
    let values: &mut dyn Read = if tag.small { &mut inline } else { reader };
    each(Matrix { name, dims, kind: tag.kind, values: values.take(tag.length.into()) })
}

impl Matrix<'_> {
    /// Number of values.
    pub fn len(&self) -> Option<usize> {
        self.dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim))
    }

    /// Returns whether the values are bytes 0..=255, one each.
    pub fn is_bytes(&self) -> bool {
        self.kind == UINT8 && self.len().map(|len| len as u64) == Some(self.values.limit())
    }

    /// The next bytes of an array of bytes.
    pub fn bytes(&mut self, into: &mut [u8]) -> Result<(), String> {
        self.values.read_exact(into).map_err(said)
    }

    /// All values, as whole numbers.
    pub fn integers(mut self) -> Result<Vec<i64>, String> {
        let mut bytes = Vec::new();
        self.values.read_to_end(&mut bytes).map_err(said)?;
        let values: Vec<i64> = match self.kind {
            INT8 => bytes.iter().map(|&b| b.cast_signed().into()).collect(),
            UINT8 => bytes.iter().map(|&b| b.into()).collect(),
            3 => bytes.as_chunks().0.iter().map(|&b| i16::from_le_bytes(b).into()).collect(),
            4 => bytes.as_chunks().0.iter().map(|&b| u16::from_le_bytes(b).into()).collect(),
            INT32 => bytes.as_chunks().0.iter().map(|&b| i32::from_le_bytes(b).into()).collect(),
            UINT32 => bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b).into()).collect(),
            DOUBLE => {
                let whole = |&b: &[u8; 8]| {
                    let value = f64::from_le_bytes(b);
                    (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as i64)
                };
                let values = bytes.as_chunks().0.iter().map(whole).collect::<Option<Vec<_>>>();
                values.ok_or_else(|| format!("array {}: values that are no whole numbers", self.name))?
            }
            kind => return Err(format!("array {}: data of type {kind}, which is not read", self.name)),
        };
        match self.len() {
            Some(len) if len == values.len() => Ok(values),
            _ => Err(format!("array {}: {} values for sizes {:?}", self.name, values.len(), self.dims)),
        }
    }
}

/// What stands before data. Up to four bytes of data stand within.
struct Tag {
    kind: u32,
    length: u32,
    small: bool,
    inline: [u8; 4],
}

impl Tag {
    fn read(reader: &mut dyn Read) -> Result<Self, String> {
        let mut bytes = [0; 8];
        reader.read_exact(&mut bytes).map_err(said)?;
        let [kind, length] = words(&bytes).ok_or("is cut short")?;
        let small = kind >> 16 != 0;
        let length = if small { kind >> 16 } else { length };
        if small && length > 4 {
            return Err("has a damaged element".into());
        }
        let inline = [bytes[4], bytes[5], bytes[6], bytes[7]];
        Ok(Self { kind: kind & 0xffff, length, small, inline })
    }
}

/// The data of a short element of this type, and what pads it to eight bytes.
fn small(reader: &mut dyn Read, kind: u32) -> Result<Vec<u8>, String> {
    let tag = Tag::read(reader)?;
    let length = u64::from(tag.length);
    if tag.kind != kind || length > MAX_SMALL {
        return Err("has an array that is described wrongly".into());
    }
    if tag.small {
        return Ok(tag.inline[..length as usize].to_vec());
    }
    let padded = length.next_multiple_of(8);
    let mut bytes = vec![0; padded as usize];
    reader.read_exact(&mut bytes).map_err(said)?;
    bytes.truncate(length as usize);
    Ok(bytes)
}

fn words(bytes: &[u8]) -> Option<[u32; 2]> {
    let (words, rest) = bytes.as_chunks::<4>();
    let [first, second] = words else { return None };
    rest.is_empty().then_some([u32::from_le_bytes(*first), u32::from_le_bytes(*second)])
}

fn said(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "is cut short".into(),
        _ => format!("is damaged: {error}"),
    }
}
