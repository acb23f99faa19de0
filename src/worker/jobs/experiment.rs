//! Experiments: a run folder carried out while the window is served between two steps.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::sink::Sink;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::experiment::{CellEvent, Data, ExperimentSpec, Summary};
use crate::oracle::world::World;
use crate::run::{Computer, Planned, RunEvent, RunFolder, Share, estimate, execute};
use crate::worker::channels::Channels;
use crate::worker::desk::{Desk, Opened, world_beside};
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Steps of a cell are told at most this often.
const STEP_EVERY: Duration = Duration::from_millis(100);

/// Plans the run, or finds its plan, and trains what is not finished.
pub fn carry_out(
    channels: &Channels,
    desk: &mut Desk,
    id: JobId,
    control: &Control,
    spec: Option<&ExperimentSpec>,
    path: &Path,
) -> Result<String> {
    let spec = match spec {
        Some(spec) => spec.clone(),
        None => RunFolder::open(path)?.spec,
    };
    spec.validate()?;
    let shown = desk.opened.as_ref().map(|opened| &opened.world);
    let mut sink = Sink::new(channels, &desk.interactive, shown, id, control);
    sink.stands_aside = Some(&desk.chosen);
    let done = conduct(desk, &spec, path, &mut sink);
    if let Some(opened) = sink.opened {
        desk.opened = Some(opened);
    }
    let summary = done?;
    Ok(format!("{} of {} cells are finished in {}", summary.finished, summary.planned, path.display()))
}

fn conduct(desk: &Desk, spec: &ExperimentSpec, path: &Path, sink: &mut Sink<'_>) -> Result<Summary> {
    let place = Place::open(desk, spec, sink)?;
    let (world, weights) = place.world();
    if let Some(data) = &spec.data {
        sink.progress(Progress { done: 0, total: 1 }, format!("reading {}", data.train.display()));
    }
    let data = Data::open(spec, world, weights)?;
    let folder = RunFolder::create(path, spec, weights, data.as_ref())?;
    let settings = spec.world.settings(world.class_names().len())?;
    let computer = Computer { data, ..Computer::new(world, settings, &desk.chosen.device) };
    execute(&folder, Share::ALL, &computer, &mut Told::new(sink, &folder)?)
}

/// Times a few steps of every architecture.
pub fn estimate_time(
    channels: &Channels,
    desk: &Desk,
    id: JobId,
    control: &Control,
    spec: &ExperimentSpec,
    path: &Path,
) -> Result<String> {
    spec.validate()?;
    let shown = desk.opened.as_ref().map(|opened| &opened.world);
    let mut sink = Sink::new(channels, &desk.interactive, shown, id, control);
    let place = Place::open(desk, spec, &mut sink)?;
    let (world, _) = place.world();
    let there = RunFolder::open(path).ok().filter(|folder| folder.spec == *spec);
    let folder = there.unwrap_or_else(|| {
        let plan = Planned::all(spec, |_| Ok(String::new())).unwrap_or_default();
        RunFolder { path: PathBuf::new(), spec: spec.clone(), plan, data: None, features: Vec::new() }
    });
    let settings = spec.world.settings(world.class_names().len())?;
    let mut timing = |Progress { done, total }: Progress| {
        sink.progress(Progress { done, total }, format!("timed step {done} of {total}"));
        sink.check()
    };
    let estimates = estimate(&folder, &Computer::new(world, settings, &desk.chosen.device), &mut timing)?;
    let seconds: f64 = estimates.iter().map(|estimate| estimate.seconds).sum();
    channels.send(Event::Estimated { id, estimates });
    let minutes = (seconds / 60.0).ceil();
    Ok(format!("{} takes up to {minutes:.0} min on this device, drawing and measuring not counted", spec.name))
}

/// The world of an experiment: the one on show, or another beside it.
enum Place<'a> {
    Shown(&'a Opened),
    Own(Box<World>, String),
}

