//! Trained classifiers in run folders.

use std::path::{Path, PathBuf};

use super::cells::Run;
use super::folder::RunFolder;
use crate::error::{Error, Result};
use crate::experiment::LAST;

/// The checkpoints that a path stands for: of all finished cells of a run folder, of a cell's
/// folder, or the file itself.
///
/// # Errors
/// Names a folder that has none.
pub fn checkpoints(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    if !RunFolder::is_run(path) {
        let file = path.join(LAST);
        return match file.is_file() {
            true => Ok(vec![file]),
            false => Err(Error::file(path, format!("is neither a run folder nor that of a cell, which has a {LAST}"))),
        };
    }
    let folder = RunFolder::open(path)?;
    let finished = folder.plan.iter().filter(|planned| folder.finished(&planned.id));
    let files: Vec<PathBuf> = finished.map(|planned| folder.cell(&planned.id).join(LAST)).collect();
    match files.is_empty() {
        true => {
            Err(Error::file(path, "has no finished cell yet; the checkpoint of one in training may be named itself"))
        }
        false => Ok(files),
    }
}
