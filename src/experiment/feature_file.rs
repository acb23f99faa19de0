//! Features of a run's training images from another network, in an npz file. Its arrays bear the
//! names of the run's pools: for `pool/train-0-tau-1.npz` there is `train-0-tau-1`, float [rows,
//! D], a row an image in the pool's order, and `train-0-tau-1-y`, integers [rows], the pool's own
//! `y`. The labels prove that the rows belong to these images.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::{Archive, Types, Values, check_memory, sha256_of_file};
use crate::error::{Error, Result};
use crate::events::silent;
use crate::units::ClassId;

/// Most numbers D of an image.
const WIDEST: usize = 65_536;
/// Bytes that a number takes at most while its array is read: float64, twice if in Fortran order,
/// and float32.
const BYTES: u64 = 20;

/// NumPy's types that features may have, without their byte order, and in words.
const NUMBERS: (&[&str], &str) = (&["f2", "f4", "f8"], "features are floating-point numbers of 16, 32 or 64 bits");
/// Likewise of labels.
const INTEGERS: (&[&str], &str) = (&["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"], "labels are integers");

/// A file of features as it was when the run was planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureFile {
    /// Where it lies.
    pub path: PathBuf,
    /// SHA-256 of the file.
    pub sha256: String,
}

impl FeatureFile {
    /// Those of some paths. Each must have the arrays of all `pools`, named, with a row for each of
    /// so many images; their values are read with the cells.
    ///
    /// # Errors
    /// Names the file that cannot be read, and the array that is missing or has another number of
    /// rows.
    pub fn all(paths: &[&Path], pools: &[String], images: usize) -> Result<Vec<Self>> {
        let one = |path: &&Path| {
            let mut archive = Archive::open(path, Types::All)?;
            for pool in pools {
                columns(path, &mut archive, pool, images)?;
            }
            Ok(Self { path: path.to_path_buf(), sha256: sha256_of_file(path, &mut silent())? })
        };
        paths.iter().map(one).collect()
    }

    /// Features [N, D] of the first N images of a pool of so many, whose labels are given, and D.
    ///
    /// # Errors
    /// Names the file and what is wrong with it: changed since the run was planned, labels of other
    /// images, numbers that are not finite, more than there is memory for.
    pub fn read(&self, (pool, images): (&str, usize), labels: &[ClassId]) -> Result<(Vec<f32>, usize)> {
        let path = self.path.as_path();
        let bad = |cause: String| Error::file(path, cause);
        if sha256_of_file(path, &mut silent())? != self.sha256 {
            return Err(
                bad("is not what this run was planned with; put the old file back, or plan another run".into()),
            );
        }
        let mut archive = Archive::open(path, Types::All)?;
        let dim = columns(path, &mut archive, pool, images)?;
        let bytes = BYTES * images as u64 * dim as u64;
        check_memory("its features", bytes, "write fewer columns").map_err(|e| bad(format!("array {pool}: {e}")))?;
        check_labels(path, &mut archive, pool, labels)?;
        let mut x = match archive.require(pool)?.values {
            Values::F32(values) => values,
            other => {
                let values = other.floats().ok_or_else(|| bad(format!("array {pool}: {}", NUMBERS.1)))?;
                values.into_iter().map(|v| v as f32).collect()
            }
        };
        if let Some(at) = x.iter().position(|v| !v.is_finite()) {
            let (image, column, value) = (at / dim, at % dim, x[at]);
            return Err(bad(format!(
                "array {pool}: number {column} of image {image} is {value}, not finite in 32 bits"
            )));
        }
        x.truncate(labels.len() * dim);
        Ok((x, dim))
    }
}

/// Name of the labels beside the features of a pool.
fn labels_of(pool: &str) -> String {
    format!("{pool}-y")
}

/// Numbers D of an image, where both arrays of a pool have a row for each image; read from the
/// headers.
fn columns(path: &Path, archive: &mut Archive<'_>, pool: &str, images: usize) -> Result<usize> {
    let mut told = |name: &str, (types, words): (&[&str], &str)| {
        let bad = |cause: String| Error::file(path, format!("array {name}: {cause}"));
        let missing = || bad(format!("missing; it has a row for each of the {images} images of pool/{pool}.npz"));
        let (shape, descr) = archive.shape(name)?.ok_or_else(missing)?;
        // Before anything is read: a string can be as long as its header says, and a run that is planned can be carried out.
        match descr.get(1..).is_some_and(|kind| types.contains(&kind)) {
            true => Ok(shape),
            false => Err(bad(format!("type {descr}; {words}"))),
        }
    };
    let refused = |name: &str, found: &[usize], expected: String| {
        let why =
            format!("array {name}: shape {found:?}; expected {expected}: a row for each image of pool/{pool}.npz");
        Err(Error::file(path, why))
    };
    let (labels, found) = (labels_of(pool), told(pool, NUMBERS)?);
    let dim = match found[..] {
        [rows, dim @ 1..=WIDEST] if rows == images => dim,
        _ => return refused(pool, &found, format!("[{images}, D], D from 1 to {WIDEST}")),
    };
    match told(&labels, INTEGERS)? {
        found if found == [images] => Ok(dim),
        found => refused(&labels, &found, format!("[{images}]")),
    }
}

