//! What a shift costs any learner: the accuracy that the shifted world's Bayes classifier loses on
//! unshifted images.
//!
//! It decides by argmax_y p′(y|x), p′(y|x) ∝ π′_y p′(x|y). A base sample e becomes e′ = r·e + δ.
//! Hence log p′(x|y) − log p(x|y) = ½‖e_y‖² − ½‖e_y − δ‖²/r² − D ln r, with e_y the base sample of
//! x under class y. A classifier that has learned all from shifted images loses that much.

use super::{BaseMap, ShiftSetting};
use crate::error::Result;
use crate::events::Events;
use crate::experiment::images::Images;
use crate::experiment::kind::CellPlace;
use crate::experiment::progress::Measuring;
use crate::experiment::train::CellEvent;
use crate::experiment::trained::measuring;
use crate::measure::{Estimate, Interval, SHARE, argmax};
use crate::oracle::posterior::Prior;
use crate::units::{ClassId, Seed};

/// Passes of one image through the flow for a base shift, at most; a shift of the prior needs none.
const PASSES: usize = 2048;

/// max_y p(y|x) − p(argmax_y p′(y|x)|x), the mean over test images with its 95 % interval (a bootstrap
/// of images, most of which lose nothing: [`Bootstrap::mean_within`]), a fraction; `None` under pixel noise, where p′ is unknown. Under a base shift it is measured on as
/// many images as 2,048 passes allow.
///
/// # Errors
/// When the setting does not fit the world, the device fails, or the caller stops.
pub(super) fn unavoidable_loss(
    setting: &ShiftSetting,
    place: &CellPlace<'_>,
    test: &Images,
    seed: Seed,
    events: &mut dyn Events<CellEvent>,
) -> Result<Option<Estimate>> {
    let world = place.settings.labels()?;
    let prior = setting.prior(&world)?;
    if setting.noise > 0.0 {
        return Ok(None);
    }
    if setting.base.is_none() && prior == world {
        return Ok(Some(Estimate { value: 0.0, interval: Interval { low: 0.0, high: 0.0 } }));
    }
    let ratios = match setting.base {
        None => None,
        Some(base) => {
            let map = base.of_flow(place.world.flow(), place.settings.tau, seed)?;
            Some(log_ratios(place, &map, test, events)?)
        }
    };
    let n = ratios.as_ref().map_or(test.len(), Vec::len);
    let losses: Vec<f64> = (0..n)
        .map(|i| {
            let p = &test.all.posterior[i * test.classes..(i + 1) * test.classes];
            loss(p, [&world, &prior], ratios.as_ref().map(|ratios| ratios[i].as_slice()))
        })
        .collect();
    Ok(Some(measuring().mean_within(&losses, SHARE)))
}

/// The cost of the shifted decision at an image of posterior `p`; `ratios` are log p′(x|y) − log
/// p(x|y).
fn loss(p: &[f64], [world, shifted]: [&Prior; 2], ratios: Option<&[f64]>) -> f64 {
    let priors = world.probabilities().iter().zip(shifted.probabilities());
    let score = |(y, (old, new)): (usize, (&f64, &f64))| {
        let seen = p[y].ln() + new.ln() - old.ln() + ratios.map_or(0.0, |ratios| ratios[y]);
        // A class that neither world has is −∞ − −∞.
        if seen.is_nan() { f64::NEG_INFINITY } else { seen }
    };
    let scores: Vec<f64> = priors.enumerate().map(score).collect();
    p[argmax(p)] - p[argmax(&scores)]
}

