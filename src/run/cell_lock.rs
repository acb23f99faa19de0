//! Who computes a cell: one process at a time, which holds a lock of the system on a file in the
//! cell's folder.
//!
//! The system releases the lock with the process, however that ends. The file is removed once the
//! cell is finished: who has opened it before looks for the result after locking, and finds it.
//!
//! | file system | the lock holds between |
//! |---|---|
//! | of one machine | its processes |
//! | NFS (Linux), CephFS, GPFS, Lustre with `flock` | all machines |
//! | NFS with `nolock` or `local_lock`, Lustre with `localflock`, BeeGFS unless told | processes of one machine |
//! | one without locks | nobody |
//!
//! Where it does not hold, two processes may compute a cell twice: whole files replace each other, and
//! on the same kind of device they say the same. A machine that is lost holds its locks until the
//! server gives them up (NFS 4: 90 s usually; NFS 3: when it comes back). Who removes the file in the
//! meantime makes the cell free.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::status::host;
use crate::data::{read_text, try_lock_file};
use crate::error::{Error, Result};

/// The file in the cell's folder.
const LOCK: &str = "cell.lock";

/// A cell that this process computes, as long as this lives.
pub struct CellLock {
    path: PathBuf,
    _file: File,
}

impl CellLock {
    /// Takes a cell, whose folder is made; `None` where another process computes it.
    ///
    /// # Errors
    /// Names what cannot be written.
    pub fn take(cell: &Path) -> Result<Option<Self>> {
        std::fs::create_dir_all(cell).map_err(|e| Error::io(cell, e))?;
        let path = cell.join(LOCK);
        let name = format!("process {} on {}", std::process::id(), host());
        Ok(try_lock_file(&path, &name)?.map(|file| Self { path, _file: file }))
    }

    /// Who computes a cell, in words.
    pub fn holder(cell: &Path) -> String {
        let name = read_text(cell.join(LOCK)).ok().filter(|name| !name.is_empty());
        name.unwrap_or_else(|| "another process".to_owned())
    }

    /// The cell is finished: nobody needs the lock again.
    pub fn remove(self) {
        // A file that stays is in nobody's way.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_taken_once_and_again_by_whoever_comes_after() {
        let place = tempfile::tempdir().unwrap();
        let cell = place.path().join("cells").join("0123456789abcdef");
        let lock = CellLock::take(&cell).unwrap().unwrap();
        assert!(CellLock::take(&cell).unwrap().is_none());
        #[cfg(unix)]
        assert_eq!(CellLock::holder(&cell), format!("process {} on {}", std::process::id(), host()));
        // A stop leaves the file, and nobody holds it.
        drop(lock);
        let lock = CellLock::take(&cell).unwrap().unwrap();
        assert!(cell.join(LOCK).exists());
        lock.remove();
        assert!(!cell.join(LOCK).exists());
        assert_eq!(CellLock::holder(&cell), "another process");
    }
}
