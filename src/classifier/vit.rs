//! Vision Transformer: "An Image is Worth 16x16 Words" (Dosovitskiy et al. 2021), as torchvision builds it.
//!
//! ```text
//! patches → [class token, patches] + positions → L × (x + attention(norm x), x + mlp(norm x)) → norm → class token → linear
//! ```

use burn::module::{Module, Param};
use burn::tensor::module::interpolate;
use burn::tensor::ops::{InterpolateMode, InterpolateOptions};
use burn::tensor::{Device, Tensor, TensorData};

use super::compute::Layers;
use super::layers::{Conv, LayerNorm, Linear};
use super::maker::{Init, Made, Maker};
use crate::data::ImageShape;
use crate::error::Result;
use crate::flow::parameters::to_host;
use crate::flow::weights::HostTensor;

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
    fn forward<L: Layers>(&self, x: L::Tokens, layers: &mut L) -> L::Tokens {
        let qkv = layers.each(&self.in_proj_weight, Some(&self.in_proj_bias), x);
        let read = layers.attention(qkv, self.heads);
        layers.each(&self.out_proj.weight, self.out_proj.bias.as_ref(), read)
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
    fn forward<L: Layers>(&self, x: L::Tokens, layers: &mut L) -> L::Tokens {
        let h = layers.layer_norm(&self.ln_1, x.clone());
        let h = self.self_attention.forward(h, layers);
        let x = layers.plus(x, h);
        let [up, down] = &self.mlp;
        let h = layers.layer_norm(&self.ln_2, x.clone());
        let h = layers.each(&up.weight, up.bias.as_ref(), h);
        let h = layers.gelu(h);
        let h = layers.each(&down.weight, down.bias.as_ref(), h);
        layers.plus(x, h)
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
    /// [K, channels]
    pub head: Linear,
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
            pos_embedding: maker.param(POSITIONS, [1, tokens, c], Init::Normal(0.02))?,
            layers: (0..layers).map(|l| layer(maker, config, l)).collect::<Made<_>>()?,
            ln: maker.layer_norm("encoder.ln", c, EPS)?,
            head: maker.linear("heads.head", [classes, c], [zero; 2])?,
        })
    }

    /// x [N, C, H, W] → what `head` reads, [N, channels].
    pub fn features<L: Layers>(&self, x: L::Maps, layers: &mut L) -> L::Rows {
        let patches = layers.conv(&self.conv_proj, x);
        let x = layers.embed(patches, &self.class_token, &self.pos_embedding);
        let x = self.layers.iter().fold(x, |x, layer| layer.forward(x, layers));
        // Only the class token is read, so only it is normalised.
        let x = layers.first_token(x);
        let x = layers.layer_norm(&self.ln, x);
        layers.rows(x)
    }

    /// Tokens of an image.
    pub fn tokens(&self) -> usize {
        self.pos_embedding.dims()[1]
    }
}

/// Name of the positions among a Vision Transformer's arrays.
pub const POSITIONS: &str = "encoder.pos_embedding";

/// Positions [1, T + 1, C] of a network for other, square images, for a grid of `rows` by `columns` patches: resampled bicubically
/// with the corners kept, as torchvision's `interpolate_embeddings` does. As they are where they fit or are no square grid.
///
/// # Errors
/// Never on the CPU, where it is computed.
pub fn resample_positions(positions: HostTensor, [rows, columns]: [usize; 2]) -> Result<HostTensor> {
    let [1, tokens, c] = positions.shape[..] else { return Ok(positions) };
    let patches = tokens.saturating_sub(1);
    let side = patches.isqrt();
    if patches == rows * columns || side < 2 || side * side != patches {
        return Ok(positions);
    }
    let (class, grid) = positions.values.split_at(c);
    let data = TensorData::new(grid.to_vec(), [1, side, side, c]);
    let grid: Tensor<4> = Tensor::from_data(data, &Device::flex());
    let bicubic = InterpolateOptions::new(InterpolateMode::Bicubic).with_align_corners(true);
    let grid = interpolate(grid.permute([0, 3, 1, 2]), bicubic.with_output_size([rows, columns]));
    // [1, C, rows, columns] → [1, rows, columns, C]
    let grid = to_host(grid.permute([0, 2, 3, 1]))?.into_iter().map(|v| v as f32);
    Ok(HostTensor::new([1, rows * columns + 1, c], class.iter().copied().chain(grid).collect()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_resampled_as_torch_resamples() {
        // A class token and a grid of 3 × 3 whose rows are 1, 2 and 4, in two channels, the second the negative of the first.
        let rows = [1.0, 2.0, 4.0f32];
        let values: Vec<f32> = [9.0, -9.0].into_iter().chain(rows.iter().flat_map(|v| [*v, -v].repeat(3))).collect();
        let positions = HostTensor::new([1, 10, 2], values);
        let larger = resample_positions(positions.clone(), [5, 2]).unwrap();
        assert_eq!(larger.shape, [1, 11, 2]);
        // Half way between two points torch weighs four of them by −3/32, 19/32, 19/32 and −3/32, the border repeated.
        let expected = [1.0, 1.3125, 2.0, 3.09375, 4.0].into_iter().flat_map(|v| [v, -v].repeat(2));
        let expected: Vec<f32> = [9.0, -9.0].into_iter().chain(expected).collect();
        assert!(larger.values.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}", larger.values);
        assert_eq!(resample_positions(positions.clone(), [3, 3]).unwrap(), positions);
        // Eight patches are no square.
        let odd = HostTensor::new([1, 9, 1], vec![0.5; 9]);
        assert_eq!(resample_positions(odd.clone(), [4, 4]).unwrap(), odd);
    }
}
