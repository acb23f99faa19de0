//! One optimisation step of a classifier, and its answers.

use std::sync::Mutex;

use burn::module::{Module, ParamId};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig, decay::WeightDecayConfig};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Bytes, Device, Tensor, TensorData};

use super::layers::{Pass, Settle};
use super::spec::{Optimizer, TrainingSpec};
use super::{Classifier, ClassifierConfig};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::parameters::to_host;
use crate::flow::weights::Weights;
use crate::gradients::{AdamW, clip, in_pieces};
use crate::units::Seed;

/// What one step measured, before the parameters moved.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct StepLoss {
    /// Mean cross-entropy −Σ_y t_y log q_y over the batch, nats; t is what the classifier is told.
    pub cross_entropy: f64,
    /// Global norm of its gradient, before clipping.
    pub grad_norm: f64,
}

/// All that a step leaves behind: with it, training goes on as if it had never stopped.
pub struct Saved {
    /// Parameters and running statistics.
    pub weights: Weights,
    /// The optimizer's moments, in burn's format.
    pub optimizer: Vec<u8>,
}

/// A classifier in training.
pub struct Trainee {
    classifier: Classifier,
    optimizer: ModuleOptimizer,
    spec: TrainingSpec,
    seed: Seed,
}

fn optimizer(spec: &TrainingSpec) -> ModuleOptimizer {
    let decay = spec.weight_decay as f32;
    match spec.optimizer {
        Optimizer::AdamW => AdamW { weight_decay: spec.weight_decay, ..AdamW::default() }.init(),
        Optimizer::Sgd => {
            let momentum = MomentumConfig::new().with_momentum(spec.momentum).with_dampening(0.0);
            SgdConfig::new()
                .with_momentum((spec.momentum > 0.0).then_some(momentum))
                .with_weight_decay((decay > 0.0).then(|| WeightDecayConfig::new(decay)))
                .init()
        }
    }
}

impl Trainee {
    /// A classifier at its start on `device`; `seed` is that of its parameters and of dropped units.
    ///
    /// # Errors
    /// When the network does not fit the images.
    pub fn new(config: &ClassifierConfig, spec: &TrainingSpec, seed: Seed, device: &Device) -> Result<Self> {
        let classifier = Classifier::new(config, seed.split("weights"), &device.clone().autodiff(), Precision::F32)?;
        Ok(Self { classifier, optimizer: optimizer(spec), spec: *spec, seed })
    }

    /// At the start, from arrays of another task ([`Classifier::from_pretrained`]).
    ///
    /// # Errors
    /// Names an array that does not fit.
    pub fn from_pretrained(
        config: &ClassifierConfig,
        spec: &TrainingSpec,
        weights: Weights,
        seed: Seed,
        device: &Device,
    ) -> Result<Self> {
        let classifier = Classifier::from_pretrained(
            config,
            weights,
            seed.split("weights"),
            &device.clone().autodiff(),
            Precision::F32,
        )?;
        Ok(Self { classifier, optimizer: optimizer(spec), spec: *spec, seed })
    }

    /// As it was when [`Self::saved`] was called.
    ///
    /// # Errors
    /// When what was saved does not fit.
    pub fn resume(
        config: &ClassifierConfig,
        spec: &TrainingSpec,
        saved: Saved,
        seed: Seed,
        device: &Device,
    ) -> Result<Self> {
        let device = device.clone().autodiff();
        let classifier = Classifier::from_weights(config, saved.weights, &device, Precision::F32)?;
        let optimizer = optimizer(spec)
            .from_bytes(Bytes::from_bytes_vec(saved.optimizer))
            .map_err(|e| Error::input(format!("the optimizer's moments cannot be read: {e}")))?;
        Ok(Self { classifier, optimizer, spec: *spec, seed })
    }

    /// What it takes to go on later.
    ///
    /// # Errors
    /// When the device cannot deliver it.
    pub fn saved(&self) -> Result<Saved> {
        let optimizer = self.optimizer.into_bytes().map_err(|e| Error::Device(e.to_string()))?;
        Ok(Saved { weights: self.classifier.to_weights()?, optimizer: optimizer.to_vec() })
    }

