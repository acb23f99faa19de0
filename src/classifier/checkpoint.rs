//! Trained classifiers in files: those of our own runs say what they are, others are told.
//!
//! A cell's checkpoint has an entry [`STATE`] in its header with a [`Description`] in it: which
//! network, for which images, and the scale that its training images had. A state dict of
//! torchvision's, or of a training script around it, holds nothing but arrays: its architecture and
//! the scale of its images are the user's to say, and nothing is guessed.

use std::path::Path;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::onnx;
use super::scaled::{InputScale, PASS, Scaled};
use super::{Architecture, Classifier, ClassifierConfig, present_name};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Precision;
use crate::flow::weights::{WeightFile, Weights};

/// Key of the header of a cell's checkpoint under which the state of its training stands, in JSON.
pub const STATE: &str = "state";

/// What the arrays of a file are, so that it can be opened without the run it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// What the classifier is called.
    pub name: String,
    /// The network.
    pub network: ClassifierConfig,
    /// How images are scaled before they enter.
    pub scale: InputScale,
    /// Steps of its training.
    pub steps: usize,
    /// Ends of the range that pixels filled in the world of its training images; older files do not say it.
    #[serde(default)]
    pub range: Option<[f32; 2]>,
    /// SHA-256 of the weights of that world, where it was known.
    #[serde(default)]
    pub weights_sha256: Option<String>,
}

/// What of a cell's state matters here.
#[derive(Deserialize)]
struct Head {
    step: usize,
    #[serde(default)]
    classifier: Option<Description>,
}

/// What a user knows about a file that does not say it; not looked at where the file does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckpointOptions {
    /// Which network the arrays are of.
    pub architecture: Option<Architecture>,
    /// How it wants images scaled.
    pub normalisation: Option<onnx::Normalisation>,
    /// Side to which images are first scaled, bilinearly; as they are, where absent.
    pub side: Option<usize>,
}

/// Images that a classifier is asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedImages {
    /// Shape of each.
    pub shape: ImageShape,
    /// Classes K.
    pub classes: usize,
    /// Ends of the range that pixels fill in x, where it is known.
    pub range: Option<[f32; 2]>,
}

/// A trained classifier from a file.
#[derive(Debug, Clone)]
pub struct CheckpointClassifier {
    /// What it is called, where the file says so.
    pub name: Option<String>,
    /// Steps of its training done, and in all, where the file says so.
    pub steps: Option<[usize; 2]>,
    /// SHA-256 of the weights of the world of its training images, where the file says so.
    pub world: Option<String>,
    scaled: Scaled,
}

impl CheckpointClassifier {
    /// Opens a cell's checkpoint, or a state dict (.safetensors, .pth) with what `options` say of
    /// it.
    ///
    /// # Errors
    /// Names the file, and what it is where it is not for these images and classes; what has to be
    /// said where the file does not say it; the array that is missing, misshapen or too many.
    pub fn open(path: &Path, asked: &ExpectedImages, options: &CheckpointOptions, device: &Device) -> Result<Self> {
        let in_file = |error| match error {
            Error::Input(cause) => Error::file(path, cause),
            other => other,
        };
        let file = WeightFile::open(path)?;
        let state = file.text(STATE).map(|state| serde_json::from_slice::<Head>(state.as_bytes())).transpose();
        let state = state.map_err(|e| Error::file(path, format!("the state of its training cannot be read: {e}")))?;
        match state {
            Some(Head { step, classifier: Some(description) }) => {
                open_described(file, description, step, asked, device).map_err(in_file)
            }
            Some(_) if options.normalisation.is_none() => Err(Error::file(path, OLDER)),
            _ => open_with_options(file, asked, options, device).map_err(in_file),
        }
    }

    /// log q(y|x) in nats of images `x` (NCHW, world space), [N, K].
    ///
    /// # Errors
    /// When the device fails, or the caller stops.
    pub fn log_probabilities(&self, x: &[f32], events: &mut dyn Events<Progress>) -> Result<Vec<f64>> {
        let dims = self.scaled.config().shape.dims();
        let (total, mut log_q) = (x.len() / dims, Vec::new());
        for (pass, images) in x.chunks(PASS * dims).enumerate() {
            events.report(Progress { done: pass * PASS, total })?;
            log_q.extend(self.scaled.log_q(images.to_vec())?);
        }
        events.report(Progress { done: total, total })?;
        Ok(log_q)
    }
}

