//! One cell: a classifier is trained, calibrated by every method on n labels, and its calibration
//! error estimated from n labels, again and again.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::CalibrationSpec;
use crate::error::Result;
use crate::events::Events;
use crate::experiment::blocks::{Blocks, PairedFigure, TestBlocks};
use crate::experiment::cell::CellResult;
use crate::experiment::held_out::held_out;
use crate::experiment::images::Images;
use crate::experiment::kind::CellPlace;
use crate::experiment::output::CellOutput;
use crate::experiment::progress::Measuring;
use crate::experiment::train::{CellEvent, CellJob, train_cell};
use crate::experiment::trained::measuring;
use crate::measure::{Calibration, EceEstimator, Estimate, Norm, PerImage, exact_calibration_error, mixed};
use crate::parallel;
use crate::units::Seed;

/// Draws of labels between two reports, for every thread: some milliseconds each, up to seconds where a kernel
/// takes thousands of images.
const DRAWS_A_THREAD: usize = 4;

/// What a cell finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// The classifier as it is, then by every method at every n.
    pub methods: Vec<Recalibrated>,
    /// Estimates of its calibration error as it is.
    pub estimates: Vec<EstimatedEce>,
}

/// A classifier after calibration, on the test images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recalibrated {
    /// How.
    pub method: Calibration,
    /// Labels it was fitted on; 0 where it was not.
    pub n: usize,
    /// mean KL(p‖q), nats.
    pub epistemic: Estimate,
    /// Exact calibration error in 15 bins of equal width.
    pub exact_calibration_error: Estimate,
    /// mean p(argmax q).
    pub expected_accuracy: Estimate,
    /// Mean exact probability of the classes that the fitted map calls impossible. Each then gets
    /// 1/(n + 1) · 1/K, and the others as much less: KL would be infinite.
    pub impossible: f64,
    /// mean KL(p‖q) over blocks of the test images; absent in cells of a version before 2026-11-26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
}

impl Recalibrated {
    /// KL(p‖q) of the test images, and of their blocks.
    pub(super) fn kl(&self) -> PairedFigure<'_> {
        PairedFigure { value: self.epistemic.value, blocks: self.blocks.as_ref(), images: None }
    }
}

/// Estimates of a classifier's calibration error from n labels, beside the exact value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EstimatedEce {
    /// By whom.
    pub estimator: EceEstimator,
    /// Test images, drawn anew each time with their labels, with replacement.
    pub n: usize,
    /// Exact value in the estimator's norm, from all test images.
    pub exact: f64,
    /// What the estimator says of all test images with exact probabilities in place of hits: what
    /// is off here its bins or its kernel hide, not the labels; absent where it takes fewer images.
    pub noiseless: Option<f64>,
    /// Mean over draws.
    pub mean: f64,
    /// Standard deviation over draws.
    pub deviation: f64,
}

