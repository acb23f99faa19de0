//! What is drawn from a world, and what of it is known.

use burn::tensor::Tensor;
use rand::distr::{Distribution, StandardUniform};
use serde::{Deserialize, Serialize};

use crate::data::{ImageShape, WorldBatch};
use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::{Posterior, Prior};
use crate::units::{ClassId, Seed, Smoothing, Tau};

/// The knobs of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Base temperature τ.
    pub tau: Tau,
    /// Posterior smoothing T.
    pub smoothing: Smoothing,
    /// Class prior π.
    pub prior: Prior,
    /// What the labels are drawn by; of none they are the classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_noise: Option<LabelNoise>,
}

/// What the labels of a world depend on besides its images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelLaw {
    /// Class prior π.
    pub prior: Prior,
    /// Posterior smoothing T; where none is named, 1.
    #[serde(default = "unsmoothed", skip_serializing_if = "is_unsmoothed")]
    pub smoothing: Smoothing,
    /// What the labels are drawn by; of none they are the classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_noise: Option<LabelNoise>,
}

fn unsmoothed() -> Smoothing {
    Smoothing::ONE
}

fn is_unsmoothed(smoothing: &Smoothing) -> bool {
    *smoothing == Smoothing::ONE
}

impl LabelLaw {
    /// Whether a label is the class its image was drawn from: T = 1, no label noise.
    pub fn labels_are_classes(&self) -> bool {
        is_unsmoothed(&self.smoothing) && self.label_noise.is_none()
    }

    /// Law of the labels at T = 1: π, and π~ = Cᵀπ under label noise.
    ///
    /// # Errors
    /// When the label noise does not fit the prior.
    pub fn labels(&self) -> Result<Prior> {
        let Some(noise) = &self.label_noise else { return Ok(self.prior.clone()) };
        noise.check(self.prior.classes())?;
        Prior::new(&noise.prior(&self.prior))
    }

    /// No Bayes error is larger, whatever τ is: at T = 1 that of guessing, 1 − max π~; else 1 − 1/K, because the law of labels
    /// drawn from p_T depends on the images.
    pub fn largest_error(&self) -> f64 {
        if is_unsmoothed(&self.smoothing) {
            self.labels().as_ref().unwrap_or(&self.prior).guessing_error()
        } else {
            1.0 - 1.0 / self.prior.classes() as f64
        }
    }
}

impl From<Prior> for LabelLaw {
    fn from(prior: Prior) -> Self {
        Self { prior, smoothing: Smoothing::ONE, label_noise: None }
    }
}

impl Settings {
    /// τ = 1, T = 1, uniform prior.
    pub fn default_for(classes: usize) -> Self {
        Self { tau: Tau::ONE, smoothing: Smoothing::ONE, prior: Prior::uniform(classes), label_noise: None }
    }

    /// τ, T, the class prior and the label noise, if any, in one line.
    pub fn describe(&self) -> String {
        let noise = self.label_noise.as_ref().map_or_else(String::new, |c| format!(", label noise {}", c.describe()));
        format!("τ = {}, T = {}, class prior {}{noise}", self.tau.get(), self.smoothing.get(), self.prior.describe())
    }

    /// Checks that images have a density, without which they have no posterior.
    ///
    /// # Errors
    /// At τ = 0.
    pub fn check_density(&self) -> Result<()> {
        if self.tau.get() == 0.0 {
            let cause = "at τ = 0 every image of a class is the same and has no density: choose a τ above 0";
            return Err(Error::input(cause));
        }
        Ok(())
    }

    /// The posterior of an image from its log p(x|y): of the label, where there is label noise.
    pub fn posterior(&self, log_likelihood: Vec<f64>) -> Posterior {
        let of_class = self.of_class(log_likelihood);
        match &self.label_noise {
            Some(noise) => noise.posterior(of_class),
            None => of_class,
        }
    }

    /// The same of the class, before any label noise.
    pub fn of_class(&self, log_likelihood: Vec<f64>) -> Posterior {
        Posterior::new(log_likelihood, &self.prior, self.smoothing)
    }

    /// The likeliest class of an image, and 1 − max p, from its posterior: whether something was seen in doubt. A noisy label is
    /// in doubt whatever the image, which says nothing of what was not seen: under label noise it is [`LabelNoise::doubt`].
    pub fn class_doubt(&self, posterior: &Posterior) -> (ClassId, f64) {
        match &self.label_noise {
            None => (posterior.decision, posterior.doubt(posterior.decision)),
            Some(noise) => {
                let class = self.of_class(posterior.log_likelihood.clone()).decision;
                (class, noise.doubt(class, &posterior.probabilities))
            }
        }
    }

