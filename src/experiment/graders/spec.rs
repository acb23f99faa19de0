//! What is graded, and what a cell finds of it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::features::Features;
use crate::experiment::feature_file::FeatureFile;
use crate::measure::Measured;
use crate::measure::grade::{self, Estimator};
use crate::measure::uncertainty::Scored;
use crate::units::Tau;

/// What is graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradersSpec {
    /// Base temperatures τ: worlds of different Bayes error; they stand in place of `world.tau`.
    pub taus: Vec<Tau>,
    /// Classifiers in an ensemble.
    #[serde(default = "five")]
    pub members: usize,
    /// Labels drawn for each test image from its exact posterior, as by annotators; 1 to 10,000.
    #[serde(default = "ten")]
    pub annotators: usize,
    /// The power s to which soft labels u ∝ p^s are raised for the estimators that get corrupted ones: above
    /// 1 they are too sure of themselves, 1 leaves them exact.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    pub sharpening: f64,
    /// What the estimators see, in turn: pixels, features of the trained network, features from
    /// files.
    #[serde(default = "pixels", skip_serializing_if = "only_pixels")]
    pub features: Vec<Features>,
}

fn five() -> usize {
    5
}

fn ten() -> usize {
    10
}

fn two() -> f64 {
    2.0
}

pub(super) fn is_two(sharpening: &f64) -> bool {
    *sharpening == two()
}

fn pixels() -> Vec<Features> {
    vec![Features::Pixels]
}

pub(super) fn only_pixels(features: &[Features]) -> bool {
    features == [Features::Pixels]
}

/// What estimators say of a world, from the training images of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grading {
    /// Estimates of the Bayes error, one an estimator.
    pub estimates: Vec<Estimated>,
    /// Scores of the uncertainty of single images: of the first classifier, then of the ensemble.
    pub scores: Vec<Scored>,
    /// The files of features that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FeatureFile>,
    /// The ensemble's mean prediction on the test images.
    pub ensemble: Measured,
}

/// An estimate of the Bayes error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimated {
    /// Who made it.
    pub estimator: Estimator,
    /// What it saw, where it learns from samples.
    #[serde(default, skip_serializing_if = "Features::is_pixels")]
    pub features: Features,
    /// The estimate; absent where a sentence says why.
    pub graded: Option<grade::Graded>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

impl Grading {
    /// How many of [`Self::scores`] are those of the first classifier alone.
    pub(super) const SINGLE: usize = 2;
}

impl GradersSpec {
    /// The files of features, in order.
    pub(super) fn feature_files(&self) -> impl Iterator<Item = &Path> {
        self.features.iter().filter_map(Features::file)
    }
}

impl Estimated {
    pub(super) fn of(
        estimator: Estimator,
        features: &Features,
        graded: std::result::Result<grade::Graded, String>,
    ) -> Self {
        let (graded, why_not) = match graded {
            Ok(graded) => (Some(graded), None),
            Err(why) => (None, Some(why)),
        };
        Self { estimator, features: features.clone(), graded, why_not }
    }

    /// Of every estimator that learns from samples the reason why it says nothing.
    pub(super) fn none(features: &Features, why: &str) -> Vec<Self> {
        FROM_SAMPLES.map(|estimator| Self::of(estimator, features, Err(why.to_owned()))).into()
    }
}

/// Those that need a labelled sample alone, in the order of [`grade::grade`]; the last is told its posteriors.
pub(super) const FROM_SAMPLES: [Estimator; 7] = [
    Estimator::OneNn,
    Estimator::Devijver,
    Estimator::Knn,
    Estimator::Ghp,
    Estimator::KdePlugIn,
    Estimator::KdeError,
    Estimator::Told,
];