/// What helps with a checkpoint that does not know its scale.
const OLDER: &str = "was written by an older version and does not say how its images were scaled; remove the result.json beside it and run \
                     `bayescope resume RUN`: the cell is measured again from this checkpoint, without training, and the file then says it";

/// A cell's.
fn open_described(
    file: WeightFile,
    description: Description,
    step: usize,
    asked: &ExpectedImages,
    device: &Device,
) -> Result<CheckpointClassifier> {
    let Description { name, network, scale, steps, range, weights_sha256 } = description;
    if (network.shape, network.classes) != (asked.shape, asked.classes) || scale.channels() != network.shape.channels {
        return Err(Error::input(format!(
            "is {name}, a classifier of {} images with {} classes; here the images are {} with {} classes",
            network.shape, network.classes, asked.shape, asked.classes
        )));
    }
    if let Some(([low, high], [from, to])) = range.zip(asked.range).filter(|(theirs, ours)| theirs != ours) {
        return Err(Error::input(format!(
            "is {name}, trained on images whose pixels lie between {low} and {high}; those of these images lie between {from} and {to}"
        )));
    }
    let weights = file.into_weights(|_| true, &mut silent())?;
    let classifier = Classifier::from_weights(&network, weights, device, Precision::F32)?;
    let scaled = Scaled::new(classifier, scale);
    Ok(CheckpointClassifier { name: Some(name), steps: Some([step, steps]), world: weights_sha256, scaled })
}

/// One that says nothing of itself.
fn open_with_options(
    file: WeightFile,
    asked: &ExpectedImages,
    options: &CheckpointOptions,
    device: &Device,
) -> Result<CheckpointClassifier> {
    let (Some(architecture), Some(how)) = (options.architecture, &options.normalisation) else {
        let known: Vec<&str> = Architecture::ALL.iter().map(|architecture| architecture.name()).collect();
        return Err(Error::input(format!(
            "does not say which network it is of and how its images are scaled: give its architecture ({}) and its normalisation \
             (such as imagenet)",
            known.join(", ")
        )));
    };
    let ExpectedImages { shape, classes, range } = *asked;
    let network = ClassifierConfig { architecture, shape, classes, resize: options.side };
    let scale = InputScale::named(how, shape.channels, range)?;
    let prefix = prefix(&file, architecture)?;
    let weights = file.into_weights(|name| name.starts_with(&prefix), &mut silent())?;
    let bare = |name: &str| present_name(name.strip_prefix(&prefix).unwrap_or(name));
    let weights = Weights(weights.0.into_iter().map(|(name, array)| (bare(&name), array)).collect());
    let found = weights.shape(&format!("{}.bias", architecture.head())).and_then(|shape| shape.first().copied());
    if let Some(found) = found.filter(|found| *found != classes) {
        return Err(Error::input(format!("tells {found} classes apart, and here there are {classes}")));
    }
    let classifier = Classifier::from_weights(&network, weights, device, Precision::F32)?;
    Ok(CheckpointClassifier { name: None, steps: None, world: None, scaled: Scaled::new(classifier, scale) })
}

/// What training scripts leave before the names: `model.`, `state_dict.`, `module.`; found by the
/// bias of the last map.
fn prefix(file: &WeightFile, architecture: Architecture) -> Result<String> {
    let head = format!("{}.bias", architecture.head());
    let before = |name: &str| name.strip_suffix(&head).map(str::to_owned);
    let mut found: Vec<String> = file.names().filter_map(before).collect();
    found.retain(|prefix| prefix.is_empty() || prefix.ends_with('.'));
    match &found[..] {
        [] => Err(Error::input(format!("is no {}: array '{head}' is missing", architecture.label()))),
        [only] => Ok(only.clone()),
        several if several.iter().any(String::is_empty) => Ok(String::new()),
        several => Err(Error::input(format!(
            "holds several networks, under '{}'; save the state dict of one of them",
            several.join("', '")
        ))),
    }
}
