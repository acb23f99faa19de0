//! The Bayes error near one τ, and its slope, by draws common to three temperatures.
//!
//! E(log τ + δ) is E there plus a parabola through differences at ±h. These are means over common
//! draws, so a part of the draws is enough for them.

use super::bend::{bend, third_differences};
use super::limits::START;
use super::pool::{Pool, ROUND};
use super::snapshot::Snapshot;
use super::source::Standing;
use super::strata::Fit;
use crate::bayes::estimate::Figure;
use crate::bayes::normal::quantile;
use crate::error::Result;
use crate::events::Events;
use crate::stats::Z95;
use crate::units::Tau;

/// Largest half distance of the temperatures, in log τ.
pub(super) const WIDEST: f64 = 0.16;

/// Half distance of the temperatures, in log τ, where the Bayes error of the classes is about `error`: the rarer
/// errors are, the faster the slope turns. Label noise adds errors, but does not slow that turn: leave it out.
pub(in crate::bayes) fn step_for(error: f64) -> f64 {
    let score = quantile(error.clamp(1e-4, 1.0 - 1e-4));
    WIDEST / (1.0 + 0.5 * score * score)
}

/// Which part of the draws the sides have.
#[derive(Debug, Clone, Copy)]
pub(super) enum Share {
    /// The slope is a figure that was asked for.
    Quarter,
    /// It only turns an error of E into one of τ. On the bundled photographs an eighth costs the
    /// fewest images in all.
    Eighth,
}

impl Share {
    /// How many draws the sides have for so many at the centre.
    pub fn draws(self, n: usize) -> usize {
        let part = match self {
            Self::Quarter => (n / 4).max(START),
            Self::Eighth => (n / 8).max(ROUND),
        };
        part.min(n)
    }

    /// Images of all three temperatures.
    pub fn images(self, n: usize) -> usize {
        n + 2 * self.draws(n)
    }
}

/// What is known near one τ.
pub(super) struct Local {
    /// What the draws at the centre say.
    pub snapshot: Snapshot,
    step: f64,
    centre: Fit,
    /// E(+h) − E and E(−h) − E.
    sides: [Fit; 2],
    /// Covariances of E, E(+h) − E and E(−h) − E.
    covariance: [[f64; 3]; 3],
    unseen: f64,
    /// The same of the slope.
    unseen_slope: f64,
    /// What |E'''/E'| is taken to be at most.
    bend: f64,
}

/// E and its slope somewhere near.
#[derive(Debug, Clone, Copy)]
pub(super) struct Near {
    /// E.
    pub error: f64,
    /// Half the width of its 95 % interval.
    pub half_width: f64,
    /// dE/dlog τ.
    pub slope: f64,
    /// Half the width of its 95 % interval.
    pub slope_half_width: f64,
    /// Covariance of the two.
    pub covariance: f64,
}

impl Local {
    /// Draws n images at τ, and some of them at temperatures `step` beside, in log τ.
    ///
    /// # Errors
    /// As [`Pool::rows`].
    pub fn measure(
        pool: &mut Pool<'_>,
        (tau, step): (Tau, f64),
        (n, share): (usize, Share),
        events: &mut dyn Events<Standing>,
    ) -> Result<Self> {
        let snapshot = Snapshot::of(pool, tau, n, events)?;
        let centre = snapshot.fit(&snapshot.doubts);
        let m = share.draws(n);
        let middle = Snapshot::of(pool, tau, m, events)?;
        let above = Snapshot::of(pool, beside(tau, step)?, m, events)?;
        let sides = [above, Snapshot::of(pool, beside(tau, -step)?, m, events)?];
        let (law, change) = (pool.law(), sides[0].change_since(&sides[1]));
        let unseen_slope = unseen_slope(&middle, &change, 2.0 * step, pool.kept_doubt());
        let mut rows = |delta: f64| pool.rows(beside(tau, delta)?, m, events);
        let third = third_differences(&[rows(-step)?, rows(0.0)?, rows(step)?], &change, step, &law);
        let third = middle.strata.mean(&third);
        let of =
            |side: &Snapshot| side.strata.fit(side.control_differences(&middle).as_ref(), &side.change_since(&middle));
        let sides = [of(&sides[0]), of(&sides[1])];
        let own = middle.fit(&middle.doubts);
        let strata = &middle.strata;
        // The mean over n draws moves with that over m of them by m/n of their covariance.
        let part = m as f64 / n as f64;
        let with = [part * strata.between(&own, &sides[0]), part * strata.between(&own, &sides[1])];
        let across = strata.between(&sides[0], &sides[1]);
        let covariance = [
            [centre.variance, with[0], with[1]],
            [with[0], sides[0].variance, across],
            [with[1], across, sides[1].variance],
        ];
        let unseen = snapshot.unseen(|i| snapshot.unsure[i], 1.0);
        let bend = bend([sides[0].value, sides[1].value], third, step, &law);
        Ok(Self { snapshot, step, centre, sides, covariance, unseen, unseen_slope, bend })
    }

    /// How many times the draws plain sampling needs: for E, and for its slope by independent
    /// draws.
    pub fn gains(&self) -> (Option<f64>, Option<f64>) {
        let spread = [1.0, -1.0];
        let variance = |weights: [f64; 3]| self.form(weights, weights);
        let slope = variance([0.0, 0.5 / self.step * spread[0], 0.5 / self.step * spread[1]]);
        // Two independent means of the side draws, each as uncertain as that at the centre.
        let m = self.sides[0].residuals.len() as f64;
        let plain =
            self.centre.plain_variance * self.centre.residuals.len() as f64 / m * 2.0 / (2.0 * self.step).powi(2);
        (self.centre.gain(), (slope > 0.0).then(|| plain / slope))
    }

