//! One optimisation step of a classifier, and its answers.

use std::collections::BTreeMap;

use burn::module::{Module, ParamId};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{ModuleOptimizer, SgdConfig, decay::WeightDecayConfig};
use burn::tensor::{Device, Tensor};

use super::cpu::Tape;
use super::descriptor::Backbone;
use super::layers::{Pass, ReplaceStatistics};
use super::linear::LinearClassifier;
use super::micro_batch::MicroBatch;
use super::spec::{Optimizer, TrainingSpec};
use super::{Classifier, ClassifierConfig, Network};
use crate::device::in_batches;
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::parameters::to_host;
use crate::flow::weights::Weights;
use crate::gradients::{AdamW, Cut, ReadOnHost, Sums, clip, in_pieces, on_host, with_moments};
use crate::kernels::Pool;
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
    /// Memory of our own kernels, from step to step.
    tapes: Pool<Tape<f32>>,
    /// Whether our own kernels train the network.
    on_cpu: bool,
}

fn optimizer(spec: &TrainingSpec) -> ModuleOptimizer {
    let decay = spec.weight_decay as f32;
    match spec.optimizer {
        Optimizer::AdamW => AdamW { weight_decay: spec.weight_decay, ..AdamW::default() }.init(),
        Optimizer::Sgd => {
            let momentum = MomentumConfig::new().with_momentum(spec.momentum).with_dampening(0.0);
            let sgd = SgdConfig::new()
                .with_momentum((spec.momentum > 0.0).then_some(momentum))
                .with_weight_decay((decay > 0.0).then(|| WeightDecayConfig::new(decay)));
            ModuleOptimizer::from(ReadOnHost(sgd.build()))
        }
    }
}

impl Trainee {
    /// A classifier at its start on `device`; `seed` is that of its parameters and of dropped
    /// units.
    ///
    /// # Errors
    /// When the network does not fit the images.
    pub fn new(config: &ClassifierConfig, spec: &TrainingSpec, seed: Seed, device: &Device) -> Result<Self> {
        let classifier = Classifier::new(config, seed.split("weights"), &device.clone().autodiff(), Precision::F32)?;
        Self::of(classifier, optimizer(spec), spec, seed, device)
    }

    /// At the start, from exactly its own arrays. In 64 bits on the CPU it computes by burn's tensors, and
    /// is what the steps of a device are held against.
    ///
    /// # Errors
    /// Names an array that is missing, misshapen or too many.
    pub fn from_weights(
        config: &ClassifierConfig,
        spec: &TrainingSpec,
        weights: Weights,
        seed: Seed,
        (device, precision): (&Device, Precision),
    ) -> Result<Self> {
        let classifier = Classifier::from_weights(config, weights, &device.clone().autodiff(), precision)?;
        Self::of(classifier, optimizer(spec), spec, seed, device)
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
        Self::of(classifier, optimizer(spec), spec, seed, device)
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
        let trains = device.clone().autodiff();
        let classifier = Classifier::from_weights(config, saved.weights, &trains, Precision::F32)?;
        let optimizer = with_moments(optimizer(spec), saved.optimizer).map_err(Error::input)?;
        Self::of(classifier, optimizer, spec, seed, device)
    }