    /// Prior, smoothing and label noise.
    pub fn label_law(&self) -> LabelLaw {
        LabelLaw { prior: self.prior.clone(), smoothing: self.smoothing, label_noise: self.label_noise.clone() }
    }

    /// As [`LabelLaw::labels`].
    ///
    /// # Errors
    /// When the label noise does not fit the prior.
    pub fn labels(&self) -> Result<Prior> {
        self.label_law().labels()
    }
}

pub(super) fn uniform(seed: Seed, index: usize) -> f64 {
    StandardUniform.sample(&mut seed.rng(index as u64))
}

/// The figures of sample `index` of class `source`.
pub(super) fn figures(
    spec: &SampleSpec,
    settings: &Settings,
    (index, source): (usize, ClassId),
    posterior: Posterior,
) -> Figures {
    let classes = posterior.probabilities.len();
    let class = if settings.smoothing == Smoothing::ONE || spec.class.is_some() {
        source
    } else {
        // p_T(·|x), which label noise has mixed in `posterior`.
        let of_class = settings.label_noise.as_ref().map(|_| settings.of_class(posterior.log_likelihood.clone()));
        of_class.as_ref().unwrap_or(&posterior).draw(uniform(spec.seed.split("labels"), index))
    };
    let label = match &settings.label_noise {
        Some(noise) => noise.draw(class, classes, uniform(spec.seed.split("label noise"), index)),
        None => class,
    };
    Figures { index, source, label, posterior }
}

/// Which samples: counter-based, so that sample i is the same image in every batch and for every n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSpec {
    /// Number of images.
    pub n: usize,
    /// All from this class, or from the prior.
    pub class: Option<ClassId>,
    /// Seed of classes, latents and labels.
    pub seed: Seed,
    /// Format of the matrix products that draw them. Narrow ones draw images that differ slightly
    /// from those of the flow, whose densities and posteriors are computed in 32 bits all the same.
    #[serde(default, skip_serializing_if = "MatmulPrecision::is_wide")]
    pub products: MatmulPrecision,
}

impl SampleSpec {
    /// Classes from the prior, drawn in 32 bits.
    pub fn new(n: usize, seed: Seed) -> Self {
        Self { n, class: None, seed, products: MatmulPrecision::F32 }
    }
}

/// One image of a world with everything known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Running number under its seed.
    pub index: usize,
    /// The class y₀ whose density x was drawn from.
    pub source: ClassId,
    /// The label y: y₀ at T = 1; drawn from p_T(·|x) otherwise, so that (x, y) follow the joint
    /// world. y₀ always where one class was asked for. Under label noise what C draws for that.
    pub label: ClassId,
    /// World-space image, CHW, rounded to 32 bits.
    pub x: Vec<f32>,
    /// The exact posterior: in a shared-map world of the image before that rounding, from its base
    /// sample ([`World::rounding`] tells what the rounding does to it); in a class-map world of x
    /// itself.
    pub posterior: Posterior,
}

/// A sample without its image; fields as of [`Sample`].
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Running number under its seed.
    pub index: usize,
    /// The class y₀.
    pub source: ClassId,
    /// The label y.
    pub label: ClassId,
    /// The exact posterior.
    pub posterior: Posterior,
}

impl Figures {
    /// The sample these are the figures of.
    pub fn with_image(self, x: Vec<f32>) -> Sample {
        let Self { index, source, label, posterior } = self;
        Sample { index, source, label, x, posterior }
    }
}

/// Samples whose images stayed on the device, for the eye.
#[derive(Debug, Clone)]
pub struct ResidentSamples {
    /// In the order asked for.
    pub figures: Vec<Figures>,
    /// Their images as [`World::fetch`] takes them, [N, C, H, W].
    pub images: Tensor<4>,
    /// 8-bit levels for the eye, whole numbers in f32, [N, C, H, W].
    pub levels: Tensor<4>,
}

/// Samples as arrays for a file.
pub fn to_world_batch(shape: ImageShape, classes: usize, samples: &[Sample]) -> WorldBatch {
    let posteriors = || samples.iter().map(|s| &s.posterior);
    WorldBatch {
        shape,
        x: samples.iter().flat_map(|s| s.x.iter().copied()).collect(),
        classes,
        y: Some(samples.iter().map(|s| s.label as i64).collect()),
        posterior: Some(posteriors().flat_map(|p| p.probabilities.iter().map(|&p| p as f32)).collect()),
        logp: Some(posteriors().flat_map(|p| p.log_likelihood.iter().copied()).collect()),
        aleatoric: Some(posteriors().map(|p| p.entropy_nats).collect()),
    }
}
