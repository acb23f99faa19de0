//! What 32-bit arithmetic costs: a flow compared with itself in 64 bits on the CPU.

use serde::Serialize;

use crate::device::{DeviceChoice, choose};
use crate::error::Result;
use crate::flow::weights::Weights;
use crate::flow::{Precision, Scores};
use crate::oracle::folder::OracleInfo;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::units::Seed;

/// Images compared by default.
pub const IMAGES: usize = 8;

/// Largest differences between a 32-bit pass and a 64-bit one on the same images.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrecisionReport {
    /// Images compared.
    pub images: usize,
    /// Largest difference of a posterior probability.
    pub max_posterior_error: f64,
    /// Largest difference of log p(x|y), nats.
    pub max_log_likelihood_error: f64,
}

/// Compares the first [`IMAGES`] samples of a world at its default settings.
///
/// # Errors
/// When the weights do not fit, or the device fails.
pub fn measure(info: &OracleInfo, weights: Weights, world: &World) -> Result<PrecisionReport> {
    let settings = Settings::default_for(info.class_names.len());
    let spec = SampleSpec { n: IMAGES, class: None, seed: Seed(0) };
    let samples = world.sample_indices(&spec, &settings, &(0..IMAGES).collect::<Vec<_>>())?;
    let x: Vec<f32> = samples.into_iter().flat_map(|sample| sample.x).collect();
    let scores = world.flow().score(&x)?;
    compare(info, weights, &x, &scores, &settings)
}

/// Compares `scores` of the first images of `x` (NCHW) with a 64-bit pass.
///
/// # Errors
/// When the weights do not fit.
pub fn compare(
    info: &OracleInfo,
    weights: Weights,
    x: &[f32],
    scores: &Scores,
    settings: &Settings,
) -> Result<PrecisionReport> {
    let images = IMAGES.min(scores.len());
    let cpu = choose(DeviceChoice::Cpu)?;
    let exact = info.clone().build(weights, &cpu.device, Precision::F64, images)?;
    let reference = exact.world.flow().score(&x[..images * info.architecture.shape().dims()])?;
    let posterior = |scores: &Scores, i| {
        Posterior::new(scores.log_likelihoods(i, settings.tau), &settings.prior, settings.smoothing)
    };
    let largest = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let mut report = PrecisionReport { images, max_posterior_error: 0.0, max_log_likelihood_error: 0.0 };
    for i in 0..images {
        let (a, b) = (posterior(scores, i), posterior(&reference, i));
        report.max_posterior_error = report.max_posterior_error.max(largest(&a.probabilities, &b.probabilities));
        let nats = largest(&a.log_likelihood, &b.log_likelihood);
        report.max_log_likelihood_error = report.max_log_likelihood_error.max(nats);
    }
    Ok(report)
}
