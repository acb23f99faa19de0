//! What lies where something is to be written.

use std::path::Path;

use super::write::refuse_device;
use crate::error::Result;

/// What is at a place already, and would be written over or mixed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A file, or a symbolic link that may lead to one.
    File,
    /// A folder that is not empty.
    Folder,
}

/// What lies at a path; `None` where nothing is lost by writing there.
///
/// # Errors
/// Names what is no file but a device, a pipe or a socket.
pub fn taken(path: &Path) -> Result<Option<Taken>> {
    refuse_device(path)?;
    // A symbolic link may lead where nothing is yet.
    if path.is_file() || (path.is_symlink() && !path.is_dir()) {
        return Ok(Some(Taken::File));
    }
    let filled = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    Ok(filled.then_some(Taken::Folder))
}
