//! What computes the layers of a network: burn's tensors on any device ([`Pass`]), or our own
//! kernels on the CPU ([`CpuLayers`]), in training and for answers. A network that is written for
//! [`Layers`] runs by either.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Element, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use super::cpu::{Affine, After, Embedding, Geometry, LayerParameters, Linear as CpuLinear, Maps, Statistics, Tape};
use super::layers::{BatchNorm, Conv, LayerNorm, Linear, Pass, dropped, max_pool};
use super::transformer::{EPS, EncoderLayer};
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
    /// A normalisation by the batch, or by running statistics outside of training, and what follows.
    fn batch_norm(&mut self, norm: &BatchNorm, x: Self::Maps, after: After<Self::Maps>) -> Self::Maps;
    /// ReLU of maps.
    fn relu(&mut self, x: Self::Maps) -> Self::Maps;
    /// a + b.
    fn add(&mut self, a: Self::Maps, b: Self::Maps) -> Self::Maps;
    /// Maxima of windows.
    fn max_pool(&mut self, x: Self::Maps, size: usize, stride: usize, padding: usize) -> Self::Maps;
    /// Means over all positions.
    fn means(&mut self, x: Self::Maps) -> Self::Rows;
    /// All values of an image as its row, [C·H·W].
    fn flatten(&mut self, x: Self::Maps) -> Self::Rows;
    /// ReLU of rows.
    fn relu_rows(&mut self, x: Self::Rows) -> Self::Rows;
    /// In training every value is 0 with probability `p`, and the others grow by 1/(1 − p).
    fn dropout(&mut self, x: Self::Rows, p: f64) -> Self::Rows;
    /// A normalisation of every row.
    fn layer_norm(&mut self, norm: &LayerNorm, x: Self::Rows) -> Self::Rows;
    /// A linear map of rows.
    fn linear(&mut self, linear: &Linear, x: Self::Rows) -> Self::Rows;

    /// A class token and the positions of `patches`, each plus its place.
    fn embed(&mut self, patches: Self::Maps, class: &Param<Tensor<3>>, positions: &Param<Tensor<3>>) -> Self::Tokens;
    /// A layer of a Transformer's encoder.
    fn encoder_layer(&mut self, layer: &EncoderLayer, x: Self::Tokens) -> Self::Tokens;
    /// The first token of every image behind such a layer, of whose result nothing else is read.
    fn last_encoder_layer(&mut self, layer: &EncoderLayer, x: Self::Tokens) -> Self::Rows;
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

    fn relu(&mut self, x: Tensor<4>) -> Tensor<4> {
        relu(x)
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

    fn flatten(&mut self, x: Tensor<4>) -> Tensor<2> {
        Pass::flatten(self, x)
    }

    fn relu_rows(&mut self, x: Tensor<2>) -> Tensor<2> {
        relu(x)
    }

    fn dropout(&mut self, x: Tensor<2>, p: f64) -> Tensor<2> {
        Pass::dropout(self, x, p)
    }

    fn linear(&mut self, linear: &Linear, x: Tensor<2>) -> Tensor<2> {
        linear.forward(x)
    }

    fn embed(&mut self, patches: Tensor<4>, class: &Param<Tensor<3>>, positions: &Param<Tensor<3>>) -> Tensor<3> {
        let [n, c, h, w] = patches.dims();
        let patches = patches.reshape([n, c, h * w]).swap_dims(1, 2);
        Tensor::cat(vec![class.val().repeat_dim(0, n), patches], 1) + positions.val()
    }

    fn layer_norm(&mut self, norm: &LayerNorm, x: Tensor<2>) -> Tensor<2> {
        norm.forward(x)
    }

    fn encoder_layer(&mut self, layer: &EncoderLayer, x: Tensor<3>) -> Tensor<3> {
        layer.forward(x)
    }

    fn last_encoder_layer(&mut self, layer: &EncoderLayer, x: Tensor<3>) -> Tensor<2> {
        let [n, _, c] = x.dims();
        layer.forward(x).narrow(1, 0, 1).reshape([n, c])
    }
}

/// A network's pass by our own kernels.
pub struct CpuLayers<'a, T> {
    /// Values, gradients and their memory.
    pub tape: &'a mut Tape<T>,
    /// Draws dropped units; none outside of training.
    chance: Option<ChaCha8Rng>,
    /// Running statistics after this batch.
    pub moved: Vec<(ParamId, Tensor<1>)>,
}

/// Tokens on the tape, and how many an image has.
#[derive(Debug, Clone, Copy)]
pub struct CpuTokens {
    maps: Maps,
    tokens: usize,
}

/// A parameter's numbers.
fn numbers<const D: usize>(param: &Param<Tensor<D>>) -> TensorData {
    let value = param.val();
    if value.device().is_autodiff() { value.inner() } else { value }.into_data()
}

/// Numbers in the format of the pass: the format all parameters have.
fn of<T: Element>(data: &TensorData) -> &[T] {
    data.as_slice().unwrap_or_default()
}

impl<'a, T: Real + Element> CpuLayers<'a, T> {
    /// In training, on memory that earlier passes left.
    pub fn training(tape: &'a mut Tape<T>, chance: ChaCha8Rng) -> Self {
        Self { tape, chance: Some(chance), moved: Vec::new() }
    }

