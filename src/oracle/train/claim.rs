//! Whose a training folder is: the spec of the run in it, and the oracles in it, which that run
//! would replace.

use std::fs::File;
use std::path::Path;

use super::checkpoint::{self, State};
use super::presets::SPEC;
use super::spec::TrainSpec;
use crate::data::{in_folder, lock_file, read_json, ticket_conflict, with_way_out, write_atomically};
use crate::error::{Error, Result};
use crate::oracle::info::{BEST_INFO, DESCRIPTION, FLOWS, OracleInfo, WEIGHTS};

/// Name of the finished oracle inside a training folder.
pub const ORACLE: &str = "oracle";
/// Averaged weights of the best epoch.
pub const BEST: &str = "best.safetensors";

/// Held by who trains in a folder: two would write into one checkpoint.
const LOCK: &str = ".lock";

/// A folder in which no other process trains as long as the lock lives.
pub struct Entered<'a> {
    folder: &'a Path,
    /// Of this process.
    pub lock: File,
    /// Folders that were made for it, the innermost first.
    made: Vec<&'a Path>,
}

/// Makes a folder where it is not there, and takes its lock.
///
/// # Errors
/// Names what cannot be made; where another process trains there.
pub fn enter(folder: &Path) -> Result<Entered<'_>> {
    let missing = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    let made = missing.collect();
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let busy = "another process is training in this folder: wait for it, or stop it";
    Ok(Entered { folder, lock: lock_file(&folder.join(LOCK), busy)?, made })
}

impl Entered<'_> {
    /// Gives the lock up where a training cannot start. What was made for it goes, unless it holds
    /// something else by now.
    pub fn leave(self) {
        let Self { folder, lock, made } = self;
        // Closed first: not every system removes an open file.
        drop(lock);
        let only_lock = |mut entries: std::fs::ReadDir| entries.all(|e| e.is_ok_and(|e| e.file_name() == LOCK));
        if !made.is_empty() && std::fs::read_dir(folder).is_ok_and(only_lock) {
            let _ = std::fs::remove_file(folder.join(LOCK));
            for folder in made {
                let _ = std::fs::remove_dir(folder);
            }
        }
    }
}

/// Whether a training of this spec may begin or go on in a folder, as far as that shows before its
/// images are read.
///
/// # Errors
/// Names what the spec in the folder says otherwise; of a new training, what it sets and nothing
/// reads; as [`check_oracles`].
pub fn check_folder(spec: &TrainSpec, folder: &Path) -> Result<()> {
    check_training(spec, folder)?;
    check_oracles(spec, None, folder)
}

/// Whether the checkpoint in a folder, if there is one, is of this spec.
fn check_training(spec: &TrainSpec, folder: &Path) -> Result<()> {
    let (place, begun) = match checkpoint::newest(folder)? {
        None => return spec.check_read(),
        // Not the spec beside it, which may have been edited or be gone.
        Some((place, State { spec: Some(begun), .. })) => (place, begun),
        // A checkpoint of an older version knows no other.
        Some(_) if folder.join(SPEC).exists() => (folder.join(SPEC), TrainSpec::of_run(folder)?),
        Some(_) => return Ok(()),
    };
    conflict(&place, &begun, spec).map_or(Ok(()), Err)
}

/// Whether a training of this spec may replace the oracles in a folder: its best epoch and the
/// finished one. Where its images are read, `pixels_sha256` is theirs. Without a checkpoint the spec
/// in the folder says nothing of these oracles.
///
/// # Errors
/// Names an oracle of another training, or of none, and the ways out.
pub fn check_oracles(spec: &TrainSpec, pixels_sha256: Option<&str>, folder: &Path) -> Result<()> {
    let finished = folder.join(ORACLE);
    for (description, goes) in [
        (folder.join(BEST_INFO), format!("{BEST_INFO} and {BEST}")),
        (finished.join(DESCRIPTION), finished.display().to_string()),
    ] {
        let refused = match read_json::<OracleInfo>(&description) {
            Ok(found) => found.and_then(|info| other_oracle(&description, &info, (spec, pixels_sha256))),
            Err(error) => Some(with_way_out(error, "choose another folder")),
        };
        if let Some(error) = refused {
            return Err(with_way_out(error, &format!("or remove {goes}, which this training would replace")));
        }
    }
    let described = finished.join(DESCRIPTION).exists();
    // A training that was killed before it wrote the description has a checkpoint.
    let bare = finished.join(FLOWS).exists() || (finished.join(WEIGHTS).exists() && !checkpoint::is_in(folder)?);
    if bare && !described {
        return Err(Error::file(
            &finished,
            "holds weights of an unknown training: choose another folder; or remove this one, which this training would replace",
        ));
    }
    Ok(())
}

/// Refuses an oracle that another training than this one has left, or none.
fn other_oracle(path: &Path, found: &OracleInfo, (spec, pixels): (&TrainSpec, Option<&str>)) -> Option<Error> {
    let refusal = |what: &str| Error::file(path, format!("is of {what}: choose another folder"));
    let Some(record) = &found.training else { return Some(refusal("an oracle without a record of its training")) };
    let others = pixels.is_some_and(|pixels| pixels != record.pixels_sha256);
    conflict(path, &record.spec, spec).or_else(|| others.then(|| refusal("a training on other images")))
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
