//! An unfinished download `NAME.part`, kept for resuming, and the hash of its bytes. No
//! [`Store`](crate::data::Store): bytes come in order, and a mirror is asked for the rest by
//! offset.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::data::hash::{absorb, hex};
use crate::error::{Error, Result};

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
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let path = target.with_file_name(name);
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

    /// Starts again with nothing.
    pub fn restart(&mut self) -> Result<()> {
        self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0))).map_err(|e| Error::io(&self.path, e))?;
        self.hash = Sha256::new();
        self.bytes = 0;
        Ok(())
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
