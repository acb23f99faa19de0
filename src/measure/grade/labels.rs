//! Estimates that look at no image: soft labels, counts of drawn labels, a classifier's own belief.
//! Their terms are independent images, so each has a 95 % interval of its mean, in which is what images that were not
//! seen may add.

use super::{Estimator, Graded};
use crate::error::{Error, Result};
use crate::measure::calibrate::{Calibration, Penalty};
use crate::measure::images::{log_q_sum, named, posterior_sum};
use crate::measure::softmax::argmax;
use crate::parallel;
use crate::units::ClassId;

/// Isotonic regression pays for nothing.
const NO_PENALTY: Penalty = Penalty { off_diagonal: 0.0, intercept: 0.0 };

/// Mean of 1 − max_y p_i(y) of soft labels `p` [N, K] (Ishida et al. 2023, there for two classes):
/// unbiased for the true posteriors, whatever N. Rows that sum to 1 within 1e-3 are normalised.
///
/// # Errors
/// When the shape does not fit, below two images, or for a row that is no distribution (named).
pub fn soft_labels<P: Copy + Into<f64> + Sync>(p: &[P], classes: usize) -> Result<Graded> {
    let doubt = |row: &[P]| {
        let sum = posterior_sum(row)?;
        Ok(1.0 - row.iter().map(|&p| p.into()).fold(0.0, f64::max) / sum)
    };
    mean_doubt(Estimator::SoftLabels, p, classes, doubt)
}

/// 1 − mean max_y q(y|x): the error a classifier with `log_q` [N, K] (see
/// [`crate::measure::log_softmax`]) expects of itself. The Bayes error where q is the true
/// posterior; elsewhere on neither side of it for certain.
///
/// # Errors
/// As [`soft_labels`].
pub fn plug_in(log_q: &[f64], classes: usize) -> Result<Graded> {
    let doubt = |row: &[f64]| {
        let log_sum = log_q_sum(row)?;
        Ok(-(row.iter().copied().fold(f64::NEG_INFINITY, f64::max) - log_sum).exp_m1())
    };
    mean_doubt(Estimator::PlugIn, log_q, classes, doubt)
}

/// From `counts` [N, K] of the labels that were drawn for each image, at least one, e.g. by
/// annotators. The estimate is that of [`soft_labels`] with shares in place of posteriors: biased
/// low, since the most frequent of m labels is chosen by the same labels that measure it (E max ≥
/// max E). `upper` leaves each label out in turn and asks how often the majority of the others
/// misses it (a tie is drawn by lot): the error of a real decision, biased high. In the mean over
/// draws the two enclose the Bayes error; `interval` is that of the low one.
///
/// # Errors
/// As [`soft_labels`], or when an image has no label.
pub fn label_counts(counts: &[u32], classes: usize) -> Result<Graded> {
    let doubt = |row: &[u32]| {
        let labels = total(row)?;
        Ok(1.0 - f64::from(row.iter().copied().max().unwrap_or(0)) / labels)
    };
    let mut graded = mean_doubt(Estimator::LabelCounts, counts, classes, doubt)?;
    graded.lower = Some(graded.estimate);
    let errors = parallel::map(graded.n, |i| left_out_error(&counts[i * classes..(i + 1) * classes]));
    graded.upper = Some(errors.iter().sum::<f64>() / graded.n as f64);
    Ok(graded)
}

/// From `counts` [N, K] of labels as [`label_counts`], where the Bayes decision of each image is
/// known, here from exact posteriors `p` [N, K]: the mean share of labels that it misses. Shares are
/// soft labels with noise of mean 0, and linear in them the noise cancels, whatever their number
/// (Ishida et al. 2023, there for two classes).
///
/// # Errors
/// As [`label_counts`], or when the shapes differ.
pub fn known_decision(counts: &[u32], p: &[f64], classes: usize) -> Result<Graded> {
    if counts.len() != p.len() {
        return Err(Error::input(format!("{} counts are not of {} posteriors", counts.len(), p.len())));
    }
    let both: Vec<(u32, f64)> = counts.iter().copied().zip(p.iter().copied()).collect();
    let doubt = |row: &[(u32, f64)]| {
        let (counts, p): (Vec<u32>, Vec<f64>) = row.iter().copied().unzip();
        Ok(1.0 - f64::from(counts[argmax(&p)]) / total(&counts)?)
    };
    mean_doubt(Estimator::KnownDecision, &both, classes, doubt)
}

/// [`soft_labels`] of logarithms `log_u` [N, K] that are known to be overconfident.
///
/// # Errors
/// As [`plug_in`].
pub fn sharpened_soft(log_u: &[f64], classes: usize) -> Result<Graded> {
    Ok(Graded { estimator: Estimator::SharpenedSoft, ..plug_in(log_u, classes)? })
}

