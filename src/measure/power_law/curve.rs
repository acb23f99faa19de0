//! a·N^(−α) + c in x = log N, and its least-squares fits to y = log value.

use nalgebra::{Matrix3, Vector3};
use serde::{Deserialize, Serialize};

use super::points::{LARGEST_LOG, Variant};

/// Exponents beyond this mean that all but the smallest N sit on the floor: α has become arbitrary,
/// and is held here.
pub(super) const STEEPEST: f64 = 10.0;

/// A floor below e^−30 of the smallest value is none.
const NO_FLOOR: f64 = -30.0;

/// Where the search for a floor starts, in units of the smallest value.
const STARTS: [f64; 6] = [0.999, 0.95, 0.8, 0.5, 0.2, 0.02];

/// Steps of Levenberg's method from one start; curved valleys take long, ordinary data take ten.
const STEPS: usize = 200;

/// Steps in a replicate, which needs its parameters to a small part of their scatter only.
const REPLICATE_STEPS: usize = 100;

/// The curve a·N^(−α) + c.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// log a.
    pub log_a: f64,
    /// α.
    pub alpha: f64,
    /// c ≥ 0.
    pub floor: f64,
}

impl Curve {
    /// The logarithm of the curve at `log_n`.
    pub fn log_value(&self, log_n: f64) -> f64 {
        log_add(self.log_a - self.alpha * log_n, self.floor.ln())
    }

    /// a, kept below e^700.
    pub fn a(&self) -> f64 {
        self.log_a.min(LARGEST_LOG).exp()
    }

    /// log N at which the curve comes down to e^`log_value`; `None` where it does not.
    pub(super) fn log_n_at(&self, log_value: f64) -> Option<f64> {
        let above = log_value + (-self.floor * (-log_value).exp()).ln_1p();
        let log_n = (self.log_a - above) / self.alpha;
        (self.alpha > 0.0 && log_n.is_finite()).then_some(log_n)
    }

    /// The least-squares fit of y = log value at two different x = log N, with a floor three.
    pub(super) fn fit(x: &[f64], y: &[f64], variant: Variant) -> Self {
        match variant {
            Variant::Pure => Self::straight(x, y),
            Variant::Floor => Self::with_floor(x, y, &STARTS, STEPS, None),
        }
    }

    /// [`Self::fit`] of data that scatter around `near`, which saves most of the search.
    pub(super) fn refit(x: &[f64], y: &[f64], variant: Variant, near: Self) -> Self {
        match variant {
            Variant::Pure => Self::straight(x, y),
            Variant::Floor => Self::with_floor(x, y, &[0.95, 0.5], REPLICATE_STEPS, Some(near)),
        }
    }

    /// The straight line of log value over log N.
    fn straight(x: &[f64], y: &[f64]) -> Self {
        let n = x.len() as f64;
        let (mean_x, mean_y) = (x.iter().sum::<f64>() / n, y.iter().sum::<f64>() / n);
        let spread: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
        let slope = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
        Self { log_a: mean_y - slope * mean_x, alpha: -slope, floor: 0.0 }
    }

    /// The best of several descents and of the line without a floor, so the fit cannot fail.
    fn with_floor(x: &[f64], y: &[f64], starts: &[f64], steps: usize, near: Option<Self>) -> Self {
        let line = Self::straight(x, y);
        let [lowest, first] = [y, x].map(|of| of.iter().copied().fold(f64::INFINITY, f64::min));
        let lifted = starts.iter().map(|share| {
            // The line of what is left above a floor just below the smallest value.
            let above: Vec<f64> = y.iter().map(|y| y + (-share * (lowest - y).exp()).ln_1p()).collect();
            Self { floor: share * lowest.exp(), ..Self::straight(x, &above) }
        });
        let near = near.filter(|curve| curve.floor > 0.0 && curve.alpha > 0.0);
        let mut best = (line.squares(x, y), line);
        for start in lifted.chain(near) {
            let descent = Descent::new(x, y, lowest);
            let (mut squares, mut curve) = descent.run(start, steps, false);
            // Values that level off at once leave the range of α; their floor is as real as any.
            if curve.alpha > STEEPEST {
                (squares, curve) = descent.run(curve.turned(STEEPEST, first), steps, true);
            }
            let sound = curve.alpha > 0.0 && curve.alpha <= STEEPEST && curve.floor > 0.0;
            // Rounding alone must not make a floor.
            if sound && squares < best.0 * (1.0 - 1e-12) {
                best = (squares, curve);
            }
        }
        best.1
    }

    /// The same floor and the same value at `x`, with another exponent.
    fn turned(self, alpha: f64, x: f64) -> Self {
        Self { log_a: self.log_a + (alpha - self.alpha) * x, alpha, ..self }
    }

    /// Σ of squared residuals.
    pub(super) fn squares(&self, x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(&x, y)| (y - self.log_value(x)).powi(2)).sum()
    }
}