/// Trains, calibrates, estimates.
///
/// # Errors
/// As [`train_cell`], and when a log-probability is not finite.
pub(super) fn run(
    spec: &CalibrationSpec,
    place: &CellPlace<'_>,
    job: &CellJob<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<CellResult> {
    let labelled = held_out("calibration", spec.most(), place, job, events)?;
    let (result, trained) = train_cell(job, events)?;
    let log_q = trained.log_q(job.test.all.x.clone())?;
    let fitted_on = trained.log_q(labelled.all.x)?;
    let k = job.test.classes;
    let fits = Calibration::ALL.into_iter().filter(|method| *method != Calibration::None);
    let total = 1 + spec.labels.len() * fits.clone().count();
    let mut pieces = Measuring::begin(events, "calibrated classifiers", total)?;
    let mut methods = vec![scored(Calibration::None, 0, log_q.clone(), job.test)?];
    pieces.done(1)?;
    for &n in &spec.labels {
        for method in fits.clone() {
            let fitted = method.fit(&fitted_on[..n * k], &labelled.all.labels[..n], k, spec.penalty())?;
            methods.push(scored(method, n, fitted.apply(&log_q, k), job.test)?);
            pieces.done(1)?;
        }
    }
    let mut images = PerImage::new(k)?;
    images.extend(&job.test.all.posterior, &log_q, &job.test.all.labels)?;
    let mut pieces = Measuring::begin(events, "calibration errors by draws of labels", spec.labels.len() * spec.draws)?;
    let estimates = estimates(spec, &images, Seed(job.cell.seed).split("calibration error"), &mut pieces)?;
    Ok(CellResult { output: Some(CellOutput::new(Calibrated { methods, estimates })), ..result })
}

/// A calibrated classifier on the test images.
fn scored(method: Calibration, n: usize, log_q: Vec<f64>, test: &Images) -> Result<Recalibrated> {
    let (k, p) = (test.classes, &test.all.posterior);
    let excluded = log_q.iter().zip(p).filter(|(log_q, _)| **log_q == f64::NEG_INFINITY);
    let impossible = excluded.map(|(_, p)| p).sum::<f64>() / test.len().max(1) as f64;
    let log_q = if method.can_exclude() { mixed(&log_q, k, 1.0 / (n + 1) as f64) } else { log_q };
    let mut images = PerImage::new(k)?;
    images.extend(p, &log_q, &test.all.labels)?;
    let measured = images.measured(&measuring())?;
    Ok(Recalibrated {
        method,
        n,
        epistemic: measured.epistemic,
        exact_calibration_error: measured.exact_calibration_error,
        expected_accuracy: measured.expected_accuracy,
        impossible,
        blocks: Some(TestBlocks::of(&images).epistemic),
    })
}

/// Every estimator at every n that it takes.
fn estimates(
    spec: &CalibrationSpec,
    images: &PerImage,
    seed: Seed,
    pieces: &mut Measuring<'_>,
) -> Result<Vec<EstimatedEce>> {
    // Rounding of a sum may leave a confidence a little above 1.
    let confidence: Vec<f64> = images.confidence.iter().map(|c| c.min(1.0)).collect();
    let right = &images.expected;
    let exact = |norm| exact_calibration_error(&confidence, right, norm);
    let (absolute, square) = (exact(Norm::Absolute)?, exact(Norm::Square)?);
    let at_once = DRAWS_A_THREAD * rayon::current_num_threads().max(1);
    let mut all = Vec::new();
    for &n in &spec.labels {
        let draw = |draw: usize| -> Result<Vec<Option<f64>>> {
            let (confidence, hits) = drawn(&confidence, right, n, &seed, draw);
            let one = |one: EceEstimator| one.takes(n).then(|| one.estimate(&confidence, &hits)).transpose();
            EceEstimator::ALL.into_iter().map(one).collect()
        };
        let mut draws: Vec<Vec<Option<f64>>> = Vec::with_capacity(spec.draws);
        while draws.len() < spec.draws {
            // Each has random numbers of its own: how many are made at once changes none.
            let first = draws.len();
            let more = parallel::try_map(at_once.min(spec.draws - first), |i| draw(first + i))?;
            pieces.done(more.len())?;
            draws.extend(more);
        }
        for (at, estimator) in EceEstimator::ALL.into_iter().enumerate() {
            let values: Vec<f64> = draws.iter().filter_map(|draw| draw[at]).collect();
            if values.is_empty() {
                continue;
            }
            let noiseless =
                estimator.takes(confidence.len()).then(|| estimator.estimate(&confidence, right)).transpose()?;
            let exact = if estimator.norm() == Norm::Absolute { absolute } else { square };
            let (mean, deviation) = moments(&values);
            all.push(EstimatedEce { estimator, n, exact, noiseless, mean, deviation });
        }
    }
    Ok(all)
}

/// Confidences of `n` images, and hits drawn by the exact probability of each. The images are drawn with replacement:
/// without it every draw of all of them would be the same set, and estimates would seem to scatter less than they do.
fn drawn(confidence: &[f64], right: &[f64], n: usize, seed: &Seed, draw: usize) -> (Vec<f64>, Vec<f64>) {
    let mut rng = seed.split(&n.to_string()).rng(draw as u64);
    let one = |_| {
        let i = rng.random_range(0..confidence.len());
        (confidence[i], f64::from(u8::from(rng.random::<f64>() < right[i])))
    };
    (0..n).map(one).unzip()
}

/// Mean and standard deviation of at least two values.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}
