//! TarFlow: "Normalizing Flows are Capable Generative Models" (Zhai et al. 2025), the oracle of
//! "Beyond the Loss Curve" (BLC, App. B).
//!
//! ```text
//! x ─patchify→ [N, T, P] ─block 0→ ─block 1 (tokens flipped)→ ─block 2→ … ─→ z ~ N(0, τ²·diag(var))
//! ```
//!
//! A block is a causal Transformer over the T patches of an image. From patches 0 … t − 1 (and the
//! class) it predicts a log-scale a_t and a shift b_t for patch t, and maps
//!
//! ```text
//! forward:  z_0 = x_0,   z_t = (x_t − b_t) e^{−a_t},   log |det| = −Σ_t Σ_d a_td
//! inverse:  x_0 = z_0,   x_t = z_t e^{a_t} + b_t,   one t after the other
//! ```
//!
//! Odd blocks read the patches in reverse order. Volume-preserving blocks (VP) have a = 0; then
//! `var`, the variance of the base distribution, is learned as a moving average. A dropped label
//! stands for the mean of all class embeddings.
//!
//! Deviations from the paper's code: log-determinants and losses are sums over dimensions in nats,
//! not means; `var` enters the density as it enters sampling; class −1 is not an index but `None`.

mod config;
pub mod cpu;
pub mod engine;
mod evidence;
mod guided;
mod kv_cache;
mod map;
mod mask;
mod oracle;
mod parameters;
mod patches;
mod plan;
mod resident;
mod shared;
mod solve;
mod tensors;

use burn::module::{Module, Param};
use burn::tensor::activation::softmax;
use burn::tensor::module::{layer_norm, linear};
use burn::tensor::{DType, Tensor};

use crate::device::{bounded, full_precision_matmul, gelu};
use crate::units::ClassId;

pub use config::TarFlowConfig;
use kv_cache::Context;
use mask::Mask;
pub use oracle::TarFlowOracle;
pub use parameters::MEANS;
pub use shared::SharedTarFlow;
pub use tensors::TensorTarFlow;

/// Channels of one attention head; fixed in the paper's code.
pub const HEAD: usize = 64;
/// Width of an MLP's hidden layer over that of its input.
pub const EXPANSION: usize = 4;
/// Variance floor of the layer normalisations (PyTorch's default).
pub const NORM_EPS: f64 = 1e-5;

/// The class a pass is conditioned on: its embedding, or with `None` ("no class", a dropped label)
/// the mean of all.
pub type Condition = Option<ClassId>;

// ---------------------------------------------------------------------------------------------------------------------
// Layers, from the inside out. Field names are those of the public checkpoints (`main.0` and
// `main.2` of an MLP are `up` and `down`).

/// Layer normalisation over the channels, in f32 or better whatever the products use.
#[derive(Module, Debug)]
pub struct Norm {
    /// [C]
    weight: Param<Tensor<1>>,
    /// [C]
    bias: Param<Tensor<1>>,
}

impl Norm {
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        layer_norm(x, self.weight.val(), Some(self.bias.val()), NORM_EPS)
    }
}

/// x Wᵀ + b. The product is computed in the format of W, which may be narrower than that of x.
#[derive(Module, Debug)]
pub struct Linear {
    /// [out, in]
    weight: Param<Tensor<2>>,
    /// [out]
    bias: Param<Tensor<1>>,
}

impl Linear {
    /// x [N, M, in] → [N, M, out].
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let (format, weight, bias) = (x.dtype(), self.weight.val(), self.bias.val());
        let narrow = weight.dtype();
        if narrow == format {
            return bounded(full_precision_matmul::linear(x, weight, bias));
        }
        bounded(linear(x.cast(narrow), weight.transpose(), None).cast(format)) + bias.unsqueeze()
    }

    /// The same map with its product in another format; gradients still reach the weight.
    fn narrowed(&self, dtype: DType) -> Self {
        let weight = self.weight.val().cast(dtype);
        Self { weight: Param::initialized(self.weight.id, weight), bias: self.bias.clone() }
    }
}

/// Multi-head causal self-attention.
#[derive(Module, Debug)]
pub struct Attention {
    norm: Norm,
    qkv: Linear,
    proj: Linear,
}