/// Whether the rows belong to the images of these labels, the first of a pool.
fn check_labels(path: &Path, archive: &mut Archive<'_>, pool: &str, labels: &[ClassId]) -> Result<()> {
    let name = labels_of(pool);
    let bad = |cause: String| Error::file(path, format!("array {name}: {cause}"));
    let told = archive.require(&name)?.values.integers().ok_or_else(|| bad(INTEGERS.1.into()))?;
    let other = |(told, label): (&i64, &ClassId)| usize::try_from(*told) != Ok(*label);
    match told.iter().zip(labels).position(other) {
        None => Ok(()),
        Some(at) => Err(bad(format!(
            "image {at} has label {}, and {} in pool/{pool}.npz: these are rows of other images, or in another order",
            told[at], labels[at]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Column, Stored, write_table};

    const POOL: &str = "train-0-tau-1";
    const LABELS: [ClassId; 3] = [1, 0, 1];

    /// Writes features [rows, 2] and the labels of the pool.
    fn write(path: &Path, features: &[f64]) {
        let labels = labels_of(POOL);
        let columns = [
            Column { name: POOL, stored: Stored::F32, shape: vec![2] },
            Column { name: &labels, stored: Stored::I64, shape: Vec::new() },
        ];
        let rows = features.len() / 2;
        write_table(path, rows, &columns, &mut |column, range| {
            Ok(match column {
                0 => features[2 * range.start..2 * range.end].to_vec(),
                _ => LABELS[range].iter().map(|&label| label as f64).collect(),
            })
        })
        .unwrap();
    }

    fn planned(path: &Path) -> FeatureFile {
        FeatureFile { path: path.to_owned(), sha256: sha256_of_file(path, &mut silent()).unwrap() }
    }

    #[test]
    fn the_first_rows_of_a_pool_are_read_and_what_does_not_belong_to_it_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("features.npz");
        let whole = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0];
        write(&path, &whole);
        let file = planned(&path);
        assert_eq!(file.read((POOL, 3), &LABELS[..2]).unwrap(), (vec![0.5, 1.0, 1.5, 2.0], 2));
        let refused = |file: &FeatureFile, images: usize, labels: &[ClassId], words: &[&str]| {
            let why = file.read((POOL, images), labels).unwrap_err().to_string();
            assert!(why.contains("features.npz") && words.iter().all(|word| why.contains(word)), "{why}");
            assert!(!why.contains('\n'), "{why}");
        };
        refused(&file, 4, &LABELS, &[POOL, "[3, 2]", "[4, D]"]);
        // Long doubles, which no cell could read, are refused where the run is planned.
        let (wide, mut bytes) = (folder.path().join("wide.npz"), std::fs::read(&path).unwrap());
        let descr = bytes.windows(7).position(|seven| seven == b"'<f4', ").unwrap();
        bytes[descr..descr + 7].copy_from_slice(b"'<f16',");
        std::fs::write(&wide, bytes).unwrap();
        let why = FeatureFile::all(&[&wide], &[POOL.into()], 3).unwrap_err().to_string();
        assert!(why.contains("wide.npz: array train-0-tau-1: type <f16; features are"), "{why}");
        let mut archive = Archive::open(&path, Types::All).unwrap();
        let why = columns(&path, &mut archive, &labels_of(POOL), 3).unwrap_err().to_string();
        assert!(why.contains("features.npz: array train-0-tau-1-y: type <i8; features are"), "{why}");
        refused(&file, 3, &[1, 1, 1], &["train-0-tau-1-y", "image 1 has label 0, and 1"]);
        let why = file.read(("train-1-tau-1", 3), &LABELS).unwrap_err().to_string();
        assert!(why.contains("features.npz") && why.contains("array train-1-tau-1: missing"), "{why}");
        // Of an image that no cell has asked for yet, too.
        write(&path, &[0.5, 1.0, 1.5, 2.0, 2.5, f64::NAN]);
        refused(&file, 3, &LABELS, &["planned with"]);
        refused(&planned(&path), 3, &LABELS[..2], &[POOL, "number 1 of image 2 is NaN"]);
        std::fs::remove_file(&path).unwrap();
        refused(&file, 3, &LABELS, &[]);
    }
}
