//! The layers that the networks share, named and initialised as in PyTorch.

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::module::{batch_norm, batch_norm_train, conv2d, layer_norm, linear, max_pool2d};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
use burn::tensor::{Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// How a network is run: as it is, or in training, where chance and batch statistics enter.
#[derive(Debug, Default)]
pub struct Pass {
    /// Draws dropped units and branches; none outside of training.
    chance: Option<ChaCha8Rng>,
    /// Running statistics after this batch.
    pub moved: Vec<(ParamId, Tensor<1>)>,
}

impl Pass {
    /// As it is: running statistics, nothing dropped.
    pub fn evaluation() -> Self {
        Self::default()
    }

    /// In training. Chance is drawn on the host, so that it is the same on every device.
    pub fn training(chance: ChaCha8Rng) -> Self {
        Self { chance: Some(chance), moved: Vec::new() }
    }

    /// Dropout: every value is 0 with probability `p`, the others grow by 1/(1 − p).
    pub fn dropout<const D: usize>(&mut self, x: Tensor<D>, p: f64) -> Tensor<D> {
        let shape = x.dims();
        self.drop(x, shape, p)
    }

    /// Stochastic depth (Huang et al. 2016) by rows: an image's branch is dropped with probability `p`.
    pub fn drop_branch<const D: usize>(&mut self, x: Tensor<D>, p: f64) -> Tensor<D> {
        let mut shape = [1; D];
        shape[0] = x.dims()[0];
        self.drop(x, shape, p)
    }

    fn drop<const D: usize>(&mut self, x: Tensor<D>, shape: [usize; D], p: f64) -> Tensor<D> {
        let Some(rng) = self.chance.as_mut().filter(|_| p > 0.0) else { return x };
        let kept = (1.0 / (1.0 - p)) as f32;
        let n = shape.iter().product();
        let mask: Vec<f32> = (0..n).map(|_| if rng.random::<f64>() < p { 0.0 } else { kept }).collect();
        let mask: Tensor<D> = Tensor::from_data(TensorData::new(mask, shape), (&x.device(), x.dtype()));
        x * mask
    }
}

/// A two-dimensional convolution, x [N, in, H, W] → [N, out, H', W'].
#[derive(Module, Debug)]
pub struct Conv {
    /// [out, in/groups, k, k]
    pub weight: Param<Tensor<4>>,
    /// [out]
    pub bias: Option<Param<Tensor<1>>>,
    pub stride: usize,
    pub padding: usize,
    pub groups: usize,
}

impl Conv {
    /// The same with every input channel convolved apart.
    pub fn depthwise(self) -> Self {
        Self { groups: self.weight.dims()[0], ..self }
    }

    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let options = ConvOptions::new([self.stride; 2], [self.padding; 2], [1; 2], self.groups);
        conv2d(x, self.weight.val(), self.bias.as_ref().map(Param::val), options)
    }
}

/// Normalisation of channels by the batch in training and by running statistics otherwise (Ioffe & Szegedy 2015).
#[derive(Module, Debug)]
pub struct BatchNorm {
    /// [C]
    pub weight: Param<Tensor<1>>,
    /// [C]
    pub bias: Param<Tensor<1>>,
    /// [C]
    pub running_mean: Param<Tensor<1>>,
    /// [C], with Bessel's correction.
    pub running_var: Param<Tensor<1>>,
    pub eps: f64,
    /// Weight of the newest batch in the running statistics.
    pub momentum: f64,
}

/// ε and momentum of PyTorch's batch normalisation.
pub const BATCH_NORM: (f64, f64) = (1e-5, 0.1);

impl BatchNorm {
    /// x [N, C, H, W] → the same shape.
    pub fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        if pass.chance.is_none() {
            return batch_norm(x, weight, bias, self.running_mean.val(), self.running_var.val(), self.eps);
        }
        let [n, _, h, w] = x.dims();
        let count = (n * h * w) as f64;
        let normed = batch_norm_train(x, weight, bias, self.eps);
        let unbiased = normed.variance.inner() * (count / (count - 1.0).max(1.0));
        for (running, batch) in [(&self.running_mean, normed.mean.inner()), (&self.running_var, unbiased)] {
            let moved = running.val().inner() * (1.0 - self.momentum) + batch * self.momentum;
            pass.moved.push((running.id, moved));
        }
        normed.output
    }
}

/// Normalisation over the last dimension (Ba et al. 2016).
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// [C]
    pub weight: Param<Tensor<1>>,
    /// [C]
    pub bias: Param<Tensor<1>>,
    pub eps: f64,
}

impl LayerNorm {
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        layer_norm(x, self.weight.val(), Some(self.bias.val()), self.eps)
    }

    /// Over the channels of x [N, C, H, W].
    pub fn over_channels(&self, x: Tensor<4>) -> Tensor<4> {
        channels_first(self.forward(channels_last(x)))
    }
}

/// x Wᵀ + b.
#[derive(Module, Debug)]
pub struct Linear {
    /// [out, in]
    pub weight: Param<Tensor<2>>,
    /// [out]
    pub bias: Option<Param<Tensor<1>>>,
}

impl Linear {
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        linear(x, self.weight.val().transpose(), self.bias.as_ref().map(Param::val))
    }
}

/// [N, C, H, W] → [N, H, W, C].
pub fn channels_last(x: Tensor<4>) -> Tensor<4> {
    x.permute([0, 2, 3, 1])
}

/// [N, H, W, C] → [N, C, H, W].
pub fn channels_first(x: Tensor<4>) -> Tensor<4> {
    x.permute([0, 3, 1, 2])
}

/// [N, C, H, W] → [N, C·H·W].
pub fn flatten(x: Tensor<4>) -> Tensor<2> {
    let [n, c, h, w] = x.dims();
    x.reshape([n, c * h * w])
}

/// Means over all positions: [N, C, H, W] → [N, C].
pub fn global_mean(x: Tensor<4>) -> Tensor<2> {
    let [n, c, h, w] = x.dims();
    x.reshape([n, c, h * w]).mean_dim(2).reshape([n, c])
}

/// Maxima of windows of side `size`, every `stride` pixels.
pub fn max_pool(x: Tensor<4>, size: usize, stride: usize, padding: usize) -> Tensor<4> {
    max_pool2d(x, MaxPoolOptions::new([size; 2]).with_stride([stride; 2]).with_padding([padding; 2]))
}

/// Puts the running statistics of a pass in place of the older ones.
pub struct Settle(pub Vec<(ParamId, Tensor<1>)>);

impl ModuleMapper for Settle {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(at) = self.0.iter().position(|(id, _)| *id == param.id) else { return param };
        let (_, moved) = self.0.swap_remove(at);
        param.map(|old| {
            let moved = moved.reshape(old.dims());
            if old.device().is_autodiff() { Tensor::from_inner(moved) } else { moved }
        })
    }
}
