//! Scores of doubt from log-probabilities, one per image; entropies in nats, 0·log 0 = 0.
//!
//! The total of an ensemble, H(mean q_m), is its mean entropy plus its mutual information mean
//! KL(q_m ‖ mean q) (Houlsby et al. 2011, BALD; Depeweg et al. 2018). The latter is summed as KL:
//! as a difference of entropies a small one would be rounding. What rounding leaves of none is 0: it
//! would put images in an order that looks like knowledge.

use super::Score;
use crate::error::{Error, Result};
use crate::measure::images::{log_q_sum, named};
use crate::measure::softmax::argmax;
use crate::parallel;
use crate::stats::log_sum_exp;

/// Rounding of a mutual information, in units of what its logarithms are rounded by: of members that
/// agree it was one at most (2 to 1,000 classes, 2 to 30 members).
const ROUNDING: f64 = 4.0;

/// Scores [n] of one classifier.
#[derive(Debug, Clone, PartialEq)]
pub struct SingleScores {
    /// H(q), nats.
    pub entropy: Vec<f64>,
    /// 1 − max_y q.
    pub one_minus_confidence: Vec<f64>,
}

impl SingleScores {
    /// Of `log_q` [n, K] ([`crate::measure::log_softmax`]), normalised if off by up to 1e-3.
    ///
    /// # Errors
    /// When the shape does not fit, or a row is no distribution: the image is named.
    pub fn new(log_q: &[f64], classes: usize) -> Result<Self> {
        let scores = rows(&[log_q], classes)?;
        Ok(Self {
            entropy: scores.iter().map(|s| s.expected_entropy).collect(),
            one_minus_confidence: scores.iter().map(|s| s.one_minus_confidence).collect(),
        })
    }

    /// Each score with its values.
    pub fn all(&self) -> [(Score, &[f64]); 2] {
        [(Score::SoftmaxEntropy, &self.entropy), (Score::OneMinusConfidence, &self.one_minus_confidence)]
    }
}

/// Scores [n] of an ensemble of M classifiers.
#[derive(Debug, Clone, PartialEq)]
pub struct EnsembleScores {
    /// log of the mean of the members' probabilities [n, K]: the ensemble's own q, for its KL(p‖q).
    pub log_mean: Vec<f64>,
    /// H(mean q_m), nats.
    pub predictive_entropy: Vec<f64>,
    /// mean H(q_m), nats.
    pub expected_entropy: Vec<f64>,
    /// H(mean q_m) − mean H(q_m), nats, ≥ 0 and at most log M; 0 where members agree but for rounding.
    pub mutual_information: Vec<f64>,
    /// Share of members whose decision is not the most frequent one, below 1 − 1/M.
    pub variation_ratio: Vec<f64>,
    /// 1 − max_y mean q_m(y).
    pub one_minus_confidence: Vec<f64>,
}

impl EnsembleScores {
    /// Of the log-probabilities [n, K] of every member, normalised if off by up to 1e-3.
    ///
    /// # Errors
    /// When there are fewer than two members (one has nothing to disagree with), shapes differ, or
    /// a row is no distribution: the image is named.
    pub fn new(members: &[&[f64]], classes: usize) -> Result<Self> {
        if members.len() < 2 {
            return Err(Error::input(format!("an ensemble needs at least two members, not {}", members.len())));
        }
        let scores = rows(members, classes)?;
        let column = |of: fn(&Row) -> f64| scores.iter().map(of).collect();
        Ok(Self {
            predictive_entropy: column(|s| s.expected_entropy + s.mutual_information),
            expected_entropy: column(|s| s.expected_entropy),
            mutual_information: column(|s| s.mutual_information),
            variation_ratio: column(|s| s.variation_ratio),
            one_minus_confidence: column(|s| s.one_minus_confidence),
            log_mean: scores.iter().flat_map(|s| s.log_mean.iter().copied()).collect(),
        })
    }

    /// Each score with its values.
    pub fn all(&self) -> [(Score, &[f64]); 5] {
        [
            (Score::OneMinusConfidence, &self.one_minus_confidence),
            (Score::PredictiveEntropy, &self.predictive_entropy),
            (Score::ExpectedEntropy, &self.expected_entropy),
            (Score::MutualInformation, &self.mutual_information),
            (Score::VariationRatio, &self.variation_ratio),
        ]
    }
}

/// Figures of one image.
struct Row {
    log_mean: Vec<f64>,
    expected_entropy: f64,
    mutual_information: f64,
    variation_ratio: f64,
    one_minus_confidence: f64,
}

fn rows(members: &[&[f64]], classes: usize) -> Result<Vec<Row>> {
    let length = members[0].len();
    if classes == 0 || length == 0 || !length.is_multiple_of(classes) || members.iter().any(|m| m.len() != length) {
        let lengths: Vec<String> = members.iter().map(|m| m.len().to_string()).collect();
        let lengths = lengths.join(", ");
        return Err(Error::input(format!(
            "members need equally many log-probabilities, of images of {classes} classes each, not {lengths}"
        )));
    }
    let figures = |image: usize| {
        let of = |m: &&[f64]| normalised(&m[image * classes..][..classes]);
        members.iter().map(of).collect::<Result<Vec<_>, String>>().map(|q| row(&q, classes))
    };
    named(0, parallel::map(length / classes, figures))
}

