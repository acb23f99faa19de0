//! An open npz archive (`np.savez`): arrays by name, each read when it is asked for.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::{ZipArchive, read::ZipFile, result::ZipError};

use super::npy::{Array, Types, read_header, read_npy};
use super::source::{head, open_file};
use crate::error::{Error, Result};

/// Bytes that any array may have, and beyond these the most that one byte of the file unpacks to: deflate packs up to a thousand
/// constants into one, so that a file of a megabyte could ask for a gigabyte. An array whose size something else tells
/// ([`Archive::read_known`]) may be packed as tightly as it can be.
const FREE: u64 = 1 << 26;
const UNPACKED: u64 = 256;
/// Classes end here, so that a stray number is not taken for a hundred million of them.
pub(super) const MAX_LABEL: i64 = 65_535;

/// An open npz and where it came from.
pub(crate) struct Archive<'a> {
    path: &'a Path,
    /// Bytes of the file.
    length: u64,
    zip: ZipArchive<BufReader<File>>,
    types: Types,
}

/// Returns whether so many bytes of a file may be unpacked to an array of `size` bytes, of which `known` are expected.
fn is_plausible(size: u64, packed: u64, known: u64) -> bool {
    size <= packed.saturating_mul(UNPACKED).max(known).saturating_add(FREE)
}

/// Bytes of a table of float64 with a row for each label and a column for each class, as [`Archive::read_known`] takes them:
/// posteriors that are 0 and 1 pack into almost nothing. Where the number of classes is not known, it is at most twice what the
/// labels tell, for the last classes may have no image. A byte never unpacks to more than 1,032, so that a file gains a factor of
/// four by made-up labels.
pub(crate) fn table_bytes(labels: &[i64], classes: Option<usize>) -> u64 {
    let told = labels.iter().max().map_or(0, |&last| 2 * (last.clamp(-1, MAX_LABEL) + 1) as u64);
    let classes = classes.map_or(told, |classes| classes as u64);
    (labels.len() as u64).saturating_mul(classes).saturating_mul(8)
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
        let length = file.get_ref().metadata().map_err(|e| Error::io(path, e))?.len();
        let zip =
            ZipArchive::new(file).map_err(|e| Error::file(path, format!("damaged or truncated npz archive: {e}")))?;
        Ok(Self { path, length, zip, types })
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
    /// Names the file, the array and the cause: another type, a shape it has no bytes for, more bytes than so few unpack to,
    /// damage.
    pub(crate) fn read(&mut self, name: &str) -> Result<Option<Array>> {
        self.read_known(name, 0)
    }

    /// As [`Self::read`], of an array that is expected to have up to `known` bytes, by something else than its own header: so many
    /// may be packed into however few.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_known(&mut self, name: &str, known: u64) -> Result<Option<Array>> {
        let (path, types, length) = (self.path, self.types, self.length);
        let Some(mut entry) = self.entry(name)? else { return Ok(None) };
        let (size, packed) = (entry.size(), entry.compressed_size().min(length));
        if !is_plausible(size, packed, known) {
            let cause = format!(
                "array {name}: {size} bytes packed into {packed}: more than {UNPACKED} of one are not unpacked; save it with \
                 numpy.savez, which does not compress"
            );
            return Err(Error::file(path, cause));
        }
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

    /// An array of `rank` dimensions as float64, with its last size; `known` as in [`Self::read_known`].
    pub(super) fn floats(&mut self, name: &str, rank: usize, known: u64) -> Result<Option<(Vec<f64>, usize)>> {
        let Some(Array { shape, values, .. }) = self.read_known(name, known)? else { return Ok(None) };
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_small_file_asks_for_no_large_array() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("zeros.npz");
        let write = |numbers: usize| {
            let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
            let deflated =
                zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
            zip.start_file("y.npy", deflated).unwrap();
            let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({numbers},), }}\n");
            zip.write_all(b"\x93NUMPY\x01\x00").unwrap();
            zip.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
            zip.write_all(header.as_bytes()).unwrap();
            zip.write_all(&vec![0; numbers]).unwrap();
            zip.finish().unwrap();
        };
        write(FREE as usize / 2);
        assert!(Archive::open(&path, Types::All).unwrap().read("y").unwrap().is_some());
        write(2 * FREE as usize);
        let refused = Archive::open(&path, Types::All).unwrap().read("y").unwrap_err().to_string();
        assert!(refused.contains("zeros.npz") && refused.contains("array y"), "{refused}");
        let mut archive = Archive::open(&path, Types::All).unwrap();
        assert!(archive.read_known("y", FREE / 2).is_err() && archive.read_known("y", 2 * FREE).unwrap().is_some());
        // What lies unpacked is as large as it is.
        assert!(is_plausible(1 << 40, 1 << 40, 0) && !is_plausible(1 << 40, 1 << 30, 0));
    }

    #[test]
    fn labels_tell_how_large_a_table_beside_them_may_be() {
        let labels: Vec<i64> = (0..50).map(|i| i % 10).collect();
        assert_eq!((table_bytes(&labels, None), table_bytes(&labels, Some(12))), (50 * 20 * 8, 50 * 12 * 8));
        assert_eq!((table_bytes(&[], None), table_bytes(&[-7, -1], None)), (0, 0));
        assert_eq!(table_bytes(&[i64::MAX], None), 2 * 65_536 * 8);
    }
}
