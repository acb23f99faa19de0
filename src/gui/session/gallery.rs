//! The tiles on show: of the newest generation where they have arrived, older ones until then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::bayes::{Figure, of_samples};
use crate::data::ImageShape;
use crate::device::ImageSource;
use crate::events::Progress;
use crate::flow::sampling::SamplerOptions;
use crate::oracle::world::Settings;
use crate::stats::above_least;
use crate::units::{ClassId, Seed};
use crate::worker::protocol::{Draft, GalleryUpdate, KeyOrigin, Tile};

use super::super::prefs::Sort;

/// Requests whose knobs are remembered until they are answered.
const REMEMBERED: usize = 512;

/// What tiles were asked for with.
#[derive(Debug, PartialEq)]
pub struct Knobs {
    /// Seed of classes, latents and labels.
    pub seed: Seed,
    /// τ, T, π and label noise.
    pub settings: Settings,
}

/// A tile and its age.
#[derive(Debug, Clone)]
pub struct Slot {
    pub tile: Tile,
    /// The request that produced it.
    pub generation: u64,
    /// Grows with every replacement: tells whether a texture is out of date.
    pub stamp: u64,
    /// What its figures are of, where the request said; images from outside have theirs in common.
    pub knobs: Option<Arc<Knobs>>,
    /// [`Settings::class_doubt`] at those knobs.
    class_doubt: Option<(ClassId, f64)>,
}

/// An image that is still being made.
#[derive(Debug, Clone)]
pub struct DraftSlot {
    /// What it looks like now.
    pub pixels: ImageSource,
    /// Blocks inverted, of how many.
    pub blocks: Progress,
    /// As of [`Slot`].
    pub stamp: u64,
}

/// Figures of the world estimated from one complete gallery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimates {
    /// Samples they rest on.
    pub n: usize,
    /// Mean entropy of the posteriors, nats.
    pub entropy: Figure,
    /// E[1 − max p].
    pub bayes_error: Figure,
}

/// Images by running number.
#[derive(Debug, Default)]
pub struct Gallery {
    shape: Option<ImageShape>,
    slots: Vec<Option<Slot>>,
    drafts: BTreeMap<usize, DraftSlot>,
    clock: u64,
    generation: u64,
    fresh: usize,
    /// Samples of the newest request that cannot be made.
    failed: BTreeSet<usize>,
    wanted: usize,
    /// Latents and knobs of the newest request, and the oldest request of the same images.
    of: Option<(KeyOrigin, Arc<Knobs>)>,
    since: u64,
    /// The knobs of requests that may still be answered.
    knobs: BTreeMap<u64, Arc<Knobs>>,
    estimates: Option<Estimates>,
}

impl Gallery {
    /// Images from outside: all there at once.
    pub fn from_tiles(shape: ImageShape, tiles: Vec<Tile>, clock: u64) -> Self {
        let mut gallery = Self { clock, ..Self::default() };
        let total = tiles.len();
        gallery.expect(1, total);
        let tiles = tiles.into_iter().enumerate().map(|(index, tile)| Tile { index, ..tile }).collect();
        let progress = Progress { done: total, total };
        let (drafts, failed) = (Vec::new(), Vec::new());
        gallery.take(GalleryUpdate { generation: 1, shape, tiles, drafts, failed, progress });
        gallery
    }

    /// A request for `n` samples was sent.
    pub fn expect(&mut self, generation: u64, n: usize) {
        self.generation = generation;
        self.wanted = n;
        self.fresh = 0;
        self.failed.clear();
        self.drafts.clear();
        self.clock += 1;
        if self.slots.len() != n {
            self.slots.resize(n, None);
            self.clock += 1;
        }
    }

    /// The newest request is of these latents at these knobs.
    pub fn expect_of(&mut self, origin: KeyOrigin, settings: Settings) {
        let before = self.of.take();
        if before.as_ref().is_none_or(|(of, knobs)| *of != origin || knobs.settings.tau != settings.tau) {
            self.since = self.generation;
        }
        let now = Knobs { seed: origin.seed, settings };
        let before = before.map(|(_, knobs)| knobs).filter(|knobs| **knobs == now);
        let knobs = before.unwrap_or_else(|| Arc::new(now));
        self.knobs.insert(self.generation, knobs.clone());
        while self.knobs.len() > REMEMBERED {
            self.knobs.pop_first();
        }
        self.of = Some((origin, knobs));
    }

