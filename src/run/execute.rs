//! The cells of a grid run one after another, whatever is not finished yet.

#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use burn::tensor::Device;
use serde::Serialize;

use super::cells::{Failed, Failure, Queue, Run, Share, Unfinished, begin, end, run_cells, wait_for_others};
use super::folder::{Planned, RunFolder};
use super::metrics::{Line, Writer};
use super::pools::Pools;
use super::status::Heartbeat;
use crate::data::sha256_of_file;
use crate::device::{OpenDevice, WorkQueue, run_on_all};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::experiment::{Cell, CellEvent, CellJob, CellPlace, CellResult, Data, Summary, train_pool};
use crate::flow::weights::Weights;
use crate::oracle::world::{Settings, World};

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
    /// Another process computes a cell: it is left to that one.
    Elsewhere {
        /// The cell.
        planned: Planned,
        /// The process and its machine.
        by: String,
        /// Whether nothing else is left to do, so that it is waited for.
        waiting: bool,
    },
    /// Another process has finished a cell.
    FinishedElsewhere {
        /// The cell.
        planned: Planned,
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
pub struct RunContext<'a> {
    /// The world.
    pub world: &'a World,
    /// SHA-256 of its weights, where it is known.
    pub weights_sha256: Option<&'a str>,
    /// Its knobs.
    pub settings: Settings,
    /// What trains.
    pub device: &'a Device,
    /// How often, at most, a cell's state is written.
    pub every: Duration,
    /// A folder on a local disk, for images that would come through a network otherwise.
    pub stage: Option<PathBuf>,
    /// The dataset of a spec that names one.
    pub data: Option<Data>,
}

impl<'a> RunContext<'a> {
    /// With checkpoints every minute, nothing kept elsewhere, and no dataset.
    pub fn new(world: &'a World, settings: Settings, device: &'a Device) -> Self {
        Self { world, weights_sha256: None, settings, device, every: CHECKPOINT_EVERY, stage: None, data: None }
    }
}

/// Cells that failed of which a message tells, at most.
const TOLD: usize = 3;

/// How often, at most, a cell's state is written where nobody says otherwise.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// Runs the cells of a share that are not finished, and writes the summary of all that are.
///
/// # Errors
/// When the disk or the device fails, when cells could not be finished or the results of finished ones
/// cannot be read (the others are well), or [`Error::Cancelled`].
pub fn execute(
    folder: &RunFolder,
    share: Share,
    context: &RunContext<'_>,
    events: &mut dyn Events<RunEvent>,
) -> Result<Summary> {
    let (mut open, unfinished) = (begin(folder, share, events)?, Unfinished::none());
    while !open.is_empty() {
        let mut left = open.iter().copied();
        cells(folder, context, (&mut || left.next(), open.last().copied()), &unfinished, events)?;
        open = wait_for_others(folder, &unfinished, events)?;
    }
    conclude(folder, &unfinished, events)
}

/// Lets a device compute: opens a world on it and calls back with what computes there.
pub type OnDevice<'a> = dyn Fn(&OpenDevice, &mut dyn FnMut(&RunContext<'_>) -> Result<()>) -> Result<()> + Sync + 'a;

/// [`execute`] on several devices at once, each of which takes the next cell. A cell's result does
/// not depend on which takes it, as far as the devices' arithmetic agrees.
///
/// # Errors
/// As [`execute`]; [`Error::DeviceLost`] where no device is left.
pub fn execute_on<'a>(
    folder: &'a RunFolder,
    share: Share,
    devices: Vec<OpenDevice>,
    on: &OnDevice<'_>,
    events: &mut dyn Events<RunEvent>,
) -> Result<Summary> {
    let (mut open, unfinished) = (begin(folder, share, events)?, Unfinished::none());
    while let Some(&last) = open.last() {
        let work = |chosen: &OpenDevice, hand: &WorkQueue<'_, &'a Planned>, events: &mut dyn Events<RunEvent>| {
            // Taken before the device is warm: a fast device does not leave the others without any.
            let mut first = hand.take();
            if first.is_none() {
                return Ok(());
            }
            on(chosen, &mut |context| {
                let mut next = || first.take().or_else(|| hand.take());
                cells(folder, context, (&mut next, Some(last)), &unfinished, events)
            })
        };
        match run_on_all(devices.clone(), open, work, events) {
            // Nothing is left to stop.
            Err(Error::Cancelled) if folder.open(share).is_empty() => {}
            done => done?,
        }
        open = wait_for_others(folder, &unfinished, events)?;
    }
    conclude(folder, &unfinished, events)
}

