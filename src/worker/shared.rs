//! What the handle of the worker and all its threads hold together.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::Sender;

use super::bayes::Board;
use super::external_images::LoadedImages;
use super::protocol::{
    EvidenceMap, EvidenceRequest, GalleryRequest, GalleryUpdate, InspectRequest, Inspection, JobId, RunningPosterior,
};
use super::runs::WatchRequest;
use super::slot::Slot;

/// Called when something new can be polled.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Stop and pause of one job.
#[derive(Debug, Default)]
pub struct Control {
    pub cancelled: AtomicBool,
    pub paused: AtomicBool,
    pub taken: AtomicBool,
}

impl Control {
    /// Whether the caller is the first to lay hands on the job: the thread that carries it out, or who takes it back while it waits.
    pub fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::AcqRel)
    }
}

/// What both sides hold.
pub struct Shared {
    pub gallery_request: Slot<GalleryRequest>,
    pub inspect_request: Slot<InspectRequest>,
    pub evidence_request: Slot<EvidenceRequest>,
    pub gallery: Slot<GalleryUpdate>,
    pub inspection: Slot<Inspection>,
    pub evidence: Slot<EvidenceMap>,
    pub running: Slot<RunningPosterior>,
    /// A job that does not wait in the queue: the run whose best epoch is wanted.
    pub aside: Slot<(JobId, PathBuf)>,
    /// Images that another thread has read, for the window.
    pub handed: Slot<LoadedImages>,
    pub controls: Mutex<HashMap<JobId, Arc<Control>>>,
    pub bayes: Board,
    pub watch: Slot<WatchRequest>,
    pub watch_bell: Sender<()>,
    pub stopping: AtomicBool,
    pub bell: Sender<()>,
    pub wake: Wake,
}

impl Shared {
    pub fn new([bell, watch_bell]: [Sender<()>; 2], bayes: Board, wake: Wake) -> Self {
        Self {
            gallery_request: Slot::default(),
            inspect_request: Slot::default(),
            evidence_request: Slot::default(),
            gallery: Slot::default(),
            inspection: Slot::default(),
            evidence: Slot::default(),
            running: Slot::default(),
            aside: Slot::default(),
            handed: Slot::default(),
            controls: Mutex::default(),
            bayes,
            watch: Slot::default(),
            watch_bell,
            stopping: AtomicBool::new(false),
            bell,
            wake,
        }
    }

    /// Wakes the worker.
    pub fn ring(&self) {
        // A full bell is already ringing.
        let _ = self.bell.try_send(());
    }

    pub fn control(&self, id: JobId) -> Arc<Control> {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls.entry(id).or_default().clone()
    }

    /// That of a job that has not ended.
    pub fn known(&self, id: JobId) -> Option<Arc<Control>> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub fn forget(&self, id: JobId) {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
