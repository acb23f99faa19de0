//! Memorisation: how near generated images lie to training images, against held-out real images.
//!
//! BLC App. A.5 counts generated images with "a training neighbor within distance 10 in feature
//! space" (36 % on AFHQ). Such a rate depends on features, their scale and the number of training
//! images; the rate of held-out images at the same threshold says what nature itself has. A
//! generator that copies is nearer to the training images than held-out images are; that is what
//! the rank tests below measure, without a threshold.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, ContinuousCDF};

use super::coverage::percentile;
use super::features::{Features, Real, by_class};
use super::manifold::Compared;
use super::neighbours::Neighbours;
use crate::error::{Error, Result};
use crate::measure::interval::with_score;
use crate::measure::{Estimate, Interval, bootstrap};
use crate::stats::Z95;

/// The share of held-out images that counts as copies where no threshold is given.
const BY_CHANCE: f64 = 0.01;

/// Nearest training distances of generated and of held-out images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memorisation {
    /// Distance below which an image counts as near.
    pub threshold: f64,
    /// The share of held-out images whose quantile the threshold is; none of a threshold that was given, or at which more
    /// held-out distances tie.
    #[serde(default)]
    pub quantile: Option<f64>,
    /// Share of images with a training image within the threshold. Without a quantile with Wilson's
    /// intervals. Of a quantile the held-out share is that quantile, without an error, and the
    /// interval of the generated share holds the error of the quantile, too.
    pub rate: Compared<Estimate>,
    /// Median distance to the nearest training image, in units of the features.
    pub median: Compared<f64>,
    /// The rank test of the two.
    pub ranks: Ranks,
}

/// Compares distances to the nearest training image ([`Neighbours::nearest`] in the training set).
/// Without a threshold it is the held-out distances' quantile of 1 %, or of 1/(n + 1) where n held-out
/// images have no such quantile: a generator without copies has as many images within it in the mean.
///
/// # Errors
/// When one set is empty or a distance is not a number.
pub fn memorisation(distances: &Compared<&[f64]>, threshold: Option<f64>) -> Result<Memorisation> {
    let (made, real) = (distances.generated, distances.held_out);
    // Refuses what has no order.
    let median = Compared { generated: percentile(made, 0.5)?, held_out: percentile(real, 0.5)? };
    let (threshold, quantile) = match threshold {
        Some(given) => (given, None),
        None => {
            let level = BY_CHANCE.max(1.0 / (real.len() + 1) as f64);
            let mut sorted = real.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            (bootstrap::quantile(&sorted, level), Some(level))
        }
    };
    let rate = |d: &[f64]| Estimate::proportion(d.iter().filter(|&&d| d <= threshold).count(), d.len());
    let (generated, held_out) = (rate(made), rate(real));
    // Of distances that tie at the quantile more lie within it than its share: that is then no longer so by construction.
    let quantile = quantile.filter(|level| held_out.value <= level + 1.0 / real.len() as f64);
    let rate = match quantile {
        None => Compared { generated, held_out },
        Some(level) => Compared {
            generated: with_error_of_quantile(generated, made.len(), level, real.len())?,
            held_out: Estimate::new(level, Interval { low: level, high: level }),
        },
    };
    Ok(Memorisation { threshold, quantile, rate, median, ranks: Ranks::of(made, real)? })
}

/// The share of `m` generated images within the quantile `level` of `n` held-out distances, with the
/// error of that quantile: the share of *all* held-out images within it is Beta(level (n + 1),
/// (1 − level)(n + 1)), and the generated share is taken to be in proportion to it nearby.
fn with_error_of_quantile(rate: Estimate, m: usize, level: f64, n: usize) -> Result<Estimate> {
    let all = (n + 1) as f64;
    let within = Beta::new(level * all, (1.0 - level) * all)
        .map_err(|error| Error::Numeric(format!("the quantile {level} of {n} distances: {error}")))?;
    let [low, high] = [0.025, 0.975].map(|p| within.inverse_cdf(p));
    let Estimate { value, interval } = rate;
    // No image at all says as little about the quantile as one.
    let at_least = value.max(1.0 / m as f64);
    let down = (value - interval.low).hypot(value * (1.0 - level / high));
    let up = (interval.high - value).hypot(at_least * (level / low - 1.0));
    Ok(Estimate::new(value, Interval { low: (value - down).max(0.0), high: (value + up).min(1.0) }))
}

