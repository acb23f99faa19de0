//! The TarFlow in training (Zhai et al. 2025; BLC App. B): maximum likelihood under noise, labels
//! dropped by chance.

mod gradients;

use burn::module::{Module, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::batch::Draw;
use super::learner::Learner;
use super::spec::{TarFlowSpec, TrainSpec};
use super::step::{Saved, StepLoss, Trainee, adam};
use crate::data::Dataset;
use crate::device::{MatmulPrecision, to_host};
use crate::error::{Error, Result};
use crate::flow::tarflow::cpu::CpuTarFlow;
use crate::flow::tarflow::{Condition, TarFlow, TarFlowConfig};
use crate::flow::weights::Weights;
use crate::flow::{Architecture, Flow, Precision};
use crate::gradients::{Cut, clip, in_pieces};
use crate::units::{ClassId, Nats};
use gradients::{Loss, cpu_gradients, gradients};

/// Share of the paper's code's moving average that one batch's z² has in `var` (VP).
const VAR_RATE: f64 = 0.1;

/// The architecture of a spec on images of a dataset.
pub fn tarflow_config(spec: &TarFlowSpec, data: &Dataset) -> TarFlowConfig {
    let TarFlowSpec { patch, channels, blocks, layers, volume_preserving, shared_map, .. } = *spec;
    let classes = data.class_names.len();
    TarFlowConfig { shape: data.shape, classes, patch, channels, blocks, layers, volume_preserving, shared_map }
}

/// A TarFlow in training.
pub struct TarFlowLearner {
    spec: TrainSpec,
    tarflow: TarFlowSpec,
    config: TarFlowConfig,
    trainee: Trainee<TarFlow>,
    /// Our own kernels, where they compute the gradients; they get the weights of every step.
    on_cpu: Option<CpuTarFlow<f32>>,
}

/// Part of a batch: tokens, the class each image is conditioned on (none where one map serves all
/// classes), and its class.
struct Part {
    x: Vec<f32>,
    conditions: Vec<Condition>,
    labels: Vec<ClassId>,
}

impl Part {
    /// Pieces of so many images of `dims` numbers each.
    fn cut(&self, piece: usize, dims: usize) -> Vec<Part> {
        let pieces = self.x.chunks(piece * dims).zip(self.conditions.chunks(piece)).zip(self.labels.chunks(piece));
        let owned = |((x, c), l): ((&[f32], &[Condition]), &[ClassId])| Part {
            x: x.to_vec(),
            conditions: c.to_vec(),
            labels: l.to_vec(),
        };
        pieces.map(owned).collect()
    }
}

impl TarFlowLearner {
    /// From a checkpoint, or a fresh one.
    ///
    /// # Errors
    /// When the architecture is impossible, the checkpoint does not fit it, or the device lacks the
    /// format of the products.
    pub fn new(
        spec: &TrainSpec,
        tarflow: &TarFlowSpec,
        train: &Dataset,
        saved: Option<Saved>,
        device: &Device,
    ) -> Result<Self> {
        let config = tarflow_config(tarflow, train);
        config.validate()?;
        let device = device.clone().autodiff();
        tarflow.products.check(&device)?;
        let build = |weights, device: &Device| TarFlow::from_weights(&config, weights, device, Precision::F32);
        let plain = device.clone().inner();
        let fresh = || {
            let weights = config.initial_weights(spec.training.seed.split("weights"));
            Saved { weights: weights.clone(), average: weights, optimizer: adam(&spec.training) }
        };
        let Saved { weights, average, optimizer } = saved.unwrap_or_else(fresh);
        let trainee = Trainee { module: build(weights, &device)?, average: build(average, &plain)?, optimizer };
        let on_cpu = match plain == Device::flex() && tarflow.products == MatmulPrecision::F32 {
            true => Some(CpuTarFlow::new(&config, trainee.module.to_weights()?).map_err(Error::Input)?),
            false => None,
        };
        Ok(Self { spec: spec.clone(), tarflow: *tarflow, config, trainee, on_cpu })
    }

    /// The images of a step as world-space tokens, and their conditions.
    fn batch(&self, draw: &Draw<'_>) -> Part {
        let dims = self.config.shape.dims();
        let noise = draw.noise();
        let image = |&i: &usize| self.tarflow.pixels.map_in(&draw.image(i), dims, i, noise);
        let x: Vec<f32> = draw.chosen.iter().flat_map(image).collect();
        let unconditional = |i| self.config.shared_map || draw.label_dropped(i, self.tarflow.label_dropout);
        let condition = |&i: &usize| (!unconditional(i)).then(|| draw.labels[i]);
        let conditions = draw.chosen.iter().map(condition).collect();
        Part { x: self.config.patchify(&x), conditions, labels: draw.classes() }
    }

    /// What the mean −log p(x|y) under the base's own variance has beyond what is minimised (VP without a shared map):
    /// ½ Σ (s/v − s + ln v) over the mean squares s that were measured and the variances v before this step.
    fn beyond_unit_variance(&self, squares: &[f64]) -> Result<f64> {
        if !self.config.volume_preserving || self.config.shared_map {
            return Ok(0.0);
        }
        let var = to_host(self.trainee.module.var.val().inner())?;
        Ok(squares.iter().zip(var).map(|(s, v)| 0.5 * (s / v - s + v.ln())).sum())
    }

    /// Adds the batch's mean square deviation of z from the class mean to the base's variance (VP).
    fn learn_variance(&mut self, squares: &[f64]) -> Result<()> {
        let shape = [self.config.tokens(), self.config.token_dims()];
        let blend = |flow: &TarFlow| -> Result<Param<Tensor<2>>> {
            let old = flow.var.val();
            let values: Vec<f32> = squares.iter().map(|&v| v as f32).collect();
            let new = Tensor::from_data(TensorData::new(values, shape), (&old.device(), DType::F32));
            Ok(Param::initialized(flow.var.id, old * (1.0 - VAR_RATE) + new * VAR_RATE))
        };
        self.trainee.module.var = blend(&self.trainee.module)?;
        self.trainee.average.var = blend(&self.trainee.average)?;
        Ok(())
    }
}

impl Learner for TarFlowLearner {
    fn parameters(&self) -> usize {
        self.trainee.module.num_params() - self.config.shape.dims()
    }

    fn step(&mut self, draw: &Draw<'_>, rate: f64, decay: f64) -> Result<StepLoss> {
        let (n, dims) = (draw.chosen.len(), self.config.shape.dims());
        let optim = self.spec.training;
        let part = self.batch(draw);
        let what = format!("steps of a TarFlow of {} images", self.config.shape);
        let piece = n.div_ceil((optim.shards * optim.accumulate).clamp(1, n.max(1))).max(1);
        let cut = Cut { what: &what, images: n, piece, shards: optim.shards };
        let (config, module) = (&self.config, &self.trainee.module);
        let loss = Loss { config, products: self.tarflow.products, lambda: optim.lambda, images: n };
        let on_cpu = &mut self.on_cpu;
        let (measured, grads, grad_norm) = cut.fit(&module.var.val().device(), |cut| {
            let (measured, mut grads) = match on_cpu {
                Some(kernels) => cpu_gradients(loss, kernels, module, &part, cut.piece)?,
                None => {
                    let sums = in_pieces(module, part.cut(cut.piece, dims), cut.shards, |flow, part| {
                        gradients(loss, &flow, part).map(|(measured, grads)| (measured, grads, ()))
                    })?;
                    (sums.measured, sums.grads)
                }
            };
            let norm = clip(module, &mut grads, optim.max_grad_norm)?;
            Ok((measured, grads, norm))
        })?;
        let of_pixels = |nll: f64| self.tarflow.pixels.nll_of_pixels(Nats(-nll), dims).0;
        // Whether the step counts is decided by what is minimised.
        let minimised = StepLoss::new(of_pixels(measured[0]), None, grad_norm);
        let nll = of_pixels(measured[0] + self.beyond_unit_variance(&measured[2..])?);
        let report = StepLoss { nll, cross_entropy: self.config.shared_map.then_some(measured[1]), ..minimised };
        if report.grad_norm.is_finite() {
            self.trainee.step(grads, rate, decay);
            if self.config.volume_preserving {
                self.learn_variance(&measured[2..])?;
            }
        }
        Ok(report)
    }

    fn saved(&self) -> Result<Saved> {
        self.trainee.saved(TarFlow::to_weights)
    }

    fn average(&self) -> Result<Weights> {
        self.trainee.average.to_weights()
    }

    fn frozen(&self) -> Result<Box<dyn Flow>> {
        let device = self.trainee.average.var.val().device();
        Architecture::TarFlow(self.config).build(self.average()?, self.tarflow.pixels, &device, Precision::F32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::units::{Seed, Tau};

    /// Eight noisy pictures of two classes.
    fn pictures() -> Dataset {
        let shape = ImageShape { channels: 1, height: 8, width: 8 };
        Dataset {
            name: "x".into(),
            shape,
            pixels: (0..8 * shape.dims()).map(|i| (i * 37 % 251) as u8).collect(),
            labels: Some((0..8).map(|i| i % 2).collect()),
            class_names: vec!["a".into(), "b".into()],
            ids: (0..8).map(|i| i.to_string()).collect(),
            noises: Default::default(),
        }
    }

    #[test]
    fn the_nll_of_a_step_is_that_of_its_weights() {
        let (train, device) = (pictures(), Device::flex());
        let (labels, dims) = (train.labels.clone().unwrap(), train.shape.dims());
        let spec: TrainSpec = toml::from_str("name = 'x'\n[data]\npath = 'd'").unwrap();
        let chosen: Vec<usize> = (0..train.len()).collect();
        let (seed, labels) = (Seed(3), &labels[..]);
        let draw =
            Draw { train: &train, labels, chosen: &chosen, epoch: 1, seed, shift: 0, mirror: false, turn: false };
        for (volume_preserving, shared_map) in [(false, false), (true, false), (true, true)] {
            let small = TarFlowSpec { patch: 4, channels: 64, blocks: 2, layers: 1, ..TarFlowSpec::default() };
            let tarflow = TarFlowSpec { volume_preserving, shared_map, label_dropout: 0.0, ..small };
            let config = tarflow_config(&tarflow, &train);
            let mut weights = config.initial_weights(Seed(7));
            if volume_preserving {
                let var = &mut weights.0.get_mut("var").unwrap().values;
                var.iter_mut().enumerate().for_each(|(d, v)| *v = if d % 2 == 0 { 4.0 } else { 0.25 });
            }
            let flow =
                Architecture::TarFlow(config).build(weights.clone(), tarflow.pixels, &device, Precision::F32).unwrap();
            let image = |&i: &usize| tarflow.pixels.map_in(&draw.image(i), dims, i, draw.noise());
            let scores = flow.score(&chosen.iter().flat_map(image).collect::<Vec<f32>>()).unwrap();
            let nll = |&i: &usize| {
                let log_p = scores.log_likelihoods(i, Tau::ONE)[labels[i]];
                tarflow.pixels.nll_of_pixels(Nats(log_p), dims).0
            };
            let truth = chosen.iter().map(nll).sum::<f64>() / chosen.len() as f64;
            for own_kernels in [true, false] {
                let optimizer = adam(&spec.training);
                let saved = Saved { weights: weights.clone(), average: weights.clone(), optimizer };
                let mut learner = TarFlowLearner::new(&spec, &tarflow, &train, Some(saved), &device).unwrap();
                if !own_kernels {
                    learner.on_cpu = None;
                }
                let found = learner.step(&draw, 1e-3, 0.9).unwrap().nll;
                assert!((found - truth).abs() < 1e-4 * truth.abs(), "{found} {truth} {tarflow:?} {own_kernels}");
            }
        }
    }
}
