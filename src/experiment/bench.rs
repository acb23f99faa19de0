//! How fast classifiers train.

use std::time::Instant;

use burn::tensor::Device;
use serde::Serialize;

use crate::classifier::{Architecture, ClassifierConfig, Trainee, TrainingSpec};
use crate::data::ImageShape;
use crate::error::Result;
use crate::flow::base::latents;
use crate::units::Seed;

/// Classes of the images.
const CLASSES: usize = 10;

/// Training steps of one network on images of noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainBench {
    /// Network and sizes.
    pub name: String,
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
    /// Unit of the times.
    pub unit: &'static str,
    /// Median time of a step: forward, backward and AdamW.
    pub median: f64,
    /// Fastest step.
    pub min: f64,
    /// Slowest step.
    pub max: f64,
    /// Timed steps, after two that do not count.
    pub runs: usize,
    /// Images a second, by the median.
    pub images_per_second: f64,
}

/// Times `runs` steps of AdamW.
///
/// # Errors
/// When images of that side cannot enter, or the device fails.
pub fn bench_training(
    architecture: Architecture,
    side: usize,
    batch: usize,
    shards: usize,
    device: &Device,
    runs: usize,
) -> Result<TrainBench> {
    let shape = ImageShape { channels: 3, height: side, width: side };
    let config = ClassifierConfig { architecture, shape, classes: CLASSES, resize: None };
    let training = TrainingSpec { batch, shards, ..TrainingSpec::default() };
    let mut trainee = Trainee::new(&config, &training, Seed(0), device)?;
    let images = latents(Seed(1), 0, batch, shape.dims());
    let hot = |i: usize| (0..CLASSES).map(move |k| if k == i % CLASSES { 1.0 } else { 0.0 });
    let targets: Vec<f32> = (0..batch).flat_map(hot).collect();
    let mut times = Vec::with_capacity(runs);
    for step in 0..runs.max(1) + 2 {
        let started = Instant::now();
        // It waits for the loss and the gradient's norm, and so for everything but the very last update.
        trainee.step(&images, &targets, 1e-4, step)?;
        if step >= 2 {
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    Ok(TrainBench {
        name: format!("training {} on 3×{side}×{side}, batch {batch}", architecture.label()),
        architecture,
        side,
        batch,
        shards,
        parameters: trainee.classifier().parameters(),
        unit: "ms",
        median,
        min: times[0],
        max: times[times.len() - 1],
        runs: times.len(),
        images_per_second: batch as f64 / (median / 1e3),
    })
}
