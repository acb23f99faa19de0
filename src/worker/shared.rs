//! What the handle of the worker and all its threads hold together.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::Sender;

use super::bayes::RequestSlots;
use super::loaded_images::LoadedImages;
use super::protocol::{
    EvidenceMap, EvidenceRequest, GalleryRequest, GalleryUpdate, InspectRequest, Inspection, JobId, KeyPictures,
    KeyRequest, RunningPosterior, SketchAnswer, SketchRequest,
};
use super::runs::WatchRequest;
use super::set_numbers::SetNumbers;
use super::slot::Slot;

/// Called when something new can be polled.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Stop and pause of one job.
#[derive(Debug, Default)]
pub struct Control {
    pub cancelled: AtomicBool,
    pub paused: AtomicBool,
    pub taken: AtomicBool,
    /// It stopped at its last report, to begin again later.
    pub gave_way: AtomicBool,
}

impl Control {
    /// Claims the job atomically. Returns true for the first caller: the thread that runs it, or
    /// the handle that cancels it while it waits.
    pub fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }
}

/// What both sides hold.
pub struct Shared {
    pub gallery_request: Slot<GalleryRequest>,
    pub inspect_request: Slot<InspectRequest>,
    pub evidence_request: Slot<EvidenceRequest>,
    pub sketch_request: Slot<SketchRequest>,
    pub key_request: Slot<KeyRequest>,
    pub gallery: Slot<GalleryUpdate>,
    pub inspection: Slot<Inspection>,
    pub evidence: Slot<EvidenceMap>,
    pub sketch: Slot<SketchAnswer>,
    pub running: Slot<RunningPosterior>,
    pub keys: Slot<KeyPictures>,
    /// A job that does not wait in the queue: the run whose best epoch is wanted.
    pub checkpoint: Slot<(JobId, PathBuf)>,
    /// Images that another thread has read, for the window.
    pub loaded: Slot<LoadedImages>,
    /// Here, so that no number is given twice though the worker's thread falls and begins anew.
    pub sets: SetNumbers,
    /// The job that opened the images from outside that were shown last; 0 before any were.
    opener: AtomicU64,
    pub controls: Mutex<HashMap<JobId, Arc<Control>>>,
    pub bayes: RequestSlots,
    pub watch: Slot<WatchRequest>,
    pub watch_notifier: Sender<()>,
    pub stopping: AtomicBool,
    pub notifier: Sender<()>,
    pub wake: Wake,
}

impl Shared {
    pub fn new([notifier, watch_notifier]: [Sender<()>; 2], bayes: RequestSlots, wake: Wake) -> Self {
        Self {
            gallery_request: Slot::default(),
            inspect_request: Slot::default(),
            evidence_request: Slot::default(),
            sketch_request: Slot::default(),
            key_request: Slot::default(),
            gallery: Slot::default(),
            inspection: Slot::default(),
            evidence: Slot::default(),
            sketch: Slot::default(),
            running: Slot::default(),
            keys: Slot::default(),
            checkpoint: Slot::default(),
            loaded: Slot::default(),
            sets: SetNumbers::default(),
            opener: AtomicU64::new(0),
            controls: Mutex::default(),
            bayes,
            watch: Slot::default(),
            watch_notifier,
            stopping: AtomicBool::new(false),
            notifier,
            wake,
        }
    }

    /// The images from outside that are shown now were opened by this job.
    pub fn show_images_of(&self, opener: JobId) {
        self.opener.store(opener, Ordering::Relaxed);
    }

    /// The job that opened the images from outside that were shown last.
    pub fn opener(&self) -> Option<JobId> {
        Some(self.opener.load(Ordering::Relaxed)).filter(|&job| job > 0)
    }

    /// Wakes the worker.
    pub fn notify(&self) {
        // A full channel wakes it already.
        let _ = self.notifier.try_send(());
    }

    pub fn control(&self, id: JobId) -> Arc<Control> {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls.entry(id).or_default().clone()
    }

    /// Whether the best epoch of a run is to be opened now.
    pub fn checkpoint_waits(&self) -> bool {
        self.checkpoint.has(|(id, _)| !self.is_held(*id))
    }

    /// Whether the user holds a job that has not ended. One that is cancelled need only be told.
    pub fn is_held(&self, id: JobId) -> bool {
        let held = |control: Arc<Control>| {
            control.paused.load(Ordering::Relaxed) && !control.cancelled.load(Ordering::Relaxed)
        };
        self.known(id).is_some_and(held)
    }

    /// The control of a job that has not ended.
    pub fn known(&self, id: JobId) -> Option<Arc<Control>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub fn forget(&self, id: JobId) {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
