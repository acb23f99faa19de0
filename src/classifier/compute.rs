//! What computes the layers of a network: burn's tensors on any device ([`Pass`]), or, in training on the host, our own kernels
//! ([`OnHost`]). A network that is written for [`Layers`] runs by either.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::activation::{gelu, relu, softmax};
use burn::tensor::{Device, Element, Tensor, TensorData};

use super::host::{Affine, After, Embedding, Geometry, Host, Linear as HostLinear, Maps, Statistics};
use super::layers::{BatchNorm, Conv, LayerNorm, Linear, Pass, linear_map, max_pool};
use crate::device::bounded;
use crate::kernels::Real;

/// The layers of convolutional networks and Transformers.
pub trait Layers {
    /// Maps of all images.
    type Maps: Clone;
    /// Tokens of all images.
    type Tokens: Clone;
    /// A row for every image.
    type Rows;

    /// A convolution.
    fn conv(&mut self, conv: &Conv, x: Self::Maps) -> Self::Maps;
    /// A normalisation by the batch, and what follows.
    fn batch_norm(&mut self, norm: &BatchNorm, x: Self::Maps, after: After<Self::Maps>) -> Self::Maps;
    /// a + b.
    fn add(&mut self, a: Self::Maps, b: Self::Maps) -> Self::Maps;
    /// Maxima of windows.
    fn max_pool(&mut self, x: Self::Maps, size: usize, stride: usize, padding: usize) -> Self::Maps;
    /// Means over all positions.
    fn means(&mut self, x: Self::Maps) -> Self::Rows;
    /// A linear map of rows.
    fn linear(&mut self, linear: &Linear, x: Self::Rows) -> Self::Rows;

    /// A class token and the positions of `patches`, each plus its place.
    fn embed(&mut self, patches: Self::Maps, class: &Param<Tensor<3>>, positions: &Param<Tensor<3>>) -> Self::Tokens;
    /// A normalisation of every token.
    fn layer_norm(&mut self, norm: &LayerNorm, x: Self::Tokens) -> Self::Tokens;
    /// A linear map of every token.
    fn each(&mut self, weight: &Param<Tensor<2>>, bias: Option<&Param<Tensor<1>>>, x: Self::Tokens) -> Self::Tokens;
    /// softmax(q kᵀ/√d) v of tokens [query, key, value] of so many heads.
    fn attention(&mut self, qkv: Self::Tokens, heads: usize) -> Self::Tokens;
    /// x Φ(x).
    fn gelu(&mut self, x: Self::Tokens) -> Self::Tokens;
    /// a + b.
    fn plus(&mut self, a: Self::Tokens, b: Self::Tokens) -> Self::Tokens;
    /// Of every image the first token alone.
    fn first_token(&mut self, x: Self::Tokens) -> Self::Tokens;
    /// Tokens, one an image, as rows.
    fn rows(&mut self, x: Self::Tokens) -> Self::Rows;
}

impl Layers for Pass {
    type Maps = Tensor<4>;
    type Tokens = Tensor<3>;
    type Rows = Tensor<2>;

    fn conv(&mut self, conv: &Conv, x: Tensor<4>) -> Tensor<4> {
        conv.maps(x, self)
    }

    fn batch_norm(&mut self, norm: &BatchNorm, x: Tensor<4>, after: After<Tensor<4>>) -> Tensor<4> {
        let normed = norm.forward(x, self);
        match after {
            After::Nothing => normed,
            After::Relu => relu(normed),
            After::AddRelu(other) => relu(normed + other),
        }
    }

    fn add(&mut self, a: Tensor<4>, b: Tensor<4>) -> Tensor<4> {
        a + b
    }

    fn max_pool(&mut self, x: Tensor<4>, size: usize, stride: usize, padding: usize) -> Tensor<4> {
        max_pool(x, size, stride, padding)
    }

    fn means(&mut self, x: Tensor<4>) -> Tensor<2> {
        Pass::means(self, x)
    }

    fn linear(&mut self, linear: &Linear, x: Tensor<2>) -> Tensor<2> {
        linear.forward(x)
    }

    fn embed(&mut self, patches: Tensor<4>, class: &Param<Tensor<3>>, positions: &Param<Tensor<3>>) -> Tensor<3> {
        let [n, c, h, w] = patches.dims();
        let patches = patches.reshape([n, c, h * w]).swap_dims(1, 2);
        Tensor::cat(vec![class.val().repeat_dim(0, n), patches], 1) + positions.val()
    }

