//! AlexNet: "One weird trick for parallelizing convolutional neural networks" (Krizhevsky 2014), as
//! torchvision builds it.
//!
//! ```text
//! conv 11×11 /4 → pool → conv 5×5 → pool → 3 × conv 3×3 → pool → mean onto 6×6 → dropout → 4096 → dropout → 4096 → classes
//! ```

use burn::module::Module;
use burn::tensor::module::adaptive_avg_pool2d;
use burn::tensor::{Tensor, activation::relu};

use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{Conv, Linear, Pass, max_pool};

/// Numbers of the convolutions in torchvision's `features`, with their outputs, kernel, stride and
/// padding, and whether a pool follows.
const CONVS: [(usize, usize, usize, usize, usize, bool); 5] = [
    (0, 64, 11, 4, 2, true),
    (3, 192, 5, 1, 2, true),
    (6, 384, 3, 1, 1, false),
    (8, 256, 3, 1, 1, false),
    (10, 256, 3, 1, 1, true),
];
/// Side of what the classifier reads.
const POOLED: usize = 6;
const HIDDEN: usize = 4096;
const DROPOUT: f64 = 0.5;

/// AlexNet.
pub const ALEXNET: Descriptor<AlexNet> = Descriptor {
    name: "alexnet",
    label: "AlexNet",
    head: "classifier.6",
    side: Side::AtLeast(63),
    build: |builder, shape, classes| AlexNet::new(builder, shape.channels, classes),
};

/// All parameters of an AlexNet.
#[derive(Module, Debug)]
pub struct AlexNet {
    features: Vec<Conv>,
    classifier: [Linear; 2],
    /// [K, 4096]
    pub head: Linear,
}

impl AlexNet {
    /// For images of so many channels.
    fn new(builder: &mut ParamBuilder<'_>, channels: usize, classes: usize) -> InitResult<Self> {
        let mut features = Vec::new();
        let mut input = channels;
        for (number, out, side, stride, padding, _) in CONVS {
            let (shape, init) = ([out, input, side, side], Init::fan_in(input * side * side));
            features.push(builder.biased_conv(&format!("features.{number}"), shape, (stride, padding), [init; 2])?);
            input = out;
        }
        let mut linear = |number: usize, out: usize, input: usize| {
            builder.linear(&format!("classifier.{number}"), [out, input], [Init::fan_in(input); 2])
        };
        let classifier = [linear(1, HIDDEN, input * POOLED * POOLED)?, linear(4, HIDDEN, HIDDEN)?];
        Ok(Self { features, classifier, head: linear(6, classes, HIDDEN)? })
    }
}

impl Backbone for AlexNet {
    /// x [N, C, H, W] → what `head` reads, [N, 4096].
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let x = pass.enter(x);
        let h = self.features.iter().zip(CONVS).fold(x, |h, (conv, (.., pool))| {
            let h = relu(conv.maps(h, pass));
            if pool { max_pool(h, 3, 2, 0) } else { h }
        });
        let h = pass.flatten(adaptive_avg_pool2d(h, [POOLED; 2]));
        self.classifier.iter().fold(h, |h, linear| relu(linear.forward(pass.dropout(h, DROPOUT))))
    }

    fn head(&self) -> &Linear {
        &self.head
    }
}
