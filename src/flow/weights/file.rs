//! A checkpoint that stays on disk: opening reads its directory only, and each array is read when
//! it is asked for.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use super::array::{Array, MAX_REPEATED};
use super::{HostTensor, Weights, pytorch, safetensors};
use crate::data::open_regular;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};

/// Arrays that may show one storage, on average.
const TIED: u64 = 4;

/// An open `.safetensors` file or PyTorch checkpoint (zip, legacy, tar), told apart by content.
///
/// Holds names, shapes and places; 1.9 GB of weights take some hundred kilobytes. Floating-point
/// arrays only. Nested dictionaries give dotted names. No code of a pickle is run, and a pickle
/// that names any is refused.
#[derive(Debug)]
pub struct WeightFile {
    path: PathBuf,
    /// Stays open: a file that is replaced meanwhile is still the one that was opened.
    file: File,
    arrays: BTreeMap<String, Array>,
    /// What a safetensors file says beside them.
    texts: BTreeMap<String, String>,
}

impl WeightFile {
    /// Opens a file and reads its directory.
    ///
    /// # Errors
    /// Names the file, and whether it is missing, of another kind, cut short or damaged, or the
    /// code it wants to run.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = open_regular(path).map_err(|e| Error::io(path, e))?;
        let mut head = Vec::new();
        (&mut file).take(9).read_to_end(&mut head).map_err(|e| Error::io(path, e))?;
        file.rewind().map_err(|e| Error::io(path, e))?;
        let opened = match safetensors::is(&head) {
            true => safetensors::open(&mut file),
            false => pytorch::open(&mut file).map(|arrays| (arrays, BTreeMap::new())),
        };
        let (arrays, texts) = opened.map_err(|cause| Error::file(path, cause))?;
        bounded(&arrays).map_err(|cause| Error::file(path, cause))?;
        Ok(Self { path: path.to_owned(), file, arrays, texts })
    }

    /// Names of the arrays, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }

    /// The shape of one array, outermost extent first.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.arrays.get(name).map(Array::shape)
    }

    /// A text of the header of a safetensors file, by its key.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.texts.get(key).map(String::as_str)
    }

    /// Reads the values of one array, row-major, rounded to f32. It may be read again.
    ///
    /// Memory: 4 bytes per value and a mebibyte. An array that does not lie row-major in its
    /// storage takes 4 bytes more per number between its first element and its last. An array
    /// inside a deflated zip entry, which PyTorch does not write, is unpacked from the entry's
    /// start, at no more memory.
    ///
    /// # Errors
    /// Names the file and the array that is missing, cut short, damaged (where a zip entry has a
    /// checksum and the array is all of it), not finite, or too large for memory.
    pub fn take(&mut self, name: &str) -> Result<Vec<f32>> {
        self.read(name, &mut |_| Ok(()))
    }

    fn read(&mut self, name: &str, step: &mut dyn FnMut(usize) -> Result<()>) -> Result<Vec<f32>> {
        let array = self.arrays.get(name);
        let array = array.ok_or_else(|| Error::file(&self.path, format!("array '{name}' is missing")))?;
        array.read(&mut self.file, &self.path, name, step)
    }

    /// Reads every array that `keep` wants by name; the others are never read. Reports bytes read
    /// and wanted, at the start and after every mebibyte, and stops there when asked to.
    ///
    /// # Errors
    /// As [`Self::take`], and [`Error::Cancelled`].
    pub fn into_weights(mut self, keep: impl Fn(&str) -> bool, events: &mut dyn Events<Progress>) -> Result<Weights> {
        let wanted: Vec<String> = self.arrays.keys().filter(|name| keep(name)).cloned().collect();
        let total = wanted.iter().filter_map(|name| self.arrays.get(name)).map(Array::bytes).sum();
        let mut done = 0;
        events.report(Progress { done, total })?;
        let mut weights = Weights::default();
        for name in wanted {
            let values = self.read(&name, &mut |bytes| {
                done += bytes;
                events.report(Progress { done, total })
            })?;
            let shape = self.shape(&name).unwrap_or_default();
            weights.0.insert(name, HostTensor::new(shape, values));
        }
        Ok(weights)
    }
}

/// Whether all arrays together repeat what is stored a few times only. Weights that are tied are
/// two arrays of one storage; a file may name any number.
fn bounded(arrays: &BTreeMap<String, Array>) -> Result<(), String> {
    let stored: BTreeMap<u64, u64> = arrays.values().map(Array::stored).collect();
    let stored = stored.into_values().fold(0_u64, u64::saturating_add);
    let values = arrays.values().map(|array| array.len() as u64).fold(0, u64::saturating_add);
    if values <= TIED.saturating_mul(stored).saturating_add(MAX_REPEATED as u64) {
        return Ok(());
    }
    Err(format!("its arrays make {values} values of {stored} stored numbers: it is damaged"))
}
