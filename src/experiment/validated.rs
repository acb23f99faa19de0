//! A classifier between epochs on held-out labels, beside its exact KL: what a rule of stopping
//! sees, and what it does not.

use serde::{Deserialize, Serialize};

use super::blocks::{Blocks, PairedFigure};
use super::images::Images;
use crate::error::Result;
use crate::measure::{EceEstimator, PerImage};
use crate::stats::mean_and_error;

/// Held-out images, of whose labels the first n are looked at.
#[derive(Clone, Copy)]
pub(super) struct Validation<'a> {
    /// At least as many as the largest n.
    pub images: &'a Images,
    /// Numbers n of labels.
    pub labels: &'a [usize],
}

/// A classifier after an epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Validated {
    /// Epochs done.
    pub epoch: usize,
    /// mean KL(p‖q) of all test images, nats.
    pub epistemic: f64,
    /// The same over blocks of these images; absent in cells of a version before 2026-11-26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// What n labels say, in the order asked for.
    pub seen: Vec<Seen>,
}

/// What the first n held-out labels say of a classifier.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Labels.
    pub n: usize,
    /// mean −log q(label), nats.
    pub loss: f64,
    /// Share of them that is found.
    pub accuracy: f64,
    /// Expected calibration error, 15 bins of equal width.
    pub ece: f64,
}

impl Validated {
    /// KL(p‖q) of the test images, and of their blocks.
    pub(super) fn kl(&self) -> PairedFigure<'_> {
        PairedFigure { value: self.epistemic, blocks: self.blocks.as_ref(), images: None }
    }

    /// From its figures on the held-out images and on the test images.
    ///
    /// # Errors
    /// When there is no held-out image, or n is 0.
    pub(super) fn of(epoch: usize, held: &PerImage, labels: &[usize], test: &PerImage) -> Result<Self> {
        let hits: Vec<f64> = (0..held.len()).map(|i| f64::from(u8::from(held.hit(i)))).collect();
        let seen = |&n: &usize| -> Result<Seen> {
            let first = |values: &[f64]| values[..n.min(values.len())].to_vec();
            let (confidence, hits) = (first(&held.confidence), first(&hits));
            let ece = EceEstimator::Width(15).estimate(&confidence, &hits)?;
            Ok(Seen { n, loss: mean_and_error(&first(&held.nll)).0, accuracy: mean_and_error(&hits).0, ece })
        };
        let seen = labels.iter().map(seen).collect::<Result<_>>()?;
        Ok(Self { epoch, epistemic: mean_and_error(&test.kl).0, blocks: Some(Blocks::of(&test.kl)), seen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_labels_say_what_their_images_alone_would() {
        let of = |n: usize| {
            let p: Vec<f64> = (0..n).flat_map(|i| [0.2 + 0.05 * i as f64, 0.8 - 0.05 * i as f64]).collect();
            let log_q: Vec<f64> =
                (0..n).flat_map(|i| [0.9f64.ln(), 0.1f64.ln()].map(|q| q / (1.0 + i as f64))).collect();
            let mut images = PerImage::new(2).unwrap();
            let log_q = crate::measure::log_softmax(&log_q, 2);
            images.extend(&p, &log_q, &(0..n).map(|i| i % 2).collect::<Vec<_>>()).unwrap();
            images
        };
        let (all, few) = (of(9), of(4));
        let found = Validated::of(3, &all, &[4, 9], &all).unwrap();
        let alone = Validated::of(3, &few, &[4], &all).unwrap();
        assert_eq!((found.epoch, found.epistemic, found.seen[0]), (3, alone.epistemic, alone.seen[0]));
        assert_eq!((found.seen[0].accuracy, found.seen[1].n), (0.5, 9));
        assert!((found.epistemic - all.kl.iter().sum::<f64>() / 9.0).abs() < 1e-15);
    }
}