/// From corrupted soft labels, as logarithms `log_u` [N, K], and one drawn label an image: each class is
/// calibrated by isotonic regression, then the mean of 1 − max (Ushio et al. 2025, there for two classes).
/// Consistent where the corruption keeps the order of images. Images share the calibration, so the interval
/// is left to the caller.
///
/// # Errors
/// As [`plug_in`], and when a label is no class.
pub fn isotonic_soft(log_u: &[f64], labels: &[ClassId], classes: usize) -> Result<Graded> {
    // What a soft label calls impossible is the least that a number can say.
    let finite: Vec<f64> = log_u.iter().map(|log_u| log_u.max(f64::MIN_POSITIVE.ln())).collect();
    let calibrator = Calibration::Isotonic.fit(&finite, labels, classes, NO_PENALTY)?;
    let graded = plug_in(&calibrator.apply(&finite, classes), classes)?;
    Ok(Graded { estimator: Estimator::IsotonicSoft, interval: None, ..graded })
}

/// Labels of an image.
fn total(counts: &[u32]) -> Result<f64, String> {
    match counts.iter().map(|&c| u64::from(c)).sum::<u64>() {
        0 => Err("it has no label".into()),
        labels => Ok(labels as f64),
    }
}

/// The share of an image's labels that the majority of its others misses.
fn left_out_error(counts: &[u32]) -> f64 {
    let labels: f64 = counts.iter().map(|&c| f64::from(c)).sum();
    let hit = |y: usize| {
        let own = counts[y] - 1;
        let others = counts.iter().enumerate().filter(|&(other, _)| other != y).map(|(_, &c)| c);
        if others.clone().any(|c| c > own) { 0.0 } else { 1.0 / (1 + others.filter(|&c| c == own).count()) as f64 }
    };
    let drawn = counts.iter().enumerate().filter(|(_, c)| **c > 0);
    1.0 - drawn.map(|(y, &c)| f64::from(c) * hit(y)).sum::<f64>() / labels
}

