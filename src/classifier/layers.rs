//! The layers that the networks share, named and initialised as in PyTorch.

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::module::{batch_norm, batch_norm_train, conv2d, layer_norm, linear, max_pool2d};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions, PadMode};
use burn::tensor::{DType, Device, Slice, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::init::Names;
use crate::device::bounded;

/// Which dimension of the maps of a convolutional network comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// [N, C, H, W], as graphics cards have it.
    #[default]
    ImageFirst,
    /// [C, N, H, W]: a convolution is one matrix product over all positions of all images, for
    /// which burn's CPU kernels are fastest; theirs for convolutions multiply image by image.
    ChannelFirst,
}

/// How a network is run: as it is, or in training, where chance and batch statistics enter.
#[derive(Debug, Default)]
pub struct Pass {
    /// Of the maps between [`Pass::enter`] and [`Pass::means`] or [`Pass::flatten`].
    layout: Layout,
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
        Self { chance: Some(chance), ..Self::default() }
    }

    /// Images [N, C, H, W] as the first maps, in the layout that suits their device.
    pub fn enter(&mut self, x: Tensor<4>) -> Tensor<4> {
        let host = x.device().inner() == Device::flex();
        self.layout = if host { Layout::ChannelFirst } else { Layout::ImageFirst };
        self.turned(x)
    }

    /// Means of maps over all positions, [N, C].
    pub fn means(&self, maps: Tensor<4>) -> Tensor<2> {
        let [a, b, h, w] = maps.dims();
        let means = maps.reshape([a, b, h * w]).mean_dim(2).reshape([a, b]);
        if self.layout == Layout::ChannelFirst { means.transpose() } else { means }
    }

    /// Maps in one, the channels of the first before those of the second.
    pub fn join(&self, maps: Vec<Tensor<4>>) -> Tensor<4> {
        Tensor::cat(maps, if self.layout == Layout::ChannelFirst { 0 } else { 1 })
    }

    /// Maps as the rows of a matrix, [N, C·H·W].
    pub fn flatten(&self, maps: Tensor<4>) -> Tensor<2> {
        let maps = self.turned(maps);
        let [n, c, h, w] = maps.dims();
        maps.reshape([n, c * h * w])
    }

    /// From [N, C, H, W] to the pass's layout or back.
    fn turned(&self, x: Tensor<4>) -> Tensor<4> {
        if self.layout == Layout::ChannelFirst { x.swap_dims(0, 1) } else { x }
    }

    /// Dropout: every value is 0 with probability `p`, the others grow by 1/(1 − p).
    pub fn dropout<const D: usize>(&mut self, x: Tensor<D>, p: f64) -> Tensor<D> {
        let shape = x.dims();
        self.drop(x, shape, p)
    }

    /// Stochastic depth (Huang et al. 2016) by rows: an image's branch is dropped with probability
    /// `p`.
    pub fn drop_branch<const D: usize>(&mut self, x: Tensor<D>, p: f64) -> Tensor<D> {
        let mut shape = [1; D];
        shape[0] = x.dims()[0];
        self.drop(x, shape, p)
    }

    fn drop<const D: usize>(&mut self, x: Tensor<D>, shape: [usize; D], p: f64) -> Tensor<D> {
        let Some(rng) = self.chance.as_mut().filter(|_| p > 0.0) else { return x };
        let mask = dropped(rng, shape.iter().product(), p);
        let mask: Tensor<D> = Tensor::from_data(TensorData::new(mask, shape), (&x.device(), x.dtype()));
        x * mask
    }
}

/// What dropout multiplies `n` numbers by: 0 with probability `p`, else 1/(1 − p).
pub fn dropped(chance: &mut ChaCha8Rng, n: usize, p: f64) -> Vec<f32> {
    let kept = (1.0 / (1.0 - p)) as f32;
    (0..n).map(|_| if chance.random::<f64>() < p { 0.0 } else { kept }).collect()
}

/// A two-dimensional convolution, x [N, in, H, W] → [N, out, H', W'].
#[derive(Module, Debug)]
pub struct Conv {
    /// [out, in/groups, k, k]
    pub weight: Param<Tensor<4>>,
    /// [out]
    pub bias: Option<Param<Tensor<1>>>,
    pub stride: usize,
    /// Above and below, left and right.
    pub padding: [usize; 2],
    pub groups: usize,
}