    /// As the network is: running statistics, nothing dropped.
    pub fn evaluation(tape: &'a mut Tape<T>) -> Self {
        Self { tape, chance: None, moved: Vec::new() }
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
        let data = (!self.tape.loaded(id)).then(|| (numbers(weight), bias.map(numbers)));
        let given = data.as_ref().map(|(weight, bias)| (of(weight), bias.as_ref().map_or(&[][..], of)));
        let bias = bias.map(|bias| bias.id.val());
        self.tape.map(x, CpuLinear { weight: id, bias, size: [outputs, inputs], numbers: given }, geometry)
    }

    /// The gradients of all parameters of a network, from everything that was passed back since
    /// [`Tape::begin`].
    pub fn gradients(tape: &mut Tape<T>, network: &impl Module) -> GradientsParams {
        let mut taken = GradientCollector { tape, grads: GradientsParams::new() };
        network.visit(&mut taken);
        taken.grads
    }
}

/// Identities of a module's parameters, in the order of its fields, and their numbers if they are
/// to be read.
struct Parameters {
    read: bool,
    ids: Vec<u64>,
    numbers: Vec<TensorData>,
}

impl ModuleVisitor for Parameters {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.ids.push(param.id.val());
        self.numbers.extend(self.read.then(|| numbers(param)));
    }
}

impl Parameters {
    /// Those of a layer; `read` is whether their numbers are wanted.
    fn of(layer: &EncoderLayer, read: bool) -> Self {
        let mut found = Self { read, ids: Vec::new(), numbers: Vec::new() };
        layer.visit(&mut found);
        found
    }

    /// As the tape takes them.
    fn of_layer<T: Element>(&self) -> LayerParameters<'_, T> {
        let numbers = self.read.then(|| std::array::from_fn(|i| of(&self.numbers[i])));
        LayerParameters { ids: std::array::from_fn(|i| self.ids[i]), numbers, epsilon: EPS }
    }
}

struct GradientCollector<'a, T> {
    tape: &'a mut Tape<T>,
    grads: GradientsParams,
}

impl<T: Real + Element> ModuleVisitor for GradientCollector<'_, T> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(values) = self.tape.gradient(param.id.val()) {
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

impl<T: Real + Element> Layers for CpuLayers<'_, T> {
    type Maps = Maps;
    type Tokens = CpuTokens;
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
        if self.chance.is_none() {
            let wide = |param: &Param<Tensor<1>>| numbers(param).iter::<f64>().collect();
            let running = Statistics { mean: wide(&norm.running_mean), variance: wide(&norm.running_var) };
            return self.tape.norm_by(x, affine, &running, after);
        }
        let (out, batch) = self.tape.batch_norm(x, affine, after);
        self.moved.extend(moved(norm, &batch, (x.side[0] * x.side[1] * x.images) as f64));
        out
    }

    fn relu(&mut self, x: Maps) -> Maps {
        self.tape.relu(x)
    }

    fn add(&mut self, a: Maps, b: Maps) -> Maps {
        self.tape.add(a, b)
    }

    fn max_pool(&mut self, x: Maps, size: usize, stride: usize, padding: usize) -> Maps {
        self.tape.max_pool(x, Geometry { kernel: [size; 2], stride, padding: [padding; 2] })
    }

    fn means(&mut self, x: Maps) -> Maps {
        self.tape.means(x)
    }

    fn flatten(&mut self, x: Maps) -> Maps {
        self.tape.flatten(x)
    }

    fn relu_rows(&mut self, x: Maps) -> Maps {
        self.tape.relu(x)
    }

    fn dropout(&mut self, x: Maps, p: f64) -> Maps {
        let Some(chance) = self.chance.as_mut().filter(|_| p > 0.0) else { return x };
        let factors = dropped(chance, x.images * x.channels, p);
        self.tape.multiply(x, &factors)
    }

    fn layer_norm(&mut self, norm: &LayerNorm, x: Maps) -> Maps {
        let (gain, bias) = (numbers(&norm.weight), numbers(&norm.bias));
        let parameters = [norm.weight.id.val(), norm.bias.id.val()];
        let affine = Affine { parameters, gain: of(&gain), bias: of(&bias), epsilon: norm.eps };
        self.tape.layer_norm(x, affine)
    }

    fn linear(&mut self, linear: &Linear, x: Maps) -> Maps {
        self.map(x, &linear.weight, linear.bias.as_ref(), Geometry::POINT)
    }

    fn embed(&mut self, patches: Maps, class: &Param<Tensor<3>>, positions: &Param<Tensor<3>>) -> CpuTokens {
        let parameters = [class.id.val(), positions.id.val()];
        let tokens = positions.dims()[1];
        let (class, positions) = (numbers(class), numbers(positions));
        let embedding = Embedding { parameters, class: of(&class), positions: of(&positions) };
        CpuTokens { maps: self.tape.embed(patches, embedding), tokens }
    }

    fn encoder_layer(&mut self, layer: &EncoderLayer, x: CpuTokens) -> CpuTokens {
        let found = Parameters::of(layer, !self.tape.layer_loaded(layer.id()));
        CpuTokens { maps: self.tape.transformer(x.maps, x.tokens, found.of_layer()), ..x }
    }

    fn last_encoder_layer(&mut self, layer: &EncoderLayer, x: CpuTokens) -> Maps {
        let found = Parameters::of(layer, !self.tape.layer_loaded(layer.id()));
        self.tape.transformer_first(x.maps, x.tokens, found.of_layer())
    }
}
