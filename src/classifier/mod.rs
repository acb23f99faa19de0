//! Classifiers q(y|x): the architectures of EBO and BLC, each file its paper, with torchvision's
//! parameter names, so that its weight files open here.
//!
//! | file | what |
//! |---|---|
//! | `architecture`, `descriptor` | the networks by name; what the file of each says of it |
//! | `linear`, `mlp`, `mnist_convnet`, `alexnet`, `resnet`, `wide_resnet`, `mobilenet`, `convnext`, `vit`, `swin` | one network each |
//! | `layers`, `transformer` | the layers they share; the Transformer layer of the ViTs |
//! | `init`, `flops` | parameters by name, given or drawn; how much a network computes |
//! | `compute`, `cpu` | what computes the layers: burn's tensors on any device; on the CPU our own kernels |
//! | `spec`, `train`, `micro_batch` | how a classifier is trained; one step; the gradients of a part of a batch |
//! | `checkpoint`, `scaled`, `onnx` | trained classifiers in files: ours and torchvision's with the scale of their input, anybody's as ONNX |
//! | `features` | what a network reads off images, for FID and its kin |

mod alexnet;
mod architecture;
mod checkpoint;
mod compute;
mod convnext;
mod cpu;
mod descriptor;
pub mod features;
mod flops;
mod init;
mod layers;
mod linear;
mod micro_batch;
mod mlp;
mod mnist_convnet;
mod mobilenet;
pub mod onnx;
mod resnet;
mod scaled;
mod spec;
mod swin;
mod train;
mod transformer;
mod vit;
mod wide_resnet;

use burn::module::Module;
use burn::tensor::ops::{InterpolateMode, InterpolateOptions};
use burn::tensor::{DType, Device, Tensor, TensorData, module::interpolate};
use serde::{Deserialize, Serialize};

use crate::data::ImageShape;
use crate::device::{MatmulPrecision, bounded};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::parameters;
use crate::flow::weights::Weights;
use crate::units::Seed;

pub use architecture::Architecture;
use architecture::Network;
pub use checkpoint::{CheckpointClassifier, CheckpointOptions, Description, ExpectedImages, STATE};
use compute::Layers;
use descriptor::Backbone;
use flops::{FlopCounter, Size};
use init::{Finished, Names, ParamBuilder};
pub use layers::Pass;
pub use scaled::{InputScale, PASS, Scaled};
pub use spec::{Labels, Normalisation, Optimizer, TrainingSpec};
pub use train::{Saved, StepLoss, Trainee};

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

    /// A network from arrays of another task, such as torchvision's of ImageNet: the head is drawn
    /// anew where it is missing or for another number of classes, and a Vision Transformer's
    /// positions are resampled where they are of images of another size.
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
        let other_classes =
            |name: &str| weights.shape(name).is_some_and(|shape| shape.first() != Some(&config.classes));
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
        let mut builder = ParamBuilder::new(weights, draw.map(|(seed, _)| seed), device, precision);
        let network =
            Network::build(config.architecture, &mut builder, config.input(), config.classes).map_err(misfit)?;
        let Finished { names, drawn, left } = builder.finish();
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

    /// Multiply-accumulates for the answer to one image, those with padding not counted; `None` of
    /// networks whose layers are not counted.
    pub fn macs_per_image(&self) -> Option<f64> {
        Some(self.counted()?.macs as f64)
    }

    /// The same without what is not computed here: our own kernels leave out what nobody reads.
    pub fn macs_computed(&self) -> Option<f64> {
        let FlopCounter { macs, unread, .. } = self.counted()?;
        let left_out = if self.trains_on_cpu(MatmulPrecision::F32) { unread } else { 0 };
        Some((macs - left_out) as f64)
    }

    /// What the answer to one image takes, of networks that are written for [`Layers`].
    fn counted(&self) -> Option<FlopCounter> {
        let ImageShape { channels, height, width } = self.config.input();
        let mut counter = FlopCounter::default();
        let features = self.network.features_by(Size { side: [height, width], channels }, &mut counter)?;
        counter.linear(self.network.head(), features);
        Some(counter)
    }

    /// Trained numbers; running statistics do not count.
    pub fn parameters(&self) -> usize {
        let statistics = |name: &str| name.ends_with(".running_mean") || name.ends_with(".running_var");
        let mut count = Count { names: &self.names, counts: &|name| !statistics(name), total: 0 };
        self.network.visit(&mut count);
        count.total
    }
}

/// Images [N, C, H, W] of other sides: bilinear, the borders of the first and last pixels kept in
/// place (torch's `align_corners=False`), without smoothing where they shrink.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::weights::HostTensor;

    /// A file is anyone's: a bias without axes is none of the network's, and no panic.
    #[test]
    fn a_head_of_any_rank_is_drawn_anew() {
        let shape = ImageShape { channels: 1, height: 2, width: 2 };
        let config = ClassifierConfig { architecture: Architecture::Linear, shape, classes: 2, resize: None };
        let bias = format!("{}.bias", Architecture::Linear.head());
        for (bias_shape, count) in [(vec![], 1), (vec![3], 3), (vec![0], 0)] {
            let array = HostTensor::new(bias_shape, vec![0.5; count]);
            let weights = Weights([(bias.clone(), array)].into_iter().collect());
            let device = Device::flex();
            assert!(Classifier::from_pretrained(&config, weights, Seed(0), &device, Precision::F32).is_ok());
        }
    }
}
