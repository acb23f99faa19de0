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

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::status::host;
use crate::data::{read_text, try_lock_file};
use crate::error::{Error, Result};

/// The file in the cell's folder.
const LOCK: &str = "cell.lock";

/// Cells that this process computes.
static OURS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn ours() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cell's folder by the name that it has whoever asks.
fn named(cell: &Path) -> PathBuf {
    std::fs::canonicalize(cell).unwrap_or_else(|_| cell.to_owned())
}

/// A cell that this process computes, as long as this lives.
pub struct CellLock {
    cell: PathBuf,
    file: Option<File>,
}

impl CellLock {
    /// Takes a cell, whose folder is made; `None` where another process computes it, or another job of
    /// this one ([`Self::is_ours`]).
    ///
    /// # Errors
    /// Names what cannot be written.
    pub fn take(cell: &Path) -> Result<Option<Self>> {
        std::fs::create_dir_all(cell).map_err(|e| Error::io(cell, e))?;
        let name = format!("process {} on {}", std::process::id(), host());
        let Some(file) = try_lock_file(&cell.join(LOCK), &name)? else { return Ok(None) };
        let cell = named(cell);
        // On a file system without locks the file tells nothing.
        Ok(ours().insert(cell.clone()).then(|| Self { cell, file: Some(file) }))
    }

    /// Whether a job of this process computes a cell. It may be held, and go on only after the one
    /// that asks.
    pub fn is_ours(cell: &Path) -> bool {
        ours().contains(&named(cell))
    }

    /// Who computes a cell, in words.
    pub fn holder(cell: &Path) -> String {
        let name = read_text(cell.join(LOCK)).ok().filter(|name| !name.is_empty());
        name.unwrap_or_else(|| "another process".to_owned())
    }

    /// Who computes a cell, in words; `None` where nobody does.
    ///
    /// # Errors
    /// Names what cannot be read.
    pub fn held_by(cell: &Path) -> Result<Option<String>> {
        if !cell.join(LOCK).is_file() {
            return Ok(None);
        }
        Ok(Self::take(cell)?.is_none().then(|| Self::holder(cell)))
    }

    /// The cell is finished: nobody needs the lock again.
    pub fn remove(mut self) {
        // Closed first: not every system removes an open file. One that stays is in nobody's way.
        self.file = None;
        let _ = std::fs::remove_file(self.cell.join(LOCK));
    }
}

impl Drop for CellLock {
    fn drop(&mut self) {
        ours().remove(&self.cell);
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
        assert!(CellLock::take(&cell).unwrap().is_none() && CellLock::is_ours(&cell));
        #[cfg(unix)]
        assert_eq!(CellLock::holder(&cell), format!("process {} on {}", std::process::id(), host()));
        // A stop leaves the file, and nobody holds it.
        drop(lock);
        assert!(!CellLock::is_ours(&cell));
        let lock = CellLock::take(&cell).unwrap().unwrap();
        assert!(cell.join(LOCK).exists());
        lock.remove();
        assert!(!cell.join(LOCK).exists());
        assert_eq!(CellLock::holder(&cell), "another process");
    }
}
