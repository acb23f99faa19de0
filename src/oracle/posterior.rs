//! The exact posterior of one image and what follows from it (theory §2), in log space throughout.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::stats::log_sum_exp;
use crate::units::{ClassId, Smoothing};

/// Class prior π: non-negative, sums to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Prior(Vec<f64>);

impl Prior {
    /// 1/K each.
    pub fn uniform(classes: usize) -> Self {
        Self(vec![1.0 / classes as f64; classes])
    }

    /// From weights ≥ 0, normalised to sum 1; kept to the bit where they do up to rounding, so that
    /// a prior that was written down reads back as itself.
    ///
    /// # Errors
    /// When a weight is negative or not finite, or all are 0.
    pub fn new(weights: &[f64]) -> Result<Self> {
        let sum: f64 = weights.iter().sum();
        if sum.is_infinite() && weights.iter().all(|w| w.is_finite()) {
            return Err(Error::input(format!(
                "class prior {weights:?}: the sum of its numbers is too large for 64 bits"
            )));
        }
        if weights.iter().any(|w| !w.is_finite() || *w < 0.0) || !sum.is_finite() || sum <= 0.0 {
            return Err(Error::input(format!("class prior {weights:?} must be numbers ≥ 0 that are not all 0")));
        }
        if (sum - 1.0).abs() <= weights.len() as f64 * f64::EPSILON {
            return Ok(Self(weights.to_vec()));
        }
        Ok(Self(weights.iter().map(|w| w / sum).collect()))
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.0.len()
    }

    /// "uniform", or the probabilities as a list.
    pub fn describe(&self) -> String {
        match self.0.iter().all(|p| *p == self.0[0]) {
            true => "uniform".into(),
            false => format!("{:?}", self.0),
        }
    }

    /// 1 − max π: the Bayes error where images tell nothing.
    pub fn guessing_error(&self) -> f64 {
        1.0 - self.0.iter().fold(0.0, |a: f64, &b| a.max(b))
    }

    /// π_y of every class.
    pub fn probabilities(&self) -> &[f64] {
        &self.0
    }
}

impl TryFrom<Vec<f64>> for Prior {
    type Error = Error;
    fn try_from(weights: Vec<f64>) -> Result<Self> {
        Self::new(&weights)
    }
}

impl From<Prior> for Vec<f64> {
    fn from(prior: Prior) -> Vec<f64> {
        prior.0
    }
}

/// p_T(y|x) of one image and its summary; under label noise that of the noisy label, p~ = Cᵀ p_T.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Posterior {
    /// log p(x|y) of every class, nats, total.
    pub log_likelihood: Vec<f64>,
    /// p_T(y|x) of every class.
    #[serde(rename = "posterior")]
    pub probabilities: Vec<f64>,
    /// log p_T(y|x) of every class, nats: keeps what `probabilities` rounds to 0.
    #[serde(skip)]
    pub log_probabilities: Vec<f64>,
    /// H(p_T(·|x)), nats.
    pub entropy_nats: f64,
    /// log p(x) = log Σ_y π_y p(x|y), nats.
    pub log_px: f64,
    /// Difference of the two largest probabilities.
    pub margin: f64,
    /// The most probable class.
    pub decision: ClassId,
}

impl Posterior {
    /// p_T(y|x) ∝ (π_y p(x|y))^(1/T). Likelihoods of ±∞ (τ = 0) and priors of 0 are taken at their
    /// word: where no class has a density all probabilities are 0, see [`Self::defined`].
    pub fn new(log_likelihood: Vec<f64>, prior: &Prior, smoothing: Smoothing) -> Self {
        let joint: Vec<f64> = log_likelihood.iter().zip(prior.probabilities()).map(|(l, p)| joint(*l, *p)).collect();
        let log_px = log_sum_exp(joint.iter().copied());
        let log_probabilities = if log_px == f64::INFINITY {
            among_infinite(&joint, prior)
        } else {
            // Less the largest, so that with a small T only negligible terms underflow.
            let most = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let tempered = |j: &f64| if *j == f64::NEG_INFINITY { *j } else { (j - most) / smoothing.get() };
            let tempered: Vec<f64> = joint.iter().map(tempered).collect();
            let norm = log_sum_exp(tempered.iter().copied());
            tempered.iter().map(|t| if *t == f64::NEG_INFINITY { *t } else { t - norm }).collect()
        };
        let probabilities = log_probabilities.iter().map(|l: &f64| l.exp()).collect();
        Self::of_probabilities(log_likelihood, log_px, log_probabilities, probabilities)
    }

