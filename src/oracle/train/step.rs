//! One optimisation step: loss, gradients, clipping, Adam, and the moving average of the weights.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};

use super::spec::{Classification, TrainSpec};
use crate::error::{Error, Result};
use crate::flow::glow::{Glow, GlowConfig, encode};

/// What one step measured, before the parameters moved.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct StepLoss {
    /// Mean −log p(x|y) in the space of 8-bit pixels, nats per image.
    pub nll: f64,
    /// Mean classification loss, nats.
    pub cross_entropy: f64,
    /// Global norm of the gradient of the loss per dimension, before clipping.
    pub grad_norm: f64,
}

/// A batch in the space the Glow works in.
pub struct Batch {
    /// Logit-space images, [N, C, H, W] flattened.
    pub y: Vec<f32>,
    /// Mean log-determinant of the preprocessing, nats.
    pub mean_log_det: f64,
    /// One class per image.
    pub classes: Vec<usize>,
}

/// Adam as PyTorch and EBO have it (burn's own default for ε is 1e-5).
pub fn adam() -> ModuleOptimizer {
    AdamConfig::new().with_epsilon(1e-8).init()
}

/// The batch as a tensor [N, C, H, W].
pub fn upload(config: &GlowConfig, y: Vec<f32>, device: &Device) -> Tensor<4> {
    let shape = config.shape;
    let n = y.len() / shape.dims();
    Tensor::from_data(TensorData::new(y, [n, shape.channels, shape.height, shape.width]), device)
}

/// Moves `glow` by one step of Adam. A loss or gradient that is not finite leaves everything as it was and returns the
/// numbers: the caller decides. The batch is cut into `spec.training.shards` pieces that run side by side; their gradients
/// are added in a fixed order.
///
/// # Errors
/// When the device fails or a 1×1 convolution became singular.
pub fn step(
    spec: &TrainSpec,
    config: &GlowConfig,
    glow: Glow,
    optimizer: &mut ModuleOptimizer,
    batch: Batch,
    learning_rate: f64,
) -> Result<(Glow, StepLoss)> {
    let dims = config.shape.dims();
    let n = batch.classes.len();
    let device = glow.means.val().device();
    let piece = n.div_ceil(spec.training.shards.clamp(1, n.max(1)));
    let pieces: Vec<(Glow, &[f32], &[usize])> = batch
        .y
        .chunks(piece * dims)
        .zip(batch.classes.chunks(piece))
        .map(|(y, classes)| (glow.clone().fork(&device), y, classes))
        .collect();
    let mut pieces = side_by_side(pieces, |(glow, y, classes)| {
        piece_gradients(spec, config, glow, y, classes, classes.len() as f64 / n as f64)
    })?
    .into_iter();
    let Some(mut sum) = pieces.next() else { return Err(Error::input("an empty batch")) };
    for piece in pieces {
        sum.nll += piece.nll;
        sum.cross_entropy += piece.cross_entropy;
        glow.visit(&mut Add { grads: &mut sum.grads, other: piece.grads });
    }
    let mut report = StepLoss {
        nll: sum.nll - batch.mean_log_det + dims as f64 * 256f64.ln(),
        cross_entropy: sum.cross_entropy,
        grad_norm: f64::NAN,
    };
    let mut norm = SquaredNorm { grads: &sum.grads, total: None };
    glow.visit(&mut norm);
    let Some(norm) = norm.total.filter(|_| report.nll.is_finite() && report.cross_entropy.is_finite()) else {
        return Ok((glow, report));
    };
    report.grad_norm = norm.try_into_vec_as::<f64>().map_err(device_error)?[0].sqrt();
    if !report.grad_norm.is_finite() {
        return Ok((glow, report));
    }
    let limit = spec.training.max_grad_norm;
    if limit > 0.0 && report.grad_norm > limit {
        glow.visit(&mut Scale { grads: &mut sum.grads, factor: limit / report.grad_norm });
    }
    Ok((optimizer.step(learning_rate, glow, sum.grads), report))
}

/// Runs `work` on every item at once, each on a thread of its own. Not on rayon's pool: burn's CPU kernels use that one
/// while they hold the autodiff graph, and a stolen second piece would wait for the first for ever.
fn side_by_side<I: Send, O: Send>(items: Vec<I>, work: impl Fn(I) -> Result<O> + Sync) -> Result<Vec<O>> {
    std::thread::scope(|scope| {
        let handles: Vec<_> = items.into_iter().map(|item| scope.spawn(|| work(item))).collect();
        let finished = handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Err(Error::Device("a piece of the batch panicked".into()))));
        finished.collect()
    })
}

/// Share of the batch loss that one piece of the batch has, and its gradient.
struct Piece {
    nll: f64,
    cross_entropy: f64,
    grads: GradientsParams,
}

