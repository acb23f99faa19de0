//! Calibrators: maps of a classifier's log-probabilities that are fitted on labelled images after
//! the training (Guo et al. 2017; Kull et al. 2019; Zadrozny & Elkan 2001, 2002).
//!
//! | file | what |
//! |---|---|
//! | `scaling` | temperature, vector and Dirichlet scaling: softmax regression on log q |
//! | `one_vs_rest` | isotonic regression and histogram binning of each class, normalised |
//! | `minimise` | the least value of a smooth function |

use serde::{Deserialize, Serialize};

use super::softmax::log_softmax;
use crate::error::{Error, Result};
use crate::units::ClassId;

mod minimise;
mod one_vs_rest;
mod scaling;

use one_vs_rest::{OneVsRest, Steps};
use scaling::{Layout, Scaling};

pub use scaling::Penalty;

/// Bins of a class in histogram binning, at most.
const HISTOGRAM: usize = 15;

/// How a classifier is calibrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calibration {
    /// Not at all.
    None,
    /// softmax(β log q): one number for all classes.
    Temperature,
    /// softmax(w ∘ log q + b): a factor and an offset a class.
    Vector,
    /// softmax(W log q + b), regularised off the diagonal and in b.
    Dirichlet,
    /// A rising step function a class.
    Isotonic,
    /// A share of hits for each of 15 bins of as many images a class.
    Histogram,
}

/// A fitted calibrator.
#[derive(Debug, Clone, PartialEq)]
pub enum Calibrator {
    /// Leaves all as it is.
    Identity,
    /// Softmax regression on log q.
    Scaling(Scaling),
    /// Each class by itself, then normalised.
    OneVsRest(OneVsRest),
}

impl Calibration {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Temperature, Self::Vector, Self::Dirichlet, Self::Isotonic, Self::Histogram];

    /// What it is called.
    pub fn label(self) -> &'static str {
        match self {
            Self::None => "not calibrated",
            Self::Temperature => "temperature",
            Self::Vector => "vector",
            Self::Dirichlet => "Dirichlet",
            Self::Isotonic => "isotonic",
            Self::Histogram => "histogram",
        }
    }

    /// Whether it can call a class impossible.
    pub fn can_exclude(self) -> bool {
        matches!(self, Self::Isotonic | Self::Histogram)
    }

    /// Fits it to log-probabilities `log_q` [n, K] and drawn `labels` [n].
    ///
    /// # Errors
    /// When there is no image, shapes do not match, a label is no class, or a log-probability is
    /// not finite.
    pub fn fit(self, log_q: &[f64], labels: &[ClassId], classes: usize, penalty: Penalty) -> Result<Calibrator> {
        if labels.is_empty() || classes == 0 || log_q.len() != labels.len() * classes {
            let (n, numbers) = (labels.len(), log_q.len());
            let cause = format!("a calibrator needs images: {numbers} log-probabilities of {n} in {classes} classes");
            return Err(Error::input(cause));
        }
        if let Some(label) = labels.iter().find(|label| **label >= classes) {
            return Err(Error::input(format!("label {label} is none of {classes} classes")));
        }
        if let Some(at) = log_q.iter().position(|x| !x.is_finite()) {
            let cause = format!("image {}: a log-probability is {}, no finite number", at / classes, log_q[at]);
            return Err(Error::Numeric(cause));
        }
        let scaling = |layout| Calibrator::Scaling(Scaling::fit(layout, log_q, labels, classes, penalty));
        let each = |fit: fn(&[(f64, f64)]) -> Steps| Calibrator::OneVsRest(OneVsRest::fit(log_q, labels, classes, fit));
        Ok(match self {
            Self::None => Calibrator::Identity,
            Self::Temperature => scaling(Layout::Scalar),
            Self::Vector => scaling(Layout::Diagonal),
            Self::Dirichlet => scaling(Layout::Full),
            Self::Isotonic => each(Steps::isotonic),
            Self::Histogram => each(|pairs| Steps::histogram(pairs, HISTOGRAM)),
        })
    }
}

impl Calibrator {
    /// Calibrated log-probabilities of `log_q` [n, K]; −∞ where a class is called impossible.
    pub fn apply(&self, log_q: &[f64], classes: usize) -> Vec<f64> {
        match self {
            Self::Identity => log_q.to_vec(),
            Self::Scaling(scaling) => log_softmax(&scaling.logits(log_q), classes),
            Self::OneVsRest(each) => each.log_probabilities(log_q),
        }
    }
}

/// log of (1 − share)·q + share/K for `log_q` [n, K]: no class is impossible then.
pub fn mixed(log_q: &[f64], classes: usize, share: f64) -> Vec<f64> {
    let of_all = share / classes as f64;
    log_q.iter().map(|log_q| ((1.0 - share) * log_q.exp() + of_all).ln()).collect()
}

#[cfg(test)]
mod tests;
