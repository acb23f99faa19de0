//! Opening what a user named: regular files only, gzip seen through, and never more bytes in memory than were announced.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::error::{Error, Result};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What is said of a file that ends before it should.
pub(crate) const CUT_SHORT: &str = "the file ends too early: it was cut short";

/// The words for a system error while reading.
pub(crate) fn said(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof { CUT_SHORT.into() } else { error.to_string() }
}

/// Opens a regular file. A folder, pipe or device is refused, so that opening never blocks.
pub(crate) fn open_file(path: &Path) -> Result<BufReader<File>> {
    let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if !meta.is_file() {
        return Err(Error::file(path, "is not a regular file"));
    }
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    Ok(BufReader::new(file))
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