/// Runs the cells of a queue on one device.
fn cells<'a>(
    folder: &RunFolder,
    context: &RunContext<'_>,
    queue: Queue<'_, 'a, Planned>,
    unfinished: &Unfinished<'a, Planned>,
    events: &mut dyn Events<RunEvent>,
) -> Result<()> {
    let mut pools = Pools::new(folder, context)?;
    let mut one = |planned: &Planned, events: &mut dyn Events<RunEvent>| {
        run_cell(folder, context, &mut pools, planned, events).map_err(Failure::from)
    };
    run_cells(folder, queue, unfinished, &mut one, events)
}

fn conclude(
    folder: &RunFolder,
    unfinished: &Unfinished<'_, Planned>,
    events: &mut dyn Events<RunEvent>,
) -> Result<Summary> {
    let summary = end(folder, events)?;
    let failed = unfinished.failed();
    let failed = (!failed.is_empty()).then(|| why_unfinished(folder, &failed));
    match failed.into_iter().chain(summary.damage()).reduce(|one, other| format!("{one}; {other}")) {
        None => Ok(summary),
        Some(why) => Err(Error::Numeric(why)),
    }
}

/// Which cells failed, why, and what to do about it.
fn why_unfinished(folder: &RunFolder, failed: &[Failed<'_, Planned>]) -> String {
    let told = failed.iter().take(TOLD).map(|(planned, why)| format!("{}: {why}", planned.label()));
    let mut told: Vec<String> = told.collect();
    if failed.len() > TOLD {
        told.push(format!("{} more, as `bayescope watch` says", failed.len() - TOLD));
    }
    let (cells, them) = if failed.len() == 1 { ("cell", "it") } else { ("cells", "them") };
    format!(
        "{} {cells} could not be finished (`bayescope resume {}` tries {them} again): {}",
        failed.len(),
        folder.path.display(),
        told.join("; ")
    )
}

fn run_cell(
    folder: &RunFolder,
    context: &RunContext<'_>,
    pools: &mut Pools<'_>,
    planned: &Planned,
    events: &mut dyn Events<RunEvent>,
) -> Result<CellResult> {
    let spec = &folder.spec;
    let cell = planned.cell;
    let training = spec.training_of(cell.architecture, cell.condition)?;
    // What is seen once is drawn when needed; what is seen again is held, and so is a pool to
    // choose from.
    let streamed = training.passes(cell.train_size) == 1 && !spec.experiment.reads_beside_training();
    let path = folder.cell(&planned.id);
    let mut log = CellLog { planned, path: &path, writer: None, heartbeat: Heartbeat::new(&path), error: None };
    let prepared = pools.prepare(&cell, streamed, &mut |event: RunEvent| log.preparing(event, events));
    log.refused()?;
    prepared?;
    let train = pools.train(&cell, streamed);
    let pretrained = start(folder, &cell)?;
    let job = CellJob {
        cell,
        id: &planned.id,
        training,
        pretrained: pretrained.as_ref(),
        train: train.as_ref(),
        test: pools.test(&cell)?,
        watched: spec.test.watched,
        range: context.world.flow().pixels().range(),
        // A dataset's images are of no world.
        weights_sha256: context.weights_sha256.filter(|_| pools.learned(&cell).is_none()),
        folder: &path,
        every: context.every,
        device: context.device,
    };
    let place = CellPlace {
        world: context.world,
        settings: &pools.settings(cell.condition),
        train_seed: spec.train_seed(cell.seed),
        pool: (train_pool(spec, cell.condition, cell.seed), spec.largest()),
        features: &folder.features,
        real: pools.real(),
    };
    let result = spec.experiment.run(&place, &job, &mut |said: CellEvent| log.note(said, events));
    log.refused()?;
    if matches!(result, Err(Error::Cancelled)) {
        // Whatever was broken off has left a checkpoint.
        log.keep()?;
    }
    let result = result?;
    log.heartbeat.done()?;
    Ok(result)
}

/// The weights that a cell starts from, where it does from any. Its name counts those that the run was planned with.
fn start(folder: &RunFolder, cell: &Cell) -> Result<Option<Weights>> {
    let RunFolder { spec, pretrained, .. } = folder;
    let from = spec.pretrained.get(&cell.architecture);
    let Some(file) = from.filter(|_| !spec.experiment.starts_from_scratch(cell.condition)) else { return Ok(None) };
    if let Some(planned) = pretrained.get(&cell.architecture)
        && sha256_of_file(file, &mut silent())? != *planned
    {
        let why = "is not what this run was planned with; put the old file back, or plan another run";
        return Err(Error::file(file, why));
    }
    Weights::read(file).map(Some)
}

/// Writes down what a cell reports, and passes it on.
struct CellLog<'a> {
    planned: &'a Planned,
    path: &'a Path,
    writer: Option<Writer>,
    heartbeat: Heartbeat,
    /// What the disk refused.
    error: Option<Error>,
}