impl Attention {
    /// x [N, M, C] → x + attention, [N, M, C].
    fn forward(&self, x: Tensor<3>, layer: usize, context: &mut Context<'_>) -> Tensor<3> {
        let [n, m, c] = x.dims();
        let heads = c / HEAD;
        // [N, M, 3C] → [3·heads, …] → q, k, v [N, heads, M, 64]
        let qkv = self.qkv.forward(self.norm.forward(x.clone())).reshape([n, m, 3 * heads, HEAD]).swap_dims(1, 2);
        let part = |i: usize| qkv.clone().narrow(1, i * heads, heads);
        let (k, v) = context.extend(layer, part(1), part(2));
        let scale = 1.0 / ((HEAD as f64).sqrt() * context.temperature);
        let scores = bounded(full_precision_matmul::matmul(part(0), k.swap_dims(2, 3))) * scale + context.mask.like(&x);
        let read = full_precision_matmul::matmul(softmax(scores, 3), v);
        x + self.proj.forward(read.swap_dims(1, 2).reshape([n, m, c]))
    }
}

/// Two linear maps with an exact (erf) GELU between.
#[derive(Module, Debug)]
pub struct Mlp {
    norm: Norm,
    up: Linear,
    down: Linear,
}

impl Mlp {
    /// x [N, M, C] → x + MLP, [N, M, C].
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let hidden = gelu(self.up.forward(self.norm.forward(x.clone())));
        x + self.down.forward(hidden)
    }
}

/// One Transformer layer: x + attention, then x + MLP.
#[derive(Module, Debug)]
pub struct Layer {
    attention: Attention,
    mlp: Mlp,
}

/// One autoregressive block.
#[derive(Module, Debug)]
pub struct Block {
    proj_in: Linear,
    /// [T, C], in the order of the image.
    pos_embed: Param<Tensor<2>>,
    /// [K, 1, C]; none in an unconditional flow.
    class_embed: Option<Param<Tensor<3>>>,
    attn_blocks: Vec<Layer>,
    /// Its output for token t is used for token t + 1.
    proj_out: Linear,
}

impl Block {
    /// What the block predicts for the token after each of `x` [N, M, P]: [N, M, outputs], see
    /// [`parts`]. `places` [N or 1, T, C] are positions and class ([`Self::places`]).
    fn predict(&self, x: Tensor<3>, places: &Tensor<3>, context: &mut Context<'_>) -> Tensor<3> {
        let m = x.dims()[1];
        let mut h = places.clone().narrow(1, context.first, m) + self.proj_in.forward(x);
        for (l, layer) in self.attn_blocks.iter().enumerate() {
            h = layer.attention.forward(h, l, context);
            h = layer.mlp.forward(h);
        }
        self.proj_out.forward(h)
    }

    /// What is added to every token's embedding: its position, in the order in which the block
    /// reads, and the class. [1, T, C], or [N, T, C] with classes given as mixing weights [N, K].
    fn places(&self, classes: Option<&Tensor<2>>, flipped: bool) -> Tensor<3> {
        let positions = self.pos_embed.val();
        let positions = if flipped { positions.flip([0]) } else { positions }.unsqueeze();
        match self.embedding(classes) {
            Some(embedding) => positions + embedding,
            None => positions,
        }
    }

    /// Embedding [N, 1, C] of classes given as mixing weights [N, K].
    fn embedding(&self, classes: Option<&Tensor<2>>) -> Option<Tensor<3>> {
        let (embed, classes) = (self.class_embed.as_ref()?.val(), classes?);
        let [k, _, c] = embed.dims();
        Some(full_precision_matmul::matmul(classes.clone(), embed.reshape([k, c])).unsqueeze_dim(1))
    }

    /// Log-scale a (none in VP) and shift b of every token of x [N, T, P], both in the block's own
    /// order.
    fn parameters(&self, x: &Tensor<3>, classes: Option<&Tensor<2>>, flipped: bool) -> (Option<Tensor<3>>, Tensor<3>) {
        let [_, t, p] = x.dims();
        let mask = Mask::new(0..t, t);
        let mut context = Context::of_all_tokens(&mask);
        let (a, b) = parts(self.predict(x.clone(), &self.places(classes, flipped), &mut context), p);
        // The prediction made at token t is for token t + 1; token 0 stays as it is.
        let later = |v: Tensor<3>| Tensor::cat(vec![v.zeros_like().narrow(1, 0, 1), v.narrow(1, 0, t - 1)], 1);
        (a.map(later), later(b))
    }

