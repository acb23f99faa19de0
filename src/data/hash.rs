//! SHA-256 of bytes and of files, in lower-case hexadecimal.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::DATASET;
use super::source::open_regular;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};

/// Bytes hashed between two checks for cancellation.
const CHUNK: usize = 1 << 20;

/// SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    sha256_of_pieces(&[bytes])
}

/// SHA-256 of bytes that lie in pieces, one behind the other.
pub fn sha256_of_pieces(pieces: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    pieces.iter().for_each(|piece| hash.update(piece));
    hex(&hash.finalize())
}

/// SHA-256 of a file. Reports bytes read and in all, and stops when asked to.
///
/// # Errors
/// The system's on `path`, and [`Error::Cancelled`].
pub fn sha256_of_file(path: &Path, events: &mut dyn Events<Progress>) -> Result<String> {
    let total = std::fs::metadata(path).map_err(|e| Error::io(path, e))?.len() as usize;
    events.report(Progress { done: 0, total })?;
    let (_, sha256) = measure(path, &mut |done| events.report(Progress { done: done as usize, total }))?;
    Ok(sha256)
}

/// Checks that a file of a dataset, of this SHA-256, is the one of which its manifest says `listed`.
///
/// # Errors
/// Names the file and both hashes.
pub fn check_listed_hash(path: &Path, sha256: &str, listed: &str) -> Result<()> {
    if sha256.eq_ignore_ascii_case(listed) {
        return Ok(());
    }
    let cause = format!(
        "its SHA-256 is {sha256}, {DATASET} says {listed}: it was changed after the export, or the export was not finished; \
         export it again"
    );
    Err(Error::file(path, cause))
}

/// Returns length and SHA-256 of a file; `watch` gets the bytes read so far.
pub(super) fn measure(path: &Path, watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<(u64, String)> {
    let mut file = open_regular(path).map_err(|e| Error::io(path, e))?;
    let mut hash = Sha256::new();
    let bytes = absorb(&mut file, path, &mut hash, watch)?;
    Ok((bytes, hex(&hash.finalize())))
}

/// Reads the rest of a file into a hash. Returns the number of bytes.
pub(super) fn absorb(
    file: &mut File,
    path: &Path,
    hash: &mut Sha256,
    watch: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<u64> {
    let mut buffer = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let read = match file.read(&mut buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(|e| Error::io(path, e))?,
        };
        if read == 0 {
            return Ok(bytes);
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
        watch(bytes)?;
    }
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
