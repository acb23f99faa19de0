//! Estimators of the calibration error from confidences and hits, to be held against the exact one.
//!
//! The calibration error of a classifier is E|P(right | confidence) − confidence|, of all
//! confidences c. Bins compare means within a bin: coarse bins hide what cancels inside them, fine
//! ones count the noise of the labels as error (Bröcker 2012; Kumar et al. 2019; Popordanoska et
//! al. 2022).

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

use crate::error::{Error, Result};
use crate::parallel;

/// Images that the kernel takes, at most: its work grows with their square.
const MOST_OF_KERNEL: usize = 5000;

/// How a calibration error is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EceEstimator {
    /// Bins of equal width over [0, 1], closed above.
    Width(usize),
    /// Bins of as many images.
    Mass(usize),
    /// [`Self::Mass`] less what the noise of the labels adds on average (Kumar et al. 2019), with
    /// the mean of |N(d, s²)| in closed form.
    Debiased(usize),
    /// Root of the squared error in bins of as many images, less what the noise adds (Bröcker 2012;
    /// Kumar et al. 2019); 0 where that leaves less than nothing.
    Squares(usize),
    /// Nadaraya-Watson with beta kernels, each image left out for itself (Popordanoska et al.
    /// 2022); bandwidth: the confidences' deviation · n^(−2/5).
    Kernel,
}

/// Which distance an estimator estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// The mean of |P(right | c) − c|.
    Absolute,
    /// The root of the mean square.
    Square,
}

/// Images of one bin.
struct Bin {
    count: f64,
    /// Mean confidence.
    confidence: f64,
    /// Mean outcome.
    outcome: f64,
    /// Variance of the outcomes, Σ(o − mean)²/n.
    variance: f64,
}

impl EceEstimator {
    /// Those that are graded.
    pub const ALL: [Self; 13] = [
        Self::Width(5),
        Self::Width(10),
        Self::Width(15),
        Self::Width(30),
        Self::Width(100),
        Self::Mass(5),
        Self::Mass(10),
        Self::Mass(15),
        Self::Mass(30),
        Self::Mass(100),
        Self::Debiased(15),
        Self::Squares(15),
        Self::Kernel,
    ];

    /// What it is called.
    pub fn label(self) -> String {
        match self {
            Self::Width(bins) => format!("{bins} of equal width"),
            Self::Mass(bins) => format!("{bins} of equal mass"),
            Self::Debiased(bins) => format!("{bins} of equal mass, debiased"),
            Self::Squares(bins) => format!("{bins} of equal mass, squares, debiased"),
            Self::Kernel => "beta kernel".into(),
        }
    }

    /// What it estimates.
    pub fn norm(self) -> Norm {
        if matches!(self, Self::Squares(_)) { Norm::Square } else { Norm::Absolute }
    }

    /// Images that it needs: as many as it has bins of equal mass, and two for a variance.
    pub fn takes(self, n: usize) -> bool {
        match self {
            Self::Width(_) => n > 0,
            Self::Mass(bins) => n >= bins,
            Self::Debiased(bins) | Self::Squares(bins) => n >= 2 * bins,
            Self::Kernel => (3..=MOST_OF_KERNEL).contains(&n),
        }
    }

    /// The estimate from confidences in [0, 1] and outcomes: 1 where the classifier was right and
    /// otherwise 0, or the exact probability that it is.
    ///
    /// # Errors
    /// When [`Self::takes`] denies so many images, or the two differ in number.
    pub fn estimate(self, confidence: &[f64], outcome: &[f64]) -> Result<f64> {
        let n = confidence.len();
        if n != outcome.len() || !self.takes(n) {
            let (label, given) = (self.label(), outcome.len());
            return Err(Error::input(format!("{label}: {n} confidences and {given} outcomes do not do")));
        }
        Ok(match self {
            Self::Width(bins) => plain(&by_width(confidence, outcome, bins)),
            Self::Mass(bins) => plain(&by_mass(confidence, outcome, bins)),
            Self::Debiased(bins) => debiased(&by_mass(confidence, outcome, bins)),
            Self::Squares(bins) => squares(&by_mass(confidence, outcome, bins)),
            Self::Kernel => kernel(confidence, outcome),
        })
    }
}

/// The exact calibration error from exact probabilities `right` that the classifier is right: √n
/// bins of as many images, less what the spread of `right` at equal confidence adds on average.
///
/// # Errors
/// When there are fewer than 4 images, or the two differ in number.
pub fn exact_calibration_error(confidence: &[f64], right: &[f64], norm: Norm) -> Result<f64> {
    let bins = confidence.len().isqrt();
    match norm {
        Norm::Absolute => EceEstimator::Debiased(bins).estimate(confidence, right),
        Norm::Square => EceEstimator::Squares(bins).estimate(confidence, right),
    }
}

