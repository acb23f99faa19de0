//! A run carried out: cell after cell, whatever is not finished yet.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use burn::tensor::Device;
use serde::Serialize;

use super::folder::{Planned, RunFolder};
use super::metrics::{Line, Writer};
use super::pools::Pools;
use super::status::{State, Status};
use crate::device::{Chosen, Hand, spread};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::{CellEvent, CellResult, Data, Job, Place, Summary, train_pool};
use crate::flow::weights::Weights;
use crate::oracle::world::{Settings, World};

/// How often, at most, a cell's status is rewritten.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Which cells a process takes: every `of`-th, from `task` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Share {
    /// From 0.
    pub task: usize,
    /// How many processes share the run.
    pub of: usize,
}

impl Share {
    /// The whole run.
    pub const ALL: Self = Self { task: 0, of: 1 };

    fn takes(self, index: usize) -> bool {
        index % self.of.max(1) == self.task
    }

    /// Its cells of a plan, or its corpora.
    pub fn of<T>(self, plan: &[T]) -> impl Iterator<Item = &T> {
        plan.iter().enumerate().filter(move |(i, _)| self.takes(*i)).map(|(_, planned)| planned)
    }
}

/// What a run reports. Breaking off after any event leaves a folder to go on with.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum RunEvent {
    /// The plan is known.
    Planned {
        /// Cells of this share.
        cells: usize,
        /// Those of them that are finished.
        finished: usize,
    },
    /// Images are being drawn from the world.
    Drawing {
        /// Which.
        what: String,
        /// How many.
        #[serde(flatten)]
        progress: Progress,
    },
    /// The world scores images that were not drawn for this, or were rounded since.
    Scoring {
        /// Which.
        what: String,
        /// How many.
        #[serde(flatten)]
        progress: Progress,
    },
    /// A word from a cell.
    Cell {
        /// The cell.
        planned: Planned,
        /// The word.
        said: CellEvent,
        /// Seconds the rest of the cell will take at the pace of this sitting.
        eta_secs: Option<f64>,
    },
    /// A cell is finished.
    Finished(Box<CellResult>),
    /// A cell could not be finished; the run goes on.
    Failed {
        /// The cell.
        planned: Planned,
        /// What went wrong, and with which file.
        why: String,
    },
    /// What all finished cells say.
    Summary(Box<Summary>),
}

/// What a run computes with.
pub struct Computer<'a> {
    /// The world.
    pub world: &'a World,
    /// Its knobs.
    pub settings: Settings,
    /// What trains.
    pub device: &'a Device,
    /// How often, at most, a cell's state is written.
    pub every: Duration,
    /// A folder on a disk of the machine's own, where images are kept that would come through a network otherwise.
    pub stage: Option<PathBuf>,
    /// The dataset of a spec that names one.
    pub data: Option<Data>,
}

impl<'a> Computer<'a> {
    /// With checkpoints every minute, nothing kept elsewhere, and no dataset.
    pub fn new(world: &'a World, settings: Settings, device: &'a Device) -> Self {
        Self { world, settings, device, every: CHECKPOINT_EVERY, stage: None, data: None }
    }
}

/// How often, at most, a cell's state is written where nobody says otherwise.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// Carries out a share of the cells of a run that are not finished, and writes the summary of all that are.
///
/// # Errors
/// When the disk or the device fails, when cells could not be finished (the others are), or [`Error::Cancelled`].
pub fn execute(
    folder: &RunFolder,
    share: Share,
    computer: &Computer<'_>,
    events: &mut dyn Events<RunEvent>,
) -> Result<Summary> {
    let open = begin(folder, share, events)?;
    let (mut left, failed) = (open.iter().copied(), AtomicUsize::new(0));
    cells(folder, computer, (&mut || left.next(), open.last().copied()), &failed, events)?;
    end(folder, failed.into_inner(), events)
}

/// Lets a device compute: opens a world on it and calls back with what computes there.
pub type OnDevice<'a> = dyn Fn(&Chosen, &mut dyn FnMut(&Computer<'_>) -> Result<()>) -> Result<()> + Sync + 'a;

