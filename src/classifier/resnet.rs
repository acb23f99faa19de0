//! ResNet: "Deep Residual Learning for Image Recognition" (He et al. 2016), as torchvision builds
//! it: in the bottleneck the stride is in the 3×3 convolution ("v1.5").
//!
//! ```text
//! conv 7×7 /2 → BN → ReLU → max pool 3×3 /2 → 4 stages of residual blocks, each but the first halving the side → mean → linear
//! ```

use burn::module::Module;
use burn::tensor::Tensor;

use super::compute::Layers;
use super::cpu::After;
use super::descriptor::{Backbone, Descriptor, Side};
use super::init::{Init, InitResult, ParamBuilder};
use super::layers::{BATCH_NORM, BatchNorm, Conv, Linear, Pass};

/// Fits a block's input to its output: a strided 1×1 convolution, normalised.
#[derive(Module, Debug)]
struct Projection {
    conv: Conv,
    norm: BatchNorm,
}

/// ReLU(x' + convolutions(x)), x' being x or its projection; a ReLU after every normalisation but
/// the last.
#[derive(Module, Debug)]
struct Residual {
    convs: Vec<Conv>,
    norms: Vec<BatchNorm>,
    downsample: Option<Projection>,
}

impl Residual {
    fn forward<L: Layers>(&self, x: L::Maps, layers: &mut L) -> L::Maps {
        let (mut h, last) = (x.clone(), self.convs.len() - 1);
        for (conv, norm) in self.convs.iter().zip(&self.norms).take(last) {
            h = layers.conv(conv, h);
            h = layers.batch_norm(norm, h, After::Relu);
        }
        h = layers.conv(&self.convs[last], h);
        let x = match &self.downsample {
            Some(Projection { conv, norm }) => {
                let x = layers.conv(conv, x);
                layers.batch_norm(norm, x, After::Nothing)
            }
            None => x,
        };
        layers.batch_norm(&self.norms[last], h, After::AddRelu(x))
    }
}

/// ResNet-18: two 3×3 convolutions a block.
pub const RESNET_18: Descriptor<ResNet> = Descriptor {
    name: "resnet-18",
    label: "ResNet-18",
    head: "fc",
    side: Side::AtLeast(1),
    build: |builder, shape, classes| ResNet::new(builder, [2, 2, 2, 2], false, [shape.channels, classes]),
};

/// ResNet-50: 1×1, 3×3 and 1×1 to four times the width.
pub const RESNET_50: Descriptor<ResNet> = Descriptor {
    name: "resnet-50",
    label: "ResNet-50",
    head: "fc",
    side: Side::AtLeast(1),
    build: |builder, shape, classes| ResNet::new(builder, [3, 4, 6, 3], true, [shape.channels, classes]),
};

/// All parameters of a ResNet.
#[derive(Module, Debug)]
pub struct ResNet {
    conv1: Conv,
    bn1: BatchNorm,
    stages: Vec<Vec<Residual>>,
    /// [K, 512 or 2048]
    pub fc: Linear,
}

impl ResNet {
    /// Of so many blocks in each stage, for images of so many channels.
    fn new(
        builder: &mut ParamBuilder<'_>,
        blocks: [usize; 4],
        bottleneck: bool,
        [channels, classes]: [usize; 2],
    ) -> InitResult<Self> {
        let conv1 = builder.conv("conv1", [64, channels, 7, 7], (2, 3), Init::kaiming_normal(64 * 49))?;
        let bn1 = builder.batch_norm("bn1", 64, BATCH_NORM)?;
        let expansion = if bottleneck { 4 } else { 1 };
        let mut input = 64;
        let mut stages = Vec::new();
        for (s, &blocks) in blocks.iter().enumerate() {
            let mut stage = Vec::new();
            for b in 0..blocks {
                let stride = if s > 0 && b == 0 { 2 } else { 1 };
                let name = format!("layer{}.{b}", s + 1);
                stage.push(residual(builder, &name, bottleneck, [input, 64 << s], stride)?);
                input = expansion * (64 << s);
            }
            stages.push(stage);
        }
        let fc = builder.linear("fc", [classes, input], [Init::fan_in(input); 2])?;
        Ok(Self { conv1, bn1, stages, fc })
    }

    /// x [N, C, H, W] → what `fc` reads, [N, 512 or 2048].
    fn run<L: Layers>(&self, x: L::Maps, layers: &mut L) -> L::Rows {
        let h = layers.conv(&self.conv1, x);
        let h = layers.batch_norm(&self.bn1, h, After::Relu);
        let h = layers.max_pool(h, 3, 2, 1);
        let h = self.stages.iter().flatten().fold(h, |h, block| block.forward(h, layers));
        layers.means(h)
    }
}

impl Backbone for ResNet {
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

fn residual(
    builder: &mut ParamBuilder<'_>,
    name: &str,
    bottleneck: bool,
    [input, width]: [usize; 2],
    stride: usize,
) -> InitResult<Residual> {
    let output = if bottleneck { 4 * width } else { width };
    // Outputs, inputs, side of the kernel, stride.
    let maps = if bottleneck {
        vec![(width, input, 1, 1), (width, width, 3, stride), (output, width, 1, 1)]
    } else {
        vec![(width, input, 3, stride), (width, width, 3, 1)]
    };
    let (mut convs, mut norms) = (Vec::new(), Vec::new());
    for (i, (outputs, inputs, side, stride)) in maps.into_iter().enumerate() {
        let init = Init::kaiming_normal(outputs * side * side);
        let shape = [outputs, inputs, side, side];
        convs.push(builder.conv(&format!("{name}.conv{}", i + 1), shape, (stride, side / 2), init)?);
        norms.push(builder.batch_norm(&format!("{name}.bn{}", i + 1), outputs, BATCH_NORM)?);
    }
    let downsample = if stride == 1 && input == output {
        None
    } else {
        let shape = [output, input, 1, 1];
        Some(Projection {
            conv: builder.conv(&format!("{name}.downsample.0"), shape, (stride, 0), Init::kaiming_normal(output))?,
            norm: builder.batch_norm(&format!("{name}.downsample.1"), output, BATCH_NORM)?,
        })
    };
    Ok(Residual { convs, norms, downsample })
}