impl Bin {
    fn of(members: &[usize], confidence: &[f64], outcome: &[f64]) -> Self {
        let count = members.len() as f64;
        let mean = |of: &dyn Fn(usize) -> f64| members.iter().map(|&i| of(i)).sum::<f64>() / count;
        let right = mean(&|i| outcome[i]);
        let variance = mean(&|i| (outcome[i] - right).powi(2));
        Self { count, confidence: mean(&|i| confidence[i]), outcome: right, variance }
    }

    fn distance(&self) -> f64 {
        (self.outcome - self.confidence).abs()
    }
}

fn by_width(confidence: &[f64], outcome: &[f64], bins: usize) -> Vec<Bin> {
    let mut members = vec![Vec::new(); bins];
    for (i, confidence) in confidence.iter().enumerate() {
        members[((confidence * bins as f64).ceil() as usize).clamp(1, bins) - 1].push(i);
    }
    members.iter().filter(|bin| !bin.is_empty()).map(|bin| Bin::of(bin, confidence, outcome)).collect()
}

fn by_mass(confidence: &[f64], outcome: &[f64], bins: usize) -> Vec<Bin> {
    let n = confidence.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| confidence[a].total_cmp(&confidence[b]));
    let parts = (0..bins).map(|bin| &order[bin * n / bins..(bin + 1) * n / bins]);
    parts.filter(|bin| !bin.is_empty()).map(|bin| Bin::of(bin, confidence, outcome)).collect()
}

/// Mean over images of what each bin has.
fn over_images(bins: &[Bin], of: impl Fn(&Bin) -> f64) -> f64 {
    let n: f64 = bins.iter().map(|bin| bin.count).sum();
    bins.iter().map(|bin| bin.count * of(bin)).sum::<f64>() / n
}

fn plain(bins: &[Bin]) -> f64 {
    over_images(bins, Bin::distance)
}

/// Twice the distance less the mean distance were the outcomes drawn anew.
fn debiased(bins: &[Bin]) -> f64 {
    let of = |bin: &Bin| 2.0 * bin.distance() - folded(bin.distance(), (bin.variance / bin.count).sqrt());
    over_images(bins, of)
}

/// Mean of |N(d, s²)|, d ≥ 0.
fn folded(d: f64, s: f64) -> f64 {
    if s == 0.0 {
        return d;
    }
    let z = d / s;
    s * (2.0 / std::f64::consts::PI).sqrt() * (-z * z / 2.0).exp() + d * (1.0 - 2.0 * Normal::standard().cdf(-z))
}

fn squares(bins: &[Bin]) -> f64 {
    let of = |bin: &Bin| bin.distance().powi(2) - bin.variance / (bin.count - 1.0);
    over_images(bins, of).max(0.0).sqrt()
}

fn kernel(confidence: &[f64], outcome: &[f64]) -> f64 {
    let n = confidence.len() as f64;
    let mean = confidence.iter().sum::<f64>() / n;
    let deviation = (confidence.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n).sqrt();
    let h = deviation * n.powf(-0.4);
    if h == 0.0 {
        // One confidence: one bin.
        return plain(&by_mass(confidence, outcome, 1));
    }
    // log of 1/B(a, b) at every image, a = c/h + 1 and b = (1 − c)/h + 1.
    let norm: Vec<f64> = confidence.iter().map(|c| inverse_beta(c / h + 1.0, (1.0 - c) / h + 1.0)).collect();
    let distance = |j: usize| {
        // Off the edges, where the logarithms have no value.
        let c = confidence[j].clamp(1e-15, 1.0 - 1e-15);
        let (up, down) = (c.ln() / h, (-c).ln_1p() / h);
        let log_weight = |i: usize| confidence[i] * up + (1.0 - confidence[i]) * down + norm[i];
        let others = || (0..confidence.len()).filter(|&i| i != j);
        let most = others().map(log_weight).fold(f64::NEG_INFINITY, f64::max);
        let (all, right) = others().fold((0.0, 0.0), |(all, right), i| {
            let weight = (log_weight(i) - most).exp();
            (all + weight, right + weight * outcome[i])
        });
        (right / all - confidence[j]).abs()
    };
    // In order of the images: sums do not depend on threads.
    let distances = parallel::map(confidence.len(), distance);
    distances.iter().sum::<f64>() / n
}

fn inverse_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)
}

#[cfg(test)]
mod tests;
