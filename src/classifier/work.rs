//! How much a network computes, counted by running it on nothing but sizes.

use burn::module::Param;
use burn::tensor::Tensor;

use super::compute::Layers;
use super::host::{After, Geometry};
use super::layers::{BatchNorm, Conv, LayerNorm, Linear};

/// Products of two numbers in convolutions, linear maps and attention, of one image.
#[derive(Debug, Default)]
pub struct Work {
    /// Those so far; products with padding do not count.
    pub products: usize,
}

/// Sizes of maps.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Height and width.
    pub side: [usize; 2],
    /// Channels.
    pub channels: usize,
}

impl Size {
    fn positions(self) -> usize {
        self.side[0] * self.side[1]
    }
}

impl Layers for Work {
    type Maps = Size;
    /// A column of positions.
    type Tokens = Size;
    type Rows = Size;

    fn conv(&mut self, conv: &Conv, x: Size) -> Size {
        let [out, inputs, high, wide] = conv.weight.dims();
        let geometry = Geometry { kernel: [high, wide], stride: conv.stride, padding: conv.padding };
        let met: usize = geometry.sources(x.side).iter().map(Vec::len).sum();
        self.products += met * out * inputs;
        Size { side: geometry.out(x.side), channels: out }
    }

    fn batch_norm(&mut self, _: &BatchNorm, x: Size, _: After<Size>) -> Size {
        x
    }

    fn add(&mut self, a: Size, _: Size) -> Size {
        a
    }

    fn max_pool(&mut self, x: Size, size: usize, stride: usize, padding: usize) -> Size {
        let geometry = Geometry { kernel: [size; 2], stride, padding: [padding; 2] };
        Size { side: geometry.out(x.side), ..x }
    }

    fn means(&mut self, x: Size) -> Size {
        Size { side: [1; 2], ..x }
    }

    fn linear(&mut self, linear: &Linear, x: Size) -> Size {
        self.each(&linear.weight, None, x)
    }

    fn embed(&mut self, patches: Size, _: &Param<Tensor<3>>, positions: &Param<Tensor<3>>) -> Size {
        Size { side: [positions.dims()[1], 1], ..patches }
    }

    fn layer_norm(&mut self, _: &LayerNorm, x: Size) -> Size {
        x
    }

    fn each(&mut self, weight: &Param<Tensor<2>>, _: Option<&Param<Tensor<1>>>, x: Size) -> Size {
        let [out, inputs] = weight.dims();
        self.products += x.positions() * out * inputs;
        Size { channels: out, ..x }
    }

    fn attention(&mut self, qkv: Size, _: usize) -> Size {
        let channels = qkv.channels / 3;
        self.products += 2 * qkv.positions().pow(2) * channels;
        Size { channels, ..qkv }
    }

    fn gelu(&mut self, x: Size) -> Size {
        x
    }

    fn plus(&mut self, a: Size, _: Size) -> Size {
        a
    }

    fn first_token(&mut self, x: Size) -> Size {
        Size { side: [1; 2], ..x }
    }

    fn rows(&mut self, x: Size) -> Size {
        x
    }
}

#[cfg(test)]
mod tests {
    use crate::classifier::{Architecture, Classifier, ClassifierConfig};
    use crate::data::ImageShape;
    use crate::flow::Precision;
    use crate::units::Seed;
    use burn::tensor::Device;

    fn products(architecture: Architecture, side: usize) -> Option<f64> {
        let shape = ImageShape { channels: 3, height: side, width: side };
        let config = ClassifierConfig { architecture, shape, classes: 10, resize: None };
        Classifier::new(&config, Seed(0), &Device::flex(), Precision::F32).unwrap().products_per_image()
    }

    #[test]
    fn products_are_those_counted_by_hand() {
        // Patches 64·48·192; a layer of 65 tokens: 12·192² for the maps and 2·65·192 for the attention of each; the head.
        let layer = 65 * (12 * 192 * 192 + 2 * 65 * 192);
        assert_eq!(products(Architecture::VitSmall, 32), Some((64 * 48 * 192 + 6 * layer + 192 * 10) as f64));
        // A 3×3 kernel on a map of side 8 meets 22² pixels, of side 4 10², of side 2 4², of side 1 one; with stride 2 from 8
        // to 4 11², from 4 to 2 5², from 2 to 1 2². The stem of 7×7 with stride 2 on side 32 meets 106².
        let stem = 106 * 106 * 3 * 64;
        let first = 4 * 22 * 22 * 64 * 64;
        let later = |c: usize, half: usize, whole: usize, shortcut: usize| {
            half * half * c * c / 2 + 3 * whole * whole * c * c + shortcut * shortcut * c * c / 2
        };
        let all = stem + first + later(128, 11, 10, 4) + later(256, 5, 4, 2) + later(512, 2, 1, 1) + 5120;
        assert_eq!(products(Architecture::ResNet18, 32), Some(all as f64));
        assert_eq!(products(Architecture::Linear, 32), None);
    }
}
