//! The network of PyTorch's "basic MNIST example", EBO's ConvNet; logits instead of its
//! log-probabilities.
//!
//! ```text
//! conv 3×3, 32 → ReLU → conv 3×3, 64 → ReLU → max pool 2×2 → dropout ¼ → linear, 128 → ReLU → dropout ½ → classes
//! ```

use burn::module::Module;
use burn::tensor::Tensor;

use super::compute::Layers;
use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{Conv, Linear, Pass};
use crate::data::ImageShape;

const WIDTHS: [usize; 2] = [32, 64];
const HIDDEN: usize = 128;

/// PyTorch's MNIST example.
pub const CONVNET: Descriptor<ConvNet> =
    Descriptor { name: "convnet", label: "ConvNet", head: "fc2", side: Side::AtLeast(6), build: ConvNet::new };

/// All parameters.
#[derive(Module, Debug)]
pub struct ConvNet {
    conv1: Conv,
    conv2: Conv,
    fc1: Linear,
    /// [K, 128]
    pub fc2: Linear,
}

impl ConvNet {
    /// For images of a shape; sides of at least 6.
    fn new(builder: &mut ParamBuilder<'_>, shape: ImageShape, classes: usize) -> InitResult<Self> {
        let mut conv = |name: &str, out, input| {
            builder.biased_conv(name, [out, input, 3, 3], (1, 0), [Init::fan_in(9 * input); 2])
        };
        let conv1 = conv("conv1", WIDTHS[0], shape.channels)?;
        let conv2 = conv("conv2", WIDTHS[1], WIDTHS[0])?;
        let flat = WIDTHS[1] * ((shape.height - 4) / 2) * ((shape.width - 4) / 2);
        let mut linear = |name: &str, out, input| builder.linear(name, [out, input], [Init::fan_in(input); 2]);
        let fc1 = linear("fc1", HIDDEN, flat)?;
        Ok(Self { conv1, conv2, fc1, fc2: linear("fc2", classes, HIDDEN)? })
    }

    /// x [N, C, H, W] → what `fc2` reads, [N, 128].
    fn run<L: Layers>(&self, x: L::Maps, layers: &mut L) -> L::Rows {
        let h = layers.conv(&self.conv1, x);
        let h = layers.relu(h);
        let h = layers.conv(&self.conv2, h);
        let h = layers.relu(h);
        let h = layers.max_pool(h, 2, 2, 0);
        let h = layers.flatten(h);
        let h = layers.dropout(h, 0.25);
        let h = layers.linear(&self.fc1, h);
        let h = layers.relu_rows(h);
        layers.dropout(h, 0.5)
    }
}

impl Backbone for ConvNet {
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        self.run(pass.enter(x), pass)
    }

    fn head(&self) -> &Linear {
        &self.fc2
    }

    fn features_by<L: Layers>(&self, x: L::Maps, layers: &mut L) -> Option<L::Rows> {
        Some(self.run(x, layers))
    }
}
