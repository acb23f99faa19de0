//! The result of a job: written once every shard is whole.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::job::{InputRecord, Job};
use super::log::{Log, blank};
use super::{Computer, Images, Outcome, ScaleEvent, ScaleSpec, frame, shard_path};
use crate::data::{
    Column, Stored, read_json, sha256_of_file, sweep_all_temp_files, sweep_temp_files, wait_for_lock, with_way_out,
    write_json, write_table,
};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::{Precision, Scores};
use crate::oracle::folder;
use crate::oracle::precision::{IMAGES, PrecisionReport, compare};
use crate::oracle::world::{Settings, World};

/// Name of the result inside a job folder.
pub const POSTERIORS: &str = "posteriors.npz";
/// Name of its description.
pub const REPORT: &str = "posteriors.json";
/// Held by the one process that writes the result.
const LOCK: &str = "posteriors.lock";

/// The content of `posteriors.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Identifies the job: SHA-256 of what `job.json` says, names left out.
    pub job: String,
    /// The oracle.
    pub oracle: String,
    /// SHA-256 of its weights.
    pub weights_sha256: String,
    /// The images.
    pub input: InputRecord,
    /// Number of classes K.
    pub classes: usize,
    /// τ, T and π.
    pub settings: Settings,
    /// SHA-256 of `posteriors.npz`.
    pub sha256: String,
    /// What its arrays are.
    pub arrays: Vec<String>,
    /// What the posteriors are exact for.
    pub exact_for: String,
    /// Difference of the first images' posteriors from 64-bit arithmetic; absent where they were
    /// computed in 64 bits or no comparison was asked for.
    pub precision: Option<PrecisionReport>,
    /// What computed the shards: device and instruction set, on different ones of which the last
    /// bits may differ. Old jobs name the device alone.
    pub devices: Vec<String>,
    /// Mean entropy of the posteriors, nats.
    pub mean_aleatoric_nats: f64,
}

/// The description of a result that is there already.
///
/// # Errors
/// When it cannot be read, or is of another job.
pub fn finished(folder: &Path, job: &Job) -> Result<Option<Report>> {
    let path = folder.join(REPORT);
    if !folder.join(POSTERIORS).exists() {
        return Ok(None);
    }
    let way_out = "remove it: it is written again from the scores";
    let report: Option<Report> = read_json(&path).map_err(|error| with_way_out(error, way_out))?;
    match report.as_ref().is_none_or(|report| report.job == job.id()) {
        true => Ok(report),
        false => {
            Err(Error::file(path, "is of another job than job.json beside it: remove it, or give --out another folder"))
        }
    }
}

/// Looks whether the result of a job that is asked for again is still what its description says. Reads all of it.
///
/// # Errors
/// Names it where it is not, or cannot be read.
pub fn check_result(folder: &Path, report: &Report) -> Result<()> {
    let path = folder.join(POSTERIORS);
    if sha256_of_file(&path, &mut silent())? == report.sha256 {
        return Ok(());
    }
    let cause =
        format!("is not what {REPORT} says, by its SHA-256: remove it, and it is written again from the scores");
    Err(Error::file(path, cause))
}

/// Writes the result if no shard is incomplete; otherwise returns which are.
///
/// # Errors
/// As [`super::run`].
pub fn finish(
    computer: &Computer<'_>,
    images: &Images,
    spec: &ScaleSpec,
    job: &Job,
    folder: &Path,
    events: &mut dyn Events<ScaleEvent>,
) -> Result<Outcome> {
    let (mut logs, mut waiting_for) = (Vec::new(), Vec::new());
    for shard in 0..job.shards {
        let frame = frame(computer.world, job, shard);
        let nothing = frame.images.is_empty();
        match Log::read(&shard_path(folder, shard, job.shards), frame)? {
            Some(log) if log.missing() == 0 => logs.push(log),
            _ if nothing => {}
            _ => waiting_for.push(shard),
        }
    }
    if !waiting_for.is_empty() {
        return Ok(Outcome { report: None, waiting_for });
    }
    let held = wait_for_lock(&folder.join(LOCK), &mut || Ok(()))?;
    let report = match finished(folder, job)? {
        Some(report) => report,
        None => {
            // Left by killed writers. Without locks another may be writing the same result.
            if held.is_some() {
                sweep_all_temp_files(folder)
            } else {
                sweep_temp_files(folder)
            };
            write(computer, images, spec, job, (folder, &logs), events)?
        }
    };
    Ok(Outcome { report: Some(report), waiting_for })
}

