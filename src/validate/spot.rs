//! A substitute feature net: a classifier trained on the real training images, and named as such.

use burn::tensor::Device;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::Work;
use super::real::{Real, name_of};
use crate::classifier::{Architecture, Classifier, ClassifierConfig, Normalisation, Trainee, TrainingSpec};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Precision;
use crate::flow::weights::{Storage, Weights};
use crate::units::Seed;

/// How it is trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnTheSpot {
    /// The network.
    pub architecture: Architecture,
    /// Passes over the training images.
    pub epochs: usize,
    /// Images of one pass at most, drawn anew for each.
    pub images: usize,
}

impl Default for OnTheSpot {
    fn default() -> Self {
        Self { architecture: Architecture::ResNet18, epochs: 5, images: 10_000 }
    }
}

/// Images in a step.
const BATCH: usize = 64;
/// Peak of the learning rate of AdamW, which falls to nothing along a cosine.
const RATE: f64 = 1e-3;

impl OnTheSpot {
    /// Checks the spec.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        if self.epochs == 0 || self.images < BATCH {
            return Err(Error::input(format!("a feature net is trained for an epoch of {BATCH} images at least")));
        }
        Ok(())
    }
}

/// The trained net and its name; read where this validation trained it before.
///
/// # Errors
/// When the images have no labels, the device or the disk fails, or the caller stops.
pub fn train(
    work: &Work<'_>,
    real: &Real,
    spot: OnTheSpot,
    events: &mut dyn Events<Progress>,
) -> Result<(String, Classifier)> {
    let shape = real.train.shape;
    let config = ClassifierConfig {
        architecture: spot.architecture,
        shape,
        classes: work.world.class_names().len(),
        resize: None,
    };
    let classifier = work.store.piece(
        &format!("feature-net-{}.safetensors", name_of(&real.train)),
        |path| Classifier::from_weights(&config, Weights::read(path).ok()?, work.device, Precision::F32).ok(),
        || trained(work, &real.train, spot, &config, events),
        |path, trained| trained.to_weights()?.write(path, Storage::F32),
    )?;
    let name = format!(
        "{} trained on the spot ({} epochs of at most {} images of {}, seed {})",
        spot.architecture.label(),
        spot.epochs,
        spot.images,
        real.corpus.name,
        work.spec.seed.0
    );
    Ok((name, classifier))
}

fn trained(
    work: &Work<'_>,
    images: &Dataset,
    spot: OnTheSpot,
    config: &ClassifierConfig,
    events: &mut dyn Events<Progress>,
) -> Result<Classifier> {
    let without = "has no labels: a feature net cannot be trained on it; give weights of one";
    let labels = images.labels.as_ref().ok_or_else(|| Error::file(&work.spec.data, without))?;
    fit((images, labels), spot, config, work.spec.seed.split("feature net"), work.device, events)
}

/// Trains a classifier of `config` on images and their labels, by batches of [`BATCH`] with AdamW.
///
/// # Errors
/// When the network cannot take the images, the device fails, or the caller stops.
pub fn fit(
    (images, labels): (&Dataset, &[usize]),
    spot: OnTheSpot,
    config: &ClassifierConfig,
    seed: Seed,
    device: &Device,
    events: &mut dyn Events<Progress>,
) -> Result<Classifier> {
    let spec = TrainingSpec {
        epochs: spot.epochs,
        batch: BATCH,
        learning_rate: RATE,
        input: Normalisation::AsIs,
        shards: if *device == Device::flex() { 2 } else { 1 },
        ..TrainingSpec::default()
    };
    let mut trainee = Trainee::new(config, &spec, seed, device)?;
    let each = images.len().min(spot.images);
    let (steps, k) = (spec.epoch_steps(each), config.classes);
    let total = spot.epochs * steps;
    for epoch in 0..spot.epochs {
        let mut order: Vec<usize> = (0..images.len()).collect();
        order.shuffle(&mut seed.split("order").rng(epoch as u64));
        order.truncate(each);
        // Batches of nearly equal size: statistics of a last batch of one image would be none.
        for step in 0..steps {
            let batch = &order[step * each / steps..(step + 1) * each / steps];
            let x: Vec<f32> = batch.iter().flat_map(|&i| unit(images.image(i))).collect();
            let targets = batch.iter().flat_map(|&i| (0..k).map(move |class| f32::from(u8::from(labels[i] == class))));
            let done = epoch * steps + step;
            trainee.step(&x, &targets.collect::<Vec<_>>(), spec.rate(done, total), done)?;
            events.report(Progress { done: done + 1, total })?;
        }
    }
    Ok(trainee.classifier())
}

/// 8-bit pixels as values between 0 and 1.
pub fn unit(pixels: &[u8]) -> impl Iterator<Item = f32> + '_ {
    pixels.iter().map(|&p| f32::from(p) / 255.0)
}
