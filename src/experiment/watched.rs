//! What is looked at during training: the first test images, with intervals, for they are few.

use serde::{Deserialize, Serialize};

use crate::measure::{PerImage, student_mean};

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

/// Half the widths of Student's 95 % intervals of what is watched.
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
        let [cross_entropy, aleatoric, epistemic, expected_accuracy] =
            [&images.cross_entropy, &images.entropy, &images.kl, &images.expected].map(|values| student_mean(values));
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
