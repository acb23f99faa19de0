//! Does a classifier know the posteriors?
//!
//! Compares the log-odds of an image's two most probable classes, on images where the second has at
//! least 1 %: where one class is all but certain, honest classifiers agree to any number of digits.
//! Images with the same log-odds count once, so a correct constant is one agreement.
//!
//! * **Nearly all**: the median |Δ log-odds| is at most 1e-3, a KL of about Δ²·p(1−p)/2 < 1e-7
//!   nats. A correctly specified model of d parameters fitted to N labels has a KL of d/2N at best
//!   (Akaike 1974): with d = 3 it needs 15 million labels for 1e-7. Networks have a million parameters.
//!   Rounding the posteriors to float16 or four digits changes log-odds by 5e-4, too little.
//! * **Some**: the errors of an honest classifier have a density about 0, so that one in a hundred
//!   of those within 1e-3 is within 1e-5, the round-off of float32 logits. If this share is at most
//!   one in 25 (a density that rises fourfold towards 0), the number within 1e-5 is at most
//!   binomial; its tail is the p-value.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::hits::upper_tail;

/// An error of the log-odds that cannot be reached by learning.
const KNOWN: f64 = 1e-3;
/// The error that float32 leaves of a number that was copied.
const COPIED: f64 = 1e-5;
/// Largest share of errors within [`KNOWN`] that are within [`COPIED`] by chance: 4 times flat.
const BY_CHANCE: f64 = 0.04;
/// Smallest probability of the second class of an image that tells something.
const TELLING: f64 = 0.01;
/// Fewer images have no median that tells something.
const FEWEST: usize = 20;

/// How near a classifier's log-odds are to the world's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// Images whose second class has at least 1 %, those of equal log-odds once.
    pub telling: usize,
    /// Median |Δ log-odds| over them, nats; absent without any.
    pub median: Option<f64>,
    /// Those within 1e-3.
    pub near: usize,
    /// Those within 1e-5.
    pub copied: usize,
    /// Probability of as many copies among the near ones by chance.
    pub p_value: f64,
}

impl Copied {
    /// Returns whether nearly all posteriors are known.
    pub(super) fn nearly_all(&self) -> bool {
        self.telling >= FEWEST && self.median.is_some_and(|median| median <= KNOWN)
    }
}

/// Compares `log_q` [n, K] with `p` [n, K].
pub(super) fn test(p: &[f64], log_q: &[f64], classes: usize) -> Copied {
    let mut seen = HashSet::new();
    let mut errors = Vec::new();
    for (p, log_q) in p.chunks(classes).zip(log_q.chunks(classes)) {
        let Some((a, b)) = two_largest(p).filter(|&(_, b)| p[b] >= TELLING) else { continue };
        let odds = (p[a] / p[b]).ln();
        if seen.insert((a, b, (odds / KNOWN).round() as i64)) {
            errors.push((log_q[a] - log_q[b] - odds).abs());
        }
    }
    errors.sort_unstable_by(f64::total_cmp);
    let within = |bound: f64| errors.partition_point(|&error| error <= bound);
    let (near, copied) = (within(KNOWN), within(COPIED));
    let median = errors.get(errors.len() / 2).copied();
    let p_value = upper_tail(&vec![BY_CHANCE; near], copied);
    Copied { telling: errors.len(), median, near, copied, p_value }
}

fn two_largest(p: &[f64]) -> Option<(usize, usize)> {
    let largest = |not: Option<usize>| {
        let others = (0..p.len()).filter(|&y| Some(y) != not);
        others.reduce(|best, y| if p[y] > p[best] { y } else { best })
    };
    let first = largest(None)?;
    Some((first, largest(Some(first))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    /// Log-odds spread over ±3, and a classifier that is off by `error` of each.
    fn worlds(n: usize, error: impl Fn(usize, f64) -> f64) -> Copied {
        let mut rng = Seed(2).rng(0);
        let (mut p, mut log_q) = (Vec::new(), Vec::new());
        for i in 0..n {
            let odds = 6.0 * rng.random::<f64>() - 3.0;
            let off = odds + error(i, rng.random::<f64>() - 0.5);
            p.extend([1.0 / (1.0 + (-odds).exp()), 1.0 / (1.0 + odds.exp())]);
            log_q.extend([-(-off).exp().ln_1p(), -off.exp().ln_1p()]);
        }
        test(&p, &log_q, 2)
    }

    #[test]
    fn round_off_is_told_from_learning() {
        let honest = worlds(5000, |_, u| 0.05 * u);
        assert!(!honest.nearly_all() && honest.p_value > 1e-3 && honest.near > 50, "{honest:?}");
        let all = worlds(5000, |_, u| 1e-6 * u);
        assert!(all.nearly_all() && all.p_value < 1e-300, "{all:?}");
        // Rounded to float16 nothing is a copy, but all are known.
        let rounded = worlds(5000, |_, u| 1e-3 * u);
        assert!(rounded.nearly_all(), "{rounded:?}");
    }

    #[test]
    fn a_few_copies_are_found() {
        let few = worlds(5000, |i, u| if i % 300 == 0 { 1e-6 * u } else { 0.5 * u });
        assert!(!few.nearly_all() && few.copied >= 8 && few.p_value < 1e-8, "{few:?}");
    }

    #[test]
    fn a_constant_that_is_right_is_no_copy() {
        let p = [0.5, 0.5].repeat(1000);
        let found = test(&p, &p.iter().map(|p: &f64| p.ln()).collect::<Vec<_>>(), 2);
        assert_eq!((found.telling, found.copied), (1, 1));
        assert!(found.p_value >= 0.04 - 1e-12 && !found.nearly_all());
    }
}