    fn form(&self, a: [f64; 3], b: [f64; 3]) -> f64 {
        let row = |i: usize| self.covariance[i].iter().zip(b).map(|(c, b)| c * b).sum::<f64>();
        (0..3).map(|i| a[i] * row(i)).sum()
    }

    fn combine(&self, weights: [f64; 3]) -> f64 {
        weights[0] * self.centre.value + weights[1] * self.sides[0].value + weights[2] * self.sides[1].value
    }

    /// The slope as a figure that is told: with what was not seen of it. (Intervals of τ divide by the slope, and were
    /// tried without that.)
    pub fn slope_figure(&self, near: &Near) -> Figure {
        signed(near.slope, near.slope_half_width + self.unseen_slope)
    }

    /// E and its slope at log τ + δ.
    pub fn near(&self, delta: f64) -> Near {
        let h = self.step;
        let value = [1.0, delta * (delta + h) / (2.0 * h * h), delta * (delta - h) / (2.0 * h * h)];
        let rise = [0.0, (2.0 * delta + h) / (2.0 * h * h), (2.0 * delta - h) / (2.0 * h * h)];
        let slope = self.combine(rise);
        // What a parabola leaves of a third derivative.
        let third = self.bend * slope.abs();
        let (left, left_of_slope) =
            (third * (delta * (delta * delta - h * h)).abs() / 6.0, third * (h * h + 3.0 * delta * delta) / 6.0);
        let (centre, sides) = (self.centre.half_width(), self.sides[0].half_width());
        // Student's t of those draws of which there are fewer.
        let t = |half: f64, variance: f64| if variance > 0.0 { half / variance.sqrt() } else { Z95 };
        let t_centre = t(centre, self.centre.variance);
        let t_sides = t(sides, self.sides[0].variance);
        Near {
            error: self.combine(value),
            half_width: t_centre * self.form(value, value).max(0.0).sqrt() + self.unseen + left,
            slope,
            slope_half_width: t_sides * self.form(rise, rise).max(0.0).sqrt() + left_of_slope,
            covariance: self.form(value, rise),
        }
    }

    /// The δ nearest to 0 at which E is `target` by the parabola, at most three steps away. Where it does not come to it, there
    /// is the δ within these steps that is nearest to it.
    pub fn root(&self, target: f64) -> f64 {
        root(target - self.centre.value, [self.sides[0].value, self.sides[1].value], self.step)
    }
}

/// The δ, at most three steps from 0, at which a parabola has grown by `missing`, or is nearest to that; at ±`step` it has grown
/// by `above` and `below`. In closed form: no slope is too small for it.
fn root(missing: f64, [above, below]: [f64; 2], step: f64) -> f64 {
    if missing == 0.0 {
        return 0.0;
    }
    // missing = rise x + turn x² in steps x.
    let (rise, turn) = (0.5 * (above - below), 0.5 * (above + below));
    let squared = rise * rise + 4.0 * turn * missing;
    let steps = if squared < 0.0 {
        // At its vertex.
        -0.5 * rise / turn
    } else {
        // The root nearer to 0, with no difference of like numbers. E is taken to grow where nothing changes.
        2.0 * missing / (rise + squared.sqrt() * if rise < 0.0 { -1.0 } else { 1.0 })
    };
    step * steps.clamp(-3.0, 3.0)
}

/// What draws that were never made may add to a slope, by the rule of three where hardly any of those made is in doubt:
/// as much each as the largest `change` over `log_step`, and an e-fold of τ at least the whole doubt that an image may
/// have, `doubt`. That last is no bound but was tried: of two Gaussian classes 3 to 6 apart 99 to 100 % of the slopes
/// from 64 to 1,024 draws hold the truth, where 57 to 96 % would have.
pub(super) fn unseen_slope(draws: &Snapshot, change: &[f64], log_step: f64, doubt: f64) -> f64 {
    let largest = change.iter().fold(0.0f64, |most, change| most.max(change.abs()));
    draws.unseen(|i| draws.unsure[i], (largest / log_step.abs()).max(doubt))
}

/// A figure that may be negative.
pub(in crate::bayes) fn signed(value: f64, half_width: f64) -> Figure {
    Figure { value, std_error: half_width / Z95, interval: (value - half_width, value + half_width) }
}

/// τ·e^δ.
pub(super) fn beside(tau: Tau, delta: f64) -> Result<Tau> {
    Tau::new(tau.get() * delta.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_parabola_is_reached_however_flat_it_is() {
        let at = |x: f64, [above, below]: [f64; 2]| 0.5 * (x * (above - below) + x * x * (above + below));
        // Errors of about 1e-6, the slope that 1e-4 of E leaves, and a falling curve.
        for sides in [[3e-7, -2e-7], [1.2e-6, -1e-6], [2e-14, -1e-14], [-2e-5, 3e-5]] {
            for x in [-0.9, -0.3, 1e-9, 0.4, 0.9, 1.4] {
                let found = root(at(x, sides), sides, 0.02) / 0.02;
                assert!((found / x - 1.0).abs() < 1e-6, "{sides:?}, {x}: {found}");
            }
        }
        // Out of reach: three steps away, or at the vertex; where nothing changes, up.
        let ends = [root(1.0, [0.1, -0.1], 0.5), root(-1.0, [0.1, -0.1], 0.5), root(1.0, [0.0; 2], 0.5)];
        assert_eq!(ends, [1.5, -1.5, 1.5]);
        assert!((root(-1.0, [0.3, -0.1], 0.5) + 0.5).abs() < 1e-15 && root(0.0, [0.0; 2], 0.5) == 0.0);
    }
}
