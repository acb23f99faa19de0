//! Grade the graders of doubt: scores that a classifier or an ensemble gives its own uncertainty,
//! image by image, against the true aleatoric H(p) and epistemic KL(p‖q) of a world whose posterior
//! p is known (theory §4), in nats.
//!
//! | file | what |
//! |---|---|
//! | `ensemble` | the scores: of one classifier, of M members |
//! | `rank` | Spearman, Kendall τ_b, AUROC of resampled images |
//! | `risk` | risk and coverage of a score, beside the best order of all |
//! | `sets` | exact coverage of sets of classes, image by image |
//!
//! Intervals are over test images ([`Bootstrap`]); another training run differs by more. Those of
//! rank statistics are bias-corrected (BC: BCa with no acceleration, which for ranks has no closed
//! form), those of mean errors BCa, all widened for few images. Those of rank correlations hold Fisher's
//! interval, too: where few images are in perfect order, every replicate is. That of the AUROC, of which few
//! positives tell little and all of one order nothing to resample, holds the score interval, too:
//! in simulations of 20 to 400 images, areas of 0.75 to 0.99, it then covers 96 to 100 %, where BC
//! alone covers 10 to 95 %. Areas under the risk hold what images that were not seen may add, the
//! score being surest of them.

use serde::{Deserialize, Serialize};

use super::bootstrap::{Bootstrap, bca, of_few, of_mean};
use super::interval::{Estimate, Interval, SHARE, UNBOUNDED, with_score};
use crate::error::{Error, Result};
use crate::stats::Z95;

mod ensemble;
mod rank;
mod risk;
mod sets;
#[cfg(test)]
mod tests;

pub use ensemble::{EnsembleScores, SingleScores};
use rank::{Pair, Ranks};
pub use risk::RiskCoverage;
pub use sets::{LEVELS, SetCoverage, SizeCoverage};

/// Share of the images with the largest true KL that a score is asked to find.
pub const TOP: f64 = 0.1;

/// Least KL(p‖q) that counts, nats: log-probabilities of 32 bits, such as networks give, leave about so
/// much of none. In what is smaller, images have no order.
const LEAST_KL: f64 = 1e-12;

/// Fisher's atanh of a rank correlation of n images has the variance v/(n − k) (Fieller, Hartley & Pearson 1957): v, k.
const OF_SPEARMAN: (f64, usize) = (1.06, 3);
const OF_KENDALL: (f64, usize) = (0.437, 4);

/// A score of the uncertainty of single images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Score {
    /// H(q) of one classifier, nats.
    SoftmaxEntropy,
    /// 1 − max_y q(y|x) of one classifier, or of the mean of an ensemble.
    OneMinusConfidence,
    /// H(mean q_m) of an ensemble, nats.
    PredictiveEntropy,
    /// mean H(q_m) of an ensemble, nats.
    ExpectedEntropy,
    /// H(mean q_m) − mean H(q_m) of an ensemble, nats.
    MutualInformation,
    /// Share of members whose decision is not the most frequent one.
    VariationRatio,
    /// A number an image of another program, the larger the less sure; its unit is not known.
    Given,
}

/// What a score in nats is an estimate of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// H(p), nats.
    Aleatoric,
    /// KL(p‖q), nats.
    Epistemic,
    /// H(p) + KL(p‖q), nats: the cross-entropy.
    Total,
}

impl Score {
    /// All that are computed here.
    pub const ALL: [Self; 6] = [
        Self::SoftmaxEntropy,
        Self::OneMinusConfidence,
        Self::PredictiveEntropy,
        Self::ExpectedEntropy,
        Self::MutualInformation,
        Self::VariationRatio,
    ];

    /// Its name in files and its name for people.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::SoftmaxEntropy => ["softmax-entropy", "Softmax entropy"],
            Self::OneMinusConfidence => ["one-minus-confidence", "1 − confidence"],
            Self::PredictiveEntropy => ["predictive-entropy", "Ensemble: entropy of the mean"],
            Self::ExpectedEntropy => ["expected-entropy", "Ensemble: mean entropy"],
            Self::MutualInformation => ["mutual-information", "Ensemble: mutual information"],
            Self::VariationRatio => ["variation-ratio", "Ensemble: variation ratio"],
            Self::Given => ["given", "Given score"],
        }
    }

    /// Its name in files, as serde writes it.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Its name for people.
    pub fn label(self) -> &'static str {
        self.names()[1]
    }

    /// The quantity it estimates in nats; `None` where it has another unit. The entropy of a mean
    /// is the total where the spread of the members is that of the truth around them.
    pub fn estimates(self) -> Option<Quantity> {
        match self {
            Self::SoftmaxEntropy | Self::ExpectedEntropy => Some(Quantity::Aleatoric),
            Self::MutualInformation => Some(Quantity::Epistemic),
            Self::PredictiveEntropy => Some(Quantity::Total),
            Self::OneMinusConfidence | Self::VariationRatio | Self::Given => None,
        }
    }
}

/// True values of every image [n], nats: those of [`super::PerImage`] of the classifier (or of the
/// mean of the ensemble) that is scored.
#[derive(Debug, Clone, Copy)]
pub struct Truth<'a> {
    /// H(p).
    pub aleatoric: &'a [f64],
    /// KL(p‖q); what is below 1e-12 counts as none.
    pub epistemic: &'a [f64],
}

/// How one score orders the images against a true quantity; `None` where one is constant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Spearman's rank correlation, ties at their mean rank, in [−1, 1].
    pub spearman: Option<Estimate>,
    /// Kendall's τ_b, in [−1, 1].
    pub kendall: Option<Estimate>,
}