impl CellLog<'_> {
    /// Passes on what is said of the images that the cell needs. That may take long, and the status of an earlier
    /// sitting would fall silent.
    fn preparing(&mut self, event: RunEvent, events: &mut dyn Events<RunEvent>) -> ControlFlow<()> {
        match self.heartbeat.measuring() {
            Ok(()) => events.emit(event),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// What the disk refused, as an error.
    fn refused(&mut self) -> Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn note(&mut self, said: CellEvent, events: &mut dyn Events<RunEvent>) -> ControlFlow<()> {
        if let Err(error) = self.write(&said) {
            self.error = Some(error);
            return ControlFlow::Break(());
        }
        if let CellEvent::Drawing(progress) = said {
            return events.emit(RunEvent::Drawing { what: self.planned.label(), progress });
        }
        let eta_secs = match said {
            CellEvent::Step { step, .. } => self.heartbeat.eta(step),
            _ => None,
        };
        events.emit(RunEvent::Cell { planned: self.planned.clone(), said, eta_secs })
    }

    /// Keeps what goes with a checkpoint.
    fn keep(&self) -> Result<()> {
        self.writer.as_ref().map_or(Ok(()), Writer::keep)
    }

    fn write(&mut self, said: &CellEvent) -> Result<()> {
        match said {
            CellEvent::Started { steps, resumed_at, .. } => {
                self.heartbeat.begin(*resumed_at, *steps);
                self.writer = Some(Writer::resume(self.path, *resumed_at, *steps)?);
                self.heartbeat.beat(*resumed_at)
            }
            CellEvent::Step { step, loss, rate } => {
                if let Some(writer) = &mut self.writer {
                    writer.step(*step, *loss, *rate)?;
                }
                self.heartbeat.step(*step)
            }
            CellEvent::Watched(watched) => match &mut self.writer {
                Some(writer) => writer.line(&Line::Watched(*watched)),
                None => Ok(()),
            },
            CellEvent::Checkpoint { step } => {
                self.keep()?;
                self.heartbeat.beat(*step)
            }
            CellEvent::Drawing(_) | CellEvent::Measuring { .. } => self.heartbeat.measuring(),
            CellEvent::Choosing { step, steps } => {
                self.heartbeat.steps = *steps;
                self.heartbeat.step(*step)
            }
        }
    }
}
