//! Tasks: an experiment is carried out, or its time is estimated.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::execute::CHECKPOINT_EVERY;
use super::pace::Pace;
use super::target::with_tau;
use super::{Estimate, Planned, Run, RunContext, RunEvent, RunFolder, Share, estimate, execute};
use crate::device::OpenDevice;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::experiment::{CellEvent, Data, ExperimentSpec, Summary};
use crate::flow::Precision;
use crate::oracle::folder::{self, OracleInfo};
use crate::oracle::strategies;
use crate::oracle::world::World;
use crate::task::{Done, OpenOracle, Task, TaskContext};

/// Steps of a cell are told at most this often.
const STEP_EVERY: Duration = Duration::from_millis(100);

/// Plans an experiment in a run folder, or finds its plan, and trains what is not finished.
#[derive(Debug, Clone, PartialEq)]
pub struct RunExperiment {
    /// What; where absent, the folder says.
    pub spec: Option<ExperimentSpec>,
    /// Where.
    pub folder: PathBuf,
    /// How.
    pub settings: RunSettings,
}

/// How a run is run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    /// Which cells.
    pub share: Share,
    /// Time, at least, between checkpoints of a cell.
    pub every: Duration,
    /// A folder on a local disk for copies of the run's images.
    pub stage: Option<PathBuf>,
    /// A copy of the oracle, in place of the one that the spec names.
    pub oracle: Option<String>,
}

impl Default for RunSettings {
    /// All cells, with checkpoints every minute and no copies.
    fn default() -> Self {
        Self { share: Share::ALL, every: CHECKPOINT_EVERY, stage: None, oracle: None }
    }
}

impl Task for RunExperiment {
    /// Of its steps only as many as people can follow.
    type Event = RunEvent;
    /// Events are added up by the list of runs: several may wait for their turn.
    type Live = ();
    type Report = Summary;

    fn title(&self) -> String {
        let resume = || format!("Resume {}", self.folder.display());
        self.spec.as_ref().map_or_else(resume, |spec| format!("Experiment {}", spec.name))
    }

    fn lets_oracles_open(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, RunEvent>) -> Result<Done<Summary>> {
        let there = RunFolder::open(&self.folder);
        let planned_on = there.as_ref().ok().map(RunFolder::oracle);
        let spec = match &self.spec {
            Some(spec) => spec.clone(),
            None => there?.spec,
        };
        spec.validate()?;
        let RunSettings { share, every, stage, oracle } = self.settings.clone();
        let place = Place::open(oracle.or(planned_on).as_ref().unwrap_or(&spec.world.oracle), cx)?;
        let (world, weights) = place.world();
        let world_id = world.id();
        let spec = with_tau(&self.folder, &spec, world, (&world_id, &cx.chosen.report.used.label()), cx)?;
        if let Some(data) = &spec.data {
            cx.progress(Progress { done: 0, total: 1 }, format!("reading {}", data.train.display()));
        }
        let data = Data::open(&spec, world)?;
        let folder = RunFolder::create(&self.folder, &spec, &world_id, data.as_ref())?;
        let settings = spec.world.settings(world.class_names().len())?;
        let weights_sha256 = Some(weights);
        let context =
            RunContext { weights_sha256, data, every, stage, ..RunContext::new(world, settings, &cx.chosen.device) };
        let summary = execute(&folder, share, &context, &mut Reporter::new(cx, &folder)?)?;
        let (finished, planned) = (summary.finished, summary.planned);
        let sentence = format!("{finished} of {planned} cells are finished in {}", self.folder.display());
        Ok(Done::new(summary, sentence))
    }
}

/// Times a few steps of every classifier of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimateTime {
    /// What.
    pub spec: ExperimentSpec,
    /// Where it is to run: what is finished there is not counted.
    pub folder: PathBuf,
}

impl Task for EstimateTime {
    type Event = ();
    type Live = ();
    /// By architecture.
    type Report = Vec<Estimate>;

    fn title(&self) -> String {
        format!("Estimate {}", self.spec.name)
    }

    fn lets_oracles_open(&self) -> bool {
        true
    }

