//! Jobs: the same functions the command line calls, with the worker's sink.

mod experiment;
mod export;
mod hardness;
mod judge;
mod save;
mod validate;
mod verify;
mod walk;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Control;
use super::desk::{Desk, Line, Opened, open_so_far};
use super::interactive::Interactive;
use super::protocol::{Event, Job, JobId, Outcome};
use crate::device::{Chosen, explain, persevere};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::preprocess::Dequantisation;
use crate::oracle::classify::read_input;
use crate::oracle::train::{ORACLE, TrainEvent, train_oracle};
use crate::oracle::world::World;

/// Progress is told at most this often.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// Runs one job to its end and tells the outcome.
pub fn run(line: &Line, desk: &mut Desk, id: JobId, job: Job) {
    let control = line.shared.control(id);
    if !control.take() {
        return line.shared.forget(id);
    }
    let outcome = if control.cancelled.load(Ordering::Relaxed) {
        Outcome::Cancelled
    } else {
        line.send(Event::JobStarted { id });
        let work = |desk: &mut Desk| attempt(line, desk, id, &control, job.clone());
        let done = persevere(desk, |desk| &desk.chosen, work, |desk, moved| desk.move_on(line, moved));
        line.tell_notes();
        match done {
            Ok(sentence) => Outcome::Done(sentence),
            Err(Error::Cancelled) => Outcome::Cancelled,
            Err(error) => Outcome::Failed(explain(error, Some(desk.chosen.report.used.choice)).to_string()),
        }
    };
    line.shared.forget(id);
    line.send(Event::JobEnded { id, outcome });
}

/// Performs the job. Where the window found the device gone first, that is why the job was stopped.
fn attempt(line: &Line, desk: &mut Desk, id: JobId, control: &Arc<Control>, job: Job) -> Result<String> {
    let done = perform(line, desk, id, control, job);
    let asked_to_stop = control.cancelled.load(Ordering::Relaxed) || line.stopping();
    match done {
        Err(Error::Cancelled) if !asked_to_stop => Err(desk.interactive.take_loss().unwrap_or(Error::Cancelled)),
        done => done,
    }
}

fn perform(line: &Line, desk: &mut Desk, id: JobId, control: &Arc<Control>, job: Job) -> Result<String> {
    match job {
        Job::OpenOracle(name) => open_oracle(line, desk, id, control, &name),
        Job::UseDevice(choice) => {
            desk.move_to(line, choice)?;
            Ok(format!("computing on {}", desk.chosen.report.used.name))
        }
        Job::Classify { paths, settings } => {
            let world = world_of(desk)?;
            let mut sink = Sink::new(line, &desk.interactive, Some(world), id, control);
            let classified = world.classify(read_input(&paths)?, Dequantisation::default(), &mut sink)?;
            desk.interactive.tell(line, world, classified.into(), &settings, false)
        }
        Job::Save { spec, indices, settings, path } => {
            save::samples((line, desk, id, control), (&spec, &indices, &settings), &path)
        }
        Job::SavePictures { spec, indices, settings, look, path } => {
            save::pictures((line, desk, id, control), (&spec, &indices, &settings), &look, &path)
        }
        Job::Train { spec, folder } => {
            let world = desk.opened.as_ref().map(|opened| &opened.world);
            let mut sink = Sink::new(line, &desk.interactive, world, id, control);
            sink.stands_aside = Some(&desk.chosen);
            let trained = train_oracle(&spec, &folder, &desk.chosen, &mut sink);
            if let Some(opened) = sink.opened {
                desk.opened = Some(opened);
            }
            let info = trained?;
            Ok(format!("oracle {} is in {}", info.name, folder.join(ORACLE).display()))
        }
        Job::Experiment { spec, folder } => experiment::carry_out(line, desk, id, control, spec.as_deref(), &folder),
        Job::Rank(request) => hardness::carry_out(line, desk, id, control, &request),
        Job::Export { spec, folder } => export::carry_out(line, desk, id, control, &spec, &folder),
        Job::Validate { spec, folder } => validate::carry_out(line, desk, id, control, &spec, &folder),
        Job::ComparePrecision { images, settings } => validate::precision((line, desk, id, control), images, &settings),
        Job::MeasureDepth { samples, settings } => validate::depth((line, desk, id, control), samples, &settings),
        Job::Verify => verify::carry_out(line, desk, id, control),
        Job::Judge(request) => judge::carry_out(line, desk, id, control, &request),
        Job::Estimate { spec, folder } => experiment::estimate_time(line, desk, id, control, &spec, &folder),
        Job::Walk(request) => walk::set_out(line, desk, id, control, &request),
        Job::SaveWalk { path, settings } => walk::save(line, desk, &path, &settings),
        Job::SendWalk { settings } => walk::send(line, desk, id, control, &settings),
        Job::RateAgain { settings } => walk::rate_again(line, desk, id, control, &settings),
    }
}

