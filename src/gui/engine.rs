//! What the window asks of the worker. Nothing here waits: answers are polled.

use std::path::PathBuf;

use crate::worker::bayes::protocol::Question;
use crate::worker::cell_images::CellImagesRequest;
use crate::worker::fetch::FetchRequest;
use crate::worker::judged_images::JudgedImagesRequest;
use crate::worker::protocol::{
    Event, EvidenceMap, EvidenceRequest, GalleryRequest, GalleryUpdate, InspectRequest, Inspection, Job, JobId,
    KeyPictures, KeyRequest, RunningPosterior, SketchAnswer, SketchRequest,
};
use crate::worker::runs::WatchRequest;

/// The worker as the window sees it; tests put a fake in its place.
pub trait Engine {
    /// Queues a job. Where `world` says so, it is of that world alone (`OracleInfo::world_id`).
    fn submit(&self, job: Job, world: Option<String>) -> JobId;
    /// Asks for a gallery. The newest request wins.
    fn show(&self, request: GalleryRequest);
    /// Asks for everything about one image. The newest request wins.
    fn inspect(&self, request: InspectRequest);
    /// Asks for an evidence map. The newest request wins.
    fn explain(&self, request: EvidenceRequest);
    /// Asks for the posterior of a drawing. The newest request wins.
    fn sketch(&self, request: SketchRequest);
    /// Asks for key pictures, between which samples are drawn while τ moves. The newest request wins.
    fn draw_keys(&self, request: KeyRequest);
    /// Asks about the Bayes error of the open oracle. The newest question of a kind wins.
    fn ask(&self, question: Question);
    /// Opens the best epoch so far of the run in a folder, whatever else is under way.
    fn use_checkpoint(&self, run: PathBuf) -> JobId;
    /// Asks for images of a cell of a run at once; they arrive as images from outside.
    fn open_cell_images(&self, request: CellImagesRequest) -> JobId;
    /// Asks for the worst images of a judged model at once.
    fn open_judged_images(&self, request: JudgedImagesRequest) -> JobId;
    /// Fetches a corpus, whatever else is under way.
    fn fetch(&self, request: FetchRequest) -> JobId;
    /// Looks at these bundled worlds; what is seen of each comes as an event.
    fn glimpse(&self, worlds: Vec<&'static str>);
    /// Looks at these run folders from now on; what changes there comes as events.
    fn watch(&self, request: WatchRequest);
    /// Stops a job soon, or takes it from the queue.
    fn cancel(&self, id: JobId);
    /// Pauses or resumes a job.
    fn set_paused(&self, id: JobId, paused: bool);
    /// The next small fact, if there is one.
    fn poll(&self) -> Option<Event>;
    /// The gallery tiles that arrived since the last call.
    fn take_gallery(&self) -> Option<GalleryUpdate>;
    /// The newest inspection, if one arrived since the last call.
    fn take_inspection(&self) -> Option<Inspection>;
    /// News of the posterior of the image being inspected.
    fn take_running(&self) -> Option<RunningPosterior>;
    /// The newest evidence map, if one arrived since the last call.
    fn take_evidence(&self) -> Option<EvidenceMap>;
    /// The newest answer about a drawing, if one arrived since the last call.
    fn take_sketch(&self) -> Option<SketchAnswer>;
    /// The key pictures that arrived since the last call.
    fn take_keys(&self) -> Option<KeyPictures>;
}

impl Engine for crate::worker::Worker {
    fn submit(&self, job: Job, world: Option<String>) -> JobId {
        self.submit_within(job, world)
    }

    fn show(&self, request: GalleryRequest) {
        Self::show(self, request);
    }

    fn inspect(&self, request: InspectRequest) {
        Self::inspect(self, request);
    }

    fn explain(&self, request: EvidenceRequest) {
        Self::explain(self, request);
    }

    fn sketch(&self, request: SketchRequest) {
        Self::sketch(self, request);
    }

    fn draw_keys(&self, request: KeyRequest) {
        Self::draw_keys(self, request);
    }

    fn ask(&self, question: Question) {
        Self::ask(self, question);
    }

    fn use_checkpoint(&self, run: PathBuf) -> JobId {
        Self::use_checkpoint(self, run)
    }

    fn open_cell_images(&self, request: CellImagesRequest) -> JobId {
        Self::open_cell_images(self, request)
    }

    fn open_judged_images(&self, request: JudgedImagesRequest) -> JobId {
        Self::open_judged_images(self, request)
    }

    fn fetch(&self, request: FetchRequest) -> JobId {
        Self::fetch(self, request)
    }

    fn glimpse(&self, worlds: Vec<&'static str>) {
        Self::glimpse(self, worlds);
    }

    fn watch(&self, request: WatchRequest) {
        Self::watch(self, request);
    }

    fn cancel(&self, id: JobId) {
        Self::cancel(self, id);
    }

    fn set_paused(&self, id: JobId, paused: bool) {
        Self::set_paused(self, id, paused);
    }

    fn poll(&self) -> Option<Event> {
        Self::poll(self)
    }

    fn take_gallery(&self) -> Option<GalleryUpdate> {
        Self::take_gallery(self)
    }

    fn take_inspection(&self) -> Option<Inspection> {
        Self::take_inspection(self)
    }

    fn take_running(&self) -> Option<RunningPosterior> {
        Self::take_running(self)
    }

    fn take_evidence(&self) -> Option<EvidenceMap> {
        Self::take_evidence(self)
    }

    fn take_sketch(&self) -> Option<SketchAnswer> {
        Self::take_sketch(self)
    }

    fn take_keys(&self) -> Option<KeyPictures> {
        Self::take_keys(self)
    }
}
