//! Classifiers q(y|x): the architectures of EBO and BLC, each file its paper, with torchvision's parameter names, so that its
//! weight files open here.
//!
//! | file | what |
//! |---|---|
//! | `architecture`, `work` | the networks by name; how much each computes |
//! | `linear`, `mlp`, `mnist_convnet`, `alexnet`, `resnet`, `wide_resnet`, `mobilenet`, `convnext`, `vit`, `swin` | one network each |
//! | `layers`, `maker` | the layers they share; their parameters by name, given or drawn |
//! | `compute`, `host` | what computes the layers: burn's tensors on any device; in training on the CPU our own kernels |
//! | `spec`, `train`, `piece` | how a classifier is trained; one step; the gradients of a piece of a batch |
//! | `checkpoint`, `scaled`, `onnx` | trained classifiers in files: ours and torchvision's with the scale of their input, anybody's as ONNX |
//! | `features` | what a network reads off images, for FID and its kin |

mod alexnet;
mod architecture;
mod checkpoint;
mod compute;
mod convnext;
pub mod features;
mod host;
mod layers;
mod linear;
mod maker;
mod mlp;
mod mnist_convnet;
mod mobilenet;
pub mod onnx;
mod piece;
mod resnet;
mod scaled;
mod spec;
mod swin;
mod train;
mod vit;
mod wide_resnet;
mod work;

use burn::module::Module;
use burn::tensor::ops::{InterpolateMode, InterpolateOptions};
use burn::tensor::{DType, Device, Element, Tensor, TensorData, module::interpolate};
use serde::{Deserialize, Serialize};

use crate::data::ImageShape;
use crate::device::bounded;
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::parameters;
use crate::flow::weights::Weights;
use crate::kernels::Real;
use crate::units::Seed;

pub use architecture::Architecture;
pub use checkpoint::{Asked, CheckpointClassifier, CheckpointOptions, Description, STATE};
use compute::{Layers, OnHost};
use host::Maps;
use layers::Linear;
pub use layers::Pass;
use maker::{Finished, Made, Maker, Names};
use resnet::ResNetConfig;
pub use scaled::{InputScale, PASS, Scaled};
pub use spec::{Labels, Normalisation, Optimizer, TrainingSpec};
pub use train::{Saved, StepLoss, Trainee};
use vit::VitConfig;
use work::{Size, Work};

/// A network for images of one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassifierConfig {
    /// Which network.
    pub architecture: Architecture,
    /// Shape of the images it is given.
    pub shape: ImageShape,
    /// Number of classes K.
    pub classes: usize,
    /// Side to which images are first scaled, bilinearly; as they are, where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize: Option<usize>,
}

impl ClassifierConfig {
    /// Shape the network itself sees.
    pub fn input(&self) -> ImageShape {
        let ImageShape { channels, height, width } = self.shape;
        match self.resize {
            Some(side) => ImageShape { channels, height: side, width: side },
            None => ImageShape { channels, height, width },
        }
    }

    /// Whether such a network can be built.
    ///
    /// # Errors
    /// Says what does not fit.
    pub fn validate(&self) -> Result<()> {
        let input = self.input();
        if self.classes < 2 {
            return Err(Error::input(format!("a classifier needs at least 2 classes, not {}", self.classes)));
        }
        for side in [input.height, input.width] {
            self.architecture.check_side(side).map_err(|needed| {
                Error::input(format!(
                    "{} needs images with {needed}, not {input}; `resize` scales them up",
                    self.architecture.label()
                ))
            })?;
        }
        Ok(())
    }
}

/// The parameters of one of the networks.
#[derive(Module, Debug)]
#[expect(clippy::large_enum_variant, reason = "a classifier is one of them; there are no arrays of them")]
enum Network {
    Linear(linear::LinearClassifier),
    Mlp(mlp::Mlp),
    ConvNet(mnist_convnet::ConvNet),
    AlexNet(alexnet::AlexNet),
    ResNet(resnet::ResNet),
    WideResNet(wide_resnet::WideResNet),
    MobileNet(mobilenet::MobileNet),
    ConvNext(convnext::ConvNext),
    Vit(vit::VisionTransformer),
    Swin(swin::Swin),
}

