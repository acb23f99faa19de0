//! Places where results go: nothing that is there is written over unasked.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Whether `--force` was given.
pub static FORCE: AtomicBool = AtomicBool::new(false);

/// Whether something may be written at a path: nothing is there, or `--force` was given.
///
/// # Errors
/// Names the file, or the folder that is not empty.
pub fn is_free(path: &Path) -> Result<()> {
    if FORCE.load(Ordering::Relaxed) {
        return Ok(());
    }
    if path.is_file() {
        return Err(Error::file(path, "is there already: choose another name, or write over it with --force"));
    }
    let filled = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    match filled {
        true => Err(Error::file(path, "is a folder that is not empty: choose another, or write into it with --force")),
        false => Ok(()),
    }
}