fn write(
    computer: &Computer<'_>,
    images: &Images,
    spec: &ScaleSpec,
    job: &Job,
    (folder, logs): (&Path, &[Log]),
    events: &mut dyn Events<ScaleEvent>,
) -> Result<Report> {
    let path = folder.join(POSTERIORS);
    let mean_aleatoric_nats = write_posteriors(computer.world, job, logs, &path, events)?;
    let precision = match computer.precision {
        Precision::F32 if spec.compare => Some(measure(computer, images, job, logs)?),
        _ => None,
    };
    let devices: BTreeSet<String> = logs.iter().flat_map(Log::devices).collect();
    let report = Report {
        job: job.id(),
        oracle: job.oracle.clone(),
        weights_sha256: job.weights_sha256.clone(),
        input: job.input.clone(),
        classes: job.classes.len(),
        settings: job.settings.clone(),
        sha256: sha256_of_file(&path, &mut silent())?,
        arrays: ARRAYS.map(str::to_owned).to_vec(),
        exact_for: exact_for(job),
        precision,
        devices: devices.into_iter().collect(),
        mean_aleatoric_nats,
    };
    write_json(&folder.join(REPORT), &report)?;
    Ok(report)
}

const ARRAYS: [&str; 4] = [
    "logp: log p(x|y), float64 [N, K], total nats",
    "posterior: p_T(y|x), float32 [N, K]",
    "aleatoric: entropy of the posterior, float64 [N], nats",
    "log_px: log p(x), float64 [N], nats",
];

fn exact_for(job: &Job) -> String {
    match job.input.dequantisation {
        None => "the float tensors of the input, in the world of this oracle".into(),
        Some(how) => format!("the tensors that the 8-bit images were mapped to ({how}), in the world of this oracle"),
    }
}

/// What the shards know of some images.
fn sheet(world: &World, job: &Job, logs: &[Log], images: &Range<usize>) -> Result<Scores> {
    let classes = job.classes.len();
    let maps = if world.flow().shared_base().is_some() { 1 } else { classes };
    let mut sheet = blank(images.len(), classes, maps, world.shape().dims());
    logs.iter().try_for_each(|log| log.fill(images, images.start, &mut sheet))?;
    Ok(sheet)
}

/// Writes the archive and returns the mean entropy.
fn write_posteriors(
    world: &World,
    job: &Job,
    logs: &[Log],
    path: &Path,
    events: &mut dyn Events<ScaleEvent>,
) -> Result<f64> {
    let (n, k) = (job.input.images, job.classes.len());
    let column = |name, stored, shape: &[usize]| Column { name, stored, shape: shape.to_vec() };
    let columns = [
        column("logp", Stored::F64, &[k]),
        column("posterior", Stored::F32, &[k]),
        column("aleatoric", Stored::F64, &[]),
        column("log_px", Stored::F64, &[]),
    ];
    let (mut aleatoric, mut log_px) = (Vec::with_capacity(n), Vec::with_capacity(n));
    write_table(path, n, &columns, &mut |column, rows| {
        if column > 1 {
            return Ok(if column == 2 { &aleatoric } else { &log_px }[rows].to_vec());
        }
        let sheet = sheet(world, job, logs, &rows)?;
        let mut block = Vec::with_capacity(rows.len() * k);
        for i in 0..rows.len() {
            let posterior = world.posterior(&sheet, i, &job.settings);
            if column == 0 {
                aleatoric.push(posterior.entropy_nats);
                log_px.push(posterior.log_px);
            }
            block.extend(if column == 0 { posterior.log_likelihood } else { posterior.probabilities });
        }
        events.report(ScaleEvent::Writing(Progress { done: column * n + rows.end, total: 2 * n }))?;
        Ok(block)
    })?;
    Ok(aleatoric.iter().sum::<f64>() / n as f64)
}

fn measure(computer: &Computer<'_>, images: &Images, job: &Job, logs: &[Log]) -> Result<PrecisionReport> {
    let first = 0..IMAGES.min(images.len());
    let scores = sheet(computer.world, job, logs, &first)?;
    let x = images.x(first, computer.world)?;
    let weights = folder::read_again(computer.oracle, computer.info)?;
    compare(computer.info, weights, &x, &scores, &job.settings, &mut silent())
}
