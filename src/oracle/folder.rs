//! An oracle on disk (`oracle.json` and `weights.safetensors`), and opening one by name or path.

mod per_class;
mod refusal;

use std::path::Path;

use burn::tensor::Device;

use super::info::check_names;
use crate::data::{read_bytes, sha256_of_file};
use crate::device::largest_buffer;
use crate::error::{Error, Result, in_line};
use crate::events::{Events, Progress, silent};
use crate::flow::import::{Checkpoint, Inferred, read_checkpoint};
use crate::flow::tarflow::TarFlowOracle;
use crate::flow::weights::Weights;
use crate::flow::{Architecture, Precision};
use crate::oracle::library;
use crate::oracle::world::World;

pub use super::info::{DESCRIPTION, FLOWS, Oracle, OracleInfo, StorageDrift, TrainingRecord, WEIGHTS, preprocessing};
pub(crate) use super::info::{check_architecture, check_hash};
pub use super::train::describe::write;
pub use refusal::refusal;

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
        let world = World::new(flow, self.class_names.clone(), batch)?.of_weights(&self.weights_sha256);
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

/// Opens a bundled name, an oracle folder, the weights in one, or a public checkpoint file as it is.
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

/// [`read`] that reports the bytes of a large file.
///
/// # Errors
/// As [`open`]; [`Error::Cancelled`].
pub fn read_watched(oracle: &str, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, Weights)> {
    if let Some(bundled) = library::find(oracle) {
        return bundled.read();
    }
    let path = Path::new(oracle);
    let read = match () {
        () if path.is_dir() && path.join(FLOWS).is_file() => per_class::read(path, events),
        () if path.is_dir() => read_folder(path, events),
        () => read_file(path, events),
    };
    // What is wrong with a file of another kind is of no use.
    read.map_err(|error| match error {
        Error::File { .. } | Error::Io { .. } => refusal(oracle, None).unwrap_or(error),
        other => other,
    })
}

/// The description of a bundled oracle or of an oracle folder, without its weights; `None` where
/// there is none to be had so cheaply.
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

/// The description beside a file of weights, where it is of these very weights.
fn description_beside(path: &Path, sha256: &str) -> Option<OracleInfo> {
    let text = read_bytes(path.with_file_name(DESCRIPTION)).ok()?;
    let info: OracleInfo = serde_json::from_slice(&text).ok()?;
    (info.weights_sha256 == sha256 && check_names(&info).is_ok()).then_some(info)
}

/// A file of weights: the world of its folder where that describes it, since the file does not tell how pixels enter the
/// world; otherwise a checkpoint as it is.
fn read_file(path: &Path, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, Weights)> {
    let Checkpoint { inferred, weights } = read_checkpoint(path, events)?;
    let weights_sha256 = sha256_of_file(path, events)?;
    if let Some(info) = description_beside(path, &weights_sha256) {
        check_architecture(&path.with_file_name(DESCRIPTION), &inferred.architecture, &info)?;
        return Ok((info, weights));
    }
    Ok((describe_checkpoint(path, inferred, weights_sha256), weights))
}

fn describe_checkpoint(path: &Path, inferred: Inferred, weights_sha256: String) -> OracleInfo {
    let Inferred { architecture, pixels, classes, sentences } = inferred;
    let name =
        path.file_name().map_or_else(|| "checkpoint".into(), |name| in_line(&name.to_string_lossy()).into_owned());
    OracleInfo {
        format: 1,
        name,
        family: architecture.family().into(),
        architecture,
        class_names: (0..classes).map(|c| c.to_string()).collect(),
        preprocessing: preprocessing(&architecture, pixels),
        pixels,
        weights_sha256,
        storage: "as published".into(),
        inferred: Some(sentences),
        flows: Vec::new(),
        training: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::preprocess::Preprocessing;

    #[test]
    fn weights_are_the_world_that_their_folder_describes_and_alone_say_what_is_assumed() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| place.path().join(name);
        let copy =
            |from: &str, to: &str| std::fs::copy(Path::new("assets/oracles/mnist").join(from), file(to)).unwrap();
        let open = || read(file("theirs.safetensors").to_str().unwrap()).unwrap();
        copy(WEIGHTS, "theirs.safetensors");
        let assumed = |info: &OracleInfo| info.inferred.iter().flatten().any(|told| told.contains("assumed"));
        let (alone, weights) = open();
        assert!(assumed(&alone) && alone.pixels == Preprocessing::Uniform, "{alone:?}");
        // The description of other weights is none of these.
        std::fs::copy("assets/oracles/fashion/oracle.json", file(DESCRIPTION)).unwrap();
        assert_eq!(open().0, alone);
        copy(DESCRIPTION, DESCRIPTION);
        let (described, same) = open();
        assert_eq!((&described, &same), (&read("assets/oracles/mnist").unwrap().0, &weights));
        assert!(matches!(described.pixels, Preprocessing::Gaussian { .. }) && !assumed(&described), "{described:?}");
    }
}
