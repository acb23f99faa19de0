//! Requests that follow sliders and the pen: the gallery, the inspector and its evidence map, a drawing. They are served between
//! jobs and from within them, a piece at a time; the newest request wins. A slow piece stops at its
//! next report when something newer waits, and starts again afterwards.

mod cache;
mod drawing;
mod external;
mod gallery;
mod inspect;
mod key_queue;
mod keys;
mod pace;
mod reference;
mod referring;
mod sketch;

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::channels::Channels;
use super::protocol::{Asked, Event, EvidenceMap, EvidenceRequest, Looked, SketchRequest, Subject, Tile};
use super::remote_device::is_lost;
use super::shared::Shared;
use super::slot::Slot;
use crate::device::{DeviceChoice, explain};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::flow::Decoding;
use crate::flow::sampling::SamplerOptions;
use crate::oracle::world::{Sample, SampleSpec, Settings, World};
use cache::{Resident, SampleCache};
use drawing::GroundImage;
pub use external::Brought;
use external::ExternalSet;
use gallery::{Gallery, LARGEST_PIECE};
use inspect::Inspecting;
use key_queue::KeyQueue;
use referring::Referring;

/// A piece of work that cannot be stopped should take about this long, so that a newer request
/// never waits longer.
const PIECE: Duration = Duration::from_millis(40);
/// A piece that can be stopped may take this long: larger pieces cost less an image.
const STOPPABLE_PIECE: Duration = Duration::from_millis(1500);
/// Images in the first piece, before its speed is known.
pub const FIRST_PIECE: usize = 8;

/// Requests under way and images from outside. Served through shared references, from within a
/// job's events too. [`Interactive::enter`] comes before any request is served.
#[derive(Default)]
pub struct Interactive {
    gallery: RefCell<Option<Gallery>>,
    inspecting: RefCell<Option<Inspecting>>,
    explaining: RefCell<Option<EvidenceRequest>>,
    sketching: RefCell<Option<SketchRequest>>,
    keys: KeyQueue,
    /// What is drawn on.
    ground: RefCell<Option<GroundImage>>,
    external: RefCell<Option<ExternalSet>>,
    referring: RefCell<Option<Referring>>,
    cache: RefCell<SampleCache>,
    /// The world that is open (`OracleInfo::world_id`).
    world: RefCell<String>,
    /// Where it computes.
    device: Cell<DeviceChoice>,
    /// What draws are kept under there.
    label: RefCell<String>,
    piece: Cell<usize>,
    /// Images in a piece at most.
    largest: Cell<usize>,
    /// What one sample cost lately.
    cost: Cell<Duration>,
    /// The quickest piece so far, of whatever size.
    floor: Cell<Duration>,
    served: Cell<bool>,
    /// The loss of the device: nothing more is computed on it, and requests wait for the next.
    loss: RefCell<Option<Error>>,
}

/// Where a piece of work is done.
struct PieceContext<'a> {
    channels: &'a Channels,
    world: &'a World,
    /// Whether something more important waits: a job in the queue, the end of the present one.
    urgent: &'a dyn Fn() -> bool,
}

impl PieceContext<'_> {
    /// Whether work should stop at once, for something that is not a request.
    fn called_away(&self) -> bool {
        self.channels.stopping() || (self.urgent)()
    }
}

impl Shared {
    /// Whether a request waits that is newer than everything under way.
    pub(super) fn asked(&self) -> bool {
        let looks = self.inspect_request.is_full() || self.evidence_request.is_full();
        self.gallery_request.is_full() || looks || self.sketch_request.is_full() || self.key_request.is_full()
    }
}