fn open_oracle(line: &Line, desk: &mut Desk, id: JobId, control: &Control, name: &str) -> Result<String> {
    let mut told: Option<Instant> = None;
    let mut reading = |progress: Progress| {
        // Bytes; nothing else is served while the world changes.
        if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            told = Some(Instant::now());
            let note = format!("{} of {} MB", progress.done >> 20, progress.total >> 20);
            line.send(Event::JobProgress { id, progress, note });
        }
        let stop = line.stopping() || control.cancelled.load(Ordering::Relaxed);
        if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    desk.open(line, name, &mut reading)?;
    Ok(format!("{name} is open"))
}

fn opened_of(desk: &Desk) -> Result<&Opened> {
    desk.opened.as_ref().ok_or_else(|| Error::input("no oracle is open; open one first"))
}

fn world_of(desk: &Desk) -> Result<&World> {
    opened_of(desk).map(|opened| &opened.world)
}

/// A job's line to the window: progress out; cancel, pause and interactive requests in.
struct Sink<'a> {
    line: &'a Line,
    interactive: &'a Interactive,
    world: Option<&'a World>,
    id: JobId,
    control: &'a Control,
    told: Option<Instant>,
    /// Where the device is, if the best epoch of a run may be opened meanwhile.
    stands_aside: Option<&'a Chosen>,
    /// That oracle: it serves the window from then on.
    opened: Option<Opened>,
}

impl<'a> Sink<'a> {
    fn new(
        line: &'a Line,
        interactive: &'a Interactive,
        world: Option<&'a World>,
        id: JobId,
        control: &'a Control,
    ) -> Self {
        Self { line, interactive, world, id, control, told: None, stands_aside: None, opened: None }
    }

    /// Serves the window, holds while paused, and says whether to go on.
    fn check(&mut self) -> ControlFlow<()> {
        loop {
            let cancelled = || self.control.cancelled.load(Ordering::Relaxed);
            if let Some(chosen) = self.stands_aside
                && let Some(opened) = open_so_far(self.line, chosen, self.interactive)
            {
                self.opened = Some(opened);
            }
            let world = self.opened.as_ref().map(|opened| &opened.world).or(self.world);
            let urgent = || cancelled() || (self.stands_aside.is_some() && self.line.shared.aside.is_full());
            let more = self.interactive.serve(self.line, world, &urgent);
            self.line.tell_notes();
            if self.line.stopping() || cancelled() || self.interactive.lost() {
                return ControlFlow::Break(());
            }
            if !self.control.paused.load(Ordering::Relaxed) {
                return ControlFlow::Continue(());
            }
            if !more {
                // Woken by any request, cancel or resume.
                let _ = self.line.ringing.recv_timeout(Duration::from_millis(200));
            }
        }
    }

    /// Tells progress if it is time to; returns whether it was.
    fn progress(&mut self, progress: Progress, note: String) -> bool {
        let due = self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) || progress.done == progress.total;
        if due {
            self.told = Some(Instant::now());
            self.line.send(Event::JobProgress { id: self.id, progress, note });
        }
        due
    }
}

impl Events<Progress> for Sink<'_> {
    fn emit(&mut self, progress: Progress) -> ControlFlow<()> {
        self.progress(progress, format!("{} of {} images", progress.done, progress.total));
        self.check()
    }
}

impl Events<TrainEvent> for Sink<'_> {
    fn emit(&mut self, event: TrainEvent) -> ControlFlow<()> {
        match &event {
            TrainEvent::Step { epoch, epochs, step, steps, loss, .. } => {
                let progress = Progress { done: (epoch - 1) * steps + step, total: epochs * steps };
                let note = format!("epoch {epoch} of {epochs} · NLL {:.0} nats", loss.nll);
                if self.progress(progress, note) {
                    self.line.send(Event::Train(Box::new(event)));
                }
            }
            _ => self.line.send(Event::Train(Box::new(event))),
        }
        self.check()
    }
}
