//! ConvNeXt-Tiny: "A ConvNet for the 2020s" (Liu et al. 2022), as torchvision builds it.
//!
//! ```text
//! conv 4×4 /4 → norm → 4 stages of blocks (96, 192, 384, 768 channels), between them norm → conv 2×2 /2 → mean → norm → linear
//! block: x + scale · linear(GELU(linear(norm(depthwise conv 7×7 x))))
//! ```

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{Conv, LayerNorm, Linear, Pass, channels_first, channels_last};
use crate::device::gelu;

const WIDTHS: [usize; 4] = [96, 192, 384, 768];
const BLOCKS: [usize; 4] = [3, 3, 9, 3];
const EPS: f64 = 1e-6;
/// Probability with which the last block is dropped; it grows linearly from 0 at the first.
const STOCHASTIC_DEPTH: f64 = 0.1;
const INIT: [Init; 2] = [Init::TruncatedNormal(0.02), Init::Full(0.0)];

/// One residual block.
#[derive(Module, Debug)]
struct Block {
    depthwise: Conv,
    norm: LayerNorm,
    up: Linear,
    down: Linear,
    /// [C, 1, 1]
    layer_scale: Param<Tensor<3>>,
    dropped: f64,
}

impl Block {
    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let h = self.norm.forward(channels_last(self.depthwise.forward(x.clone())));
        let h = channels_first(self.down.forward(gelu(self.up.forward(h))));
        x + pass.drop_branch(h * self.layer_scale.val().unsqueeze(), self.dropped)
    }
}

/// Norm, then a convolution that halves the side.
#[derive(Module, Debug)]
struct Downsample {
    norm: LayerNorm,
    conv: Conv,
}

/// ConvNeXt-Tiny.
pub const CONVNEXT_TINY: Descriptor<ConvNext> = Descriptor {
    name: "convnext-tiny",
    label: "ConvNeXt-Tiny",
    head: "classifier.2",
    side: Side::AtLeast(32),
    build: |builder, shape, classes| ConvNext::new(builder, shape.channels, classes),
};

/// All parameters of a ConvNeXt.
#[derive(Module, Debug)]
pub struct ConvNext {
    stem: Conv,
    stem_norm: LayerNorm,
    stages: Vec<Vec<Block>>,
    downsamples: Vec<Downsample>,
    norm: LayerNorm,
    /// [K, 768]
    pub head: Linear,
}

impl ConvNext {
    /// For images of so many channels, with sides of at least 32.
    fn new(builder: &mut ParamBuilder<'_>, channels: usize, classes: usize) -> InitResult<Self> {
        let stem = builder.biased_conv("features.0.0", [WIDTHS[0], channels, 4, 4], (4, 0), INIT)?;
        let stem_norm = builder.layer_norm("features.0.1", WIDTHS[0], EPS)?;
        let last = BLOCKS.iter().sum::<usize>() - 1;
        let (mut stages, mut downsamples, mut index) = (Vec::new(), Vec::new(), 0);
        for (s, &width) in WIDTHS.iter().enumerate() {
            if s > 0 {
                let name = format!("features.{}", 2 * s);
                downsamples.push(Downsample {
                    norm: builder.layer_norm(&format!("{name}.0"), WIDTHS[s - 1], EPS)?,
                    conv: builder.biased_conv(&format!("{name}.1"), [width, WIDTHS[s - 1], 2, 2], (2, 0), INIT)?,
                });
            }
            let mut stage = Vec::new();
            for b in 0..BLOCKS[s] {
                let dropped = STOCHASTIC_DEPTH * index as f64 / last as f64;
                stage.push(block(builder, &format!("features.{}.{b}", 2 * s + 1), width, dropped)?);
                index += 1;
            }
            stages.push(stage);
        }
        let norm = builder.layer_norm("classifier.0", WIDTHS[3], EPS)?;
        let head = builder.linear("classifier.2", [classes, WIDTHS[3]], INIT)?;
        Ok(Self { stem, stem_norm, stages, downsamples, norm, head })
    }
}

impl Backbone for ConvNext {
    /// x [N, C, H, W] → what `head` reads, [N, 768].
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let mut h = self.stem_norm.over_channels(self.stem.forward(x));
        for (s, stage) in self.stages.iter().enumerate() {
            if let Some(down) = s.checked_sub(1).and_then(|s| self.downsamples.get(s)) {
                h = down.conv.forward(down.norm.over_channels(h));
            }
            h = stage.iter().fold(h, |h, block| block.forward(h, pass));
        }
        let [n, c, high, wide] = h.dims();
        let means = h.reshape([n, c, high * wide]).mean_dim(2).reshape([n, c]);
        self.norm.forward(means)
    }

    fn head(&self) -> &Linear {
        &self.head
    }
}

fn block(builder: &mut ParamBuilder<'_>, name: &str, c: usize, dropped: f64) -> InitResult<Block> {
    Ok(Block {
        depthwise: builder.biased_conv(&format!("{name}.block.0"), [c, 1, 7, 7], (1, 3), INIT)?.depthwise(),
        norm: builder.layer_norm(&format!("{name}.block.2"), c, EPS)?,
        up: builder.linear(&format!("{name}.block.3"), [4 * c, c], INIT)?,
        down: builder.linear(&format!("{name}.block.5"), [c, 4 * c], INIT)?,
        layer_scale: builder.param(&format!("{name}.layer_scale"), [c, 1, 1], Init::Full(1e-6))?,
        dropped,
    })
}