    /// From probabilities and their logarithms, with the summary.
    pub(super) fn of_probabilities(
        log_likelihood: Vec<f64>,
        log_px: f64,
        log_probabilities: Vec<f64>,
        probabilities: Vec<f64>,
    ) -> Self {
        let terms = probabilities.iter().zip(&log_probabilities).filter(|(p, _)| **p > 0.0);
        // From 0, so that certainty is 0 and not −0.
        let entropy_nats = 0.0 - terms.map(|(p, l)| p * l).sum::<f64>();
        let (decision, margin) = decide(&log_probabilities);
        Self {
            log_likelihood,
            probabilities,
            log_probabilities,
            entropy_nats: entropy_nats.max(0.0),
            log_px,
            margin,
            decision,
        }
    }

    /// Itself, where the image `id` has a density under a class of prior above 0: otherwise there
    /// is nothing to divide by.
    ///
    /// # Errors
    /// Names the image.
    pub fn defined(self, id: &str) -> Result<Self> {
        if self.log_px > f64::NEG_INFINITY {
            return Ok(self);
        }
        Err(Error::input(format!(
            "{id}: no class of prior above 0 can have made this image at this τ, so that it has no posterior; raise τ, or give its class a \
             prior"
        )))
    }

    /// 1 − p(class|x): the probability that deciding for this class is wrong, without the rounding
    /// of that difference.
    pub fn doubt(&self, class: ClassId) -> f64 {
        let others = self.probabilities.iter().enumerate().filter(|(k, _)| *k != class);
        // The sum of no numbers is −0.
        others.map(|(_, p)| p).sum::<f64>() + 0.0
    }

