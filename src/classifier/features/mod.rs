//! What a network reads off images: its penultimate features, between which the FID, the KID and
//! coverage measure distances, and its p(y|x), of which the inception score is made (BLC §2.3, App.
//! A).
//!
//! | network | images as it reads them | d | log p(y\|x) |
//! |---|---|---|---|
//! | Inception-v3 of pytorch-fid, the network of the FID | 299 × 299, 2p − 1 | 2048 | 1008 columns, without the bias: those of the inception score (Salimans et al. 2016), torch-fidelity's `logits_unbiased` |
//! | Inception-v3 of torchvision | 299 × 299, 2p − 1, to which its `transform_input` takes ImageNet's normalisation back | 2048 | 1000 classes |
//! | ResNet-18, ResNet-50 of torchvision | 224 × 224, ImageNet's means and standard deviations | 512, 2048 | its classes |
//! | a classifier of ours | as it was trained | its own | its classes |
//!
//! Images are scaled as pytorch-fid scales them: the whole image, bilinearly, without smoothing
//! where it shrinks. torch-fidelity and clean-fid resize otherwise, so their figures differ a
//! little. No weights come with the program: a figure carries the name of the network and the hash
//! of the file the user gave, and figures of different networks do not compare.

mod inception;
mod layout;

use std::path::Path;

use burn::tensor::{DType, Device, Tensor, TensorData};

use self::inception::{FEATURES, Inception, SIDE};
use self::layout::{AUXILIARY, Layout, Shapes};
pub use self::layout::{FID_NETWORK, FID_WEIGHTS};
use super::descriptor::Backbone;
use super::init::{Finished, ParamBuilder};
use super::spec::IMAGENET;
use super::{Architecture, Classifier, ClassifierConfig, Pass, STATE, is_computed, resized};
use crate::data::{ImageShape, sha256_of_file};
use crate::device::in_batches;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Precision;
use crate::flow::parameters::to_host;
use crate::flow::weights::{WeightFile, Weights};
use crate::measure::log_softmax;

/// Side to which torchvision's ResNets scale.
const RESNET_SIDE: usize = 224;
/// Pixels of a network's input that one pass may hold, on the CPU and elsewhere: 5 and 20 images
/// for an Inception-v3. On the CPU it needs 0.3 GB beside its weights for those 5 (and 1.3 s an
/// image on two busy cores); elsewhere every buffer stays below the 128 MiB that the least adapters
/// allow.
const PIXELS: [usize; 2] = [450_000, 1_800_000];

/// Why a cell's checkpoint is refused: its arrays may have torchvision's names, and its images another size and scale.
const OF_A_RUN: &str = "is the checkpoint of a run's cell, whose network reads images as they were scaled in that run, and not as torchvision's; \
                        give weights of pytorch-fid or torchvision, or none: a network is then trained on the spot";

/// What a network says of images.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embedded {
    /// What the last linear map reads, [N, d].
    pub features: Vec<f32>,
    /// log p(y|x) of the network's own classes in nats, [N, K].
    pub log_p: Vec<f64>,
}

/// How pixels between 0 and 1 enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scaling {
    AsIs,
    /// 2p − 1.
    Symmetric,
    /// Less ImageNet's means, by its standard deviations.
    ImageNet,
}

impl Scaling {
    /// Of x [N, C, H, W]; ImageNet's figures are those of three channels.
    fn of(self, x: Tensor<4>) -> Tensor<4> {
        match self {
            Self::AsIs => x,
            Self::Symmetric => x * 2.0 - 1.0,
            Self::ImageNet => {
                let channels = |values: [f64; 3]| -> Tensor<4> {
                    Tensor::from_data(TensorData::new(values.to_vec(), [1, 3, 1, 1]), (&x.device(), x.dtype()))
                };
                let [mean, std] = IMAGENET.map(channels);
                (x - mean) / std
            }
        }
    }
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a feature network is one of them; there are no arrays of them")]
enum Network {
    Inception(Inception),
    Classifier(Classifier),
}

/// A network that turns images into features.
#[derive(Debug, Clone)]
pub struct FeatureNet {
    name: String,
    sha256: Option<String>,
    network: Network,
    scaling: Scaling,
    device: Device,
    dtype: DType,
}

impl FeatureNet {
    /// Opens a file of weights, PyTorch's or safetensors; which network it holds is told by names
    /// and shapes, and a file that holds none of those above is refused before its arrays are read.
    /// Reports bytes: the file is read twice, once for its hash.
    ///
    /// # Errors
    /// Names the file, and what it holds and should hold: a cell's checkpoint, too, is refused; [`Error::Cancelled`].
    pub fn open(path: &Path, device: &Device, events: &mut dyn Events<Progress>) -> Result<Self> {
        let file = WeightFile::open(path)?;
        if file.text(STATE).is_some() {
            return Err(Error::file(path, OF_A_RUN));
        }
        let shapes =
            file.names().map(|name| (name.to_owned(), file.shape(name).unwrap_or_default().to_vec())).collect();
        let layout = Layout::infer(&shapes).map_err(|cause| Error::file(path, cause))?;
        let mut first = |Progress { done, total }| events.emit(Progress { done, total: 2 * total });
        let hash = sha256_of_file(path, &mut first)?;
        let mut second = |Progress { done, total }| events.emit(Progress { done: total + done, total: 2 * total });
        let weights = file.into_weights(|name| !name.starts_with(AUXILIARY), &mut second)?;
        let file_name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let net = Self::build(layout, &file_name, weights, device, Precision::F32);
        let net = net.map_err(|cause| Error::file(path, cause))?;
        Ok(Self { sha256: Some(hash), ..net })
    }

