//! EBO's multi-layer perceptron: pixels → 500 → ReLU → classes.

use burn::module::Module;
use burn::tensor::Tensor;

use super::compute::Layers;
use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{Linear, Pass};

const HIDDEN: usize = 500;

/// 500 hidden units.
pub const MLP_500: Descriptor<Mlp> = Descriptor {
    name: "mlp-500",
    label: "MLP-500",
    head: "fc2",
    side: Side::AtLeast(1),
    build: |builder, shape, classes| Mlp::new(builder, shape.dims(), classes),
};

/// All parameters.
#[derive(Module, Debug)]
pub struct Mlp {
    fc1: Linear,
    /// [K, 500]
    pub fc2: Linear,
}

impl Mlp {
    /// For images of so many dimensions.
    fn new(builder: &mut ParamBuilder<'_>, dims: usize, classes: usize) -> InitResult<Self> {
        let mut linear = |name: &str, out, input| builder.linear(name, [out, input], [Init::fan_in(input); 2]);
        Ok(Self { fc1: linear("fc1", HIDDEN, dims)?, fc2: linear("fc2", classes, HIDDEN)? })
    }

    /// x [N, C, H, W] → what `fc2` reads, [N, 500].
    fn run<L: Layers>(&self, x: L::Maps, layers: &mut L) -> L::Rows {
        let pixels = layers.flatten(x);
        let h = layers.linear(&self.fc1, pixels);
        layers.relu_rows(h)
    }
}

impl Backbone for Mlp {
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        self.run(x, pass)
    }

    fn head(&self) -> &Linear {
        &self.fc2
    }

    fn features_by<L: Layers>(&self, x: L::Maps, layers: &mut L) -> Option<L::Rows> {
        Some(self.run(x, layers))
    }
}
