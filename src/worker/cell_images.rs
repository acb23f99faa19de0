//! Images of a cell (its worst, or those it bought), of a step of an external run, and of judged models for the gallery. Reading
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
use crate::experiment::{WORST, WorstImage};
use crate::oracle::classify::ExternalImages;
use crate::oracle::library;
use crate::run::external::{ExternalFolder, StepPictures};
use crate::run::{BOUGHT, BoughtImages, RunFolder, WorstImages};

/// Which images of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellImages {
    /// The test images with the largest KL(p‖q).
    Worst,
    /// Those of the pool whose labels its strategy of active learning bought first.
    Bought,
    /// Of an external run, which has no cells: the test images with the largest KL(p‖q) at this step.
    AtStep(u64),
}

/// Asks for images of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellImagesRequest {
    /// Which.
    pub which: CellImages,
    /// The run folder.
    pub folder: PathBuf,
    /// The cell's ID; empty where there are no cells.
    pub cell: String,
    /// The cell in the words of the table of cells: network, N, seed.
    pub label: String,
    /// Name of the open oracle.
    pub oracle: String,
    /// Its world (`OracleInfo::world_id`): images of another world have no posterior in this one.
    pub world: String,
}

impl CellImagesRequest {
    /// A short name for the list of jobs.
    pub fn title(&self) -> String {
        match self.which {
            CellImages::Worst => format!("Worst images of {}…", self.label),
            CellImages::Bought => format!("Images bought by {}…", self.label),
            CellImages::AtStep(step) => format!("Worst images of step {step} of {}…", self.folder.display()),
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

/// That images are not of the open world.
fn elsewhere(of: &str, open: &str) -> Error {
    Error::input(match of == open {
        true => format!("{of} has other weights now than when this run was planned: its images are not of that world"),
        false => format!("these images are of the world {of}, and {open} is open: open {of} first"),
    })
}

/// The folder of a run of the open world.
fn open_grid(request: &CellImagesRequest) -> Result<RunFolder> {
    let folder = RunFolder::open(&request.folder)?;
    match folder.is_on(&request.world)? {
        true => Ok(folder),
        false => Err(elsewhere(&folder.oracle(), &request.oracle)),
    }
}

/// The worst images of a step of an external run. The open world computes their posteriors: the run keeps p(y|x) alone, not the
/// log-densities that a gallery shows.
fn at_step(id: JobId, request: &CellImagesRequest, step: u64) -> Result<LoadedImages> {
    let folder = ExternalFolder::open(&request.folder)?;
    let of = &folder.spec.world;
    if of.id() != request.world {
        return Err(elsewhere(&library::opening(&of.oracle, &of.weights_sha256), &request.oracle));
    }
    let StepPictures { found, shape, x, settings } = folder.worst_pictures(step, WORST)?;
    let name = format!(
        "{}, step {step}: {} worst of {} test images by KL",
        folder.spec.name,
        found.images.len(),
        found.tested
    );
    let verdicts: Vec<WorstImage> = found.images.into_iter().map(|one| one.worst).collect();
    let ids = verdicts.iter().map(|one| format!("Test image {}", one.image)).collect();
    let labels = Some(verdicts.iter().map(|one| one.label).collect());
    let images = ExternalImages::new(name, ids, labels, x);
    Ok(LoadedImages { id, world: request.world.clone(), shape, settings, images, verdicts })
}

fn read(id: JobId, request: &CellImagesRequest) -> Result<LoadedImages> {
    let CellImagesRequest { which, cell, world, .. } = request;
    let world = world.clone();
    match which {
        CellImages::AtStep(step) => at_step(id, request, *step),
        CellImages::Worst => {
            let WorstImages { planned, found: worst, shape, x, settings, posteriors } =
                open_grid(request)?.worst_images(cell)?;
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
                open_grid(request)?.bought_images(cell, BOUGHT)?;
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
