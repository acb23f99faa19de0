//! The best epoch of a run that is not over, as an oracle. `best.json` describes
//! `best.safetensors`.

use std::path::{Path, PathBuf};

use super::claim::BEST;
use super::describe::describe;
use super::publish::today;
use super::{TrainSpec, Trained};
use crate::data::{WHOLE, read_bounded, read_bytes, sha256, write_atomically, write_json};
use crate::error::{Error, Result};
use crate::flow::weights::Storage;
use crate::oracle::folder::{BEST_INFO, DESCRIPTION, OracleInfo, WEIGHTS};

/// Name of that oracle's folder inside a run folder.
pub const SO_FAR: &str = "best-so-far";

/// Keeps the best epoch of the run in `run`: weights and description.
///
/// # Errors
/// Names the file that cannot be written.
pub(super) fn keep(run: &Path, spec: &TrainSpec, best: &Trained, device: &str) -> Result<()> {
    let bytes = best.weights.to_safetensors(Storage::F32)?;
    let mut info = describe(spec, best, Storage::F32, device, &today(), None);
    info.weights_sha256 = sha256(&bytes);
    info.name = format!("{} after epoch {}", spec.name, best.epoch);
    write_atomically(&run.join(BEST), |file| file.write_all(&bytes))?;
    write_json(&run.join(BEST_INFO), &info)
}

/// Writes the best epoch so far as an oracle folder inside `run` and returns that folder. The run
/// may still be training: none of its files is touched.
///
/// # Errors
/// Names the file that is missing, torn or cannot be written.
pub fn oracle_so_far(run: &Path) -> Result<PathBuf> {
    let (weights, description) = (run.join(BEST), run.join(BEST_INFO));
    let text = read_bytes(&description).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::file(&description, "is not there yet: a run has a checkpoint to use once its first epoch is over")
        }
        _ => Error::io(&description, e),
    })?;
    let bytes = read_bounded(&weights, WHOLE).map_err(|e| Error::io(&weights, e))?;
    let info: OracleInfo = serde_json::from_slice(&text).map_err(|e| Error::file(&description, e.to_string()))?;
    if sha256(&bytes) != info.weights_sha256 {
        let why = "does not belong to best.json (the run was killed between the two): let it finish another epoch";
        return Err(Error::file(&weights, why));
    }
    let folder = run.join(SO_FAR);
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
    write_atomically(&folder.join(WEIGHTS), |file| file.write_all(&bytes))?;
    write_atomically(&folder.join(DESCRIPTION), |file| file.write_all(&text))?;
    Ok(folder)
}
