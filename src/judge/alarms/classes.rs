//! Are the columns of the predictions in the order of the classes?
//!
//! The permutation σ of classes that maximises mean Σ_y p(y) log q(σ(y)) is an assignment problem
//! (Kuhn 1955), solved on every second image. It is tested on the others, which σ has not seen. A
//! classifier that knows little and learned it where other classes were frequent gains by σ, too: so σ
//! is held against the weights w of the classes, q(y) ∝ w_y q(y), that maximise the same mean on the
//! same images. What counts is the mean gain of log q over that of the weights, over its standard error (one-sided,
//! normal). The alarm needs more than significance: σ must also halve the epistemic KL(p‖q) of both,
//! for a poor classifier may truly mistake two classes for each other.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::assignment::assign;
use crate::stats::log_sum_exp;

/// log q counts as at least this: single rows must not outweigh all others.
const FLOOR: f64 = -20.0;
/// Steps towards the best weights of the classes; each gets nearer.
const STEPS: usize = 20;
/// Images below which there is no test: their halves hold no class to class comparison.
pub(in crate::judge) const FEWEST: usize = 40;

/// A permutation of classes and what it would explain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassOrder {
    /// Best column of the predictions for each class; 0, 1, … for the given order.
    pub column_of: Vec<usize>,
    /// Images of the half on which it was tested; 0 where there are too few of them: `given` and `permuted` are then of all.
    #[serde(default)]
    pub tested_on: usize,
    /// mean Σ_y p (log p − log q) of the other half as given, log q ≥ −20, nats.
    pub given: f64,
    /// The same with the permutation.
    pub permuted: f64,
    /// The same as given, with the best weights of the classes; absent where no permutation is better.
    #[serde(default)]
    pub reweighted: Option<f64>,
    /// Probability of such a gain over the weights where there is none.
    pub p_value: f64,
}

impl ClassOrder {
    /// Returns whether it differs from the given order and halves the epistemic part, whatever the weights of the classes.
    pub(super) fn explains(&self) -> bool {
        let least = self.reweighted.unwrap_or(self.given).min(self.given);
        self.column_of.iter().enumerate().any(|(class, &column)| class != column) && self.permuted < 0.5 * least
    }
}

/// Looks for a better order of the columns of `log_q` [n, K] against `p` [n, K].
pub(super) fn test(p: &[f64], log_q: &[f64], classes: usize) -> ClassOrder {
    let given: Vec<usize> = (0..classes).collect();
    let n = p.len() / classes.max(1);
    let few = n < FEWEST || classes < 2;
    let order = |step: usize| if few { given.clone() } else { best(p, log_q, classes, step) };
    let found = order(2);
    let weights = if found == given { vec![0.0; classes] } else { weights(p, log_q, classes) };
    let row = |i: usize| {
        let (p, log_q) = (&p[i * classes..(i + 1) * classes], &log_q[i * classes..(i + 1) * classes]);
        let kl = |log_q: &dyn Fn(usize) -> f64| {
            let there = (0..classes).filter(|&y| p[y] > 0.0);
            there.map(|y| p[y] * (p[y].ln() - log_q(y))).sum::<f64>()
        };
        let weighted = |y: usize| log_q[y].max(FLOOR) + weights[y];
        let log_sum = log_sum_exp((0..classes).map(weighted));
        [kl(&|y| log_q[y].max(FLOOR)), kl(&|y| log_q[found[y]].max(FLOOR)), kl(&|y| weighted(y) - log_sum)]
    };
    let others: Vec<[f64; 3]> = if few { (0..n).map(row).collect() } else { (1..n).step_by(2).map(row).collect() };
    let count = others.len().max(1) as f64;
    let mean = |of: &dyn Fn(&[f64; 3]) -> f64| others.iter().map(of).sum::<f64>() / count;
    let [of_given, permuted, reweighted] = [0, 1, 2].map(|at| mean(&|kl| kl[at]));
    // Weights that were chosen on a half may be worse than none on the other.
    let rival = if reweighted < of_given { 2 } else { 0 };
    let gain = mean(&|kl| kl[rival] - kl[1]);
    let variance = mean(&|kl| (kl[rival] - kl[1] - gain).powi(2));
    let error = (variance / count).sqrt();
    let p_value = match (found == given, error > 0.0) {
        (true, _) => 1.0,
        (false, true) => Normal::standard().cdf(-gain / error),
        (false, false) => f64::from(u8::from(gain <= 0.0)),
    };
    let reweighted = (found != given).then_some(reweighted);
    // The suggestion uses all images; the test does not.
    let (column_of, tested_on) = (order(1), if few { 0 } else { others.len() });
    ClassOrder { column_of, tested_on, given: of_given, permuted, reweighted, p_value }
}

/// Logarithms of the weights of the classes that maximise mean Σ_y p(y) log q(y) on every second image, by iterative
/// scaling (Darroch & Ratcliff 1972): each class by its share in p over its share in q.
fn weights(p: &[f64], log_q: &[f64], classes: usize) -> Vec<f64> {
    let images: Vec<usize> = (0..p.len() / classes).step_by(2).map(|i| i * classes).collect();
    let shares = |part: &dyn Fn(usize, &mut [f64])| {
        let mut sums = vec![0.0; classes];
        images.iter().for_each(|&at| part(at, &mut sums));
        sums
    };
    let of_p = shares(&|at, sums| sums.iter_mut().zip(&p[at..]).for_each(|(sum, p)| *sum += p));
    let mut weights = vec![0.0; classes];
    for _ in 0..STEPS {
        let of_q = shares(&|at, sums| {
            let weighted = |y: usize| log_q[at + y].max(FLOOR) + weights[y];
            let log_sum = log_sum_exp((0..classes).map(weighted));
            sums.iter_mut().enumerate().for_each(|(y, sum)| *sum += (weighted(y) - log_sum).exp());
        });
        // A class that p has nowhere keeps its weight: −∞ would be as good, and no number.
        for ((weight, of_p), of_q) in weights.iter_mut().zip(&of_p).zip(of_q).filter(|((_, of_p), _)| **of_p > 0.0) {
            *weight += (of_p / of_q).ln();
        }
    }
    weights
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
