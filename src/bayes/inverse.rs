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
/// Evaluations of one search, at most.
const MOST_STEPS: usize = 60;

/// The temperature that gives a Bayes error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TauEstimate {
    /// The Bayes error asked for.
    pub target: f64,
    /// τ with its 95 % interval, from that of the Bayes error and the derivative.
    pub tau: Figure,
    /// The Bayes error at that τ: computed beside it, and led there by the slope.
    pub achieved: Estimate,
    /// dE/dlog τ there.
    pub slope: Figure,
    /// Bayes errors computed on the way.
    pub evaluations: usize,
    /// Wall time.
    pub seconds: f64,
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
    let (low, high) = reachable(classes);
    if !(target > low && target < high) {
        let classes = classes.classes();
        let within = format!("strictly between {} and {}", percent(low), percent(high));
        let meant = if target > 1.0 { format!(" (or is {target} % meant: {target}%?)") } else { String::new() };
        return Err(Error::input(if high > low {
            format!(
                "no τ gives a Bayes error of {}: with these {classes} classes it lies {within}{meant}",
                percent(target)
            )
        } else {
            format!("no τ gives a Bayes error of {}: it is {} at every τ", percent(target), percent(low))
        }));
    }
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
    let mut step = f64::INFINITY;
    loop {
        let slope = derivative(classes, Tau::new(tau)?, &Spec { tolerance: spec.tolerance.max(MEDIUM), ..*spec })?;
        let achieved = search.evaluate(tau, (precision * slope.value / target).clamp(LEAST_TOLERANCE, 0.5))?;
        let half_width = Z95 * achieved.figure.std_error / slope.value;
        let newton = (target - achieved.figure.value) / slope.value;
        // A step leaves about its own square; steps that no longer shrink have met the noise.
        let met = newton * newton < 0.01 * half_width || newton.abs() < 1e-15 || newton.abs() > 0.5 * step;
        if (met && precision <= spec.tolerance) || search.evaluations >= MOST_STEPS {
            let found = tau * newton.exp();
            let tau = Figure::new(found, found * (half_width + newton * newton), f64::INFINITY);
            let left = newton.abs() * Z95 * slope.std_error + slope.value * newton * newton;
            let achieved = achieved.moved(slope.value * newton, left);
            let (evaluations, seconds) = (search.evaluations, begun.elapsed().as_secs_f64());
            return Ok(TauEstimate { target, tau, achieved, slope, evaluations, seconds });
        }
        tau *= newton.clamp(-0.5, 0.5).exp();
        step = if precision <= spec.tolerance { newton.abs() } else { f64::INFINITY };
        precision = spec.tolerance;
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

    /// The τ at which the union bound is the target, by bisection in log τ.
    fn of_union(&self, target: f64) -> Result<f64> {
        let excess = |log_tau: f64| -> Result<f64> {
            let scene = self.classes.scene(Tau::new(log_tau.exp())?, Merge::Best);
            Ok((scene.hidden + log_union(&scene).exp()).ln() - target.ln())
        };
        let (mut low, mut high) = (-30.0, 30.0);
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
}