    fn layer_norm(&mut self, norm: &LayerNorm, x: Tensor<3>) -> Tensor<3> {
        norm.forward(x)
    }

    fn each(&mut self, weight: &Param<Tensor<2>>, bias: Option<&Param<Tensor<1>>>, x: Tensor<3>) -> Tensor<3> {
        linear_map(x, weight, bias)
    }

    fn attention(&mut self, qkv: Tensor<3>, heads: usize) -> Tensor<3> {
        let [n, t, width] = qkv.dims();
        let size = width / 3 / heads;
        // [N, T, 3C] → [N, 3·heads, T, size]
        let qkv = qkv.reshape([n, t, 3 * heads, size]).swap_dims(1, 2);
        let part = |i: usize| qkv.clone().narrow(1, i * heads, heads);
        let scores = bounded(part(0).matmul(part(1).swap_dims(2, 3))) / (size as f64).sqrt();
        let read = softmax(scores, 3).matmul(part(2));
        read.swap_dims(1, 2).reshape([n, t, width / 3])
    }

    fn gelu(&mut self, x: Tensor<3>) -> Tensor<3> {
        gelu(x)
    }

    fn plus(&mut self, a: Tensor<3>, b: Tensor<3>) -> Tensor<3> {
        a + b
    }

    fn first_token(&mut self, x: Tensor<3>) -> Tensor<3> {
        x.narrow(1, 0, 1)
    }

    fn rows(&mut self, x: Tensor<3>) -> Tensor<2> {
        let [n, _, c] = x.dims();
        x.reshape([n, c])
    }
}

/// A network's training pass by our own kernels.
pub struct OnHost<'a, T> {
    /// Values, gradients and their memory.
    pub host: &'a mut Host<T>,
    /// Running statistics after this batch.
    pub moved: Vec<(ParamId, Tensor<1>)>,
}

/// Tokens on the host, and how many an image has.
#[derive(Debug, Clone, Copy)]
pub struct HostTokens {
    maps: Maps,
    tokens: usize,
}

/// A parameter's numbers.
fn numbers<const D: usize>(param: &Param<Tensor<D>>) -> TensorData {
    param.val().inner().into_data()
}

/// Numbers in the format of the pass: the format all parameters have.
fn of<T: Element>(data: &TensorData) -> &[T] {
    data.as_slice().unwrap_or_default()
}

impl<'a, T: Real + Element> OnHost<'a, T> {
    /// On memory that earlier passes left.
    pub fn new(host: &'a mut Host<T>) -> Self {
        Self { host, moved: Vec::new() }
    }

    /// A linear map of channels.
    fn map<const D: usize>(
        &mut self,
        x: Maps,
        weight: &Param<Tensor<D>>,
        bias: Option<&Param<Tensor<1>>>,
        geometry: Geometry,
    ) -> Maps {
        let ([outputs, inputs], id) = (std::array::from_fn(|i| weight.dims()[i]), weight.id.val());
        let data = (!self.host.loaded(id)).then(|| (numbers(weight), bias.map(numbers)));
        let given = data.as_ref().map(|(weight, bias)| (of(weight), bias.as_ref().map_or(&[][..], of)));
        let bias = bias.map(|bias| bias.id.val());
        self.host.map(x, HostLinear { weight: id, bias, size: [outputs, inputs], numbers: given }, geometry)
    }

    /// The gradients of all parameters of a network, from everything that was passed back since [`Host::begin`].
    pub fn gradients(host: &mut Host<T>, network: &impl Module) -> GradientsParams {
        let mut taken = Taken { host, grads: GradientsParams::new() };
        network.visit(&mut taken);
        taken.grads
    }
}

struct Taken<'a, T> {
    host: &'a mut Host<T>,
    grads: GradientsParams,
}

impl<T: Real + Element> ModuleVisitor for Taken<'_, T> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(values) = self.host.gradient(param.id.val()) {
            let data = TensorData::new(values, param.dims());
            self.grads.register(param.id, Tensor::<D>::from_data(data, (&Device::flex(), T::dtype())));
        }
    }
}

