//! The gallery: samples in pieces, what is in view first.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::protocol::{Draft, Event, GalleryRequest, GalleryUpdate, Tile};
use super::cache::{Resident, SampleCache};
use super::{Interactive, PIECE, PieceContext, STOPPABLE_PIECE, unless};
use crate::device::{ImageSource, is_for_memory, note, pictures, values_read};
use crate::error::{Error, Result};
use crate::events::Progress;
use crate::flow::{Decoding, Unfinished};
use crate::oracle::world::{Figures, Sample, World};

/// Images in a piece at most.
pub const LARGEST_PIECE: usize = 256;
/// Images that take longer than this are shown while they are made.
const DRAFT_AFTER: Duration = Duration::from_millis(25);

/// A gallery under way.
pub struct Gallery {
    pub(super) request: GalleryRequest,
    waiting: VecDeque<usize>,
    delivered: usize,
    /// Whether a message said that samples are left out.
    told: bool,
}

impl Gallery {
    /// Nothing done yet.
    pub fn new(request: GalleryRequest) -> Self {
        let waiting = order(&request.first, 0..request.spec.n).into();
        Self { request, waiting, delivered: 0, told: false }
    }

    /// Leaves only samples that are in the cache.
    pub fn leave_unmade(&mut self, cache: &SampleCache) {
        let GalleryRequest { spec, settings, look, .. } = &self.request;
        let there = |index: usize| match look {
            Some(look) => cache.get(spec, settings, index).is_some() && cache.picture(look, index).is_some(),
            None => cache.get(spec, settings, index).is_some() || cache.resident(spec, settings, index).is_some(),
        };
        self.waiting.retain(|&index| there(index));
    }

    /// Whether an image that is in view has still to be made.
    pub fn owes_the_view(&self) -> bool {
        self.waiting.front().is_some_and(|next| self.request.first.contains(next))
    }

    /// A piece that is to be begun again.
    fn put_back(&mut self, indices: &[usize]) {
        indices.iter().rev().for_each(|&index| self.waiting.push_front(index));
    }

    /// Leaves out a sample that cannot be made. The first of a gallery gives a message.
    fn leave_out(&mut self, cx: &PieceContext<'_>, index: usize, why: &str) {
        self.delivered += 1;
        publish(cx, self, News { failed: vec![index], ..News::default() });
        if !std::mem::replace(&mut self.told, true) {
            let text = format!("Sample {index} cannot be made and is left out, as are others like it: {why}");
            cx.channels.send(Event::Failed(text));
        }
    }
}

impl Interactive {
    /// The next piece of the gallery under way, where no key pictures come first. One that is stopped waits to be
    /// begun again.
    pub(super) fn gallery_piece(&self, cx: &PieceContext<'_>) -> Result<()> {
        if self.keys_are_due() {
            return Ok(());
        }
        let mut slot = self.gallery.borrow_mut();
        let Some(gallery) = slot.as_mut() else { return Ok(()) };
        let most = cx.world.flow().resident().map_or(usize::MAX, |flow| flow.at_once());
        let piece = self.piece.get().min(most).min(gallery.waiting.len());
        let indices: Vec<usize> = gallery.waiting.drain(..piece).collect();
        if indices.is_empty() {
            *slot = None;
            self.served.set(true);
            return Ok(());
        }
        let started = Instant::now();
        match self.make(cx, gallery, &indices) {
            Ok((tiles, made)) => {
                self.deliver(cx, gallery, tiles);
                self.adapt(cx, made, started.elapsed());
                Ok(())
            }
            Err(Error::Cancelled) => {
                gallery.put_back(&indices);
                Err(Error::Cancelled)
            }
            // Images that stay on the device are made all at once: fewer of them, from now on.
            Err(Error::OutOfMemory { device, .. }) if indices.len() > 1 => {
                let fewer = indices.len().div_ceil(2);
                gallery.put_back(&indices);
                self.largest.set(fewer);
                self.piece.set(fewer);
                note(format!(
                    "{device} ran out of memory with {} images at once (gallery); it goes on with {fewer}",
                    indices.len()
                ));
                Ok(())
            }
            // One image that overflows does not cost the others their cx.
            Err(why) if why.is_numeric() => {
                match indices[..] {
                    [index] => gallery.leave_out(cx, index, &why.to_string()),
                    _ => {
                        gallery.put_back(&indices);
                        self.piece.set(indices.len() / 2);
                    }
                }
                Ok(())
            }
            Err(error) => {
                if is_for_memory(&error) {
                    self.largest.set(self.piece.get().div_ceil(2));
                }
                Err(error)
            }
        }
    }