    /// [`Self::open`] of arrays that are in memory already; `file` is what they are called.
    ///
    /// # Errors
    /// What they hold and should hold.
    pub fn from_weights(file: &str, mut weights: Weights, device: &Device, precision: Precision) -> Result<Self> {
        let shapes: Shapes = weights.0.iter().map(|(name, array)| (name.clone(), array.shape.clone())).collect();
        let named = |cause: String| Error::input(format!("{file}: {cause}"));
        let layout = Layout::infer(&shapes).map_err(named)?;
        weights.0.retain(|name, _| !name.starts_with(AUXILIARY));
        Self::build(layout, file, weights, device, precision).map_err(named)
    }

    /// A classifier of ours, which must have been trained on images with values between 0 and 1,
    /// scaled no further.
    ///
    /// # Errors
    /// For a linear classifier, which has no features of its own.
    pub fn of_classifier(name: String, classifier: Classifier) -> Result<Self> {
        classifier.check_features()?;
        Ok(Self::around(name, classifier, Scaling::AsIs))
    }

    fn around(name: String, classifier: Classifier, scaling: Scaling) -> Self {
        let (device, dtype) = (classifier.device(), classifier.dtype);
        Self { name, sha256: None, network: Network::Classifier(classifier), scaling, device, dtype }
    }

    fn build(
        layout: Layout,
        file: &str,
        mut weights: Weights,
        device: &Device,
        precision: Precision,
    ) -> Result<Self, String> {
        let name = format!("{} ({file})", layout.label());
        let port = match layout {
            Layout::Inception(port) => port,
            Layout::ResNet(architecture, classes) => {
                let shape = ImageShape { channels: 3, height: RESNET_SIDE, width: RESNET_SIDE };
                let config = ClassifierConfig { architecture, shape, classes, resize: None };
                let classifier = Classifier::from_weights(&config, weights, device, precision);
                return Ok(Self::around(name, classifier.map_err(|e| e.to_string())?, Scaling::ImageNet));
            }
        };
        let misfit = |cause: String| format!("weights do not fit {}: {cause}", layout.label());
        weights.0.retain(|name, _| !is_computed(name));
        let mut builder = ParamBuilder::new(weights, None, device, precision);
        let network = Network::Inception(Inception::new(&mut builder, port).map_err(misfit)?);
        let Finished { left, .. } = builder.finish();
        if let Some(name) = left.0.keys().next() {
            return Err(misfit(format!("array '{name}' has no place in it")));
        }
        let (device, dtype) = (device.clone(), precision.dtype());
        Ok(Self { name, sha256: None, network, scaling: Scaling::Symmetric, device, dtype })
    }

    /// In words, with the name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// SHA-256 of the file of weights, lower-case hexadecimal; none for a network that came from no
    /// file.
    pub fn sha256(&self) -> Option<&str> {
        self.sha256.as_deref()
    }

    /// Number of features d.
    pub fn dim(&self) -> usize {
        match &self.network {
            Network::Inception(_) => FEATURES,
            Network::Classifier(classifier) => classifier.network.head().weight.dims()[1],
        }
    }

    /// Number of classes K.
    pub fn classes(&self) -> usize {
        match &self.network {
            Network::Inception(inception) => inception.fc.weight.dims()[0],
            Network::Classifier(classifier) => classifier.config.classes,
        }
    }

    /// Shape of an image as the network reads it.
    fn input(&self) -> ImageShape {
        match &self.network {
            Network::Inception(_) => ImageShape { channels: 3, height: SIDE, width: SIDE },
            Network::Classifier(classifier) => classifier.config.input(),
        }
    }