/// Moves a normalisation's running statistics towards those of a batch of `count` values a channel.
fn moved(norm: &BatchNorm, batch: &Statistics, count: f64) -> [(ParamId, Tensor<1>); 2] {
    let unbiased = count / (count - 1.0).max(1.0);
    let towards = |running: &Param<Tensor<1>>, batch: &[f64], factor: f64| {
        let old = running.val().inner();
        let place = (old.device(), old.dtype());
        let batch = TensorData::new(batch.iter().map(|v| v * factor).collect::<Vec<f64>>(), [batch.len()]);
        let batch = Tensor::from_data(batch, (&place.0, place.1));
        (running.id, old * (1.0 - norm.momentum) + batch * norm.momentum)
    };
    [towards(&norm.running_mean, &batch.mean, 1.0), towards(&norm.running_var, &batch.variance, unbiased)]
}

impl<T: Real + Element> Layers for OnHost<'_, T> {
    type Maps = Maps;
    type Tokens = HostTokens;
    type Rows = Maps;

    fn conv(&mut self, conv: &Conv, x: Maps) -> Maps {
        let [_, _, high, wide] = conv.weight.dims();
        let geometry = Geometry { kernel: [high, wide], stride: conv.stride, padding: conv.padding };
        self.map(x, &conv.weight, conv.bias.as_ref(), geometry)
    }

    fn batch_norm(&mut self, norm: &BatchNorm, x: Maps, after: After<Maps>) -> Maps {
        let (gain, bias) = (numbers(&norm.weight), numbers(&norm.bias));
        let parameters = [norm.weight.id.val(), norm.bias.id.val()];
        let affine = Affine { parameters, gain: of(&gain), bias: of(&bias), epsilon: norm.eps };
        let (out, batch) = self.host.batch_norm(x, affine, after);
        self.moved.extend(moved(norm, &batch, (x.side[0] * x.side[1] * x.images) as f64));
        out
    }

    fn add(&mut self, a: Maps, b: Maps) -> Maps {
        self.host.plus(a, b)
    }

    fn max_pool(&mut self, x: Maps, size: usize, stride: usize, padding: usize) -> Maps {
        self.host.max_pool(x, Geometry { kernel: [size; 2], stride, padding: [padding; 2] })
    }

    fn means(&mut self, x: Maps) -> Maps {
        self.host.means(x)
    }

    fn linear(&mut self, linear: &Linear, x: Maps) -> Maps {
        self.map(x, &linear.weight, linear.bias.as_ref(), Geometry::POINT)
    }

    fn embed(&mut self, patches: Maps, class: &Param<Tensor<3>>, positions: &Param<Tensor<3>>) -> HostTokens {
        let parameters = [class.id.val(), positions.id.val()];
        let tokens = positions.dims()[1];
        let (class, positions) = (numbers(class), numbers(positions));
        let embedding = Embedding { parameters, class: of(&class), positions: of(&positions) };
        HostTokens { maps: self.host.embed(patches, embedding), tokens }
    }

    fn layer_norm(&mut self, norm: &LayerNorm, x: HostTokens) -> HostTokens {
        let (gain, bias) = (numbers(&norm.weight), numbers(&norm.bias));
        let parameters = [norm.weight.id.val(), norm.bias.id.val()];
        let affine = Affine { parameters, gain: of(&gain), bias: of(&bias), epsilon: norm.eps };
        HostTokens { maps: self.host.layer_norm(x.maps, affine), ..x }
    }

    fn each(&mut self, weight: &Param<Tensor<2>>, bias: Option<&Param<Tensor<1>>>, x: HostTokens) -> HostTokens {
        HostTokens { maps: self.map(x.maps, weight, bias, Geometry::POINT), ..x }
    }

    fn attention(&mut self, qkv: HostTokens, heads: usize) -> HostTokens {
        HostTokens { maps: self.host.attention(qkv.maps, qkv.tokens, heads), ..qkv }
    }

    fn gelu(&mut self, x: HostTokens) -> HostTokens {
        HostTokens { maps: self.host.gelu(x.maps), ..x }
    }

    fn plus(&mut self, a: HostTokens, b: HostTokens) -> HostTokens {
        HostTokens { maps: self.host.plus(a.maps, b.maps), ..a }
    }

    fn first_token(&mut self, x: HostTokens) -> HostTokens {
        HostTokens { maps: self.host.first_tokens(x.maps, x.tokens), tokens: 1 }
    }

    fn rows(&mut self, x: HostTokens) -> Maps {
        x.maps
    }
}
