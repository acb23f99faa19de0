//! Named weights on the host: the form in which every checkpoint is read, checked, hashed and written.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use burn::store::pytorch_reader::{DType as PtDType, PytorchReader};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::data::write_atomically;
use crate::error::{Error, Result};

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
    /// Half the size; values are rounded to 11 bits, so the posterior drift must be measured and stated.
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

    /// Reads a `.safetensors` file or any PyTorch checkpoint (zip, legacy, tar). Runs no code of a pickle. Nested
    /// dictionaries give dotted names. Arrays of integers and flags are left out.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self> {
        let is_safetensors = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("safetensors"));
        if is_safetensors {
            let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
            return Self::from_safetensors(path, &bytes);
        }
        Self::read_pytorch(path)?.all_finite(path)
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
            let data = view.data();
            let values = match view.dtype() {
                Dtype::F64 => from_bytes(data, |b: [u8; 8]| f64::from_le_bytes(b) as f32),
                Dtype::F32 => from_bytes(data, f32::from_le_bytes),
                Dtype::F16 => from_bytes(data, |b| f16::from_le_bytes(b).to_f32()),
                Dtype::BF16 => from_bytes(data, |b| bf16::from_le_bytes(b).to_f32()),
                _ => continue,
            };
            weights.insert(name.to_owned(), HostTensor::new(view.shape(), values));
        }
        Self(weights).all_finite(path)
    }

    fn read_pytorch(path: &Path) -> Result<Self> {
        // A missing file is the system's message, not the reader's.
        std::fs::File::open(path).map_err(|e| Error::io(path, e))?;
        // Lives as long as the reader, which opens it again on some systems.
        let mut copy = None;
        let reader = PytorchReader::new(path)
            .or_else(|error| PytorchReader::new(copy.insert(without_zip64_record(path).ok_or(error)?)));
        let reader = reader.map_err(|e| Error::file(path, format!("not a readable PyTorch checkpoint: {e}")))?;
        let mut weights = BTreeMap::new();
        for (name, tensor) in reader.into_tensors() {
            let decode: fn(&[u8]) -> Vec<f32> = match tensor.dtype() {
                PtDType::F64 => |data| from_bytes(data, |b: [u8; 8]| f64::from_ne_bytes(b) as f32),
                PtDType::F32 => |data| from_bytes(data, f32::from_ne_bytes),
                PtDType::F16 => |data| from_bytes(data, |b| f16::from_ne_bytes(b).to_f32()),
                PtDType::BF16 => |data| from_bytes(data, |b| bf16::from_ne_bytes(b).to_f32()),
                _ => continue,
            };
            let bytes = tensor.read().map_err(|e| Error::file(path, format!("array '{name}' cannot be read: {e}")))?;
            weights.insert(name, HostTensor::new(tensor.shape(), decode(&bytes)));
        }
        Ok(Self(weights))
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
            .and_then(|views| safetensors::serialize(views, None))
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

/// A copy of a PyTorch zip file without the zip64 record that PyTorch writes into every file, where that record repeats what
/// the plain one says.
///
/// The zip reader (zip 9.4.1, `find_central_directory_end`) takes the directory to end at the plain record and so looks for its
/// start 76 bytes late. A file whose own name has 21 characters before `.pth` or `.tar` has its second entry exactly there, and
/// is refused as broken.
fn without_zip64_record(path: &Path) -> Option<tempfile::TempPath> {
    // The zip64 record with its locator, and the plain record after it, at the very end of the file.
    const ZIP64: usize = 56 + 20;
    let mut tail = [0; ZIP64 + 22];
    let mut file = std::fs::File::open(path).ok()?;
    let rest = file.metadata().ok()?.len().checked_sub(tail.len() as u64)?;
    file.seek(SeekFrom::Start(rest)).ok()?;
    file.read_exact(&mut tail).ok()?;
    let plain = &tail[ZIP64..];
    // Number of entries, size and offset of the directory are all ones where only the zip64 record knows.
    let unknown = |field: &[u8]| field.iter().all(|byte| *byte == 0xff);
    let repeats = ![&plain[10..12], &plain[12..16], &plain[16..20]].into_iter().any(unknown);
    if !tail.starts_with(b"PK\x06\x06") || !plain.starts_with(b"PK\x05\x06") || !repeats {
        return None;
    }
    let mut copy = tempfile::NamedTempFile::new().ok()?;
    file.rewind().ok()?;
    std::io::copy(&mut file.take(rest), &mut copy).ok()?;
    copy.write_all(plain).ok()?;
    Some(copy.into_temp_path())
}

/// Decodes fixed-size little pieces of `data`.
fn from_bytes<const N: usize>(data: &[u8], decode: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    data.as_chunks::<N>().0.iter().map(|&bytes| decode(bytes)).collect()
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
        let mut weights = Weights::default();
        weights.0.insert("nan".into(), HostTensor::full([2], f32::NAN));
        let path = folder.path().join("nan.safetensors");
        weights.write(&path, Storage::F32).unwrap();
        assert!(Weights::read(&path).unwrap_err().to_string().contains("'nan' holds NaN"));
    }
}
