//! Gauss-Legendre nodes, and numbers that may be far below the smallest double.

use super::normal::{LN_SQRT_TAU, exp, ln};
use super::simd::Plain;

/// ln of the part of a sum below which a term of it plays no part: below a double's rounding.
pub(super) const LOG_NEGLIGIBLE: f64 = -46.0;

/// A sum Σ e^(log) of positive terms, with a half width of its interval, both over e^`log_scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scaled {
    pub log_scale: f64,
    pub value: f64,
    pub half_width: f64,
}

impl Scaled {
    /// 0.
    pub const ZERO: Self = Self { log_scale: 0.0, value: 0.0, half_width: 0.0 };

    /// From logarithms of terms, each known to the relative precision `relative`.
    pub fn of_logs(logs: &[f64], relative: f64) -> Self {
        let largest = logs.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        if largest == f64::NEG_INFINITY {
            return Self::ZERO;
        }
        let value: f64 = logs.iter().map(|l| (l - largest).exp()).sum();
        Self { log_scale: largest, value, half_width: relative * value }
    }

    /// From pairs (ln of a term, b), where a term is known as well as b², of which `precision` makes what it is known to.
    /// The largest b of the terms that count decides: one far in the tail may be as large as may be.
    pub fn of_tails(terms: &[(f64, f64)], precision: impl FnOnce(f64) -> f64) -> Self {
        let largest = terms.iter().fold(f64::NEG_INFINITY, |a, (log, _)| a.max(*log));
        let counts = terms.iter().filter(|(log, _)| *log > largest + LOG_NEGLIGIBLE);
        let furthest = counts.map(|(_, b)| *b).fold(0.0, f64::max);
        let logs: Vec<f64> = terms.iter().map(|(log, _)| *log).collect();
        Self::of_logs(&logs, precision(furthest))
    }

    /// The sum of `parts`, half widths added.
    pub fn total(parts: &[Self]) -> Self {
        let log_scale = parts.iter().map(|p| p.log_scale).fold(f64::NEG_INFINITY, f64::max);
        let add = |pick: fn(&Self) -> f64| parts.iter().map(|p| pick(p) * (p.log_scale - log_scale).exp()).sum();
        Self { log_scale, value: add(|p| p.value), half_width: add(|p| p.half_width) }
    }
}

/// Nodes and weights of the n-point Gauss-Legendre rule on (0, 1).
pub(super) fn gauss_legendre(n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut nodes, mut weights) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..n {
        // Newton's method from Tricomi's start.
        let mut x = -(std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 0.0;
        for _ in 0..100 {
            let (mut before, mut value) = (1.0, x);
            for k in 2..=n {
                let k = k as f64;
                (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
            }
            slope = n as f64 * (x * value - before) / (x * x - 1.0);
            let step = value / slope;
            x -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        nodes[i] = 0.5 * (1.0 + x);
        weights[i] = 1.0 / ((1.0 - x * x) * slope * slope);
    }
    (nodes, weights)
}

/// ∫ e^(log f) over the line by the trapezoidal rule, for analytic f that decays as a Gaussian,
/// found from `around` on: the error falls as e^(−c/step²). Two grids, one halfway between the
/// points of the other, tell it.
pub(super) fn line_integral(around: f64, step: f64, reach: f64, log_f: impl Fn(f64) -> f64) -> Scaled {
    let n = (reach / step).ceil() as i64;
    let logs: Vec<f64> = (-2 * n..=2 * n).map(|i| log_f(around + 0.5 * step * i as f64)).collect();
    let (even, odd): (Vec<_>, Vec<_>) = logs.iter().enumerate().partition(|(i, _)| i % 2 == 0);
    let largest = logs.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    if largest == f64::NEG_INFINITY {
        return Scaled::ZERO;
    }
    let sum = |part: &[(usize, &f64)]| part.iter().map(|(_, l)| (*l - largest).exp()).sum::<f64>() * step;
    let (even, odd) = (sum(&even), sum(&odd));
    let value = 0.5 * (even + odd);
    Scaled { log_scale: largest, value, half_width: (even - odd).abs() + 1e-14 * value }
}

/// ln of the terms of ∫_from^to e^(log f) by 16-point Gauss-Legendre panels no wider than `width`.
pub(super) fn panels(from: f64, to: f64, width: f64, log_f: impl Fn(f64) -> f64) -> Vec<f64> {
    let (nodes, weights) = gauss_legendre(16);
    let count = ((to - from) / width).ceil().max(1.0);
    let width = (to - from) / count;
    let at = |panel: usize, i: usize| (width * weights[i]).ln() + log_f(from + width * (panel as f64 + nodes[i]));
    (0..count as usize).flat_map(|panel| (0..16).map(move |i| (panel, i))).map(|(panel, i)| at(panel, i)).collect()
}

/// ln of the density of N(mean, 1) at x.
pub(super) fn log_normal(x: f64, mean: f64) -> f64 {
    -0.5 * (x - mean) * (x - mean) - LN_SQRT_TAU
}

/// ln(1 − Π_j (1 − q_j)^count) from pairs (ln q_j, count): no digit is lost where all q are small.
pub(super) fn log_any(chances: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let largest = chances.clone().map(|(l, _)| l).fold(f64::NEG_INFINITY, f64::max);
    if largest < -600.0 {
        let sum: f64 = chances.map(|(l, n)| n * (l - largest).exp()).sum();
        return largest + sum.ln();
    }
    let none: f64 = chances.map(|(l, n)| n * (-exp::<Plain>(l.min(0.0))).ln_1p()).sum();
    ln::<Plain>((-none.exp_m1()).max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauss_rules_are_exact_for_their_degree() {
        for n in [1, 2, 5, 16, 24, 48] {
            let (nodes, weights) = gauss_legendre(n);
            for power in 0..2 * n as i32 {
                let integral: f64 = nodes.iter().zip(&weights).map(|(x, w)| w * x.powi(power)).sum();
                assert!((integral * f64::from(power + 1) - 1.0).abs() < 1e-13, "{n} {power}");
            }
        }
    }

    #[test]
    fn a_gaussian_integrates_to_one_however_small() {
        let integral = line_integral(3.0, 0.25, 12.0, |x| log_normal(x, 3.3) - 5000.0);
        assert!(((integral.log_scale + 5000.0).exp() * integral.value - 1.0).abs() < 5e-12);
        assert!(integral.half_width < 3e-14 * integral.value);
    }

    #[test]
    fn any_of_small_chances_keeps_its_digits() {
        let chances = [(1e-20f64.ln(), 3.0), (2e-20f64.ln(), 1.0)];
        assert!((log_any(chances.into_iter()) - 5e-20f64.ln()).abs() < 1e-13);
        let tiny = [(-1000.0, 2.0), (-1001.0, 1.0)];
        assert!((log_any(tiny.into_iter()) + 1000.0 - (2.0 + (-1f64).exp()).ln()).abs() < 1e-12);
    }
}