/// What a score is worth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// The score.
    pub score: Score,
    /// Images.
    pub n: usize,
    /// Beside the true H(p).
    pub aleatoric: Agreement,
    /// Beside the true KL(p‖q).
    pub epistemic: Agreement,
    /// Area under the ROC curve for finding the images among the top [`TOP`] of true KL (all that
    /// tie with the last of them): the chance that one of those scores higher than one of the
    /// others, ½ for a tie. `None` where all images are among them.
    pub auroc: Option<Estimate>,
    /// mean (score − [`Score::estimates`]), nats; `None` for scores in other units.
    pub signed_error: Option<Estimate>,
}

/// Grades the `values` [n] that `score` gave the images.
///
/// # Errors
/// When lengths differ, below two images, or for a number that is not finite (named).
pub fn grade_score(score: Score, values: &[f64], truth: Truth<'_>, bootstrap: &Bootstrap) -> Result<Scored> {
    let n = values.len();
    check(score, values, truth)?;
    let ranks = Ranks::new(values);
    let epistemic: Vec<f64> = truth.epistemic.iter().map(|&kl| if kl.abs() < LEAST_KL { 0.0 } else { kl }).collect();
    let pairs = [truth.aleatoric, &epistemic].map(|quantity| Pair::new(&ranks, Ranks::new(quantity)));
    let top = top(&epistemic);
    let errors = score.estimates().map(|quantity| errors(values, truth, quantity));
    let statistics = |counts: &[u16]| {
        let mean_error = errors.as_ref().map_or(f64::NAN, |errors| {
            errors.iter().zip(counts).map(|(e, &c)| e * f64::from(c)).sum::<f64>() / n as f64
        });
        let [aleatoric, epistemic] = &pairs;
        [
            aleatoric.spearman(counts),
            aleatoric.kendall(counts),
            epistemic.spearman(counts),
            epistemic.kendall(counts),
            ranks.auroc(&top, counts),
            mean_error,
        ]
    };
    let values = statistics(&vec![1; n]);
    let replicates = bootstrap.resample(n, statistics);
    // A replicate may have drawn nothing but ties, or none of the top: it has no statistic.
    let finite = |at: usize| -> Vec<f64> { replicates.iter().map(|r| r[at]).filter(|x| x.is_finite()).collect() };
    let of = |at: usize, n: usize, range: [f64; 2]| {
        values[at].is_finite().then(|| of_few(bca(values[at], &mut finite(at), 0.0), n, range))
    };
    let correlation = |at: usize, variance| of(at, n, [-1.0, 1.0]).map(|found| with_fisher(found, n, variance));
    let positives = top.iter().filter(|top| **top).count();
    Ok(Scored {
        score,
        n,
        aleatoric: Agreement { spearman: correlation(0, OF_SPEARMAN), kendall: correlation(1, OF_KENDALL) },
        epistemic: Agreement { spearman: correlation(2, OF_SPEARMAN), kendall: correlation(3, OF_KENDALL) },
        auroc: of(4, positives.min(n - positives), SHARE).map(|area| with_score(area, positives, n - positives)),
        signed_error: errors
            .as_ref()
            .map(|errors| of_mean(values[5], &mut finite(5), errors.iter().copied(), UNBOUNDED)),
    })
}

/// The interval of a rank correlation of `n` images, wide enough to hold Fisher's, of whose variance `v` and `k` tell. The
/// correlation is taken to be 1/n below a perfect one at most; all of [−1, 1] of no more than k images.
fn with_fisher(Estimate { value, interval }: Estimate, n: usize, (v, k): (f64, usize)) -> Estimate {
    if n <= k {
        return Estimate::new(value, Interval { low: -1.0, high: 1.0 });
    }
    let most = 1.0 - 1.0 / n as f64;
    let (z, half) = (value.clamp(-most, most).atanh(), Z95 * (v / (n - k) as f64).sqrt());
    let interval = Interval { low: interval.low.min((z - half).tanh()), high: interval.high.max((z + half).tanh()) };
    Estimate::new(value, interval)
}

fn check(score: Score, values: &[f64], truth: Truth<'_>) -> Result<()> {
    let (n, aleatoric, epistemic) = (values.len(), truth.aleatoric.len(), truth.epistemic.len());
    if n < 2 || aleatoric != n || epistemic != n {
        return Err(Error::input(format!(
            "two or more images need as many scores as true values, not {n} scores, {aleatoric} aleatoric and {epistemic} epistemic values"
        )));
    }
    for (name, values) in
        [(score.name(), values), ("aleatoric uncertainty", truth.aleatoric), ("epistemic uncertainty", truth.epistemic)]
    {
        if let Some(i) = values.iter().position(|x| !x.is_finite()) {
            return Err(Error::Numeric(format!("image {i}: its {name} is {}", values[i])));
        }
    }
    Ok(())
}

/// Score less truth of each image, nats.
fn errors(values: &[f64], truth: Truth<'_>, quantity: Quantity) -> Vec<f64> {
    let of = |i: usize| match quantity {
        Quantity::Aleatoric => truth.aleatoric[i],
        Quantity::Epistemic => truth.epistemic[i],
        Quantity::Total => truth.aleatoric[i] + truth.epistemic[i],
    };
    values.iter().enumerate().map(|(i, value)| value - of(i)).collect()
}

/// Which images are among the largest [`TOP`], at least one, with ties of the smallest.
fn top(values: &[f64]) -> Vec<bool> {
    let count = (values.len() as f64 * TOP).ceil() as usize;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let least = sorted[sorted.len() - count.clamp(1, sorted.len())];
    values.iter().map(|&x| x >= least).collect()
}
