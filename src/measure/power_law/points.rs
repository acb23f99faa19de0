//! The points of a law.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::images::TestImages;
use crate::error::{Error, Result};

/// Numbers beyond e^700 are kept there: they stay finite, and JSON has no infinity.
pub const LARGEST_LOG: f64 = 700.0;

/// Values of log KL closer together than this are the same: there is nothing to fit.
const SAME: f64 = 1e-9;

/// A positive number with three digits, as people write it.
pub fn plain(value: f64) -> String {
    match value {
        v if v >= 1e5 || (v != 0.0 && v < 1e-3) => format!("{v:.2e}"),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

/// One trained model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Number of training images.
    pub n: f64,
    /// Seed of the run; runs of one seed at several N may share what they were given.
    pub seed: u64,
    /// What falls with N, > 0: KL in nats, or any other distance.
    pub value: f64,
    /// Standard error of log value that comes from the images it was measured on, where all points
    /// were measured on the same; 0 where it is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error: f64,
}

fn is_zero(error: &f64) -> bool {
    *error == 0.0
}

/// Which law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// a·N^(−α).
    Pure,
    /// a·N^(−α) + c, c ≥ 0.
    Floor,
}

impl Variant {
    /// Parameters of the curve.
    pub fn parameters(self) -> usize {
        match self {
            Self::Pure => 2,
            Self::Floor => 3,
        }
    }
}

/// How the intervals of a law hold the error of the test images, which all points share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageError {
    /// Not at all: nothing is known of it.
    #[default]
    Unknown,
    /// As one number for all points, times each point's own standard error.
    Common,
    /// By drawing the images anew, whose values at every point are known.
    Resampled,
}

impl ImageError {
    /// How replicates of a fit to these points hold it.
    pub fn of(points: &[Point], images: Option<&TestImages>) -> Self {
        match images {
            Some(_) => Self::Resampled,
            None if points.iter().any(|point| point.error > 0.0) => Self::Common,
            None => Self::Unknown,
        }
    }
}

/// Points as the fits see them.
pub struct Design<'a> {
    /// log N.
    pub x: Vec<f64>,
    /// log value.
    pub y: Vec<f64>,
    /// Its standard error from the images that all points share.
    pub error: Vec<f64>,
    /// What is known of these images.
    pub images: Option<&'a TestImages>,
    /// Index of each point's seed.
    pub seed: Vec<usize>,
    /// Index of each point's N.
    pub size: Vec<usize>,
    pub seeds: usize,
    pub sizes: usize,
}

impl<'a> Design<'a> {
    pub fn of(points: &[Point], images: Option<&'a TestImages>) -> Result<Self> {
        if let Some(other) = images.map(TestImages::points).filter(|&other| other != points.len()) {
            return Err(Error::input(format!("test images of {other} points for a law of {}", points.len())));
        }
        for (i, point) in points.iter().enumerate() {
            if !(point.n > 0.0 && point.n.is_finite() && point.value > 0.0 && point.value.is_finite()) {
                let (n, value) = (point.n, point.value);
                let cause = format!("point {i} has N = {n} and value {value}: a power law needs both > 0");
                return Err(Error::input(cause));
            }
            if !(point.error >= 0.0 && point.error.is_finite()) {
                let error = point.error;
                return Err(Error::input(format!("point {i} has a standard error of {error}: it is a number ≥ 0")));
            }
        }
        let seeds: Vec<u64> = points.iter().map(|p| p.seed).collect::<BTreeSet<_>>().into_iter().collect();
        // Positive floats sort as their bits do.
        let sizes: Vec<u64> = points.iter().map(|p| p.n.to_bits()).collect::<BTreeSet<_>>().into_iter().collect();
        Ok(Self {
            x: points.iter().map(|p| p.n.ln()).collect(),
            y: points.iter().map(|p| p.value.ln()).collect(),
            error: points.iter().map(|p| p.error).collect(),
            images,
            seed: points.iter().map(|p| seeds.partition_point(|&s| s < p.seed)).collect(),
            size: points.iter().map(|p| sizes.partition_point(|&s| s < p.n.to_bits())).collect(),
            seeds: seeds.len(),
            sizes: sizes.len(),
        })
    }

    /// Returns whether all values are equal but for rounding.
    pub fn is_flat(&self) -> bool {
        let (low, high) = self.y.iter().fold((f64::MAX, f64::MIN), |(low, high), &y| (low.min(y), high.max(y)));
        high - low < SAME
    }
}