    /// The classifier as it is now, on the device beneath.
    pub fn classifier(&self) -> Classifier {
        Classifier { network: self.classifier.network.valid(), ..self.classifier.clone() }
    }

    /// Moves the parameters by one step on images [N, C, H, W] that were told `targets` [N, K]. Chance depends on `index`, the
    /// number of the step, alone. A gradient that is not finite moves nothing.
    ///
    /// # Errors
    /// When the device fails.
    pub fn step(&mut self, images: &[f32], targets: &[f32], rate: f64, index: usize) -> Result<StepLoss> {
        let (dims, k) = (self.classifier.config.shape.dims(), self.classifier.config.classes);
        let n = targets.len() / k;
        let piece = n.div_ceil(self.spec.shards.clamp(1, n.max(1))).max(1);
        let pieces: Vec<_> = images.chunks(piece * dims).zip(targets.chunks(piece * k)).enumerate().collect();
        let moved = Mutex::new(vec![None; pieces.len()]);
        let chance = self.seed.split("chance").split(&index.to_string());
        let done = in_pieces(&self.classifier.network, pieces, self.spec.shards, |network, (i, (images, targets))| {
            let mut pass = Pass::training(chance.rng(i as u64));
            let piece = Classifier { network, ..self.classifier.clone() };
            let loss = piece.cross_entropy(images, targets, &mut pass);
            let measured = to_host(loss.clone())?;
            let grads = GradientsParams::from_grads((loss / n as f64).backward(), &piece.network);
            if let Ok(mut moved) = moved.lock() {
                moved[i] = Some((images.len() / dims, pass.moved));
            }
            Ok((measured, grads))
        })?;
        let Some((sum, mut grads)) = done else { return Err(Error::input("an empty batch")) };
        let cross_entropy = sum[0] / n as f64;
        let grad_norm = clip(&self.classifier.network, &mut grads, self.spec.max_grad_norm)?;
        if cross_entropy.is_finite() && grad_norm.is_finite() {
            let network = self.optimizer.step(rate, self.classifier.network.clone(), grads);
            let moved = moved.into_inner().unwrap_or_default().into_iter().flatten().collect();
            self.classifier.network = network.map(&mut Settle(mean_statistics(moved, n)));
        }
        Ok(StepLoss { cross_entropy, grad_norm })
    }
}

/// Running statistics of pieces of a batch, averaged by their images.
fn mean_statistics(pieces: Vec<(usize, Vec<(ParamId, Tensor<1>)>)>, images: usize) -> Vec<(ParamId, Tensor<1>)> {
    let mut mean: Vec<(ParamId, Tensor<1>)> = Vec::new();
    for (i, (count, moved)) in pieces.into_iter().enumerate() {
        let share = count as f64 / images as f64;
        for (at, (id, value)) in moved.into_iter().enumerate() {
            match mean.get_mut(at).filter(|_| i > 0) {
                Some((_, sum)) => *sum = sum.clone() + value * share,
                None => mean.push((id, value * share)),
            }
        }
    }
    mean
}

impl Classifier {
    /// Σ over images of −Σ_y t_y log q_y, [1].
    fn cross_entropy(&self, images: &[f32], targets: &[f32], pass: &mut Pass) -> Tensor<1> {
        let device = self.network.devices().first().cloned().unwrap_or_else(Device::flex);
        let k = self.config.classes;
        let logits = self.forward(self.upload(images, &device), pass);
        let targets: Tensor<2> =
            Tensor::from_data(TensorData::new(targets.to_vec(), [targets.len() / k, k]), (&device, self.dtype));
        -(log_softmax(logits, 1) * targets).sum()
    }

    /// Logits [N, K] of images [N, C, H, W], `batch` at a time.
    ///
    /// # Errors
    /// When the device fails.
    pub fn logits(&self, images: &[f32], batch: usize) -> Result<Vec<f64>> {
        let device = self.network.devices().first().cloned().unwrap_or_else(Device::flex);
        let mut all = Vec::new();
        for piece in images.chunks(batch.max(1) * self.config.shape.dims()) {
            all.extend(to_host(self.forward(self.upload(piece, &device), &mut Pass::evaluation()))?);
        }
        Ok(all)
    }
}
