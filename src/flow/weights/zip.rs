//! The directory of a zip file, as far as PyTorch's checkpoints need it: where each entry lies,
//! without reading it.
//!
//! PyTorch writes entries as they are, uncompressed, so an array can be read from the middle of the
//! file. Layout: PKWARE's APPNOTE, 4.3.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use super::array::Place;
use crate::data::{CUT_SHORT, said};

/// Bytes of the record at the very end, without its comment, and of the longest comment.
const END: usize = 22;
const MAX_COMMENT: u64 = 0xffff;
/// Bytes of the record that tells where the 64-bit one lies, right before the end.
const LOCATOR: usize = 20;
/// Bytes of an entry of the directory, without name and extras.
const ENTRY: usize = 46;
/// Bytes of what stands before an entry's data, without name and extras.
const LOCAL: usize = 30;
/// Bytes of a directory: ten thousand arrays take one million.
const MAX_DIRECTORY: u64 = 64 << 20;

/// An entry as the directory describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// 0: as it is; 8: deflated.
    method: u16,
    encrypted: bool,
    checksum: u32,
    compressed: u64,
    bytes: u64,
    /// Where its local header starts.
    header: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

/// Reads `count` bytes from `offset` on.
fn read_at(file: &mut File, offset: u64, count: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(count).read_to_end(&mut bytes));
    match read {
        Ok(read) if read as u64 == count => Ok(bytes),
        Ok(_) => Err(CUT_SHORT.into()),
        Err(e) => Err(said(&e)),
    }
}

/// The entries by name.
///
/// # Errors
/// A sentence when the file is cut short or its directory damaged.
pub(super) fn directory(file: &mut File) -> Result<BTreeMap<String, Entry>, String> {
    let length = file.metadata().map_err(|e| said(&e))?.len();
    let (offset, size) = find(file, length)?;
    if size > MAX_DIRECTORY || offset.checked_add(size).is_none_or(|end| end > length) {
        return Err("its zip directory lies outside the file: it is damaged or was cut short".into());
    }
    let bytes = read_at(file, offset, size)?;
    let mut rest = bytes.as_slice();
    let mut entries = BTreeMap::new();
    while !rest.is_empty() {
        let (name, entry, after) = entry(rest).ok_or("its zip directory is damaged")?;
        if entries.insert(name.clone(), entry).is_some() {
            return Err(format!("holds two entries named '{name}'"));
        }
        rest = after;
    }
    Ok(entries)
}

/// Offset and size of the directory.
fn find(file: &mut File, length: u64) -> Result<(u64, u64), String> {
    let tail_at = length.saturating_sub(MAX_COMMENT + (LOCATOR + END) as u64);
    let tail = read_at(file, tail_at, length - tail_at)?;
    // The comment may hold anything, but reaches to the end of the file exactly.
    let is_end = |at: usize| {
        tail[at..].starts_with(b"PK\x05\x06")
            && u16_at(&tail, at + 20).is_some_and(|n| at + END + n as usize == tail.len())
    };
    let end = (0..(tail.len() + 1).saturating_sub(END)).rfind(|&at| is_end(at));
    let end = end.ok_or("is a zip file without its end: it was cut short")?;
    let (size, offset) = u32_at(&tail, end + 12).zip(u32_at(&tail, end + 16)).ok_or(CUT_SHORT)?;
    // All ones where only the 64-bit record knows; otherwise that record, which PyTorch always
    // writes, repeats this.
    if size != u32::MAX && offset != u32::MAX {
        return Ok((offset.into(), size.into()));
    }
    let locator = end.checked_sub(LOCATOR).map(|at| &tail[at..end]).filter(|l| l.starts_with(b"PK\x06\x07"));
    let record = locator.and_then(|locator| u64_at(locator, 8)).ok_or("its zip directory is damaged")?;
    let record = read_at(file, record, 56)?;
    if !record.starts_with(b"PK\x06\x06") {
        return Err("its zip directory is damaged".into());
    }
    u64_at(&record, 48).zip(u64_at(&record, 40)).ok_or_else(|| CUT_SHORT.into())
}

/// The first entry of a directory: its name, what it says, and the entries after it.
fn entry(bytes: &[u8]) -> Option<(String, Entry, &[u8])> {
    if !bytes.starts_with(b"PK\x01\x02") {
        return None;
    }
    let length = |at| u16_at(bytes, at).map(usize::from);
    let (name, extra, comment) = (length(28)?, length(30)?, length(32)?);
    let rest = bytes.get(ENTRY..)?;
    let (name, rest) = rest.split_at_checked(name)?;
    let (extra, rest) = rest.split_at_checked(extra)?;
    let rest = rest.get(comment..)?;
    // Numbers that do not fit stand in the extras, in this order.
    let mut wide = zip64(extra).unwrap_or_default();
    let mut size = |at| match u32_at(bytes, at)? {
        u32::MAX => {
            let (value, after) = wide.split_first_chunk()?;
            wide = after;
            Some(u64::from_le_bytes(*value))
        }
        value => Some(value.into()),
    };
    let (unpacked, compressed, header) = (size(24)?, size(20)?, size(42)?);
    let entry = Entry {
        method: u16_at(bytes, 10)?,
        encrypted: u16_at(bytes, 8)? & 1 == 1,
        checksum: u32_at(bytes, 16)?,
        compressed,
        bytes: unpacked,
        header,
    };
    Some((String::from_utf8_lossy(name).into_owned(), entry, rest))
}

/// The extra field of 64-bit numbers.
fn zip64(mut extra: &[u8]) -> Option<&[u8]> {
    loop {
        let (kind, length) = (u16_at(extra, 0)?, u16_at(extra, 2)?);
        let (field, rest) = extra.get(4..)?.split_at_checked(length.into())?;
        if kind == 1 {
            return Some(field);
        }
        extra = rest;
    }
}

impl Entry {
    /// Where the data lie.
    ///
    /// # Errors
    /// A sentence when they reach beyond the file, or are packed in a way that is not read.
    pub fn place(&self, file: &mut File) -> Result<Place, String> {
        let length = file.metadata().map_err(|e| said(&e))?.len();
        let local = read_at(file, self.header, LOCAL as u64)?;
        let extras = u16_at(&local, 26).zip(u16_at(&local, 28)).filter(|_| local.starts_with(b"PK\x03\x04"));
        let (name, extra) = extras.ok_or("its zip directory is damaged")?;
        let offset = self.header + LOCAL as u64 + u64::from(name) + u64::from(extra);
        if offset.checked_add(self.compressed).is_none_or(|end| end > length) {
            return Err(CUT_SHORT.into());
        }
        let deflated = match (self.method, self.encrypted) {
            (0, false) if self.compressed == self.bytes => None,
            // Deflate packs 1032 bytes into one at best: more is a lie about what unpacking needs.
            (8, false) if self.bytes / 1040 <= self.compressed => Some(self.compressed),
            (0 | 8, false) => return Err("its zip directory is damaged".into()),
            _ => return Err("is encrypted or packed in a way that PyTorch does not use".into()),
        };
        // PyTorch writes 0 where it was told not to compute one.
        let checksum = Some(self.checksum).filter(|&sum| sum != 0);
        Ok(Place { offset, bytes: self.bytes, deflated, checksum })
    }
}
