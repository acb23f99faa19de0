//! What an estimator of the Bayes error says, and who it is.

use serde::{Deserialize, Serialize};

use crate::measure::bootstrap::{seen_apart, with_unseen};
use crate::measure::interval::{Estimate, Interval, SHARE, student_mean};

/// Who made an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Estimator {
    /// Leave-one-out error of the nearest neighbour.
    OneNn,
    /// Error of the nearest neighbour, estimated by k neighbours at once.
    Devijver,
    /// Leave-one-out error of the vote of k neighbours.
    Knn,
    /// Generalised Henze-Penrose bounds.
    Ghp,
    /// Kernel densities: 1 − mean max posterior.
    KdePlugIn,
    /// Kernel densities: leave-one-out error of their decision.
    KdeError,
    /// Mean of 1 − max of soft labels.
    SoftLabels,
    /// The same of shares of labels drawn for each image.
    LabelCounts,
    /// What a classifier believes its error to be.
    PlugIn,
    /// Shares of labels drawn for each image, where the Bayes decision is known.
    KnownDecision,
    /// Mean of 1 − max of soft labels that are too sure of themselves.
    SharpenedSoft,
    /// The same after isotonic calibration on drawn labels.
    IsotonicSoft,
    /// The floor of the learning curve of a network's test error.
    LearningCurve,
    /// k neighbours that are told exact posteriors: what the features permit, at most. No real
    /// dataset has it.
    Told,
}

impl Estimator {
    /// All of them, in the order of this page.
    pub const ALL: [Self; 14] = [
        Self::OneNn,
        Self::Devijver,
        Self::Knn,
        Self::Ghp,
        Self::KdePlugIn,
        Self::KdeError,
        Self::SoftLabels,
        Self::LabelCounts,
        Self::PlugIn,
        Self::KnownDecision,
        Self::SharpenedSoft,
        Self::IsotonicSoft,
        Self::LearningCurve,
        Self::Told,
    ];

    /// Its name in files, its name for people, whose idea it is, and its bias.
    fn about(self) -> [&'static str; 4] {
        match self {
            Self::KnownDecision | Self::SharpenedSoft | Self::IsotonicSoft | Self::LearningCurve | Self::Told => {
                self.about_later()
            }
            _ => self.about_first(),
        }
    }

    /// Of those of noisy soft labels, of learning curves and of told neighbours.
    fn about_later(self) -> [&'static str; 4] {
        const USHIO: &str = "Ushio, Ishida & Sugiyama 2025, Practical estimation of the optimal classification error with soft labels and calibration";
        match self {
            Self::KnownDecision => [
                "known-decision",
                "Noisy soft labels, decision known",
                "Ishida et al. 2023, noisy soft labels",
                "None: noise of mean 0 cancels where it has no say in the decision. Who knows the decision is another question.",
            ],
            Self::SharpenedSoft => [
                "sharpened-soft",
                "Overconfident soft labels",
                USHIO,
                "Low: labels that are too sure of themselves hide doubt.",
            ],
            Self::IsotonicSoft => [
                "isotonic-soft",
                "Overconfident soft labels, calibrated",
                USHIO,
                "None for many samples of two classes in true order; of more classes each is calibrated by itself.",
            ],
            Self::LearningCurve => [
                "learning-curve",
                "Learning curve, extrapolated",
                "Cortes et al. 1994, Learning curves: asymptotic values and rate of convergence",
                "High where the network keeps a floor of its own that no data removes; else either way, by extrapolation.",
            ],
            _ => [
                "told",
                "k-NN told exact posteriors",
                "No estimator: the error of a decision on the features, which bounds their own Bayes error",
                "High: the error of a real decision; k is chosen on other samples than those it is judged on.",
            ],
        }
    }

