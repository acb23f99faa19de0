//! An oracle on disk (`oracle.json` and `weights.safetensors`), and opening one by name or path.

mod per_class;
mod refusal;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

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

pub use super::info::{
    BEST_INFO, DESCRIPTION, FLOWS, Oracle, OracleInfo, StorageDrift, TrainingRecord, WEIGHTS, preprocessing,
};
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
        let world =
            World::new(flow, self.class_names.clone(), batch)?.of_weights(&self.weights_sha256, self.assumed_pixels());
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

/// The weights of the oracle that is open as `info`, read again from where it was opened: by now another one may lie there, since
/// a training replaces its best epoch in place.
///
/// # Errors
/// As [`open`]; says so where another world lies there.
pub fn read_again(oracle: &str, info: &OracleInfo) -> Result<Weights> {
    let (now, weights) = read(oracle)?;
    if (&now.weights_sha256, now.pixels) == (&info.weights_sha256, info.pixels) {
        return Ok(weights);
    }
    let told = |info: &OracleInfo| format!("weights {:.12}, pixels {}", info.weights_sha256, info.pixels.word());
    Err(Error::input(format!(
        "{oracle} is another world than the one that was opened there ({} then, {} now): open it again",
        told(info),
        told(&now)
    )))
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

/// The files beside a file of weights that may describe them: of an oracle, of a training's best epoch. Without them a copy of
/// the weights may open as another world. Of two of one name, beside a link and beside the file it leads to, the first.
pub fn descriptions_beside(path: &Path) -> Vec<PathBuf> {
    let mut found = neighbours(path);
    let mut names = HashSet::new();
    found.retain(|description| names.insert(description.file_name().map(ToOwned::to_owned)));
    found
}

/// What may describe a file of weights, beside the path and then beside the file that it leads to as a link.
fn neighbours(path: &Path) -> Vec<PathBuf> {
    let resolved = path.canonicalize().ok().filter(|_| path.is_file());
    let Some(resolved) = resolved else { return Vec::new() };
    let beside = [path, &resolved].map(|path| [DESCRIPTION, BEST_INFO].map(|name| path.with_file_name(name)));
    beside.into_iter().flatten().filter(|description| description.is_file()).collect()
}

/// The description beside a file of weights that is of these very weights.
fn description_beside(path: &Path, sha256: &str) -> Option<(PathBuf, OracleInfo)> {
    neighbours(path).into_iter().find_map(|description| {
        let info: OracleInfo = serde_json::from_slice(&read_bytes(&description).ok()?).ok()?;
        (info.weights_sha256 == sha256 && check_names(&info).is_ok()).then_some((description, info))
    })
}

/// A file of weights: the world that a description beside it tells, or that of a bundled oracle of these weights, since the file
/// does not tell how pixels enter the world; otherwise a checkpoint as it is.
fn read_file(path: &Path, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, Weights)> {
    let Checkpoint { inferred, weights } = read_checkpoint(path, events)?;
    let weights_sha256 = sha256_of_file(path, events)?;
    if let Some((description, info)) = description_beside(path, &weights_sha256) {
        check_architecture(&description, &inferred.architecture, &info)?;
        return Ok((info, weights));
    }
    if let Some(bundled) = library::of_weights(&weights_sha256) {
        return Ok((bundled.info()?, weights));
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
    use crate::data::sha256;
    use crate::flow::preprocess::Preprocessing;
    use crate::flow::weights::Storage;

    /// The digits with one weight changed: weights that no bundled oracle has, with their bytes.
    fn changed() -> (OracleInfo, Vec<u8>) {
        let (info, mut weights) = read("mnist").unwrap();
        weights.0.values_mut().next().unwrap().values[0] += 1e-3;
        let bytes = weights.to_safetensors(Storage::F32).unwrap();
        (OracleInfo { weights_sha256: sha256(&bytes), ..info }, bytes)
    }

    #[test]
    fn weights_are_the_world_that_lies_described_beside_them_and_alone_say_what_is_assumed() {
        let (info, bytes) = changed();
        let described = serde_json::to_vec(&info).unwrap();
        for name in [DESCRIPTION, BEST_INFO] {
            let place = tempfile::tempdir().unwrap();
            let file = |name: &str| place.path().join(name);
            std::fs::write(file("theirs.safetensors"), &bytes).unwrap();
            let open = || read(file("theirs.safetensors").to_str().unwrap()).unwrap().0;
            let alone = open();
            assert!(alone.inferred.iter().flatten().any(|told| told.contains("assumed")), "{alone:?}");
            assert_eq!(alone.pixels, Preprocessing::Uniform);
            // The description of other weights is none of these.
            std::fs::copy("assets/oracles/fashion/oracle.json", file(name)).unwrap();
            assert_eq!(open(), alone);
            std::fs::write(file(name), &described).unwrap();
            assert_eq!(open(), info);
            // The same weights, and two worlds; what is described keeps the name that it had.
            assert_eq!(
                (alone.weights_sha256.as_str(), info.world_id()),
                (info.weights_sha256.as_str(), info.weights_sha256.clone())
            );
            assert_eq!(alone.world_id(), format!("uniform:{}", info.weights_sha256));
        }
        // A description that says another treatment than that of the training it records.
        let edited = OracleInfo { pixels: Preprocessing::Uniform, ..info.clone() };
        assert_eq!(edited.world_id(), format!("uniform:{}", info.weights_sha256));
        // Descriptions without a record, of one file of weights: two treatments are two worlds.
        for (pixels, word) in [(info.pixels, "gaussian-0.05"), (Preprocessing::Uniform, "uniform")] {
            let unrecorded = OracleInfo { pixels, training: None, ..info.clone() };
            assert_eq!(unrecorded.world_id(), format!("{word}:{}", info.weights_sha256));
        }
    }

    #[test]
    fn weights_of_a_bundled_oracle_are_its_world_wherever_they_lie() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("lonely.safetensors");
        for (folder, name) in [("mnist", "mnist"), ("mnist-9b44f254", "mnist@9b44f254")] {
            std::fs::copy(Path::new("assets/oracles").join(folder).join(WEIGHTS), &file).unwrap();
            assert_eq!(read(file.to_str().unwrap()).unwrap(), read(name).unwrap());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_weights_is_the_world_that_lies_described_beside_them() {
        let (info, bytes) = changed();
        let (place, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let real = place.path().canonicalize().unwrap();
        let file = |name: &str| real.join(name);
        std::fs::write(file(WEIGHTS), &bytes).unwrap();
        std::fs::write(file(DESCRIPTION), serde_json::to_vec(&info).unwrap()).unwrap();
        let link = elsewhere.path().join("link.safetensors");
        std::os::unix::fs::symlink(file(WEIGHTS), &link).unwrap();
        let open = || read(link.to_str().unwrap()).unwrap().0;
        assert_eq!((open(), descriptions_beside(&link)), (info.clone(), vec![file(DESCRIPTION)]));
        // What lies beside the link comes first, where it is of these weights.
        let own = elsewhere.path().join(DESCRIPTION);
        std::fs::copy("assets/oracles/fashion/oracle.json", &own).unwrap();
        assert_eq!(open(), info);
        let mine = OracleInfo { name: "mine".into(), ..info };
        std::fs::write(&own, serde_json::to_vec(&mine).unwrap()).unwrap();
        assert_eq!((open(), descriptions_beside(&link)), (mine, vec![own]));
    }

    #[test]
    fn weights_are_not_read_again_where_another_world_lies_by_now() {
        let (info, bytes) = changed();
        let place = tempfile::tempdir().unwrap();
        let lay = |info: &OracleInfo, bytes: &[u8]| {
            std::fs::write(place.path().join(DESCRIPTION), serde_json::to_vec(info).unwrap()).unwrap();
            std::fs::write(place.path().join(WEIGHTS), bytes).unwrap();
        };
        let again = |info: &OracleInfo| read_again(place.path().to_str().unwrap(), info);
        lay(&info, &bytes);
        assert_eq!(again(&info).unwrap().0, read(place.path().to_str().unwrap()).unwrap().1.0);
        // Other weights, and the same ones in which pixels enter otherwise.
        let (digits, weights) = read("mnist").unwrap();
        let theirs = weights.to_safetensors(Storage::F32).unwrap();
        let other = OracleInfo { weights_sha256: sha256(&theirs), ..digits };
        let uniform = OracleInfo { pixels: Preprocessing::Uniform, ..info.clone() };
        for (now, bytes, said) in
            [(&other, &theirs, &other.weights_sha256[..12]), (&uniform, &bytes, "pixels uniform now")]
        {
            lay(now, bytes);
            let why = again(&info).unwrap_err().to_string();
            assert!(why.contains(said) && why.contains(&info.weights_sha256[..12]), "{why}");
            assert!(again(now).is_ok());
        }
    }

    #[test]
    fn a_world_keeps_what_tells_it_from_others_on_a_device() {
        let (info, bytes) = changed();
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("theirs.safetensors");
        std::fs::write(&file, bytes).unwrap();
        let Oracle { info: alone, world } = open(file.to_str().unwrap(), &Device::flex(), Precision::F32, 1).unwrap();
        assert_eq!(world.id(), alone.world_id());
        assert_eq!((world.home().pixels, world.home().pixel_range), (alone.home().pixels, [0.0, 1.0]));
        assert_eq!((info.home().pixels.as_str(), info.home().pixel_range), ("gaussian-0.05", [-1.0, 1.0]));
    }
}
