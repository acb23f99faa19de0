//! τ(ε): the base temperature at which a world has a wanted Bayes error.
//!
//! E grows with τ (EBO Prop. 2), from what coincident classes hide to 1 − max π. Φ⁻¹(E) against 1/τ
//! is a line for two classes of equal prior and nearly one otherwise. Its root is found by the
//! secant method on coarse estimates that share their random points; Newton steps with the analytic
//! derivative then finish on fine ones (theory §3).

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::classes::{GaussianClasses, Merge};
use super::compute::{LEAST_TOLERANCE, Spec, bayes_error};
use super::estimate::{Estimate, Figure, percent};
use super::gap::tau_of_gap;
use super::normal::{quantile, tail_quantile_of_log};
use super::slope::derivative;
use super::sov::log_union;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::provenance::Badge;
use crate::stats::Z95;
use crate::units::Tau;

/// Relative half width of the coarse estimates.
const COARSE: f64 = 2e-3;
/// Relative half width of τ that the first Newton step aims at.
const MEDIUM: f64 = 1e-4;
/// Part of the limit 1 − max π within which what is left of it is searched for, not the Bayes error.
const NEAR_LIMIT: f64 = 0.01;
/// Half width of E beside a step, both in log τ, from which it is noise that steps no longer shrink by.
const NOISE: f64 = 0.1;
/// What the square of the last step adds to a tolerance that is met, and more.
const ROUNDED: f64 = 1.02;
/// Evaluations of one search, at most.
const MOST_STEPS: usize = 60;
/// Range of log τ that is looked at whatever the distances of classes are.
const USUAL: f64 = 30.0;
/// How far beyond the logarithms of distances it goes, where that is farther.
const BEYOND: f64 = 10.0;
/// ln of the least τ there is.
const LEAST_LOG: f64 = -230.0;

/// The temperature that gives a Bayes error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TauEstimate {
    /// The Bayes error asked for.
    pub target: f64,
    /// τ with its 95 % interval, from that of the Bayes error and the derivative.
    pub tau: Figure,
    /// The Bayes error at that τ: computed there, or so close beside it that the slope leads there.
    pub achieved: Estimate,
    /// dE/dlog τ there.
    pub slope: Figure,
    /// Bayes errors computed on the way.
    pub evaluations: usize,
    /// Wall time.
    pub seconds: f64,
}

impl TauEstimate {
    /// From what is known at a τ, from which the target is so far in log τ: there, where the step is `close`, else at that τ.
    fn ended(self, newton: f64, close: bool, tolerance: f64) -> Self {
        let (there, half_width) = (self.tau.value, Z95 * self.tau.std_error / self.tau.value);
        let Figure { value: slope, std_error, .. } = self.slope;
        let by = self.target - self.achieved.figure.value;
        let (found, half_width, mut achieved) = if close {
            let left = newton.abs() * Z95 * std_error + slope * newton * newton;
            let achieved = self.achieved.moved(by, left);
            (there * newton.exp(), half_width + newton * newton, achieved)
        } else {
            (there, half_width + newton.abs(), self.achieved)
        };
        if half_width > ROUNDED * tolerance {
            achieved.why += &format!("; τ is known to {half_width:.1e} of it, not to the tolerance");
        }
        Self { tau: Figure::new(found, found * half_width, f64::INFINITY), achieved, ..self }
    }
}

/// The open interval of Bayes errors that some τ > 0 gives.
pub fn reachable(classes: &GaussianClasses) -> (f64, f64) {
    let hidden = classes.scene(Tau::ONE, Merge::Best).hidden;
    (hidden, 1.0 - classes.priors().iter().fold(0.0, |a: f64, &b| a.max(b)))
}

