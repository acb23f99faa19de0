//! The best epoch of a run: as an oracle while that is not over, and what it ends with. `best.json`
//! describes `best.safetensors`.

use std::path::{Path, PathBuf};

use super::claim::BEST;
use super::describe::describe;
use super::events::{Measured, TrainEvent, measuring};
use super::publish::today;
use super::{Best, Run, TrainSpec, Trained, checkpoint};
use crate::data::{
    Dataset, WHOLE, read_bounded, read_bytes, read_json, sha256, sha256_of_file, write_atomically, write_json,
};
use crate::error::{Error, Result};
use crate::events::{Events, silent};
use crate::flow::Precision;
use crate::flow::preprocess::Dequantisation;
use crate::flow::weights::{Storage, Weights};
use crate::oracle::evaluate::{Evaluation, evaluate};
use crate::oracle::folder::{BEST_INFO, DESCRIPTION, OracleInfo, WEIGHTS};

/// Name of that oracle's folder inside a run folder.
pub const SO_FAR: &str = "best-so-far";

/// SHA-256 of weights as the file that the best epoch has.
///
/// # Errors
/// When there is no such file of them.
pub(super) fn hash(weights: &Weights) -> Result<String> {
    Ok(sha256(&weights.to_safetensors(Storage::F32)?))
}

impl Run<'_> {
    /// The best epoch.
    ///
    /// # Errors
    /// When no epoch ended in a step that moved something.
    pub(super) fn best(&self) -> Result<&Best> {
        self.state.best.as_ref().ok_or_else(|| Error::Numeric("no epoch ended in a finite step".into()))
    }

    /// Writes the weights of the best epoch and their description.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub(super) fn keep_best(&self, weights: Weights) -> Result<()> {
        let Some(Best { epoch, held_out: Some(held_out), .. }) = &self.state.best else { return Ok(()) };
        let trained = self.trained(weights, *epoch, (held_out.clone(), None), self.state.seconds);
        keep(self.folder, self.spec, &trained, &self.chosen.report.used.label())
    }

    /// Writes the files of the best epoch from its checkpoint where they are missing or of another
    /// epoch: the training was killed, or the disk was full, after the checkpoint.
    ///
    /// # Errors
    /// Names the file that cannot be read or written.
    pub(super) fn restore_best(&self) -> Result<()> {
        let Some(Best { epoch, weights_sha256: Some(hash_of_best), .. }) = &self.state.best else { return Ok(()) };
        let described = read_json::<OracleInfo>(&self.folder.join(BEST_INFO))?;
        let described = described.is_some_and(|info| info.weights_sha256 == *hash_of_best);
        if described && file_hash(&self.folder.join(BEST))?.as_ref() == Some(hash_of_best) {
            return Ok(());
        }
        match checkpoint::average_after(self.folder, *epoch)? {
            Some(average) if hash(&average)? == *hash_of_best => self.keep_best(average),
            _ => Ok(()),
        }
    }

    /// Weights of the best epoch.
    ///
    /// # Errors
    /// Names their file where it is gone, cannot be read, or is of another epoch.
    pub(super) fn best_weights(&self) -> Result<Weights> {
        let (path, best) = (self.folder.join(BEST), self.best()?);
        if best.weights_sha256.is_some() && file_hash(&path)? != best.weights_sha256 {
            return Err(Error::file(
                path,
                format!(
                    "does not hold the weights of epoch {}, which is the best of this training; bring them back, or begin anew in \
                     another folder",
                    best.epoch
                ),
            ));
        }
        Weights::read(&path)
    }

    /// The best epoch, on the test images. A stop ends it: all epochs are on disk.
    pub(super) fn finish(self, events: &mut dyn Events<TrainEvent>) -> Result<Trained> {
        let best = self.best()?;
        let weights = self.best_weights()?;
        let flow = self.architecture.build(weights.clone(), self.pixels, &self.chosen.device, Precision::F32)?;
        let seed = self.spec.training.seed;
        let at = [best.epoch, self.state.epoch, self.spec.training.epochs];
        let mut figures = |images: &Dataset, seed, what| {
            evaluate(flow.as_ref(), images, Dequantisation::Seeded(seed), &mut measuring(at, what, events))
        };
        let held_out = match &best.held_out {
            Some(held_out) => held_out.clone(),
            None => figures(&self.held_out, seed.split("held-out"), Measured::HeldOut)?,
        };
        let tested = |test| figures(test, seed.split("test"), Measured::Test);
        let test = self.test.as_ref().map(tested).transpose()?;
        Ok(self.trained(weights, best.epoch, (held_out, test), self.state.seconds))
    }

    /// The run with the weights of one epoch and their figures on held-out and test images.
    fn trained(
        &self,
        weights: Weights,
        epoch: usize,
        (held_out, test): (Evaluation, Option<Evaluation>),
        seconds: f64,
    ) -> Trained {
        Trained {
            architecture: self.architecture,
            pixels: self.pixels,
            weights,
            epoch,
            held_out,
            test,
            images: self.train.len(),
            pixels_sha256: self.pixels_sha256.clone(),
            class_names: self.train.class_names.clone(),
            seconds,
        }
    }
}

/// SHA-256 of a file; `None` where there is none.
fn file_hash(path: &Path) -> Result<Option<String>> {
    match sha256_of_file(path, &mut silent()) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Keeps the best epoch of the run in `run`: weights and description.
///
/// # Errors
/// Names the file that cannot be written.
fn keep(run: &Path, spec: &TrainSpec, best: &Trained, device: &str) -> Result<()> {
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
        let why = "does not belong to best.json (the run was killed between the two): let it go on";
        return Err(Error::file(&weights, why));
    }
    let folder = run.join(SO_FAR);
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
    write_atomically(&folder.join(WEIGHTS), |file| file.write_all(&bytes))?;
    write_atomically(&folder.join(DESCRIPTION), |file| file.write_all(&text))?;
    Ok(folder)
}
