//! Gaussian classes of a world, and what their labels are drawn by.

use std::sync::Arc;

use super::GaussianClasses;
use crate::error::Result;
use crate::flow::base::GaussianBase;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::Prior;
use crate::oracle::world::{LabelLaw, Settings};
use crate::units::Smoothing;

impl GaussianClasses {
    /// The class problem of a shared-map world: its base distribution (EBO §3) and a class prior.
    ///
    /// # Errors
    /// When the prior does not fit, or a mean over its standard deviation is not finite.
    pub fn of_base(base: &GaussianBase, prior: &Prior) -> Result<Self> {
        let whitened = (0..base.classes()).map(|k| base.mean(k).iter().zip(base.std()).map(|(m, s)| m / s).collect());
        Self::new(whitened.collect(), prior.probabilities().to_vec())
    }

    /// The same of a world's knobs: its prior, T and label noise. τ is not part of it.
    ///
    /// # Errors
    /// As [`Self::of_base`]; when the label noise does not fit.
    pub fn of_world(base: &GaussianBase, settings: &Settings) -> Result<Self> {
        Self::of_base(base, &settings.prior)?.with_law(&settings.label_law())
    }

    /// The same classes, their labels drawn by a matrix.
    ///
    /// # Errors
    /// When it is not of K classes.
    pub fn with_label_noise(&self, noise: Option<&LabelNoise>) -> Result<Self> {
        noise.map_or(Ok(()), |noise| noise.check(self.classes()))?;
        // Labels that stay as they are are the classes, to the bit.
        let label_noise = noise.filter(|noise| !noise.is_none()).map(|noise| Arc::new(noise.clone()));
        Ok(Self { label_noise, ..self.clone() })
    }

    /// The same classes, their labels drawn from p_T before any label noise.
    pub fn with_smoothing(&self, smoothing: Smoothing) -> Self {
        Self { smoothing, ..self.clone() }
    }

    /// The same classes under another prior, their labels drawn by another T and other noise.
    ///
    /// # Errors
    /// As [`Self::with_priors`] and [`Self::with_label_noise`].
    pub fn with_law(&self, law: &LabelLaw) -> Result<Self> {
        let noisy = self.with_priors(law.prior.probabilities())?.with_label_noise(law.label_noise.as_ref())?;
        Ok(noisy.with_smoothing(law.smoothing))
    }

    /// What the labels are drawn by; of none they are the classes.
    pub fn label_noise(&self) -> Option<&LabelNoise> {
        self.label_noise.as_deref()
    }

    /// Posterior smoothing T, 1 where labels are drawn from the posterior itself.
    pub fn smoothing(&self) -> Smoothing {
        self.smoothing
    }

    /// Whether a label is the class that was drawn: T = 1, no label noise.
    pub fn labels_are_classes(&self) -> bool {
        self.smoothing == Smoothing::ONE && self.label_noise.is_none()
    }
}
