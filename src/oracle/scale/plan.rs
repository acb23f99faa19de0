//! How long it will take and in which pieces, from one measured pass.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::ScaleSpec;
use crate::error::Result;

/// Classes evaluated together (BLC App. F), unless told otherwise.
const CLASS_BATCH: usize = 50;
/// Time between two writes, if all passes take as long as the one that is timed.
const WRITE_SECS: f64 = 10.0;
/// After so long what was computed is written, however long the timed pass took. A kill loses that at most, and what the images
/// of one more pass take under a class batch.
pub const LONGEST: Duration = Duration::from_secs(15);
/// A first pass also compiles kernels; where it took no longer than this, a second one is timed.
const LONG_SECS: f64 = 60.0;
/// Images and statistics between two writes stay below this on the host.
const HOST_BYTES: usize = 1 << 28;

/// The time a shard will take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Passes to be computed.
    pub passes: usize,
    /// Images of one.
    pub images_per_pass: usize,
    /// Classes of one: 1 where the map depends on the class, all otherwise.
    pub classes_per_pass: usize,
    /// Time of one, measured.
    pub pass_secs: f64,
    /// Time of all.
    pub seconds: f64,
    /// Images computed and written together.
    pub image_batch: usize,
    /// Classes computed and written together.
    pub class_batch: usize,
    /// What was measured.
    pub basis: String,
}

/// Times one pass: the second, unless the first took very long.
pub fn time(device: &str, images: usize, mut pass: impl FnMut() -> Result<()>) -> Result<(f64, String)> {
    let mut once = || -> Result<f64> {
        let started = Instant::now();
        pass()?;
        Ok(started.elapsed().as_secs_f64())
    };
    let mut secs = once()?;
    let mut which = "first";
    if secs < LONG_SECS {
        secs = once()?;
        which = "second";
    }
    Ok((secs, format!("the {which} pass of {images} images on {device}")))
}

impl Estimate {
    /// Of `passes` passes, each taking `pass_secs`, of a world of `classes` classes and images of
    /// `dims` dimensions.
    pub fn new(
        spec: &ScaleSpec,
        [passes, images_per_pass, classes_per_pass, classes, dims]: [usize; 5],
        (pass_secs, basis): (f64, String),
    ) -> Self {
        // As many passes as fit between two writes: classes of the same images, then further
        // images.
        let fitting = (WRITE_SECS / pass_secs.max(1e-9)).clamp(1.0, 1e9) as usize;
        let class_batch = if classes_per_pass == 1 {
            spec.class_batch.unwrap_or(CLASS_BATCH.min(fitting)).min(classes)
        } else {
            classes
        };
        let rounds = class_batch.div_ceil(classes_per_pass);
        let image_passes = passes.div_ceil((classes / classes_per_pass).max(1)).max(1);
        let bytes = images_per_pass * (4 * dims + 2 * 8 * classes);
        let most = (HOST_BYTES / bytes.max(1)).clamp(1, image_passes);
        let image_batch = match spec.image_batch {
            Some(images) => images.div_ceil(images_per_pass),
            None => (fitting / rounds).clamp(1, most),
        };
        Self {
            passes,
            images_per_pass,
            classes_per_pass,
            pass_secs,
            seconds: passes as f64 * pass_secs,
            image_batch: image_batch * images_per_pass,
            class_batch,
            basis,
        }
    }
}
