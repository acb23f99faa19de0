//! EBO's multi-layer perceptron: pixels → 500 → ReLU → classes.

use burn::module::Module;
use burn::tensor::{Tensor, activation::relu};

use super::layers::{Linear, flatten};
use super::maker::{Init, Made, Maker};

const HIDDEN: usize = 500;

/// All parameters.
#[derive(Module, Debug)]
pub struct Mlp {
    fc1: Linear,
    /// [K, 500]
    pub fc2: Linear,
}

impl Mlp {
    /// For images of so many dimensions.
    pub fn make(maker: &mut Maker<'_>, dims: usize, classes: usize) -> Made<Self> {
        let mut linear = |name: &str, out, input| maker.linear(name, [out, input], [Init::fan_in(input); 2]);
        Ok(Self { fc1: linear("fc1", HIDDEN, dims)?, fc2: linear("fc2", classes, HIDDEN)? })
    }

    /// x [N, C, H, W] → what `fc2` reads, [N, 500].
    pub fn features(&self, x: Tensor<4>) -> Tensor<2> {
        relu(self.fc1.forward(flatten(x)))
    }
}
