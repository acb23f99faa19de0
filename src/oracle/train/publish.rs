//! From a spec to an oracle folder: train, measure what storing in f16 does, write.

use std::path::Path;

use super::claim::ORACLE;
use super::describe::write;
use super::events::{Measured, measuring};
use super::{Run, TrainEvent, TrainSpec, Trained, all_epochs, claim, corpus};
use crate::data::{Dataset, Split, sha256};
use crate::device::OpenDevice;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::flow::preprocess::Dequantisation;
use crate::flow::weights::Storage;
use crate::flow::{Precision, Scores};
use crate::oracle::folder::{self, OracleInfo, StorageDrift};
use crate::oracle::posterior::{Posterior, Prior};
use crate::units::{Smoothing, Tau};

/// Images on which stored and trained weights are compared at most.
const DRIFT_IMAGES: usize = 1000;
/// Images in one pass while comparing.
const BATCH: usize = 50;

/// Trains in `folder` (resuming where a killed run stopped; every epoch ends in a checkpoint) and writes the oracle folder
/// `folder/oracle`, or leaves the one that an earlier sitting wrote of the same weights, with its day and device.
///
/// # Errors
/// Bad data or spec, a folder of another spec or with another oracle, a full disk, a failing device, or
/// [`Error::Cancelled`](crate::error::Error::Cancelled); names the file that cannot be written.
pub fn train_oracle(
    spec: &TrainSpec,
    folder: &Path,
    chosen: &OpenDevice,
    events: &mut dyn Events<TrainEvent>,
) -> Result<OracleInfo> {
    let (run, _lock) = all_epochs(spec, folder, chosen, events)?;
    if let Some(info) = published(&run)? {
        return Ok(info);
    }
    let trained = run.finish(events)?;
    let drift = match spec.storage {
        Storage::F32 => None,
        Storage::F16 => Some(storage_drift(spec, &trained, chosen, events)?),
    };
    write(&folder.join(ORACLE), spec, &trained, &chosen.report.used.label(), &today(), drift)
}

/// The oracle that an earlier sitting wrote of the best epoch of a run. One of another training,
/// which may have come while this one ran, is an error: it is not replaced.
fn published(run: &Run<'_>) -> Result<Option<OracleInfo>> {
    claim::check_oracles(run.spec, Some(&run.pixels_sha256), run.folder)?;
    // Weights that cannot be read are written anew.
    let Ok((info, _)) = folder::read(&run.folder.join(ORACLE).display().to_string()) else { return Ok(None) };
    let weights = run.best_weights()?.to_safetensors(run.spec.storage)?;
    Ok((info.weights_sha256 == sha256(&weights)).then_some(info))
}

/// Images on which stored and trained weights are compared, evenly spread: test images, otherwise training images.
fn compared(spec: &TrainSpec) -> Result<Dataset> {
    corpus(&spec.data, Split::Test).or_else(|_| corpus(&spec.data, Split::Train))?.spread(DRIFT_IMAGES)
}

/// Compares the trained weights with their f16 form.
fn storage_drift(
    spec: &TrainSpec,
    trained: &Trained,
    chosen: &OpenDevice,
    events: &mut dyn Events<TrainEvent>,
) -> Result<StorageDrift> {
    let data = compared(spec)?;
    let dims = data.shape.dims();
    let build = |weights| trained.architecture.build(weights, trained.pixels, &chosen.device, Precision::F32);
    let exact = build(trained.weights.clone())?;
    let stored = build(trained.weights.clone().rounded(Storage::F16))?;
    let mut drift = StorageDrift {
        images: data.len(),
        max_posterior: 0.0,
        mean_posterior: 0.0,
        max_log_likelihood: 0.0,
        decisions_changed: 0,
    };
    let mut told = measuring([trained.epoch, spec.training.epochs, spec.training.epochs], Measured::Stored, events);
    for (chunk, pixels) in data.pixels.chunks(BATCH * dims).enumerate() {
        let x = trained.pixels.map_in(pixels, dims, chunk * BATCH, Dequantisation::default());
        add_drift(&mut drift, &exact.score(&x)?, &stored.score(&x)?);
        let done = (chunk * BATCH + pixels.len() / dims).min(data.len());
        told.report(Progress { done, total: data.len() })?;
    }
    drift.mean_posterior /= data.len() as f64;
    Ok(drift)
}

fn add_drift(drift: &mut StorageDrift, exact: &Scores, stored: &Scores) {
    let prior = Prior::uniform(exact.classes);
    let posterior = |scores: &Scores, i| Posterior::new(scores.log_likelihoods(i, Tau::ONE), &prior, Smoothing::ONE);
    for i in 0..exact.len() {
        let (a, b) = (posterior(exact, i), posterior(stored, i));
        let change = a.distance(&b);
        drift.max_posterior = drift.max_posterior.max(change);
        drift.mean_posterior += change;
        let moved = a.log_likelihood.iter().zip(&b.log_likelihood).map(|(a, b)| (a - b).abs());
        drift.max_log_likelihood = moved.fold(drift.max_log_likelihood, f64::max);
        drift.decisions_changed += usize::from(a.decision != b.decision);
    }
}

/// The day, ISO 8601, UTC (days since 1970 to a civil date, Howard Hinnant's algorithm).
pub(super) fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    civil_date(since.as_secs() / 86_400)
}

fn civil_date(days: u64) -> String {
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year_of_era + carry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ImageShape, write_png};

    #[test]
    fn stored_weights_are_compared_on_images_of_every_class() {
        let place = tempfile::tempdir().unwrap();
        let shape = ImageShape { channels: 1, height: 1, width: 1 };
        for (class, n) in [("a", 1100), ("b", 110)] {
            let folder = place.path().join(class);
            std::fs::create_dir_all(&folder).unwrap();
            let first = folder.join("0000.png");
            write_png(&first, shape, &[9]).unwrap();
            for i in 1..n {
                std::fs::copy(&first, folder.join(format!("{i:04}.png"))).unwrap();
            }
        }
        let text = format!("name = 'x'\n[data]\npath = '{}'\npad_to = 1", place.path().display());
        let of_class = compared(&toml::from_str(&text).unwrap()).unwrap().labels.unwrap();
        assert_eq!(of_class.len(), DRIFT_IMAGES);
        assert_eq!(of_class.iter().filter(|&&class| class == 1).count(), 90);
    }

    #[test]
    fn days_become_dates() {
        assert_eq!([0, 59, 11_016, 20_777].map(civil_date), ["1970-01-01", "1970-03-01", "2000-02-29", "2026-11-20"]);
    }
}
