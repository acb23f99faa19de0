//! The end of every training step of a flow: AdamW and the moving average of the weights.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{DType, Device, Tensor};

use super::spec::OptimSpec;
use crate::error::Result;
use crate::flow::weights::Weights;
use crate::gradients::AdamW;

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

impl StepLoss {
    /// The norm counts only where the losses are finite.
    pub fn new(nll: f64, cross_entropy: Option<f64>, grad_norm: f64) -> Self {
        let finite = nll.is_finite() && cross_entropy.is_none_or(f64::is_finite);
        Self { nll, cross_entropy, grad_norm: if finite { grad_norm } else { f64::NAN } }
    }
}

/// AdamW; without weight decay it is Adam.
pub fn adam(optim: &OptimSpec) -> ModuleOptimizer {
    AdamW { beta_2: optim.beta2, weight_decay: optim.weight_decay, ..AdamW::default() }.init()
}

/// A module in training.
pub struct Trainee<M> {
    /// Its parameters, on a device that differentiates.
    pub module: M,
    /// Their moving average, on the device without gradients.
    pub average: M,
    /// Moves them.
    pub optimizer: ModuleOptimizer,
}

impl<M: Module> Trainee<M> {
    /// Everything a run needs to go on; `weights` gives a module's parameters by name.
    ///
    /// # Errors
    /// Those of `weights`: when the device cannot deliver them.
    pub fn saved(&self, weights: impl Fn(&M) -> Result<Weights>) -> Result<Saved> {
        let (weights, average) = (weights(&self.module)?, weights(&self.average)?);
        Ok(Saved { weights, average, optimizer: self.optimizer.clone() })
    }

    /// Moves the parameters by one step of AdamW, and the average after them with `decay`.
    pub fn step(&mut self, grads: GradientsParams, rate: f64, decay: f64) {
        self.module = self.optimizer.step(rate, self.module.clone(), grads);
        self.average = average(self.average.clone(), &self.module, decay);
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

/// Moves the moving average `ema` towards `module`: ema ← decay·ema + (1 − decay)·module.
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
            let (shape, place) = (old.dims(), (old.device(), old.dtype()));
            if place.0 != Device::flex() || place.1 != DType::F32 || value.dtype() != DType::F32 {
                return old * decay + value.reshape(shape) * (1.0 - decay);
            }
            // On the host one pass in place of three operations: a flow has hundreds of small arrays.
            let (mut old, value) = (old.into_data(), value.into_data());
            let (keep, fresh) = (decay as f32, (1.0 - decay) as f32);
            let pairs = old.as_mut_slice::<f32>().unwrap_or_default().iter_mut();
            let pairs = pairs.zip(value.as_slice::<f32>().unwrap_or_default());
            pairs.for_each(|(old, value)| *old = *old * keep + value * fresh);
            Tensor::from_data(old, (&place.0, place.1))
        })
    }
}