/// log p′(x|y) − log p(x|y) of the first test images under every class, [n][K]; 0 for classes of no
/// prior.
fn log_ratios(
    place: &CellPlace<'_>,
    map: &BaseMap,
    test: &Images,
    events: &mut dyn Events<CellEvent>,
) -> Result<Vec<Vec<f64>>> {
    let (world, tau) = (place.world, place.settings.tau);
    let (flow, dims) = (world.flow(), test.shape.dims());
    let prior = place.settings.prior.probabilities();
    let used: Vec<ClassId> = (0..prior.len()).filter(|&y| prior[y] > 0.0).collect();
    let base = flow.shared_base();
    // Classes that share a map differ by the places of their means alone: one pass tells of all.
    let passes = if base.is_some() { 1 } else { used.len() };
    let n = test.len().min(PASSES / passes.max(1)).max(1);
    let mut found = vec![vec![0.0; prior.len()]; n];
    let mut pieces = Measuring::begin(events, "the unavoidable loss", n * passes)?;
    for first in (0..n).step_by(world.batch()) {
        let last = n.min(first + world.batch());
        let x = &test.all.x[first * dims..last * dims];
        for (at, &pass) in used.iter().take(passes).enumerate() {
            let noise = flow.noise(x, &vec![pass; last - first], tau)?;
            for &y in if base.is_some() { &used[..] } else { &used[at..=at] } {
                let offset: Vec<f64> = base.map_or_else(Vec::new, |base| {
                    let means = base.mean(pass).iter().zip(base.mean(y));
                    means.zip(base.std()).map(|((a, b), std)| (a - b) / (tau.get() * std)).collect()
                });
                for (i, e) in noise.chunks(dims).enumerate() {
                    found[first + i][y] = log_ratio(e, &offset, map);
                }
            }
            pieces.done(last - first)?;
        }
    }
    Ok(found)
}

/// ½‖e‖² − ½‖e − δ‖²/r² − D ln r at e = `noise` + `offset`.
fn log_ratio(noise: &[f64], offset: &[f64], map: &BaseMap) -> f64 {
    let at = |of: &[f64], d: usize| of.get(d).copied().unwrap_or(0.0);
    let term = |(d, e): (usize, &f64)| {
        let e = e + at(offset, d);
        0.5 * (e * e - ((e - at(&map.offset, d)) / map.ratio).powi(2))
    };
    noise.iter().enumerate().map(term).sum::<f64>() - noise.len() as f64 * map.ratio.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_two_normal_densities() {
        let (map, e, by) = (BaseMap { ratio: 1.5, offset: vec![0.5, -1.0] }, [0.3, 2.0], [0.1, -0.2]);
        let log_normal = |x: f64, m: f64, s: f64| -0.5 * ((x - m) / s).powi(2) - s.ln();
        let expected: f64 =
            (0..2).map(|d| log_normal(e[d] + by[d], map.offset[d], 1.5) - log_normal(e[d] + by[d], 0.0, 1.0)).sum();
        assert!((log_ratio(&e, &by, &map) - expected).abs() < 1e-12);
    }

    #[test]
    fn the_shifted_decision_loses_what_the_posterior_says() {
        let prior = |weights: &[f64]| Prior::new(weights).unwrap();
        let (even, third) = (prior(&[0.5, 0.5, 0.0]), prior(&[0.8, 0.2, 0.0]));
        // The boundary of the shifted world lies at p = 0.2.
        assert!((loss(&[0.3, 0.7, 0.0], [&even, &third], None) - 0.4).abs() < 1e-12);
        assert_eq!(loss(&[0.1, 0.9, 0.0], [&even, &third], None), 0.0);
        // A base shift that speaks for the other class by as much undoes it.
        assert_eq!(loss(&[0.3, 0.7, 0.0], [&even, &third], Some(&[0.0, 4f64.ln(), 0.0])), 0.0);
    }

    #[test]
    fn the_interval_of_rare_losses_covers_their_mean() {
        use crate::stats::{Z95, mean_and_error};
        use rand::RngExt;

        // 204 images, of which 1 % lose up to a half: mean 0.0025. 1.96 s/√n covers it in four cases of five.
        let (n, share, trials) = (204, 0.01, 200);
        let (mut covered, mut normal) = (0, 0);
        for trial in 0..trials {
            let rng = &mut Seed(trial).rng(0);
            let mut one = || if rng.random::<f64>() < share { 0.5 * rng.random::<f64>() } else { 0.0 };
            let losses: Vec<f64> = (0..n).map(|_| one()).collect();
            covered += u64::from(measuring().mean_within(&losses, SHARE).interval.contains(share / 4.0));
            let (mean, error) = mean_and_error(&losses);
            normal += u64::from((mean - share / 4.0).abs() <= Z95 * error);
        }
        println!("covered {covered}, 1.96 s/√n {normal} of {trials}");
        assert!(covered * 100 >= 94 * trials && normal * 100 < 92 * trials, "{covered} {normal}");
    }
}