/// The mean over images of what each row leaves to doubt.
fn mean_doubt<T: Sync>(
    estimator: Estimator,
    rows: &[T],
    classes: usize,
    doubt: impl Fn(&[T]) -> Result<f64, String> + Sync,
) -> Result<Graded> {
    if classes < 2 || !rows.len().is_multiple_of(classes) || rows.len() < 2 * classes {
        let numbers = rows.len();
        return Err(Error::input(format!(
            "{numbers} numbers are not the rows of two or more images of {classes} classes (at least two)"
        )));
    }
    let row = |i: usize| &rows[i * classes..(i + 1) * classes];
    let doubts = named(0, parallel::map(rows.len() / classes, |i| doubt(row(i))))?;
    Ok(Graded::of_errors(estimator, &doubts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::Rng;

    #[test]
    fn rows_by_hand() {
        let graded = soft_labels(&[0.5f32, 0.25, 0.25, 0.0, 1.0, 0.0], 3).unwrap();
        assert_eq!((graded.estimate, graded.n), (0.25, 2));
        let belief = plug_in(&[0.75f64.ln(), 0.25f64.ln(), f64::NEG_INFINITY, 0.0], 2).unwrap();
        assert!((belief.estimate - 0.125).abs() < 1e-15);
        let counts = label_counts(&[3, 1, 0, 1, 1, 0], 3).unwrap();
        assert_eq!(counts.estimate, 0.375);
        // 3-1: each of the three is the majority of the others (2-1), the one is missed: 1/4.
        assert_eq!(counts.upper, Some((0.25 + 1.0) / 2.0));
        // A tie of the others is drawn by lot: 2-1 without a first is 1-1.
        assert_eq!(left_out_error(&[2, 1]), 1.0 - 2.0 * 0.5 / 3.0);
        // One label: nothing to decide by.
        assert!((left_out_error(&[0, 1, 0]) - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn refusals_name_the_image() {
        for (bad, cause) in [
            (soft_labels(&[0.5, 0.5, 0.9, 0.9], 2), "image 1"),
            (plug_in(&[0.5f64.ln(), 0.5f64.ln(), 0.0, 0.0], 2), "image 1"),
            (label_counts(&[1, 0, 0, 0], 2), "image 1: it has no label"),
            (soft_labels(&[0.5, 0.5, 1.0], 2), "3 numbers"),
            (soft_labels(&[0.5, 0.5], 2), "two or more images"),
            (soft_labels(&[1.0, 1.0], 1), "at least two"),
        ] {
            let error = bad.unwrap_err().to_string();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn errors_that_were_not_seen_are_within_the_interval() {
        let soft = soft_labels(&[1.0, 0.0].repeat(100), 2).unwrap();
        let known = known_decision(&[1u32, 0].repeat(100), &[0.9, 0.1].repeat(100), 2).unwrap();
        for graded in [soft, known] {
            let interval = graded.interval.unwrap();
            // The rule of three.
            assert!(
                graded.estimate == 0.0 && interval.low == 0.0 && (interval.high - 0.03).abs() < 1e-15,
                "{graded:?}"
            );
        }
    }

    /// Posteriors (η, 1 − η), η uniform: Bayes error ∫ min(η, 1 − η) = 1/4.
    fn uniform(seed: Seed, n: usize) -> Vec<f64> {
        let mut rng = seed.rng(0);
        let row = |_| {
            let eta = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            [eta, 1.0 - eta]
        };
        (0..n).flat_map(row).collect()
    }

    #[test]
    fn one_noisy_label_an_image_is_enough_where_the_decision_is_known() {
        let (p, mut rng) = (uniform(Seed(3), 40_000), Seed(4).rng(0));
        let draw = |row: &[f64]| {
            let first = u32::from(((rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64) < row[0]);
            [first, 1 - first]
        };
        let counts: Vec<u32> = p.chunks(2).flat_map(draw).collect();
        let known = known_decision(&counts, &p, 2).unwrap();
        assert!((known.estimate - 0.25).abs() < 0.01 && known.interval.unwrap().contains(0.25), "{known:?}");
        // The same labels, without the decision, hide all doubt.
        assert_eq!(label_counts(&counts, 2).unwrap().estimate, 0.0);
        assert!(known_decision(&counts[2..], &p, 2).is_err());
    }

    #[test]
    fn calibration_undoes_what_sharpening_hides() {
        let (p, mut rng) = (uniform(Seed(5), 40_000), Seed(6).rng(0));
        let first = |row: &[f64]| usize::from(((rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64) >= row[0]);
        let labels: Vec<usize> = p.chunks(2).map(first).collect();
        // u ∝ η²: ∫ min(u, 1 − u) = 2 ∫₀^½ η²/(η² + (1 − η)²) dη = ½ (1 − ln 2).
        let sharpen = |row: &[f64]| {
            let sum = row[0] * row[0] + row[1] * row[1];
            [(row[0] * row[0] / sum).ln(), (row[1] * row[1] / sum).ln()]
        };
        let log_u: Vec<f64> = p.chunks(2).flat_map(sharpen).collect();
        let naive = sharpened_soft(&log_u, 2).unwrap();
        assert!((naive.estimate - 0.5 * (1.0 - 2f64.ln())).abs() < 0.005, "{}", naive.estimate);
        let calibrated = isotonic_soft(&log_u, &labels, 2).unwrap();
        assert!((calibrated.estimate - 0.25).abs() < 0.01, "{}", calibrated.estimate);
        // Rank is all that counts: the true posteriors give the same.
        let log_p: Vec<f64> = p.iter().map(|p| p.ln()).collect();
        let exact = isotonic_soft(&log_p, &labels, 2).unwrap();
        assert!((exact.estimate - calibrated.estimate).abs() < 1e-9);
    }

    #[test]
    fn soft_labels_are_unbiased_and_their_intervals_cover() {
        let trials = 400;
        let covered = (0..trials).filter(|&trial| {
            let graded = soft_labels(&uniform(Seed(trial), 300), 2).unwrap();
            graded.interval.unwrap().contains(0.25)
        });
        let share = covered.count() as f64 / trials as f64;
        // 95 % ± 3 standard errors of 400 trials.
        assert!((0.917..=0.983).contains(&share), "{share}");
    }

    #[test]
    fn drawn_labels_enclose_the_bayes_error_and_close_in_with_more() {
        let p = uniform(Seed(8), 20_000);
        let mut rng = Seed(9).rng(0);
        let mut before = 1.0;
        for labels in [1u32, 3, 9, 51] {
            let draw = |row: &[f64]| {
                let first = (0..labels).filter(|_| ((rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64) < row[0]);
                let first = first.count() as u32;
                [first, labels - first]
            };
            let counts: Vec<u32> = p.chunks(2).flat_map(draw).collect();
            let graded = label_counts(&counts, 2).unwrap();
            let (lower, upper) = (graded.estimate, graded.upper.unwrap());
            println!("{labels} labels: {lower:.4} to {upper:.4}");
            // Of m labels under a uniform η all counts 0…m are equally likely.
            let exact: f64 = (0..=labels).map(|k| f64::from(k.min(labels - k)) / f64::from(labels)).sum::<f64>()
                / f64::from(labels + 1);
            assert!((lower - exact).abs() < 0.005, "{labels}: {lower} {exact}");
            assert!(lower < 0.25 && upper > 0.25 && upper - lower < before, "{labels}: {lower} {upper}");
            before = upper - lower;
        }
    }
}