/// The τ at which the Bayes error is `target`; the tolerance of `spec` is meant for τ.
///
/// # Errors
/// When no τ has this Bayes error (the message gives the reachable interval), the tolerance cannot
/// be used, or the caller stops.
pub fn tau_of_error(
    classes: &GaussianClasses,
    target: f64,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<TauEstimate> {
    spec.check()?;
    let begun = Instant::now();
    let high = refuse_unreachable(classes, target)?;
    let mut search = Search { classes, spec: *spec, events, evaluations: 0, sampled: false };
    let mut tau = search.coarse(target)?;
    if search.sampled && high - target < NEAR_LIMIT * high {
        let events = &mut *search.events;
        if let Some(found) = tau_of_gap(classes, high - target, spec, events)? {
            return Ok(TauEstimate { target, seconds: begun.elapsed().as_secs_f64(), ..found });
        }
    }
    // Relative half widths of τ: a Newton step of a thousandth is right to a millionth.
    let mut precision = spec.tolerance.max(MEDIUM);
    let (mut step, mut bracket) = (f64::INFINITY, (0.0, f64::INFINITY));
    loop {
        let slope = derivative(classes, Tau::new(tau)?, &Spec { tolerance: spec.tolerance.max(MEDIUM), ..*spec })?;
        let achieved = search.evaluate(tau, (precision * slope.value / target).clamp(LEAST_TOLERANCE, 0.5))?;
        let half_width = Z95 * achieved.figure.std_error / slope.value;
        let limit = Some(high).filter(|_| !search.sampled && high - target < NEAR_LIMIT * high);
        let newton = newton((target, limit), achieved.figure.value, slope.value);
        // A step leaves about its own square. Steps that no longer shrink have met the noise, where there is noise beside them.
        let close = newton * newton < 0.01 * half_width || newton.abs() < 1e-15;
        let met = close || (newton.abs() > 0.5 * step && half_width > NOISE * newton.abs());
        if (met && precision <= spec.tolerance) || search.evaluations >= MOST_STEPS {
            let (evaluations, seconds) = (search.evaluations, begun.elapsed().as_secs_f64());
            let beside = Figure::new(tau, tau * half_width, f64::INFINITY);
            let beside = TauEstimate { target, tau: beside, achieved, slope, evaluations, seconds };
            return Ok(beside.ended(newton, close, spec.tolerance));
        }
        if achieved.figure.value < target {
            bracket.0 = tau
        } else {
            bracket.1 = tau
        }
        let next = tau * newton.clamp(-0.5, 0.5).exp();
        let is_closed = bracket.0 > 0.0 && bracket.1.is_finite();
        let outside = is_closed && !(bracket.0..=bracket.1).contains(&next);
        tau = if outside && !search.sampled { (bracket.0 * bracket.1).sqrt() } else { next };
        if precision > spec.tolerance {
            // Known better, a Bayes error may lie on the other side of the target.
            (precision, step, bracket) = (spec.tolerance, f64::INFINITY, (0.0, f64::INFINITY));
        } else {
            step = newton.abs();
        }
    }
}

/// Refuses a Bayes error that no τ gives. Returns the limit 1 − max π.
fn refuse_unreachable(classes: &GaussianClasses, target: f64) -> Result<f64> {
    let (low, high) = reachable(classes);
    if target > low && target < high {
        return Ok(high);
    }
    if target <= low {
        classes.check_limit()?;
    }
    let classes = classes.classes();
    let within = format!("strictly between {} and {}", percent(low), percent(high));
    let meant = if target > 1.0 { format!(" (or is {target} % meant: {target}%?)") } else { String::new() };
    Err(Error::input(if high > low {
        format!("no τ gives a Bayes error of {}: with these {classes} classes it lies {within}{meant}", percent(target))
    } else {
        format!("no τ gives a Bayes error of {}: it is {} at every τ", percent(target), percent(low))
    }))
}

/// Newton's step of log τ from a Bayes error to the target. Near a limit it is that of the logarithm of what is left to it:
/// E flattens there faster than any power of τ, and its own steps would be far too short.
fn newton((target, limit): (f64, Option<f64>), value: f64, slope: f64) -> f64 {
    match limit.map(|limit| (limit - value, limit - target)) {
        Some((left, wanted)) if left > 0.0 => (left / wanted).ln() * left / slope,
        _ => (target - value) / slope,
    }
}

struct Search<'a> {
    classes: &'a GaussianClasses,
    spec: Spec,
    events: &'a mut dyn Events<Estimate>,
    evaluations: usize,
    /// Whether the last Bayes error was an estimate from samples.
    sampled: bool,
}

impl Search<'_> {
    fn evaluate(&mut self, tau: f64, tolerance: f64) -> Result<Estimate> {
        self.evaluations += 1;
        let spec = Spec { tolerance, ..self.spec };
        let found = bayes_error(self.classes, Tau::new(tau)?, &spec, &mut *self.events)?;
        self.sampled = found.badge == Badge::Estimated;
        Ok(found)
    }

    /// Safeguarded secant on y = Φ⁻¹(E) against x = 1/τ, to the precision of coarse estimates.
    fn coarse(&mut self, target: f64) -> Result<f64> {
        let aim = score(target.ln());
        let start = 1.0 / self.of_union(target)?;
        // E ≤ U: the τ of the union bound is too small, its x too large.
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut x = start;
        for step in 0..MOST_STEPS {
            let estimate = self.evaluate(1.0 / x, self.spec.tolerance.max(COARSE))?;
            let y = score(estimate.log_value);
            let noise = 0.3 * estimate.figure.std_error / estimate.figure.value;
            if (estimate.figure.value / target - 1.0).abs() <= noise.max(1e-5) {
                break;
            }
            if y > aim {
                low = f64::max(low, x)
            } else {
                high = f64::min(high, x)
            }
            points.push((x, y));
            let secant = match points[..] {
                [.., (x0, y0), (x1, y1)] if y1 != y0 => x1 + (aim - y1) * (x1 - x0) / (y1 - y0),
                _ => 0.93 * x,
            };
            let inside = secant > low && secant < high && secant.is_finite();
            let fallback = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * low };
            let next = if inside && step < 40 { secant } else { fallback };
            if (next / x - 1.0).abs() < 1e-14 {
                break;
            }
            x = next;
        }
        Ok(1.0 / x)
    }

    /// Range of log τ in which the union bound goes from next to nothing to its limit, of whatever size distances are.
    fn range(&self) -> (f64, f64) {
        let scene = self.classes.scene(Tau::ONE, Merge::Best);
        let pairs = (0..scene.count()).flat_map(|g| (0..g).map(move |h| (g, h)));
        let logs = pairs.map(|(g, h)| scene.distance(g, h).ln());
        let ends = |(low, high): (f64, f64), log: f64| (low.min(log - BEYOND), high.max(log + BEYOND));
        let (low, high) = logs.fold((-USUAL, USUAL), ends);
        (low.max(LEAST_LOG), high)
    }

    /// The τ at which the union bound is the target, by bisection in log τ.
    fn of_union(&self, target: f64) -> Result<f64> {
        let excess = |log_tau: f64| -> Result<f64> {
            let scene = self.classes.scene(Tau::new(log_tau.exp())?, Merge::Best);
            Ok((scene.hidden + log_union(&scene).exp()).ln() - target.ln())
        };
        let (mut low, mut high) = self.range();
        while high - low > 1e-3 {
            let middle = 0.5 * (low + high);
            if excess(middle)? > 0.0 { high = middle } else { low = middle }
        }
        Ok(low.exp())
    }
}

