//! How a classifier is trained: one table of a spec, saved with its results.

use serde::{Deserialize, Serialize};

use crate::device::Products;
use crate::error::{Error, Result};

/// What a classifier is told about an image's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// The label drawn with the image, as a real dataset has it.
    #[default]
    Drawn,
    /// The whole exact posterior p(y|x) (BLC §4.2, soft labels).
    Posterior,
    /// The class of largest posterior (BLC §4.2, its one-hot baseline).
    Argmax,
    /// The drawn label with ε of its weight spread evenly over all classes (Szegedy et al. 2016, label smoothing).
    Smoothed,
}

impl Labels {
    /// Its name in files, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drawn => "drawn",
            Self::Posterior => "posterior",
            Self::Argmax => "argmax",
            Self::Smoothed => "smoothed",
        }
    }

    /// Whether they are made of exact posteriors.
    pub fn ask_the_world(self) -> bool {
        matches!(self, Self::Posterior | Self::Argmax)
    }

    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Drawn => "drawn labels",
            Self::Posterior => "exact posteriors",
            Self::Argmax => "most probable classes",
            Self::Smoothed => "smoothed labels",
        }
    }
}

/// What moves the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Adam with decoupled weight decay (Loshchilov & Hutter 2019), PyTorch's constants.
    #[default]
    AdamW,
    /// Stochastic gradient descent with momentum.
    Sgd,
}

/// How images are scaled before they enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// As they are in the world.
    AsIs,
    /// Every channel with mean 0 and standard deviation 1 over the training images.
    #[default]
    Standard,
    /// ImageNet's means and standard deviations, of values between 0 and 1, as BLC does and torchvision's weights expect.
    Imagenet,
}

/// ImageNet's means and standard deviations of red, green and blue between 0 and 1, as torchvision's weights expect them.
pub(super) const IMAGENET: [[f64; 3]; 2] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];

/// Training of a classifier. Defaults are BLC's settings (App. G).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingSpec {
    /// Passes over the training images.
    pub epochs: usize,
    /// Images in one step, at most: an epoch is cut into steps of nearly equal size.
    pub batch: usize,
    /// What moves the parameters.
    pub optimizer: Optimizer,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Momentum of SGD.
    pub momentum: f64,
    /// Weight decay: decoupled in AdamW, part of the gradient in SGD.
    pub weight_decay: f64,
    /// Share of all steps over which the learning rate rises linearly.
    pub warm_up: f64,
    /// Share of the peak at which the cosine decay ends.
    pub final_rate: f64,
    /// The global gradient norm is clipped to this; 0 switches clipping off.
    pub max_grad_norm: f64,
    /// Images are moved by up to so many pixels in each direction, anew in every epoch. A moved image has another posterior: off
    /// by default.
    pub shift: usize,
    /// Images are mirrored left to right by chance. Off by default, for the same reason.
    pub mirror: bool,
    /// How images are scaled before they enter.
    pub input: Normalisation,
    /// Side to which images are first scaled, bilinearly, for networks that need large ones; as they are, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<usize>,
    /// Format of the products of convolutions and linear maps.
    pub products: Products,
    /// ε of smoothed labels. Not written where it is the usual 0.1, so that cells of older runs keep their names.
    #[serde(skip_serializing_if = "is_usual")]
    pub label_smoothing: f64,
    /// Pieces a batch is cut into that run side by side: the cores of a CPU, 1 on a GPU. Part of the spec because batch
    /// normalisation sees one piece at a time and sums in another order round differently.
    pub shards: usize,
}

/// The ε of Szegedy et al. (2016).
const LABEL_SMOOTHING: f64 = 0.1;

fn is_usual(smoothing: &f64) -> bool {
    *smoothing == LABEL_SMOOTHING
}

impl Default for TrainingSpec {
    fn default() -> Self {
        Self {
            epochs: 40,
            batch: 32,
            optimizer: Optimizer::AdamW,
            learning_rate: 1e-4,
            momentum: 0.9,
            weight_decay: 0.01,
            warm_up: 0.0,
            final_rate: 0.0,
            max_grad_norm: 0.0,
            shift: 0,
            mirror: false,
            input: Normalisation::Standard,
            resize: None,
            products: Products::F32,
            label_smoothing: LABEL_SMOOTHING,
            shards: 1,
        }
    }
}

impl TrainingSpec {
    /// Whether training can start.
    ///
    /// # Errors
    /// Says which number is wrong.
    pub fn validate(&self) -> Result<()> {
        let share = |v: f64| (0.0..=1.0).contains(&v);
        let checks = [
            (self.epochs > 0, "training.epochs must be at least 1"),
            (self.batch > 0, "training.batch must be at least 1"),
            (self.shards > 0, "training.shards must be at least 1"),
            (self.learning_rate > 0.0 && self.learning_rate.is_finite(), "training.learning_rate must be a number > 0"),
            ((0.0..1.0).contains(&self.momentum), "training.momentum must lie in [0, 1)"),
            (self.weight_decay >= 0.0 && self.weight_decay.is_finite(), "training.weight_decay must be a number ≥ 0"),
            (share(self.warm_up), "training.warm_up is a share of all steps, between 0 and 1"),
            (share(self.final_rate), "training.final_rate must lie between 0 and 1"),
            (self.max_grad_norm >= 0.0, "training.max_grad_norm must be ≥ 0"),
            ((0.0..1.0).contains(&self.label_smoothing), "training.label_smoothing must lie in [0, 1)"),
        ];
        match checks.iter().find(|(fine, _)| !fine) {
            Some((_, complaint)) => Err(Error::input(*complaint)),
            None => Ok(()),
        }
    }

    /// Steps of one epoch over `images`.
    pub fn steps(&self, images: usize) -> usize {
        images.div_ceil(self.batch.max(1))
    }

    /// Learning rate of step `step` of `total`, from 0: linear warm-up, then a cosine down to `final_rate` of the peak.
    pub fn rate(&self, step: usize, total: usize) -> f64 {
        let warm_up = (self.warm_up * total as f64).floor();
        let step = step as f64;
        if step < warm_up {
            return self.learning_rate * (step + 1.0) / (warm_up + 1.0);
        }
        let share = (step - warm_up) / (total as f64 - warm_up).max(1.0);
        let fall = 0.5 * (1.0 + (std::f64::consts::PI * share).cos());
        self.learning_rate * (self.final_rate + (1.0 - self.final_rate) * fall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_and_falls_as_told() {
        let spec = TrainingSpec { warm_up: 0.1, final_rate: 0.25, learning_rate: 2.0, ..Default::default() };
        let rates: Vec<f64> = (0..=1000).map(|step| spec.rate(step, 1000)).collect();
        assert!(rates[..=100].is_sorted() && rates[100..].is_sorted_by(|a, b| a >= b));
        assert!((rates[100] - 2.0).abs() < 1e-12 && (rates[1000] - 0.5).abs() < 1e-12);
        // Half way down the cosine is half way between peak and end.
        assert!((rates[550] - 1.25).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let broken = TrainingSpec { momentum: 1.0, ..Default::default() };
        assert!(broken.validate().unwrap_err().to_string().contains("training.momentum"));
        assert!(toml::from_str::<TrainingSpec>("epoch = 3").unwrap_err().to_string().contains("epoch"));
    }
}