    /// Returns whether image `index` is there as it is at this τ: exact, with the latents that were asked
    /// for last.
    pub fn is_of(&self, index: usize, tau: f64) -> bool {
        self.asks_for(tau) && self.get(index).is_some_and(|slot| slot.generation >= self.since)
    }

    /// Returns whether the newest request is of this τ.
    pub fn asks_for(&self, tau: f64) -> bool {
        self.of.as_ref().is_some_and(|(_, newest)| newest.settings.tau.get() == tau)
    }

    /// Returns whether label and posterior of image `index` are of the knobs that were asked for last. Its picture may be
    /// of now all the same: T and label noise do not change it.
    pub fn has_figures_of_now(&self, index: usize) -> bool {
        let Some((_, now)) = &self.of else { return false };
        let knobs = self.get(index).and_then(|slot| slot.knobs.as_ref());
        knobs.is_some_and(|knobs| Arc::ptr_eq(knobs, now) || knobs == now)
    }

    /// Drops pictures with another look; the samples themselves show until new ones come.
    pub fn show_only(&mut self, look: Option<SamplerOptions>) {
        for slot in self.slots.iter_mut().flatten() {
            if slot.tile.look.as_ref().is_some_and(|looked| Some(looked.look) != look) {
                self.clock += 1;
                slot.tile.look = None;
                slot.stamp = self.clock;
            }
        }
    }

    /// New tiles; older than what is on show they are dropped.
    pub fn take(&mut self, update: GalleryUpdate) {
        if self.shape != Some(update.shape) {
            self.clear();
            self.shape = Some(update.shape);
        }
        // The engine answers in the order in which it was asked.
        self.knobs = self.knobs.split_off(&update.generation);
        let knobs = self.knobs.get(&update.generation);
        for tile in update.tiles {
            let Some(slot) = self.slots.get_mut(tile.index) else { continue };
            if slot.as_ref().is_some_and(|old| old.generation > update.generation) {
                continue;
            }
            let first_time = slot.as_ref().is_none_or(|old| old.generation < update.generation);
            self.fresh += usize::from(first_time && update.generation == self.generation);
            self.clock += 1;
            self.drafts.remove(&tile.index);
            let class_doubt = knobs.map(|knobs| knobs.settings.class_doubt(&tile.posterior));
            let (generation, stamp, knobs) = (update.generation, self.clock, knobs.cloned());
            *slot = Some(Slot { tile, generation, stamp, knobs, class_doubt });
        }
        if update.generation == self.generation {
            for &index in &update.failed {
                let Some(slot) = self.slots.get_mut(index) else { continue };
                // What was there is of other knobs, and nothing will take its place.
                *slot = None;
                self.drafts.remove(&index);
                self.failed.insert(index);
            }
            self.clock += 1;
            for Draft { index, pixels, blocks } in update.drafts {
                if index < self.slots.len() {
                    self.clock += 1;
                    self.drafts.insert(index, DraftSlot { pixels, blocks, stamp: self.clock });
                }
            }
        }
        // Without those that cannot be made the rest is no fair sample.
        if self.complete() {
            let all = self.failed.is_empty();
            self.estimates = all.then(|| estimate(self.iter().map(|(_, slot)| slot))).flatten();
        }
    }

    /// Nothing on show: another oracle was opened.
    pub fn clear(&mut self) {
        self.slots.iter_mut().for_each(|slot| *slot = None);
        self.drafts.clear();
        self.clock += 1;
        self.fresh = 0;
        self.estimates = None;
        self.shape = None;
    }

    /// Shape of the pictures, once there are any.
    pub fn shape(&self) -> Option<ImageShape> {
        self.shape
    }

