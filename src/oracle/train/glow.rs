//! The Glow in training (EBO §4.1): NLL plus λ times a classification loss.

mod gradients;

use std::borrow::Cow;

use burn::tensor::Device;

use super::batch::{Draw, behind_the_front};
use super::learner::Learner;
use super::spec::{Classification, TrainSpec};
use super::step::{Saved, StepLoss, Trainee, adam};
use crate::data::Dataset;
use crate::error::Result;
use crate::flow::glow::{Glow, GlowConfig, GlowFlow};
use crate::flow::preprocess::Dequantisation;
use crate::flow::weights::Weights;
use crate::flow::{Flow, Precision};
use crate::gradients::{Cut, clip, in_pieces};
use crate::units::Nats;
use gradients::{Loss, cpu_gradients, gradients, upload};

/// Images in the batch that initialises the normalisations.
const INIT_IMAGES: usize = 256;

/// A conditional Glow in training.
pub struct GlowLearner {
    spec: TrainSpec,
    config: GlowConfig,
    trainee: Trainee<Glow>,
}

/// The architecture of a spec on images of a dataset.
pub fn glow_config(spec: &TrainSpec, data: &Dataset) -> GlowConfig {
    let super::spec::ModelSpec { hidden, levels, steps, .. } = spec.model;
    GlowConfig { shape: data.shape, classes: data.class_names.len(), hidden, levels, steps }
}

impl GlowLearner {
    /// From a checkpoint, or a fresh one whose normalisations fit the first images of `train`.
    ///
    /// # Errors
    /// When the checkpoint does not fit the spec, or the device fails.
    pub fn new(spec: &TrainSpec, train: &Dataset, saved: Option<Saved>, device: &Device) -> Result<Self> {
        let config = glow_config(spec, train);
        let device = device.clone().autodiff();
        let build = |weights, device: &Device| Glow::from_weights(&config, weights, device, Precision::F32);
        let plain = device.clone().inner();
        let trainee = match saved {
            Some(Saved { weights, average, optimizer }) => {
                Trainee { module: build(weights, &device)?, average: build(average, &plain)?, optimizer }
            }
            None => {
                let module = initial(spec, &config, train, &device)?;
                let average = build(module.to_weights()?, &plain)?;
                Trainee { module, average, optimizer: adam(&spec.training) }
            }
        };
        Ok(Self { spec: spec.clone(), config, trainee })
    }
}

/// A fresh Glow whose normalisations fit the first training images.
fn initial(spec: &TrainSpec, config: &GlowConfig, train: &Dataset, device: &Device) -> Result<Glow> {
    let seed = spec.training.seed;
    let plain = device.clone().inner();
    let weights = config.initial_weights(seed.split("weights"), spec.training.mean_std);
    let mut glow = Glow::from_weights(config, weights, &plain, Precision::F32)?;
    let first: Vec<usize> = (0..INIT_IMAGES.min(train.len())).collect();
    let as_is = |i| Cow::Borrowed(train.image(i));
    let noise = Dequantisation::Seeded(seed.split("initialisation"));
    let (y, _) = behind_the_front(spec.model.pixels, train.shape.dims(), &first, as_is, noise);
    glow.initialise(&upload(config, y, &plain));
    Glow::from_weights(config, glow.to_weights()?, device, Precision::F32)
}

impl Learner for GlowLearner {
    fn parameters(&self) -> usize {
        self.config.trained_numbers(self.spec.training.classification == Classification::LinearHead)
    }

    /// The batch is cut into `shards` pieces that run side by side, one batch part after the other;
    /// gradients are added in a fixed order.
    fn step(&mut self, draw: &Draw<'_>, rate: f64, decay: f64) -> Result<StepLoss> {
        let (spec, config) = (&self.spec, &self.config);
        let dims = config.shape.dims();
        let n = draw.chosen.len();
        let pixels = spec.model.pixels;
        let (y, mean_log_det) = behind_the_front(pixels, dims, draw.chosen, |i| draw.image(i), draw.noise());
        let classes = draw.classes();
        let t = &spec.training;
        let what = format!("steps of a Glow of {} images", config.shape);
        let piece = n.div_ceil((t.shards * t.accumulate).clamp(1, n.max(1))).max(1);
        let cut = Cut { what: &what, images: n, piece, shards: t.shards };
        let module = &self.trainee.module;
        let loss = Loss { optim: spec.training, config, images: n };
        let device = module.means.val().device();
        let (measured, grads, grad_norm) = cut.fit(&device, |cut| {
            let (measured, mut grads) = if device.clone().inner() == Device::flex() {
                cpu_gradients(loss, module, &y, &classes, cut.shards)?
            } else {
                let pieces: Vec<(&[f32], &[usize])> =
                    y.chunks(cut.piece * dims).zip(classes.chunks(cut.piece)).collect();
                let work = |glow: Glow, (y, classes): (&[f32], &[usize])| {
                    gradients(loss, &glow, y, classes).map(|(measured, grads)| (measured, grads, ()))
                };
                let sums = in_pieces(module, pieces, cut.shards, work)?;
                (sums.measured, sums.grads)
            };
            let norm = clip(module, &mut grads, t.max_grad_norm)?;
            Ok((measured, grads, norm))
        })?;
        let [nll, cross_entropy] = [measured[0], measured[1]];
        let nll = pixels.nll_of_pixels(Nats(mean_log_det - nll), dims).0;
        let report = StepLoss::new(nll, Some(cross_entropy), grad_norm);
        if report.grad_norm.is_finite() {
            self.trainee.step(grads, rate, decay);
        }
        Ok(report)
    }

    fn saved(&self) -> Result<Saved> {
        self.trainee.saved(Glow::to_weights)
    }

    fn frozen(&self) -> Result<Box<dyn Flow>> {
        Ok(Box::new(GlowFlow::freeze(&self.config, &self.trainee.average, self.spec.model.pixels)?))
    }

    fn average(&self) -> Result<Weights> {
        self.trainee.average.to_weights()
    }
}
