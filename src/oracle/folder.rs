//! An oracle on disk: `oracle.json` beside `weights.safetensors`, and opening whatever names one.

mod per_class;

use std::collections::HashSet;
use std::path::Path;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::data::{read_bytes, sha256, sha256_of_file, write_atomically, write_json};
use crate::device::largest_buffer;
use crate::error::{Error, Result, check_name, check_words, in_line};
use crate::events::{Events, Progress, silent};
use crate::flow::import::{Checkpoint, Inferred, read_checkpoint};
use crate::flow::preprocess::Preprocessing;
use crate::flow::tarflow::TarFlowOracle;
use crate::flow::weights::{Storage, Weights};
use crate::flow::{Architecture, Precision};
use crate::oracle::evaluate::Evaluation;
use crate::oracle::library;
use crate::oracle::train::{TrainSpec, Trained};
use crate::oracle::world::World;

/// Name of the list of flows inside a folder that holds one flow per class.
pub const FLOWS: &str = "flows.json";
/// Name of the description inside an oracle folder.
pub const DESCRIPTION: &str = "oracle.json";
/// Name of the weights inside an oracle folder.
pub const WEIGHTS: &str = "weights.safetensors";

/// What is known about an oracle: the content of `oracle.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OracleInfo {
    /// Version of this description.
    pub format: u32,
    /// Its name.
    pub name: String,
    /// `glow`: one invertible map for all classes (EBO); `tarflow`: a map that depends on the class (BLC).
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
    /// SHA-256 of the weights: identifies the world.
    pub weights_sha256: String,
    /// Format of the stored numbers.
    pub storage: String,
    /// Where a public checkpoint was opened: what was inferred, and from what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferred: Option<Vec<String>>,
    /// Files of a world of one flow per class, in the order of the classes; empty where one flow knows all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// Its training, where it was trained here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingRecord>,
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

impl OracleInfo {
    /// Builds the world of these weights on a device.
    ///
    /// # Errors
    /// When the weights do not fit, or the device fails.
    pub fn build(self, weights: Weights, device: &Device, precision: Precision, batch: usize) -> Result<Oracle> {
        self.fits(&weights, device, precision)?;
        let flow = match (&self.architecture, self.flows.len()) {
            (Architecture::TarFlow(config), 1..) => {
                let each = per_class::split(weights, self.flows.len());
                Box::new(TarFlowOracle::of_classes(config, each, self.pixels, device, precision)?)
            }
            (architecture, _) => architecture.build(weights, self.pixels, device, precision)?,
        };
        let world = World::new(flow, self.class_names.clone(), batch)?;
        Ok(Oracle { info: self, world })
    }

    /// Whether the device takes the largest array in one buffer.
    fn fits(&self, weights: &Weights, device: &Device, precision: Precision) -> Result<()> {
        let Some(most) = largest_buffer(device) else { return Ok(()) };
        let width = if precision == Precision::F64 { 8 } else { 4 };
        let Some((name, array)) = weights.0.iter().max_by_key(|(_, array)| array.values.len()) else { return Ok(()) };
        let bytes = width * array.values.len() as u64;
        if bytes <= most {
            return Ok(());
        }
        Err(Error::Device(format!(
            "its driver takes buffers of at most {most} bytes, and the array {name} of {} has {bytes}; take another device, such \
             as --device cpu",
            self.name
        )))
    }
}

/// Opens a bundled name, an oracle folder, or a public checkpoint file as it is.
///
/// # Errors
/// Names the file and what is wrong with it, or what would have been accepted.
pub fn open(oracle: &str, device: &Device, precision: Precision, batch: usize) -> Result<Oracle> {
    let (info, weights) = read(oracle)?;
    info.build(weights, device, precision, batch)
}

/// The description and weights that a name or path stands for.
///
/// # Errors
/// As [`open`].
pub fn read(oracle: &str) -> Result<(OracleInfo, Weights)> {
    read_watched(oracle, &mut silent())
}

/// [`read`], told how many bytes of a large file are read.
///
/// # Errors
/// As [`open`]; [`Error::Cancelled`].
pub fn read_watched(oracle: &str, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, Weights)> {
    if let Some(bundled) = library::find(oracle) {
        return bundled.read();
    }
    let path = Path::new(oracle);
    if path.is_dir() {
        return if path.join(FLOWS).is_file() { per_class::read(path, events) } else { read_folder(path, events) };
    }
    if path.is_file() {
        return describe_checkpoint(path, events);
    }
    let names = library::names().join(", ");
    Err(Error::input(format!(
        "'{oracle}' is no oracle: give a bundled name ({names}), an oracle folder, a folder with {FLOWS}, or a checkpoint file (.safetensors, .pth, .pth.tar)"
    )))
}

/// The description of a bundled oracle or of an oracle folder, without its weights; `None` where there is none to be had so
/// cheaply.
pub fn glance(oracle: &str) -> Option<OracleInfo> {
    if let Some(bundled) = library::find(oracle) {
        return bundled.info().ok();
    }
    let text = read_bytes(Path::new(oracle).join(DESCRIPTION)).ok()?;
    serde_json::from_slice(&text).ok().filter(|info| check_names(info).is_ok())
}

