//! Copies of a run's images on a local disk, for runs that lie on a network file system.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::data::{open_regular, sha256, write_atomically};
use crate::error::{Error, Result};

/// A folder for copies of a run's files: one of its own, for two runs name their files alike. Only
/// files that this process copied are trusted: others may hold other images.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    copied: BTreeSet<OsString>,
    /// Whether the disk has refused one: then it is not asked again.
    full: bool,
}

impl Stage {
    /// An empty one in `folder` for the run that lies at `run`.
    pub fn new(folder: &Path, run: &Path) -> Self {
        let run = std::path::absolute(run).unwrap_or_else(|_| run.to_owned());
        let own = &sha256(run.as_os_str().as_encoded_bytes())[..16];
        Self { folder: folder.join(own), copied: BTreeSet::new(), full: false }
    }

    /// The copy of a file, made on first use; the file itself where it cannot be copied.
    pub fn near(&mut self, file: &Path) -> PathBuf {
        let Some(name) = file.file_name().filter(|_| !self.full) else { return file.to_owned() };
        let near = self.folder.join(name);
        if self.copied.contains(name) {
            return near;
        }
        match self.copy(file, &near) {
            Ok(()) => {
                self.copied.insert(name.to_owned());
                near
            }
            // A small disk makes a run slower, not impossible.
            Err(error) => {
                tracing::warn!("{error}; {} is read where it lies", file.display());
                self.full = true;
                file.to_owned()
            }
        }
    }

    fn copy(&self, file: &Path, near: &Path) -> Result<()> {
        std::fs::create_dir_all(&self.folder).map_err(|e| Error::io(&self.folder, e))?;
        let mut from = open_regular(file).map_err(|e| Error::io(file, e))?;
        write_atomically(near, |out| std::io::copy(&mut from, out).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_copied_once_and_a_leftover_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &Path, text: &str| write_atomically(path, |out| out.write_all(text.as_bytes())).unwrap();
        let (file, place) = (folder.path().join("test.npz"), folder.path().join("stage"));
        write(&file, "images");
        let mut stage = Stage::new(&place, Path::new("run"));
        std::fs::create_dir_all(&stage.folder).unwrap();
        let near = stage.folder.join("test.npz");
        write(&near, "of an earlier process");
        assert_eq!(stage.near(&file), near);
        assert_eq!(std::fs::read(&near).unwrap(), b"images");
        // Another run with a file of that name in the same place.
        write(&file, "other images");
        let others = Stage::new(&place, Path::new("another run")).near(&file);
        assert_eq!(std::fs::read(&others).unwrap(), b"other images");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(stage.near(&file), near);
        assert_eq!(std::fs::read(&near).unwrap(), b"images");
        // Tasks of one run share their copies.
        assert_eq!(Stage::new(&place, Path::new("run")).folder, stage.folder);
    }

    #[test]
    fn without_room_files_are_read_where_they_lie() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.npz");
        write_atomically(&file, |out| out.write_all(b"images")).unwrap();
        // A file where the folder should be.
        let mut stage = Stage::new(&file, Path::new("run"));
        assert_eq!(stage.near(&file), file);
        assert!(stage.full);
    }
}
