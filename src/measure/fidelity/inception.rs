//! Inception score (Salimans et al. 2016): exp E_x KL(p(y|x) ‖ p(y)) over generated images.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::measure::{Interval, student_mean};
use crate::units::Seed;

/// Parts that the images are cut into unless a caller wants others.
pub const SPLITS: usize = 10;

/// How far the probabilities of an image may be from adding up to 1.
const NORMALISATION: f64 = 1e-3;

/// The score and its spread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InceptionScore {
    /// Mean of the parts' scores, from 1 to the number of classes. A part has its own p(y), so few
    /// images a part make the score low: compare scores at equal n and splits only.
    pub mean: f64,
    /// Population standard deviation of the parts' scores, the ± of papers. No interval.
    pub std: f64,
    /// Student's 95 % interval of the expected score of n/splits images.
    pub interval: Interval,
    /// Score of all images as one part.
    pub whole: f64,
    /// Parts.
    pub splits: usize,
    /// Images.
    pub n: usize,
}

/// Score of log-probabilities `log_p` [n, K] (natural; see [`crate::measure::log_softmax`]), cut
/// into `splits` parts as torch-fidelity and the original code cut them: part i from ⌊i n / splits⌋
/// on. `shuffle` deals the images out first, as torch-fidelity does; without, images sorted by
/// class make parts of few classes, and with them a low mean and a large deviation (BLC's 6.24 ±
/// 3.57 on AFHQ would look like that; the paper does not say).
///
/// # Errors
/// When the shape does not match, there are fewer than two parts or an image for each, or a row is
/// no distribution (with its image).
pub fn inception_score(log_p: &[f64], classes: usize, splits: usize, shuffle: Option<Seed>) -> Result<InceptionScore> {
    if classes == 0 || log_p.is_empty() || !log_p.len().is_multiple_of(classes) {
        return Err(Error::input(format!("{} log-probabilities are no images of {classes} classes", log_p.len())));
    }
    let n = log_p.len() / classes;
    if splits < 2 || n < splits {
        return Err(Error::input(format!("{n} images cannot be cut into {splits} parts; two at least have a spread")));
    }
    for (image, row) in log_p.chunks_exact(classes).enumerate() {
        let sum: f64 = row.iter().map(|l| l.exp()).sum();
        if (sum - 1.0).abs() > NORMALISATION || sum.is_nan() {
            return Err(Error::Numeric(format!("image {image}: its probabilities add up to {sum}, not to 1")));
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    if let Some(seed) = shuffle {
        order.shuffle(&mut seed.split("parts of an inception score").rng(0));
    }
    let part = |i: usize| score(log_p, classes, &order[i * n / splits..(i + 1) * n / splits]);
    let scores: Vec<f64> = (0..splits).map(part).collect();
    let (mean, half) = student_mean(&scores);
    let std = (scores.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / splits as f64).sqrt();
    let interval = Interval { low: mean - half, high: mean + half };
    Ok(InceptionScore { mean, std, interval, whole: score(log_p, classes, &order), splits, n })
}

/// exp mean_i Σ_y p_i(y) (log p_i(y) − log mean_i p_i(y)); 0 log 0 = 0.
fn score(log_p: &[f64], classes: usize, images: &[usize]) -> f64 {
    let n = images.len() as f64;
    let rows = || images.iter().map(|&i| &log_p[i * classes..][..classes]);
    let mut marginal = vec![0.0; classes];
    let mut negative_entropy = 0.0;
    for row in rows() {
        for (sum, &l) in marginal.iter_mut().zip(row) {
            *sum += l.exp() / n;
            negative_entropy += if l == f64::NEG_INFINITY { 0.0 } else { l.exp() * l };
        }
    }
    // Σ_i Σ_y p_i(y) log p̄(y) = n Σ_y p̄(y) log p̄(y).
    let of_marginal: f64 = marginal.iter().filter(|&&p| p > 0.0).map(|p| p * p.ln()).sum();
    (negative_entropy / n - of_marginal).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n images that are sure of their class, classes in turn or in runs.
    fn certain(n: usize, classes: usize, sorted: bool) -> Vec<f64> {
        let class = |i: usize| if sorted { i * classes / n } else { i % classes };
        let at = |at: usize| if at % classes == class(at / classes) { 0.0 } else { f64::NEG_INFINITY };
        (0..n * classes).map(at).collect()
    }

    #[test]
    fn the_range_is_from_1_to_the_number_of_classes() {
        let sure = inception_score(&certain(120, 4, false), 4, 10, None).unwrap();
        assert!((sure.mean - 4.0).abs() < 1e-12 && sure.std < 1e-12 && (sure.whole - 4.0).abs() < 1e-12);
        let vague = inception_score(&[0.25f64.ln(); 400], 4, 10, None).unwrap();
        assert!((vague.mean - 1.0).abs() < 1e-12 && (vague.interval.low - 1.0).abs() < 1e-12, "{vague:?}");
    }

    #[test]
    fn images_sorted_by_class_are_dealt_out() {
        let sorted = certain(1000, 10, true);
        let (as_is, dealt) =
            (inception_score(&sorted, 10, 10, None).unwrap(), inception_score(&sorted, 10, 10, Some(Seed(1))).unwrap());
        assert!((as_is.mean - 1.0).abs() < 1e-12 && dealt.mean > 9.0, "{as_is:?} {dealt:?}");
        assert!((as_is.whole - 10.0).abs() < 1e-9 && (dealt.whole - 10.0).abs() < 1e-9);
        // Seven parts of 1,000 images: the cuts are those of integer division.
        assert_eq!(inception_score(&sorted, 10, 7, None).unwrap().splits, 7);
    }

    #[test]
    fn what_is_no_distribution_is_named() {
        let mut log_p = certain(20, 2, false);
        log_p[7] = 0.5f64.ln();
        let error = inception_score(&log_p, 2, 10, None).unwrap_err().to_string();
        assert!(error.contains("image 3"), "{error}");
        log_p[7] = f64::NAN;
        assert!(inception_score(&log_p, 2, 10, None).is_err());
        assert!(inception_score(&log_p[1..], 2, 10, None).is_err());
        assert!(inception_score(&[0.0; 4], 1, 5, None).is_err());
    }
}