    /// Image `index`, if it is there.
    pub fn get(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)?.as_ref()
    }

    /// Image `index` while it is being made.
    pub fn draft(&self, index: usize) -> Option<&DraftSlot> {
        self.drafts.get(&index)
    }

    /// Returns the stamp and picture of image `index`: draft, with a look, or as it is.
    pub fn picture(&self, index: usize) -> Option<(u64, &ImageSource)> {
        if let Some(draft) = self.draft(index) {
            return Some((draft.stamp, &draft.pixels));
        }
        let Slot { tile, stamp, .. } = self.get(index)?;
        Some((*stamp, tile.look.as_ref().map_or(&tile.pixels, |looked| &looked.pixels)))
    }

    /// What is there, by running number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((index, slot.as_ref()?)))
    }

    /// Grows whenever something changes.
    pub fn revision(&self) -> u64 {
        self.clock
    }

    /// Samples of the newest request that cannot be made.
    pub fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Returns whether image `index` of the newest request cannot be made.
    pub fn cannot_be_made(&self, index: usize) -> bool {
        self.failed.contains(&index)
    }

    /// The newest request.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Tiles of the newest request that are there.
    pub fn progress(&self) -> Progress {
        Progress { done: self.fresh, total: self.wanted }
    }

    /// Returns whether the newest request is answered in full.
    pub fn complete(&self) -> bool {
        self.wanted > 0 && self.fresh + self.failed.len() == self.wanted
    }

    /// Returns whether these images answer the newest request.
    pub fn answers(&self, images: &[usize]) -> bool {
        let fresh = |&index: &usize| self.get(index).is_some_and(|slot| slot.generation == self.generation);
        !images.is_empty() && images.iter().all(fresh)
    }

    /// Returns the figures of the last complete gallery: a part of one is no fair sample.
    pub fn estimates(&self) -> Option<Estimates> {
        self.estimates
    }
}

/// None where the knobs of a tile are not known.
fn estimate<'a>(slots: impl Iterator<Item = &'a Slot>) -> Option<Estimates> {
    let (mut entropies, mut doubts, mut unsure, mut classes) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for slot in slots {
        let posterior = &slot.tile.posterior;
        entropies.push(posterior.entropy_nats);
        doubts.push(posterior.doubt(posterior.decision));
        unsure.push(slot.class_doubt?);
        classes = posterior.probabilities.len();
    }
    let (n, seen) = (doubts.len(), above_least(unsure.into_iter()).count());
    let entropy = of_samples(&entropies, seen, (classes as f64).ln());
    (n > 0).then(|| Estimates { n, entropy, bayes_error: of_samples(&doubts, seen, 1.0) })
}

/// Which images are shown, in which order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arrangement {
    /// Running numbers in order.
    pub order: Vec<usize>,
    /// Images there are in all.
    pub total: usize,
    /// Shown images whose label is not the Bayes decision.
    pub mismatches: usize,
}

/// Filters and sorts; ties stay in the order of their numbers in both directions.
pub fn arrange(gallery: &Gallery, sort: Sort, descending: bool, class: Option<ClassId>) -> Arrangement {
    let total = gallery.iter().count();
    let shown = gallery.iter().filter(|(_, slot)| class.is_none_or(|class| slot.tile.label == class));
    let mut keyed: Vec<(f64, usize)> = Vec::with_capacity(total);
    let mut mismatches = 0;
    for (index, Slot { tile, .. }) in shown {
        mismatches += usize::from(tile.label != tile.posterior.decision);
        let key = match sort {
            Sort::Index => index as f64,
            Sort::Entropy => tile.posterior.entropy_nats,
            Sort::LogPx => tile.posterior.log_px,
            Sort::Margin => tile.posterior.margin,
            Sort::Class => tile.label as f64,
        };
        keyed.push((key, index));
    }
    // Drafts have no figures: they come last, unless sorted by number.
    let unmade = gallery.drafts.keys().copied().filter(|&index| class.is_none() && gallery.get(index).is_none());
    let mut unmade: Vec<usize> = unmade.collect();
    if sort == Sort::Index {
        keyed.extend(unmade.drain(..).map(|index| (index as f64, index)));
    }
    if descending {
        keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
    } else {
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    let order = keyed.into_iter().map(|(_, index)| index).chain(unmade).collect();
    Arrangement { order, total, mismatches }
}

#[cfg(test)]
mod tests;
