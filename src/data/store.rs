//! Resumable work in a folder: it can be stopped at any moment and continues to the same bytes.
//!
//! ```text
//! DIR/TICKET        what was asked for, written first: another work is refused
//! DIR/.parts/       pieces, each written whole; gone when the work is done
//! DIR/.parts/lock   held by the process at work
//! ```
//!
//! `export` and `validate` use it. The images of a run are [`Pieces`] without a ticket of their
//! own. Others use the ticket alone: a run (its cells are folders, in which several processes work
//! at once), posteriors at scale (a log) and training (checkpoints).

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};

use super::folder_kind::{FolderKind, check_folder_kind};
use super::json::{read_json, write_json};
use super::lock::lock_file;
use super::temp_files::{is_vacant, sweep_temp_files};
use super::ticket::{Ticket, claim_ticket, ticket_conflict};
use crate::error::{Error, Result};

/// Where pieces lie.
pub const PARTS: &str = ".parts";
/// Held among them by the process at work.
const LOCK: &str = "lock";

/// A kind of work and its names.
#[derive(Debug, Clone, Copy)]
pub struct StoreKind {
    /// Name of its ticket.
    pub ticket: &'static str,
    /// Its name: `export`.
    pub work: &'static str,
    /// The name of its result: `dataset`.
    pub result: &'static str,
    /// The kind of its folder.
    pub folder: Option<FolderKind>,
}

impl StoreKind {
    /// Returns whether a folder has its ticket.
    pub fn is_begun(&self, folder: &Path) -> bool {
        folder.join(self.ticket).is_file()
    }
}

/// Pieces of a work by name. Without a folder nothing is kept.
#[derive(Debug)]
pub struct Store {
    parts: Option<PathBuf>,
    /// The name of their result.
    result: &'static str,
}

impl Store {
    /// The store of a folder whose ticket is not checked. Without a folder nothing is kept.
    pub fn of(folder: Option<&Path>, kind: &StoreKind) -> Self {
        Self { parts: folder.map(|folder| folder.join(PARTS)), result: kind.result }
    }

    /// Takes a new folder, or one in which this work was begun.
    ///
    /// # Errors
    /// When the folder is a file, holds something else or another work, or cannot be written.
    pub fn begin<S: Serialize + DeserializeOwned>(folder: &Path, kind: &StoreKind, ticket: &Ticket<S>) -> Result<Self> {
        if !kind.is_begun(folder) {
            check_folder_kind(folder, kind.folder)?;
            if folder.is_file() {
                return Err(Error::file(
                    folder,
                    format!("is a file; a {} is a folder: choose another name", kind.result),
                ));
            }
            std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
            // Another process may have come in.
            if !is_vacant(folder, PARTS)? && !kind.is_begun(folder) {
                return Err(Error::file(folder, format!("is not empty; choose a new folder for the {}", kind.result)));
            }
        }
        let path = folder.join(kind.ticket);
        claim_ticket(&path, ticket, |found| ticket_conflict(&path, kind.work, (found, ticket), &[]))?;
        Ok(Self::of(Some(folder), kind))
    }

    /// Creates the folder of the pieces and locks it as long as the result lives. Removes what
    /// killed processes left. After waiting, look first whether the work is complete.
    ///
    /// # Errors
    /// When another process is at work, or the system refuses.
    pub fn lock(&self) -> Result<Option<File>> {
        let Some(parts) = &self.parts else { return Ok(None) };
        std::fs::create_dir_all(parts).map_err(|e| Error::io(parts, e))?;
        let busy = format!("another process is writing this {}: wait for it, or stop it", self.result);
        let lock = lock_file(&parts.join(LOCK), &busy)?;
        sweep_temp_files(parts);
        Ok(Some(lock))
    }

    /// A piece: read where it is there and can be, otherwise made and written.
    ///
    /// # Errors
    /// As `make` and `write`.
    pub fn piece<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Path) -> Option<T>,
        make: impl FnOnce() -> Result<T>,
        write: impl FnOnce(&Path, &T) -> Result<()>,
    ) -> Result<T> {
        let Some(path) = self.parts.as_ref().map(|parts| parts.join(name)) else { return make() };
        if let Some(kept) = path.is_file().then(|| read(&path)).flatten() {
            return Ok(kept);
        }
        let made = make()?;
        write(&path, &made)?;
        Ok(made)
    }

    /// A piece that is written as JSON.
    ///
    /// # Errors
    /// As `make`; names a file that cannot be written.
    pub fn value<T: Serialize + DeserializeOwned>(&self, name: &str, make: impl FnOnce() -> Result<T>) -> Result<T> {
        self.piece(name, |path| read_json(path).ok().flatten(), make, |path, value| write_json(path, value))
    }

    /// Removes the pieces: what they were kept for is complete, whether they can be removed or not.
    pub fn finish(&self) {
        let Some(parts) = self.parts.as_ref().filter(|parts| parts.exists()) else { return };
        // Released first: some systems do not remove open files.
        if let Err(error) = self.lock().map(drop).and_then(|()| remove_folder(parts)) {
            let result = self.result;
            tracing::warn!("the {result} is complete, but the pieces it was made of could not be removed: {error}");
        }
    }
}

/// Items in numbered pieces, one file each (or several by extension), written atomically.
#[derive(Debug, Clone)]
pub struct Pieces {
    /// Where they lie.
    pub folder: PathBuf,
    /// What their names begin with.
    pub prefix: String,
    /// Digits of the number of the first item in a name, at least.
    pub digits: usize,
    /// Items in all.
    pub items: usize,
    /// Items of a piece; fewer in the last one.
    pub each: usize,
}

impl Pieces {
    /// Running numbers of the items of every piece.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (each, items) = (self.each, self.items);
        (0..items).step_by(each).map(move |first| first..items.min(first + each))
    }

    /// The file of a piece with that ending.
    pub fn file(&self, range: &Range<usize>, ending: &str) -> PathBuf {
        let Self { folder, prefix, digits, .. } = self;
        folder.join(format!("{prefix}{:0digits$}.{ending}", range.start))
    }

    /// The missing pieces, in order. A file that is not `sound` (path, items) is removed. Each
    /// piece is checked when the iterator reaches it, so another process's work is not repeated.
    pub fn missing<'a>(
        &'a self,
        ending: &'a str,
        sound: impl Fn(&Path, usize) -> bool + 'a,
    ) -> impl Iterator<Item = Range<usize>> + 'a {
        self.ranges().filter(move |range| {
            let file = self.file(range, ending);
            if !file.is_file() {
                return true;
            }
            let sound = sound(&file, range.len());
            if !sound {
                // The writer reports a file that cannot be removed.
                let _ = std::fs::remove_file(&file);
            }
            !sound
        })
    }

    /// Removes the folder with all pieces.
    ///
    /// # Errors
    /// Names it.
    pub fn remove(&self) -> Result<()> {
        remove_folder(&self.folder)
    }
}

/// Removes a folder that may be gone already.
fn remove_folder(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(folder, e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
