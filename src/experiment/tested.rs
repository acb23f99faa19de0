//! A finished classifier's figures on every test image, beside its result: laws resample the
//! images.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::images::Images;
use crate::data::{Column, Stored, read_rows, write_table};
use crate::error::{Error, Result};
use crate::measure::{Measured, PerImage};
use crate::parallel;

/// Name of the file in the cell's folder: arrays `image` int64, `kl` and `nll` float64, [N] each.
pub const TESTED_FILE: &str = "images.npz";

/// Relative difference allowed between the mean of the stored KL and the result's: another order of
/// summing.
const SAME: f64 = 1e-6;

/// What a classifier scored on each test image.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// The first 48 bits of a hash of each image, its label and its posterior: which images they
    /// were.
    pub image: Vec<f64>,
    /// KL(p‖q), nats, ≥ 0.
    pub kl: Vec<f64>,
    /// −log q(drawn label), nats.
    pub nll: Vec<f64>,
}

impl Tested {
    /// The figures of all of `test`.
    pub fn of(figures: &PerImage, test: &Images) -> Self {
        let image = parallel::map(figures.len(), |i| mark(test, i));
        // Rounding of its sum can leave a KL below 0.
        let kl = figures.kl.iter().map(|kl| kl.max(0.0)).collect();
        Self { image, kl, nll: figures.nll.clone() }
    }

    /// Writes the file into a cell's folder, atomically; same content, same bytes.
    ///
    /// # Errors
    /// Names the file.
    pub fn write(&self, cell: &Path) -> Result<()> {
        let column = |(name, stored)| Column { name, stored, shape: Vec::new() };
        let columns = [("image", Stored::I64), ("kl", Stored::F64), ("nll", Stored::F64)].map(column);
        let arrays = [&self.image, &self.kl, &self.nll];
        write_table(&cell.join(TESTED_FILE), self.image.len(), &columns, &mut |at, rows| Ok(arrays[at][rows].to_vec()))
    }

    /// Reads the file from the folder of a cell with these figures; `None` where an older version
    /// measured it.
    ///
    /// # Errors
    /// Names a file that is there and damaged, or belongs to other figures; says what helps.
    pub fn read(cell: &Path, measured: &Measured) -> Result<Option<Self>> {
        let path = cell.join(TESTED_FILE);
        if !path.exists() {
            return Ok(None);
        }
        let way_out = "remove it, and laws take the error of the test images for one of all runs";
        let read = |name| {
            read_rows(&path, name, measured.n).map_err(|error| match error {
                Error::File { cause, .. } => Error::file(&path, format!("{cause}; {way_out}")),
                other => other,
            })
        };
        let tested = Self { image: read("image")?, kl: read("kl")?, nll: read("nll")? };
        let (mean, told) = (tested.kl.iter().sum::<f64>() / measured.n.max(1) as f64, measured.epistemic.value);
        let sound = tested.kl.iter().all(|kl| *kl >= 0.0) && (mean - told).abs() <= SAME * told.abs() + f64::EPSILON;
        match sound {
            true => Ok(Some(tested)),
            false => {
                Err(Error::file(&path, format!("has a mean KL of {mean} nats, its cell's result {told}; {way_out}")))
            }
        }
    }
}

/// What tells a test image from others, a whole number that float64 holds.
fn mark(test: &Images, i: usize) -> f64 {
    let (dims, k) = (test.shape.dims(), test.classes);
    let mut hash = Sha256::new();
    hash.update((test.all.labels[i] as u64).to_le_bytes());
    hash.update(test.all.posterior[i * k..(i + 1) * k].iter().flat_map(|p| p.to_le_bytes()).collect::<Vec<u8>>());
    hash.update(test.all.x[i * dims..(i + 1) * dims].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
    hash.finalize()[..6].iter().fold(0.0, |mark, &byte| 256.0 * mark + f64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::experiment::Batch;
    use crate::measure::Bootstrap;
    use crate::units::Seed;

    fn test_images(n: usize) -> Images {
        let posterior = (0..n).flat_map(|i| [1.0 / (i + 2) as f64, 1.0 - 1.0 / (i + 2) as f64]).collect();
        let all = Batch { x: vec![0.5; n], labels: (0..n).map(|i| i % 2).collect(), posterior };
        Images { shape: ImageShape { channels: 1, height: 1, width: 1 }, classes: 2, all }
    }

    fn figures(test: &Images) -> PerImage {
        let mut figures = PerImage::new(2).unwrap();
        figures.extend(&test.all.posterior, &vec![0.5_f64.ln(); 2 * test.len()], &test.all.labels).unwrap();
        figures
    }

    #[test]
    fn a_file_comes_back_to_the_bit_and_another_cells_is_refused() {
        let (folder, test) = (tempfile::tempdir().unwrap(), test_images(300));
        let figures = figures(&test);
        let measured = figures.measured(&Bootstrap::new(Seed(0))).unwrap();
        assert_eq!(Tested::read(folder.path(), &measured).unwrap(), None);
        let tested = Tested::of(&figures, &test);
        let written = || {
            tested.write(folder.path()).unwrap();
            std::fs::read(folder.path().join(TESTED_FILE)).unwrap()
        };
        assert_eq!(written(), written());
        assert_eq!(Tested::read(folder.path(), &measured).unwrap(), Some(tested.clone()));
        let refused = |measured: &Measured| Tested::read(folder.path(), measured).unwrap_err().to_string();
        assert!(refused(&Measured { n: 299, ..measured.clone() }).contains("remove it"));
        let mut other = measured.clone();
        other.epistemic.value *= 1.01;
        assert!(refused(&other).contains("mean KL"));
        let bytes = written();
        crate::data::write_atomically(&folder.path().join(TESTED_FILE), |file| file.write_all(&bytes[..900])).unwrap();
        assert!(refused(&measured).contains("remove it"));
    }

    #[test]
    fn marks_tell_images_labels_and_posteriors_apart() {
        let test = test_images(8);
        let marks = |test: &Images| (0..8).map(|i| mark(test, i)).collect::<Vec<f64>>();
        let all = marks(&test);
        assert!(all.iter().enumerate().all(|(i, mark)| !all[..i].contains(mark) && mark.fract() == 0.0));
        let changed = |change: fn(&mut Batch)| {
            let mut other = test.clone();
            change(&mut other.all);
            marks(&other).iter().zip(&all).filter(|(a, b)| a != b).count()
        };
        assert_eq!(changed(|_| ()), 0);
        assert_eq!(
            [changed(|b| b.x[3] += 1e-3), changed(|b| b.labels[3] = 7), changed(|b| b.posterior[7] = 0.0)],
            [1; 3]
        );
    }
}