impl Conv {
    /// The same with other padding: for kernels that are not square.
    pub fn padded(self, padding: [usize; 2]) -> Self {
        Self { padding, ..self }
    }

    /// The same with every input channel convolved apart.
    pub fn depthwise(self) -> Self {
        Self { groups: self.weight.dims()[0], ..self }
    }

    /// x [N, in, H, W] → [N, out, H', W'].
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let options = ConvOptions::new([self.stride; 2], self.padding, [1; 2], self.groups);
        let (wide, weight) = (x.dtype(), self.weight.val());
        let bias = self.bias.as_ref().map(Param::val);
        if weight.dtype() == wide {
            return bounded(conv2d(x, weight, bias, options));
        }
        let y = bounded(conv2d(x.cast(weight.dtype()), weight, None, options).cast(wide));
        bias.map_or_else(|| y.clone(), |bias| y.clone() + bias.reshape([1, self.weight.dims()[0], 1, 1]))
    }

    /// Maps to maps, in the layout of the pass.
    pub fn maps(&self, x: Tensor<4>, pass: &Pass) -> Tensor<4> {
        match pass.layout {
            Layout::ChannelFirst if self.groups == 1 && self.columns(x.dims()) <= MOST_COLUMNS => self.product(x),
            _ => pass.turned(self.forward(pass.turned(x))),
        }
    }

    /// Numbers in the second factor of [`Self::product`].
    fn columns(&self, [c, n, h, w]: [usize; 4]) -> usize {
        let [_, _, high, wide] = self.weight.dims();
        c * high * wide * n * self.side(0, h) * self.side(1, w)
    }

    /// Side of the output; axis 0 is the height, 1 the width.
    fn side(&self, axis: usize, side: usize) -> usize {
        (side + 2 * self.padding[axis]).saturating_sub(self.weight.dims()[2 + axis]) / self.stride + 1
    }

    /// Kernel places, from and up to, that meet the map somewhere along a side: the others only
    /// ever meet the padding.
    fn reach(&self, axis: usize, side: usize) -> std::ops::Range<usize> {
        let (k, outputs, padding) = (self.weight.dims()[2 + axis], self.side(axis, side), self.padding[axis]);
        let meets = |place: &usize| {
            let mut at = (0..outputs).map(|o| o * self.stride + place);
            at.any(|at| (padding..padding + side).contains(&at))
        };
        let places: Vec<usize> = (0..k).filter(meets).collect();
        places.first().copied().unwrap_or(0)..places.last().map_or(k, |last| last + 1)
    }

    /// One matrix product: x [in, N, H, W] → [out, N, H', W'].
    fn product(&self, x: Tensor<4>) -> Tensor<4> {
        let [c, n, h, w] = x.dims();
        let (high, wide) = (self.side(0, h), self.side(1, w));
        let [rows, columns] = [self.reach(0, h), self.reach(1, w)];
        let weight = self.weight.val();
        let [out, _, k_rows, k_columns] = weight.dims();
        let weight = if rows.len() < k_rows { weight.narrow(2, rows.start, rows.len()) } else { weight };
        let weight = if columns.len() < k_columns { weight.narrow(3, columns.start, columns.len()) } else { weight };
        let places = rows.len() * columns.len();
        let weight = weight.reshape([out, c * places]);
        // One place, moved over a map as it stands: nothing to gather.
        let as_it_is = places == 1 && (high, wide) == (h, w) && (self.stride == 1 || h * w == 1);
        let gathered = if as_it_is { x } else { self.gather(x, [rows, columns], [high, wide]) };
        let y = narrow_product(weight, gathered.reshape([c * places, n * high * wide]));
        let y = match &self.bias {
            Some(bias) => y + bias.val().reshape([out, 1]),
            None => y,
        };
        y.reshape([out, n, high, wide])
    }

    /// What each kernel place meets: x [in, N, H, W] → [in, places·N, H', W'], places outermost.
    fn gather(
        &self,
        x: Tensor<4>,
        [rows, columns]: [std::ops::Range<usize>; 2],
        [high, wide]: [usize; 2],
    ) -> Tensor<4> {
        let [c, n, _, _] = x.dims();
        let [tall, broad] = self.padding;
        let padded = if tall + broad > 0 { x.pad((broad, broad, tall, tall), PadMode::Constant(0.0)) } else { x };
        let along = |first: usize, outputs: usize| {
            let end = first + self.stride * (outputs - 1) + 1;
            Slice::new(first as isize, Some(end as isize), self.stride as isize)
        };
        let whole = |length: usize| Slice::new(0, Some(length as isize), 1);
        let mut met = Vec::with_capacity(rows.len() * columns.len());
        for row in rows {
            for column in columns.clone() {
                met.push(padded.clone().slice([whole(c), whole(n), along(row, high), along(column, wide)]));
            }
        }
        Tensor::cat(met, 1)
    }
}

