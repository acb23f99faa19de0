//! The test images with the largest KL(p‖q) of a finished classifier, kept beside its result.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::images::Images;
use crate::data::write_atomically;
use crate::error::{Error, Result};
use crate::measure::PerImage;
use crate::units::ClassId;

/// Images kept of a cell, at most.
pub const WORST: usize = 64;
/// Name of their file in the cell's folder.
pub const WORST_FILE: &str = "worst.json";

/// The worst test images of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worst {
    /// The cell's ID.
    pub id: String,
    /// Test images there were.
    pub tested: usize,
    /// The worst of them, at most [`WORST`], largest KL first.
    pub images: Vec<WorstImage>,
}

/// What a classifier says of one image, beside the truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorstImage {
    /// Running number among the test images.
    pub image: usize,
    /// KL(p‖q), nats.
    pub kl: f64,
    /// Drawn label.
    pub label: ClassId,
    /// Exact posterior p(y|x), [K].
    pub p: Vec<f64>,
    /// The classifier's q(y|x), [K].
    pub q: Vec<f64>,
}

impl WorstImage {
    /// At most `most` classes, those first that p or q thinks most probable; improbable ones are
    /// left out.
    pub fn leading(&self, most: usize) -> Vec<ClassId> {
        const LEAST: f64 = 5e-3;
        let larger = |class: ClassId| self.p[class].max(self.q[class]);
        let mut classes: Vec<ClassId> = (0..self.p.len().min(self.q.len())).filter(|&k| larger(k) >= LEAST).collect();
        classes.sort_by(|&a, &b| larger(b).total_cmp(&larger(a)));
        classes.truncate(most);
        classes
    }
}

impl Worst {
    /// Writes the file into a cell's folder, atomically; same content, same bytes.
    ///
    /// # Errors
    /// Names the file.
    pub fn write(&self, cell: &Path) -> Result<()> {
        let path = cell.join(WORST_FILE);
        let mut text = serde_json::to_vec(self).map_err(|e| Error::file(&path, e.to_string()))?;
        text.push(b'\n');
        write_atomically(&path, |file| file.write_all(&text))
    }
}

/// Keeps the answers on the images that are the worst so far: all of them would be n·K numbers.
#[derive(Default)]
pub struct Keeper {
    /// log q by running number, [K] each.
    log_q: BTreeMap<usize, Vec<f64>>,
}

impl Keeper {
    /// Looks at the last images of `images`, from `first` on; `log_q` are the answers on them, [n,
    /// K].
    pub fn look(&mut self, images: &PerImage, first: usize, log_q: &[f64]) {
        let worst = images.worst(WORST);
        self.log_q.retain(|image, _| worst.contains(image));
        let k = images.classes;
        for image in worst.into_iter().filter(|image| *image >= first) {
            self.log_q.insert(image, log_q[(image - first) * k..(image - first + 1) * k].to_vec());
        }
    }

    /// The worst of all images, which are those of `test`.
    pub fn finish(mut self, images: &PerImage, test: &Images) -> Vec<WorstImage> {
        let k = images.classes;
        let kept = |image: usize| {
            let q = self.log_q.remove(&image)?.into_iter().map(f64::exp).collect();
            let p = test.all.posterior[image * k..(image + 1) * k].to_vec();
            Some(WorstImage { image, kl: images.kl[image], label: images.label[image], p, q })
        };
        images.worst(WORST).into_iter().filter_map(kept).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::experiment::Batch;

    const K: usize = 3;

    /// Probabilities that differ from image to image; the two ends of the list are equal.
    fn rows(n: usize, power: f64) -> Vec<f64> {
        let row = |i: usize| {
            let weights = [1.0, 1.0 + (i * 37 % n) as f64, 2.0].map(|w: f64| w.powf(power));
            let sum: f64 = weights.iter().sum();
            weights.map(|w| w / sum)
        };
        (0..n).flat_map(row).collect()
    }

    fn test_images(n: usize) -> Images {
        let all = Batch { x: vec![0.0; n], labels: (0..n).map(|i| i % K).collect(), posterior: rows(n, 1.0) };
        Images { shape: ImageShape { channels: 1, height: 1, width: 1 }, classes: K, all }
    }

    #[test]
    fn what_is_kept_piece_by_piece_is_the_worst_of_all() {
        let n = 500;
        let (test, log_q) = (test_images(n), rows(n, -0.5).iter().map(|q| q.ln()).collect::<Vec<f64>>());
        let (mut images, mut keeper) = (PerImage::new(K).unwrap(), Keeper::default());
        for first in (0..n).step_by(97) {
            let (end, range) = (n.min(first + 97), |end: usize| first * K..end * K);
            let piece = &log_q[range(end)];
            images.extend(&test.all.posterior[range(end)], piece, &test.all.labels[first..end]).unwrap();
            keeper.look(&images, first, piece);
            assert!(keeper.log_q.len() <= WORST);
        }
        let worst = keeper.finish(&images, &test);
        let numbers: Vec<usize> = worst.iter().map(|one| one.image).collect();
        assert_eq!(numbers, images.worst(WORST));
        assert!(worst.is_sorted_by(|a, b| a.kl >= b.kl) && worst.len() == WORST);
        for one in &worst {
            let kl: f64 = one.p.iter().zip(&one.q).map(|(p, q)| p * (p / q).ln()).sum();
            assert!((kl - one.kl).abs() < 1e-12 && one.label == one.image % K);
            let again: Vec<f64> = log_q[one.image * K..(one.image + 1) * K].iter().map(|q| q.exp()).collect();
            assert_eq!((&one.p[..], &one.q), (&test.all.posterior[one.image * K..(one.image + 1) * K], &again));
        }
    }

    #[test]
    fn the_file_comes_back_to_the_bit_and_is_the_same_every_time() {
        let folder = tempfile::tempdir().unwrap();
        let image =
            WorstImage { image: 7, kl: 0.1 + 0.2, label: 1, p: vec![f64::MIN_POSITIVE, 1.0], q: vec![1.0, 1e-9] };
        let worst = Worst { id: "a".into(), tested: 9, images: vec![image] };
        let written = || {
            worst.write(folder.path()).unwrap();
            std::fs::read(folder.path().join(WORST_FILE)).unwrap()
        };
        let bytes = written();
        assert_eq!(bytes, written());
        assert_eq!(serde_json::from_slice::<Worst>(&bytes).unwrap(), worst);
    }

    #[test]
    fn leading_classes_are_those_either_side_believes_in() {
        let (p, q) = (vec![0.62, 0.001, 0.3, 0.079], vec![0.03, 0.003, 0.06, 0.907]);
        let image = WorstImage { image: 0, kl: 1.0, label: 0, p, q };
        assert_eq!((image.leading(9), image.leading(2)), (vec![3, 0, 2], vec![3, 0]));
    }
}
