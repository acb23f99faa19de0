//! AdamW (Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization"), in one pass over the
//! memory where that is the host's: burn's own makes some fifteen, which on a CPU is most of a step
//! of a small batch.

use super::ReadOnHost;
use crate::kernels::vectorise;
use burn::optim::{ModuleOptimizer, Optimizer, RecordState, StateSink, StateSource};
use burn::tensor::{DType, Device, Tensor, TensorData};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

/// The method's constants, and how much weights decay; PyTorch's names and defaults.
#[derive(Debug, Clone, Copy)]
pub struct AdamW {
    /// Decay of the mean of gradients.
    pub beta_1: f64,
    /// Decay of the mean of their squares.
    pub beta_2: f64,
    /// Added to the root of the second mean.
    pub epsilon: f64,
    /// Decay of the weights at learning rate 1.
    pub weight_decay: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

impl AdamW {
    /// For all parameters of a module.
    pub fn init(self) -> ModuleOptimizer {
        ModuleOptimizer::from(ReadOnHost(self))
    }

    /// The numbers of step `time`, from 1.
    fn step_at(&self, rate: f64, time: usize) -> Step {
        let time = i32::try_from(time).unwrap_or(i32::MAX);
        let unbias = |beta: f64| 1.0 - beta.powi(time);
        Step {
            keep: (1.0 - rate * self.weight_decay) as f32,
            rate: (rate / unbias(self.beta_1)) as f32,
            beta: [self.beta_1 as f32, self.beta_2 as f32],
            fresh: [(1.0 - self.beta_1) as f32, (1.0 - self.beta_2) as f32],
            root: unbias(self.beta_2).sqrt().recip() as f32,
            epsilon: self.epsilon as f32,
        }
    }
}

/// Running means of a parameter's gradients and of their squares.
#[derive(Clone)]
pub struct Moments<const D: usize> {
    time: usize,
    first: Tensor<D>,
    second: Tensor<D>,
}

// By hand: burn's derive names crates that only burn itself depends on.
impl<const D: usize> RecordState for Moments<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        out.push_tensor(prefix, "time", TensorData::from([self.time as i64]));
        out.push_tensor(prefix, "first", self.first.to_data());
        out.push_tensor(prefix, "second", self.second.to_data());
    }

    fn state_unflatten(prefix: &str, source: &mut StateSource, device: &Device) -> Option<Self> {
        let time = source.take_tensor(prefix, "time")?.iter::<i64>().next()?;
        let mut tensor = |name: &str| {
            let data = source.take_tensor(prefix, name)?;
            let dtype = data.dtype();
            Some(Tensor::from_data(data, (device, dtype)))
        };
        Some(Self { time: usize::try_from(time).ok()?, first: tensor("first")?, second: tensor("second")? })
    }
}

/// w ← keep·w − rate·m/(root·√v + ε), with m and v blended before.
#[derive(Debug, Clone, Copy)]
struct Step {
    keep: f32,
    rate: f32,
    beta: [f32; 2],
    fresh: [f32; 2],
    root: f32,
    epsilon: f32,
}

/// Values that one thread moves at a time.
const PIECE: usize = 1 << 14;

/// A piece of a parameter with its gradient and its moments.
struct Piece<'a> {
    step: Step,
    weight: &'a mut [f32],
    grad: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl WithSimd for Piece<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Step { keep, rate, beta, fresh, root, epsilon } = self.step;
        let moments = self.first.iter_mut().zip(self.second.iter_mut());
        for ((weight, grad), (first, second)) in self.weight.iter_mut().zip(self.grad).zip(moments) {
            *first = beta[0] * *first + fresh[0] * grad;
            *second = beta[1] * *second + fresh[1] * grad * grad;
            *weight = keep * *weight - rate * *first / (root * second.sqrt() + epsilon);
        }
    }
}

