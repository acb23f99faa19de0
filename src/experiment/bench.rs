//! How fast classifiers train.

use burn::tensor::Device;
use serde::Serialize;

use crate::classifier::{Architecture, ClassifierConfig, Trainee, TrainingSpec};
use crate::data::ImageShape;
use crate::error::Result;
use crate::flow::base::latents;
use crate::oracle::bench::{Peak, Timing};
use crate::units::Seed;

/// Classes of the images.
const CLASSES: usize = 10;

/// Training steps of one network on images of noise.
#[derive(Debug, Serialize)]
pub struct TrainBench {
    /// How long a step took: forward, backward and AdamW.
    #[serde(flatten)]
    pub timing: Timing,
    /// Share of the measured peak that its products reach (three times those of the
    /// forward pass, without padding and what is left out); `None` where they are not counted, or no peak is given.
    pub roofline_share: Option<f64>,
    /// What the share is of.
    pub roofline: &'static str,
    /// Network.
    pub architecture: Architecture,
    /// Side of the images, of three channels.
    pub side: usize,
    /// Images in a step.
    pub batch: usize,
    /// Pieces side by side.
    pub shards: usize,
    /// Trained numbers.
    pub parameters: usize,
    /// Images a second, by the median.
    pub images_per_second: f64,
}

/// What is trained, and how often.
#[derive(Debug, Clone, Copy)]
pub struct TrainTask {
    /// Network.
    pub architecture: Architecture,
    /// Side of the images, of three channels.
    pub side: usize,
    /// Images in a step.
    pub batch: usize,
    /// Pieces side by side.
    pub shards: usize,
    /// Timed steps, after two that do not count.
    pub runs: usize,
}

/// Times steps of AdamW, beside the peak of its device where one is given.
///
/// # Errors
/// When images of that side cannot enter, or the device fails.
pub fn bench_training(task: TrainTask, device: &Device, peak: Option<Peak>) -> Result<TrainBench> {
    let TrainTask { architecture, side, batch, shards, runs } = task;
    let shape = ImageShape { channels: 3, height: side, width: side };
    let config = ClassifierConfig { architecture, shape, classes: CLASSES, resize: None };
    let training = TrainingSpec { batch, shards, ..TrainingSpec::default() };
    let mut trainee = Trainee::new(&config, &training, Seed(0), device)?;
    let images = latents(Seed(1), 0, batch, shape.dims());
    let hot = |i: usize| (0..CLASSES).map(move |k| if k == i % CLASSES { 1.0 } else { 0.0 });
    let targets: Vec<f32> = (0..batch).flat_map(hot).collect();
    let name = format!("training {} on 3×{side}×{side}, batch {batch}", architecture.label());
    let mut index = 0;
    let timing = Timing::measure(name, 2, runs, || {
        // It waits for the loss and the gradient's norm: for everything but the very last update.
        trainee.step(&images, &targets, 1e-4, index)?;
        index += 1;
        Ok(())
    })?;
    let seconds = timing.median / 1e3;
    let classifier = trainee.classifier();
    let gflop = classifier.macs_computed().map(|macs| 2.0 * 3.0 * macs * batch as f64 / 1e9);
    Ok(TrainBench {
        timing,
        roofline_share: gflop.zip(peak).map(|(gflop, peak)| gflop / seconds / peak.roofline_gflops()),
        roofline: peak.map_or("", Peak::roofline),
        architecture,
        side,
        batch,
        shards,
        parameters: classifier.parameters(),
        images_per_second: batch as f64 / seconds,
    })
}
