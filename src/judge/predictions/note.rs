//! What was done to predictions before they were judged, and what is known of the posteriors they are judged by.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::classifier::onnx::{KnownBy, NetworkInfo, Scores};
use crate::judge::Truth;
use crate::oracle::rounding::Rounding;

/// One repair or decision, stated in every report. Displays as a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Note {
    /// What the numbers were taken for.
    Taken {
        /// What they are.
        kind: Kind,
        /// The array or the columns, where they have a name.
        called: Option<String>,
        /// Whether the caller said so; otherwise it was seen.
        told: bool,
    },
    /// Rows were paired with images by their number in the file.
    ByOrder,
    /// Rows were sorted by ids.
    RowsSorted {
        /// Rows that were not at their place.
        moved: usize,
    },
    /// Rows of images that are not in this split were left out.
    RowsIgnored {
        /// How many.
        count: usize,
        /// The first of their ids.
        first: String,
    },
    /// Columns were brought into the order of the classes by their names.
    ColumnsSorted {
        /// Columns that were not at their place.
        moved: usize,
    },
    /// Columns or arrays that are neither ids nor classes were not read.
    ColumnsIgnored {
        /// Their names.
        names: Vec<String>,
    },
    /// Rows did not add up to 1 and were normalised.
    Normalised {
        /// Largest deviation of a sum from 1.
        largest: f64,
    },
    /// Probabilities of 0 became the smallest normal float32, 1.2e-38.
    Clamped {
        /// How many probabilities.
        zeros: usize,
        /// In how many images.
        images: usize,
    },
    /// What network was run, and how its images and its scores were understood.
    Network(NetworkInfo),
    /// The network is that of a training that is not over.
    Unfinished {
        /// Steps done.
        step: usize,
        /// Steps in all.
        steps: usize,
    },
    /// The network was trained on images of another world.
    OtherWorld {
        /// SHA-256 of the weights of that one.
        weights_sha256: String,
    },
    /// Zeros where the posterior is not 0: the cross-entropy as given.
    Infinite {
        /// Images whose cross-entropy is infinite without the clamping.
        images: usize,
        /// What clamping adds to the mean cross-entropy, nats: these entries' own terms.
        clamped_part: f64,
    },
    /// Posteriors of the dataset that are not those of its stored 32-bit x, as the export counted them.
    Rounded(Rounding),
}

impl Note {
    /// That the posteriors of some images are not those of the stored x, where the export counted such.
    pub(in crate::judge) fn rounded(truth: &Truth) -> Option<Self> {
        truth.rounding.filter(|rounding| rounding.rounded > 0).map(Self::Rounded)
    }

    /// That raised zeros hide an infinite loss, where they do: `clamped` are places in `log_q` [n, K] where q was 0.
    pub(in crate::judge) fn infinite(truth: &Truth, log_q: &[f64], clamped: &[usize]) -> Option<Self> {
        let possible: Vec<usize> = clamped.iter().copied().filter(|&at| truth.posterior[at] > 0.0).collect();
        let mut images: Vec<usize> = possible.iter().map(|at| at / truth.classes).collect();
        images.dedup();
        let part: f64 = possible.iter().map(|&at| -truth.posterior[at] * log_q[at]).sum();
        let clamped_part = part / truth.len() as f64;
        (!images.is_empty()).then_some(Self::Infinite { images: images.len(), clamped_part })
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { kind, called, told } => {
                let called = called.as_ref().map_or_else(String::new, |name| format!(" in {name}"));
                let how = if *told { "as told" } else { "by looking at them" };
                write!(f, "The numbers{called} were taken as {}, {how}.", kind.describe())
            }
            Self::ByOrder => f.write_str("There are no ids: row i was taken as image i."),
            Self::RowsSorted { moved } => write!(f, "Rows were sorted by ids; {moved} were not at their place."),
            Self::RowsIgnored { count, first } => {
                write!(
                    f,
                    "{count} rows are of images that are not in this split and were left out (the first: {first})."
                )
            }
            Self::ColumnsSorted { moved } => {
                write!(
                    f,
                    "Columns were brought into the order of the classes by name; {moved} were not at their place."
                )
            }
            Self::ColumnsIgnored { names } => write!(f, "Not read: {}.", super::listed(names)),
            Self::Normalised { largest } => {
                write!(f, "Rows were normalised to add up to 1; the largest deviation was {largest:.1e}.")
            }
            Self::Clamped { zeros, images } => write!(
                f,
                "{zeros} probabilities of 0 in {images} images were raised to 1.2e-38, the smallest normal float32."
            ),
            Self::Network(info) => f.write_str(&network(info)),
            Self::Unfinished { step, steps } => {
                write!(f, "Its training is not over: step {step} of {steps}.")
            }
            Self::OtherWorld { weights_sha256 } => {
                write!(f, "It was trained on images of another world, whose weights have the SHA-256 {weights_sha256}.")
            }
            Self::Infinite { images, clamped_part } => write!(
                f,
                "As given the cross-entropy is infinite: {images} images have probability 0 for a class that is possible. Raised zeros \
                 make up {clamped_part:.4} nats of what is reported; give logits to avoid this."
            ),
            Self::Rounded(rounding) => {
                write!(f, "Of the dataset: {}.", Rounding::sentence(&rounding.count("images")))
            }
        }
    }
}

/// What network was run, and how.
fn network(info: &NetworkInfo) -> String {
    let NetworkInfo { parameters, producer, opset, sees: (shape, layout), tried, normalisation, scores, known_by } =
        info;
    let by = if producer.is_empty() { String::new() } else { format!(", written by {producer}") };
    let scores = match scores {
        Scores::Logits => "logits",
        Scores::Probabilities => "probabilities",
        Scores::LogProbabilities => "log-probabilities",
    };
    let tried = if *tried { " (it does not run in the other order of axes)" } else { "" };
    let how = match known_by {
        KnownBy::Numbers => "by looking at them",
        KnownBy::Softmax => "because its graph ends in a softmax, of which the logarithm was read",
        KnownBy::User => "as told",
    };
    format!(
        "A network of {parameters} parameters, opset {opset}{by}, was run on images of {shape} {layout}{tried}, scaled by \
         '{normalisation}'; its scores were taken as {scores}, {how}."
    )
}
