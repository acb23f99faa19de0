//! What a validation has already computed, piece by piece in its folder. What depends on more than the ticket says (the corpus, a file of
//! weights) has the hash of that in its name: a corpus that changes between a stop and the next start is not mixed with what it was.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ValidateSpec;
use crate::data::{Column, Stored, is_vacant, read_array, read_bytes, write_atomically, write_table};
use crate::error::{Error, Result};
use crate::oracle::folder::sha256;

/// What was asked for, in the folder from the first moment on.
const TICKET: &str = "validate.json";
/// Where pieces lie.
const PARTS: &str = ".parts";

/// What the folder was begun with: another validation does not go on in it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Ticket {
    weights_sha256: String,
    spec: ValidateSpec,
}

/// The store; keeps nothing where there is no folder.
#[derive(Debug)]
pub struct Kept(Option<PathBuf>);

impl Kept {
    /// Takes the folder: a new one, or one in which this very validation was begun.
    ///
    /// # Errors
    /// When it holds something else, or cannot be written.
    pub fn begin(folder: Option<&Path>, spec: &ValidateSpec, weights_sha256: &str) -> Result<Self> {
        let Some(folder) = folder else { return Ok(Self(None)) };
        let ticket = Ticket { weights_sha256: weights_sha256.to_owned(), spec: spec.clone() };
        let path = folder.join(TICKET);
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        if path.is_file() {
            let text = read_bytes(&path).map_err(|e| Error::io(&path, e))?;
            let found: Ticket = serde_json::from_slice(&text).map_err(|e| Error::file(&path, e.to_string()))?;
            if found != ticket {
                return Err(Error::file(folder, "holds another validation; choose another folder, or delete this one"));
            }
        } else {
            if !is_vacant(folder, PARTS)? {
                return Err(Error::file(folder, "is not empty; choose a new folder for the validation"));
            }
            let text = serde_json::to_vec_pretty(&ticket).map_err(|e| Error::file(&path, e.to_string()))?;
            write_atomically(&path, |out| out.write_all(&text))?;
        }
        let parts = folder.join(PARTS);
        std::fs::create_dir_all(&parts).map_err(|e| Error::io(&parts, e))?;
        Ok(Self(Some(parts)))
    }

    /// Where a file of that name is kept.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.as_ref().map(|parts| parts.join(name))
    }

    /// What can be written as JSON, computed where it is not there yet or cannot be read.
    ///
    /// # Errors
    /// What `compute` returns, and those of the disk.
    pub fn value<T: Serialize + DeserializeOwned>(&self, name: &str, compute: impl FnOnce() -> Result<T>) -> Result<T> {
        let Some(path) = self.path(name) else { return compute() };
        if let Ok(text) = read_bytes(&path)
            && let Ok(kept) = serde_json::from_slice(&text)
        {
            return Ok(kept);
        }
        let value = compute()?;
        let text = serde_json::to_vec(&value).map_err(|e| Error::file(&path, e.to_string()))?;
        write_atomically(&path, |out| out.write_all(&text))?;
        Ok(value)
    }

    /// A piece of `rows` rows with two arrays of these widths, float32 and float64, computed where it is not there yet. A piece that
    /// cannot be read, or is of another size, is computed again.
    ///
    /// # Errors
    /// What `compute` returns, and those of the disk.
    pub fn piece(
        &self,
        name: &str,
        (rows, [wide_a, wide_b]): (usize, [usize; 2]),
        compute: impl FnOnce() -> Result<(Vec<f32>, Vec<f64>)>,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let Some(path) = self.path(name) else { return compute() };
        if path.is_file()
            && let (Ok(a), Ok(b)) = (read_array(&path, "a"), read_array(&path, "b"))
            && (a.len(), b.len()) == (rows * wide_a, rows * wide_b)
        {
            return Ok((a.into_iter().map(|v| v as f32).collect(), b));
        }
        let (a, b) = compute()?;
        let column = |name, stored, width: usize| Column { name, stored, shape: vec![width] };
        let columns = [column("a", Stored::F32, wide_a), column("b", Stored::F64, wide_b)];
        write_table(&path, rows, &columns, &mut |column, rows| {
            Ok(match column {
                0 => a[rows.start * wide_a..rows.end * wide_a].iter().map(|&v| f64::from(v)).collect(),
                _ => b[rows.start * wide_b..rows.end * wide_b].to_vec(),
            })
        })?;
        Ok((a, b))
    }
}

/// Takes away what was kept for the case of a stop.
///
/// # Errors
/// Names the folder that cannot be removed.
pub fn clear(folder: &Path) -> Result<()> {
    let parts = folder.join(PARTS);
    match std::fs::remove_dir_all(&parts) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&parts, e)),
        _ => Ok(()),
    }
}

/// A name for what follows from these bytes.
pub fn fingerprint(of: &[&[u8]]) -> String {
    sha256(&of.concat())[..16].to_owned()
}
