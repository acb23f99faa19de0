//! Opens a user's files: regular files only, gzip decompressed, memory bounded.

use std::fs::File;
use std::io::{self, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The message for a file that ends too early.
pub(crate) const CUT_SHORT: &str = "the file ends too early: it was cut short";

/// The words for a system error while reading.
pub(crate) fn said(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof { CUT_SHORT.into() } else { error.to_string() }
}

/// Most bytes of a text that describes something: a description of an oracle, a spec, a result.
pub(crate) const TEXT: u64 = 64 << 20;

/// Largest binary file that is held in memory as a whole: a checkpoint, a network.
pub(crate) const WHOLE: u64 = 16 << 30;

/// Opens a regular file; refuses folders, pipes and devices, which may block or never end.
pub(crate) fn open_regular(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let kind = std::fs::metadata(path)?;
    if !kind.is_file() {
        let but = if kind.is_dir() { ", but a folder: name a file" } else { "" };
        return Err(io::Error::other(format!("is not a regular file{but}")));
    }
    File::open(path)
}

/// The same, buffered.
pub(crate) fn open_file(path: &Path) -> Result<BufReader<File>> {
    open_regular(path).map(BufReader::new).map_err(|e| Error::io(path, e))
}

/// Opens a regular file of at most `limit` bytes; of one that grows meanwhile, a byte more is read and no other.
pub(crate) fn open_bounded(path: impl AsRef<Path>, limit: u64) -> io::Result<Take<File>> {
    let file = open_regular(path)?;
    match file.metadata()?.len() {
        length if length > limit => Err(too_large(limit)),
        _ => Ok(file.take(limit.saturating_add(1))),
    }
}

fn too_large(limit: u64) -> io::Error {
    io::Error::other(format!("is larger than the {limit} bytes that such a file may have"))
}

/// How often a file is opened that other machines replace.
const READS: usize = 3;

/// All bytes of a regular file of at most `limit` bytes. A file that another machine replaces between opening and reading is
/// stale on network drives: it is opened again.
pub(crate) fn read_bounded(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    unless_stale(|| read_once(path.as_ref(), limit))
}

fn unless_stale<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut found = read();
    for _ in 1..READS {
        if !found.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::StaleNetworkFileHandle) {
            break;
        }
        found = read();
    }
    found
}

fn read_once(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = open_bounded(path, limit)?;
    let mut bytes = Vec::with_capacity(file.get_ref().metadata()?.len().min(limit) as usize);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large(limit)) } else { Ok(bytes) }
}

/// All bytes of a description: a regular file of at most [`TEXT`] bytes.
pub(crate) fn read_bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_bounded(path, TEXT)
}

/// The same as text.
pub(crate) fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    read_text_bounded(path, TEXT)
}

/// The text of a regular file of at most `limit` bytes.
pub(crate) fn read_text_bounded(path: impl AsRef<Path>, limit: u64) -> io::Result<String> {
    let text = String::from_utf8(read_bounded(path, limit)?);
    text.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("is no text in UTF-8: {}", e.utf8_error())))
}

/// Opens a file and decompresses it when its first two bytes are gzip's, whatever it is called.
pub(super) fn open_unzipped(path: &Path) -> Result<Box<dyn Read>> {
    let zipped = head(path, GZIP_MAGIC.len())? == GZIP_MAGIC;
    let file = open_file(path)?;
    Ok(if zipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

/// The first `n` bytes of a file as stored; fewer when the file is shorter.
pub(super) fn head(path: &Path, n: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.take(n as u64).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
    Ok(bytes)
}

/// Entries of a folder, sorted by name byte by byte (the order of Python's `sorted`).
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>())
        .map_err(|e| Error::io(folder, e))?;
    paths.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    Ok(paths)
}

/// The last component of a path, for names and messages.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// An error with what to do about it, where a file that this program made is not what it should be, or ends too early. What
/// the system refuses stays as it is.
pub(crate) fn with_way_out(error: Error, way_out: &str) -> Error {
    match error {
        Error::File { path, cause } => Error::File { path, cause: format!("{cause}; {way_out}") },
        Error::Io { path, source }
            if matches!(source.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) =>
        {
            Error::File { path, cause: format!("{}; {way_out}", said(&source)) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_machine_replaced_is_read_again_but_not_for_ever() {
        let stale = || Err(io::ErrorKind::StaleNetworkFileHandle.into());
        let tries = |ends: fn(usize) -> bool, end: fn() -> io::Result<()>| {
            let mut tries = 0;
            let read = unless_stale(|| {
                tries += 1;
                if ends(tries) { end() } else { stale() }
            });
            (tries, read.map_err(|e| e.kind()))
        };
        assert_eq!(tries(|n| n == 3, || Ok(())), (3, Ok(())));
        assert_eq!(tries(|_| false, || Ok(())), (3, Err(io::ErrorKind::StaleNetworkFileHandle)));
        let gone = || Err(io::ErrorKind::NotFound.into());
        assert_eq!(tries(|_| true, gone), (1, Err(io::ErrorKind::NotFound)));
    }
}
