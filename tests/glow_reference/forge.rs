//! Checkpoints made by hand: what PyTorch writes, what it never would, and files larger than the disk.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes of an entry or storage.
#[derive(Clone)]
pub enum Content {
    Bytes(Vec<u8>),
    /// So many zeros that take no disk.
    Hole(u64),
}

impl Content {
    pub fn floats(values: &[f32]) -> Self {
        Self::Bytes(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Hole(bytes) => *bytes,
        }
    }

    fn write(&self, file: &mut File) {
        match self {
            Self::Bytes(bytes) => file.write_all(bytes).unwrap(),
            Self::Hole(bytes) => drop(file.seek(SeekFrom::Current(*bytes as i64)).unwrap()),
        }
    }

    fn checksum(&self) -> u32 {
        let mut crc = flate2::Crc::new();
        if let Self::Bytes(bytes) = self {
            crc.update(bytes);
        }
        crc.sum()
    }
}

/// A pickle of one object (protocol 2).
pub fn pickle(object: &[u8]) -> Vec<u8> {
    [b"\x80\x02", object, b"."].concat()
}

pub fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

pub fn int(value: usize) -> Vec<u8> {
    [b"J", &(value as u32).to_le_bytes()[..]].concat()
}

pub fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(", &items.concat()[..], b"t"].concat()
}

pub fn dict(pairs: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let items: Vec<u8> = pairs.iter().flat_map(|(name, value)| [text(name), value.clone()].concat()).collect();
    [b"}(", &items[..], b"u"].concat()
}

/// The reference to a storage; `class` and `location` are objects.
pub fn storage(class: &[u8], key: &str, location: &[u8], length: usize) -> Vec<u8> {
    let id = [text("storage"), class.to_vec(), text(key), location.to_vec(), int(length)];
    [&tuple(&id)[..], b"Q"].concat()
}

/// An array of the storage `key` with `length` numbers of a class such as `Float`.
pub fn tensor(class: &str, key: &str, length: usize, start: usize, shape: &[usize], strides: &[usize]) -> Vec<u8> {
    let class = format!("ctorch\n{class}Storage\n").into_bytes();
    let sizes = |sizes: &[usize]| tuple(&sizes.iter().map(|&n| int(n)).collect::<Vec<_>>());
    let hooks = b"ccollections\nOrderedDict\n)R".to_vec();
    let storage = storage(&class, key, &text("cuda:0"), length);
    let args = tuple(&[storage, int(start), sizes(shape), sizes(strides), b"\x89".to_vec(), hooks]);
    [b"ctorch._utils\n_rebuild_tensor_v2\n", &args[..], b"R"].concat()
}

/// A zip file as PyTorch writes it, with the 64-bit record at its end and 64-bit extras where they are needed.
pub fn zip(path: &Path, entries: &[(String, Content)], deflate: bool) {
    let mut file = File::create(path).unwrap();
    let mut directory = Vec::new();
    for (name, content) in entries {
        let at = file.stream_position().unwrap();
        let (method, stored) = match content {
            Content::Bytes(bytes) if deflate => {
                let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
                packed.write_all(bytes).unwrap();
                (8_u16, Content::Bytes(packed.finish().unwrap()))
            }
            _ => (0, content.clone()),
        };
        let (crc, size) = (content.checksum(), content.len());
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
        let names = [(name.len() as u16).to_le_bytes(), 4_u16.to_le_bytes()].concat();
        let head = [&0_u16.to_le_bytes()[..], &method.to_le_bytes(), &[0; 4], &crc.to_le_bytes()].concat();
        let sizes = [small(stored.len()), small(size)].concat();
        file.write_all(&[b"PK\x03\x04\x14\0", &head[..], &sizes, &names, name.as_bytes(), b"FB\0\0"].concat()).unwrap();
        stored.write(&mut file);
        let wide: Vec<u8> = [size, stored.len(), at]
            .iter()
            .filter(|&&n| n >= u64::from(u32::MAX))
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let extra = if wide.is_empty() { wide } else { [&[1, 0, wide.len() as u8, 0], &wide[..]].concat() };
        let names = [(name.len() as u16).to_le_bytes(), (extra.len() as u16).to_le_bytes()].concat();
        let rest = [&names[..], &[0; 10], &small(at), name.as_bytes(), &extra].concat();
        directory.extend([b"PK\x01\x02\0\0\x14\0", &head[..], &sizes, &rest].concat());
    }
    let at = file.stream_position().unwrap();
    let (count, size) = (entries.len() as u64, directory.len() as u64);
    let wide = [44, 0, 0, count, count, size, at];
    let mut record: Vec<u8> = wide.iter().flat_map(|n: &u64| n.to_le_bytes()).collect();
    // Versions and disk numbers: two of two bytes, then two of four.
    record.splice(8..20, [0; 12]);
    record.splice(20..24, []);
    let locator = [b"PK\x06\x07\0\0\0\0", &(at + size).to_le_bytes()[..], &1_u32.to_le_bytes()].concat();
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
    let counts = [(count as u16).to_le_bytes(), (count as u16).to_le_bytes()].concat();
    let end = [b"PK\x05\x06\0\0\0\0", &counts[..], &small(size), &small(at), &[0; 2]].concat();
    file.write_all(&[&directory[..], b"PK\x06\x06", &record, &locator, &end].concat()).unwrap();
}

