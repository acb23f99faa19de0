//! Safetensors files: a length, a header of that length in JSON, and the arrays one after another.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};

use safetensors::tensor::{Dtype, Metadata};

use super::array::{Array, Number, Place, View};
use crate::data::{CUT_SHORT, said};

/// Bytes of the header, as the format has it.
const MAX_HEADER: u64 = 100_000_000;

/// Most bytes of a header that is read. It takes some twelve times as much memory; the largest networks have some thousand
/// arrays, whose header is a megabyte.
pub(super) const LONGEST: u64 = 8 << 20;

/// How numbers of this type are written; `None` where they are no weights.
pub(super) fn number(dtype: Dtype) -> Option<Number> {
    match dtype {
        Dtype::F64 => Some(Number::F64),
        Dtype::F32 => Some(Number::F32),
        Dtype::F16 => Some(Number::F16),
        Dtype::BF16 => Some(Number::Bf16),
        _ => None,
    }
}

/// Whether a file starts like this format: a length, and the brace that opens the header.
pub(super) fn is(head: &[u8]) -> bool {
    let length = head.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    length.is_some_and(|length| length <= MAX_HEADER) && head.get(8) == Some(&b'{')
}

/// Arrays by name, and texts of the header by key.
type Opened = (BTreeMap<String, Array>, BTreeMap<String, String>);

/// The floating-point arrays by name, and the texts of the header by key. Reads the header only.
///
/// # Errors
/// A sentence: cut short, or what is wrong with the header.
pub(super) fn open(file: &mut File) -> Result<Opened, String> {
    let file_length = file.metadata().map_err(|e| said(&e))?.len();
    let mut length = [0; 8];
    file.rewind().and_then(|()| file.read_exact(&mut length)).map_err(|e| said(&e))?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return Err(format!("its header has {length} bytes, and may have {LONGEST}: so many arrays no network has"));
    }
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header).map_err(|e| said(&e))?;
    if header.len() as u64 != length {
        return Err(CUT_SHORT.into());
    }
    let broken = |cause: &dyn std::fmt::Display| format!("not a safetensors file, or damaged: {cause}");
    // Checks that the arrays fit their shapes and lie one after another.
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|e| broken(&e))?;
    let data = 8 + length;
    match data.checked_add(metadata.data_len() as u64) {
        Some(end) if end == file_length => {}
        Some(end) if end < file_length => return Err(broken(&"the file is longer than its header says")),
        _ => return Err(CUT_SHORT.into()),
    }
    let mut arrays = BTreeMap::new();
    for (name, info) in metadata.tensors() {
        let Some(number) = number(info.dtype) else { continue };
        let (start, end) = info.data_offsets;
        let view = View::row_major(number, info.shape.clone()).ok_or_else(|| broken(&"a shape overflows"))?;
        let array = Array::new(view, Place::plain(data + start as u64, (end - start) as u64));
        arrays.insert(name, array.map_err(|e| broken(&e))?);
    }
    let texts = metadata.metadata().iter().flatten().map(|(key, text)| (key.clone(), text.clone())).collect();
    Ok((arrays, texts))
}