    fn of(
        classifier: Classifier,
        optimizer: ModuleOptimizer,
        spec: &TrainingSpec,
        seed: Seed,
        device: &Device,
    ) -> Result<Self> {
        spec.products.check(device)?;
        let on_cpu = classifier.trains_on_cpu(spec.products);
        Ok(Self { classifier, optimizer, spec: *spec, seed, tapes: Pool::default(), on_cpu })
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

    /// Moves the parameters by one step on images [N, C, H, W] that were told `targets` [N, K].
    /// Chance depends on `index`, the number of the step, alone. A gradient that is not finite
    /// moves nothing.
    ///
    /// # Errors
    /// When the device fails.
    pub fn step(&mut self, images: &[f32], targets: &[f32], rate: f64, index: usize) -> Result<StepLoss> {
        let Gradients { sums, cross_entropy, norm } = self.measured(images, targets, index)?;
        if cross_entropy.is_finite() && norm.is_finite() {
            // GradientCollector out, so that nobody else holds the weights and they are moved where
            // they lie.
            let rest = Network::Linear(LinearClassifier { fc: self.classifier.network.head().clone() });
            let network = std::mem::replace(&mut self.classifier.network, rest);
            let network = self.optimizer.step(rate, network, sums.grads);
            let n = targets.len() / self.classifier.config.classes;
            self.classifier.network = network.map(&mut ReplaceStatistics(mean_statistics(sums.others, n)));
        }
        Ok(StepLoss { cross_entropy, grad_norm: norm })
    }

    /// The clipped gradient of [`Self::step`] by the name of each array, row-major; nothing moves.
    ///
    /// # Errors
    /// When the device fails.
    pub fn gradient(&self, images: &[f32], targets: &[f32], index: usize) -> Result<BTreeMap<String, Vec<f64>>> {
        let grads = self.measured(images, targets, index)?.sums.grads;
        let (network, names) = (&self.classifier.network, &self.classifier.names);
        let named = |(id, values)| (names.get(&id).cloned().unwrap_or_default(), values);
        Ok(on_host(network, &grads)?.into_iter().map(named).collect())
    }

    /// What a step needs to know, of as many images at once as fit the device.
    fn measured(&self, images: &[f32], targets: &[f32], index: usize) -> Result<Gradients> {
        let n = targets.len() / self.classifier.config.classes;
        let shards = self.spec.shards.clamp(1, n.max(1));
        let what = format!("steps of {}", self.classifier.named());
        let cut = Cut { what: &what, images: n, piece: n.div_ceil(shards).max(1), shards };
        cut.fit(&self.classifier.device(), |cut| self.gradients(images, targets, index, cut))
    }

    /// What a step needs to know, before anything moves.
    fn gradients(&self, images: &[f32], targets: &[f32], index: usize, cut: &Cut<'_>) -> Result<Gradients> {
        let (dims, k) = (self.classifier.config.shape.dims(), self.classifier.config.classes);
        let pieces = images.chunks(cut.piece * dims).zip(targets.chunks(cut.piece * k)).enumerate().collect();
        let chance = self.seed.split("chance").split(&index.to_string());
        let (products, classifier) = (self.spec.products, &self.classifier);
        let mut sums = in_pieces(&classifier.network, pieces, cut.shards, |network, (i, (images, targets))| {
            let batch = MicroBatch { images, targets, share: (cut.images as f64).recip() };
            let chance = chance.rng(i as u64);
            let own = match self.on_cpu {
                true => classifier.gradients_on_cpu(&network, batch, &chance, &self.tapes)?,
                false => None,
            };
            let found = match own {
                Some(found) => found,
                None => classifier.gradients(&network, batch, products, Pass::training(chance))?,
            };
            Ok((vec![found.loss], found.grads, (images.len() / dims, found.moved)))
        })?;
        let norm = clip(&self.classifier.network, &mut sums.grads, self.spec.max_grad_norm)?;
        Ok(Gradients { cross_entropy: sums.measured[0] / cut.images as f64, sums, norm })
    }
}

/// Images of a piece, and the running statistics it has moved.
type Moved = (usize, Vec<(ParamId, Tensor<1>)>);

/// The gradients of a batch, clipped.
struct Gradients {
    sums: Sums<Moved>,
    /// Mean over the batch, nats.
    cross_entropy: f64,
    /// Before clipping.
    norm: f64,
}

/// Running statistics of pieces of a batch, averaged by their images.
fn mean_statistics(pieces: Vec<Moved>, images: usize) -> Vec<(ParamId, Tensor<1>)> {
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
    /// Logits [N, K] of images [N, C, H, W], `batch` at a time.
    ///
    /// # Errors
    /// When the device fails.
    pub fn logits(&self, images: &[f32], batch: usize) -> Result<Vec<f64>> {
        if let Some(answers) = self.logits_on_cpu(images)? {
            return Ok(answers);
        }
        let answers =
            self.in_batches(images, batch, |images| to_host(self.forward(images, &mut Pass::evaluation())))?;
        Ok(answers.concat())
    }

    /// What `pass` makes of images [N, C, H, W], `batch` at once and fewer where the device has no
    /// memory for them.
    pub(super) fn in_batches<T>(
        &self,
        images: &[f32],
        batch: usize,
        mut pass: impl FnMut(Tensor<4>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (device, dims) = (self.device(), self.config.shape.dims());
        let what = format!("answers of {}", self.named());
        let mut answers = Vec::new();
        for piece in images.chunks(batch.max(1) * dims) {
            answers.extend(in_batches(&device, &what, piece.len() / dims, |range| {
                pass(self.upload(&piece[range.start * dims..range.end * dims], &device))
            })?);
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::Architecture;
    use crate::data::ImageShape;
    use crate::device::MatmulPrecision;
    use crate::flow::base::latents;
    use burn::tensor::TensorData;

    const SHAPE: ImageShape = ImageShape { channels: 3, height: 8, width: 8 };
    const K: usize = 3;

    fn config(architecture: Architecture) -> ClassifierConfig {
        ClassifierConfig { architecture, shape: SHAPE, classes: K, resize: None }
    }

    /// Images of noise and soft targets.
    fn batch(n: usize) -> (Vec<f32>, Vec<f32>) {
        let targets = (0..n).flat_map(|i| if i % 3 == 0 { [0.7, 0.2, 0.1] } else { [0.0, 0.25, 0.75] }).collect();
        (latents(Seed(3), 0, n, SHAPE.dims()), targets)
    }

    fn trained(architecture: Architecture, spec: &TrainingSpec, steps: usize) -> (Trainee, Vec<StepLoss>) {
        let mut trainee = Trainee::new(&config(architecture), spec, Seed(5), &Device::flex()).unwrap();
        let (x, t) = batch(12);
        let losses = (0..steps).map(|step| trainee.step(&x, &t, 1e-3, step).unwrap()).collect();
        (trainee, losses)
    }

    #[test]
    fn every_kind_of_network_learns() {
        for architecture in
            [Architecture::ResNet18, Architecture::VitSmall, Architecture::MobileNet, Architecture::SwinT]
        {
            let (_, losses) = trained(architecture, &TrainingSpec::default(), 20);
            // Dropped branches make single losses waver.
            let last = losses[14..].iter().map(|loss| loss.cross_entropy).sum::<f64>() / 6.0;
            let first = losses[0].cross_entropy;
            assert!(last < first - 0.02, "{architecture:?}: {first} to {last}");
        }
    }

    #[test]
    fn what_is_saved_goes_on_as_if_nothing_had_happened() {
        let (x, t) = batch(12);
        // Batch statistics, dropout and moments, all that a step leaves behind; the last by our own kernels.
        for (architecture, optimizer) in [
            (Architecture::MobileNet, Optimizer::AdamW),
            (Architecture::MobileNet, Optimizer::Sgd),
            (Architecture::Convnet, Optimizer::AdamW),
        ] {
            let spec = TrainingSpec { optimizer, shards: 2, ..Default::default() };
            let (mut trainee, _) = trained(architecture, &spec, 2);
            let saved = trainee.saved().unwrap();
            let config = config(architecture);
            let mut again = Trainee::resume(&config, &spec, saved, Seed(5), &Device::flex()).unwrap();
            for step in 2..4 {
                assert_eq!(trainee.step(&x, &t, 1e-3, step).unwrap(), again.step(&x, &t, 1e-3, step).unwrap());
            }
            assert_eq!(trainee.saved().unwrap().weights, again.saved().unwrap().weights);
        }
    }

    #[test]
    fn pieces_of_a_batch_give_the_gradient_of_the_batch() {
        // No batch statistics and no chance in a ViT: only the order of sums differs.
        let of = |shards| trained(Architecture::VitSmall, &TrainingSpec { shards, ..Default::default() }, 1);
        let ((_, whole), (_, pieces)) = (of(1), of(3));
        assert!((whole[0].cross_entropy - pieces[0].cross_entropy).abs() < 1e-6);
        assert!((whole[0].grad_norm - pieces[0].grad_norm).abs() < 1e-5 * whole[0].grad_norm);
    }

    #[test]
    fn narrow_products_are_near_those_of_32_bits() {
        let of = |products| trained(Architecture::ResNet18, &TrainingSpec { products, ..Default::default() }, 1).1[0];
        let exact = of(MatmulPrecision::F32);
        for products in [MatmulPrecision::Bf16, MatmulPrecision::F16] {
            let found = of(products);
            assert!((found.cross_entropy - exact.cross_entropy).abs() < 0.05, "{products:?}: {found:?} {exact:?}");
            assert!((found.grad_norm / exact.grad_norm - 1.0).abs() < 0.1, "{products:?}: {found:?} {exact:?}");
            assert_ne!(found, exact, "{products:?}");
        }
    }

    #[test]
    fn running_statistics_are_pytorchs() {
        let (trainee, _) = trained(Architecture::ResNet18, &TrainingSpec::default(), 1);
        let before =
            Classifier::new(&config(Architecture::ResNet18), Seed(5).split("weights"), &Device::flex(), Precision::F32);
        let (x, _) = batch(12);
        let mut pass = Pass::evaluation();
        let network = before.unwrap();
        // What the first normalisation sees: the first convolution of the images, by the weights
        // before the step.
        let weights = network.to_weights().unwrap();
        let kernel = Tensor::<4>::from_data(
            TensorData::new(weights.0["conv1.weight"].values.clone(), [64, 3, 7, 7]),
            &Device::flex(),
        );
        let options = burn::tensor::ops::ConvOptions::new([2, 2], [3, 3], [1, 1], 1);
        let seen = burn::tensor::module::conv2d(network.upload(&x, &Device::flex()), kernel, None, options);
        let values: Vec<f64> = to_host(seen.narrow(1, 0, 1)).unwrap();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let after = trainee.saved().unwrap().weights;
        assert!((f64::from(after.0["bn1.running_mean"].values[0]) - 0.1 * mean).abs() < 1e-6);
        assert!((f64::from(after.0["bn1.running_var"].values[0]) - (0.9 + 0.1 * variance)).abs() < 1e-5);
        assert!(
            network.forward(network.upload(&x, &Device::flex()), &mut pass).dims() == [12, K] && pass.moved.is_empty()
        );
    }
}
