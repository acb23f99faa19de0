//! Jobs: the same functions the command line calls, with the worker's sink.

mod context;
mod pictures;
mod task;
mod walk;

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::channels::Channels;
use super::device_thread::DeviceThread;
use super::protocol::{Event, Job, JobId, Outcome, Pasted};
use crate::device::{choose, explain, retry_on_next_device};
use crate::error::{Error, Result};
use crate::events::Progress;
use context::{JobContext, TELL_EVERY};

/// Runs one job to its end and sends the outcome.
pub fn run(channels: &Channels, thread: &mut DeviceThread, id: JobId, job: Job) {
    let control = channels.shared.control(id);
    if !control.take() {
        return channels.shared.forget(id);
    }
    let outcome = if control.cancelled.load(Ordering::Relaxed) {
        Outcome::Cancelled
    } else {
        channels.send(Event::JobStarted { id });
        let mut cx = JobContext { channels, thread, id, control: &control };
        let done = retry_on_next_device(
            &mut cx,
            |cx| &cx.thread.chosen,
            |cx| attempt(cx, job.clone()),
            |cx, moved| cx.thread.resume_on(channels, moved),
        );
        channels.tell_notes();
        match done {
            Ok(sentence) => Outcome::Done(sentence),
            Err(Error::Cancelled) => Outcome::Cancelled,
            Err(error) => Outcome::Failed(explain(error, Some(cx.thread.chosen.report.used.choice)).to_string()),
        }
    };
    channels.shared.forget(id);
    channels.send(Event::JobEnded { id, outcome });
}

/// Performs the job. A job that stopped because the device was lost fails with that loss.
fn attempt(cx: &mut JobContext<'_>, job: Job) -> Result<String> {
    match perform(cx, job) {
        Err(Error::Cancelled) if !cx.is_stopped() => Err(cx.thread.interactive.take_loss().unwrap_or(Error::Cancelled)),
        done => done,
    }
}

fn perform(cx: &mut JobContext<'_>, job: Job) -> Result<String> {
    match job {
        Job::OpenOracle(name) => open_oracle(cx, &name),
        Job::UseDevice(choice) => {
            cx.thread.switch_device(cx.channels, choose(choice)?)?;
            Ok(format!("computing on {}", cx.thread.chosen.report.used.name))
        }
        Job::Classify { paths, fits, settings } => {
            pictures::classify(cx, cx.opened()?.world.read_files(&paths, &fits)?, &settings)
        }
        Job::ClassifyPasted { picture: Pasted(bytes), fit, settings } => {
            pictures::classify(cx, cx.opened()?.world.read_pasted(Pasted::NAME, &bytes, fit)?, &settings)
        }
        Job::Task(task) => task::run(cx, &task),
        Job::SendWalk { walked, settings } => walk::send(cx, &walked, &settings),
        Job::SendSketch { sketch, settings } => {
            let world = &cx.opened()?.world;
            cx.thread.interactive.send_sketch(cx.channels, world, (&sketch, &settings))
        }
        Job::RateAgain { settings } => walk::rate_again(cx, &settings),
    }
}

fn open_oracle(cx: &mut JobContext<'_>, name: &str) -> Result<String> {
    let JobContext { channels, id, control, .. } = *cx;
    let mut told: Option<Instant> = None;
    let mut reading = |progress: Progress| {
        // Bytes; nothing else is served while the world changes.
        if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            told = Some(Instant::now());
            let note = format!("{} of {} MB", progress.done >> 20, progress.total >> 20);
            channels.send(Event::JobProgress { id, progress, note });
        }
        let stop = channels.stopping() || control.cancelled.load(Ordering::Relaxed);
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    cx.thread.open(channels, name, &mut reading)?;
    Ok(format!("{name} is open"))
}