impl Network {
    fn make(maker: &mut Maker<'_>, config: &ClassifierConfig) -> Made<Self> {
        let (shape, k) = (config.input(), config.classes);
        let c = shape.channels;
        Ok(match config.architecture {
            Architecture::Linear => Self::Linear(linear::LinearClassifier::make(maker, shape.dims(), k)?),
            Architecture::Mlp500 => Self::Mlp(mlp::Mlp::make(maker, shape.dims(), k)?),
            Architecture::Convnet => Self::ConvNet(mnist_convnet::ConvNet::make(maker, shape, k)?),
            Architecture::AlexNet => Self::AlexNet(alexnet::AlexNet::make(maker, c, k)?),
            Architecture::ResNet18 => Self::ResNet(resnet::ResNet::make(maker, ResNetConfig::RESNET_18, c, k)?),
            Architecture::ResNet50 => Self::ResNet(resnet::ResNet::make(maker, ResNetConfig::RESNET_50, c, k)?),
            Architecture::WideResNet => Self::WideResNet(wide_resnet::WideResNet::make(maker, c, k)?),
            Architecture::MobileNet => Self::MobileNet(mobilenet::MobileNet::make(maker, c, k)?),
            Architecture::ConvNext => Self::ConvNext(convnext::ConvNext::make(maker, c, k)?),
            Architecture::VitSmall => Self::Vit(vit::VisionTransformer::make(maker, VitConfig::SMALL, shape, k)?),
            Architecture::VitB16 => Self::Vit(vit::VisionTransformer::make(maker, VitConfig::B_16, shape, k)?),
            Architecture::SwinT => Self::Swin(swin::Swin::make(maker, c, k)?),
        })
    }

    /// What the last linear map reads, [N, d].
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        match self {
            Self::Linear(network) => network.features(x),
            Self::Mlp(network) => network.features(x),
            Self::ConvNet(network) => network.features(x, pass),
            Self::AlexNet(network) => network.features(x, pass),
            Self::ResNet(network) => network.features(pass.enter(x), pass),
            Self::WideResNet(network) => network.features(pass.enter(x), pass),
            Self::MobileNet(network) => network.features(x, pass),
            Self::ConvNext(network) => network.features(x, pass),
            Self::Vit(network) => network.features(x, pass),
            Self::Swin(network) => network.features(x, pass),
        }
    }

    /// [`Self::features`] by our own kernels, of those networks that they know.
    fn features_on_host<T: Real + Element>(&self, x: Maps, layers: &mut OnHost<'_, T>) -> Option<Maps> {
        match self {
            Self::ResNet(network) => Some(network.features(x, layers)),
            Self::WideResNet(network) => Some(network.features(x, layers)),
            Self::Vit(network) => Some(network.features(x, layers)),
            _ => None,
        }
    }

    /// Products of two numbers for one image of a size, of those networks whose layers count them.
    fn products(&self, size: Size) -> Option<usize> {
        let mut work = Work::default();
        let features = match self {
            Self::ResNet(network) => network.features(size, &mut work),
            Self::WideResNet(network) => network.features(size, &mut work),
            Self::Vit(network) => network.features(size, &mut work),
            _ => return None,
        };
        work.linear(self.head(), features);
        Some(work.products)
    }

    /// The last linear map.
    fn head(&self) -> &Linear {
        match self {
            Self::Linear(network) => &network.fc,
            Self::Mlp(network) => &network.fc2,
            Self::ConvNet(network) => &network.fc2,
            Self::AlexNet(network) => &network.head,
            Self::ResNet(network) => &network.fc,
            Self::WideResNet(network) => &network.fc,
            Self::MobileNet(network) => &network.head,
            Self::ConvNext(network) => &network.head,
            Self::Vit(network) => &network.head,
            Self::Swin(network) => &network.head,
        }
    }
}

/// A network on a device.
#[derive(Debug, Clone)]
pub struct Classifier {
    config: ClassifierConfig,
    network: Network,
    names: Names,
    dtype: DType,
}

impl Classifier {
    /// A network with random parameters, drawn as its authors' code draws them.
    ///
    /// # Errors
    /// When images of that shape cannot enter.
    pub fn new(config: &ClassifierConfig, seed: Seed, device: &Device, precision: Precision) -> Result<Self> {
        Self::make(config, Weights::default(), Some((seed, "")), device, precision)
    }

    /// A network from named arrays, which must be exactly its own.
    ///
    /// # Errors
    /// Names the array that is missing, misshapen or too many.
    pub fn from_weights(
        config: &ClassifierConfig,
        weights: Weights,
        device: &Device,
        precision: Precision,
    ) -> Result<Self> {
        Self::make(config, weights, None, device, precision)
    }

    /// A network from arrays of another task, such as torchvision's of ImageNet: the head is drawn anew where it is missing or for
    /// another number of classes, and a Vision Transformer's positions are resampled where they are of images of another size.
    ///
    /// # Errors
    /// Names an array that is missing, misshapen or too many.
    pub fn from_pretrained(
        config: &ClassifierConfig,
        mut weights: Weights,
        seed: Seed,
        device: &Device,
        precision: Precision,
    ) -> Result<Self> {
        let head = config.architecture.head();
        weights.0 = weights.0.into_iter().map(|(name, array)| (present_name(&name), array)).collect();
        let other_classes = |name: &str| weights.shape(name).is_some_and(|shape| shape[0] != config.classes);
        if other_classes(&format!("{head}.bias")) {
            weights.0.retain(|name, _| !name.starts_with(&format!("{head}.")));
        }
        if let Some(patch) = config.architecture.patch()
            && let Some(positions) = weights.0.remove(vit::POSITIONS)
        {
            let ImageShape { height, width, .. } = config.input();
            let positions = vit::resample_positions(positions, [height / patch, width / patch])?;
            weights.0.insert(vit::POSITIONS.into(), positions);
        }
        Self::make(config, weights, Some((seed, head)), device, precision)
    }

