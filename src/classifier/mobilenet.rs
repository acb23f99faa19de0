//! MobileNetV3-Large: "Searching for MobileNetV3" (Howard et al. 2019, table 1), as torchvision
//! builds it.
//!
//! ```text
//! conv 3×3 /2 → 15 inverted residuals (expand → depthwise → squeeze and excite → project) → conv 1×1 → mean → 1280 → classes
//! ```

use burn::module::Module;
use burn::tensor::{Tensor, activation::relu};

use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{BatchNorm, Conv, Linear, Pass};

/// ε and momentum of the batch normalisations.
const NORM: (f64, f64) = (1e-3, 0.01);
const DROPOUT: f64 = 0.2;
const STEM: usize = 16;
const LAST: usize = 960;
const HIDDEN: usize = 1280;

/// One line of the paper's table 1: kernel, width inside, width after, whether it squeezes, whether
/// h-swish, stride.
type Line = (usize, usize, usize, bool, bool, usize);

const TABLE: [Line; 15] = [
    (3, 16, 16, false, false, 1),
    (3, 64, 24, false, false, 2),
    (3, 72, 24, false, false, 1),
    (5, 72, 40, true, false, 2),
    (5, 120, 40, true, false, 1),
    (5, 120, 40, true, false, 1),
    (3, 240, 80, false, true, 2),
    (3, 200, 80, false, true, 1),
    (3, 184, 80, false, true, 1),
    (3, 184, 80, false, true, 1),
    (3, 480, 112, true, true, 1),
    (3, 672, 112, true, true, 1),
    (5, 672, 160, true, true, 2),
    (5, 960, 160, true, true, 1),
    (5, 960, 160, true, true, 1),
];

/// What follows a normalisation.
#[derive(Debug, Clone, Copy)]
enum Activation {
    None,
    Relu,
    HardSwish,
}

impl Activation {
    fn of(self, x: Tensor<4>) -> Tensor<4> {
        match self {
            Self::None => x,
            Self::Relu => relu(x),
            Self::HardSwish => hard_swish(x),
        }
    }
}

fn hard_swish<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * hard_sigmoid(x)
}

/// ReLU6(x + 3)/6.
fn hard_sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    (x + 3.0).clamp(0.0, 6.0) / 6.0
}

/// Convolution, normalisation, activation.
#[derive(Module, Debug)]
struct ConvNorm {
    conv: Conv,
    norm: BatchNorm,
    #[module(skip)]
    activation: Activation,
}

impl ConvNorm {
    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        self.activation.of(self.norm.forward(self.conv.maps(x, pass), pass))
    }
}

/// Channels weighed by what their means say (Hu et al. 2018).
#[derive(Module, Debug)]
struct SqueezeExcite {
    fc1: Conv,
    fc2: Conv,
}

impl SqueezeExcite {
    fn forward(&self, x: Tensor<4>, pass: &Pass) -> Tensor<4> {
        let [a, b, h, w] = x.dims();
        let means = x.clone().reshape([a, b, h * w]).mean_dim(2).reshape([a, b, 1, 1]);
        x * hard_sigmoid(self.fc2.maps(relu(self.fc1.maps(means, pass)), pass))
    }
}

/// Expand, convolve each channel, weigh channels, project; plus x where the shape stays.
#[derive(Module, Debug)]
struct InvertedResidual {
    expand: Option<ConvNorm>,
    depthwise: ConvNorm,
    squeeze: Option<SqueezeExcite>,
    project: ConvNorm,
    residual: bool,
}

impl InvertedResidual {
    fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<4> {
        let mut h = x.clone();
        if let Some(expand) = &self.expand {
            h = expand.forward(h, pass);
        }
        h = self.depthwise.forward(h, pass);
        if let Some(squeeze) = &self.squeeze {
            h = squeeze.forward(h, pass);
        }
        h = self.project.forward(h, pass);
        if self.residual { h + x } else { h }
    }
}

/// MobileNetV3-Large.
pub const MOBILENET_V3: Descriptor<MobileNet> = Descriptor {
    name: "mobilenet-v3-large",
    label: "MobileNetV3-Large",
    head: "classifier.3",
    side: Side::AtLeast(1),
    build: |builder, shape, classes| MobileNet::new(builder, shape.channels, classes),
};

