//! An open npz archive (`np.savez`): arrays by name, each read when it is asked for.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::{ZipArchive, read::ZipFile, result::ZipError};

use super::npy::{Array, Types, read_header, read_npy};
use super::source::{head, open_file};
use crate::error::{Error, Result};

/// An open npz and where it came from.
pub(crate) struct Archive<'a> {
    path: &'a Path,
    zip: ZipArchive<BufReader<File>>,
    types: Types,
}

impl<'a> Archive<'a> {
    /// Opens an archive of whose arrays `types` are read.
    ///
    /// # Errors
    /// Names the file: no zip archive, or a damaged one.
    pub(crate) fn open(path: &'a Path, types: Types) -> Result<Self> {
        if head(path, 2)? != b"PK" {
            return Err(Error::file(path, "byte 0: not an npz file (a zip archive begins with PK)"));
        }
        Self::of(path, open_file(path)?, types)
    }

    /// As [`Self::open`], of a file that is open.
    pub(super) fn of(path: &'a Path, file: BufReader<File>, types: Types) -> Result<Self> {
        let zip =
            ZipArchive::new(file).map_err(|e| Error::file(path, format!("damaged or truncated npz archive: {e}")))?;
        Ok(Self { path, zip, types })
    }

    /// Where the archive lies.
    pub(crate) fn path(&self) -> &'a Path {
        self.path
    }

    /// Returns whether there is an array of that name.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.zip.file_names().flatten().any(|file| file.strip_suffix(".npy") == Some(name))
    }

    /// Names of all arrays, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.zip.file_names().flatten().map(|n| n.trim_end_matches(".npy").to_owned()).collect();
        names.sort_unstable();
        names
    }

    /// The file of an array as it lies in the archive, or `None` where there is none of that name.
    pub(super) fn entry(&mut self, name: &str) -> Result<Option<ZipFile<'_, BufReader<File>>>> {
        match self.zip.by_name(&format!("{name}.npy")) {
            Ok(entry) => Ok(Some(entry)),
            Err(ZipError::FileNotFound) => Ok(None),
            Err(e) => Err(Error::file(self.path, format!("array {name}: {e}"))),
        }
    }

    /// Returns the shape of an array and NumPy's name of its type, read from its header alone;
    /// `None` where there is no such array.
    ///
    /// # Errors
    /// Names the file, the array and the cause: damage, or an array of structures.
    pub(crate) fn shape(&mut self, name: &str) -> Result<Option<(Vec<usize>, String)>> {
        let path = self.path;
        let Some(mut entry) = self.entry(name)? else { return Ok(None) };
        let (header, _) = read_header(&mut entry).map_err(|e| Error::file(path, format!("array {name}: {e}")))?;
        Ok(Some((header.shape, header.descr)))
    }

    /// An array, or `None` where there is none of that name.
    ///
    /// # Errors
    /// Names the file, the array and the cause: another type, a shape it has no bytes for, damage.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<Array>> {
        let (path, types) = (self.path, self.types);
        let Some(mut entry) = self.entry(name)? else { return Ok(None) };
        let size = entry.size();
        let array = read_npy(&mut entry, size, types);
        array.map(Some).map_err(|cause| Error::file(path, format!("array {name}: {cause}")))
    }

    /// An array that must be there.
    ///
    /// # Errors
    /// As [`Self::read`], and where it is missing.
    pub(crate) fn require(&mut self, name: &str) -> Result<Array> {
        self.read(name)?.ok_or_else(|| Error::file(self.path, format!("array {name}: missing")))
    }

    /// An array of `rank` dimensions as float64, with its last size.
    pub(super) fn floats(&mut self, name: &str, rank: usize) -> Result<Option<(Vec<f64>, usize)>> {
        let Some(Array { shape, values, .. }) = self.read(name)? else { return Ok(None) };
        let (last, kind) = (shape.last().copied().unwrap_or(0), values.type_name());
        match values.floats() {
            Some(values) if shape.len() == rank => Ok(Some((values, last))),
            _ => {
                let cause = format!("{kind} of shape {shape:?}; expected float32 or float64 of {rank} dimension(s)");
                Err(Error::file(self.path, format!("array {name}: {cause}")))
            }
        }
    }
}
