//! Are the columns of the predictions in the order of the classes?
//!
//! The permutation σ of classes that maximises mean Σ_y p(y) log q(σ(y)) is an assignment problem
//! (Kuhn 1955), solved on every second image. It is tested on the others, which σ has not seen: the
//! mean gain of log q there, over its standard error (one-sided, normal). The alarm needs more than
//! significance: σ must also halve the epistemic KL(p‖q), for a poor classifier may truly mistake
//! two classes for each other.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::assignment::assign;

/// log q counts as at least this: single rows must not outweigh all others.
const FLOOR: f64 = -20.0;
/// Fewer images in a half hold no class to class comparison.
const FEWEST: usize = 20;

/// A permutation of classes and what it would explain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassOrder {
    /// Best column of the predictions for each class; 0, 1, … for the given order.
    pub column_of: Vec<usize>,
    /// mean Σ_y p (log p − log q) of the other half as given, log q ≥ −20, nats.
    pub given: f64,
    /// The same with the permutation.
    pub permuted: f64,
    /// Probability of such a gain where there is none.
    pub p_value: f64,
}

impl ClassOrder {
    /// Returns whether it differs from the given order and halves the epistemic part.
    pub(super) fn explains(&self) -> bool {
        self.column_of.iter().enumerate().any(|(class, &column)| class != column) && self.permuted < 0.5 * self.given
    }
}

/// Looks for a better order of the columns of `log_q` [n, K] against `p` [n, K].
pub(super) fn test(p: &[f64], log_q: &[f64], classes: usize) -> ClassOrder {
    let given: Vec<usize> = (0..classes).collect();
    let n = p.len() / classes.max(1);
    if n < 2 * FEWEST || classes < 2 {
        return ClassOrder { column_of: given, given: 0.0, permuted: 0.0, p_value: 1.0 };
    }
    let found = best(p, log_q, classes, 2);
    let row = |i: usize| {
        let (p, log_q) = (&p[i * classes..(i + 1) * classes], &log_q[i * classes..(i + 1) * classes]);
        let kl = |order: &[usize]| {
            let there = (0..classes).filter(|&y| p[y] > 0.0);
            there.map(|y| p[y] * (p[y].ln() - log_q[order[y]].max(FLOOR))).sum::<f64>()
        };
        [kl(&given), kl(&found)]
    };
    let others: Vec<[f64; 2]> = (1..n).step_by(2).map(row).collect();
    let count = others.len() as f64;
    let mean = |of: &dyn Fn(&[f64; 2]) -> f64| others.iter().map(of).sum::<f64>() / count;
    let gain = mean(&|kl| kl[0] - kl[1]);
    let variance = mean(&|kl| (kl[0] - kl[1] - gain).powi(2));
    let error = (variance / count).sqrt();
    let p_value = match (found == given, error > 0.0) {
        (true, _) => 1.0,
        (false, true) => Normal::standard().cdf(-gain / error),
        (false, false) => f64::from(u8::from(gain <= 0.0)),
    };
    let (given, permuted) = (mean(&|kl| kl[0]), mean(&|kl| kl[1]));
    // The suggestion uses all images; the test does not.
    ClassOrder { column_of: best(p, log_q, classes, 1), given, permuted, p_value }
}

/// The best column of each class on every `step`-th image.
fn best(p: &[f64], log_q: &[f64], classes: usize, step: usize) -> Vec<usize> {
    let mut cost = vec![0.0; classes * classes];
    for i in (0..p.len() / classes).step_by(step) {
        let (p, log_q) = (&p[i * classes..(i + 1) * classes], &log_q[i * classes..(i + 1) * classes]);
        for (y, &weight) in p.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            let costs = cost[y * classes..(y + 1) * classes].iter_mut().zip(log_q);
            costs.for_each(|(cost, log_q)| *cost -= weight * log_q.max(FLOOR));
        }
    }
    assign(&cost, classes)
}