    /// Tiles of some samples, and how many of them had to be made, not being in the cache.
    fn make(&self, cx: &PieceContext<'_>, gallery: &Gallery, indices: &[usize]) -> Result<(Vec<Tile>, usize)> {
        let world = cx.world;
        let GalleryRequest { spec, settings, look, .. } = &gallery.request;
        if look.is_none() && spec.products.is_wide() && world.flow().resident().is_some() {
            return self.make_resident(cx, gallery, indices);
        }
        let known = |index: &usize| self.cache.borrow().get(spec, settings, *index);
        let mut samples: Vec<Arc<Sample>> = indices.iter().filter_map(known).collect();
        let missing: Vec<usize> = indices.iter().filter(|index| known(index).is_none()).copied().collect();
        if !missing.is_empty() {
            let made = world.sample_watched(spec, settings, &missing, &mut watch(cx, gallery, &missing))?;
            for sample in made.into_iter().map(Arc::new) {
                self.remember(spec, settings, &sample);
                samples.push(sample);
            }
        }
        // In the order asked for.
        samples.sort_by_key(|sample| indices.iter().position(|index| *index == sample.index));
        let mut made = missing.len();
        if let Some(look) = look {
            let lacking = |sample: &&Arc<Sample>| self.cache.borrow().picture(look, sample.index).is_none();
            let lacking: Vec<usize> = samples.iter().filter(lacking).map(|sample| sample.index).collect();
            let looked = self.looks(cx, &samples, (spec, settings, look), &mut watch(cx, gallery, &lacking));
            // A look that overflows leaves the sample as it is.
            match looked {
                Err(why) if why.is_numeric() && indices.len() == 1 => {}
                other => other?,
            }
            made = made.max(lacking.len());
        }
        Ok((samples.iter().map(|sample| self.tile(world, sample, look.as_ref())).collect(), made))
    }

    /// [`Self::make`] where images stay on the device: figures are read back; pictures only where
    /// the window cannot paint them there.
    fn make_resident(&self, cx: &PieceContext<'_>, gallery: &Gallery, indices: &[usize]) -> Result<(Vec<Tile>, usize)> {
        let GalleryRequest { spec, settings, .. } = &gallery.request;
        let known = |index: &usize| self.cache.borrow().resident(spec, settings, *index).map(resident_tile);
        let mut tiles: Vec<Tile> = indices.iter().filter_map(known).collect();
        let missing: Vec<usize> = indices.iter().filter(|index| known(index).is_none()).copied().collect();
        if !missing.is_empty() {
            let before = values_read();
            let mut watch = watch(cx, gallery, &missing);
            let made = cx.world.sample_resident(spec, settings, &missing, &mut watch)?;
            let made = Arc::new(made.ok_or_else(|| Error::input("the images of this world are on the host"))?);
            let figures = values_read() - before;
            let pictures = pictures(made.levels.clone())?;
            let painted = pictures.iter().filter(|picture| picture.bytes().is_none()).count();
            tracing::debug!(
                "gallery: {} images, {figures} values of figures and {} of pictures read back, {painted} painted in place",
                missing.len(),
                values_read() - before - figures,
            );
            let mut cache = self.cache.borrow_mut();
            cache.keep_resident(spec, settings, (&made, pictures));
            tiles.extend(missing.iter().filter_map(|&index| cache.resident(spec, settings, index).map(resident_tile)));
        }
        // In the order asked for.
        tiles.sort_by_key(|tile| indices.iter().position(|index| *index == tile.index));
        Ok((tiles, missing.len()))
    }

    fn deliver(&self, cx: &PieceContext<'_>, gallery: &mut Gallery, tiles: Vec<Tile>) {
        gallery.delivered += tiles.len();
        publish(cx, gallery, News { tiles, ..News::default() });
    }