    /// Draws what is missing below the prefix given with a seed, and nothing else.
    fn make(
        config: &ClassifierConfig,
        mut weights: Weights,
        draw: Option<(Seed, &str)>,
        device: &Device,
        precision: Precision,
    ) -> Result<Self> {
        config.validate()?;
        weights.0.retain(|name, _| !is_computed(name));
        let misfit = |e: String| Error::input(format!("weights do not fit {}: {e}", config.architecture.label()));
        let mut maker = Maker::new(weights, draw.map(|(seed, _)| seed), device, precision);
        let network = Network::make(&mut maker, config).map_err(misfit)?;
        let Finished { names, drawn, left } = maker.finish();
        if let Some(name) = left.0.keys().next() {
            return Err(misfit(format!("array '{name}' has no place in it")));
        }
        if let Some(name) = drawn.iter().find(|name| draw.is_some_and(|(_, prefix)| !name.starts_with(prefix))) {
            return Err(misfit(format!("array '{name}' is missing")));
        }
        Ok(Self { config: *config, network, names, dtype: precision.dtype() })
    }

    /// Logits [N, K] of images x [N, C, H, W].
    pub fn forward(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let features = self.penultimate(x, pass);
        self.network.head().forward(features)
    }

    /// What the last linear map reads of images x [N, C, H, W], [N, d].
    fn penultimate(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
        let ImageShape { height, width, .. } = self.config.input();
        self.network.features(resized(x, [height, width]), pass)
    }

    /// Its kind and the images it reads, as messages name it.
    fn named(&self) -> String {
        format!("{} on images of {}", self.config.architecture.label(), self.config.input())
    }

    /// The device it is on.
    fn device(&self) -> Device {
        self.network.devices().first().cloned().unwrap_or_else(Device::flex)
    }

    /// Images [N, C, H, W] on a device, in the network's number format.
    pub fn upload(&self, images: &[f32], device: &Device) -> Tensor<4> {
        let ImageShape { channels, height, width } = self.config.shape;
        let n = images.len() / self.config.shape.dims().max(1);
        let images = TensorData::new(images.to_vec(), [n, channels, height, width]);
        bounded(Tensor::from_data(images, (device, self.dtype)))
    }

    /// All parameters and running statistics by name, on the host.
    ///
    /// # Errors
    /// When the device cannot deliver them.
    pub fn to_weights(&self) -> Result<Weights> {
        parameters::to_weights_by(&self.network, &|_, id| self.names.get(&id).cloned().unwrap_or_default())
    }

    /// Products of two numbers that the answer for one image takes, those with padding not counted; `None` of networks whose
    /// layers do not count them.
    pub fn products_per_image(&self) -> Option<f64> {
        let ImageShape { channels, height, width } = self.config.input();
        self.network.products(Size { side: [height, width], channels }).map(|products| products as f64)
    }

    /// Trained numbers; running statistics do not count.
    pub fn parameters(&self) -> usize {
        let statistics = |name: &str| name.ends_with(".running_mean") || name.ends_with(".running_var");
        let mut count = Count { names: &self.names, counts: &|name| !statistics(name), total: 0 };
        self.network.visit(&mut count);
        count.total
    }
}

/// Images [N, C, H, W] of other sides: bilinear, the borders of the first and last pixels kept in place (torch's
/// `align_corners=False`), without smoothing where they shrink.
fn resized(x: Tensor<4>, [height, width]: [usize; 2]) -> Tensor<4> {
    match x.dims() {
        [_, _, h, w] if (h, w) == (height, width) => x,
        _ => {
            let bilinear = InterpolateOptions::new(InterpolateMode::Bilinear).with_align_corners(false);
            bounded(interpolate(x, bilinear.with_output_size([height, width])))
        }
    }
}

struct Count<'a> {
    names: &'a Names,
    counts: &'a dyn Fn(&str) -> bool,
    total: usize,
}

impl burn::module::ModuleVisitor for Count<'_> {
    fn visit_float<const D: usize>(&mut self, param: &burn::module::Param<Tensor<D>>) {
        if self.names.get(&param.id).is_some_and(|name| (self.counts)(name)) {
            self.total += param.val().dims().iter().product::<usize>();
        }
    }
}

/// What torchvision calls an array today: its public ViT files are older than the names.
fn present_name(name: &str) -> String {
    name.replace(".mlp.linear_1.", ".mlp.0.").replace(".mlp.linear_2.", ".mlp.3.")
}

/// Arrays that torchvision stores beside the parameters and that follow from the architecture.
fn is_computed(name: &str) -> bool {
    name.ends_with(".num_batches_tracked") || name.ends_with(".relative_position_index")
}
