//! The Bayes error of any world from its samples: where the map depends on the class there is no
//! integral over Gaussians, but every posterior is exact, and E = E_x[1 − max_y p(y|x)] (theory
//! §3).

use serde::Serialize;

use super::estimate::Figure;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::stats::{Z95, above_least, ends_of_share, mean_and_error, unseen};
use crate::units::{Seed, Tau};

/// Monte Carlo figures of a world at one temperature.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampled {
    /// The temperature.
    pub tau: Tau,
    /// Bayes error of the posterior p_T.
    pub bayes_error: Figure,
    /// Mean entropy of the posterior, nats.
    pub aleatoric_nats: Figure,
    /// Change of the Bayes error since the temperature before, and its standard error: much smaller
    /// than that of two independent estimates, for both see the same classes and latents.
    pub change: Option<(f64, f64)>,
}

/// The mean over samples of a world of what lies in [0, `most`], with its 95 % interval. So many of them were `seen` to be of
/// the kind that makes the mean: of errors and entropies those of [`above_least`] by [`Settings::class_doubt`].
pub fn of_samples(values: &[f64], seen: usize, most: f64) -> Figure {
    let (mean, error) = mean_and_error(values);
    // A single value says nothing about its spread.
    if values.len() < 2 {
        return Figure::new(mean, most, most);
    }
    // Hardly any doubt seen: the rule of three for what was not.
    let share = unseen(values.len(), seen);
    let [down, up] = ends_of_share(mean, share, [0.0, most]).map(|end| Z95 * error + end);
    Figure::between(mean, [down, up], most)
}

/// Figures from `n` samples at every temperature, all with the same classes and latents.
///
/// # Errors
/// When n is below 2, the device fails, or the caller stops.
pub fn by_sampling(
    world: &World,
    settings: &Settings,
    taus: &[Tau],
    n: usize,
    seed: Seed,
    events: &mut dyn Events<Progress>,
) -> Result<Vec<Sampled>> {
    if n < 2 {
        return Err(Error::input("a Monte Carlo estimate needs two samples at least"));
    }
    let spec = SampleSpec::new(n, seed);
    let mut before: Option<Vec<f64>> = None;
    let mut figures = Vec::with_capacity(taus.len());
    for (t, &tau) in taus.iter().enumerate() {
        let settings = Settings { tau, ..settings.clone() };
        let (mut doubts, mut entropies, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
        for first in (0..n).step_by(world.batch()) {
            let indices: Vec<usize> = (first..first.saturating_add(world.batch()).min(n)).collect();
            for sample in world.sample_indices(&spec, &settings, &indices)? {
                let posterior = &sample.posterior;
                doubts.push(posterior.doubt(posterior.decision));
                unsure.push(settings.class_doubt(posterior));
                entropies.push(sample.posterior.entropy_nats);
            }
            events
                .report(Progress { done: t.saturating_mul(n) + doubts.len(), total: taus.len().saturating_mul(n) })?;
        }
        let seen = above_least(unsure.into_iter()).count();
        figures.push(Sampled {
            tau,
            bayes_error: of_samples(&doubts, seen, 1.0),
            aleatoric_nats: of_samples(&entropies, seen, (world.class_names().len() as f64).ln()),
            change: before.map(|before| {
                let changes: Vec<f64> = doubts.iter().zip(&before).map(|(now, before)| now - before).collect();
                mean_and_error(&changes)
            }),
        });
        before = Some(doubts);
    }
    Ok(figures)
}