fn read_folder(folder: &Path, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, Weights)> {
    let path = folder.join(DESCRIPTION);
    let text = read_bytes(&path).map_err(|e| Error::io(&path, e))?;
    let info: OracleInfo = serde_json::from_slice(&text).map_err(|e| Error::file(&path, e.to_string()))?;
    check_names(&info).map_err(|cause| Error::file(&path, cause))?;
    let weights_path = folder.join(WEIGHTS);
    check_hash(&weights_path, &sha256_of_file(&weights_path, events)?, &info)?;
    let checkpoint = read_checkpoint(&weights_path, events)?;
    check_architecture(&path, &checkpoint.inferred.architecture, &info)?;
    Ok((info, checkpoint.weights))
}

/// Newest format of a description that is known.
const FORMAT: u32 = 1;

/// Whether a description is one that this program knows, and its names and words can stand on a terminal and on a disk, each name for
/// one class.
fn check_names(info: &OracleInfo) -> Result<(), String> {
    if info.format > FORMAT {
        return Err(format!("has format {}; this program knows formats up to {FORMAT}: take a newer one", info.format));
    }
    for name in info.class_names.iter().chain([&info.name]) {
        check_name(name)?;
    }
    let words = [&info.family, &info.preprocessing, &info.weights_sha256, &info.storage];
    let mut words = words.into_iter().chain(info.inferred.iter().flatten()).chain(&info.flows);
    words.try_for_each(|words| check_words(words))?;
    if let Some(TrainingRecord { data, pixels_sha256, device, finished, .. }) = &info.training {
        [data, pixels_sha256, device, finished].into_iter().try_for_each(|words| check_words(words))?;
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

pub(crate) fn check_architecture(path: &Path, config: &Architecture, info: &OracleInfo) -> Result<()> {
    if *config == info.architecture {
        return Ok(());
    }
    Err(Error::file(path, format!("describes {:?}, the weights are {config:?}", info.architecture)))
}

fn describe_checkpoint(path: &Path, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, Weights)> {
    let Checkpoint { inferred, weights } = read_checkpoint(path, events)?;
    let Inferred { architecture, pixels, classes, sentences } = inferred;
    let name =
        path.file_name().map_or_else(|| "checkpoint".into(), |name| in_line(&name.to_string_lossy()).into_owned());
    let info = OracleInfo {
        format: 1,
        name,
        family: architecture.family().into(),
        architecture,
        class_names: (0..classes).map(|c| c.to_string()).collect(),
        preprocessing: preprocessing(&architecture, pixels),
        pixels,
        weights_sha256: sha256_of_file(path, events)?,
        storage: "as published".into(),
        inferred: Some(sentences),
        flows: Vec::new(),
        training: None,
    };
    Ok((info, weights))
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

/// What there is to know about a trained flow whose weights are stored in that format; their hash is still to be filled in.
pub(crate) fn describe(
    spec: &TrainSpec,
    trained: &Trained,
    storage: Storage,
    device: &str,
    finished: &str,
    drift: Option<StorageDrift>,
) -> OracleInfo {
    OracleInfo {
        format: 1,
        name: spec.name.clone(),
        family: trained.architecture.family().into(),
        architecture: trained.architecture,
        class_names: trained.class_names.clone(),
        preprocessing: preprocessing(&trained.architecture, trained.pixels),
        pixels: trained.pixels,
        weights_sha256: String::new(),
        storage: match storage {
            Storage::F32 => "float32".into(),
            Storage::F16 => "float16".into(),
        },
        inferred: None,
        flows: Vec::new(),
        training: Some(TrainingRecord {
            data: spec
                .data
                .description
                .clone()
                .unwrap_or_else(|| in_line(&spec.data.path.display().to_string()).into_owned()),
            pixels_sha256: trained.pixels_sha256.clone(),
            images: trained.images,
            spec: spec.clone(),
            epoch: trained.epoch,
            seconds: trained.seconds,
            device: device.into(),
            finished: finished.into(),
            held_out: trained.held_out.clone(),
            test: trained.test.clone(),
            storage_drift: drift,
        }),
    }
}

/// Writes a trained flow as an oracle folder and returns its description.
///
/// # Errors
/// Names the file that cannot be written.
pub fn write(
    folder: &Path,
    spec: &TrainSpec,
    trained: &Trained,
    device: &str,
    finished: &str,
    drift: Option<StorageDrift>,
) -> Result<OracleInfo> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let bytes = trained.weights.to_safetensors(spec.storage)?;
    let mut info = describe(spec, trained, spec.storage, device, finished, drift);
    info.weights_sha256 = sha256(&bytes);
    write_atomically(&folder.join(WEIGHTS), |file| file.write_all(&bytes))?;
    write_json(&folder.join(DESCRIPTION), &info)?;
    Ok(info)
}
