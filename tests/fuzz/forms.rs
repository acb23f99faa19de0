//! Files whose inside is changed, and whose lengths and checksums are then right again: what a damaged disk seldom does, and what a
//! program that wrote nonsense does.

use std::io::{Cursor, Read, Write};

use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use crate::mutate::{Rng, bytes, text};

/// How a file is taken apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Bytes,
    Text,
    /// Members of an archive.
    Zip,
    Gzip,
    /// A text before the data: its length in 8 bytes (safetensors).
    Headed,
    /// A text before the data, with the magic of NumPy.
    Npy,
    /// Fields of a protobuf message (ONNX).
    Message,
    /// Chunks with checksums.
    Png,
}

impl Form {
    /// A mutation of `seed`, of which `other` is another one.
    pub fn mutated(self, rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
        if self != Self::Text && rng.random_ratio(1, 4) {
            return bytes(rng, seed, other);
        }
        match self {
            Self::Bytes => bytes(rng, seed, other),
            Self::Text => text(rng, seed, other),
            Self::Zip => zip(rng, seed, other),
            Self::Gzip => gzip(&bytes(rng, &gunzip(seed), &gunzip(other))),
            Self::Headed => headed(rng, seed, other),
            Self::Npy => npy(rng, seed, other),
            Self::Message => message(rng, seed, 0),
            Self::Png => png(rng, seed),
        }
    }

    /// What a member of an archive is.
    fn of(member: &[u8]) -> Self {
        if member.starts_with(b"\x93NUMPY") { Self::Npy } else { Self::Bytes }
    }
}

pub fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(plain).unwrap();
    out.finish().unwrap()
}

fn gunzip(zipped: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(zipped).read_to_end(&mut plain).map_or_else(|_| zipped.to_vec(), |_| plain)
}

type Members = Vec<(String, Vec<u8>)>;

fn members(zip: &[u8]) -> Members {
    let mut archive = ZipArchive::new(Cursor::new(zip)).unwrap();
    (0..archive.len())
        .map(|at| {
            let mut member = archive.by_index(at).unwrap();
            let mut content = Vec::new();
            member.read_to_end(&mut content).unwrap();
            (member.name().unwrap().into_owned(), content)
        })
        .collect()
}

pub fn packed(members: &[(String, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        let options = SimpleFileOptions::default().compression_method(method);
        // A name twice, or one of no text, is not written.
        if zip.start_file(name.as_str(), options).is_ok() {
            zip.write_all(content).unwrap();
        }
    }
    zip.finish().unwrap().into_inner()
}

fn zip(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let (mut all, theirs) = (members(seed), members(other));
    let at = rng.random_range(0..all.len());
    match rng.random_range(0..10) {
        0 => drop(all.remove(at)),
        1 => all.push(theirs.choose(rng).unwrap().clone()),
        2 => {
            let to = rng.random_range(0..all.len());
            let content = all[to].1.clone();
            all[at].1 = content;
        }
        3 => all[at].1 = theirs.choose(rng).unwrap().1.clone(),
        _ => {
            let content = &all[at].1;
            let like = theirs.get(at).map_or(&content[..], |(_, content)| content);
            all[at].1 = Form::of(content).mutated(rng, content, like);
        }
    }
    let method = if rng.random() { CompressionMethod::Stored } else { CompressionMethod::Deflated };
    packed(&all, method)
}

fn headed(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let split = |file: &[u8]| {
        let length = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
        (file[8..8 + length].to_vec(), file[8 + length..].to_vec())
    };
    let ((mut header, mut data), (their_header, their_data)) = (split(seed), split(other));
    match rng.random_range(0..4) {
        0 => data = bytes(rng, &data, &their_data),
        _ => header = text(rng, &header, &their_header),
    }
    [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()
}

fn npy(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let split = |file: &[u8]| {
        let length = usize::from(u16::from_le_bytes([file[8], file[9]]));
        (file[10..10 + length].to_vec(), file[10 + length..].to_vec())
    };
    if seed.get(6) != Some(&1) || other.get(6) != Some(&1) {
        return bytes(rng, seed, other);
    }
    let ((mut header, mut data), (their_header, their_data)) = (split(seed), split(other));
    match rng.random_range(0..4) {
        0 | 1 => data = bytes(rng, &data, &their_data),
        _ => header = text(rng, &header, &their_header),
    }
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], &header, &data].concat()
}