/// Continue, unless `stop`.
fn unless(stop: bool) -> ControlFlow<()> {
    if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

impl Interactive {
    /// Forgets what belonged to another world or device. That world
    /// (`OracleInfo::world_id`) is open now, on a device of this label.
    pub fn enter(&self, world: &str, device: DeviceChoice, label: &str) {
        // What did not fit into the memory of a lost device does not fit into the next of its kind.
        if self.device.get() != device || *self.world.borrow() != world {
            self.largest.set(LARGEST_PIECE);
        }
        self.device.set(device);
        // What is drawn on is kept as it was chosen: its values are those of the world on every device.
        if *self.world.borrow() != world {
            *self.ground.borrow_mut() = None;
        }
        *self.world.borrow_mut() = world.to_owned();
        *self.label.borrow_mut() = label.to_owned();
        *self.gallery.borrow_mut() = None;
        *self.inspecting.borrow_mut() = None;
        *self.explaining.borrow_mut() = None;
        *self.sketching.borrow_mut() = None;
        self.keys.forget();
        *self.external.borrow_mut() = None;
        *self.referring.borrow_mut() = None;
        *self.cache.borrow_mut() = SampleCache::default();
        self.piece.set(FIRST_PIECE.min(self.largest.get()));
        self.cost.set(Duration::ZERO);
        self.floor.set(Duration::MAX);
        self.served.set(false);
    }

    /// The device is gone.
    pub fn lose(&self, loss: Error) {
        *self.loss.borrow_mut() = Some(loss);
    }

    /// Returns whether the device was lost.
    pub fn lost(&self) -> bool {
        self.loss.borrow().is_some()
    }

    /// Takes the loss of the device.
    pub fn take_loss(&self) -> Option<Error> {
        self.loss.take()
    }

    /// Queues requests under way again, unless a newer one waits.
    pub fn requeue(&self, shared: &Shared) {
        self.loss.take();
        if let Some(gallery) = self.gallery.take() {
            shared.gallery_request.offer(gallery.request);
        }
        if let Some(inspecting) = self.inspecting.take() {
            shared.inspect_request.offer(inspecting.request);
        }
        if let Some(request) = self.explaining.take() {
            shared.evidence_request.offer(request);
        }
        if let Some(request) = self.sketching.take() {
            shared.sketch_request.offer(request);
        }
        self.keys.requeue(shared);
    }

    /// Whether a gallery of this world has come to its end.
    pub fn served(&self) -> bool {
        self.served.get()
    }

    /// World-space images of a few samples on show, NCHW, at most `n`.
    pub fn some_images(&self, n: usize) -> Vec<f32> {
        self.cache.borrow().some(n).iter().flat_map(|sample| sample.x.iter().copied()).collect()
    }

    /// Does one piece of the requests. Returns whether more waits. `urgent` stops the piece.
    pub fn serve(&self, channels: &Channels, world: Option<&World>, urgent: &dyn Fn() -> bool) -> bool {
        if self.lost() {
            return false;
        }
        self.take_loaded(channels, world);
        let Some(world) = world else { return false };
        let cx = PieceContext { channels, world, urgent };
        // What was asked for in a world of other classes, the window asks again in this one.
        let fits = |settings: &Settings| world.check(settings).is_ok();
        if let Some(request) = channels.shared.sketch_request.take().filter(|one| fits(&one.settings)) {
            self.refer_to(&request.settings);
            *self.sketching.borrow_mut() = Some(request);
        }
        if let Some(request) = channels.shared.inspect_request.take().filter(|one| fits(&one.settings)) {
            self.refer_to(&request.settings);
            *self.inspecting.borrow_mut() = Some(Inspecting::new(request));
        }
        let classes = world.class_names().len();
        let known = |one: &EvidenceRequest| one.a.max(one.b) < classes && fits(&one.settings);
        if let Some(request) = channels.shared.evidence_request.take().filter(known) {
            *self.explaining.borrow_mut() = Some(request);
        }
        if self.keys.take_in(&channels.shared, &self.world.borrow()) {
            // A gallery of the τ before; the next is asked for when τ rests.
            *self.gallery.borrow_mut() = None;
        }
        if let Some(request) = channels.shared.gallery_request.take().filter(|one| fits(&one.settings)) {
            self.keys.rest();
            let halted = request.halted;
            let mut gallery = Gallery::new(request);
            if halted {
                gallery.leave_unmade(&self.cache.borrow());
            }
            *self.gallery.borrow_mut() = Some(gallery);
        }
        self.settle(channels, (Asked::Sketch, &self.sketching), self.sketch(&cx));
        self.settle(channels, (Asked::Inspection, &self.inspecting), self.inspect_piece(&cx));
        self.settle(channels, (Asked::Evidence, &self.explaining), self.explain(&cx));
        self.keys_piece(&cx);
        self.settle(channels, (Asked::Gallery, &self.gallery), self.gallery_piece(&cx));
        let looks = self.inspecting.borrow().is_some() || self.explaining.borrow().is_some();
        let pictures = self.gallery.borrow().is_some() || self.keys.origin().is_some();
        let busy = pictures || looks || self.sketching.borrow().is_some();
        busy || channels.shared.asked()
    }

    /// Answers the question for an evidence map.
    fn explain(&self, cx: &PieceContext<'_>) -> Result<()> {
        let Some(request) = self.explaining.borrow().clone() else { return Ok(()) };
        let (channels, world) = (cx.channels, cx.world);
        let mut painted = None;
        let x = match &request.subject {
            Subject::Sample { spec, index } => {
                let sample = self.sample(cx, spec, &request.settings, *index)?;
                self.remember(spec, &request.settings, &sample);
                let cache = self.cache.borrow();
                painted = cache.resident(spec, &request.settings, *index).map(|resident| resident.picture.clone());
                sample.x.clone()
            }
            Subject::External(image) => self.external_image(*image, world.shape().dims())?,
        };
        let (evidence, cells) = world.evidence_painted(&x, (request.a, request.b), request.settings.tau)?;
        let pixels = painted.unwrap_or_else(|| world.flow().pixels().picture(&x).into());
        put(
            channels,
            &channels.shared.evidence,
            EvidenceMap { request, shape: world.shape(), pixels, evidence, cells },
        );
        *self.explaining.borrow_mut() = None;
        Ok(())
    }

    /// One sample: kept, or made now.
    fn sample(
        &self,
        cx: &PieceContext<'_>,
        spec: &SampleSpec,
        settings: &Settings,
        index: usize,
    ) -> Result<Arc<Sample>> {
        if let Some(sample) = self.known(cx.world, spec, settings, index)? {
            return Ok(sample);
        }
        let shared = &cx.channels.shared;
        let mut watch = |_: Decoding| unless(cx.called_away() || shared.inspect_request.is_full());
        let samples = cx.world.sample_watched(spec, settings, &[index], &mut watch)?;
        samples.into_iter().next().map(Arc::new).ok_or_else(|| Error::input("no such sample"))
    }

    /// One sample, if it is kept: one image is read back where it stayed on the device.
    fn known(
        &self,
        world: &World,
        spec: &SampleSpec,
        settings: &Settings,
        index: usize,
    ) -> Result<Option<Arc<Sample>>> {
        if let Some(sample) = self.cache.borrow().get(spec, settings, index) {
            return Ok(Some(sample));
        }
        let Some(Resident { batch, row, .. }) = self.cache.borrow().resident(spec, settings, index).cloned() else {
            return Ok(None);
        };
        let sample = Arc::new(world.fetch(&batch, row)?);
        self.remember(spec, settings, &sample);
        Ok(Some(sample))
    }

    /// Pictures of samples with a look; those that are kept cost nothing.
    fn looks(
        &self,
        cx: &PieceContext<'_>,
        samples: &[Arc<Sample>],
        (spec, settings, look): (&SampleSpec, &Settings, &SamplerOptions),
        watch: &mut dyn Events<Decoding>,
    ) -> Result<()> {
        let missing = |sample: &&Arc<Sample>| self.cache.borrow().picture(look, sample.index).is_none();
        let missing: Vec<&Sample> = samples.iter().filter(missing).map(|sample| &**sample).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let pictures = cx.world.pictures_with(&missing, spec, settings, look, watch)?;
        let mut cache = self.cache.borrow_mut();
        missing.iter().zip(pictures).for_each(|(sample, picture)| cache.keep_picture(look, sample.index, picture));
        Ok(())
    }

    /// The tile of a sample, with the look if it was made.
    fn tile(&self, world: &World, sample: &Sample, look: Option<&SamplerOptions>) -> Tile {
        let cache = self.cache.borrow();
        let picture = look.and_then(|look| Some((*look, cache.picture(look, sample.index)?.clone())));
        Tile { look: picture.map(|(look, pixels)| Looked { look, pixels: pixels.into() }), ..tile(world, sample) }
    }

    /// Requests that were stopped or lost their device stay; failed ones are reported and dropped.
    fn settle<T>(&self, channels: &Channels, (asked, slot): (Asked, &RefCell<Option<T>>), done: Result<()>) {
        match done {
            Ok(()) | Err(Error::Cancelled) => {}
            Err(loss @ Error::DeviceLost { .. }) => self.lose(loss),
            Err(error) => {
                let (on, error) = (self.device.get(), explain(error, Some(self.device.get())));
                if is_lost(on) {
                    return self.lose(error);
                }
                *slot.borrow_mut() = None;
                channels.send(Event::Unanswered { asked, why: error.to_string() });
            }
        }
    }

    fn remember(&self, spec: &SampleSpec, settings: &Settings, sample: &Arc<Sample>) {
        self.cache.borrow_mut().keep(spec, settings, sample);
    }
}

/// Puts an answer where the window finds it.
fn put<T>(channels: &Channels, slot: &Slot<T>, answer: T) {
    slot.put(answer);
    (channels.shared.wake)();
}

/// The error where images from outside are no longer there: others took their place, or another oracle or device
/// was opened.
pub fn gone() -> Error {
    Error::input("that image is no longer open")
}

fn tile(world: &World, sample: &Sample) -> Tile {
    Tile {
        index: sample.index,
        source: sample.source,
        label: sample.label,
        pixels: world.flow().pixels().picture(&sample.x).into(),
        posterior: Arc::new(sample.posterior.clone()),
        look: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::channels::tests::alone;

    #[test]
    fn what_did_not_fit_is_remembered_where_the_world_is_opened_again() {
        let interactive = Interactive::default();
        let card = DeviceChoice::Wgpu(Some(0));
        interactive.enter("weights", card, "card");
        interactive.largest.set(4);
        interactive.enter("weights", card, "card");
        assert_eq!((interactive.largest.get(), interactive.piece.get()), (4, 4));
        interactive.enter("weights", DeviceChoice::Cpu, "cpu");
        assert_eq!((interactive.largest.get(), interactive.piece.get()), (LARGEST_PIECE, FIRST_PIECE));
    }

    #[test]
    fn what_is_stopped_stays_and_what_fails_goes() {
        let (channels, told) = alone();
        let (slot, interactive) = (RefCell::new(Some(1)), Interactive::default());
        interactive.settle(&channels, (Asked::Gallery, &slot), Err(Error::Cancelled));
        assert!(!interactive.lost());
        let loss = Error::DeviceLost { device: "a card".into(), why: "it went away".into() };
        interactive.settle(&channels, (Asked::Gallery, &slot), Err(loss));
        assert!(interactive.lost() && interactive.take_loss().is_some());
        assert_eq!(*slot.borrow(), Some(1));
        assert!(told.is_empty());
        interactive.settle(&channels, (Asked::Gallery, &slot), Err(Error::input("no")));
        assert_eq!(*slot.borrow(), None);
        assert!(matches!(told.try_recv(), Ok(Event::Unanswered { asked: Asked::Gallery, .. })));
    }
}
