//! An unfinished download `NAME.part`, kept for resuming, and the hash of its bytes. No
//! [`Store`](crate::data::Store): bytes come in order, and a mirror is asked for the rest by
//! offset.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::data::hash::{absorb, hex};
use crate::error::{Error, Result};

/// Ending of what comes anew beside a part.
const NEW: &str = ".new";

/// How far a part had come at a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Mark {
    hash: Sha256,
    bytes: u64,
}

/// A part on the disk.
pub(super) struct Part {
    path: PathBuf,
    file: File,
    hash: Sha256,
    /// Bytes so far.
    pub bytes: u64,
}

impl Part {
    /// Opens or creates the part of `target`. `watch` gets the existing bytes read so far.
    pub fn open(target: &Path, watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<Self> {
        let path = added(target, ".part");
        // Of a process that was killed.
        let _ = std::fs::remove_file(added(&path, NEW));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::io(&path, e))?;
        let mut hash = Sha256::new();
        let bytes = absorb(&mut file, &path, &mut hash, watch)?;
        Ok(Self { path, file, hash, bytes })
    }

    /// Appends `bytes` to the part and to its hash.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            // What did get written of these bytes is not in the hash.
            let _ = self.file.set_len(self.bytes);
            return Err(Error::io(&self.path, error));
        }
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// How far it has come.
    pub fn mark(&self) -> Mark {
        Mark { hash: self.hash.clone(), bytes: self.bytes }
    }

    /// Drops what was written since `mark`.
    pub fn back_to(&mut self, Mark { hash, bytes }: Mark) -> Result<()> {
        let cut = self.file.set_len(bytes).and_then(|()| self.file.seek(SeekFrom::Start(bytes)));
        cut.map_err(|e| Error::io(&self.path, e))?;
        (self.hash, self.bytes) = (hash, bytes);
        Ok(())
    }

    /// Starts again with nothing.
    pub fn restart(&mut self) -> Result<()> {
        self.back_to(Mark::default())
    }

    /// An empty file beside it, `NAME.part.new`, for an answer that begins anew: one of an earlier time is
    /// emptied.
    pub fn beside(&self) -> Result<Self> {
        let path = added(&self.path, NEW);
        let file = File::create(&path).map_err(|e| Error::io(&path, e))?;
        Ok(Self { path, file, hash: Sha256::new(), bytes: 0 })
    }

    /// Puts what came [`beside`](Self::beside) it in its place.
    pub fn replace(&mut self, by: Self) -> Result<()> {
        std::fs::rename(&by.path, &self.path).map_err(|e| Error::io(&self.path, e))?;
        *self = Self { path: std::mem::take(&mut self.path), ..by };
        Ok(())
    }

    /// Deletes it.
    pub fn delete(self) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(|e| Error::io(&self.path, e))
    }

    /// SHA-256 of the bytes so far.
    pub fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Gives the part its name, durably.
    pub fn finish(self, target: &Path) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io(&self.path, e))?;
        std::fs::rename(&self.path, target).map_err(|e| Error::io(target, e))
    }
}

/// The path with an ending added to its name.
pub(super) fn added(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}