fn piece_gradients(
    spec: &TrainSpec,
    config: &GlowConfig,
    glow: Glow,
    y: &[f32],
    classes: &[usize],
    share: f64,
) -> Result<Piece> {
    let device = glow.means.val().device();
    let (nll, cross_entropy) = losses(spec, config, &glow, upload(config, y.to_vec(), &device), classes)?;
    let loss = (nll.clone() + cross_entropy.clone() * spec.training.lambda) * (share / config.shape.dims() as f64);
    let measured = Tensor::cat(vec![nll, cross_entropy], 0).try_into_vec_as::<f64>().map_err(device_error)?;
    let grads = GradientsParams::from_grads(loss.backward(), &glow);
    Ok(Piece { nll: share * measured[0], cross_entropy: share * measured[1], grads })
}

fn device_error(error: impl std::fmt::Display) -> Error {
    Error::Device(error.to_string())
}

/// Mean NLL of z and the couplings (without preprocessing), and mean classification loss, [1] each.
fn losses(
    spec: &TrainSpec,
    config: &GlowConfig,
    glow: &Glow,
    y: Tensor<4>,
    classes: &[usize],
) -> Result<(Tensor<1>, Tensor<1>)> {
    let (n, dims) = (classes.len(), config.shape.dims());
    let device = y.device();
    let (z, partial) = encode(&glow.fold(), y);
    let mut log_det = partial.sum_dim(1).mean();
    for (l, level) in glow.levels.iter().enumerate() {
        let positions = (config.shape.height >> (l + 1)) * (config.shape.width >> (l + 1));
        for step in &level.steps {
            log_det = log_det + step.log_det_per_position()? * positions as f64;
        }
    }
    // Σ_d (z_d − μ_yd)²/σ_d² for every class at once: ‖z/σ‖² − 2⟨z/σ², μ⟩ + ‖μ/σ‖², [N, K].
    let var = glow.cov_diag.val().abs().reshape([1, dims]);
    let means = glow.means.val().reshape([config.classes, dims]);
    let flat = z.clone().reshape([n, dims]);
    let scaled = flat.clone() / var.clone();
    let scaled_means = means.clone() / var.clone();
    let mean_norm = (means.clone() * scaled_means).sum_dim(1).reshape([1, config.classes]);
    let quad = (flat * scaled.clone()).sum_dim(1) - scaled.matmul(means.transpose()) * 2.0 + mean_norm;
    let targets = Tensor::<1, Int>::from_data(
        TensorData::new(classes.iter().map(|&c| c as i64).collect::<Vec<_>>(), [n]),
        &device,
    )
    .reshape([n, 1]);
    let log_norm = (var * (2.0 * std::f64::consts::PI)).log().sum() * 0.5;
    let nll = quad.clone().gather(1, targets.clone()).mean() * 0.5 + log_norm - log_det;
    let logits = match spec.training.classification {
        Classification::Posterior => quad * -0.5,
        Classification::LinearHead => glow.linproj.forward(z),
    };
    Ok((nll, -log_softmax(logits, 1).gather(1, targets).mean()))
}

struct SquaredNorm<'a> {
    grads: &'a GradientsParams,
    total: Option<Tensor<1>>,
}

impl ModuleVisitor for SquaredNorm<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = self.grads.get::<D>(param.id) {
            let square = grad.square().sum();
            self.total = Some(match self.total.take() {
                Some(total) => total + square,
                None => square,
            });
        }
    }
}

struct Add<'a> {
    grads: &'a mut GradientsParams,
    other: GradientsParams,
}

impl ModuleVisitor for Add<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let (Some(a), Some(b)) = (self.grads.remove::<D>(param.id), self.other.remove::<D>(param.id)) {
            self.grads.register(param.id, a + b);
        }
    }
}

struct Scale<'a> {
    grads: &'a mut GradientsParams,
    factor: f64,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = self.grads.remove::<D>(param.id) {
            self.grads.register(param.id, grad * self.factor);
        }
    }
}

/// Moves the moving average `ema` towards `glow`: ema ← decay·ema + (1 − decay)·glow. Both live on one device.
pub fn average(ema: Glow, glow: &Glow, decay: f64) -> Glow {
    let mut gather = Gather(std::collections::VecDeque::new());
    glow.visit(&mut gather);
    ema.map(&mut Blend { values: gather.0, decay })
}

/// The parameters of a module in visiting order, flattened.
struct Gather(std::collections::VecDeque<Tensor<1>>);

impl ModuleVisitor for Gather {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val().inner();
        let len = value.shape().num_elements();
        self.0.push_back(value.reshape([len]));
    }
}

struct Blend {
    values: std::collections::VecDeque<Tensor<1>>,
    decay: f64,
}

impl ModuleMapper for Blend {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(value) = self.values.pop_front() else { return param };
        let decay = self.decay;
        param.map(|old| {
            let shape = old.dims();
            old * decay + value.reshape(shape) * (1.0 - decay)
        })
    }
}
