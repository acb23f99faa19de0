//! A trained flow as an oracle: its description, and its folder.

use std::path::Path;

use super::{TrainSpec, Trained};
use crate::data::{sha256, write_atomically, write_json};
use crate::error::{Error, Result, in_line};
use crate::flow::weights::Storage;
use crate::oracle::info::{DESCRIPTION, OracleInfo, StorageDrift, TrainingRecord, WEIGHTS, preprocessing};

/// What there is to know about a trained flow whose weights are stored in that format; their hash
/// is still to be filled in.
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
            history: None,
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