/// log(e^p + e^q), also where one is −∞.
fn log_add(p: f64, q: f64) -> f64 {
    let (high, low) = if p > q { (p, q) } else { (q, p) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// Levenberg-Marquardt in (b, α, g): log value = log(e^(b − α (x − x̄)) + e^g). Centred, b and α
/// hardly correlate, and all three derivatives stay between 0 and |x − x̄|.
struct Descent<'a> {
    x: &'a [f64],
    y: &'a [f64],
    centre: f64,
    lowest: f64,
}

impl<'a> Descent<'a> {
    fn new(x: &'a [f64], y: &'a [f64], lowest: f64) -> Self {
        Self { x, y, centre: x.iter().sum::<f64>() / x.len() as f64, lowest }
    }

    /// From `start`; `held` leaves its exponent as it is.
    fn run(&self, start: Curve, steps: usize, held: bool) -> (f64, Curve) {
        let mut at = Vector3::new(start.log_a - start.alpha * self.centre, start.alpha, start.floor.ln());
        let mut squares = self.squares(&at);
        let mut damping = 1e-3;
        for _ in 0..steps {
            let (hessian, gradient) = self.normal_equations(&at, held);
            let mut damped = hessian;
            for i in 0..3 {
                damped[(i, i)] += damping * hessian[(i, i)].max(1e-12);
            }
            let Some(step) = damped.cholesky().map(|factor| factor.solve(&gradient)) else {
                damping *= 10.0;
                continue;
            };
            let next = at + step;
            let reached = self.squares(&next);
            if reached <= squares {
                let done = squares - reached <= 1e-14 * squares && step.norm() < 1e-9 * (1.0 + at.norm());
                (at, squares) = (next, reached);
                damping = (damping / 5.0).max(1e-15);
                if done || at[2] < self.lowest + NO_FLOOR || at[1].abs() > 2.0 * STEEPEST {
                    break;
                }
            } else {
                damping *= 4.0;
                if damping > 1e12 {
                    break;
                }
            }
        }
        (squares, self.curve(&at))
    }

    fn curve(&self, at: &Vector3<f64>) -> Curve {
        let none = at[2] < self.lowest + NO_FLOOR;
        Curve {
            log_a: at[0] + at[1] * self.centre,
            alpha: at[1],
            floor: if none { 0.0 } else { at[2].min(LARGEST_LOG).exp() },
        }
    }

    fn squares(&self, at: &Vector3<f64>) -> f64 {
        let residual = |(x, y): (&f64, &f64)| y - log_add(at[0] - at[1] * (x - self.centre), at[2]);
        let squares: f64 = self.x.iter().zip(self.y).map(|point| residual(point).powi(2)).sum();
        if squares.is_nan() { f64::INFINITY } else { squares }
    }

    /// JᵀJ and Jᵀr; where α is `held`, such that it has no step.
    fn normal_equations(&self, at: &Vector3<f64>, held: bool) -> (Matrix3<f64>, Vector3<f64>) {
        let (mut hessian, mut gradient) = (Matrix3::zeros(), Vector3::zeros());
        for (x, y) in self.x.iter().zip(self.y) {
            let t = x - self.centre;
            let falling = at[0] - at[1] * t;
            let fitted = log_add(falling, at[2]);
            // The share of the falling part in the curve.
            let share = (falling - fitted).exp();
            let turn = if held { 0.0 } else { -share * t };
            let row = Vector3::new(share, turn, (at[2] - fitted).exp());
            hessian += row * row.transpose();
            gradient += row * (y - fitted);
        }
        if held {
            hessian[(1, 1)] = 1.0;
        }
        (hessian, gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_level_off_at_once_have_their_floor() {
        // 1, then 0.1: a·100^(−10) = 0.9 and c = 0.1 leave nothing; no α of a descent ends there.
        let sizes = [100.0, 1000.0, 1e4, 1e5].map(f64::ln);
        let scattered = [0.03, -0.02, 0.01, -0.02];
        for scatter in [0.0, 1.0] {
            let levels = [1.0, 0.1, 0.1, 0.1].map(f64::ln);
            let y: Vec<f64> = levels.iter().zip(scattered).map(|(y, by)| y + scatter * by).collect();
            let found = Curve::fit(&sizes, &y, Variant::Floor);
            assert!(
                (found.floor / 0.1 - 1.0).abs() < 0.02 && found.alpha <= STEEPEST && found.alpha > 2.0,
                "{found:?}"
            );
            assert!(found.squares(&sizes, &y) <= 2e-3, "{found:?}");
            // Replicates keep it too.
            let near = Curve::refit(&sizes, &y, Variant::Floor, found);
            assert!((near.floor / found.floor - 1.0).abs() < 1e-3, "{near:?}");
        }
        // The floor alone, where the law would have to be steeper than the bound: one doubling, a millionth left.
        let close = [100.0, 200.0, 400.0, 800.0].map(f64::ln);
        let y = [1.0, 0.1 + 1e-6, 0.1, 0.1].map(f64::ln);
        let found = Curve::fit(&close, &y, Variant::Floor);
        assert!(found.alpha == STEEPEST && (found.floor / 0.1 - 1.0).abs() < 0.01, "{found:?}");
    }
}