    /// Largest difference of a probability.
    pub fn distance(&self, other: &Self) -> f64 {
        let pairs = self.probabilities.iter().zip(&other.probabilities);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    /// The label that the uniform number `u` in [0, 1) draws from the posterior.
    pub fn draw(&self, u: f64) -> ClassId {
        draw(&self.probabilities, u)
    }
}

/// log(π p); 0 · anything is 0.
fn joint(log_likelihood: f64, prior: f64) -> f64 {
    if prior == 0.0 { f64::NEG_INFINITY } else { log_likelihood + prior.ln() }
}

/// Where some likelihoods are infinite (points of no width), only those count, by their prior.
fn among_infinite(joint: &[f64], prior: &Prior) -> Vec<f64> {
    let infinite = |j: &f64| *j == f64::INFINITY;
    let pairs = || joint.iter().zip(prior.probabilities());
    let mass: f64 = pairs().filter(|(j, _)| infinite(j)).map(|(_, p)| p).sum();
    pairs().map(|(j, p)| if infinite(j) { (p / mass).ln() } else { f64::NEG_INFINITY }).collect()
}

/// The index of the largest value and its lead, in probability, over the second.
fn decide(log_probabilities: &[f64]) -> (ClassId, f64) {
    let mut best = (0, f64::NEG_INFINITY);
    let mut second = f64::NEG_INFINITY;
    for (class, &value) in log_probabilities.iter().enumerate() {
        if value > best.1 {
            second = best.1;
            best = (class, value);
        } else {
            second = second.max(value);
        }
    }
    (best.0, best.1.exp() - second.exp())
}

/// The class whose share of [0, 1) holds `u`.
pub fn draw(probabilities: &[f64], u: f64) -> ClassId {
    let mut left = u * probabilities.iter().sum::<f64>();
    for (class, p) in probabilities.iter().enumerate() {
        left -= p;
        if left < 0.0 {
            return class;
        }
    }
    probabilities.iter().rposition(|p| *p > 0.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posterior(log_likelihood: &[f64], prior: &[f64], smoothing: f64) -> Posterior {
        Posterior::new(log_likelihood.to_vec(), &Prior::new(prior).unwrap(), Smoothing::new(smoothing).unwrap())
    }

    #[test]
    fn bayes_rule_at_any_offset() {
        for offset in [0.0, 1e5, -1e5] {
            let p = posterior(&[offset, offset + 2f64.ln(), offset + 3f64.ln()], &[0.5, 0.25, 0.25], 1.0);
            let expected = [2.0 / 7.0, 2.0 / 7.0, 3.0 / 7.0];
            assert!(p.probabilities.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-10));
            assert_eq!(p.decision, 2);
            assert!((p.margin - 1.0 / 7.0).abs() < 1e-10);
            assert!((p.log_px - offset - (1.75f64).ln()).abs() < 1e-9);
        }
    }

    #[test]
    fn smoothing_flattens_and_keeps_the_decision() {
        let likelihood = [-3.0, 0.0, -1.0];
        let prior = [0.2, 0.3, 0.5];
        let entropies: Vec<f64> =
            [0.1, 1.0, 10.0, 1e6].map(|t| posterior(&likelihood, &prior, t).entropy_nats).to_vec();
        assert!(entropies.is_sorted());
        assert!((entropies[3] - 3f64.ln()).abs() < 1e-6);
        let expected: Vec<f64> = likelihood.iter().zip(prior).map(|(l, p)| (p * f64::exp(*l)).sqrt()).collect();
        let sum: f64 = expected.iter().sum();
        let half = posterior(&likelihood, &prior, 2.0);
        assert!(half.probabilities.iter().zip(expected).all(|(a, b)| (a - b / sum).abs() < 1e-12));
    }

    #[test]
    fn extremes_are_taken_at_their_word() {
        let inf = f64::INFINITY;
        let p = posterior(&[inf, -inf, inf], &[0.1, 0.6, 0.3], 1.0);
        assert!((p.probabilities[0] - 0.25).abs() < 1e-12 && p.probabilities[1] == 0.0);
        let p = posterior(&[0.0, 1000.0], &[1.0, 0.0], 1.0);
        assert_eq!(p.probabilities, [1.0, 0.0]);
        assert_eq!(p.entropy_nats, 0.0);
        let p = posterior(&[0.0, -2000.0], &[0.5, 0.5], 1.0);
        assert_eq!(p.log_probabilities[1], -2000.0);
        // Of a single class nothing is in doubt, and that nothing has no sign.
        assert!(posterior(&[5.0], &[1.0], 1.0).doubt(0).is_sign_positive());
    }

    #[test]
    fn the_smallest_smoothing_is_the_decision_and_ties_are_shared() {
        for smoothing in [1e-300, 1e-310, 5e-324] {
            for (likelihood, expected) in [
                ([-3.0, 500.0, 499.0], [0.0, 1.0, 0.0]),
                ([-3e6, -2e6, -2e6], [0.0, 0.5, 0.5]),
                ([7.0, f64::NEG_INFINITY, 7.0], [0.0, 0.0, 1.0]),
            ] {
                let p = posterior(&likelihood, &[0.25, 0.375, 0.375], smoothing);
                assert_eq!(p.probabilities, expected, "{likelihood:?} at {smoothing}");
                assert!(p.log_px.is_finite() && p.entropy_nats >= 0.0);
            }
        }
    }

    #[test]
    fn an_image_without_a_density_has_no_posterior() {
        let inf = f64::INFINITY;
        let nowhere = posterior(&[inf, -inf], &[0.0, 1.0], 1.0);
        assert_eq!(nowhere.probabilities, [0.0, 0.0]);
        let why = nowhere.defined("image 7").unwrap_err().to_string();
        assert!(why.contains("image 7") && why.contains("no posterior"), "{why}");
        let some = posterior(&[inf, -inf], &[0.5, 0.5], 1.0);
        assert_eq!(some.clone().defined("image 8").unwrap(), some);
    }

    #[test]
    fn a_draw_falls_in_its_share() {
        assert_eq!([0.0, 0.19, 0.21, 0.69, 0.71, 0.999].map(|u| draw(&[0.2, 0.5, 0.3], u)), [0, 0, 1, 1, 2, 2]);
        assert_eq!(draw(&[0.5, 0.5, 0.0], 1.0 - 1e-17), 1);
    }

    #[test]
    fn priors_refuse_what_is_no_prior() {
        assert!(Prior::new(&[0.0, 0.0]).is_err());
        assert!(Prior::new(&[1.0, -0.1]).is_err());
        assert!(Prior::new(&[f64::NAN]).is_err());
        assert_eq!(Prior::new(&[1.0, 3.0]).unwrap().probabilities(), [0.25, 0.75]);
        for classes in [3, 10, 1000] {
            let even = Prior::uniform(classes);
            let uneven = Prior::new(&(1..=classes).map(|k| (k as f64).sqrt()).collect::<Vec<_>>()).unwrap();
            for prior in [even, uneven] {
                let text = serde_json::to_string(&prior).unwrap();
                assert_eq!(serde_json::from_str::<Prior>(&text).unwrap(), prior);
            }
        }
    }
}