/// The rank test of Mann & Whitney (1947) on two sets of distances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// Probability that a generated image is farther from the training images than a held-out one,
    /// ties counting half. ½ where both are alike, 0 where every generated image is nearer. 95 %
    /// interval of DeLong et al. (1988), wide enough to hold the score interval (Newcombe 2006): of sets
    /// that hardly overlap DeLong's is too narrow, and of those that do not it has no width.
    pub farther: Estimate,
    /// Z_U = (U − nm/2) / √(nm(n + m + 1)/12) (Meehan et al. 2020, eq. 3), with the variance
    /// corrected for ties: standard normal where both are alike, ≪ 0 for copies, ≫ 0 for
    /// underfitting; grows with the numbers. 0 where all distances tie. (The authors' code adds ½
    /// to U, their paper does not.)
    pub z: f64,
}

impl Ranks {
    /// Of distances of generated and held-out images.
    ///
    /// # Errors
    /// When a set is empty or a distance is not a number.
    pub fn of(generated: &[f64], held_out: &[f64]) -> Result<Self> {
        if generated.is_empty() || held_out.is_empty() || generated.iter().chain(held_out).any(|d| d.is_nan()) {
            return Err(Error::input("a rank test needs distances on both sides, all of them numbers"));
        }
        let sorted = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted
        };
        let (made, real) = (sorted(generated), sorted(held_out));
        // Share of `others` that lie below a distance.
        let placed = |d: f64, others: &[f64]| {
            let (below, upto) = (others.partition_point(|&o| o < d), others.partition_point(|&o| o <= d));
            (below + upto) as f64 / 2.0 / others.len() as f64
        };
        let of_made: Vec<f64> = made.iter().map(|&d| placed(d, &real)).collect();
        let of_real: Vec<f64> = real.iter().map(|&d| 1.0 - placed(d, &made)).collect();
        let (m, n) = (made.len() as f64, real.len() as f64);
        let farther = of_made.iter().sum::<f64>() / m;
        let spread = |places: &[f64], count: f64| {
            places.iter().map(|p| (p - farther).powi(2)).sum::<f64>() / ((count - 1.0).max(1.0) * count)
        };
        let half = Z95 * (spread(&of_made, m) + spread(&of_real, n)).sqrt();
        let interval = Interval { low: (farther - half).max(0.0), high: (farther + half).min(1.0) };
        let all = sorted(&[generated, held_out].concat());
        let ties: f64 = all.chunk_by(|a, b| a == b).map(|tied| (tied.len() as f64).powi(3) - tied.len() as f64).sum();
        let variance = n * m / 12.0 * ((n + m + 1.0) - ties / ((n + m) * (n + m - 1.0)));
        let z = if variance > 0.0 { n * m * (farther - 0.5) / variance.sqrt() } else { 0.0 };
        Ok(Self { farther: with_score(Estimate::new(farther, interval), made.len(), real.len()), z })
    }
}

/// The rank test within one cell of feature space.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its number.
    pub cell: usize,
    /// Training, held-out and generated images in it.
    pub n: [usize; 3],
    /// The test; `None` where one of the three is missing.
    pub ranks: Option<Ranks>,
    /// Whether it counts in C_T.
    pub counts: bool,
}

/// C_T of Meehan, Chaudhuri & Dasgupta (2020).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataCopying {
    /// Mean of Z_U over the cells that count, weighted by their held-out images: below about −3 the
    /// generator copies, in some region at least. `None` where no cell counts.
    pub c_t: Option<f64>,
    /// 95 % interval of C_T: cells are independent, each Z_U has standard deviation 1.
    pub interval: Option<Interval>,
    /// Every cell.
    pub cells: Vec<Cell>,
}

/// Features of images and the cell that each lies in.
pub type InCells<'a, T> = (&'a Features<'a, T>, &'a [usize]);

/// Distances of images to the nearest training image of their own cell [n], and these cells.
pub type NearInCells<'a> = (&'a [f64], &'a [usize]);