/// [`execute`] on several devices at once, each of which takes the next cell. A cell is the same whichever takes it, as far as the
/// devices' arithmetic is.
///
/// # Errors
/// As [`execute`]; [`Error::DeviceLost`] where no device is left.
pub fn execute_on(
    folder: &RunFolder,
    share: Share,
    devices: Vec<Chosen>,
    on: &OnDevice<'_>,
    events: &mut dyn Events<RunEvent>,
) -> Result<Summary> {
    let open = begin(folder, share, events)?;
    let (last, failed) = (open.last().copied(), AtomicUsize::new(0));
    let work = |chosen: &Chosen, hand: &Hand<'_, &Planned>, events: &mut dyn Events<RunEvent>| {
        // Taken before the device is warm: what is quick at once does not leave the others without any.
        let mut first = hand.take();
        if first.is_none() {
            return Ok(());
        }
        on(chosen, &mut |computer| {
            let mut next = || first.take().or_else(|| hand.take());
            cells(folder, computer, (&mut next, last), &failed, events)
        })
    };
    match spread(devices, open.clone(), work, events) {
        // Nothing is left to break off.
        Err(Error::Cancelled) if open.iter().all(|planned| folder.finished(&planned.id)) => {}
        done => done?,
    }
    end(folder, failed.into_inner(), events)
}

/// The cells of a share that are not finished.
fn begin<'a>(folder: &'a RunFolder, share: Share, events: &mut dyn Events<RunEvent>) -> Result<Vec<&'a Planned>> {
    if share.task >= share.of {
        let Share { task, of } = share;
        return Err(Error::input(format!("there is no task {task} of {of}: tasks count from 0")));
    }
    folder.sweep();
    let mine: Vec<&Planned> = share.of(&folder.plan).collect();
    let open: Vec<&Planned> = mine.iter().copied().filter(|planned| !folder.finished(&planned.id)).collect();
    events.report(RunEvent::Planned { cells: mine.len(), finished: mine.len() - open.len() })?;
    Ok(open)
}

/// Carries out the cells that `next` gives. `last` is the last of all. Those that fail are counted at once: they are not handed out again
/// where the device is lost with a later one.
fn cells<'a>(
    folder: &RunFolder,
    computer: &Computer<'_>,
    (next, last): (&mut dyn FnMut() -> Option<&'a Planned>, Option<&Planned>),
    failed: &AtomicUsize,
    events: &mut dyn Events<RunEvent>,
) -> Result<()> {
    let Some(mut planned) = next() else { return Ok(()) };
    let mut run = Run { folder, computer, pools: Pools::new(folder, computer)? };
    loop {
        match run.cell(planned, events) {
            Ok(result) => {
                folder.finish(&result)?;
                folder.write_summary()?;
                // After the last cell nothing is left to break off: to say so would have a scheduler start again.
                if events.emit(RunEvent::Finished(Box::new(result))).is_break() && Some(planned) != last {
                    return Err(Error::Cancelled);
                }
            }
            // This cell's own fault: the others may be well.
            Err(Error::Numeric(why) | Error::Input(why)) => {
                failed.fetch_add(1, Ordering::Relaxed);
                run.say(planned, State::Failed, Some(&why))?;
                events.report(RunEvent::Failed { planned: planned.clone(), why })?;
            }
            Err(error) => {
                let why = (!matches!(error, Error::Cancelled)).then(|| error.to_string());
                // The error itself matters more than that it cannot be noted (a full disk).
                let _ = run.say(planned, State::Stopped, why.as_deref());
                return Err(error);
            }
        }
        match next() {
            Some(following) => planned = following,
            None => return Ok(()),
        }
    }
}

fn end(folder: &RunFolder, failed: usize, events: &mut dyn Events<RunEvent>) -> Result<Summary> {
    let summary = folder.write_summary()?;
    let _ = events.emit(RunEvent::Summary(Box::new(summary.clone())));
    match failed {
        0 => Ok(summary),
        _ => Err(Error::Numeric(format!("{failed} cells could not be finished; their status.json says why"))),
    }
}

struct Run<'a> {
    folder: &'a RunFolder,
    computer: &'a Computer<'a>,
    pools: Pools<'a>,
}

