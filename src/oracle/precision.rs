//! What 32-bit arithmetic costs: a flow compared with itself in 64 bits on the CPU.

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::device::{DeviceChoice, choose};
use crate::error::Result;
use crate::events::{Events, Progress, silent};
use crate::flow::weights::Weights;
use crate::flow::{Flow, Precision, Scores};
use crate::oracle::folder::OracleInfo;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::units::{Seed, images};

/// Images compared by default.
pub const IMAGES: usize = 8;
/// Classes compared of each image, the most probable ones: the others have no part in the
/// posterior's error that shows.
const CLASSES: usize = 50;
/// No further image is begun after so long: 64 bits on the CPU are slow.
const ENOUGH: Duration = Duration::from_secs(60);

/// Largest differences between a 32-bit pass and a 64-bit one on the same images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrecisionReport {
    /// Images compared: the first ones, as many as a minute allows.
    pub images: usize,
    /// Classes compared of each, the most probable ones.
    pub classes: usize,
    /// Largest difference of a posterior probability; infinite (null in JSON) where one is no number.
    #[serde(deserialize_with = "null_is_infinite")]
    pub max_posterior_error: f64,
    /// Largest difference of log p(x|y), nats; infinite as above.
    #[serde(deserialize_with = "null_is_infinite")]
    pub max_log_likelihood_error: f64,
}

impl fmt::Display for PrecisionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "32-bit arithmetic: posteriors within {:.1e}, log p(x|y) within {:.1e} nats of 64-bit on {}, {} classes",
            self.max_posterior_error,
            self.max_log_likelihood_error,
            images(self.images),
            self.classes
        )
    }
}

/// Compares the first [`IMAGES`] samples of a world at its default settings.
///
/// # Errors
/// When the weights do not fit, or the device fails.
pub fn measure(info: &OracleInfo, weights: Weights, world: &World) -> Result<PrecisionReport> {
    let settings = Settings::default_for(info.class_names.len());
    let spec = SampleSpec::new(IMAGES, Seed(0));
    let samples = world.sample_indices(&spec, &settings, &(0..IMAGES).collect::<Vec<_>>())?;
    let x: Vec<f32> = samples.into_iter().flat_map(|sample| sample.x).collect();
    let scores = world.flow().score(&x)?;
    compare(info, weights, &x, &scores, &settings, &mut silent())
}

/// Compares `scores` of the first images of `x` (NCHW) with a 64-bit pass. Classes that are not
/// compared keep their 32-bit likelihood on both sides.
///
/// # Errors
/// When the weights do not fit, or the caller stops.
pub fn compare(
    info: &OracleInfo,
    weights: Weights,
    x: &[f32],
    scores: &Scores,
    settings: &Settings,
    events: &mut dyn Events<Progress>,
) -> Result<PrecisionReport> {
    let cpu = choose(DeviceChoice::Cpu)?;
    let exact = info.clone().build(weights, &cpu.device, Precision::F64, 1)?;
    let posterior = |likelihoods: Vec<f64>| settings.posterior(likelihoods);
    let of_all = |a: &[f64], b: &[f64]| largest(a.iter().zip(b).map(|(a, b)| difference(*a, *b)));
    let classes = CLASSES.min(scores.classes);
    let mut report = PrecisionReport { images: 0, classes, max_posterior_error: 0.0, max_log_likelihood_error: 0.0 };
    let started = Instant::now();
    let total = IMAGES.min(scores.len());
    events.report(Progress { done: 0, total })?;
    for (i, x) in x.chunks(info.architecture.shape().dims()).take(total).enumerate() {
        if i > 0 && started.elapsed() > ENOUGH {
            break;
        }
        let single = posterior(scores.log_likelihoods(i, settings.tau));
        let double = posterior(double_likelihoods(exact.world.flow(), x, &single, classes, settings)?);
        report.images += 1;
        report.max_posterior_error =
            report.max_posterior_error.max(of_all(&single.probabilities, &double.probabilities));
        let nats = of_all(&single.log_likelihood, &double.log_likelihood);
        report.max_log_likelihood_error = report.max_log_likelihood_error.max(nats);
        events.report(Progress { done: report.images, total })?;
    }
    Ok(report)
}

/// |a − b|; two likelihoods that are infinite alike (τ = 0) do not differ.
pub fn difference(a: f64, b: f64) -> f64 {
    if a == b { 0.0 } else { (a - b).abs() }
}

/// The largest of errors; infinite where one is no number.
pub fn largest(errors: impl Iterator<Item = f64>) -> f64 {
    errors.fold(0.0, |most, error| if error.is_nan() { f64::INFINITY } else { most.max(error) })
}

/// JSON has no infinity and writes null instead.
fn null_is_infinite<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

/// The log-likelihoods of `single` with the most probable `classes` in 64 bits.
fn double_likelihoods(
    exact: &dyn Flow,
    x: &[f32],
    single: &Posterior,
    classes: usize,
    settings: &Settings,
) -> Result<Vec<f64>> {
    if classes == single.log_likelihood.len() {
        return Ok(exact.score(x)?.log_likelihoods(0, settings.tau));
    }
    let mut order: Vec<usize> = (0..single.log_likelihood.len()).collect();
    order.sort_by(|a, b| single.log_probabilities[*b].total_cmp(&single.log_probabilities[*a]));
    let mut likelihoods = single.log_likelihood.clone();
    for &class in &order[..classes] {
        likelihoods[class] = exact.score_classes(x, class..class + 1)?.log_likelihoods(0, settings.tau)[0];
    }
    Ok(likelihoods)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::library;

    #[test]
    fn what_is_no_number_is_an_infinite_error_in_files_too() {
        let (info, weights) = library::find("mnist").unwrap().read().unwrap();
        let cpu = choose(DeviceChoice::Cpu).unwrap().device;
        let world = info.clone().build(weights.clone(), &cpu, Precision::F32, 1).unwrap().world;
        let x = vec![0.5; info.architecture.shape().dims()];
        let settings = Settings::default_for(world.class_names().len());
        let report = |scores: &Scores| compare(&info, weights.clone(), &x, scores, &settings, &mut silent()).unwrap();
        let mut scores = world.flow().score(&x).unwrap();
        assert!(report(&scores).max_log_likelihood_error.is_finite());
        scores.quad[3] = f64::NAN;
        let found = report(&scores);
        assert_eq!((found.max_log_likelihood_error, found.max_posterior_error), (f64::INFINITY, f64::INFINITY));
        let written = serde_json::to_value(&found).unwrap();
        assert_eq!(serde_json::from_value::<PrecisionReport>(written).unwrap(), found);
    }
}