    /// Sizes the next piece by the time that making `made` samples took.
    fn adapt(&self, cx: &PieceContext<'_>, made: usize, took: Duration) {
        if made == 0 {
            return;
        }
        self.cost.set(took / made as u32);
        let stoppable = cx.world.flow().stages() > 1;
        let ideal = if stoppable { STOPPABLE_PIECE } else { PIECE };
        // Where launching kernels alone takes longer than that, no smaller piece helps: up to twice
        // as long is given.
        let floor = self.floor.get().min(took);
        self.floor.set(floor);
        let ideal = made as f64 * ideal.max(2 * floor).as_secs_f64() / took.as_secs_f64().max(1e-4);
        // Powers of two: few shapes, so that a GPU compiles few kernels. One slow start must not
        // make a huge piece.
        let size = (ideal as usize).clamp(1, self.largest.get().min(2 * made.next_power_of_two()));
        self.piece.set(if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 });
    }
}

/// The tile of a sample whose image stayed on the device.
fn resident_tile(resident: &Resident) -> Tile {
    let Figures { index, source, label, ref posterior } = *resident.figures();
    let (pixels, posterior) = (resident.picture.clone(), Arc::new(posterior.clone()));
    Tile { index, source, label, pixels, posterior, look: None }
}

/// Publishes images as they are after every block, and stops when something newer waits.
fn watch<'a>(
    cx: &'a PieceContext<'_>,
    gallery: &'a Gallery,
    indices: &'a [usize],
) -> impl FnMut(Decoding) -> ControlFlow<()> + 'a {
    let began = Instant::now();
    move |decoding: Decoding| {
        if let Some(unfinished) = decoding.x.filter(|_| began.elapsed() > DRAFT_AFTER) {
            match drafts(cx.world, indices, unfinished, decoding.progress) {
                Ok(drafts) => publish(cx, gallery, News { drafts, ..News::default() }),
                // The next step fails for the same reason, and says so.
                Err(error) => tracing::debug!("no draft: {error}"),
            }
        }
        unless(cx.called_away() || cx.channels.shared.asked())
    }
}

/// The images of a piece after another block.
fn drafts(world: &World, indices: &[usize], unfinished: Unfinished, steps: Progress) -> Result<Vec<Draft>> {
    let total = world.flow().stages();
    let blocks = Progress { done: steps.done * total / steps.total.max(1), total };
    let look = |x: &[f32]| ImageSource::Host(world.flow().pixels().picture(x));
    let images = match unfinished {
        Unfinished::Host(x) => x.chunks(world.shape().dims()).map(look).collect(),
        Unfinished::Resident(levels) => pictures(*levels)?,
    };
    Ok(images.into_iter().zip(indices).map(|(pixels, &index)| Draft { index, pixels, blocks }).collect())
}

/// What has become of some samples.
#[derive(Default)]
struct News {
    tiles: Vec<Tile>,
    drafts: Vec<Draft>,
    failed: Vec<usize>,
}

fn publish(cx: &PieceContext<'_>, gallery: &Gallery, News { tiles, drafts, failed }: News) {
    let GalleryRequest { generation, spec, .. } = gallery.request;
    let progress = Progress { done: gallery.delivered, total: spec.n };
    let update = GalleryUpdate { generation, shape: cx.world.shape(), tiles, drafts, failed, progress };
    cx.channels.shared.gallery.merge(update, join);
    (cx.channels.shared.wake)();
}

fn join(mut old: GalleryUpdate, new: GalleryUpdate) -> GalleryUpdate {
    if old.generation != new.generation {
        return new;
    }
    let known = |index: usize| {
        let now = new.drafts.iter().map(|draft| draft.index).chain(new.failed.iter().copied());
        new.tiles.iter().map(|tile| tile.index).chain(now).any(|other| other == index)
    };
    old.drafts.retain(|draft| !known(draft.index));
    old.drafts.extend(new.drafts);
    old.tiles.extend(new.tiles);
    old.failed.extend(new.failed);
    old.progress = new.progress;
    old
}

/// Sample numbers `range`, the ones in `first` leading.
fn order(first: &[usize], range: Range<usize>) -> Vec<usize> {
    let mut lead: Vec<usize> = Vec::with_capacity(range.len());
    let mut seen = vec![false; range.len()];
    for &index in first.iter().filter(|index| range.contains(index)) {
        if !std::mem::replace(&mut seen[index - range.start], true) {
            lead.push(index);
        }
    }
    lead.extend(range.clone().filter(|index| !seen[index - range.start]));
    lead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_view_comes_first_and_everything_comes_once() {
        assert_eq!(order(&[4, 2, 4, 9], 0..6), [4, 2, 0, 1, 3, 5]);
        assert_eq!(order(&[], 2..4), [2, 3]);
    }
}