/// Most numbers a gathered map may have (256 MiB): larger ones are convolved as burn does.
const MOST_COLUMNS: usize = 64 << 20;

/// Normalisation of channels by the batch in training and by running statistics otherwise (Ioffe &
/// Szegedy 2015).
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
    /// Maps to maps of the same shape, in the layout of the pass.
    pub fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let shape = x.dims();
        let [a, b, h, w] = shape;
        let [n, c, positions] = match pass.layout {
            Layout::ImageFirst => [a, b, h * w],
            Layout::ChannelFirst => [1, a, b * h * w],
        };
        let x = x.reshape([n, c, positions]);
        let (weight, bias) = (self.weight.val(), self.bias.val());
        if pass.chance.is_none() {
            let (mean, variance) = (self.running_mean.val(), self.running_var.val());
            return batch_norm(x, weight, bias, mean, variance, self.eps).reshape(shape);
        }
        let count = (n * positions) as f64;
        let normed = batch_norm_train(x, weight, bias, self.eps);
        let unbiased = normed.variance.inner() * (count / (count - 1.0).max(1.0));
        for (running, batch) in [(&self.running_mean, normed.mean.inner()), (&self.running_var, unbiased)] {
            let moved = running.val().inner() * (1.0 - self.momentum) + batch * self.momentum;
            pass.moved.push((running.id, moved));
        }
        normed.output.reshape(shape)
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
    /// x [.., in] → [.., out].
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        linear_map(x, &self.weight, self.bias.as_ref())
    }
}

/// x Wᵀ + b, the product in the format of W, which may be narrower than that of x.
pub fn linear_map<const D: usize>(
    x: Tensor<D>,
    weight: &Param<Tensor<2>>,
    bias: Option<&Param<Tensor<1>>>,
) -> Tensor<D> {
    let (wide, weight, bias) = (x.dtype(), weight.val().transpose(), bias.map(Param::val));
    if weight.dtype() == wide {
        return bounded(linear(x, weight, bias));
    }
    let y = bounded(linear(x.cast(weight.dtype()), weight, None).cast(wide));
    bias.map_or_else(|| y.clone(), |bias| y.clone() + bias.unsqueeze())
}

/// a·b in the format of a, which may be narrower than that of b.
fn narrow_product(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let (narrow, wide) = (a.dtype(), b.dtype());
    if narrow == wide { a.matmul(b) } else { a.matmul(b.cast(narrow)).cast(wide) }
}

/// The weights of convolutions and linear maps in a narrower format, for their products; gradients
/// still reach those they are made of. Positions, class tokens, norms and biases stay as they are.
pub struct Narrow<'a> {
    /// Names of all parameters.
    pub names: &'a Names,
    /// The format.
    pub dtype: DType,
}

impl ModuleMapper for Narrow<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let product = |name: &String| name.ends_with("weight") && (D == 2 || D == 4);
        if !self.names.get(&param.id).is_some_and(product) {
            return param;
        }
        Param::initialized(param.id, param.val().cast(self.dtype))
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

/// Maxima of windows of side `size`, every `stride` pixels, in either layout.
pub fn max_pool(x: Tensor<4>, size: usize, stride: usize, padding: usize) -> Tensor<4> {
    max_pool2d(x, MaxPoolOptions::new([size; 2]).with_stride([stride; 2]).with_padding([padding; 2]))
}

/// Puts the running statistics of a pass in place of the older ones.
pub struct ReplaceStatistics(pub Vec<(ParamId, Tensor<1>)>);

impl ModuleMapper for ReplaceStatistics {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(at) = self.0.iter().position(|(id, _)| *id == param.id) else { return param };
        let (_, moved) = self.0.swap_remove(at);
        param.map(|old| {
            let moved = moved.reshape(old.dims());
            if old.device().is_autodiff() { Tensor::from_inner(moved) } else { moved }
        })
    }
}