/// Distance of every image to the nearest reference of its own cell [n]; ∞ where there is none.
///
/// # Errors
/// When the numbers of features differ or cells do not match.
pub fn nearest_in_cells<A: Real, B: Real>(
    images: InCells<'_, A>,
    references: InCells<'_, B>,
    cells: usize,
) -> Result<Vec<f64>> {
    images.0.same_dim(references.0)?;
    let of_images = by_class(images.1, images.0.n(), cells)?;
    let of_references = by_class(references.1, references.0.n(), cells)?;
    let mut found = vec![f64::INFINITY; images.0.n()];
    for (own, near) in of_images.iter().zip(&of_references).filter(|(own, near)| !own.is_empty() && !near.is_empty()) {
        let (values, others) = (images.0.gather(own), references.0.gather(near));
        let dim = images.0.dim();
        let nearest = Neighbours::of(&Features::new(&values, dim)?, &Features::new(&others, dim)?, 1)?.nearest();
        own.iter().zip(nearest).for_each(|(&image, distance)| found[image] = distance);
    }
    Ok(found)
}

/// C_T over a partition of feature space in `cells`: the classes, or the clusters of the training
/// images as in the paper (k-means). One test over all would miss a generator that copies in one
/// region and underfits in another. `train` are the cells of the training images; distances are those of
/// [`nearest_in_cells`], or the least of several. Cells with less than `least` (the paper's τ, e.g. 20 / m) of the
/// generated images do not count.
///
/// # Errors
/// When cells do not match; when a cell has held-out images but no training image: take fewer cells.
pub fn data_copying(
    train: &[usize],
    held_out: NearInCells<'_>,
    generated: NearInCells<'_>,
    cells: usize,
    least: f64,
) -> Result<DataCopying> {
    let near = by_class(train, train.len(), cells)?;
    let real = by_class(held_out.1, held_out.0.len(), cells)?;
    let made = by_class(generated.1, generated.0.len(), cells)?;
    let of = |distances: &[f64], images: &[usize]| images.iter().map(|&i| distances[i]).collect::<Vec<f64>>();
    let mut found = Vec::with_capacity(cells);
    for (cell, ((near, real), made)) in near.iter().zip(&real).zip(&made).enumerate() {
        if near.is_empty() && !real.is_empty() {
            let cause = format!("cell {cell} has held-out images but no training image: take fewer cells");
            return Err(Error::input(cause));
        }
        let all_there = ![near, real, made].iter().any(|set| set.is_empty());
        let ranks = all_there.then(|| Ranks::of(&of(generated.0, made), &of(held_out.0, real))).transpose()?;
        let counts = ranks.is_some() && made.len() as f64 >= least * generated.0.len() as f64;
        found.push(Cell { cell, n: [near.len(), real.len(), made.len()], ranks, counts });
    }
    let counted = || found.iter().filter(|c| c.counts).filter_map(|c| Some((c.n[1] as f64, c.ranks?.z)));
    let total: f64 = counted().map(|c| c.0).sum();
    let c_t = (total > 0.0).then(|| counted().map(|(weight, z)| weight * z).sum::<f64>() / total);
    let half = Z95 * counted().map(|c| (c.0 / total).powi(2)).sum::<f64>().sqrt();
    let interval = c_t.map(|value| Interval { low: value - half, high: value + half });
    Ok(DataCopying { c_t, interval, cells: found })
}

/// Counts of distances in bins that both sets share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Ends of the bins [bins + 1], equally wide, from 0 to the largest distance; bins are [low,
    /// high), the last [low, high].
    pub edges: Vec<f64>,
    /// Counts [bins] of each set.
    pub counts: Compared<Vec<usize>>,
}

/// The histogram of both sets of distances (BLC fig. 4, with the baseline it lacks). From 0 on, so
/// that a gap to exact copies shows.
///
/// # Errors
/// When there is no bin or no distance, or one is not finite or negative.
pub fn histogram(distances: &Compared<&[f64]>, bins: usize) -> Result<Histogram> {
    let all = || distances.generated.iter().chain(distances.held_out).copied();
    let largest = all().fold(0.0, f64::max);
    if bins == 0 || all().next().is_none() || all().any(|d| !d.is_finite() || d < 0.0) {
        return Err(Error::input(format!("no histogram of {bins} bins: it needs finite distances of 0 or more")));
    }
    let width = if largest > 0.0 { largest / bins as f64 } else { 1.0 / bins as f64 };
    let count = |set: &[f64]| {
        let mut counts = vec![0; bins];
        set.iter().for_each(|d| counts[((d / width) as usize).min(bins - 1)] += 1);
        counts
    };
    let counts = Compared { generated: count(distances.generated), held_out: count(distances.held_out) };
    Ok(Histogram { edges: (0..=bins).map(|i| i as f64 * width).collect(), counts })
}

#[cfg(test)]
#[path = "memory/tests.rs"]
mod tests;
