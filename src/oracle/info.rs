//! What is known about an oracle.

use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::{Home, world_id};
use crate::error::{Error, Result, check_name, check_words};
use crate::flow::Architecture;
use crate::flow::preprocess::Preprocessing;
use crate::oracle::evaluate::Evaluation;
use crate::oracle::train::TrainSpec;
use crate::oracle::world::World;

/// Name of the list of flows inside a folder that holds one flow per class.
pub const FLOWS: &str = "flows.json";
/// Name of the description inside an oracle folder.
pub const DESCRIPTION: &str = "oracle.json";
/// Name of the description of a training's best epoch, beside its weights.
pub const BEST_INFO: &str = "best.json";
/// Name of the weights inside an oracle folder.
pub const WEIGHTS: &str = "weights.safetensors";

/// What is known about an oracle: the content of `oracle.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OracleInfo {
    /// Version of this description.
    pub format: u32,
    /// Its name.
    pub name: String,
    /// `glow`: one map for all classes (EBO); `tarflow`: a map that depends on the class (BLC).
    pub family: String,
    /// The flow.
    pub architecture: Architecture,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// How 8-bit pixels enter its world, in words.
    pub preprocessing: String,
    /// How 8-bit pixels enter its world.
    #[serde(default)]
    pub pixels: Preprocessing,
    /// SHA-256 of the weights. With how pixels enter, it tells the world from others ([`OracleInfo::world_id`]).
    pub weights_sha256: String,
    /// Format of the stored numbers.
    pub storage: String,
    /// Where a public checkpoint was opened: what was inferred, and from what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferred: Option<Vec<String>>,
    /// Files of a world of one flow per class, in the order of the classes; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// Its training, where it was trained here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingRecord>,
}

impl OracleInfo {
    /// What whoever uses it is to be told of the images it was trained on: whose they are, under
    /// what licence, what the world is not good for.
    pub fn notice(&self) -> Option<&str> {
        self.training.as_ref()?.spec.data.notice.as_deref()
    }

    /// How 8-bit pixels enter its world, in a word, unless a record of the training says the same of these weights. They were opened
    /// without one, or their description says of the pixels what anyone may write there: another one of the same weights may
    /// say otherwise.
    pub fn assumed_pixels(&self) -> Option<String> {
        let trained = self.training.as_ref().map(|training| training.spec.pixels());
        let recorded = self.inferred.is_none() && trained == Some(self.pixels);
        (!recorded).then(|| self.pixels.word())
    }

    /// What tells its world from others: the SHA-256 of the weights alone where the record of their training says how pixels enter.
    pub fn world_id(&self) -> String {
        world_id(&self.weights_sha256, self.assumed_pixels().as_deref())
    }

    /// Its world as one that images are opened in.
    pub fn home(&self) -> Home<'_> {
        let (Self { weights_sha256, pixels, class_names, .. }, assumed) = (self, self.assumed_pixels().is_some());
        Home { weights_sha256, pixels: pixels.word(), assumed, pixel_range: pixels.range(), class_names }
    }
}

/// Where an oracle comes from and what it achieved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingRecord {
    /// What the images were: in words, or where they lay.
    pub data: String,
    /// SHA-256 of the pixels of the whole training part, NCHW bytes, as padded.
    pub pixels_sha256: String,
    /// Images trained on.
    pub images: usize,
    /// The spec, seed included.
    pub spec: TrainSpec,
    /// The epoch that was kept, from 1.
    pub epoch: usize,
    /// How it was trained where the spec, that of its last epochs, does not say it: in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
    /// Seconds of training.
    pub seconds: f64,
    /// What computed.
    pub device: String,
    /// Day the oracle was written, ISO 8601.
    pub finished: String,
    /// The part of the training images that chose the epoch.
    pub held_out: Evaluation,
    /// The test images, which chose nothing.
    pub test: Option<Evaluation>,
    /// What rounding the weights for storage did, where they were rounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_drift: Option<StorageDrift>,
}

/// Differences between a flow and its stored, rounded form on the same images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageDrift {
    /// Images compared.
    pub images: usize,
    /// Largest change of a posterior probability.
    pub max_posterior: f64,
    /// Mean change of a posterior probability's largest component per image.
    pub mean_posterior: f64,
    /// Largest change of log p(x|y), nats.
    pub max_log_likelihood: f64,
    /// Images whose decision changed.
    pub decisions_changed: usize,
}

/// An opened oracle: its world and its description.
pub struct Oracle {
    /// What is known about it.
    pub info: OracleInfo,
    /// The flow with its names.
    pub world: World,
}

/// Newest format of a description that is known.
const FORMAT: u32 = 1;

/// Whether a description is one that this program knows, its names and words can stand on a
/// terminal and on a disk, each name for one class, and its pixels can be mapped in.
pub(super) fn check_names(info: &OracleInfo) -> Result<(), String> {
    if info.format > FORMAT {
        return Err(format!("has format {}; this program knows formats up to {FORMAT}: take a newer one", info.format));
    }
    info.pixels.validate().map_err(|error| error.to_string())?;
    for name in info.class_names.iter().chain([&info.name]) {
        check_name(name)?;
    }
    let words = [&info.family, &info.preprocessing, &info.weights_sha256, &info.storage];
    let mut words = words.into_iter().chain(info.inferred.iter().flatten()).chain(&info.flows);
    words.try_for_each(|words| check_words(words))?;
    if let Some(TrainingRecord { data, pixels_sha256, device, finished, history, .. }) = &info.training {
        let words = [data, pixels_sha256, device, finished].map(String::as_str);
        words.into_iter().chain(history.as_deref()).chain(info.notice()).try_for_each(check_words)?;
    }
    let mut seen = HashSet::new();
    match info.class_names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(format!("two classes are called {twice:?}")),
        None => Ok(()),
    }
}

/// The weights must be the ones described.
pub(crate) fn check_hash(path: &Path, sha256: &str, info: &OracleInfo) -> Result<()> {
    if sha256 == info.weights_sha256 {
        return Ok(());
    }
    Err(Error::file(path, "is not the file described in oracle.json (its SHA-256 differs): copy both again"))
}

/// The architecture must be the one described.
pub(crate) fn check_architecture(path: &Path, config: &Architecture, info: &OracleInfo) -> Result<()> {
    if *config == info.architecture {
        return Ok(());
    }
    Err(Error::file(path, format!("describes {:?}, the weights are {config:?}", info.architecture)))
}

/// How a flow's 8-bit pixels are mapped in, in words.
pub fn preprocessing(architecture: &Architecture, pixels: Preprocessing) -> String {
    match architecture {
        Architecture::Glow(_) if pixels == Preprocessing::Uniform => {
            format!("zero-padded to the flow's side, {}, bounded logit inside the flow", pixels.describe())
        }
        Architecture::Glow(_) | Architecture::TarFlow(_) => {
            format!("zero-padded to the flow's side, {}", pixels.describe())
        }
    }
}
