//! The posterior of an image while classes are still being evaluated: what is known of it already.

use crate::error::Result;
use crate::flow::{Flow, Scores};
use crate::oracle::posterior::{Posterior, Prior};
use crate::units::{ClassId, Smoothing};

/// Classes evaluated between two reports.
pub const CLASS_BATCH: usize = 4;

/// What the first n of K classes imply about p_T(y|x).
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// Classes evaluated, n.
    pub evaluated: usize,
    /// Classes in all, K.
    pub classes: usize,
    /// p_T(y|x) among the evaluated classes. Every further class adds to the denominator and
    /// nothing else, so this is an upper bound of the final value.
    pub upper: Vec<f64>,
    /// The value p_T(y|x) would take if every open class made the image as likely as the best
    /// evaluated one. An assumption, not a bound: an open class may be likelier.
    pub lower: Vec<f64>,
    /// What the open classes would take together under that assumption.
    pub open: f64,
    /// The most probable class so far.
    pub best: ClassId,
}

impl Running {
    /// From log p(x|y) of the classes 0 … n − 1 (nats), n ≥ 1, and the prior of all K.
    pub fn new(log_likelihood: &[f64], prior: &Prior, smoothing: Smoothing) -> Self {
        let (n, classes) = (log_likelihood.len(), prior.classes());
        let filled = |open: f64| {
            let rest = std::iter::repeat_n(open, classes.saturating_sub(n));
            let all: Vec<f64> = log_likelihood.iter().copied().chain(rest).collect();
            Posterior::new(all, prior, smoothing)
        };
        let known = filled(f64::NEG_INFINITY);
        let likeliest = log_likelihood.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let assumed = filled(likeliest).probabilities;
        Self {
            evaluated: n,
            classes,
            upper: known.probabilities[..n].to_vec(),
            lower: assumed[..n].to_vec(),
            open: assumed[n..].iter().sum(),
            best: known.decision,
        }
    }
}

/// Statistics of images `x` under every class, [`CLASS_BATCH`] classes at a time where the map
/// depends on the class; `each` gets the statistics so far after every batch, and may stop.
///
/// # Errors
/// As [`Flow::score_classes`], and what `each` returns.
pub fn score_by_classes(flow: &dyn Flow, x: &[f32], each: &mut dyn FnMut(&Scores) -> Result<()>) -> Result<Scores> {
    let classes = flow.classes();
    // A shared map is passed once for all classes.
    let step = if flow.passes_by_class() { CLASS_BATCH } else { classes };
    let mut all = flow.score_classes(x, 0..step.min(classes))?;
    each(&all)?;
    while all.classes < classes {
        let next = all.classes..(all.classes + step).min(classes);
        all = all.with_classes(&flow.score_classes(x, next)?);
        each(&all)?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIKELIHOOD: [f64; 5] = [-3.0, 1.0, 0.5, 2.0, -0.5];

    fn prior() -> Prior {
        Prior::new(&[0.1, 0.3, 0.2, 0.15, 0.25]).unwrap()
    }

    #[test]
    fn upper_values_only_shrink_and_end_in_the_posterior() {
        for smoothing in [0.5, 1.0, 20.0] {
            let smoothing = Smoothing::new(smoothing).unwrap();
            let last = Posterior::new(LIKELIHOOD.to_vec(), &prior(), smoothing);
            let mut before: Option<Running> = None;
            for n in 1..=5 {
                let now = Running::new(&LIKELIHOOD[..n], &prior(), smoothing);
                assert!((now.upper.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!((now.lower.iter().sum::<f64>() + now.open - 1.0).abs() < 1e-12);
                for y in 0..n {
                    assert!(now.upper[y] >= last.probabilities[y] - 1e-15 && now.lower[y] <= now.upper[y] + 1e-15);
                    if let Some(before) = before.as_ref().filter(|before| y < before.evaluated) {
                        assert!(now.upper[y] <= before.upper[y] + 1e-15);
                    }
                }
                before = Some(now);
            }
            let end = before.unwrap();
            assert!(end.evaluated == end.classes && end.open == 0.0 && end.best == last.decision);
            assert_eq!((&end.upper, &end.lower), (&last.probabilities, &last.probabilities));
        }
    }

    #[test]
    fn the_assumption_is_that_of_the_words() {
        let now = Running::new(&LIKELIHOOD[..2], &prior(), Smoothing::ONE);
        // Classes 2, 3 and 4 as likely as the best so far, e^1, each by its own prior.
        let weights = [0.1 * (-3f64).exp(), 0.3 * 1f64.exp(), 0.6 * 1f64.exp()];
        let sum: f64 = weights.iter().sum();
        assert!((now.lower[1] - weights[1] / sum).abs() < 1e-12);
        assert!((now.open - weights[2] / sum).abs() < 1e-12);
        // An open class may be likelier, so the lower value is none of a bound: class 3 takes more
        // than was assumed.
        let likelier = Posterior::new(vec![-3.0, 1.0, 9.0, 9.0, 9.0], &prior(), Smoothing::ONE);
        assert!(likelier.probabilities[1] < now.lower[1]);
    }

    #[test]
    fn infinite_likelihoods_are_taken_at_their_word() {
        let now = Running::new(&[f64::NEG_INFINITY, f64::INFINITY], &prior(), Smoothing::ONE);
        assert_eq!(now.upper, [0.0, 1.0]);
        assert!((now.lower[1] - 0.3 / 0.9).abs() < 1e-12);
    }
}
