//! The Bayes error near one τ, and its slope, by draws common to three temperatures.
//!
//! E(log τ + δ) is E there plus a parabola through differences at ±h. These are means over common
//! draws, so a part of the draws is enough for them.

use super::limits::START;
use super::pool::{Pool, ROUND};
use super::snapshot::Snapshot;
use super::source::Standing;
use super::strata::Fit;
use crate::bayes::estimate::{Figure, Z95};
use crate::bayes::normal::quantile;
use crate::error::Result;
use crate::events::Events;
use crate::units::Tau;

/// Largest half distance of the temperatures, in log τ.
const WIDEST: f64 = 0.16;

/// Half distance of the temperatures, in log τ, where the Bayes error is about `error`: the rarer
/// errors are, the faster the slope turns.
pub(super) fn step_for(error: f64) -> f64 {
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
    /// |E'''/E'| of two Gaussians that have this error.
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
        let score = quantile(centre.value.clamp(0.5 / n as f64, 1.0 - 0.5 / n as f64));
        let m = share.draws(n);
        let middle = Snapshot::of(pool, tau, m, events)?;
        let above = Snapshot::of(pool, beside(tau, step)?, m, events)?;
        let sides = [above, Snapshot::of(pool, beside(tau, -step)?, m, events)?];
        let of = |side: &Snapshot| {
            let change: Vec<f64> = side.doubts.iter().zip(&middle.doubts).map(|(there, here)| there - here).collect();
            side.strata.fit(side.control_differences(&middle).as_ref(), &change)
        };
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
        let bend = score.powi(4) + 4.0 * score * score + 1.0;
        Ok(Self { snapshot, step, centre, sides, covariance, unseen, bend })
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

    /// The δ nearest to 0 at which E is `target` by the parabola, at most three steps away.
    pub fn root(&self, target: f64) -> f64 {
        let most = 3.0 * self.step;
        let mut delta = 0.0f64;
        for _ in 0..40 {
            let Near { error, slope, .. } = self.near(delta);
            let least = 1e-3 * (1.0 + self.near(0.0).slope.abs());
            let slope = if slope.abs() < least { least } else { slope };
            let next = (delta + ((target - error) / slope).clamp(-self.step, self.step)).clamp(-most, most);
            if (next - delta).abs() < 1e-13 {
                return next;
            }
            delta = next;
        }
        delta
    }
}

impl Near {
    /// dE/dlog τ as a figure.
    pub fn slope_figure(&self) -> Figure {
        signed(self.slope, self.slope_half_width)
    }
}

/// A figure that may be negative.
pub(super) fn signed(value: f64, half_width: f64) -> Figure {
    Figure { value, std_error: half_width / Z95, interval: (value - half_width, value + half_width) }
}

/// τ·e^δ.
pub(super) fn beside(tau: Tau, delta: f64) -> Result<Tau> {
    Tau::new(tau.get() * delta.exp())
}
