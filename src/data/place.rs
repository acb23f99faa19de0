//! Places: where a path of a spec leads, and what lies where something is to be written.

use std::path::{Path, PathBuf};

use super::write::refuse_device;
use crate::error::{Error, Result};

/// What is at a place already, and would be written over or mixed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A file, or a symbolic link that may lead to one.
    File,
    /// A folder that is not empty.
    Folder,
}

/// A path of a spec, taken from the folder of the spec where it is relative.
///
/// # Errors
/// When the present folder cannot be told.
pub fn in_folder(folder: &Path, path: &Path) -> Result<PathBuf> {
    let path = folder.join(path);
    std::path::absolute(&path).map_err(|e| Error::io(&path, e))
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

/// Most bytes of the name of a file whose record is written beside it, as NAME.provenance.json: file systems take 255.
const LONGEST_NAME: usize = 239;

/// Whether something may be written at a path: nothing is there, or it is `forced`, which the caller is told to do with the
/// words of `force`.
///
/// # Errors
/// Names the file, or the folder that is not empty; where it is forced, too, what is no file but a device, and a name that
/// leaves no room for that of its record.
pub fn check_free(path: &Path, forced: bool, force: &str) -> Result<()> {
    if path.file_name().is_some_and(|name| name.len() > LONGEST_NAME) {
        let cause = format!(
            "has a name of more than {LONGEST_NAME} bytes: choose a shorter one; more is added to it for its record"
        );
        return Err(Error::file(path, cause));
    }
    let why = match taken(path)? {
        _ if forced => return Ok(()),
        None => return Ok(()),
        Some(Taken::File) => format!("is there already: choose another name, or write over it with {force}"),
        Some(Taken::Folder) => format!("is a folder that is not empty: choose another, or write into it with {force}"),
    };
    Err(Error::file(path, why))
}