impl Step {
    /// On the host, in 32 bits: one pass over the memory, in place where nobody else holds it.
    fn on_host<const D: usize>(self, weight: Tensor<D>, grad: Tensor<D>, moments: [Tensor<D>; 2]) -> [Tensor<D>; 3] {
        let place = (weight.device(), weight.dtype());
        let [first, second] = moments;
        let grad = grad.into_data();
        let mut moved = [weight, first, second].map(Tensor::into_data);
        let [weight, first, second] = &mut moved;
        let values = |data| TensorData::as_mut_slice::<f32>(data).unwrap_or_default();
        let (weight, first, second) = (values(weight), values(first), values(second));
        let grad = grad.as_slice::<f32>().unwrap_or_default();
        if weight.len() <= PIECE {
            vectorise(Piece { step: self, weight, grad, first, second });
        } else {
            let pieces = weight.par_chunks_mut(PIECE).zip(grad.par_chunks(PIECE));
            let moments = first.par_chunks_mut(PIECE).zip(second.par_chunks_mut(PIECE));
            pieces.zip(moments).for_each(|((weight, grad), (first, second))| {
                vectorise(Piece { step: self, weight, grad, first, second });
            });
        }
        moved.map(|data| Tensor::from_data(data, (&place.0, place.1)))
    }

    /// By the device's own operations.
    fn on_device<const D: usize>(self, weight: Tensor<D>, grad: Tensor<D>, moments: [Tensor<D>; 2]) -> [Tensor<D>; 3] {
        let [first, second] = moments;
        let first = first * self.beta[0] + grad.clone() * self.fresh[0];
        let second = second * self.beta[1] + grad.square() * self.fresh[1];
        let step = first.clone() * self.rate / (second.clone().sqrt() * self.root + self.epsilon);
        [weight * self.keep - step, first, second]
    }
}

impl Optimizer for AdamW {
    type State<const D: usize> = Moments<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weight: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Moments<D>>,
    ) -> (Tensor<D>, Option<Moments<D>>) {
        let Moments { time, first, second } =
            state.unwrap_or_else(|| Moments { time: 0, first: grad.zeros_like(), second: grad.zeros_like() });
        let step = self.step_at(rate, time + 1);
        let host = weight.device() == Device::flex() && weight.dtype() == DType::F32 && grad.dtype() == DType::F32;
        let [weight, first, second] = match host {
            true => step.on_host(weight, grad, [first, second]),
            false => step.on_device(weight, grad, [first, second]),
        };
        (weight, Some(Moments { time: time + 1, first, second }))
    }

    fn to_device<const D: usize>(state: Moments<D>, device: &Device) -> Moments<D> {
        let Moments { time, first, second } = state;
        Moments { time, first: first.to_device(device), second: second.to_device(device) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook's method in f64.
    fn reference(adamw: &AdamW, rate: f64, steps: usize, w0: f64, grad: impl Fn(usize) -> f64) -> f64 {
        let (mut w, mut m, mut v) = (w0, 0.0, 0.0);
        for t in 1..=steps {
            let g = grad(t);
            m = adamw.beta_1 * m + (1.0 - adamw.beta_1) * g;
            v = adamw.beta_2 * v + (1.0 - adamw.beta_2) * g * g;
            let (m_hat, v_hat) = (m / (1.0 - adamw.beta_1.powi(t as i32)), v / (1.0 - adamw.beta_2.powi(t as i32)));
            w = w - rate * adamw.weight_decay * w - rate * m_hat / (v_hat.sqrt() + adamw.epsilon);
        }
        w
    }

    #[test]
    fn both_ways_do_what_the_paper_says() {
        let adamw = AdamW { weight_decay: 0.05, ..AdamW::default() };
        let n = 3 * PIECE + 5;
        let start = |i: usize| 0.5 - i as f64 / n as f64;
        let grad = |i: usize, t: usize| ((i % 97) as f64 - 48.0) * 0.01 + 0.1 * t as f64;
        let tensor = |f: &dyn Fn(usize) -> f64| {
            let values: Vec<f32> = (0..n).map(|i| f(i) as f32).collect();
            Tensor::<1>::from_data(TensorData::new(values, [n]), &Device::flex())
        };
        let (mut weight, mut state) = (tensor(&start), None);
        let mut parts = [tensor(&start), tensor(&|_| 0.0), tensor(&|_| 0.0)];
        for t in 1..=5 {
            let g = tensor(&|i| grad(i, t));
            (weight, state) = Optimizer::step(&adamw, 0.01, weight, g.clone(), state);
            let [w, m, v] = parts;
            parts = adamw.step_at(0.01, t).on_device(w, g, [m, v]);
        }
        for tensor in [weight, parts[0].clone()] {
            let found = tensor.into_data().try_to_vec::<f32>().unwrap();
            for i in (0..n).step_by(631) {
                let expected = reference(&adamw, 0.01, 5, start(i), |t| grad(i, t));
                assert!((f64::from(found[i]) - expected).abs() < 1e-6, "{i}: {} {expected}", found[i]);
            }
        }
    }
}
