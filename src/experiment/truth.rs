//! The Bayes error of a world at a temperature: what every classifier's error is held against.

use serde::{Deserialize, Serialize};

use crate::bayes::{Badge, Figure, GaussianClasses, Spec, bayes_error, by_sampling};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::oracle::world::{Settings, World};
use crate::units::{Seed, Smoothing, Tau};

/// Samples of worlds that have no integral over Gaussians: the interval is then below 0.007 wide at any Bayes error.
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

impl Truth {
    /// The Bayes error of a world: an integral over Gaussians where its classes share a map, otherwise the mean of 1 − max p over samples.
    ///
    /// # Errors
    /// When the device fails, or the caller stops.
    pub fn of(world: &World, settings: &Settings, seed: Seed, events: &mut dyn Events<Progress>) -> Result<Self> {
        let tau = settings.tau;
        if let Some(base) = world.flow().shared_base().filter(|_| settings.smoothing == Smoothing::ONE) {
            let classes = GaussianClasses::of_base(base, &settings.prior)?;
            let spec = Spec { seed, ..Spec::default() };
            let found = bayes_error(&classes, tau, &spec, &mut |_| events.emit(Progress { done: 0, total: 1 }))?;
            let how = format!("{}: {}", found.method.name(), found.why);
            return Ok(Self { tau, bayes_error: found.figure, badge: found.badge, how });
        }
        let found = by_sampling(world, settings, &[tau], SAMPLES, seed, events)?;
        let bayes_error = found.first().map_or_else(|| Figure::new(0.0, 1.0, 1.0), |sampled| sampled.bayes_error);
        let how = format!("mean of 1 − max p(y|x) over {SAMPLES} samples of the world");
        Ok(Self { tau, bayes_error, badge: Badge::Estimated, how })
    }
}
