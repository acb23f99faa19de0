//! What every training step ends in: gradients summed and clipped, AdamW, and the moving average of the weights.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::Tensor;

use super::spec::OptimSpec;
use crate::error::{Error, Result};
use crate::flow::weights::Weights;

/// What one step measured, before the parameters moved.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct StepLoss {
    /// Mean −log p(x|y) in the space of 8-bit pixels, nats per image.
    pub nll: f64,
    /// Mean classification loss, nats, where it is part of the loss.
    pub cross_entropy: Option<f64>,
    /// Global norm of the gradient of the loss per dimension, before clipping.
    pub grad_norm: f64,
}

/// AdamW with PyTorch's ε (burn's own default is 1e-5); without weight decay it is Adam.
pub fn adam(optim: &OptimSpec) -> ModuleOptimizer {
    let config = AdamWConfig::new().with_epsilon(1e-8).with_beta_2(optim.beta2 as f32);
    config.with_weight_decay(optim.weight_decay as f32).init()
}

/// A module in training.
pub struct Trainee<M> {
    /// Its parameters, on a device that differentiates.
    pub module: M,
    /// Their moving average, on the device beneath.
    pub average: M,
    /// Moves them.
    pub optimizer: ModuleOptimizer,
}

impl<M: Module> Trainee<M> {
    /// Moves the parameters by one step of AdamW, and the average after them with `decay`. Gradients that are not finite leave
    /// everything as it was. Returns their global norm before clipping.
    ///
    /// # Errors
    /// When the device fails.
    pub fn step(&mut self, mut grads: GradientsParams, optim: &OptimSpec, rate: f64, decay: f64) -> Result<f64> {
        let mut norm = SquaredNorm { grads: &grads, total: None };
        self.module.visit(&mut norm);
        let Some(norm) = norm.total else { return Ok(f64::NAN) };
        let norm = norm.try_into_vec_as::<f64>().map_err(device_error)?[0].sqrt();
        if !norm.is_finite() {
            return Ok(norm);
        }
        if optim.max_grad_norm > 0.0 && norm > optim.max_grad_norm {
            self.module.visit(&mut Scale { grads: &mut grads, factor: optim.max_grad_norm / norm });
        }
        self.module = self.optimizer.step(rate, self.module.clone(), grads);
        self.average = average(self.average.clone(), &self.module, decay);
        Ok(norm)
    }

    /// Sums of what `work` measures on the pieces of a batch, and of their gradients: `shards` pieces side by side, one such row
    /// after the other, added in the order of the pieces. `None` without pieces.
    ///
    /// # Errors
    /// The first of `work`'s.
    pub fn gradients<P: Send>(
        &self,
        pieces: Vec<P>,
        shards: usize,
        work: impl Fn(M, P) -> Result<(Vec<f64>, GradientsParams)> + Sync,
    ) -> Result<Option<(Vec<f64>, GradientsParams)>>
    where
        M: Send,
    {
        let Some(device) = self.module.devices().first().cloned() else { return Ok(None) };
        let mut sum: Option<(Vec<f64>, GradientsParams)> = None;
        let mut pieces = pieces.into_iter().peekable();
        while pieces.peek().is_some() {
            let row = pieces.by_ref().take(shards.max(1)).map(|piece| (self.module.clone().fork(&device), piece));
            for (measured, grads) in side_by_side(row.collect(), |(module, piece)| work(module, piece))? {
                match &mut sum {
                    None => sum = Some((measured, grads)),
                    Some((sum, total)) => {
                        sum.iter_mut().zip(measured).for_each(|(sum, more)| *sum += more);
                        self.module.visit(&mut Add { grads: total, other: grads });
                    }
                }
            }
        }
        Ok(sum)
    }
}

/// A run's parameters and their average by name, with the optimizer's moments.
pub struct Saved {
    /// Parameters.
    pub weights: Weights,
    /// Their moving average.
    pub average: Weights,
    /// The optimizer.
    pub optimizer: ModuleOptimizer,
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

/// An error of the device, in its own words.
pub fn device_error(error: impl std::fmt::Display) -> Error {
    Error::Device(error.to_string())
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

/// Multiplies every gradient.
pub struct Scale<'a> {
    /// The gradients.
    pub grads: &'a mut GradientsParams,
    /// By what.
    pub factor: f64,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = self.grads.remove::<D>(param.id) {
            self.grads.register(param.id, grad * self.factor);
        }
    }
}

/// Moves the moving average `ema` towards `module`: ema ← decay·ema + (1 − decay)·module. Both live on one device.
fn average<M: Module>(ema: M, module: &M, decay: f64) -> M {
    let mut gather = Gather(std::collections::VecDeque::new());
    module.visit(&mut gather);
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