fn normalised(log_q: &[f64]) -> Result<Vec<f64>, String> {
    let log_sum = log_q_sum(log_q)?;
    Ok(log_q.iter().map(|l| l - log_sum).collect())
}

/// The figures of one image from its members' log-probabilities [M][K].
fn row(members: &[Vec<f64>], classes: usize) -> Row {
    let count = members.len() as f64;
    let log_mean = |y: usize| {
        let terms = members.iter().map(|m| m[y]);
        log_sum_exp(terms) - count.ln()
    };
    let log_mean: Vec<f64> = (0..classes).map(log_mean).collect();
    let (mut entropy, mut information) = (0.0, 0.0);
    let mut votes = vec![0usize; classes];
    for log_q in members {
        votes[argmax(log_q)] += 1;
        for (&l, &mean) in log_q.iter().zip(&log_mean).filter(|(l, _)| **l > f64::NEG_INFINITY) {
            entropy -= l.exp() * l;
            information += l.exp() * (l - mean);
        }
    }
    let most = votes.into_iter().max().unwrap_or(0);
    let agree = information <= ROUNDING * f64::EPSILON * (count + entropy);
    Row {
        expected_entropy: entropy / count,
        mutual_information: if agree { 0.0 } else { information / count },
        variation_ratio: 1.0 - most as f64 / count,
        one_minus_confidence: -log_mean[argmax(&log_mean)].exp_m1(),
        log_mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(q: &[f64]) -> Vec<f64> {
        q.iter().map(|q| q.ln()).collect()
    }

    #[test]
    fn two_members_by_hand() {
        let ln2 = 2f64.ln();
        // Opposite certainty: all doubt is disagreement. Agreed doubt: none is.
        let (one, other) = (logs(&[1.0, 0.0, 0.5, 0.5, 0.75, 0.25]), logs(&[0.0, 1.0, 0.5, 0.5, 0.25, 0.75]));
        let scores = EnsembleScores::new(&[&one, &other], 2).unwrap();
        let quarter = 2.0 * ln2 - 0.75 * 3f64.ln();
        let close = |got: &[f64], want: [f64; 3]| {
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-15), "{got:?} {want:?}");
        };
        close(&scores.predictive_entropy, [ln2; 3]);
        close(&scores.expected_entropy, [0.0, ln2, quarter]);
        close(&scores.mutual_information, [ln2, 0.0, ln2 - quarter]);
        close(&scores.variation_ratio, [0.5, 0.0, 0.5]);
        close(&scores.one_minus_confidence, [0.5; 3]);
        assert!(scores.log_mean.iter().all(|l| (l + ln2).abs() < 1e-15));
        let single = SingleScores::new(&one, 2).unwrap();
        close(&single.entropy, [0.0, ln2, quarter]);
        close(&single.one_minus_confidence, [0.0, 0.5, 0.25]);
    }

    #[test]
    fn a_class_no_member_believes_in_and_tiny_disagreement() {
        let certain = logs(&[1.0, 0.0, 0.0]);
        let scores = EnsembleScores::new(&[&certain, &certain, &certain], 3).unwrap();
        assert!(scores.predictive_entropy[0].abs() < 1e-15 && scores.mutual_information[0].abs() < 1e-15);
        assert!(scores.log_mean[0].abs() < 1e-15);
        assert_eq!(scores.log_mean[1..], certain[1..]);
        // q = ½ ± ε: the information is 2ε² to leading order, too small for a difference of
        // entropies.
        let epsilon = 1e-7f64;
        let lean = |e: f64| logs(&[0.5 + e, 0.5 - e]);
        let scores = EnsembleScores::new(&[&lean(epsilon), &lean(-epsilon)], 2).unwrap();
        let ratio = scores.mutual_information[0] / (2.0 * epsilon * epsilon);
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }

    #[test]
    fn members_that_agree_put_images_in_no_order() {
        // Rows of ten classes whose logarithms round.
        let row = |i: usize| {
            let weights: [f64; 10] = std::array::from_fn(|y| 1.0 + ((7 * i + 3 * y) % 11) as f64);
            let sum: f64 = weights.iter().sum();
            weights.map(|weight| (weight / sum).ln())
        };
        let one: Vec<f64> = (0..200).flat_map(row).collect();
        for members in [2, 3, 10] {
            let scores = EnsembleScores::new(&vec![&one[..]; members], 10).unwrap();
            assert_eq!(scores.mutual_information, [0.0; 200], "{members} members");
        }
    }

    #[test]
    fn refusals_name_their_cause() {
        let (fine, odd) = (logs(&[0.5, 0.5, 0.5, 0.5]), logs(&[0.5, 0.5, 0.9, 0.9]));
        let refused = |members: &[&[f64]], classes| EnsembleScores::new(members, classes).unwrap_err().to_string();
        assert!(refused(&[&fine], 2).contains("two members"));
        assert!(refused(&[&fine, &fine[..2]], 2).contains("not 4, 2"));
        assert!(refused(&[&fine, &fine], 3).contains("3 classes"));
        assert!(refused(&[&fine, &odd], 2).contains("image 1"));
        assert!(SingleScores::new(&odd, 2).is_err());
    }
}
