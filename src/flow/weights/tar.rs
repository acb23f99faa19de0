//! Checkpoints of PyTorch before 0.1.10 (2017): a tar archive of `sys_info`, `storages`, `tensors`
//! and `pickle`.
//!
//! `storages` is a count, then per storage a pickle (key, device, class), its length and its bytes,
//! then a list of parts of storages; `tensors` a count, then per array a pickle (key, key of the
//! storage, class), its rank, shape, strides and start.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::array::{Array, Number, Place, View};
use super::pickle::{Outside, Pickle, Tensor};
use super::pytorch::{check_machine, placed};
use crate::data::pickle::Source;
use crate::data::{CUT_SHORT, said};

const BLOCK: u64 = 512;
const DAMAGED: &str = "its tar archive is damaged";
/// Axes of an array.
const MAX_RANK: usize = 64;

/// The floating-point arrays by dotted name.
///
/// # Errors
/// As [`super::pytorch::open`].
pub(super) fn open(file: &mut File) -> Result<BTreeMap<String, Array>, String> {
    let entries = entries(file)?;
    let mut reader = BufReader::new(file);
    let seek = |reader: &mut BufReader<&mut File>, name: &str| {
        let &offset = entries.get(name).ok_or_else(|| format!("is a tar archive without '{name}'"))?;
        reader.seek(SeekFrom::Start(offset)).map(drop).map_err(|e| said(&e))
    };
    seek(&mut reader, "sys_info")?;
    check_machine(&Pickle::read(&mut reader, Outside::Nothing)?)?;
    seek(&mut reader, "storages")?;
    let storages = storages(&mut reader)?;
    seek(&mut reader, "tensors")?;
    let tensors = tensors(&mut reader, &storages)?;
    seek(&mut reader, "pickle")?;
    let object = Pickle::read(&mut reader, Outside::Tensors(&tensors))?;
    placed(object.tensors()?, |key| storages.get(key).map(|(_, place)| *place).ok_or_else(|| DAMAGED.into()))
}

/// Where the data of each entry start.
fn entries(file: &mut File) -> Result<BTreeMap<String, u64>, String> {
    let length = file.metadata().map_err(|e| said(&e))?.len();
    let mut entries = BTreeMap::new();
    let mut offset = 0;
    while offset + BLOCK <= length {
        let mut header = [0; BLOCK as usize];
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut header));
        read.map_err(|e| said(&e))?;
        if header[0] == 0 {
            break;
        }
        let text = |range: std::ops::Range<usize>| {
            let bytes = header[range].split(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(bytes).trim().to_owned()
        };
        let size = u64::from_str_radix(&text(124..136), 8).map_err(|_| DAMAGED)?;
        offset += BLOCK;
        entries.insert(text(0..100).trim_start_matches("./").to_owned(), offset);
        offset = size.checked_next_multiple_of(BLOCK).and_then(|size| offset.checked_add(size)).ok_or(DAMAGED)?;
    }
    if offset > length { Err(CUT_SHORT.into()) } else { Ok(entries) }
}

/// The whole number that comes next as a pickle.
fn count(reader: &mut dyn Source) -> Result<i64, String> {
    Pickle::read(reader, Outside::Nothing)?.int().ok_or_else(|| DAMAGED.into())
}

/// The whole number that comes next as eight bytes.
fn size(reader: &mut dyn Source) -> Result<u64, String> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes).map_err(|e| said(&e))?;
    Ok(u64::from_le_bytes(bytes))
}

type Storages = BTreeMap<String, (Number, Place)>;

fn storages(reader: &mut BufReader<&mut File>) -> Result<Storages, String> {
    let length = reader.get_ref().metadata().map_err(|e| said(&e))?.len();
    let mut storages = Storages::new();
    for _ in 0..count(reader)? {
        let fields = Pickle::read(reader, Outside::Nothing)?.fields();
        let [(Some(key), _), _, (_, Some(number))] = fields.as_slice() else { return Err(DAMAGED.into()) };
        let bytes = size(reader)?.checked_mul(number.bytes()).ok_or(DAMAGED)?;
        let offset = reader.stream_position().map_err(|e| said(&e))?;
        let end = offset.checked_add(bytes).filter(|&end| end <= length).ok_or(CUT_SHORT)?;
        reader.seek(SeekFrom::Start(end)).map_err(|e| said(&e))?;
        storages.insert(key.clone(), (*number, Place::plain(offset, bytes)));
    }
    // Parts were written for arrays that share a storage across processes; no model file has them.
    match Pickle::read(reader, Outside::Nothing)?.keys() {
        Some(parts) if parts.is_empty() => Ok(storages),
        _ => Err("has parts of storages, which are not read: save it again with a PyTorch of this decade".into()),
    }
}

fn tensors(reader: &mut BufReader<&mut File>, storages: &Storages) -> Result<BTreeMap<String, Tensor>, String> {
    let mut tensors = BTreeMap::new();
    for _ in 0..count(reader)? {
        let fields = Pickle::read(reader, Outside::Nothing)?.fields();
        let [(Some(key), _), (Some(storage), _), _] = fields.as_slice() else { return Err(DAMAGED.into()) };
        // The rank was once eight bytes: the upper four are padding.
        let rank = (size(reader)? & 0xffff_ffff) as usize;
        if rank > MAX_RANK {
            return Err(DAMAGED.into());
        }
        let mut sizes = || -> Result<Vec<usize>, String> {
            (0..rank).map(|_| size(reader)?.try_into().map_err(|_| DAMAGED.into())).collect()
        };
        let (shape, strides) = (sizes()?, sizes()?);
        let start = size(reader)?;
        let (number, _) = storages.get(storage).ok_or(DAMAGED)?;
        let view = View { number: *number, shape, strides, start };
        tensors.insert(key.clone(), Tensor { view, storage: storage.clone() });
    }
    Ok(tensors)
}