/// Φ⁻¹(E) from ln E, for E as small as may be.
fn score(log_error: f64) -> f64 {
    if log_error < -0.7 { -tail_quantile_of_log(log_error) } else { quantile(log_error.exp()) }
}

#[cfg(test)]
mod tests {
    use super::super::normal::tail;
    use super::*;
    use crate::events::silent;

    #[test]
    fn the_closest_tolerance_is_met_where_the_slope_asks_for_a_closer_error() {
        // E = Φ(−1/τ): at E = 0.4 a τ to 1e-12 takes E to 2.4e-13.
        let classes = GaussianClasses::new(vec![vec![0.0], vec![2.0]], vec![0.5; 2]).unwrap();
        let spec = Spec { tolerance: LEAST_TOLERANCE, ..Spec::default() };
        let found = tau_of_error(&classes, 0.4, &spec, &mut silent()).unwrap();
        let exact = -1.0 / quantile(0.4);
        assert!((found.tau.value / exact - 1.0).abs() < 1e-12, "{found:?} for {exact}");
    }

    #[test]
    fn tau_is_found_where_the_error_flattens_to_its_limit() {
        let classes = GaussianClasses::new(vec![vec![0.0], vec![2.0], vec![4.0]], vec![0.5, 0.25, 0.25]).unwrap();
        for gap in [1e-6, 1e-7, 1e-9, 1e-11] {
            let found = tau_of_error(&classes, 0.5 - gap, &Spec::default(), &mut silent()).unwrap();
            // Only the farthest class is ever likelier than the first: beyond c.
            let d = 4.0 / found.tau.value;
            let c = 0.5 * d + 2f64.ln() / d;
            let there = 0.25 * tail(c - d) - 0.5 * tail(c);
            let told = format!("{gap:e}: {found:?} has {there:e}");
            // The rounding of E is 1e-5 of the smallest gap.
            assert!((there / gap - 1.0).abs() < 1e-4 && found.tau.relative_half_width() < 1e-4, "{told}");
            assert!((found.achieved.figure.value - (0.5 - there)).abs() < 1e-14, "{told}");
        }
    }

    #[test]
    fn tau_is_found_whatever_the_unit_of_the_means_is() {
        for unit in [1e-60, 1e-20, 1.0, 1e20, 1e60] {
            let classes = GaussianClasses::new(vec![vec![0.0], vec![2.0 * unit]], vec![0.5; 2]).unwrap();
            let found = tau_of_error(&classes, 0.1, &Spec::default(), &mut silent()).unwrap();
            assert!((found.tau.value / unit * -quantile(0.1) - 1.0).abs() < 1e-12, "{unit:e}: {found:?}");
        }
    }

    #[test]
    fn a_search_that_ends_elsewhere_says_so() {
        let classes = GaussianClasses::new(vec![vec![0.0], vec![2.0]], vec![0.5; 2]).unwrap();
        let known = tau_of_error(&classes, 0.4, &Spec::default(), &mut silent()).unwrap();
        let (tau, error) = (known.tau.value, known.achieved.figure);
        assert!(!known.achieved.why.contains("tolerance"), "{known:?}");
        let far = known.ended(0.05, false, 1e-4);
        assert_eq!((far.tau.value, far.achieved.figure), (tau, error));
        assert!(far.tau.interval.0 < 0.951 * tau && far.tau.interval.1 > 1.049 * tau, "{far:?}");
        assert!(far.achieved.why.contains("not to the tolerance"), "{far:?}");
    }
}