impl<'a> Place<'a> {
    fn open(desk: &'a Desk, spec: &ExperimentSpec, sink: &mut Sink<'_>) -> Result<Self> {
        let name = &spec.world.oracle;
        if let Some(opened) = desk.opened.as_ref().filter(|opened| opened.name == *name) {
            return Ok(Self::Shown(opened));
        }
        let mut reading = |Progress { done, total }: Progress| {
            let note = format!("reading {name}: {} of {} MB", done >> 20, total >> 20);
            sink.progress(Progress { done, total }, note);
            sink.check()
        };
        let (info, world) = world_beside(&desk.chosen, name, &mut reading)?;
        Ok(Self::Own(Box::new(world), info.weights_sha256))
    }

    /// The world and the hash of its weights.
    fn world(&self) -> (&World, &str) {
        match self {
            Self::Shown(opened) => (&opened.world, &opened.info.weights_sha256),
            Self::Own(world, hash) => (world, hash),
        }
    }
}

/// Tells what a run says: of its steps a few, of everything else all.
struct Told<'a, 'b> {
    sink: &'a mut Sink<'b>,
    /// Steps of every cell, by its ID.
    steps: HashMap<String, usize>,
    total: usize,
    /// Steps of the finished cells.
    before: usize,
    /// Cells finished, of how many.
    cells: Progress,
    told: Option<Instant>,
}

impl<'a, 'b> Told<'a, 'b> {
    fn new(sink: &'a mut Sink<'b>, folder: &RunFolder) -> Result<Self> {
        let mut steps = HashMap::new();
        let mut before = 0;
        for Planned { id, cell, .. } in &folder.plan {
            let of_cell = folder.spec.steps(cell)?;
            before += if folder.finished(id) { of_cell } else { 0 };
            steps.insert(id.clone(), of_cell);
        }
        let total = steps.values().sum();
        Ok(Self { sink, steps, total, before, cells: Progress { done: 0, total: 0 }, told: None })
    }

    fn progress(&mut self, step: usize, note: &str) {
        let Progress { done, total } = self.cells;
        let note = format!("{done} of {total} cells · {note}");
        // The last cell's last step is not the end: it is yet to be measured.
        let done = (self.before + step).min(self.total.saturating_sub(1));
        self.sink.progress(Progress { done, total: self.total }, note);
    }

    fn pass_on(&self, event: RunEvent) {
        self.sink.channels.send(Event::Run { id: self.sink.id, event: Box::new(event) });
    }
}

impl Events<RunEvent> for Told<'_, '_> {
    fn emit(&mut self, event: RunEvent) -> ControlFlow<()> {
        match &event {
            RunEvent::Planned { cells, finished } => {
                self.cells = Progress { done: *finished, total: *cells };
                self.pass_on(event);
            }
            RunEvent::Drawing { what, progress } => {
                self.progress(0, &format!("drawing images {what}: {} of {}", progress.done, progress.total));
            }
            RunEvent::Scoring { what, progress } => {
                self.progress(0, &format!("scoring images {what}: {} of {}", progress.done, progress.total));
            }
            RunEvent::Cell { planned, said: CellEvent::Step { step, loss, .. }, .. } => {
                self.progress(*step, &format!("{}: step {step}, loss {loss:.4} nats", planned.label()));
                if self.told.is_none_or(|told| told.elapsed() >= STEP_EVERY) {
                    self.told = Some(Instant::now());
                    self.pass_on(event);
                }
            }
            RunEvent::Finished(result) => {
                self.cells.done += 1;
                self.before += self.steps.get(&result.id).copied().unwrap_or(0);
                self.pass_on(event);
            }
            RunEvent::Failed { planned, .. } => {
                self.before += self.steps.get(&planned.id).copied().unwrap_or(0);
                self.pass_on(event);
            }
            RunEvent::Cell { .. } | RunEvent::Summary(_) => self.pass_on(event),
        }
        self.sink.check()
    }
}