    /// Of those that came first.
    fn about_first(self) -> [&'static str; 4] {
        const KERNELS: &str =
            "Fukunaga & Hummels 1987, Bayes error estimation using Parzen and k-NN procedures; bandwidth: Duin 1976";
        const LABELS: &str = "Ishida et al. 2023, Is the performance of my deep network too good to be true?";
        const ONE_NN: &str = "High: for many samples E Σ p(1 − p), at most twice the Bayes error; higher at finite N.";
        match self {
            Self::OneNn => ["one-nn", "1-NN", "Cover & Hart 1967, Nearest neighbor pattern classification", ONE_NN],
            Self::Devijver => [
                "devijver",
                "1-NN by k neighbours",
                "Devijver 1985, A multiclass, k-NN approach to Bayes risk estimation; as in FeeBee (Renggli et al. 2022)",
                ONE_NN,
            ],
            Self::Knn => [
                "knn",
                "k-NN",
                "Cover & Hart 1967; bounds as in FeeBee (Renggli et al. 2022)",
                "High: the error of a real decision; k is chosen on other samples than those it is judged on.",
            ],
            Self::Ghp => [
                "ghp",
                "Henze-Penrose (GHP)",
                "Sekeh, Oselio & Hero 2020, Learning to bound the multi-class Bayes error",
                "High: the estimate is the upper bound, for many samples the 1-NN error.",
            ],
            Self::KdePlugIn => [
                "kde-plug-in",
                "Kernel density, plug-in",
                KERNELS,
                "Either way: smooth densities hide certainty (high), noisy ones feign it (low).",
            ],
            Self::KdeError => ["kde-error", "Kernel density, error", KERNELS, "High: the error of a real decision."],
            Self::SoftLabels => {
                ["soft-labels", "Soft labels", LABELS, "None where the soft labels are the true posteriors."]
            }
            Self::LabelCounts => [
                "label-counts",
                "Counts of drawn labels",
                LABELS,
                "Low, and 0 with one label an image: the most frequent of a few labels looks more frequent than it is.",
            ],
            _ => [
                "plug-in",
                "Classifier's belief",
                "1 − mean max q(y|x), the confidence of a classifier read as its accuracy",
                "Either way: low where the classifier is overconfident, high where it knows little.",
            ],
        }
    }

    /// Its name in files, as serde writes it.
    pub fn name(self) -> &'static str {
        self.about()[0]
    }

    /// Its name for people.
    pub fn label(self) -> &'static str {
        self.about()[1]
    }

    /// Whose idea it is.
    pub fn cite(self) -> &'static str {
        self.about()[2]
    }

    /// On which side of the Bayes error the estimate lies, as far as theory says.
    pub fn bias(self) -> &'static str {
        self.about()[3]
    }
}

/// The number an estimator chose by its own rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chosen {
    /// Neighbours k: of one half of the sample, chosen on the other, and the reverse.
    Halves([usize; 2]),
    /// Neighbours k, fixed in advance.
    Neighbours(usize),
    /// Bandwidth h of the Gaussian kernel, in the unit of the features.
    Bandwidth(f64),
}

impl std::fmt::Display for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Halves([a, b]) if a == b => write!(f, "k = {a}"),
            Self::Halves([a, b]) => write!(f, "k = {a} and {b}"),
            Self::Neighbours(k) => write!(f, "k = {k}"),
            Self::Bandwidth(h) => write!(f, "h = {h:.3e}"),
        }
    }
}

/// An estimate of the Bayes error from one draw. All errors are fractions in [0, 1].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graded {
    /// Who made it.
    pub estimator: Estimator,
    /// Its estimate of the Bayes error; see [`Estimator::bias`].
    pub estimate: f64,
    /// 95 % interval of the estimate's mean over draws, where its terms are independent images;
    /// `None` for estimates made from neighbours, whose spread comes from other seeds.
    pub interval: Option<Interval>,
    /// Lower bound of the Bayes error for infinitely many samples, where there is one.
    pub lower: Option<f64>,
    /// Upper bound likewise.
    pub upper: Option<f64>,
    /// Samples.
    pub n: usize,
    /// The number it chose by its own rule.
    pub chosen: Option<Chosen>,
}

impl Graded {
    /// An estimate from `n` samples without interval, bounds or a choice.
    pub(super) fn new(estimator: Estimator, estimate: f64, n: usize) -> Self {
        Self { estimator, estimate, interval: None, lower: None, upper: None, n, chosen: None }
    }

    /// The mean of `errors` in [0, 1] of two or more independent images, with Student's 95 % interval
    /// and, where nearly all have the same error, what others may add (the rule of three).
    pub(super) fn of_errors(estimator: Estimator, errors: &[f64]) -> Self {
        let (value, half) = student_mean(errors);
        let around = Interval { low: (value - half).max(0.0), high: (value + half).min(1.0) };
        let seen = seen_apart(errors);
        let Estimate { interval, .. } = with_unseen(Estimate::new(value, around), errors.len(), seen, SHARE);
        Self { interval: Some(interval), ..Self::new(estimator, value, errors.len()) }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::units::Seed;

    #[test]
    fn nearly_all_images_in_error_hardly_show_those_without() {
        const RUNS: u64 = 400;
        let covers = |run: &u64| {
            let mut rng = Seed(*run).rng(0);
            let errors: Vec<f64> = (0..100).map(|_| if rng.random::<f64>() < 0.03 { 0.0 } else { 1.0 }).collect();
            Graded::of_errors(Estimator::KnownDecision, &errors).interval.unwrap().contains(0.97)
        };
        let covered = (0..RUNS).filter(covers).count();
        // Where all above the least counted as seen: 84 % in a simulation.
        assert!(covered * 100 >= 92 * RUNS as usize, "{covered} of {RUNS}");
    }
}