/// A zip checkpoint of an object and its storages.
pub fn zip_checkpoint(path: &Path, root: &str, object: &[u8], storages: &[(&str, Content)], deflate: bool) {
    let mut entries = vec![
        (format!("{root}/data.pkl"), Content::Bytes(pickle(object))),
        (format!("{root}/byteorder"), Content::Bytes(b"little".to_vec())),
    ];
    entries.extend(storages.iter().map(|(key, content)| (format!("{root}/data/{key}"), content.clone())));
    entries.push((format!("{root}/version"), Content::Bytes(b"3\n".to_vec())));
    zip(path, &entries, deflate);
}

/// The description of a machine, with one more object in it.
pub fn machine(more: &[u8]) -> Vec<u8> {
    pickle(&dict(&[("little_endian", b"\x88".to_vec()), ("more", more.to_vec())]))
}

/// A legacy checkpoint: (key, bytes of a number, content) per storage.
pub fn legacy_checkpoint(path: &Path, machine: &[u8], object: &[u8], storages: &[(&str, u64, Content)]) {
    let mut file = File::create(path).unwrap();
    let keys: Vec<u8> = storages.iter().flat_map(|(key, ..)| text(key)).collect();
    let magic = pickle(b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19");
    let keys = pickle(&[b"](", &keys[..], b"e"].concat());
    file.write_all(&[&magic, &pickle(&int(1001)), machine, &pickle(object), &keys].concat()).unwrap();
    for (_, number, content) in storages {
        file.write_all(&(content.len() / number).to_le_bytes()).unwrap();
        content.write(&mut file);
    }
}

/// A tar checkpoint of one storage of floats and one array of all of it, which `object` names by the persistent id '7'.
pub fn tar_checkpoint(path: &Path, object: &[u8], values: &[f32]) {
    let class = |kind: &str| format!("ctorch\nFloat{kind}\n").into_bytes();
    let numbers = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let length = values.len() as u64;
    let Content::Bytes(data) = Content::floats(values) else { unreachable!() };
    let storage = pickle(&tuple(&[int(5), text("cpu"), class("Storage")]));
    let storages = [pickle(&int(1)), storage, numbers(&[length]), data, pickle(b"]")].concat();
    let array = pickle(&tuple(&[int(7), int(5), class("Tensor")]));
    let tensors = [pickle(&int(1)), array, numbers(&[1, length, 1, 0])].concat();
    let entries =
        [("sys_info", machine(b"N")), ("storages", storages), ("tensors", tensors), ("pickle", pickle(object))];
    let mut file = File::create(path).unwrap();
    for (name, content) in entries {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[257..262].copy_from_slice(b"ustar");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let padding = content.len().next_multiple_of(512) - content.len();
        file.write_all(&[&header[..], &content, &vec![0; padding]].concat()).unwrap();
    }
    file.write_all(&[0; 1024]).unwrap();
}

/// A safetensors file of (name, length, content) arrays of floats.
pub fn safetensors(path: &Path, arrays: &[(&str, Content)]) {
    let mut end = 0;
    let entry = |(name, content): &(&str, Content)| {
        let start = end;
        end += content.len();
        format!(r#""{name}":{{"dtype":"F32","shape":[{}],"data_offsets":[{start},{end}]}}"#, content.len() / 4)
    };
    let header = format!("{{{}}}", arrays.iter().map(entry).collect::<Vec<_>>().join(","));
    let mut file = File::create(path).unwrap();
    file.write_all(&[&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()).unwrap();
    for (_, content) in arrays {
        content.write(&mut file);
    }
    let end = file.stream_position().unwrap();
    file.set_len(end).unwrap();
}
