//! Images of a cell (its worst, or those it bought) and of judged models for the gallery. Reading
//! waits for a disk, and an experiment may hold the worker for hours. So a thread of its own reads,
//! and the worker takes the images over between two steps.

use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use super::judged_images::JudgedImagesRequest;
use super::loaded_images::LoadedImages;
use super::protocol::{Event, JobId, Outcome};
use super::shared::Shared;
use super::side_jobs::{self, SideJob};
use crate::error::{Error, Result};
use crate::oracle::classify::ExternalImages;
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
        // The first digits tell cells of one run apart.
        let cell = self.cell.get(..8).unwrap_or(&self.cell);
        match self.which {
            CellImages::Worst => format!("Worst images of cell {cell}…"),
            CellImages::Bought => format!("Images bought by cell {cell}…"),
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
    side_jobs::start(["cell images", "reading", "read runs"], shared, queue, events, hand_over);
}

/// Reads images and hands them to the worker, which ends the job.
fn hand_over(job: &SideJob<'_>, wanted: &Wanted) -> Result<Option<String>> {
    let loaded = match wanted {
        Wanted::Cell(request) => read(job.id, request),
        Wanted::Judged(request) => request.read(job.id),
    };
    if job.check().is_break() {
        return Err(Error::Cancelled);
    }
    if let Some(older) = job.shared.loaded.swap(loaded?) {
        job.end(older.id, Outcome::Cancelled);
    }
    job.shared.notify();
    Ok(None)
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
    let world = world.clone();
    match which {
        CellImages::Worst => {
            let WorstImages { planned, found: worst, shape, x, settings, posteriors } = folder.worst_images(cell)?;
            let (label, n) = (planned.label(), worst.images.len());
            let name = format!("{label}: {n} worst of {} test images by KL", worst.tested);
            let ids = worst.images.iter().map(|one| format!("Test image {}", one.image)).collect();
            let labels = Some(worst.images.iter().map(|one| one.label).collect());
            let mut images = ExternalImages::new(name, ids, labels, x);
            images.known = Some((settings.clone(), posteriors));
            Ok(LoadedImages { id, world, shape, settings, images, verdicts: worst.images })
        }
        CellImages::Bought => {
            let BoughtImages { planned, found: bought, shape, x, settings, posteriors } =
                folder.bought_images(cell, BOUGHT)?;
            if bought.is_empty() {
                return Err(Error::input(format!("{} bought nothing after its start", planned.label())));
            }
            let name = format!("{}: its first {} choices", planned.label(), bought.len());
            let ids = bought.iter().map(|one| format!("Pool image {}, round {}", one.image, one.round)).collect();
            let labels = Some(bought.iter().map(|one| one.label).collect());
            let mut images = ExternalImages::new(name, ids, labels, x);
            images.known = Some((settings.clone(), posteriors));
            Ok(LoadedImages { id, world, shape, settings, images, verdicts: Vec::new() })
        }
    }
}
