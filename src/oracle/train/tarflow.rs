//! The TarFlow in training (Zhai et al. 2025; BLC App. B): maximum likelihood under noise, labels dropped by chance.

use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::batch::Draw;
use super::learner::Learner;
use super::spec::{TarFlowSpec, TrainSpec};
use super::step::{Saved, StepLoss, Trainee, adam};
use crate::data::Dataset;
use crate::device::{Products, to_host};
use crate::error::{Error, Result};
use crate::flow::parameters;
use crate::flow::tarflow::cpu::CpuTarFlow;
use crate::flow::tarflow::{Condition, TarFlow, TarFlowConfig, TarFlowOracle};
use crate::flow::weights::Weights;
use crate::flow::{Flow, Precision};
use crate::gradients::{Cut, Scale, clip, gradients_of, in_pieces};
use crate::units::Nats;

/// Share of the paper's code's moving average that one batch's z² has in `var` (VP).
const VAR_RATE: f64 = 0.1;

/// The architecture of a spec on images of a dataset.
pub fn tarflow_config(spec: &TarFlowSpec, data: &Dataset) -> TarFlowConfig {
    let TarFlowSpec { patch, channels, blocks, layers, volume_preserving, .. } = *spec;
    let classes = data.class_names.len();
    TarFlowConfig { shape: data.shape, classes, patch, channels, blocks, layers, volume_preserving }
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

/// Part of a batch: tokens, and the class each image is conditioned on.
struct Part {
    x: Vec<f32>,
    conditions: Vec<Condition>,
}

impl TarFlowLearner {
    /// From a checkpoint, or a fresh one.
    ///
    /// # Errors
    /// When the architecture is impossible, the checkpoint does not fit it, or the device lacks the format of the products.
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
        let on_cpu = match plain == Device::flex() && tarflow.products == Products::F32 {
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
        let condition = |&i: &usize| (!draw.label_dropped(i, self.tarflow.label_dropout)).then(|| draw.labels[i]);
        Part { x: self.config.patchify(&x), conditions: draw.chosen.iter().map(condition).collect() }
    }

    /// Mean of z² over the batch becomes part of the base's variance (VP).
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
        let Part { x, conditions } = self.batch(draw);
        let what = format!("steps of a TarFlow of {} images", self.config.shape);
        let piece = n.div_ceil((optim.shards * optim.accumulate).clamp(1, n.max(1))).max(1);
        let cut = Cut { what: &what, images: n, piece, shards: optim.shards };
        let (config, products, module) = (&self.config, self.tarflow.products, &self.trainee.module);
        let on_cpu = &mut self.on_cpu;
        let (measured, grads, grad_norm) = cut.fit(&module.var.val().device(), |cut| {
            let (measured, mut grads) = match on_cpu {
                Some(kernels) => cpu_gradients(kernels, module, &x, &conditions, cut.piece)?,
                None => {
                    let parts = x.chunks(cut.piece * dims).zip(conditions.chunks(cut.piece));
                    let parts = parts.map(|(x, c)| Part { x: x.to_vec(), conditions: c.to_vec() }).collect();
                    let sums = in_pieces(module, parts, cut.shards, |flow, part| {
                        gradients(config, products, &flow, part, n).map(|(measured, grads)| (measured, grads, ()))
                    })?;
                    (sums.measured, sums.grads)
                }
            };
            let norm = clip(module, &mut grads, optim.max_grad_norm)?;
            Ok((measured, grads, norm))
        })?;
        let log_density = Nats(-measured[0] - 0.5 * dims as f64 * (2.0 * std::f64::consts::PI).ln());
        let nll = self.tarflow.pixels.nll_of_pixels(log_density, dims).0;
        let mut report = StepLoss { nll, cross_entropy: None, grad_norm: f64::NAN };
        if nll.is_finite() {
            report.grad_norm = grad_norm;
        }
        if report.grad_norm.is_finite() {
            self.trainee.step(grads, rate, decay);
            if self.config.volume_preserving {
                self.learn_variance(&measured[1..])?;
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
        let oracle = TarFlowOracle::new(&self.config, self.average()?, self.tarflow.pixels, &device, Precision::F32)?;
        Ok(Box::new(oracle))
    }
}

/// Mean ½‖z‖² − log |det| over a batch of `batch` images, of which `part` is a part, followed by the mean z² of each
/// dimension (VP only); and the gradient of the former divided by D.
fn gradients(
    config: &TarFlowConfig,
    products: Products,
    flow: &TarFlow,
    part: Part,
    batch: usize,
) -> Result<(Vec<f64>, GradientsParams)> {
    let (n, t, p) = (part.conditions.len(), config.tokens(), config.token_dims());
    let device = flow.var.val().device();
    let x = Tensor::<3>::from_data(TensorData::new(part.x, [n, t, p]), &device);
    let classes = config.mixing_weights(&part.conditions, &device, DType::F32);
    let (z, log_det) = match products.narrow() {
        None => flow.encode(x, classes.as_ref()),
        Some(dtype) => flow.narrowed(dtype).encode(x, classes.as_ref()),
    };
    let loss = (z.clone().square().sum() * 0.5 - log_det.sum()) / batch as f64;
    let scale = products.loss_scale();
    let mut grads = gradients_of(loss.clone() * (scale / config.shape.dims() as f64), flow);
    let mut measured = to_host(loss)?;
    if config.volume_preserving {
        let squares = z.inner().square().sum_dim(0) / batch as f64;
        measured.extend(to_host(squares)?);
    }
    if scale != 1.0 {
        flow.visit(&mut Scale { grads: &mut grads, factor: scale.recip() });
    }
    Ok((measured, grads))
}

/// [`gradients`] of a whole batch by the CPU's own kernels, in pieces of `piece` images.
fn cpu_gradients(
    kernels: &mut CpuTarFlow<f32>,
    module: &TarFlow,
    x: &[f32],
    conditions: &[Condition],
    piece: usize,
) -> Result<(Vec<f64>, GradientsParams)> {
    kernels.set_weights(module.to_weights()?).map_err(Error::Numeric)?;
    let (n, config) = (conditions.len(), *kernels.config());
    let dims = config.shape.dims();
    let x: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
    let weight = 1.0 / (n * dims) as f64;
    let found = kernels.backward(&x, conditions, &vec![weight; n], n.div_ceil(piece.max(1)))?;
    let loss = found.energy.iter().zip(&found.log_det).map(|(energy, log_det)| energy - log_det).sum::<f64>();
    let mut measured = vec![loss / n as f64];
    if config.volume_preserving {
        let mean = |d: usize| found.z.iter().skip(d).step_by(dims).map(|z| z * z).sum::<f64>() / n as f64;
        measured.extend((0..dims).map(mean));
    }
    Ok((measured, parameters::to_gradients(module, TarFlow::state_name, &found.weights)))
}
