//! Jobs: the same functions the command line calls, with the worker's sink. A job begins while
//! nothing else is under way, or above one that gives it room.

mod context;
mod outside;
mod task;

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::channels::Channels;
use super::device_thread::{DeviceThread, Opened, build_world};
use super::protocol::{Event, Job, Outcome, Pasted};
use super::queue::Entry;
use crate::device::{DeviceChoice, choose, explain, guarded, retry_on_next_device};
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::oracle::folder;
use crate::oracle::numbering::from_files;
use context::{JobContext, Sink, TELL_EVERY};

/// Runs one job to its end while nothing else is under way, and sends the outcome.
pub fn run(channels: &Channels, thread: &mut DeviceThread, entry: Entry) {
    if !begin(channels, &entry) {
        return;
    }
    let done = retry_on_next_device(
        thread,
        |thread| &thread.chosen,
        |thread| attempt(channels, thread, &entry),
        |thread, moved| thread.resume_on(channels, moved),
    );
    end(channels, entry, done, thread.chosen.report.used.choice);
}

/// Runs one job above the one under way, to its end. Returns the oracle that serves the window from
/// then on, where that is another one.
fn run_above(sink: &Sink<'_>, entry: Entry) -> Option<Opened> {
    let Sink { channels, chosen, interactive, .. } = *sink;
    if !begin(channels, &entry) {
        return None;
    }
    let mut cx =
        JobContext { channels, chosen, interactive, opened: sink.opened(), entry: &entry, replaced: None, run_above };
    let done = guarded(&chosen.device, || perform(&mut cx));
    let (replaced, stopped) = (cx.replaced.take(), cx.is_stopped());
    match done {
        // The job below moves to the next device, and this one begins again there.
        Err(loss @ Error::DeviceLost { .. }) => {
            interactive.lose(loss);
            set_aside(channels, entry);
        }
        Err(Error::Cancelled) if interactive.lost() && !stopped => set_aside(channels, entry),
        done => end(channels, entry, done, chosen.report.used.choice),
    }
    replaced
}

/// A job begins, unless it was cancelled meanwhile. Returns whether it does.
fn begin(channels: &Channels, entry: &Entry) -> bool {
    if !entry.control.take() {
        channels.shared.forget(entry.id);
        return false;
    }
    if entry.is_cancelled() {
        channels.shared.forget(entry.id);
        channels.send(Event::JobEnded { id: entry.id, outcome: Outcome::Cancelled });
        return false;
    }
    channels.jobs.begin(entry.clone());
    channels.send(Event::JobStarted { id: entry.id });
    channels.tell_waits();
    true
}

/// The uppermost job has stopped, to begin again later.
fn set_aside(channels: &Channels, entry: Entry) {
    channels.jobs.end();
    channels.jobs.set_aside(entry);
    channels.tell_waits();
}

/// The uppermost job is over, or gave its place back.
fn end(channels: &Channels, entry: Entry, done: Result<String>, used: DeviceChoice) {
    channels.tell_notes();
    let gave_way = entry.control.gave_way.swap(false, Ordering::Relaxed);
    let outcome = match done {
        Err(Error::Cancelled) if gave_way && !entry.is_cancelled() => return set_aside(channels, entry),
        Err(Error::Cancelled) => Outcome::Cancelled,
        Ok(sentence) => Outcome::Done(sentence),
        Err(error) => Outcome::Failed(explain(error, Some(used)).to_string()),
    };
    channels.jobs.end();
    channels.shared.forget(entry.id);
    channels.send(Event::JobEnded { id: entry.id, outcome });
    channels.tell_waits();
}

/// Performs the job. A job that stopped because the device was lost fails with that loss.
fn attempt(channels: &Channels, thread: &mut DeviceThread, entry: &Entry) -> Result<String> {
    if let Job::UseDevice(choice) = entry.job {
        thread.switch_device(channels, choose(choice)?)?;
        return Ok(format!("computing on {}", thread.chosen.report.used.name));
    }
    let DeviceThread { chosen, opened, interactive, .. } = &mut *thread;
    let mut cx =
        JobContext { channels, chosen, interactive, opened: opened.as_ref(), entry, replaced: None, run_above };
    let done = perform(&mut cx);
    let (replaced, stopped) = (cx.replaced.take(), cx.is_stopped());
    if let Some(replaced) = replaced {
        *opened = Some(replaced);
    }
    match done {
        Err(Error::Cancelled) if !stopped => Err(interactive.take_loss().unwrap_or(Error::Cancelled)),
        done => done,
    }
}

fn perform(cx: &mut JobContext<'_>) -> Result<String> {
    cx.check_world()?;
    match &cx.entry.job {
        Job::OpenOracle(name) => open_oracle(cx, name),
        Job::UseDevice(choice) => Err(Error::input(format!("{choice} cannot be taken while a job is under way"))),
        Job::Classify { paths, fits, settings, .. } => {
            let (id, progress) = (cx.entry.id, Progress { done: 0, total: 0 });
            cx.channels.send(Event::JobProgress { id, progress, note: "reading".into() });
            let classified = outside::classify(cx, cx.opened()?.world.read_files(paths, fits)?, settings);
            classified.map_err(|error| from_files(error, paths))
        }
        Job::ClassifyPasted { picture: Pasted(bytes), fit, settings, .. } => {
            outside::classify(cx, cx.opened()?.world.read_pasted(Pasted::NAME, bytes, *fit)?, settings)
        }
        Job::Task(task) => task::run(cx, task),
        Job::SendWalk { walked, settings } => outside::send(cx, walked, settings),
        Job::SendSketch { sketch, settings } => {
            let job = (cx.channels, cx.entry.id);
            cx.interactive.send_sketch(job, &cx.opened()?.world, (sketch, settings))
        }
        Job::RateAgain { settings } => outside::rate_again(cx, settings),
    }
}

fn open_oracle(cx: &mut JobContext<'_>, name: &str) -> Result<String> {
    let JobContext { channels, entry, .. } = *cx;
    let mut told: Option<Instant> = None;
    let mut reading = |progress: Progress| {
        // Bytes; nothing else is served while the world changes.
        if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            told = Some(Instant::now());
            let note = format!("{} of {} MB", progress.done >> 20, progress.total >> 20);
            channels.send(Event::JobProgress { id: entry.id, progress, note });
        }
        let stop = channels.stopping() || entry.is_cancelled();
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let read = folder::read_watched(name, &mut reading)?;
    cx.replaced = Some(build_world(channels, cx.chosen, cx.interactive, name.to_owned(), read)?);
    Ok(format!("{name} is open"))
}