    fn is_short(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Vec<Estimate>>> {
        let spec = &self.spec;
        spec.validate()?;
        let place = Place::open(&spec.world.oracle, cx)?;
        let (world, _) = place.world();
        let there = RunFolder::open(&self.folder).ok().filter(|folder| folder.spec == *spec);
        let folder = there.unwrap_or_else(|| {
            let plan = Planned::all(spec, |_| Ok(String::new())).unwrap_or_default();
            RunFolder::unwritten(spec.clone(), plan, None)
        });
        let settings = spec.world.settings(world.class_names().len())?;
        let device = &cx.chosen.device;
        let mut timing = |Progress { done, total }: Progress| {
            cx.progress(Progress { done, total }, format!("timed step {done} of {total}"));
            cx.check()
        };
        let estimates = estimate(&folder, &RunContext::new(world, settings, device), &mut timing)?;
        let minutes = (estimates.iter().map(|estimate| estimate.seconds).sum::<f64>() / 60.0).ceil();
        let name = &spec.name;
        let sentence = format!("{name} takes up to {minutes:.0} min on this device, drawing and measuring not counted");
        Ok(Done::new(estimates, sentence))
    }
}

/// The world of an experiment: the one that is open, or another beside it.
enum Place<'a> {
    Open(OpenOracle<'a>),
    Own(Box<World>, String),
}

impl<'a> Place<'a> {
    fn open<E: Send + Sync + 'static>(name: &str, cx: &mut TaskContext<'a, E>) -> Result<Self> {
        if let Some(open) = cx.oracle_named(name) {
            return Ok(Self::Open(open));
        }
        let chosen = cx.chosen;
        let mut reading = |Progress { done, total }: Progress| {
            let note = format!("reading {name}: {} of {} MB", done >> 20, total >> 20);
            cx.progress(Progress { done, total }, note);
            cx.check()
        };
        let (info, world) = world_beside(chosen, name, &mut reading)?;
        Ok(Self::Own(Box::new(world), info.weights_sha256))
    }

    /// The world and the hash of its weights.
    fn world(&self) -> (&World, &str) {
        match self {
            Self::Open(open) => (open.world, &open.info.weights_sha256),
            Self::Own(world, hash) => (world, hash),
        }
    }
}

/// Opens a world that nobody looks at.
fn world_beside(chosen: &OpenDevice, name: &str, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, World)> {
    let (info, weights) = folder::read_watched(name, events)?;
    let world = info.clone().build(weights, &chosen.device, Precision::F32, chosen.batch)?.world;
    let images = world.batch().next_power_of_two();
    strategies::recall(world.flow(), &info.weights_sha256, &chosen.report.used.label(), images);
    Ok((info, world))
}

/// Tells what a run says: of its steps a few, of everything else all.
struct Reporter<'a, 'b> {
    cx: &'a mut TaskContext<'b, RunEvent>,
    /// Steps of every cell, by its ID.
    steps: HashMap<String, usize>,
    total: usize,
    /// Steps of the finished cells.
    before: usize,
    /// Steps of the present cell.
    step: usize,
    /// Cells finished, of how many.
    cells: Progress,
    told: Option<Instant>,
    pace: Pace,
    /// When the run went on after its last word: pauses do not count.
    since: Instant,
}

impl<'a, 'b> Reporter<'a, 'b> {
    fn new(cx: &'a mut TaskContext<'b, RunEvent>, folder: &RunFolder) -> Result<Self> {
        let mut steps = HashMap::new();
        let mut before = 0;
        for Planned { id, cell, .. } in &folder.plan {
            let of_cell = folder.spec.steps(cell)?;
            before += if folder.finished(id) { of_cell } else { 0 };
            steps.insert(id.clone(), of_cell);
        }
        let total = steps.values().sum();
        let cells = Progress { done: 0, total: 0 };
        Ok(Self { cx, steps, total, before, step: 0, cells, told: None, pace: Pace::default(), since: Instant::now() })
    }

