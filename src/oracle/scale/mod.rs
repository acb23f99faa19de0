//! Posteriors at scale: N images under K classes (BLC App. F), in passes of a fixed number of
//! images, stored as they come.
//!
//! The unit of work is one pass: [`Flow::images_per_pass`](crate::flow::Flow::images_per_pass)
//! images that begin at a multiple of that number (the last pass is filled up with copies), under
//! one class where the map depends on it. A device's result for an image may depend on the other
//! images of its pass, so nothing else may decide which those are: class batches, image batches,
//! shards, their order and a kill only decide when a pass is computed and when it is written. Same
//! images, oracle, settings and device: same bits.
//!
//! ```text
//! DIR/job.json                what is computed, written first
//! DIR/shard-0-of-3.scores     what is known (see [`log`]); statistics from which log p(x|y) follows at any τ
//! DIR/posteriors.npz          logp float64 [N, K], posterior float32 [N, K], aleatoric and log_px float64 [N], nats
//! DIR/posteriors.json         where they come from and how exact they are; written last
//! ```

mod finish;
mod input;
mod job;
mod log;
mod many;
mod plan;
#[cfg(test)]
mod tests;
mod work;

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Precision;
use crate::kernels::instruction_set;
use crate::oracle::folder::OracleInfo;
use crate::oracle::world::{Settings, World};
use crate::units::ClassId;

pub use finish::{POSTERIORS, REPORT, Report};
pub use input::Images;
pub use job::{InputRecord, JOB, Job};
pub use many::{OnDevice, run_on, shards_for};
pub use plan::{Estimate, LONGEST};

use log::{Frame, Log};

/// What to compute and in which pieces. The pieces change no number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScaleSpec {
    /// τ, T and π.
    pub settings: Settings,
    /// Which shard this process computes, from 0.
    pub shard: usize,
    /// Number of shards.
    pub shards: usize,
    /// Classes computed before they are written, at most; sized to the device where not given, at most 50.
    pub class_batch: Option<usize>,
    /// Images computed before they are written, at most, rounded up to whole passes; sized to the device
    /// where not given.
    pub image_batch: Option<usize>,
    /// Whether the first images are computed again in 64 bits.
    pub compare: bool,
}

/// Who computes.
pub struct Computer<'a> {
    /// What is known about the oracle.
    pub info: &'a OracleInfo,
    /// As it was asked for: for the comparison with 64 bits its weights are read again.
    pub oracle: &'a str,
    /// Its world.
    pub world: &'a World,
    /// Arithmetic of that world's flow.
    pub precision: Precision,
    /// The device, in words.
    pub device: &'a str,
}

/// A word from a job under way.
#[derive(Debug, Clone)]
pub enum ScaleEvent {
    /// The folder is open: what of this shard is there.
    Opened(Opened),
    /// A pass has been timed, nothing has been written yet.
    Estimated(Estimate),
    /// Further classes of some images are on the disk.
    Computed(Running),
    /// The result is being written: rows of all.
    Writing(Progress),
}

/// What was found in a job folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Opened {
    /// Pairs of an image and a class of this shard that were there, and all of them.
    pub pairs: Progress,
    /// Bytes of a torn end that were dropped: written by a process that was killed while writing.
    pub dropped_bytes: u64,
}

/// The state of the images in work while their classes are still being evaluated.
#[derive(Debug, Clone)]
pub struct Running {
    /// The images.
    pub images: Range<usize>,
    /// Classes evaluated so far, of K.
    pub classes: Progress,
    /// For each image the most probable class so far and its share among those evaluated. The share
    /// is an upper bound of its posterior, which classes to come can only lower.
    pub leaders: Vec<(ClassId, f64)>,
    /// Prior mass of the classes to come.
    pub prior_left: f64,
    /// Pairs of an image and a class of this shard on the disk, and all of them.
    pub pairs: Progress,
    /// Time this shard still takes at the pace so far.
    pub seconds_left: f64,
}

/// How a start ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The description of the finished result.
    pub report: Option<Report>,
    /// Shards that have to be finished first.
    pub waiting_for: Vec<usize>,
}

/// Computes what is missing of one shard, and the result once no shard misses anything. A stop or a
/// kill leaves a folder to go on with.
///
/// # Errors
/// When the folder holds another job or is being worked on, its result is not what it was, an image has no
/// density in this world (its number in the whole is given), the device or the disk fails, or the caller stops.
pub fn run(
    computer: &Computer<'_>,
    images: &Images,
    spec: &ScaleSpec,
    folder: &Path,
    events: &mut dyn Events<ScaleEvent>,
) -> Result<Outcome> {
    let job = describe(computer, images, spec)?;
    job.settle(folder)?;
    if let Some(report) = finish::finished(folder, &job)? {
        finish::check_result(folder, &report)?;
        return Ok(Outcome { report: Some(report), waiting_for: Vec::new() });
    }
    let (mut log, dropped_bytes) =
        Log::append(&shard_path(folder, spec.shard, spec.shards), frame(computer.world, &job, spec.shard))?;
    let total = work::pairs(&log, 0..log.passes(), job.classes.len());
    let pairs = Progress { done: total - work::missing_pairs(&log), total };
    events.report(ScaleEvent::Opened(Opened { pairs, dropped_bytes }))?;
    if pairs.done < total {
        log.note_device(&format!("{}, {}", computer.device, instruction_set()))?;
        work::compute(computer, images, spec, &mut log, LONGEST, events)?;
    }
    drop(log);
    let outcome = finish::finish(computer, images, spec, &job, folder, events)?;
    if outcome.waiting_for.contains(&spec.shard) {
        // What was just computed into it is gone: that is no waiting for others.
        let path = shard_path(folder, spec.shard, spec.shards);
        return Err(Error::file(path, "was deleted while it was being written; give the command again"));
    }
    Ok(outcome)
}

fn describe(computer: &Computer<'_>, images: &Images, spec: &ScaleSpec) -> Result<Job> {
    if spec.shards == 0 || spec.shard >= spec.shards {
        let (shard, shards) = (spec.shard, spec.shards);
        return Err(Error::input(format!("there is no shard {shard} of {shards}: shards count from 0")));
    }
    if spec.class_batch == Some(0) || spec.image_batch == Some(0) {
        return Err(Error::input("a batch holds at least one class and one image"));
    }
    computer.world.check(&spec.settings)?;
    Ok(Job::new(Job {
        format: 0,
        oracle: computer.info.name.clone(),
        weights_sha256: computer.info.weights_sha256.clone(),
        assumed_pixels: computer.info.assumed_pixels(),
        classes: computer.world.class_names().to_vec(),
        settings: spec.settings.clone(),
        precision: computer.precision,
        input: images.record()?,
        images_per_pass: computer.world.flow().images_per_pass(),
        shards: spec.shards,
    }))
}

fn shard_path(folder: &Path, shard: usize, shards: usize) -> PathBuf {
    folder.join(format!("shard-{shard}-of-{shards}.scores"))
}

/// The part of the job that is `shard`'s: whole passes, as evenly as they divide.
fn frame(world: &World, job: &Job, shard: usize) -> Frame {
    let passes = job.input.images.div_ceil(job.images_per_pass);
    let first = |shard: usize| (passes * shard / job.shards * job.images_per_pass).min(job.input.images);
    Frame {
        id: job.id(),
        images: first(shard)..first(shard + 1),
        classes: job.classes.len(),
        images_per_pass: job.images_per_pass,
        maps: if world.flow().shared_base().is_some() { 1 } else { job.classes.len() },
    }
}
