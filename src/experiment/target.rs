//! A Bayes error asked for in place of τ: τ is found when a run is planned, and stands in its record with
//! the interval that its search left.

use serde::{Deserialize, Serialize};

use crate::bayes::sampling::{Cache, Limits, Pool, Standing, WorldDraws, tau_by_sampling};
use crate::bayes::{GaussianClasses, Method, Spec, tau_of_error};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::world::{Settings, World};
use crate::units::{Seed, Tau};

/// Half width of the interval of τ over τ, where τ comes from draws.
const TOLERANCE: f64 = 0.03;
/// Draws at one temperature, at most. There is no limit of time: the same spec finds the same τ.
const MOST: usize = 20_000;

/// How `world.tau` was found from `world.target`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundTau {
    /// 95 % interval of τ.
    pub interval: (f64, f64),
    /// By integrals, or by draws of the world.
    pub method: Method,
    /// Points or draws at the last temperature.
    pub samples: u64,
}

/// Checks a target beside the temperatures of its spec.
///
/// # Errors
/// When it is no share, or more is said about τ.
pub fn check(target: Option<f64>, found: Option<&FoundTau>, tau: Tau, own_taus: bool) -> Result<()> {
    let complaint = match (target, found) {
        (None, None) => return Ok(()),
        (None, Some(_)) => "world.found says how world.target was met, and there is no world.target",
        (Some(target), _) if !(target > 0.0 && target < 1.0) => {
            "world.target must be a Bayes error between 0 and 1: 0.05 for 5 %"
        }
        (Some(_), _) if own_taus => {
            "world.target stands in place of world.tau, and this experiment has taus of its own"
        }
        (Some(_), None) if tau != Tau::ONE => "world.tau and world.target: give one of them",
        _ => return Ok(()),
    };
    Err(Error::input(complaint))
}

/// The τ at which a world has a Bayes error, under the prior, smoothing and label noise of these knobs: by integrals
/// where its classes share a map, otherwise by draws. `kept` names weights and device, under which
/// draws are remembered.
///
/// # Errors
/// When no τ has this error, the device fails, or the caller stops.
pub fn find(
    target: f64,
    (world, settings): (&World, &Settings),
    seed: Seed,
    kept: (&str, &str),
    events: &mut dyn Events<Progress>,
) -> Result<(Tau, FoundTau)> {
    let found = match world.flow().shared_base() {
        Some(base) => {
            let classes = GaussianClasses::of_world(base, settings)?;
            let mut going = |_| events.emit(Progress { done: 0, total: 1 });
            tau_of_error(&classes, target, &Spec::default(), &mut going)?
        }
        None => {
            let (prior, (world_id, device)) = (&settings.prior, kept);
            let mut source = WorldDraws::new(world, seed).remembered(&Cache::of_user(), world_id, prior, device);
            let pool = Pool::new(&mut source, prior.clone(), settings.smoothing, seed)?;
            let mut pool = pool.with_label_noise(settings.label_noise.as_ref())?;
            let limits = Limits { tolerance: Some(TOLERANCE), samples: Some(MOST), seconds: None };
            let mut going = |standing: Standing| events.emit(standing.progress);
            tau_by_sampling(&mut pool, target, None, &limits, &mut going)?.found
        }
    };
    let (method, samples) = (found.achieved.method, found.achieved.samples);
    Ok((Tau::new(found.tau.value)?, FoundTau { interval: found.tau.interval, method, samples }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_share_and_the_only_word_about_tau() {
        let found = FoundTau { interval: (0.9, 1.1), method: Method::Sampling, samples: 64 };
        let other = Tau::new(0.8).unwrap();
        assert!(check(None, None, other, true).is_ok() && check(Some(0.2), None, Tau::ONE, false).is_ok());
        // What was found stands beside its target.
        assert!(check(Some(0.2), Some(&found), other, false).is_ok());
        for (target, found, tau, own, word) in [
            (Some(20.0), None, Tau::ONE, false, "between 0 and 1"),
            (Some(f64::NAN), None, Tau::ONE, false, "between 0 and 1"),
            (Some(0.2), None, other, false, "give one"),
            (Some(0.2), None, Tau::ONE, true, "of its own"),
            (None, Some(&found), other, false, "no world.target"),
        ] {
            let why = check(target, found, tau, own).unwrap_err().to_string();
            assert!(why.contains(word), "{why}");
        }
    }
}
