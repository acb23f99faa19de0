//! The Bayes error of a world at a temperature: what every classifier's error is held against.

use std::f64::consts::LN_2;

use serde::{Deserialize, Serialize};

use crate::bayes::{Badge, Figure, GaussianClasses, Spec, Z95, bayes_error, by_sampling, information};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::world::{Settings, World};
use crate::units::{Seed, Smoothing, Tau};

/// Samples of worlds without an integral over Gaussians: half the interval is then below 0.007.
const SAMPLES: usize = 20_000;

/// The Bayes error of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Base temperature.
    pub tau: Tau,
    /// The Bayes error with its 95 % interval.
    pub bayes_error: Figure,
    /// What the interval means.
    pub badge: Badge,
    /// How it was computed, in words.
    pub how: String,
}

/// What is known of a world as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its Bayes error.
    #[serde(flatten)]
    pub truth: Truth,
    /// Aleatoric uncertainty E[H(p(y|x))], nats.
    pub aleatoric_nats: Figure,
    /// What its interval means.
    pub aleatoric_badge: Badge,
    /// H(Y) of the class prior, under label noise of π~ = Cᵀπ, nats; of a smoothed posterior (T ≠ 1) the labels have another law.
    pub label_entropy_nats: f64,
    /// I(X;Y) = H(Y) − A, bits; absent where T ≠ 1.
    pub mutual_information_bits: Option<Figure>,
}

impl Truth {
    /// Computes the Bayes error of a world: an integral over Gaussians where its classes share a
    /// map, otherwise the mean of 1 − max p over samples.
    ///
    /// # Errors
    /// When the device fails, or the caller stops.
    pub fn of(world: &World, settings: &Settings, seed: Seed, events: &mut dyn Events<Progress>) -> Result<Self> {
        match gaussian(world, settings)? {
            Some(classes) => Self::integral(&classes, settings.tau, seed, events),
            None => Ok(Self::sampled(world, settings, seed, events)?.0),
        }
    }

    fn integral(classes: &GaussianClasses, tau: Tau, seed: Seed, events: &mut dyn Events<Progress>) -> Result<Self> {
        let spec = Spec { seed, ..Spec::default() };
        let found = bayes_error(classes, tau, &spec, &mut |_| events.emit(Progress { done: 0, total: 1 }))?;
        let how = format!("{}: {}", found.method.name(), found.why);
        Ok(Self { tau, bayes_error: found.figure, badge: found.badge, how })
    }

    /// With the aleatoric uncertainty of the same samples, nats.
    fn sampled(
        world: &World,
        settings: &Settings,
        seed: Seed,
        events: &mut dyn Events<Progress>,
    ) -> Result<(Self, Figure)> {
        let tau = settings.tau;
        let found = by_sampling(world, settings, &[tau], SAMPLES, seed, events)?;
        let sampled = found.first().ok_or_else(|| Error::Numeric("no Bayes error came of the samples".into()))?;
        let how = format!("mean of 1 − max p(y|x) over {SAMPLES} samples of the world");
        Ok((Self { tau, bayes_error: sampled.bayes_error, badge: Badge::Estimated, how }, sampled.aleatoric_nats))
    }
}

/// The Gaussian classes of a world whose Bayes error is an integral over them.
fn gaussian(world: &World, settings: &Settings) -> Result<Option<GaussianClasses>> {
    let base = world.flow().shared_base().filter(|_| settings.smoothing == Smoothing::ONE);
    base.map(|base| GaussianClasses::of_world(base, settings)).transpose()
}

impl Facts {
    /// Everything, by integrals where the world has them, otherwise from one set of samples.
    ///
    /// # Errors
    /// As [`Truth::of`].
    pub fn of(world: &World, settings: &Settings, seed: Seed, events: &mut dyn Events<Progress>) -> Result<Self> {
        let labels = settings.labels()?;
        let label = -labels.probabilities().iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
        if let Some(classes) = gaussian(world, settings)? {
            let truth = Truth::integral(&classes, settings.tau, seed, events)?;
            let spec = Spec { seed, ..Spec::default() };
            let progress = Progress { done: 0, total: 1 };
            let found = information(&classes, settings.tau, &spec, &mut |_| events.emit(progress))?;
            return Ok(Self {
                truth,
                aleatoric_nats: found.aleatoric_nats,
                aleatoric_badge: found.badge,
                label_entropy_nats: found.label_entropy_nats,
                mutual_information_bits: Some(found.mutual_information_bits),
            });
        }
        let (truth, aleatoric_nats) = Truth::sampled(world, settings, seed, events)?;
        let half_width = Z95 * aleatoric_nats.std_error / LN_2;
        let mutual = Figure::new((label - aleatoric_nats.value).max(0.0) / LN_2, half_width, label / LN_2);
        Ok(Self {
            truth,
            aleatoric_nats,
            aleatoric_badge: Badge::Estimated,
            label_entropy_nats: label,
            mutual_information_bits: Some(mutual).filter(|_| settings.smoothing == Smoothing::ONE),
        })
    }
}
