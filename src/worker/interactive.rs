//! Slider-driven requests: the gallery and the inspector. Served between jobs and from within them, a short piece at a
//! time, the newest request winning.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::desk::Line;
use super::protocol::{Event, GalleryRequest, GalleryUpdate, InspectRequest, Inspection, Subject, Tile, order};
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::oracle::classify::Classified;
use crate::oracle::world::{Sample, SampleSpec, Settings, World};
use crate::units::Tau;

/// A piece of work should take about this long, so that a newer request never waits longer.
const PIECE: Duration = Duration::from_millis(40);
/// Images in the first piece, before its speed is known.
const FIRST_PIECE: usize = 8;
/// Images in a piece at most.
const LARGEST_PIECE: usize = 256;

/// A gallery under way.
struct Gallery {
    request: GalleryRequest,
    waiting: VecDeque<usize>,
    delivered: usize,
}

/// Requests under way and images from outside. Served through shared references, from within a job's events too.
pub struct Interactive {
    gallery: RefCell<Option<Gallery>>,
    external: RefCell<Option<Classified>>,
    piece: RefCell<usize>,
    served: Cell<bool>,
}

impl Default for Interactive {
    fn default() -> Self {
        Self {
            gallery: RefCell::new(None),
            external: RefCell::new(None),
            piece: RefCell::new(FIRST_PIECE),
            served: Cell::new(false),
        }
    }
}

impl Interactive {
    /// Forgets what belonged to another world.
    pub fn forget(&self) {
        *self.gallery.borrow_mut() = None;
        *self.external.borrow_mut() = None;
        *self.piece.borrow_mut() = FIRST_PIECE;
        self.served.set(false);
    }

    /// Whether a gallery of this world has come to its end.
    pub fn served(&self) -> bool {
        self.served.get()
    }

    /// Keeps images from outside for the inspector.
    pub fn keep(&self, classified: Classified) {
        *self.external.borrow_mut() = Some(classified);
    }

    /// Does one short piece of what is asked for; returns whether more is waiting.
    pub fn serve(&self, line: &Line, world: Option<&World>) -> bool {
        let Some(world) = world else { return false };
        if let Some(request) = line.shared.inspect_request.take() {
            match self.inspect(world, &request) {
                Ok(inspection) => {
                    line.shared.inspection.put(inspection);
                    (line.shared.wake)();
                }
                Err(error) => line.send(Event::Failed(error.to_string())),
            }
        }
        if let Some(request) = line.shared.gallery_request.take() {
            let waiting = order(&request.first, 0..request.spec.n).into();
            *self.gallery.borrow_mut() = Some(Gallery { request, waiting, delivered: 0 });
        }
        if let Err(error) = self.gallery_piece(line, world) {
            *self.gallery.borrow_mut() = None;
            line.send(Event::Failed(error.to_string()));
        }
        self.gallery.borrow().is_some() || line.shared.inspect_request.is_full()
    }

    /// The next piece of the gallery under way.
    fn gallery_piece(&self, line: &Line, world: &World) -> Result<()> {
        let mut slot = self.gallery.borrow_mut();
        let Some(gallery) = slot.as_mut() else { return Ok(()) };
        let piece = (*self.piece.borrow()).min(gallery.waiting.len());
        let indices: Vec<usize> = gallery.waiting.drain(..piece).collect();
        if indices.is_empty() {
            *slot = None;
            self.served.set(true);
            return Ok(());
        }
        let started = Instant::now();
        let GalleryRequest { spec, settings, generation, .. } = &gallery.request;
        let tiles: Vec<Tile> =
            world.sample_indices(spec, settings, &indices)?.into_iter().map(|sample| tile(world, sample)).collect();
        gallery.delivered += tiles.len();
        let update = GalleryUpdate {
            generation: *generation,
            shape: world.shape(),
            tiles,
            progress: Progress { done: gallery.delivered, total: spec.n },
        };
        line.shared.gallery.merge(update, join);
        (line.shared.wake)();
        self.adapt(piece, started.elapsed());
        Ok(())
    }

    /// Sizes the next piece by the time this one took.
    fn adapt(&self, piece: usize, took: Duration) {
        let ideal = piece as f64 * PIECE.as_secs_f64() / took.as_secs_f64().max(1e-4);
        // Powers of two: few shapes, so that a GPU compiles few kernels.
        let size = (ideal as usize).clamp(1, LARGEST_PIECE);
        *self.piece.borrow_mut() = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
    }

    fn inspect(&self, world: &World, request: &InspectRequest) -> Result<Inspection> {
        let InspectRequest { generation, subject, settings, taus } = request;
        let (tile, rounding, morph) = match subject {
            Subject::Sample { spec, index } => {
                let at = |tau: Tau| one(world, spec, &Settings { tau, ..settings.clone() }, *index);
                let morph: Result<Vec<_>> =
                    taus.iter().map(|&tau| at(tau).map(|one| (tau, tile(world, one)))).collect();
                let sample = at(settings.tau)?;
                let rounding = world.rounding(std::slice::from_ref(&sample), settings)?.first().copied();
                (tile(world, sample), rounding, morph?)
            }
            Subject::External(index) => {
                let external = self.external.borrow();
                let classified = external.as_ref().filter(|c| *index < c.ids.len());
                let classified = classified.ok_or_else(|| Error::input("that image is no longer open"))?;
                (external_tile(world, classified, *index, settings), None, Vec::new())
            }
        };
        let (generation, subject, shape) = (*generation, subject.clone(), world.shape());
        Ok(Inspection { generation, subject, shape, tile, rounding, morph })
    }
}

fn one(world: &World, spec: &SampleSpec, settings: &Settings, index: usize) -> Result<Sample> {
    let samples = world.sample_indices(spec, settings, &[index])?;
    samples.into_iter().next().ok_or_else(|| Error::input("no such sample"))
}

fn join(mut old: GalleryUpdate, new: GalleryUpdate) -> GalleryUpdate {
    if old.generation != new.generation {
        return new;
    }
    old.tiles.extend(new.tiles);
    old.progress = new.progress;
    old
}

fn tile(world: &World, sample: Sample) -> Tile {
    Tile {
        index: sample.index,
        source: sample.source,
        label: sample.label,
        pixels: world.flow().pixels().picture(&sample.x),
        posterior: Arc::new(sample.posterior),
    }
}

/// Image `i` from outside under the given knobs.
pub fn external_tile(world: &World, classified: &Classified, i: usize, settings: &Settings) -> Tile {
    let posterior = world.posterior(&classified.scores, i, settings);
    let label = classified.labels.as_ref().map_or(posterior.decision, |labels| labels[i]);
    let dims = world.shape().dims();
    Tile {
        index: i,
        source: label,
        label,
        pixels: world.flow().pixels().picture(&classified.x[i * dims..(i + 1) * dims]),
        posterior: Arc::new(posterior),
    }
}