impl Run<'_> {
    fn cell(&mut self, planned: &Planned, events: &mut dyn Events<RunEvent>) -> Result<CellResult> {
        let spec = &self.folder.spec;
        let cell = planned.cell;
        let training = spec.training_of(cell.architecture)?;
        // What is seen once is drawn when it is needed; what is seen again is held, and a pool to choose from always is.
        let streamed = training.passes(cell.train_size) == 1 && !spec.experiment.needs_posteriors();
        self.pools.prepare(&cell, streamed, events)?;
        let train = self.pools.train(&cell, streamed);
        let path = self.folder.cell(&planned.id);
        let pretrained = spec.pretrained.get(&cell.architecture).map(|file| Weights::read(file)).transpose()?;
        let job = Job {
            cell,
            id: &planned.id,
            training,
            pretrained: pretrained.as_ref(),
            train: train.as_ref(),
            test: self.pools.test(&cell)?,
            watched: spec.test.watched,
            range: self.computer.world.flow().pixels().range(),
            folder: &path,
            every: self.computer.every,
            device: self.computer.device,
        };
        let mut diary =
            Diary { planned, path: path.clone(), writer: None, steps: 0, begun: None, told: None, error: None };
        let place = Place {
            world: self.computer.world,
            settings: &self.pools.settings(cell.condition),
            train_seed: spec.train_seed(cell.seed),
            pool: (train_pool(spec, cell.condition, cell.seed), spec.largest()),
            features: &self.folder.features,
        };
        let result = spec.experiment.run(&place, &job, &mut |said: CellEvent| diary.note(said, events));
        if let Some(error) = diary.error {
            return Err(error);
        }
        let result = result?;
        Status::new(State::Done, diary.steps, diary.steps, None).write(&path)?;
        Ok(result)
    }

    /// Notes in a cell's folder how it ended.
    fn say(&self, planned: &Planned, state: State, why: Option<&str>) -> Result<()> {
        let path = self.folder.cell(&planned.id);
        let before = Status::read(&path)?;
        let (step, steps) = before.map_or((0, 0), |status| (status.step, status.steps));
        std::fs::create_dir_all(&path).map_err(|e| Error::io(&path, e))?;
        Status { message: why.map(str::to_owned), ..Status::new(state, step, steps, None) }.write(&path)
    }
}

/// Writes down what a cell says, and passes it on.
struct Diary<'a> {
    planned: &'a Planned,
    path: PathBuf,
    writer: Option<Writer>,
    steps: usize,
    /// When this sitting began, at which step.
    begun: Option<(Instant, usize)>,
    told: Option<Instant>,
    /// What the disk refused.
    error: Option<Error>,
}

impl Diary<'_> {
    fn note(&mut self, said: CellEvent, events: &mut dyn Events<RunEvent>) -> std::ops::ControlFlow<()> {
        if let Err(error) = self.write(&said) {
            self.error = Some(error);
            return std::ops::ControlFlow::Break(());
        }
        if let CellEvent::Drawing(progress) = said {
            return events.emit(RunEvent::Drawing { what: self.planned.label(), progress });
        }
        let eta_secs = match said {
            CellEvent::Step { step, .. } => self.eta(step),
            _ => None,
        };
        events.emit(RunEvent::Cell { planned: self.planned.clone(), said, eta_secs })
    }

    fn eta(&self, step: usize) -> Option<f64> {
        let (begun, at) = self.begun?;
        let done = step.checked_sub(at).filter(|done| *done > 0)?;
        Some(begun.elapsed().as_secs_f64() / done as f64 * (self.steps - step) as f64)
    }

    fn write(&mut self, said: &CellEvent) -> Result<()> {
        match said {
            CellEvent::Started { steps, resumed_at, .. } => {
                self.steps = *steps;
                self.begun = Some((Instant::now(), *resumed_at));
                self.writer = Some(Writer::resume(&self.path, *resumed_at, *steps)?);
                self.beat(*resumed_at)
            }
            CellEvent::Step { step, loss, rate } => {
                if let Some(writer) = &mut self.writer {
                    writer.step(*step, *loss, *rate)?;
                }
                match self.told {
                    Some(told) if told.elapsed() < HEARTBEAT => Ok(()),
                    _ => self.beat(*step),
                }
            }
            CellEvent::Watched(watched) => match &mut self.writer {
                Some(writer) => writer.line(&Line::Watched(*watched)),
                None => Ok(()),
            },
            CellEvent::Checkpoint { step } => self.beat(*step),
            CellEvent::Drawing(_) => Ok(()),
        }
    }

    fn beat(&mut self, step: usize) -> Result<()> {
        self.told = Some(Instant::now());
        Status::new(State::Running, step, self.steps, self.eta(step)).write(&self.path)
    }
}
