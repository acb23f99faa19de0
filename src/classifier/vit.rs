//! Vision Transformer: "An Image is Worth 16x16 Words" (Dosovitskiy et al. 2021), as torchvision
//! builds it.
//!
//! ```text
//! patches → [class token, patches] + positions → L × (x + attention(norm x), x + mlp(norm x)) → norm → class token → linear
//! ```

use burn::module::{Module, Param};
use burn::tensor::module::interpolate;
use burn::tensor::ops::{InterpolateMode, InterpolateOptions};
use burn::tensor::{Device, Tensor, TensorData};

use super::compute::Layers;
use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{Conv, LayerNorm, Linear, Pass};
use super::transformer::{EPS, EncoderLayer};
use crate::data::ImageShape;
use crate::error::Result;
use crate::flow::parameters::to_host;
use crate::flow::weights::HostTensor;

/// Size of a Vision Transformer.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Side of a patch.
    patch: usize,
    layers: usize,
    channels: usize,
    /// Channels in the MLPs.
    hidden: usize,
}

const SMALL: Size = Size { patch: 4, layers: 6, channels: 192, hidden: 768 };
const B_16: Size = Size { patch: 16, layers: 12, channels: 768, hidden: 3072 };

/// A small one for images of some 32 pixels: patches of 4, 6 layers of 192 channels, 2.7 M
/// parameters.
pub const VIT_SMALL: Descriptor<VisionTransformer> = Descriptor {
    name: "vit-small",
    label: "ViT-small",
    head: "heads.head",
    side: Side::MultipleOf(SMALL.patch),
    build: |builder, shape, classes| VisionTransformer::new(builder, SMALL, shape, classes),
};

/// ViT-B/16.
pub const VIT_B_16: Descriptor<VisionTransformer> = Descriptor {
    name: "vit-b-16",
    label: "ViT-B/16",
    head: "heads.head",
    side: Side::MultipleOf(B_16.patch),
    build: |builder, shape, classes| VisionTransformer::new(builder, B_16, shape, classes),
};

/// All parameters of a Vision Transformer.
#[derive(Module, Debug)]
pub struct VisionTransformer {
    /// [1, 1, C]
    class_token: Param<Tensor<3>>,
    conv_proj: Conv,
    /// [1, T + 1, C]
    pos_embedding: Param<Tensor<3>>,
    layers: Vec<EncoderLayer>,
    ln: LayerNorm,
    /// [K, channels]
    pub head: Linear,
}

impl VisionTransformer {
    /// For images of a shape whose sides are multiples of the patch.
    fn new(builder: &mut ParamBuilder<'_>, size: Size, shape: ImageShape, classes: usize) -> InitResult<Self> {
        let Size { patch, layers, channels: c, hidden } = size;
        let tokens = (shape.height / patch) * (shape.width / patch) + 1;
        let inputs = shape.channels * patch * patch;
        let from_patches = Init::TruncatedNormal((inputs as f64).sqrt().recip());
        let zero = Init::Full(0.0);
        let conv_shape = [c, shape.channels, patch, patch];
        Ok(Self {
            class_token: builder.param("class_token", [1, 1, c], zero)?,
            conv_proj: builder.biased_conv("conv_proj", conv_shape, (patch, 0), [from_patches, zero])?,
            pos_embedding: builder.param(POSITIONS, [1, tokens, c], Init::Normal(0.02))?,
            layers: (0..layers).map(|l| EncoderLayer::new(builder, l, [c, hidden])).collect::<InitResult<_>>()?,
            ln: builder.layer_norm("encoder.ln", c, EPS)?,
            head: builder.linear("heads.head", [classes, c], [zero; 2])?,
        })
    }

    /// x [N, C, H, W] → what `head` reads, [N, channels].
    fn run<L: Layers>(&self, x: L::Maps, layers: &mut L) -> L::Rows {
        let patches = layers.conv(&self.conv_proj, x);
        let x = layers.embed(patches, &self.class_token, &self.pos_embedding);
        let last = self.layers.len() - 1;
        let x = self.layers[..last].iter().fold(x, |x, layer| layers.encoder_layer(layer, x));
        // Only the class token is read, so only it is normalised.
        let x = layers.last_encoder_layer(&self.layers[last], x);
        layers.layer_norm(&self.ln, x)
    }
}

impl Backbone for VisionTransformer {
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        self.run(x, pass)
    }

    fn head(&self) -> &Linear {
        &self.head
    }

    fn features_by<L: Layers>(&self, x: L::Maps, layers: &mut L) -> Option<L::Rows> {
        Some(self.run(x, layers))
    }

    fn tokens(&self) -> Option<usize> {
        Some(self.pos_embedding.dims()[1])
    }
}

/// Name of the positions among a Vision Transformer's arrays.
pub const POSITIONS: &str = "encoder.pos_embedding";

/// Positions [1, T + 1, C] of a network for other, square images, for a grid of `rows` by `columns`
/// patches: resampled bicubically with the corners kept, as torchvision's `interpolate_embeddings`
/// does. As they are where they fit or are no square grid.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_resampled_as_torch_resamples() {
        // A class token and a grid of 3 × 3 whose rows are 1, 2 and 4, in two channels, the second
        // the negative of the first.
        let rows = [1.0, 2.0, 4.0f32];
        let values: Vec<f32> = [9.0, -9.0].into_iter().chain(rows.iter().flat_map(|v| [*v, -v].repeat(3))).collect();
        let positions = HostTensor::new([1, 10, 2], values);
        let larger = resample_positions(positions.clone(), [5, 2]).unwrap();
        assert_eq!(larger.shape, [1, 11, 2]);
        // Half way between two points torch weighs four of them by −3/32, 19/32, 19/32 and −3/32,
        // the border repeated.
        let expected = [1.0, 1.3125, 2.0, 3.09375, 4.0].into_iter().flat_map(|v| [v, -v].repeat(2));
        let expected: Vec<f32> = [9.0, -9.0].into_iter().chain(expected).collect();
        assert!(larger.values.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}", larger.values);
        assert_eq!(resample_positions(positions.clone(), [3, 3]).unwrap(), positions);
        // Eight patches are no square.
        let odd = HostTensor::new([1, 9, 1], vec![0.5; 9]);
        assert_eq!(resample_positions(odd.clone(), [4, 4]).unwrap(), odd);
    }
}
