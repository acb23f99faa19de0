//! Jobs: the same functions the command line calls, with the worker's sink.

mod sink;
mod task;
mod walk;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::channels::Channels;
use super::desk::Desk;
use super::protocol::{Event, Job, JobId, Outcome};
use super::shared::Control;
use crate::device::{explain, retry_on_next_device};
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::classify::read_input;
use sink::{Sink, TELL_EVERY, world_of};

/// Runs one job to its end and tells the outcome.
pub fn run(channels: &Channels, desk: &mut Desk, id: JobId, job: Job) {
    let control = channels.shared.control(id);
    if !control.take() {
        return channels.shared.forget(id);
    }
    let outcome = if control.cancelled.load(Ordering::Relaxed) {
        Outcome::Cancelled
    } else {
        channels.send(Event::JobStarted { id });
        let work = |desk: &mut Desk| attempt(channels, desk, id, &control, job.clone());
        let done = retry_on_next_device(desk, |desk| &desk.chosen, work, |desk, moved| desk.move_on(channels, moved));
        channels.tell_notes();
        match done {
            Ok(sentence) => Outcome::Done(sentence),
            Err(Error::Cancelled) => Outcome::Cancelled,
            Err(error) => Outcome::Failed(explain(error, Some(desk.chosen.report.used.choice)).to_string()),
        }
    };
    channels.shared.forget(id);
    channels.send(Event::JobEnded { id, outcome });
}

/// Performs the job. Where the window found the device gone first, that is why the job was stopped.
fn attempt(channels: &Channels, desk: &mut Desk, id: JobId, control: &Arc<Control>, job: Job) -> Result<String> {
    let done = perform(channels, desk, id, control, job);
    let asked_to_stop = control.cancelled.load(Ordering::Relaxed) || channels.stopping();
    match done {
        Err(Error::Cancelled) if !asked_to_stop => Err(desk.interactive.take_loss().unwrap_or(Error::Cancelled)),
        done => done,
    }
}

fn perform(channels: &Channels, desk: &mut Desk, id: JobId, control: &Arc<Control>, job: Job) -> Result<String> {
    match job {
        Job::OpenOracle(name) => open_oracle(channels, desk, id, control, &name),
        Job::UseDevice(choice) => {
            desk.move_to(channels, choice)?;
            Ok(format!("computing on {}", desk.chosen.report.used.name))
        }
        Job::Classify { paths, settings } => {
            let world = world_of(desk)?;
            let mut sink = Sink::new(channels, &desk.interactive, Some(world), id, control);
            let classified = world.classify(read_input(&paths)?, Dequantisation::default(), &mut sink)?;
            desk.interactive.tell(channels, world, classified.into(), &settings, false)
        }
        Job::Task(task) => task::carry_out(channels, desk, id, control, &task),
        Job::SendWalk { walked, settings } => walk::send((channels, desk, id, control), &walked, &settings),
        Job::RateAgain { settings } => walk::rate_again(channels, desk, id, control, &settings),
    }
}

fn open_oracle(channels: &Channels, desk: &mut Desk, id: JobId, control: &Control, name: &str) -> Result<String> {
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
    desk.open(channels, name, &mut reading)?;
    Ok(format!("{name} is open"))
}