    /// Features and log p(y|x) of images [N, C, H, W] with values between 0 and 1 (others are taken
    /// as they are) and any sides; one channel is repeated where the network reads three. `batch`
    /// images at a time, fewer where they would take too much memory: an Inception-v3 reads at most
    /// 5 at a time on the CPU and 20 elsewhere. Reports images, before each batch and at the end.
    ///
    /// # Errors
    /// When the images have other channels than the network, are not whole, or give features that
    /// are not finite, with the number of the image; when the device fails; [`Error::Cancelled`].
    pub fn embed(
        &self,
        images: &[f32],
        shape: ImageShape,
        batch: usize,
        events: &mut dyn Events<Progress>,
    ) -> Result<Embedded> {
        self.check(images, shape)?;
        let input = self.input();
        let most = PIXELS[usize::from(self.device.clone().inner() != Device::flex())] / (input.height * input.width);
        let batch = batch.min(most).max(1);
        let (total, mut done) = (images.len() / shape.dims(), 0);
        let mut all = Embedded::default();
        for piece in images.chunks(batch * shape.dims()) {
            events.report(Progress { done, total })?;
            let answers = in_batches(&self.device, &self.name, piece.len() / shape.dims(), |range| {
                let images = &piece[range.start * shape.dims()..range.end * shape.dims()];
                let (features, logits) = self.answers(self.upload(images, shape));
                Ok((to_host(features)?, to_host(logits)?))
            })?;
            let (features, logits): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
            let (features, logits) = (features.concat(), logits.concat());
            if let Some(at) = features.iter().position(|v| !v.is_finite()) {
                let image = done + at / self.dim();
                return Err(Error::Numeric(format!(
                    "{} gives features of image {image} that are not finite",
                    self.name
                )));
            }
            all.features.extend(features.into_iter().map(|v| v as f32));
            all.log_p.extend(log_softmax(&logits, self.classes()));
            done += piece.len() / shape.dims();
        }
        events.report(Progress { done, total })?;
        Ok(all)
    }

    fn check(&self, images: &[f32], shape: ImageShape) -> Result<()> {
        let wanted = self.input().channels;
        if shape.channels != wanted && (shape.channels, wanted) != (1, 3) {
            return Err(Error::input(format!("{} reads images of {wanted} channels, not {shape}", self.name)));
        }
        if shape.dims() == 0 || !images.len().is_multiple_of(shape.dims()) {
            return Err(Error::input(format!("{} values are no whole number of images {shape}", images.len())));
        }
        Ok(())
    }

    /// Images [N, C, H, W] as the network reads them, but for their sides.
    fn upload(&self, images: &[f32], shape: ImageShape) -> Tensor<4> {
        let ImageShape { channels, height, width } = shape;
        let data = TensorData::new(images.to_vec(), [images.len() / shape.dims(), channels, height, width]);
        let x: Tensor<4> = Tensor::from_data(data, (&self.device, self.dtype));
        let repeated = self.input().channels / channels;
        self.scaling.of(if repeated > 1 { x.repeat_dim(1, repeated) } else { x })
    }

    /// Features [N, d] and logits [N, K].
    fn answers(&self, x: Tensor<4>) -> (Tensor<2>, Tensor<2>) {
        let pass = &mut Pass::evaluation();
        let (features, head) = match &self.network {
            Network::Inception(inception) => (inception.features(resized(x, [SIDE; 2]), pass), &inception.fc),
            Network::Classifier(classifier) => (classifier.penultimate(x, pass), classifier.network.head()),
        };
        (features.clone(), head.forward(features))
    }
}

impl Classifier {
    /// What the last linear map reads of images [N, C, H, W], [N, d], and the logits [N, K];
    /// `batch` at a time. The images are as the classifier was trained.
    ///
    /// # Errors
    /// For a linear classifier, whose last map reads the pixels themselves; when the device fails.
    pub fn features(&self, images: &[f32], batch: usize) -> Result<(Vec<f32>, Vec<f64>)> {
        self.check_features()?;
        let answers = self.in_batches(images, batch, |images| {
            let read = self.penultimate(images, &mut Pass::evaluation());
            let logits = to_host(self.network.head().forward(read.clone()))?;
            Ok((to_host(read)?.into_iter().map(|v| v as f32).collect::<Vec<_>>(), logits))
        })?;
        let (features, logits): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
        Ok((features.concat(), logits.concat()))
    }

    pub(super) fn check_features(&self) -> Result<()> {
        match self.config.architecture {
            Architecture::Linear => Err(Error::input(
                "a linear classifier has no features: its one map reads the pixels themselves; take another architecture, such \
                 as resnet-18",
            )),
            _ => Ok(()),
        }
    }
}
