//! Gaussian classes as a source of draws, in the dimensions that differ: for figures that are no integrals over them.

use rand::distr::Distribution;
use rand_distr::StandardNormal;

use super::source::{Draw, Source};
use crate::bayes::classes::GaussianClasses;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::parallel;
use crate::units::{Seed, Tau};

/// Draws x = m_y/τ + ε of the reduced problem.
pub struct GaussianDraws<'a> {
    classes: &'a GaussianClasses,
    seed: Seed,
}

impl<'a> GaussianDraws<'a> {
    /// Draws whose latents are those of a seed.
    pub fn new(classes: &'a GaussianClasses, seed: Seed) -> Self {
        Self { classes, seed: seed.split("latents") }
    }

    /// log p(x|y) of one draw under every class, but for what is the same of all.
    fn row(&self, draw: Draw, tau: f64) -> Vec<f64> {
        let mut rng = self.seed.rng(draw.index as u64);
        let own = self.classes.mean(draw.class);
        let noise = own.iter().map(|_| -> f64 { StandardNormal.sample(&mut rng) });
        let x: Vec<f64> = own.iter().zip(noise).map(|(mean, e)| mean / tau + e).collect();
        let of = |class: usize| {
            let squares = x.iter().zip(self.classes.mean(class)).map(|(x, mean)| (x - mean / tau).powi(2));
            -0.5 * squares.sum::<f64>()
        };
        (0..self.classes.classes()).map(of).collect()
    }
}

impl Source for GaussianDraws<'_> {
    fn classes(&self) -> usize {
        self.classes.classes()
    }

    fn log_likelihoods(&mut self, draws: &[Draw], tau: Tau, events: &mut dyn Events<Progress>) -> Result<Vec<f64>> {
        let rows = parallel::flat_map(draws.len(), |i| self.row(draws[i], tau.get()));
        events.report(Progress { done: draws.len(), total: draws.len() })?;
        Ok(rows)
    }
}
