//! Lock files: one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// A killed process holds its locks until the system has removed it: its successor waits this long.
const DYING: Duration = Duration::from_secs(2);
/// A lock that another process has is asked for so often.
const ASK: Duration = Duration::from_millis(50);

/// Takes a lock file, created if necessary, as long as the result lives. The system releases it
/// when the process ends. On a file system without locks every caller succeeds.
///
/// # Errors
/// Names the file: `busy` where another process has it, or the system's.
pub fn lock_file(path: &Path, busy: &str) -> Result<File> {
    let begun = Instant::now();
    let mut dying = || if begun.elapsed() < DYING { Ok(()) } else { Err(Error::file(path, busy)) };
    lock(path, &mut dying).map(|(file, _)| file)
}

/// [`lock_file`], but returns `None` at once where another process has it. The `name` of whoever
/// takes it is left in the file, for those who come meanwhile. Where the file system refuses to lock,
/// for whatever reason, every caller succeeds: only for work that two may do at once without harm.
///
/// # Errors
/// Names a file that cannot be opened.
pub fn try_lock_file(path: &Path, name: &str) -> Result<Option<File>> {
    let mut file = opened(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        // ENOLCK, above all: what NFS says where the server's lock manager is not reached.
        Err(TryLockError::Error(e)) if e.kind() != io::ErrorKind::Unsupported => {
            tracing::warn!("{}: {e}; going on without a lock", path.display());
        }
        Err(TryLockError::Error(_)) => {}
    }
    // It is for people: a full disk stops nobody here.
    let _ = file.set_len(0).and_then(|()| file.write_all(name.as_bytes()));
    Ok(Some(file))
}

/// [`lock_file`], but waits, and calls `waiting` meanwhile. `None` on a file system without locks: others may be at work.
///
/// # Errors
/// Names the file; or as `waiting`, which ends the wait.
pub fn wait_for_lock(path: &Path, waiting: &mut dyn FnMut() -> Result<()>) -> Result<Option<File>> {
    lock(path, waiting).map(|(file, locked)| locked.then_some(file))
}

/// Opens and locks a file; false where the file system has no locks. Waits as long as `waiting` says nothing else.
fn lock(path: &Path, waiting: &mut dyn FnMut() -> Result<()>) -> Result<(File, bool)> {
    let file = opened(path)?;
    loop {
        let tried = match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                waiting()?;
                std::thread::park_timeout(ASK);
                continue;
            }
            Err(TryLockError::Error(e)) => Err(e),
            Ok(()) => Ok(()),
        };
        return acquired(tried).map(|locked| (file, locked)).map_err(|e| Error::io(path, e));
    }
}

fn opened(path: &Path) -> Result<File> {
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    open.map_err(|e| Error::io(path, e))
}

/// Returns whether the lock was taken; false where the file system has none.
fn acquired(lock: io::Result<()>) -> io::Result<bool> {
    match lock {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let held = lock_file(&path, "busy").unwrap();
        let refused = lock_file(&path, "somebody is there").unwrap_err().to_string();
        assert!(refused.contains(".lock") && refused.contains("somebody is there"), "{refused}");
        // Who waits may be stopped, and gets it when it is free.
        let stopped = wait_for_lock(&path, &mut || Err(Error::Cancelled)).unwrap_err();
        assert!(matches!(stopped, Error::Cancelled), "{stopped}");
        let (mut held, mut asked) = (Some(held), 0);
        let mut freed = || {
            asked += 1;
            held = held.take().filter(|_| asked < 2);
            Ok(())
        };
        let held = wait_for_lock(&path, &mut freed).unwrap();
        assert!(held.is_some() && asked == 2 && lock_file(&path, "busy").is_err());
        drop(held);
        lock_file(&path, "busy").unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn who_comes_second_is_told_at_once_and_reads_who_was_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "a much longer name of somebody who was killed").unwrap();
        let held = try_lock_file(&path, "first").unwrap();
        assert!(held.is_some() && try_lock_file(&path, "second").unwrap().is_none());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        drop(held);
        assert!(try_lock_file(&path, "second").unwrap().is_some());
    }

    #[test]
    fn a_file_system_without_locks_refuses_nobody() {
        assert!(acquired(Ok(())).unwrap());
        assert!(!acquired(Err(io::ErrorKind::Unsupported.into())).unwrap());
        assert!(acquired(Err(io::ErrorKind::PermissionDenied.into())).is_err());
        // ENOSYS: what Lustre says where it is mounted without locks.
        #[cfg(target_os = "linux")]
        assert!(!acquired(Err(io::Error::from_raw_os_error(38))).unwrap());
    }
}
