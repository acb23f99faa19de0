//! Multinomial logistic regression on the pixels: one linear map.

use burn::module::Module;
use burn::tensor::Tensor;

use super::layers::{Linear, flatten};
use super::maker::{Init, Made, Maker};

/// All parameters.
#[derive(Module, Debug)]
pub struct LinearClassifier {
    /// [K, C·H·W]
    pub fc: Linear,
}

impl LinearClassifier {
    /// For images of so many dimensions.
    pub fn make(maker: &mut Maker<'_>, dims: usize, classes: usize) -> Made<Self> {
        Ok(Self { fc: maker.linear("fc", [classes, dims], [Init::fan_in(dims); 2])? })
    }

    /// x [N, C, H, W] → what `fc` reads, [N, C·H·W].
    pub fn features(&self, x: Tensor<4>) -> Tensor<2> {
        flatten(x)
    }
}
