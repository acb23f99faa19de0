//! How well a flow describes real labelled images: held-out NLL and accuracy of its posterior.

use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Flow;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::numbering::{renumber, within};
use crate::oracle::posterior::{Posterior, Prior};
use crate::stats::mean_and_error;
use crate::units::{Nats, Smoothing, Tau};

/// Figures of a flow on labelled 8-bit images, at τ = 1 and uniform prior.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Number of images.
    pub images: usize,
    /// Mean −log p(x|y) of the true class, nats per image, in the space of 8-bit pixels.
    pub nll_nats: f64,
    /// Its standard error over images; 0 of one image, which has none.
    pub nll_std_error: f64,
    /// The same in bits per dimension.
    pub bits_per_dim: f64,
    /// Share of images that the posterior decides rightly: [`Posterior::decision`] is the true class.
    pub accuracy: f64,
    /// Mean entropy of the posterior, nats; absent in what older versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_nats: Option<f64>,
    /// Its standard error over images; 0 of one image, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_std_error: Option<f64>,
}

impl Evaluation {
    /// Images that are decided rightly.
    pub fn right(&self) -> usize {
        (self.accuracy * self.images as f64).round() as usize
    }
}

/// Images in one pass of the flow; progress is reported between passes.
const BATCH: usize = 64;

/// Evaluates `flow` on `dataset`, whose pixels become real numbers as `how` says.
///
/// # Errors
/// When shapes or classes do not match, the device fails, or the caller stops.
pub fn evaluate(
    flow: &dyn Flow,
    dataset: &Dataset,
    how: Dequantisation,
    events: &mut dyn Events<Progress>,
) -> Result<Evaluation> {
    let labels = labels_for(flow, dataset)?;
    let dims = dataset.shape.dims();
    let mut nll = Vec::with_capacity(labels.len());
    let (prior, mut correct) = (Prior::uniform(flow.classes()), 0usize);
    let mut entropies = Vec::with_capacity(labels.len());
    for (chunk, labels) in labels.chunks(BATCH).enumerate() {
        let first = chunk * BATCH;
        let pixels = &dataset.pixels[first * dims..(first + labels.len()) * dims];
        let x = flow.pixels().map_in(pixels, dims, first, how);
        let scores = flow.score(&x).map_err(|error| within(renumber(error, first), &dataset.name))?;
        for (i, &label) in labels.iter().enumerate() {
            let log_p = scores.log_likelihoods(i, Tau::ONE);
            nll.push(flow.pixels().nll_of_pixels(Nats(log_p[label]), dims).0);
            let posterior = Posterior::new(log_p, &prior, Smoothing::ONE);
            // Of classes that are equally probable one is decided for, here as everywhere: not every
            // label is right.
            correct += usize::from(posterior.decision == label);
            entropies.push(posterior.entropy_nats);
        }
        events.report(Progress { done: nll.len(), total: dataset.len() })?;
    }
    // JSON has no infinite numbers: the error of one image is written as 0.
    let of = |values: &[f64]| {
        let (mean, error) = mean_and_error(values);
        (mean, if values.len() < 2 { 0.0 } else { error })
    };
    let ((mean, nll_std_error), (entropy, entropy_std_error)) = (of(&nll), of(&entropies));
    Ok(Evaluation {
        images: nll.len(),
        nll_nats: mean,
        nll_std_error,
        bits_per_dim: mean / (dims as f64 * std::f64::consts::LN_2),
        accuracy: correct as f64 / nll.len() as f64,
        entropy_nats: Some(entropy),
        entropy_std_error: Some(entropy_std_error),
    })
}

/// The labels of `dataset`, checked against `flow`.
fn labels_for<'a>(flow: &dyn Flow, dataset: &'a Dataset) -> Result<&'a [usize]> {
    let name = &dataset.name;
    if dataset.shape != flow.shape() {
        return Err(Error::input(format!("{name} holds {} images, the flow needs {}", dataset.shape, flow.shape())));
    }
    let labels = dataset.labels.as_deref().unwrap_or_default();
    if labels.is_empty() {
        return Err(Error::input(format!("{name} has no labels to evaluate against")));
    }
    match labels.iter().find(|&&label| label >= flow.classes()) {
        Some(label) => {
            Err(Error::input(format!("{name} has class {label}, the flow knows {} classes", flow.classes())))
        }
        None => Ok(labels),
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::data::ImageShape;
    use crate::events::silent;
    use crate::flow::Precision;
    use crate::flow::glow::{GlowConfig, GlowFlow};
    use crate::flow::preprocess::Preprocessing;
    use crate::units::Seed;

    #[test]
    fn a_world_that_knows_nothing_is_right_as_often_as_its_decision() {
        let (shape, classes, n) = (ImageShape { channels: 1, height: 2, width: 2 }, 4, 12);
        let config = GlowConfig { shape, classes, hidden: 2, levels: 1, steps: 1 };
        // Class means of spread 0: one density for all.
        let weights = config.initial_weights(Seed(1), 0.0);
        let flow = GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), Precision::F64).unwrap();
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        let dataset = Dataset {
            name: "noise".into(),
            shape,
            pixels: (0..n * shape.dims()).map(|i| (i * 37 % 256) as u8).collect(),
            labels: Some((0..n).map(|i| i % classes).collect()),
            ids: names(n),
            class_names: names(classes),
            noises: Default::default(),
        };
        let found = evaluate(&flow, &dataset, Dequantisation::default(), &mut silent()).unwrap();
        assert_eq!((found.accuracy, found.right()), (0.25, 3));
        assert!((found.entropy_nats.unwrap() - 4f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn evaluations_of_older_versions_are_read() {
        let older = r#"{ "images": 20, "nll_nats": 9.5, "nll_std_error": 0.5, "bits_per_dim": 1.5, "accuracy": 1.0,
            "accuracy_std_error": 0.0 }"#;
        let found: Evaluation = serde_json::from_str(older).unwrap();
        assert_eq!((found.right(), found.entropy_nats), (20, None));
        // Of 20 of 20 an error of 0 is none.
        assert!(!serde_json::to_string(&found).unwrap().contains("accuracy_std_error"));
    }
}
