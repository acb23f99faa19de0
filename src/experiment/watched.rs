//! What is looked at during training: the first test images, with intervals, for they are few.

use serde::{Deserialize, Serialize};

use crate::measure::{Bootstrap, Estimate, NATS, PerImage, SHARE};

/// A classifier in the middle of its training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Steps done.
    pub step: usize,
    /// Epochs done.
    pub epoch: usize,
    /// Mean training loss over the epoch, nats.
    pub train_loss: f64,
    /// Cross-entropy on the watched images, nats.
    pub cross_entropy: f64,
    /// Its aleatoric part: the same for every classifier.
    pub aleatoric: f64,
    /// Its epistemic part.
    pub epistemic: f64,
    /// Expected accuracy Σ_i p_i(argmax q_i)/n.
    pub expected_accuracy: f64,
    /// Of these four; absent where a single image is watched, and in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_widths: Option<HalfWidths>,
}

/// Half the widths of Student's 95 % intervals of what is watched; those of the aleatoric part and of the expected accuracy
/// hold what images in doubt, or decided rightly, that were not seen may add, at the end where that is more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HalfWidths {
    /// Of the cross-entropy, nats.
    pub cross_entropy: f64,
    /// Of the aleatoric part, nats.
    pub aleatoric: f64,
    /// Of the epistemic part, nats.
    pub epistemic: f64,
    /// Of the expected accuracy.
    pub expected_accuracy: f64,
}

impl Watched {
    /// After so many steps and epochs, the last of them with a mean training loss.
    pub fn of(images: &PerImage, step: usize, epoch: usize, train_loss: f64) -> Self {
        let of = |values: &[f64], seen: Option<usize>, range: [f64; 2]| {
            let Estimate { value, interval } = Bootstrap::quick_mean(values, seen, range);
            (value, (value - interval.low).max(interval.high - value))
        };
        let ([of_class, of_decision], entropies) = (images.in_doubt(), [0.0, (images.classes as f64).ln()]);
        let (cross_entropy, epistemic) = (of(&images.cross_entropy, None, NATS), of(&images.kl, None, NATS));
        let aleatoric = of(&images.entropy, Some(of_class), entropies);
        let expected_accuracy = of(&images.expected, Some(of_decision), SHARE);
        let half_widths = HalfWidths {
            cross_entropy: cross_entropy.1,
            aleatoric: aleatoric.1,
            epistemic: epistemic.1,
            expected_accuracy: expected_accuracy.1,
        };
        Self {
            step,
            epoch,
            train_loss,
            cross_entropy: cross_entropy.0,
            aleatoric: aleatoric.0,
            epistemic: epistemic.0,
            expected_accuracy: expected_accuracy.0,
            half_widths: (images.len() > 1).then_some(half_widths),
        }
    }

    /// Value and, where known, 95 % interval of the cross-entropy.
    pub fn cross_entropy(&self) -> (f64, Option<[f64; 2]>) {
        (self.cross_entropy, around(self.cross_entropy, self.half_widths.map(|half| half.cross_entropy)))
    }

    /// The aleatoric part, nats, with its 95 % interval where one is known.
    pub fn aleatoric(&self) -> (f64, Option<[f64; 2]>) {
        (self.aleatoric, around(self.aleatoric, self.half_widths.map(|half| half.aleatoric)))
    }

    /// The epistemic part, nats, with its 95 % interval where one is known.
    pub fn epistemic(&self) -> (f64, Option<[f64; 2]>) {
        (self.epistemic, around(self.epistemic, self.half_widths.map(|half| half.epistemic)))
    }
}

/// None of the three can be negative.
fn around(value: f64, half: Option<f64>) -> Option<[f64; 2]> {
    half.map(|half| [(value - half).max(0.0), value + half])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_images_without_doubt_say_what_they_do_not_show() {
        let mut images = PerImage::new(2).unwrap();
        let p: Vec<f64> = [1.0 - 1e-9, 1e-9].repeat(60);
        images.extend(&p, &p.iter().map(|p| p.ln()).collect::<Vec<_>>(), &[0; 60]).unwrap();
        let half = Watched::of(&images, 1, 1, 0.0).half_widths.unwrap();
        // 3 of 60 images may be at the other end; KL has no bound to tell that by.
        assert!((half.expected_accuracy - 0.05).abs() < 1e-6, "{half:?}");
        assert!((half.aleatoric - 0.05 * 2f64.ln()).abs() < 1e-6 && half.epistemic < 1e-6, "{half:?}");
    }
}