/// A field of a message: its tag, and its content without a length.
struct Field {
    tag: u64,
    content: Vec<u8>,
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn fields(mut rest: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        let length = match tag & 7 {
            0 => {
                let value = take_varint(&mut rest)?;
                fields.push(Field { tag, content: varint(value) });
                continue;
            }
            1 => 8,
            2 => usize::try_from(take_varint(&mut rest)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (content, after) = rest.split_at_checked(length)?;
        fields.push(Field { tag, content: content.to_vec() });
        rest = after;
    }
    Some(fields)
}

fn joined(fields: &[Field]) -> Vec<u8> {
    let one = |field: &Field| {
        let length = if field.tag & 7 == 2 { varint(field.content.len() as u64) } else { Vec::new() };
        [varint(field.tag), length, field.content.clone()].concat()
    };
    fields.iter().flat_map(one).collect()
}

/// A field changed, at whatever depth, the lengths around it made right.
fn message(rng: &mut Rng, seed: &[u8], depth: usize) -> Vec<u8> {
    let Some(mut all) = fields(seed).filter(|all| !all.is_empty()) else { return bytes(rng, seed, &[]) };
    let at = rng.random_range(0..all.len());
    let inner: Vec<usize> = (0..all.len()).filter(|&i| all[i].tag & 7 == 2 && !all[i].content.is_empty()).collect();
    if depth < 8
        && rng.random_ratio(7, 10)
        && let Some(&at) = inner.choose(rng)
    {
        all[at].content = message(rng, &all[at].content, depth + 1);
        return joined(&all);
    }
    match rng.random_range(0..7) {
        0 => drop(all.remove(at)),
        1 => {
            let Field { tag, content } = &all[at];
            let double = Field { tag: *tag, content: content.clone() };
            all.insert(at, double);
        }
        2 => all.shuffle(rng),
        3 => all[at].tag = all[at].tag & 7 | rng.random_range(1..40) << 3,
        _ => {
            let Field { tag, content } = &mut all[at];
            *content = match *tag & 7 {
                0 => varint(match rng.random_range(0..3) {
                    0 => rng.random_range(0..32),
                    1 => rng.random(),
                    _ => *[0, u64::MAX, 1 << 31, 1 << 40, i64::MAX as u64, 1 << 16].choose(rng).unwrap(),
                }),
                2 => bytes(rng, content, &[]),
                _ => content.iter().map(|_| rng.random()).collect(),
            };
        }
    }
    joined(&all)
}

/// A chunk changed, its checksum made right.
fn png(rng: &mut Rng, seed: &[u8]) -> Vec<u8> {
    let (signature, mut rest) = seed.split_at(8);
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    while let Some(length) = rest.first_chunk().map(|b| u32::from_be_bytes(*b) as usize) {
        chunks.push(rest[4..8 + length].to_vec());
        rest = &rest[12 + length..];
    }
    let at = rng.random_range(0..chunks.len());
    match rng.random_range(0..6) {
        0 => drop(chunks.remove(at)),
        1 => chunks.insert(at, chunks[at].clone()),
        _ => chunks[at] = [&chunks[at][..4], &bytes(rng, &chunks[at][4..], &[])].concat(),
    }
    let whole = |chunk: &Vec<u8>| {
        let mut crc = flate2::Crc::new();
        crc.update(chunk);
        [&(chunk.len() as u32 - 4).to_be_bytes()[..], chunk, &crc.sum().to_be_bytes()].concat()
    };
    [signature, &chunks.iter().flat_map(whole).collect::<Vec<u8>>()].concat()
}
