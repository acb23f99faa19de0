//! How much a network computes and keeps, counted by running it on nothing but sizes.

use burn::module::Param;
use burn::tensor::Tensor;

use super::compute::Layers;
use super::cpu::{After, Geometry};
use super::layers::{BatchNorm, Conv, LayerNorm, Linear};
use super::transformer::EncoderLayer;

/// Counts multiply-accumulates in convolutions, linear maps and attention for one image.
#[derive(Debug, Default)]
pub struct FlopCounter {
    /// Those so far; products with padding do not count.
    pub macs: usize,
    /// Those of them whose results no later layer reads: our own kernels leave them out.
    pub unread: usize,
    /// Values of all maps, which a pass on the CPU keeps to its end; those inside of a Transformer are left out.
    pub values: usize,
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

    /// Of one position.
    fn row(channels: usize) -> Self {
        Self { side: [1; 2], channels }
    }
}

impl FlopCounter {
    /// Counts what a layer gives.
    fn keep(&mut self, given: Size) -> Size {
        self.values += given.positions() * given.channels;
        given
    }
}

impl Layers for FlopCounter {
    type Maps = Size;
    /// A column of positions.
    type Tokens = Size;
    type Rows = Size;

    fn conv(&mut self, conv: &Conv, x: Size) -> Size {
        let [out, inputs, high, wide] = conv.weight.dims();
        let geometry = Geometry { kernel: [high, wide], stride: conv.stride, padding: conv.padding };
        let met: usize = geometry.sources(x.side).iter().map(Vec::len).sum();
        self.macs += met * out * inputs;
        self.keep(Size { side: geometry.out(x.side), channels: out })
    }

    fn batch_norm(&mut self, _: &BatchNorm, x: Size, _: After<Size>) -> Size {
        self.keep(x)
    }

    fn relu(&mut self, x: Size) -> Size {
        self.keep(x)
    }

    fn add(&mut self, a: Size, _: Size) -> Size {
        self.keep(a)
    }

    fn max_pool(&mut self, x: Size, size: usize, stride: usize, padding: usize) -> Size {
        let geometry = Geometry { kernel: [size; 2], stride, padding: [padding; 2] };
        self.keep(Size { side: geometry.out(x.side), ..x })
    }

    fn means(&mut self, x: Size) -> Size {
        Size::row(x.channels)
    }

    fn flatten(&mut self, x: Size) -> Size {
        self.keep(Size::row(x.positions() * x.channels))
    }

    fn relu_rows(&mut self, x: Size) -> Size {
        x
    }

    fn dropout(&mut self, x: Size, _: f64) -> Size {
        x
    }

    fn linear(&mut self, linear: &Linear, x: Size) -> Size {
        let [out, inputs] = linear.weight.dims();
        self.macs += x.positions() * out * inputs;
        self.keep(Size { channels: out, ..x })
    }

    fn embed(&mut self, _: Size, _: &Param<Tensor<3>>, positions: &Param<Tensor<3>>) -> Size {
        let [_, tokens, channels] = positions.dims();
        Size { side: [tokens, 1], channels }
    }

    fn layer_norm(&mut self, _: &LayerNorm, x: Size) -> Size {
        x
    }

    fn encoder_layer(&mut self, layer: &EncoderLayer, x: Size) -> Size {
        let ([c, hidden], tokens) = (layer.widths(), x.positions());
        // Queries, keys, values and projection; the MLP; scores and sums of values.
        self.macs += tokens * (4 * c * c + 2 * c * hidden) + 2 * tokens.pow(2) * c;
        x
    }

    fn last_encoder_layer(&mut self, layer: &EncoderLayer, x: Size) -> Size {
        // Of all tokens but the first: query and projection, MLP, scores and sums of values.
        let ([c, hidden], tokens) = (layer.widths(), x.positions());
        self.unread += (tokens - 1) * (2 * c * c + 2 * c * hidden + 2 * tokens * c);
        Size::row(self.encoder_layer(layer, x).channels)
    }
}

#[cfg(test)]
mod tests {
    use crate::classifier::{Architecture, Classifier, ClassifierConfig};
    use crate::data::ImageShape;
    use crate::flow::Precision;
    use crate::units::Seed;
    use burn::tensor::Device;

    fn classifier(architecture: Architecture, side: usize) -> Classifier {
        let shape = ImageShape { channels: 3, height: side, width: side };
        let config = ClassifierConfig { architecture, shape, classes: 10, resize: None };
        Classifier::new(&config, Seed(0), &Device::flex(), Precision::F32).unwrap()
    }

    fn macs(architecture: Architecture, side: usize) -> Option<f64> {
        classifier(architecture, side).macs_per_image()
    }

    #[test]
    fn macs_are_those_counted_by_hand() {
        // Patches 64·48·192; a layer of 65 tokens: 12·192² for the maps and 2·65·192 for the
        // attention of each; the head.
        let layer = 65 * (12 * 192 * 192 + 2 * 65 * 192);
        assert_eq!(macs(Architecture::VitSmall, 32), Some((64 * 48 * 192 + 6 * layer + 192 * 10) as f64));
        let unread = 64 * (10 * 192 * 192 + 2 * 65 * 192);
        let computed = (64 * 48 * 192 + 6 * layer + 192 * 10 - unread) as f64;
        assert_eq!(classifier(Architecture::VitSmall, 32).macs_computed(), Some(computed));
        // A 3×3 kernel on a map of side 8 meets 22² pixels, of side 4 10², of side 2 4², of side 1
        // one; with stride 2 from 8 to 4 11², from 4 to 2 5², from 2 to 1 2². The stem of 7×7 with
        // stride 2 on side 32 meets 106².
        let stem = 106 * 106 * 3 * 64;
        let first = 4 * 22 * 22 * 64 * 64;
        let later = |c: usize, half: usize, whole: usize, shortcut: usize| {
            half * half * c * c / 2 + 3 * whole * whole * c * c + shortcut * shortcut * c * c / 2
        };
        let all = stem + first + later(128, 11, 10, 4) + later(256, 5, 4, 2) + later(512, 2, 1, 1) + 5120;
        assert_eq!(macs(Architecture::ResNet18, 32), Some(all as f64));
    }

    #[test]
    fn macs_of_small_networks_are_those_counted_by_hand() {
        let forward = |architecture| macs(architecture, 32);
        assert_eq!(forward(Architecture::Linear), Some(30_720.0));
        assert_eq!(forward(Architecture::Mlp500), Some(1_541_000.0));
        // Maps of 30² and 28², then 64 maps of 14².
        let convnet = 900 * 27 * 32 + 784 * 288 * 64 + 64 * 196 * 128 + 1280;
        assert_eq!(forward(Architecture::Convnet), Some(f64::from(convnet)));
        assert_eq!(forward(Architecture::MobileNet), None);
    }
}
