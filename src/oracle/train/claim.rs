//! Whose a training folder is: the spec of the run in it.

use std::path::Path;

use super::checkpoint;
use super::presets::SPEC;
use super::spec::TrainSpec;
use crate::data::{in_folder, ticket_conflict, write_atomically};
use crate::error::{Error, Result};

/// Whether a training of this spec may begin or go on in a folder. Without a checkpoint nothing in it is of another spec.
///
/// # Errors
/// Names what the spec in the folder says otherwise; of a new training, what it sets and nothing reads.
pub fn check_folder(spec: &TrainSpec, folder: &Path) -> Result<()> {
    if !checkpoint::is_in(folder)? {
        return spec.check_read();
    }
    let path = folder.join(SPEC);
    if !path.exists() {
        return Ok(());
    }
    conflict(&path, &TrainSpec::of_run(folder)?, spec).map_or(Ok(()), Err)
}

/// Refuses another training than the one that `path` records, naming the differences. The images may lie elsewhere now:
/// a checkpoint and a record know them by their hash.
pub fn conflict(path: &Path, found: &TrainSpec, asked: &TrainSpec) -> Option<Error> {
    ticket_conflict(path, "training", (&found.effective(), &asked.effective()), &["data.path"])
}

/// Writes the spec of a run that was opened into its folder, where it does not say the same already. The path of the images
/// is absolute there: the run goes on from any working folder.
///
/// # Errors
/// Names the file that cannot be written.
pub fn keep_spec(spec: &TrainSpec, folder: &Path) -> Result<()> {
    let path = folder.join(SPEC);
    let mut spec = spec.clone();
    spec.data.path = in_folder(Path::new(""), &spec.data.path)?;
    if TrainSpec::read(&path).is_ok_and(|there| there == spec) {
        return Ok(());
    }
    let text = toml::to_string_pretty(&spec).map_err(|e| Error::file(&path, e.to_string()))?;
    write_atomically(&path, |file| file.write_all(text.as_bytes()))
}
