//! Classifiers beside the Bayes error: what temperature sweep and self-validation have in common.

use serde::{Deserialize, Serialize};

use super::bayes_reference::Truth;
use super::cell::Cell;
use super::repeats::{Repeats, SHARE, SeedMean, cell, distinct, point};
use crate::classifier::{Architecture, Labels};
use crate::figure::{Point, Rule, Series, Value, Way};
use crate::measure::{Estimate, Interval};

/// A classifier's errors beside the Bayes error, as shares of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BayesGap {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub labels: Labels,
    /// Number N of training images.
    pub train_size: usize,
    /// Test error against drawn labels.
    pub error: SeedMean,
    /// Mean of the test error over all labels that could have been drawn.
    pub expected_error: SeedMean,
    /// Test error − Bayes error of the world; absent where that is not known yet.
    pub gap: Option<Gap>,
    /// Expected error − Bayes error of the same test images: the same gap with less noise.
    pub gap_on_test: SeedMean,
}

/// A gap between a test error and the Bayes error of the world, as a share of 1. It can be below 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// The difference.
    pub value: f64,
    /// 95 % interval: the distances of both intervals' ends added; absent where the test error has
    /// none.
    pub interval: Option<Interval>,
}

impl Gap {
    fn of(error: &SeedMean, truth: &Truth) -> Self {
        let (least, most) = truth.bayes_error.interval;
        let interval = error.interval.map(|Interval { low, high }| Interval { low: low - most, high: high - least });
        Self { value: error.value - truth.bayes_error.value, interval }
    }

    /// As [`SeedMean::point`].
    pub(super) fn point(&self, x: f64, times: f64) -> Point {
        point(x, self.value, self.interval, times)
    }

    /// As [`SeedMean::cell`].
    pub(super) fn cell(&self, times: f64) -> Value {
        cell(self.value, self.interval, times)
    }
}

impl BayesGap {
    /// The finished seeds of a classifier beside the Bayes error of their world.
    pub(super) fn of(repeats: &Repeats<'_>, truth: Option<&Truth>) -> Option<Self> {
        let Cell { architecture, train_size, labels, .. } = repeats.cell;
        let error = repeats.mean(|result| result.measured.error, SHARE)?;
        Some(Self {
            architecture,
            labels,
            train_size,
            error,
            expected_error: repeats.mean(|result| result.measured.expected_accuracy.complement(), SHARE)?,
            gap: truth.map(|truth| Gap::of(&error, truth)),
            gap_on_test: repeats.mean(|result| result.measured.gap, SHARE)?,
        })
    }

    /// The same without its gap to the Bayes error of the world.
    pub(super) fn without_world(&self) -> Self {
        Self { gap: None, ..self.clone() }
    }

    /// What tells it from the others of the same N.
    pub(super) fn who(&self) -> Who {
        Who { architecture: self.architecture, labels: self.labels }
    }
}

/// A classifier of some N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who {
    pub architecture: Architecture,
    pub labels: Labels,
}

impl Who {
    /// Its name in a legend.
    pub fn name(&self) -> String {
        match self.labels {
            Labels::Drawn => self.architecture.label().to_owned(),
            told => format!("{}, {}", self.architecture.label(), told.label()),
        }
    }

    /// Its colour: its architecture's place among all.
    pub fn colour(&self, architectures: &[Architecture]) -> usize {
        architectures.iter().position(|architecture| *architecture == self.architecture).unwrap_or(0)
    }
}

/// Classifiers and numbers of training images of some finished cells.
pub(super) fn axes<'a>(all: impl Iterator<Item = &'a BayesGap> + Clone) -> (Vec<Who>, Vec<usize>) {
    (distinct(all.clone().map(BayesGap::who)), distinct(all.map(|one| one.train_size)))
}

/// The series of what is meant of the test images themselves, beside that of the world.
pub(super) fn on_test(series: Series) -> Series {
    Series { name: format!("{}, on the test images", series.name), dashed: true, ..series }
}

/// A horizontal line at a number with its interval, times 100.
pub(super) fn across(label: String, value: f64, (low, high): (f64, f64)) -> Rule {
    Rule { way: Way::Horizontal, at: 100.0 * value, low: Some(100.0 * low), high: Some(100.0 * high), label }
}

/// An estimate in a table, times 100.
pub(super) fn per_cent(estimate: &Estimate) -> Value {
    cell(estimate.value, Some(estimate.interval), 100.0)
}
