//! Images of a cell, its worst or those it bought, and of judged models, on their way to the gallery. Reading waits for a disk, and an experiment may hold the worker for
//! hours: a light thread of its own reads, and the worker takes the images over between two steps of whatever it does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, Sender};

use super::external_images::{ExternalImages, LoadedImages};
use super::judged_images::JudgedImagesRequest;
use super::protocol::{Event, JobId, Outcome};
use super::shared::Shared;
use crate::data::ImageShape;
use crate::error::{Error, Result, panic_message};
use crate::oracle::world::Settings;
use crate::run::{BOUGHT, BoughtImages, RunFolder, WorstImages};

/// Which images of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellImages {
    /// The test images with the largest KL(p‖q).
    Worst,
    /// Those of the pool whose labels its strategy of active learning bought first.
    Bought,
}

impl CellImages {
    /// The option of `bayescope summary RUN` that lists them.
    pub fn option(self) -> &'static str {
        match self {
            Self::Worst => "--worst",
            Self::Bought => "--bought",
        }
    }
}

/// Asks for images of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellImagesRequest {
    /// Which.
    pub which: CellImages,
    /// The run folder.
    pub folder: PathBuf,
    /// The cell's ID.
    pub cell: String,
    /// Name of the open oracle.
    pub oracle: String,
    /// SHA-256 of its weights: images of another world have no posterior in this one.
    pub world: String,
}

impl CellImagesRequest {
    /// A short name for the list of jobs.
    pub fn title(&self) -> String {
        match self.which {
            CellImages::Worst => format!("Worst images of cell {}", self.cell),
            CellImages::Bought => format!("Images bought by cell {}", self.cell),
        }
    }
}

/// What the thread reads.
pub(super) enum Wanted {
    Cell(CellImagesRequest),
    Judged(Box<JudgedImagesRequest>),
}

/// Starts the thread.
pub(super) fn start(shared: &Arc<Shared>, queue: Receiver<(JobId, Wanted)>, events: &Sender<Event>) {
    let (shared, told) = (shared.clone(), events.clone());
    let work = move || {
        while let Ok((id, wanted)) = queue.recv() {
            answer(&shared, &told, id, &wanted);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("cell images".into()).spawn(work) {
        let _ = events.try_send(Event::Failed(format!("the system gave no thread to read runs on: {error}")));
    }
}

/// Reads what is asked for and hands it to the worker, who ends the job; or ends it here.
fn answer(shared: &Shared, events: &Sender<Event>, id: JobId, wanted: &Wanted) {
    let send = |event: Event| {
        let _ = events.send(event);
        (shared.wake)();
    };
    let end = |id: JobId, outcome: Outcome| {
        shared.forget(id);
        send(Event::JobEnded { id, outcome });
    };
    let control = shared.control(id);
    if !control.take() {
        return shared.forget(id);
    }
    let cancelled = || control.cancelled.load(Ordering::Relaxed);
    if cancelled() {
        return end(id, Outcome::Cancelled);
    }
    send(Event::JobStarted { id });
    let read = || match wanted {
        Wanted::Cell(request) => read(id, request),
        Wanted::Judged(request) => request.read(id),
    };
    let read = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        Err(Error::Numeric(format!("reading failed inside: {}", panic_message(panic.as_ref()))))
    });
    match read {
        _ if cancelled() => end(id, Outcome::Cancelled),
        Err(error) => end(id, Outcome::Failed(error.to_string())),
        Ok(handed) => {
            if let Some(older) = shared.handed.swap(handed) {
                end(older.id, Outcome::Cancelled);
            }
            shared.ring();
        }
    }
}

fn read(id: JobId, request: &CellImagesRequest) -> Result<LoadedImages> {
    let CellImagesRequest { which, folder, cell, oracle, world } = request;
    let folder = RunFolder::open(folder)?;
    if !folder.is_on(world)? {
        let of = &folder.spec.world.oracle;
        let why = match of == oracle {
            true => {
                format!("{of} has other weights now than when this run was planned: its images are not of that world")
            }
            false => format!("these images are of the world {of}, and {oracle} is open: open {of} first"),
        };
        return Err(Error::input(why));
    }
    let (shape, settings, images) = match which {
        CellImages::Worst => worst(&folder, cell)?,
        CellImages::Bought => bought(&folder, cell)?,
    };
    Ok(LoadedImages { id, world: world.clone(), shape, settings, images })
}

fn worst(folder: &RunFolder, cell: &str) -> Result<(ImageShape, Settings, ExternalImages)> {
    let WorstImages { planned, found: worst, shape, x, settings, posteriors } = folder.worst_images(cell)?;
    let (label, n) = (planned.label(), worst.images.len());
    let images = ExternalImages {
        name: format!("{label}: {n} worst of {} test images by KL", worst.tested),
        ids: worst.images.iter().map(|one| format!("Test image {}", one.image)).collect(),
        labels: Some(worst.images.iter().map(|one| one.label).collect()),
        x,
        known: Some((settings.clone(), posteriors)),
        scores: None,
        verdicts: worst.images,
    };
    Ok((shape, settings, images))
}

fn bought(folder: &RunFolder, cell: &str) -> Result<(ImageShape, Settings, ExternalImages)> {
    let BoughtImages { planned, found: bought, shape, x, settings, posteriors } = folder.bought_images(cell, BOUGHT)?;
    if bought.is_empty() {
        return Err(Error::input(format!("{} bought nothing after its start", planned.label())));
    }
    let images = ExternalImages {
        name: format!("{}: its first {} choices", planned.label(), bought.len()),
        ids: bought.iter().map(|one| format!("Pool image {}, round {}", one.image, one.round)).collect(),
        labels: Some(bought.iter().map(|one| one.label).collect()),
        x,
        known: Some((settings.clone(), posteriors)),
        scores: None,
        verdicts: Vec::new(),
    };
    Ok((shape, settings, images))
}
