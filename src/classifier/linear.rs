//! Multinomial logistic regression on the pixels: one linear map.

use burn::module::Module;
use burn::tensor::Tensor;

use super::compute::Layers;
use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{Linear, Pass};

/// Multinomial logistic regression.
pub const LINEAR: Descriptor<LinearClassifier> = Descriptor {
    name: "linear",
    label: "linear",
    head: "fc",
    side: Side::AtLeast(1),
    build: |builder, shape, classes| LinearClassifier::new(builder, shape.dims(), classes),
};

/// All parameters.
#[derive(Module, Debug)]
pub struct LinearClassifier {
    /// [K, C·H·W]
    pub fc: Linear,
}

impl LinearClassifier {
    /// For images of so many dimensions.
    fn new(builder: &mut ParamBuilder<'_>, dims: usize, classes: usize) -> InitResult<Self> {
        Ok(Self { fc: builder.linear("fc", [classes, dims], [Init::fan_in(dims); 2])? })
    }
}

impl Backbone for LinearClassifier {
    /// x [N, C, H, W] → what `fc` reads, [N, C·H·W].
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        pass.flatten(x)
    }

    fn head(&self) -> &Linear {
        &self.fc
    }

    fn features_by<L: Layers>(&self, x: L::Maps, layers: &mut L) -> Option<L::Rows> {
        Some(layers.flatten(x))
    }
}
