//! Named weights on the host: the form in which every checkpoint is read, checked, hashed and
//! written.

mod array;
mod file;
mod globals;
mod pickle;
mod pytorch;
mod safetensors;
mod tar;
mod zip;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use ::safetensors::tensor::{Dtype, SafeTensors, TensorView};
use half::f16;
use serde::{Deserialize, Serialize};

use crate::data::write_atomically;
use crate::error::{Error, Result};

pub use file::WeightFile;

/// One array: row-major values and their shape.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    /// Extents, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// Values, row-major.
    pub values: Vec<f32>,
}

impl HostTensor {
    /// From a shape and its row-major values.
    pub fn new(shape: impl Into<Vec<usize>>, values: Vec<f32>) -> Self {
        let shape = shape.into();
        debug_assert_eq!(shape.iter().product::<usize>(), values.len());
        Self { shape, values }
    }

    /// The same value everywhere.
    pub fn full(shape: impl Into<Vec<usize>>, value: f32) -> Self {
        let shape = shape.into();
        let values = vec![value; shape.iter().product()];
        Self { shape, values }
    }
}

/// Format of the numbers in a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// As trained.
    #[default]
    F32,
    /// Half the size; values are rounded to 11 bits, so the posterior drift must be measured and
    /// stated.
    F16,
}

/// Weights by state-dict name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Weights(pub BTreeMap<String, HostTensor>);

impl Weights {
    /// Removes and returns one array, checking its shape.
    ///
    /// # Errors
    /// A sentence that names the array, the shape found and the shape needed.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let tensor = self.0.remove(name).ok_or_else(|| format!("array '{name}' is missing"))?;
        if tensor.shape == shape {
            Ok(tensor.values)
        } else {
            Err(format!("array '{name}' has shape {:?}, not {shape:?}", tensor.shape))
        }
    }

    /// The shape of one array.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.0.get(name).map(|tensor| tensor.shape.as_slice())
    }

    /// The name of the first array that holds a NaN or an infinity.
    pub fn first_non_finite(&self) -> Option<&str> {
        let broken = |t: &HostTensor| t.values.iter().any(|v| !v.is_finite());
        self.0.iter().find(|(_, t)| broken(t)).map(|(name, _)| name.as_str())
    }

    /// Reads all arrays of a `.safetensors` file or a PyTorch checkpoint. [`WeightFile`] reads only
    /// what is wanted.
    ///
    /// # Errors
    /// As [`WeightFile::open`] and [`WeightFile::take`].
    pub fn read(path: &Path) -> Result<Self> {
        WeightFile::open(path)?.into_weights(|_| true, &mut |_| ControlFlow::Continue(()))
    }

    fn all_finite(self, path: &Path) -> Result<Self> {
        match self.first_non_finite() {
            Some(name) => Err(Error::file(path, format!("array '{name}' holds NaN or infinity"))),
            None => Ok(self),
        }
    }

    /// Reads a safetensors file that is already in memory; `path` is its name in messages.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_safetensors(path: &Path, bytes: &[u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes)
            .map_err(|e| Error::file(path, format!("not a safetensors file, or cut short: {e}")))?;
        let mut weights = BTreeMap::new();
        for (name, view) in file.iter() {
            let Some(number) = safetensors::number(view.dtype()) else { continue };
            let mut values = Vec::with_capacity(view.shape().iter().product());
            number.decode(view.data(), &mut values);
            weights.insert(name.to_owned(), HostTensor::new(view.shape(), values));
        }
        Self(weights).all_finite(path)
    }

    /// The bytes of a safetensors file: a pure function of names, values and storage.
    ///
    /// # Errors
    /// Only if a shape and its values disagree.
    pub fn to_safetensors(&self, storage: Storage) -> Result<Vec<u8>> {
        let dtype = match storage {
            Storage::F32 => Dtype::F32,
            Storage::F16 => Dtype::F16,
        };
        let encoded: Vec<(&str, &[usize], Vec<u8>)> = self
            .0
            .iter()
            .map(|(name, t)| {
                let bytes = match storage {
                    Storage::F32 => t.values.iter().flat_map(|v| v.to_le_bytes()).collect(),
                    Storage::F16 => t.values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect(),
                };
                (name.as_str(), t.shape.as_slice(), bytes)
            })
            .collect();
        let views: Result<Vec<_>, _> = encoded
            .iter()
            .map(|(name, shape, bytes)| Ok((*name, TensorView::new(dtype, shape.to_vec(), bytes)?)))
            .collect();
        views
            .and_then(|views| ::safetensors::serialize(views, None))
            .map_err(|e| Error::Numeric(format!("weights cannot be written: {e}")))
    }

    /// Writes a safetensors file atomically.
    ///
    /// # Errors
    /// Names the file.
    pub fn write(&self, path: &Path, storage: Storage) -> Result<()> {
        let bytes = self.to_safetensors(storage)?;
        write_atomically(path, |file| file.write_all(&bytes))
    }

    /// These weights as they are after being stored.
    #[must_use]
    pub fn rounded(mut self, storage: Storage) -> Self {
        if storage == Storage::F16 {
            let values = self.0.values_mut().flat_map(|t| &mut t.values);
            values.for_each(|v| *v = f16::from_f32(*v).to_f32());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_reads_back_and_is_the_same_every_time() {
        let mut weights = Weights::default();
        weights.0.insert("b.weight".into(), HostTensor::new([2, 2], vec![1.0, -2.5, 1e-3, 0.1]));
        weights.0.insert("a".into(), HostTensor::full([3], 0.3));
        let folder = tempfile::tempdir().unwrap();
        for storage in [Storage::F32, Storage::F16] {
            let path = folder.path().join("w.safetensors");
            weights.write(&path, storage).unwrap();
            assert_eq!(Weights::read(&path).unwrap(), weights.clone().rounded(storage));
            assert_eq!(std::fs::read(&path).unwrap(), weights.to_safetensors(storage).unwrap());
        }
    }

    #[test]
    fn broken_files_are_refused_with_their_name() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in
            [("x.safetensors", &b"\xff\xff\xff\xff\xff\xff\xff\x7fnothing"[..]), ("y.pth", b"no pickle")]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let message = Weights::read(&path).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
        // A header whose names alone would take a hundred megabytes is refused unread: the file need not have it.
        let path = folder.path().join("z.safetensors");
        for (more, why) in [(0, "cut short"), (1, "its header has")] {
            let length = safetensors::LONGEST + more;
            std::fs::write(&path, [&length.to_le_bytes()[..], b"{"].concat()).unwrap();
            let message = Weights::read(&path).unwrap_err().to_string();
            assert!(message.contains("z.safetensors") && message.contains(why), "{message}");
        }
        let mut weights = Weights::default();
        weights.0.insert("nan".into(), HostTensor::full([2], f32::NAN));
        let path = folder.path().join("nan.safetensors");
        weights.write(&path, Storage::F32).unwrap();
        assert!(Weights::read(&path).unwrap_err().to_string().contains("'nan' holds NaN"));
    }
}
