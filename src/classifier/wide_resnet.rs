//! WRN-28-10: "Wide Residual Networks" (Zagoruyko & Komodakis 2016), without dropout. Parameter
//! names are those of the reference in `tests/reference/classifiers`.
//!
//! ```text
//! conv 3×3 → 3 groups of 4 pre-activation blocks (160, 320, 640 channels), the last two halving the side → BN → ReLU → mean → linear
//! ```

use burn::module::Module;
use burn::tensor::Tensor;

use super::compute::Layers;
use super::cpu::After;
use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{BATCH_NORM, BatchNorm, Conv, Linear, Pass};

/// Blocks of a group: (28 − 4)/6.
const BLOCKS: usize = 4;
const WIDTHS: [usize; 4] = [16, 160, 320, 640];

/// o = ReLU(BN(x)); conv(ReLU(BN(conv(o)))) + x, or + shortcut(o) where the channels change.
#[derive(Module, Debug)]
struct WideBlock {
    bn1: BatchNorm,
    conv1: Conv,
    bn2: BatchNorm,
    conv2: Conv,
    shortcut: Option<Conv>,
}

impl WideBlock {
    fn forward<L: Layers>(&self, x: L::Maps, layers: &mut L) -> L::Maps {
        let o = layers.batch_norm(&self.bn1, x.clone(), After::Relu);
        let h = layers.conv(&self.conv1, o.clone());
        let h = layers.batch_norm(&self.bn2, h, After::Relu);
        let x = match &self.shortcut {
            Some(shortcut) => layers.conv(shortcut, o),
            None => x,
        };
        let h = layers.conv(&self.conv2, h);
        layers.add(h, x)
    }
}

/// WRN-28-10.
pub const WRN_28_10: Descriptor<WideResNet> = Descriptor {
    name: "wrn-28-10",
    label: "WRN-28-10",
    head: "fc",
    side: Side::AtLeast(4),
    build: |builder, shape, classes| WideResNet::new(builder, shape.channels, classes),
};

/// All parameters of a WRN-28-10.
#[derive(Module, Debug)]
pub struct WideResNet {
    conv1: Conv,
    blocks: Vec<WideBlock>,
    bn: BatchNorm,
    /// [K, 640]
    pub fc: Linear,
}

impl WideResNet {
    /// For images of so many channels.
    fn new(builder: &mut ParamBuilder<'_>, channels: usize, classes: usize) -> InitResult<Self> {
        let conv3 = |builder: &mut ParamBuilder<'_>, name: &str, [out, input]: [usize; 2], stride| {
            builder.conv(name, [out, input, 3, 3], (stride, 1), Init::kaiming_normal(9 * out))
        };
        let conv1 = conv3(builder, "conv1", [WIDTHS[0], channels], 1)?;
        let mut blocks = Vec::new();
        for group in 0..3 {
            for b in 0..BLOCKS {
                let name = format!("group{}.{b}", group + 1);
                let out = WIDTHS[group + 1];
                let input = if b == 0 { WIDTHS[group] } else { out };
                let stride = if b == 0 && group > 0 { 2 } else { 1 };
                let shortcut = match input == out {
                    true => None,
                    false => {
                        let (shape, init) = ([out, input, 1, 1], Init::kaiming_normal(out));
                        Some(builder.conv(&format!("{name}.shortcut"), shape, (stride, 0), init)?)
                    }
                };
                blocks.push(WideBlock {
                    bn1: builder.batch_norm(&format!("{name}.bn1"), input, BATCH_NORM)?,
                    conv1: conv3(builder, &format!("{name}.conv1"), [out, input], stride)?,
                    bn2: builder.batch_norm(&format!("{name}.bn2"), out, BATCH_NORM)?,
                    conv2: conv3(builder, &format!("{name}.conv2"), [out, out], 1)?,
                    shortcut,
                });
            }
        }
        let bn = builder.batch_norm("bn", WIDTHS[3], BATCH_NORM)?;
        let fc = builder.linear("fc", [classes, WIDTHS[3]], [Init::fan_in(WIDTHS[3]); 2])?;
        Ok(Self { conv1, blocks, bn, fc })
    }

    /// x [N, C, H, W] → what `fc` reads, [N, 640].
    fn run<L: Layers>(&self, x: L::Maps, layers: &mut L) -> L::Rows {
        let h = layers.conv(&self.conv1, x);
        let h = self.blocks.iter().fold(h, |h, block| block.forward(h, layers));
        let h = layers.batch_norm(&self.bn, h, After::Relu);
        layers.means(h)
    }
}

impl Backbone for WideResNet {
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        self.run(pass.enter(x), pass)
    }

    fn head(&self) -> &Linear {
        &self.fc
    }

    fn features_by<L: Layers>(&self, x: L::Maps, layers: &mut L) -> Option<L::Rows> {
        Some(self.run(x, layers))
    }
}
