//! How likely a classifier that does not know the labels can find them.
//!
//! Given the images alone, s = Σ_i log q_i(y_i) is a sum of independent terms whose whole
//! distribution is known: term i is log q_i(y) with probability p_i(y). So its moment generating
//! function is exact, and Chernoff's bound
//!
//! P(s ≥ t) ≤ min_{θ ≥ 0} exp( Σ_i log Σ_y p_i(y) q_i(y)^θ − θ t )  (Chernoff 1952, theorem 1)
//!
//! is a valid p-value for every n and however heavy the tails of log q are, which a z score is not.
//! It is a few times too large: a factor of about θ·sd·√(2π), 10 at the level used here. Any θ
//! gives a valid bound, so the minimum may be rough.

use serde::{Deserialize, Serialize};

use crate::parallel;

/// Largest exponent tried: there q^θ is all but a choice of the most probable class.
const STEEPEST: f64 = 1e6;
/// Halvings of an exponent's bracket.
const HALVINGS: usize = 60;

/// The drawn labels' log-likelihood and its expectation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Likelihood {
    /// mean log q(drawn label), nats.
    pub drawn: f64,
    /// Its expectation given the images, −L, nats.
    pub expected: f64,
    /// Standard deviations of the sum between the two.
    pub z: f64,
    /// Bound of the probability of a sum as large, or larger.
    pub p_value: f64,
}

/// The cumulant generating function of the sum and its first two derivatives, at θ.
fn cumulant(p: &[f64], log_q: &[f64], classes: usize, theta: f64) -> [f64; 3] {
    let row = |i: usize| {
        let of = i * classes..(i + 1) * classes;
        let (p, log_q) = (&p[of.clone()], &log_q[of]);
        let term = |y: usize| p[y].ln() + theta * log_q[y];
        let there = (0..classes).filter(|&y| p[y] > 0.0);
        let top = there.clone().map(term).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for y in there {
            let weight = (term(y) - top).exp();
            sum += weight;
            first += weight * log_q[y];
            second += weight * log_q[y] * log_q[y];
        }
        let mean = first / sum;
        [top + sum.ln(), mean, (second / sum - mean * mean).max(0.0)]
    };
    // Summed in the order of the images: the same on any number of threads.
    let rows = parallel::map(p.len() / classes, row);
    rows.iter().fold([0.0; 3], |sum, row| std::array::from_fn(|at| sum[at] + row[at]))
}

/// The drawn labels' log-likelihood under finite `log_q` [n, K]; labels are drawn from `p` [n, K].
pub(super) fn test(p: &[f64], log_q: &[f64], labels: &[usize], classes: usize) -> Likelihood {
    let n = labels.len() as f64;
    let drawn: f64 = labels.iter().enumerate().map(|(i, &y)| log_q[i * classes + y]).sum();
    let [_, expected, variance] = cumulant(p, log_q, classes, 0.0);
    let z = if variance > 0.0 { (drawn - expected) / variance.sqrt() } else { 0.0 };
    let p_value = if z > 0.0 { bound(p, log_q, classes, drawn) } else { 1.0 };
    Likelihood { drawn: drawn / n, expected: expected / n, z, p_value }
}

/// Chernoff's bound of a sum ≥ `drawn`, above its mean. Bisects the slope of the exponent.
fn bound(p: &[f64], log_q: &[f64], classes: usize, drawn: f64) -> f64 {
    let exponent = |theta: f64| {
        let [value, slope, _] = cumulant(p, log_q, classes, theta);
        (value - theta * drawn, slope - drawn)
    };
    let (mut low, mut high) = (0.0, 1.0);
    let mut best: f64 = 0.0;
    let mut halvings = 0;
    while halvings < HALVINGS {
        let falling_at_end = best_of(&mut best, exponent(high)) < 0.0;
        if !falling_at_end || high >= STEEPEST {
            break;
        }
        (low, high) = (high, 4.0 * high);
        halvings += 1;
    }
    while halvings < HALVINGS && high - low > 1e-4 * high {
        let middle = 0.5 * (low + high);
        if best_of(&mut best, exponent(middle)) < 0.0 {
            low = middle
        } else {
            high = middle
        }
        halvings += 1;
    }
    best.exp()
}

/// Keeps the smallest exponent seen. Returns the slope here.
fn best_of(best: &mut f64, (value, slope): (f64, f64)) -> f64 {
    *best = best.min(value);
    slope
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn the_bound_holds_over_all_outcomes_and_is_not_loose() {
        // Two classes, ten images: every outcome's bound against the exact tail.
        let p: Vec<f64> = (0..10).flat_map(|i| [0.1 + 0.08 * f64::from(i), 0.9 - 0.08 * f64::from(i)]).collect();
        let log_q: Vec<f64> = (0..10)
            .flat_map(|i| {
                [0.3f64, 0.6, 0.05][i % 3..=i % 3].iter().flat_map(|q| [q.ln(), (1.0 - q).ln()]).collect::<Vec<_>>()
            })
            .collect();
        let outcomes: Vec<(f64, f64, f64)> = (0..1024u32)
            .map(|mask| {
                let labels: Vec<usize> = (0..10).map(|i| (mask >> i & 1) as usize).collect();
                let weight: f64 = labels.iter().enumerate().map(|(i, &y)| p[2 * i + y]).product();
                let sum: f64 = labels.iter().enumerate().map(|(i, &y)| log_q[2 * i + y]).sum();
                (sum, weight, test(&p, &log_q, &labels, 2).p_value)
            })
            .collect();
        for (sum, _, p_value) in &outcomes {
            let exact: f64 = outcomes.iter().filter(|o| o.0 >= sum - 1e-12).map(|o| o.1).sum();
            assert!(*p_value >= exact * (1.0 - 1e-9), "{p_value} {exact}");
            assert!(*p_value <= 40.0 * exact, "{p_value} {exact}");
        }
        // The best outcome: the bound tends to its very probability.
        let best = outcomes.iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        assert!((best.2 / best.1 - 1.0).abs() < 0.01, "{best:?}");
    }

    #[test]
    fn p_values_of_honest_labels_are_not_too_small() {
        let (n, k, trials) = (200, 3, 1000);
        let mut rng = Seed(9).rng(0);
        let mut rows = || -> Vec<f64> {
            (0..n)
                .flat_map(|_| {
                    let r: [f64; 3] = std::array::from_fn(|_| rng.random::<f64>().powi(4) + 1e-3);
                    let s: f64 = r.iter().sum();
                    r.map(|x| x / s)
                })
                .collect()
        };
        let (p, q) = (rows(), rows());
        let log_q: Vec<f64> = q.iter().map(|q| q.ln()).collect();
        let below = (0..trials).filter(|&t| {
            let mut rng = Seed(10).rng(t);
            let draw = |row: &[f64]| {
                let u: f64 = rng.random();
                let mut c = 0.0;
                row.iter()
                    .position(|p| {
                        c += p;
                        u < c
                    })
                    .unwrap_or(k - 1)
            };
            let labels: Vec<usize> = p.chunks(k).map(draw).collect();
            test(&p, &log_q, &labels, k).p_value <= 0.05
        });
        let share = below.count() as f64 / trials as f64;
        println!("honest p-values at most 0.05: {share}");
        assert!(share <= 0.05 && share > 0.001, "{share}");
    }
}