    /// Reports progress, `step` steps into the present cell. Returns whether it was time to.
    fn progress(&mut self, step: usize, note: &str) -> bool {
        let Progress { done, total } = self.cells;
        let note = format!("{done} of {total} cells · {note}");
        // The last cell's last step is not the end: it is yet to be measured.
        let done = (self.before + step).min(self.total.saturating_sub(1));
        let shown = self.cx.progress(Progress { done, total: self.total }, note);
        if shown {
            let left =
                self.pace.left(self.total.saturating_sub(self.before + step), total - self.cells.done.min(total));
            self.cx.left(left);
        }
        shown
    }

    /// A cell is over: so many more are finished by it.
    fn ended(&mut self, id: &str, finished: usize) {
        self.cells.done += finished;
        self.before += self.steps.get(id).copied().unwrap_or(0);
        self.step = 0;
    }

    /// Takes the time that an event ended.
    fn time(&mut self, event: &RunEvent) {
        let took = self.since.elapsed();
        match event {
            RunEvent::Cell { said: CellEvent::Step { step, .. }, .. } => self.pace.stepped(*step, took),
            RunEvent::Cell {
                said:
                    CellEvent::Watched(_)
                    | CellEvent::Checkpoint { .. }
                    | CellEvent::Choosing { .. }
                    | CellEvent::Measuring { .. },
                ..
            } => self.pace.measured(took),
            RunEvent::Finished(_) => {
                self.pace.measured(took);
                self.pace.cell_ended();
            }
            RunEvent::Failed { .. } => self.pace.cell_ended(),
            RunEvent::Cell { .. }
            | RunEvent::Planned { .. }
            | RunEvent::Drawing { .. }
            | RunEvent::Scoring { .. }
            | RunEvent::Elsewhere { .. }
            | RunEvent::FinishedElsewhere { .. }
            | RunEvent::Summary(_) => {}
        }
    }
}

impl Events<RunEvent> for Reporter<'_, '_> {
    fn emit(&mut self, event: RunEvent) -> ControlFlow<()> {
        self.time(&event);
        match &event {
            RunEvent::Planned { cells, finished } => {
                self.cells = Progress { done: *finished, total: *cells };
                self.cx.event(event);
            }
            RunEvent::Drawing { what, progress } | RunEvent::Scoring { what, progress } => {
                let verb = if matches!(event, RunEvent::Drawing { .. }) { "drawing" } else { "scoring" };
                if self.progress(0, &format!("{verb} images {what}: {} of {}", progress.done, progress.total)) {
                    self.cx.event(event);
                }
            }
            RunEvent::Cell { planned, said: CellEvent::Measuring { what, progress }, .. } => {
                let Progress { done, total } = progress;
                if self.progress(self.step, &format!("{}: measuring {what}, {done} of {total}", planned.label())) {
                    self.cx.event(event);
                }
            }
            RunEvent::Cell { planned, said: CellEvent::Step { step, loss, .. }, .. } => {
                self.step = *step;
                self.progress(*step, &format!("{}: step {step}, loss {loss:.4} nats", planned.label()));
                if self.told.is_none_or(|told| told.elapsed() >= STEP_EVERY) {
                    self.told = Some(Instant::now());
                    self.cx.event(event);
                }
            }
            RunEvent::Cell { planned, said: CellEvent::Choosing { step, .. }, .. } => {
                self.step = *step;
                if self.progress(*step, &format!("{}: choosing the labels to buy", planned.label())) {
                    self.cx.event(event);
                }
            }
            RunEvent::Elsewhere { planned, by, waiting } => {
                let label = planned.label();
                if !waiting || self.progress(0, &format!("waiting for {label}, on which {by} is at work")) {
                    self.cx.event(event);
                }
            }
            RunEvent::Finished(result) => {
                self.ended(&result.id, 1);
                self.cx.event(event);
            }
            RunEvent::FinishedElsewhere { planned } => {
                self.ended(&planned.id, 1);
                self.cx.event(event);
            }
            RunEvent::Failed { planned, .. } => {
                self.ended(&planned.id, 0);
                self.cx.event(event);
            }
            RunEvent::Cell { said: CellEvent::Started { resumed_at, .. }, .. } => {
                self.step = *resumed_at;
                self.cx.event(event);
            }
            RunEvent::Cell { .. } | RunEvent::Summary(_) => self.cx.event(event),
        }
        let going = self.cx.check();
        self.since = Instant::now();
        going
    }
}
