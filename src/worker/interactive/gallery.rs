//! The gallery: samples in pieces, what is in view first.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::protocol::{Draft, GalleryRequest, GalleryUpdate, Tile, order};
use super::{Interactive, PIECE, Place, STOPPABLE_PIECE, unless};
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::flow::Decoding;
use crate::oracle::world::{Sample, World};

/// Images in a piece at most.
const LARGEST_PIECE: usize = 256;
/// Images that take longer than this are shown while they are made.
const DRAFT_AFTER: Duration = Duration::from_millis(25);

/// A gallery under way.
pub struct Gallery {
    request: GalleryRequest,
    waiting: VecDeque<usize>,
    delivered: usize,
}

impl Gallery {
    /// Nothing done yet.
    pub fn new(request: GalleryRequest) -> Self {
        let waiting = order(&request.first, 0..request.spec.n).into();
        Self { request, waiting, delivered: 0 }
    }
}

impl Interactive {
    /// The next piece of the gallery under way. One that is stopped waits to be begun again.
    pub(super) fn gallery_piece(&self, place: &Place<'_>) -> Result<()> {
        let mut slot = self.gallery.borrow_mut();
        let Some(gallery) = slot.as_mut() else { return Ok(()) };
        let piece = self.piece.get().min(gallery.waiting.len());
        let indices: Vec<usize> = gallery.waiting.drain(..piece).collect();
        if indices.is_empty() {
            *slot = None;
            self.served.set(true);
            return Ok(());
        }
        let started = Instant::now();
        match self.make(place, gallery, &indices) {
            Ok((tiles, made)) => {
                self.deliver(place, gallery, tiles);
                self.adapt(place, made, started.elapsed());
                Ok(())
            }
            Err(Error::Cancelled) => {
                for index in indices.into_iter().rev() {
                    gallery.waiting.push_front(index);
                }
                Err(Error::Cancelled)
            }
            Err(error) => Err(error),
        }
    }

    /// Tiles of some samples, and how many of them had to be made: those that are kept cost nothing.
    fn make(&self, place: &Place<'_>, gallery: &Gallery, indices: &[usize]) -> Result<(Vec<Tile>, usize)> {
        let world = place.world;
        let GalleryRequest { spec, settings, look, .. } = &gallery.request;
        let known = |index: &usize| self.kept.borrow().get(spec, settings, *index);
        let mut samples: Vec<Arc<Sample>> = indices.iter().filter_map(known).collect();
        let missing: Vec<usize> = indices.iter().filter(|index| known(index).is_none()).copied().collect();
        if !missing.is_empty() {
            let made = world.sample_watched(spec, settings, &missing, &mut watch(place, gallery, &missing))?;
            for sample in made.into_iter().map(Arc::new) {
                self.remember(spec, settings, &sample);
                samples.push(sample);
            }
        }
        let mut made = missing.len();
        if let Some(look) = look {
            let lacking = |sample: &&Arc<Sample>| self.kept.borrow().picture(look, sample.index).is_none();
            let lacking: Vec<usize> = samples.iter().filter(lacking).map(|sample| sample.index).collect();
            self.looks(place, &samples, (spec, settings, look), &mut watch(place, gallery, &lacking))?;
            made = made.max(lacking.len());
        }
        Ok((samples.iter().map(|sample| self.tile(world, sample, look.as_ref())).collect(), made))
    }

    fn deliver(&self, place: &Place<'_>, gallery: &mut Gallery, tiles: Vec<Tile>) {
        gallery.delivered += tiles.len();
        tell(place, gallery, tiles, Vec::new());
    }

    /// Sizes the next piece by the time that making `made` samples took.
    fn adapt(&self, place: &Place<'_>, made: usize, took: Duration) {
        if made == 0 {
            return;
        }
        self.cost.set(took / made as u32);
        let stoppable = place.world.flow().class_map().is_some();
        let ideal = if stoppable { STOPPABLE_PIECE } else { PIECE };
        let ideal = made as f64 * ideal.as_secs_f64() / took.as_secs_f64().max(1e-4);
        // Powers of two: few shapes, so that a GPU compiles few kernels.
        let size = (ideal as usize).clamp(1, LARGEST_PIECE);
        self.piece.set(if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 });
    }
}

/// Publishes images as they are after every block, and stops when something newer waits.
fn watch<'a>(
    place: &'a Place<'_>,
    gallery: &'a Gallery,
    indices: &'a [usize],
) -> impl FnMut(Decoding) -> ControlFlow<()> + 'a {
    let began = Instant::now();
    move |decoding: Decoding| {
        if let Some(x) = decoding.x.filter(|_| began.elapsed() > DRAFT_AFTER) {
            tell(place, gallery, Vec::new(), drafts(place.world, indices, &x, decoding.progress));
        }
        unless(place.called_away() || place.line.shared.asked())
    }
}

/// The images of a piece after another block.
fn drafts(world: &World, indices: &[usize], x: &[f32], steps: Progress) -> Vec<Draft> {
    let total = world.flow().class_map().map_or(1, |flow| flow.config().blocks);
    let blocks = Progress { done: steps.done * total / steps.total.max(1), total };
    let images = x.chunks(world.shape().dims()).zip(indices);
    images.map(|(x, &index)| Draft { index, pixels: world.flow().pixels().picture(x), blocks }).collect()
}

fn tell(place: &Place<'_>, gallery: &Gallery, tiles: Vec<Tile>, drafts: Vec<Draft>) {
    let GalleryRequest { generation, spec, .. } = gallery.request;
    let progress = Progress { done: gallery.delivered, total: spec.n };
    let update = GalleryUpdate { generation, shape: place.world.shape(), tiles, drafts, progress };
    place.line.shared.gallery.merge(update, join);
    (place.line.shared.wake)();
}

fn join(mut old: GalleryUpdate, new: GalleryUpdate) -> GalleryUpdate {
    if old.generation != new.generation {
        return new;
    }
    let known = |index: usize| {
        new.tiles.iter().any(|tile| tile.index == index) || new.drafts.iter().any(|draft| draft.index == index)
    };
    old.drafts.retain(|draft| !known(draft.index));
    old.drafts.extend(new.drafts);
    old.tiles.extend(new.tiles);
    old.progress = new.progress;
    old
}
