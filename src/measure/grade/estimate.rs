//! What an estimator of the Bayes error says, and who it is.

use serde::{Deserialize, Serialize};

use crate::measure::interval::Interval;

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
}

impl Estimator {
    /// All of them, in the order of this page.
    pub const ALL: [Self; 9] = [
        Self::OneNn,
        Self::Devijver,
        Self::Knn,
        Self::Ghp,
        Self::KdePlugIn,
        Self::KdeError,
        Self::SoftLabels,
        Self::LabelCounts,
        Self::PlugIn,
    ];

    /// Its name in files, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneNn => "one-nn",
            Self::Devijver => "devijver",
            Self::Knn => "knn",
            Self::Ghp => "ghp",
            Self::KdePlugIn => "kde-plug-in",
            Self::KdeError => "kde-error",
            Self::SoftLabels => "soft-labels",
            Self::LabelCounts => "label-counts",
            Self::PlugIn => "plug-in",
        }
    }

    /// Its name for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::OneNn => "1-NN",
            Self::Devijver => "1-NN by k neighbours",
            Self::Knn => "k-NN",
            Self::Ghp => "Henze-Penrose (GHP)",
            Self::KdePlugIn => "Kernel density, plug-in",
            Self::KdeError => "Kernel density, error",
            Self::SoftLabels => "Soft labels",
            Self::LabelCounts => "Counts of drawn labels",
            Self::PlugIn => "Classifier's belief",
        }
    }

    /// Whose idea it is.
    pub fn cite(self) -> &'static str {
        match self {
            Self::OneNn => "Cover & Hart 1967, Nearest neighbor pattern classification",
            Self::Devijver => {
                "Devijver 1985, A multiclass, k-NN approach to Bayes risk estimation; as in FeeBee (Renggli et al. 2022)"
            }
            Self::Knn => "Cover & Hart 1967; bounds as in FeeBee (Renggli et al. 2022)",
            Self::Ghp => "Sekeh, Oselio & Hero 2020, Learning to bound the multi-class Bayes error",
            Self::KdePlugIn | Self::KdeError => {
                "Fukunaga & Hummels 1987, Bayes error estimation using Parzen and k-NN procedures; bandwidth: Duin 1976"
            }
            Self::SoftLabels | Self::LabelCounts => {
                "Ishida et al. 2023, Is the performance of my deep network too good to be true?"
            }
            Self::PlugIn => "1 − mean max q(y|x), the confidence of a classifier read as its accuracy",
        }
    }

    /// On which side of the Bayes error the estimate lies, as far as theory says.
    pub fn bias(self) -> &'static str {
        match self {
            Self::OneNn | Self::Devijver => {
                "High: for many samples E Σ p(1 − p), at most twice the Bayes error; higher at finite N."
            }
            Self::Knn => "High: the error of a real decision; k is chosen on other samples than those it is judged on.",
            Self::Ghp => "High: the estimate is the upper bound, for many samples the 1-NN error.",
            Self::KdePlugIn => "Either way: smooth densities hide certainty (high), noisy ones feign it (low).",
            Self::KdeError => "High: the error of a real decision.",
            Self::SoftLabels => "None where the soft labels are the true posteriors.",
            Self::LabelCounts => {
                "Low, and 0 with one label an image: the most frequent of a few labels looks more frequent than it is."
            }
            Self::PlugIn => "Either way: low where the classifier is overconfident, high where it knows little.",
        }
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
    /// What it says the Bayes error is; see [`Estimator::bias`].
    pub estimate: f64,
    /// 95 % interval of the estimate's mean over draws, where its terms are independent images; `None` for estimates
    /// made from neighbours, whose spread comes from other seeds.
    pub interval: Option<Interval>,
    /// Lower bound of the Bayes error for infinitely many samples, where there is one.
    pub lower: Option<f64>,
    /// Upper bound likewise.
    pub upper: Option<f64>,
    /// Samples.
    pub n: usize,
    /// What it chose by itself.
    pub chosen: Option<Chosen>,
}
