//! What `torch.save` has written over the years: which container a file is, and where its arrays
//! lie.
//!
//! * zip (1.6 and later): `NAME/data.pkl` is the pickle, `NAME/data/KEY` a storage each.
//! * legacy (0.1.10 to 1.5): pickles of a magic number, the version, the machine, the object and
//!   the storages' keys; then each storage, after its length.
//! * tar (before 0.1.10): [`super::tar`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::array::{Array, Place};
use super::pickle::{Outside, Pickle, Storage, Tensor};
use super::{tar, zip};
use crate::data::pickle::Source;
use crate::data::{CUT_SHORT, said};

/// The magic number 0x1950a86a20f9469cfc6c as protocols from 2 on write it, and as 0 and 1 do.
const MAGIC: &[u8] = b"\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
const MAGIC_TEXT: &[u8] = b"119547037146038801333356";
/// The magic number stands this early.
const HEAD: u64 = 512;
/// Bytes of the pickle of a zip file.
const MAX_PICKLE: u64 = 64 << 20;

/// The floating-point arrays by dotted name.
///
/// # Errors
/// A sentence: not a checkpoint, cut short, damaged, or the code that it wants to run.
pub(super) fn open(file: &mut File) -> Result<BTreeMap<String, Array>, String> {
    let mut head = Vec::new();
    let read = file.rewind().and_then(|()| file.take(HEAD).read_to_end(&mut head)).and_then(|_| file.rewind());
    read.map_err(|e| said(&e))?;
    let early = &head[..head.len().min(64)];
    let early_has = |magic: &[u8]| early.windows(magic.len()).any(|window| window == magic);
    if head.starts_with(b"PK\x03\x04") {
        open_zip(file)
    } else if head.get(257..262) == Some(b"ustar") {
        tar::open(file)
    } else if early_has(MAGIC) || early_has(MAGIC_TEXT) {
        open_legacy(file)
    } else {
        open_other(file, &head)
    }
}

/// A pickle alone holds no arrays, but may want to run code, which is then what is said of it.
fn open_other(file: &mut File, head: &[u8]) -> Result<BTreeMap<String, Array>, String> {
    const NEITHER: &str =
        "is neither a PyTorch checkpoint (zip, legacy or tar) nor a safetensors file, or was cut short";
    // The first instruction of most pickles: protocol, mark, name, dictionary, list.
    if !matches!(head.first(), Some(0x80 | b'(' | b'c' | b'}' | b']')) {
        return Err(NEITHER.into());
    }
    match Pickle::read(&mut BufReader::new(file), Outside::Nothing) {
        Ok(_) => Err("is a pickle without arrays".into()),
        Err(cause) if cause.contains("run code") => Err(cause),
        Err(_) => Err(NEITHER.into()),
    }
}

/// Every array of floating-point numbers, at the place of its storage.
pub(super) fn placed(
    tensors: BTreeMap<String, &Tensor>,
    mut place: impl FnMut(&str) -> Result<Place, String>,
) -> Result<BTreeMap<String, Array>, String> {
    let floats = tensors.into_iter().filter(|(_, tensor)| tensor.view.number.is_float());
    let placed = floats.map(|(name, tensor)| {
        let array = place(&tensor.storage).and_then(|place| Array::new(tensor.view.clone(), place));
        array.map(|array| (name.clone(), array)).map_err(|cause| format!("array '{name}': {cause}"))
    });
    placed.collect()
}

fn open_zip(file: &mut File) -> Result<BTreeMap<String, Array>, String> {
    let entries = zip::directory(file)?;
    let roots = entries.keys().filter_map(|name| name.strip_suffix("data.pkl"));
    let root = roots.filter(|root| root.is_empty() || root.ends_with('/')).min_by_key(|root| root.len());
    let root = root.ok_or("is a zip file without data.pkl: not a PyTorch checkpoint")?;
    let read = |file: &mut File, name: &str, limit: u64| -> Result<Option<Vec<u8>>, String> {
        let Some(entry) = entries.get(&format!("{root}{name}")) else { return Ok(None) };
        let read = entry.place(file).and_then(|place| place.read(file, limit));
        read.map(Some).map_err(|cause| format!("entry '{root}{name}': {cause}"))
    };
    if read(file, "byteorder", 64)?.is_some_and(|order| !order.starts_with(b"little")) {
        return Err(BIG_ENDIAN.into());
    }
    let pickle = read(file, "data.pkl", MAX_PICKLE)?.unwrap_or_default();
    let pickle = Pickle::read(&mut pickle.as_slice(), Outside::Storages)?;
    placed(pickle.tensors()?, |key| {
        let entry = entries.get(&format!("{root}data/{key}")).ok_or("its storage is missing")?;
        entry.place(file)
    })
}

const BIG_ENDIAN: &str = "was written on a big-endian machine, which is not read: save it again on another";

/// Whether the pickle that describes the machine says little-endian.
pub(super) fn check_machine(info: &Pickle) -> Result<(), String> {
    if info.entry("little_endian") == Some(1) { Ok(()) } else { Err(BIG_ENDIAN.into()) }
}

fn open_legacy(file: &mut File) -> Result<BTreeMap<String, Array>, String> {
    let length = file.metadata().map_err(|e| said(&e))?.len();
    let mut reader = BufReader::new(&mut *file);
    let next = |reader: &mut dyn Source, outside| Pickle::read(reader, outside);
    next(&mut reader, Outside::Nothing)?;
    let version = next(&mut reader, Outside::Nothing)?.int();
    if version != Some(1001) {
        return Err(format!("is a PyTorch checkpoint of unknown version {version:?}"));
    }
    check_machine(&next(&mut reader, Outside::Nothing)?)?;
    let object = next(&mut reader, Outside::Storages)?;
    let keys = next(&mut reader, Outside::Nothing)?.keys().ok_or("its list of storages is damaged")?;
    let mut offset = reader.stream_position().map_err(|e| said(&e))?;
    drop(reader);
    let storages: BTreeMap<&str, &Storage> = object.storages().map(|s| (s.key.as_str(), s)).collect();
    let mut places = BTreeMap::new();
    for key in keys {
        let storage = storages.get(key.as_str()).ok_or("its list of storages is damaged")?;
        let mut count = [0; 8];
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut count));
        read.map_err(|e| said(&e))?;
        let number = storage.number.map_or(1, |number| number.bytes());
        if u64::from_le_bytes(count).checked_mul(number) != Some(storage.bytes) {
            return Err(format!("storage '{key}' does not have the length that the pickle says"));
        }
        let place = Place::plain(offset + 8, storage.bytes);
        offset = place.offset.checked_add(place.bytes).filter(|&end| end <= length).ok_or(CUT_SHORT)?;
        places.insert(key, place);
    }
    placed(object.tensors()?, |key| places.get(key).copied().ok_or_else(|| "its storage is missing".into()))
}
