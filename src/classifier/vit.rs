//! Vision Transformer: "An Image is Worth 16x16 Words" (Dosovitskiy et al. 2021), as torchvision builds it.
//!
//! ```text
//! patches → [class token, patches] + positions → L × (x + attention(norm x), x + mlp(norm x)) → norm → class token → linear
//! ```

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::activation::{gelu, softmax};

use super::layers::{Conv, LayerNorm, Linear, linear_map};
use super::maker::{Init, Made, Maker};
use crate::data::ImageShape;

const EPS: f64 = 1e-6;

/// Size of a Vision Transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VitConfig {
    /// Side of a patch.
    pub patch: usize,
    layers: usize,
    heads: usize,
    channels: usize,
    hidden: usize,
}

impl VitConfig {
    /// ViT-B/16.
    pub const B_16: Self = Self { patch: 16, layers: 12, heads: 12, channels: 768, hidden: 3072 };
    /// A small one for images of some 32 pixels: patches of 4, 6 layers of 192 channels, 2.7 M parameters.
    pub const SMALL: Self = Self { patch: 4, layers: 6, heads: 3, channels: 192, hidden: 768 };
}

/// Multi-head self-attention with torch's packed projection.
#[derive(Module, Debug)]
struct Attention {
    /// [3C, C]
    in_proj_weight: Param<Tensor<2>>,
    /// [3C]
    in_proj_bias: Param<Tensor<1>>,
    out_proj: Linear,
    heads: usize,
}

impl Attention {
    /// x [N, T, C] → [N, T, C].
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [n, t, c] = x.dims();
        let (heads, size) = (self.heads, c / self.heads);
        let qkv = linear_map(x, &self.in_proj_weight, Some(&self.in_proj_bias));
        // [N, T, 3C] → [N, 3·heads, T, size]
        let qkv = qkv.reshape([n, t, 3 * heads, size]).swap_dims(1, 2);
        let part = |i: usize| qkv.clone().narrow(1, i * heads, heads);
        let scores = part(0).matmul(part(1).swap_dims(2, 3)) / (size as f64).sqrt();
        let read = softmax(scores, 3).matmul(part(2));
        self.out_proj.forward(read.swap_dims(1, 2).reshape([n, t, c]))
    }
}

/// x + attention, then x + MLP.
#[derive(Module, Debug)]
struct Layer {
    ln_1: LayerNorm,
    self_attention: Attention,
    ln_2: LayerNorm,
    mlp: [Linear; 2],
}

impl Layer {
    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let x = x.clone() + self.self_attention.forward(self.ln_1.forward(x));
        let [up, down] = &self.mlp;
        x.clone() + down.forward(gelu(up.forward(self.ln_2.forward(x))))
    }
}

/// All parameters of a Vision Transformer.
#[derive(Module, Debug)]
pub struct VisionTransformer {
    /// [1, 1, C]
    class_token: Param<Tensor<3>>,
    conv_proj: Conv,
    /// [1, T + 1, C]
    pos_embedding: Param<Tensor<3>>,
    layers: Vec<Layer>,
    ln: LayerNorm,
    head: Linear,
}

impl VisionTransformer {
    /// For images of a shape whose sides are multiples of the patch.
    pub fn make(maker: &mut Maker<'_>, config: VitConfig, shape: ImageShape, classes: usize) -> Made<Self> {
        let VitConfig { patch, layers, channels: c, .. } = config;
        let tokens = (shape.height / patch) * (shape.width / patch) + 1;
        let inputs = shape.channels * patch * patch;
        let from_patches = Init::TruncatedNormal((inputs as f64).sqrt().recip());
        let zero = Init::Full(0.0);
        let conv_shape = [c, shape.channels, patch, patch];
        Ok(Self {
            class_token: maker.param("class_token", [1, 1, c], zero)?,
            conv_proj: maker.biased_conv("conv_proj", conv_shape, (patch, 0), [from_patches, zero])?,
            pos_embedding: maker.param("encoder.pos_embedding", [1, tokens, c], Init::Normal(0.02))?,
            layers: (0..layers).map(|l| layer(maker, config, l)).collect::<Made<_>>()?,
            ln: maker.layer_norm("encoder.ln", c, EPS)?,
            head: maker.linear("heads.head", [classes, c], [zero; 2])?,
        })
    }

    /// x [N, C, H, W] → logits [N, K].
    pub fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let patches = self.conv_proj.forward(x);
        let [n, c, h, w] = patches.dims();
        let patches = patches.reshape([n, c, h * w]).swap_dims(1, 2);
        let class = self.class_token.val().repeat_dim(0, n);
        let x = Tensor::cat(vec![class, patches], 1) + self.pos_embedding.val();
        let x = self.layers.iter().fold(x, |x, layer| layer.forward(x));
        // Only the class token is read, so only it is normalised.
        self.head.forward(self.ln.forward(x.narrow(1, 0, 1).reshape([n, c])))
    }
}

fn layer(maker: &mut Maker<'_>, config: VitConfig, l: usize) -> Made<Layer> {
    let VitConfig { heads, channels: c, hidden, .. } = config;
    let name = format!("encoder.layers.encoder_layer_{l}");
    let attention = format!("{name}.self_attention");
    let mut mlp = |number: usize, out: usize, input: usize| {
        let init = [Init::xavier_uniform(input, out), Init::Normal(1e-6)];
        maker.linear(&format!("{name}.mlp.{number}"), [out, input], init)
    };
    let mlp = [mlp(0, hidden, c)?, mlp(3, c, hidden)?];
    let zero = Init::Full(0.0);
    Ok(Layer {
        ln_1: maker.layer_norm(&format!("{name}.ln_1"), c, EPS)?,
        self_attention: Attention {
            in_proj_weight: maker.param(
                &format!("{attention}.in_proj_weight"),
                [3 * c, c],
                Init::xavier_uniform(c, 3 * c),
            )?,
            in_proj_bias: maker.param(&format!("{attention}.in_proj_bias"), [3 * c], zero)?,
            out_proj: maker.linear(&format!("{attention}.out_proj"), [c, c], [Init::fan_in(c), zero])?,
            heads,
        },
        ln_2: maker.layer_norm(&format!("{name}.ln_2"), c, EPS)?,
        mlp,
    })
}