    /// x [N, T, P] → z and −Σ_d a_td [N, T] (none in VP): z_t = (x_t − b_t) e^{−a_t}. The inverse
    /// is [`Block::invert`].
    fn forward(&self, x: Tensor<3>, classes: Option<&Tensor<2>>, flipped: bool) -> (Tensor<3>, Option<Tensor<2>>) {
        let turn = |x: Tensor<3>| if flipped { x.flip([1]) } else { x };
        let x = turn(x);
        let [n, t, _] = x.dims();
        let (a, b) = self.parameters(&x, classes, flipped);
        let z = normalise(x, a.as_ref(), b);
        let log_det = a.map(|a| turn(-a.sum_dim(2)).reshape([n, t]));
        (turn(z), log_det)
    }

    /// a of every token of x [N, T, P], in the order of the image; zeros in VP.
    fn log_scales(&self, x: Tensor<3>, classes: Option<&Tensor<2>>, flipped: bool) -> Tensor<3> {
        let turn = |x: Tensor<3>| if flipped { x.flip([1]) } else { x };
        let x = turn(x);
        let (a, _) = self.parameters(&x, classes, flipped);
        turn(a.unwrap_or_else(|| x.zeros_like()))
    }
}

/// All parameters of a TarFlow.
#[derive(Module, Debug)]
pub struct TarFlow {
    /// Variance of the base distribution, [T, P]: ones in NVP, a moving average of z² in VP. Never
    /// trained by gradients.
    pub var: Param<Tensor<2>>,
    /// Class means of the base distribution, [K, T, P], where one map serves all classes.
    pub means: Option<Param<Tensor<3>>>,
    /// From x to z.
    pub blocks: Vec<Block>,
}

impl TarFlow {
    /// x [N, T, P] → z and Σ_blocks −Σ_d a_td [N, T]. `classes` are mixing weights of the
    /// embeddings, [N, K].
    pub fn encode(&self, x: Tensor<3>, classes: Option<&Tensor<2>>) -> (Tensor<3>, Tensor<2>) {
        let [n, t, _] = x.dims();
        let none = Tensor::zeros([n, t], (&x.device(), x.dtype()));
        let (z, log_dets) = self.encode_by_blocks(x, classes);
        (z, log_dets.into_iter().fold(none, |total, log_det| total + log_det))
    }

    /// x [N, T, P] → z and −Σ_d a_td [N, T] of each block; none of VP blocks.
    pub fn encode_by_blocks(&self, x: Tensor<3>, classes: Option<&Tensor<2>>) -> (Tensor<3>, Vec<Tensor<2>>) {
        self.blocks.iter().enumerate().fold((x, Vec::new()), |(x, mut log_dets), (b, block)| {
            let (z, log_det) = block.forward(x, classes, b % 2 == 1);
            log_dets.extend(log_det);
            (z, log_dets)
        })
    }

    /// The same flow with the linear maps' products in another format; norms, softmax and sums stay
    /// as they are.
    pub fn narrowed(&self, dtype: DType) -> Self {
        let layer = |layer: &Layer| Layer {
            attention: Attention {
                norm: layer.attention.norm.clone(),
                qkv: layer.attention.qkv.narrowed(dtype),
                proj: layer.attention.proj.narrowed(dtype),
            },
            mlp: Mlp {
                norm: layer.mlp.norm.clone(),
                up: layer.mlp.up.narrowed(dtype),
                down: layer.mlp.down.narrowed(dtype),
            },
        };
        let blocks = self
            .blocks
            .iter()
            .map(|block| Block { attn_blocks: block.attn_blocks.iter().map(layer).collect(), ..block.clone() });
        Self { var: self.var.clone(), means: self.means.clone(), blocks: blocks.collect() }
    }
}

/// Log-scale a (none in VP) and shift b, [N, M, P] each, of what a block predicts.
fn parts(predicted: Tensor<3>, p: usize) -> (Option<Tensor<3>>, Tensor<3>) {
    let width = predicted.dims()[2];
    let scale = (width == 2 * p).then(|| predicted.clone().narrow(2, 0, p));
    (scale, predicted.narrow(2, width - p, p))
}

/// z = (x − b) e^{−a}, token by token.
fn normalise(x: Tensor<3>, a: Option<&Tensor<3>>, b: Tensor<3>) -> Tensor<3> {
    match a {
        None => x - b,
        Some(a) => (x - b) * (-a.clone()).exp(),
    }
}

/// x = z e^a + b, token by token: the inverse of [`normalise`].
fn denormalise(z: Tensor<3>, a: Option<Tensor<3>>, b: Tensor<3>) -> Tensor<3> {
    match a {
        None => z + b,
        Some(a) => z * a.exp() + b,
    }
}