/// All parameters of a MobileNetV3-Large.
#[derive(Module, Debug)]
pub struct MobileNet {
    stem: ConvNorm,
    blocks: Vec<InvertedResidual>,
    last: ConvNorm,
    hidden: Linear,
    /// [K, 1280]
    pub head: Linear,
}

impl MobileNet {
    /// For images of so many channels.
    fn new(builder: &mut ParamBuilder<'_>, channels: usize, classes: usize) -> InitResult<Self> {
        let stem = conv_norm(builder, "features.0", [STEM, channels, 3], 2, Activation::HardSwish)?;
        let mut input = STEM;
        let mut blocks = Vec::new();
        for (i, line) in TABLE.into_iter().enumerate() {
            blocks.push(inverted(builder, &format!("features.{}.block", i + 1), input, line)?);
            input = line.2;
        }
        let last = conv_norm(builder, "features.16", [LAST, input, 1], 1, Activation::HardSwish)?;
        let mut linear = |number: usize, out: usize, input: usize| {
            builder.linear(&format!("classifier.{number}"), [out, input], [Init::Normal(0.01), Init::Full(0.0)])
        };
        let hidden = linear(0, HIDDEN, LAST)?;
        Ok(Self { stem, blocks, last, hidden, head: linear(3, classes, HIDDEN)? })
    }
}

impl Backbone for MobileNet {
    /// x [N, C, H, W] → what `head` reads, [N, 1280].
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let x = pass.enter(x);
        let h = self.stem.forward(x, pass);
        let h = self.blocks.iter().fold(h, |h, block| block.forward(h, pass));
        let h = self.last.forward(h, pass);
        let h = pass.means(h);
        pass.dropout(hard_swish(self.hidden.forward(h)), DROPOUT)
    }

    fn head(&self) -> &Linear {
        &self.head
    }
}

/// A convolution [out, input, side, side] and its normalisation.
fn conv_norm(
    builder: &mut ParamBuilder<'_>,
    name: &str,
    [out, input, side]: [usize; 3],
    stride: usize,
    activation: Activation,
) -> InitResult<ConvNorm> {
    let init = Init::kaiming_normal(out * side * side);
    Ok(ConvNorm {
        conv: builder.conv(&format!("{name}.0"), [out, input, side, side], (stride, side / 2), init)?,
        norm: builder.batch_norm(&format!("{name}.1"), out, NORM)?,
        activation,
    })
}

fn inverted(builder: &mut ParamBuilder<'_>, name: &str, input: usize, line: Line) -> InitResult<InvertedResidual> {
    let (side, inside, out, squeezes, hard_swish, stride) = line;
    let activation = if hard_swish { Activation::HardSwish } else { Activation::Relu };
    let mut parts = (0..).map(|part| format!("{name}.{part}"));
    let mut next = || parts.next().unwrap_or_default();
    let expand = match inside == input {
        true => None,
        false => Some(conv_norm(builder, &next(), [inside, input, 1], 1, activation)?),
    };
    let mut depthwise = conv_norm(builder, &next(), [inside, 1, side], stride, activation)?;
    depthwise.conv = depthwise.conv.depthwise();
    let squeeze = match squeezes {
        true => Some(squeeze_excite(builder, &next(), inside)?),
        false => None,
    };
    let project = conv_norm(builder, &next(), [out, inside, 1], 1, Activation::None)?;
    Ok(InvertedResidual { expand, depthwise, squeeze, project, residual: stride == 1 && input == out })
}

/// A quarter of the channels, rounded to a multiple of 8 that is no more than a tenth smaller.
fn squeezed(channels: usize) -> usize {
    let wanted = channels / 4;
    let rounded = ((wanted + 4) / 8 * 8).max(8);
    if 10 * rounded < 9 * wanted { rounded + 8 } else { rounded }
}

fn squeeze_excite(builder: &mut ParamBuilder<'_>, name: &str, channels: usize) -> InitResult<SqueezeExcite> {
    let small = squeezed(channels);
    let mut conv = |part: &str, out: usize, input: usize| {
        let init = [Init::kaiming_normal(out), Init::Full(0.0)];
        builder.biased_conv(&format!("{name}.{part}"), [out, input, 1, 1], (1, 0), init)
    };
    Ok(SqueezeExcite { fc1: conv("fc1", small, channels)?, fc2: conv("fc2", channels, small)? })
}
