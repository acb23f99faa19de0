//! EBO's multi-layer perceptron: pixels → 500 → ReLU → classes.

use burn::module::Module;
use burn::tensor::{Tensor, activation::relu};

use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{Linear, Pass, flatten};
use crate::data::ImageShape;

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
}

impl Backbone for Mlp {
    /// x [N, C, H, W] → what `fc2` reads, [N, 500].
    fn features(&self, x: Tensor<4>, _: &mut Pass) -> Tensor<2> {
        relu(self.fc1.forward(flatten(x)))
    }

    fn head(&self) -> &Linear {
        &self.fc2
    }

    fn feature_macs(&self, image: ImageShape) -> Option<usize> {
        Some(image.dims() * HIDDEN)
    }
}
