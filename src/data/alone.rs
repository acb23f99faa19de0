//! What only one process at a time may do in a folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// A process that was killed just now holds its files until the system has taken it down: whoever is started in its place waits so long.
const DYING: Duration = Duration::from_secs(2);

/// Takes a lock file, made where it is not there, for as long as the result lives. The system gives it back when a process ends,
/// however it ends. Where a file system has no locks, nobody is refused.
///
/// # Errors
/// Names the file: `busy` where another process has it, or the system's.
pub fn alone(path: &Path, busy: &str) -> Result<File> {
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = open.map_err(|e| Error::io(path, e))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < DYING => std::thread::park_timeout(DYING / 40),
            Err(TryLockError::WouldBlock) => return Err(Error::file(path, busy)),
            Err(TryLockError::Error(e)) if e.kind() != std::io::ErrorKind::Unsupported => {
                return Err(Error::io(path, e));
            }
            _ => return Ok(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let held = alone(&path, "busy").unwrap();
        let refused = alone(&path, "somebody is there").unwrap_err().to_string();
        assert!(refused.contains(".lock") && refused.contains("somebody is there"), "{refused}");
        drop(held);
        alone(&path, "busy").unwrap();
    }
}
