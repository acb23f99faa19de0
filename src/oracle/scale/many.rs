//! A job on several devices of one machine: each takes the next shard.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::{Computer, Images, Job, Outcome, Running, ScaleEvent, ScaleSpec, run};
use crate::device::{OpenDevice, WorkQueue, run_on_all};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};

/// Shards for each device of a new job: so many that a slow device hardly holds up the others.
const SHARDS_EACH: usize = 4;

/// Lets a device compute: opens the oracle and the images for it and calls back with both.
pub type OnDevice<'a> =
    dyn Fn(&OpenDevice, &mut dyn FnMut(&Computer<'_>, &Images) -> Result<()>) -> Result<()> + Sync + 'a;

/// Shards of a job in a folder: as many as it has, several for each device where it is new.
pub fn shards_for(folder: &Path, devices: usize) -> usize {
    Job::read(folder).map_or(SHARDS_EACH * devices.max(1), |job| job.shards)
}

/// [`run`] for all shards of `spec`, on several devices. The numbers are those of the devices that
/// computed them, which the report names; on devices of one kind they are those of one device.
///
/// # Errors
/// As [`run`]; [`Error::DeviceLost`] where no device is left.
pub fn run_on(
    devices: Vec<OpenDevice>,
    on: &OnDevice<'_>,
    spec: &ScaleSpec,
    folder: &Path,
    events: &mut dyn Events<ScaleEvent>,
) -> Result<Outcome> {
    let finished = Mutex::new(None);
    let work = |chosen: &OpenDevice, hand: &WorkQueue<'_, usize>, events: &mut dyn Events<Word>| {
        // Taken before the device is warm, so that every device gets one.
        let mut next = hand.take();
        if next.is_none() {
            return Ok(());
        }
        on(chosen, &mut |computer, images| {
            let all = images.record()?.images * computer.world.class_names().len();
            while let Some(shard) = next {
                let mut told = |event: ScaleEvent| events.emit(Word { shard, all, event });
                let spec = ScaleSpec { shard, ..spec.clone() };
                let outcome = run(computer, images, &spec, folder, &mut told)?;
                if outcome.report.is_some() {
                    *finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
                }
                next = hand.take();
            }
            Ok(())
        })
    };
    let mut together =
        Together { events, shards: BTreeMap::new(), found: 0, estimated: false, started: Instant::now() };
    run_on_all(devices, (0..spec.shards).collect(), work, &mut together)?;
    let outcome = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.ok_or_else(|| Error::file(folder, "no shard wrote the result; start again: what was computed is kept"))
}

/// What one shard says.
struct Word {
    shard: usize,
    /// Pairs of an image and a class in all shards.
    all: usize,
    event: ScaleEvent,
}

/// Tells what all shards together have come to.
struct Together<'a> {
    events: &'a mut dyn Events<ScaleEvent>,
    /// Pairs of the shards that were begun.
    shards: BTreeMap<usize, Progress>,
    /// Pairs that were there when their shards were begun.
    found: usize,
    estimated: bool,
    started: Instant,
}

impl Together<'_> {
    fn summed(&self, all: usize, running: Running) -> Running {
        let done = self.shards.values().map(|pairs| pairs.done).sum::<usize>();
        let fresh = done.saturating_sub(self.found).max(1) as f64;
        let seconds_left = self.started.elapsed().as_secs_f64() * all.saturating_sub(done) as f64 / fresh;
        Running { pairs: Progress { done, total: all }, seconds_left, ..running }
    }
}

impl Events<Word> for Together<'_> {
    fn emit(&mut self, Word { shard, all, event }: Word) -> ControlFlow<()> {
        let event = match event {
            ScaleEvent::Opened(opened) => {
                if self.shards.insert(shard, opened.pairs).is_none() {
                    self.found += opened.pairs.done;
                }
                ScaleEvent::Opened(opened)
            }
            // Of the first shard: the others are of the same size, on devices that differ.
            ScaleEvent::Estimated(_) if std::mem::replace(&mut self.estimated, true) => {
                return ControlFlow::Continue(());
            }
            ScaleEvent::Computed(running) => {
                self.shards.insert(shard, running.pairs);
                ScaleEvent::Computed(self.summed(all, running))
            }
            other => other,
        };
        self.events.emit(event)
    }
}
