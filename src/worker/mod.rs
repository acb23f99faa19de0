//! The one named thread that owns the device. Faces hand it jobs and slider-driven requests; it
//! answers with events and pictures. A panic on the thread becomes an event, and a fresh worker
//! opens the same oracle again. Bayes errors need no device: two light threads of their own
//! ([`bayes`]) answer them meanwhile. A third looks at run folders ([`runs`]), a fourth reads
//! images from them and from judged datasets ([`cell_images`]), a fifth fetches corpora
//! ([`fetch`]). A sixth looks at the bundled worlds for the start page ([`glimpse`]).
//!
//! | file | what |
//! |---|---|
//! | `protocol`, `slot` | what faces and worker say to each other; a place for the newest value |
//! | `shared`, `channels` | what the handle and all threads hold; the worker's ends of all channels |
//! | `thread`, `device_thread` | the thread: its loop; what it owns |
//! | `queue` | the jobs that wait, and those under way one above the other |
//! | `jobs`, `interactive` | jobs, carried out; what follows the sliders, between jobs and within them |
//! | `bayes` | Bayes errors, on threads of their own |
//! | `runs`, `cell_images`, `judged_images`, `fetch` | run folders, images read from files, downloads |
//! | `loaded_images` | images from files on their way to the device thread |
//! | `set_numbers` | what tells sets of images from outside apart |
//! | `glimpse` | a few samples and the Bayes error of each bundled world |
//! | `side_jobs` | jobs that need no device, on threads of their own |
//! | `priority` | what computes gives way to the window |
//! | `remote_device` | another machine's device: its latency, and its connection once that is gone |
//! | `save`, `walk`, `what_if`, `sampling` | tasks that only the window has a use for: samples saved, walks to the boundary, grids and pinned images, Bayes errors that narrow |

pub mod bayes;
pub mod cell_images;
mod channels;
mod device_thread;
pub mod fetch;
pub mod glimpse;
mod interactive;
mod jobs;
pub mod judged_images;
mod loaded_images;
pub mod priority;
pub mod protocol;
mod queue;
mod remote_device;
pub mod runs;
pub mod sampling;
pub mod save;
mod set_numbers;
mod shared;
mod side_jobs;
mod slot;
mod thread;
pub mod walk;
pub mod what_if;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::device::DeviceChoice;
use bayes::RequestSlots;
use bayes::protocol::Question;
use cell_images::{CellImagesRequest, Wanted};
use channels::Channels;
use fetch::FetchRequest;
use judged_images::JudgedImagesRequest;
use protocol::{
    Event, EvidenceMap, EvidenceRequest, GalleryRequest, GalleryUpdate, InspectRequest, Inspection, Job, JobId,
    KeyPictures, KeyRequest, Outcome, RunningPosterior, SketchAnswer, SketchRequest,
};
use queue::{Queue, Submitted};
use runs::WatchRequest;
use shared::Shared;
pub use shared::Wake;

/// Jobs that may wait at once.
const QUEUE: usize = 64;
/// Bytes of the worker's stack: jobs are carried out above each other.
const STACK: usize = 16 << 20;
/// Events that may wait to be read before the worker waits for the reader.
const EVENTS: usize = 1024;

/// Handle of the worker; dropping it stops the thread at its next event.
pub struct Worker {
    shared: Arc<Shared>,
    jobs: Sender<(JobId, Submitted)>,
    images: Sender<(JobId, Wanted)>,
    fetches: Sender<(JobId, FetchRequest)>,
    events: Receiver<Event>,
    own_events: Sender<Event>,
    next_id: AtomicU64,
}

impl Worker {
    /// Starts the thread, which chooses a device and opens `oracle`, telling both by events. `wake`
    /// is called whenever something new can be polled.
    pub fn start(device: DeviceChoice, oracle: String, wake: Wake) -> Self {
        let (notifier, notified) = bounded(1);
        let (watch_notifier, watch_notified) = bounded(1);
        let (slots, notified_bayes) = RequestSlots::new();
        let (jobs, queue) = bounded(QUEUE);
        let (images, asked) = bounded(QUEUE);
        let (fetches, wanted) = bounded(QUEUE);
        let (sender, events) = bounded(EVENTS);
        let shared = Arc::new(Shared::new([notifier, watch_notifier], slots, wake));
        bayes::start(&shared, notified_bayes, &sender);
        runs::watcher::start(&shared, watch_notified, &sender);
        cell_images::start(&shared, asked, &sender);
        fetch::start(&shared, wanted, &sender);
        let channels =
            Channels { shared: shared.clone(), queue, jobs: Queue::default(), notified, events: sender.clone() };
        let builder = std::thread::Builder::new().name("worker".into()).stack_size(STACK);
        let spawned = builder.spawn(move || thread::work(&channels, device, oracle));
        if let Err(error) = spawned {
            let _ = sender.try_send(Event::Failed(format!("the system gave no thread to compute on: {error}")));
        }
        Self { shared, jobs, images, fetches, events, own_events: sender, next_id: AtomicU64::new(1) }
    }

    /// Queues a job, whatever oracle is open when its turn comes, and returns at once.
    pub fn submit(&self, job: Job) -> JobId {
        self.submit_within(job, None)
    }

    /// [`Self::submit`]; fails when its turn comes if the open oracle is of another world than this one
    /// (`OracleInfo::world_id`).
    pub fn submit_within(&self, job: Job, world: Option<String>) -> JobId {
        self.queue(&self.jobs, (job, world))
    }

    /// Asks for images of a cell, and returns at once: they come as images from outside do. Does
    /// not wait in the queue of jobs.
    pub fn open_cell_images(&self, request: CellImagesRequest) -> JobId {
        self.queue(&self.images, Wanted::Cell(request))
    }

    /// As [`Self::open_cell_images`], for the worst images of a judged model.
    pub fn open_judged_images(&self, request: JudgedImagesRequest) -> JobId {
        self.queue(&self.images, Wanted::Judged(Box::new(request)))
    }

    /// Fetches a corpus, outside the queue of jobs, and returns at once.
    pub fn fetch(&self, request: FetchRequest) -> JobId {
        self.queue(&self.fetches, request)
    }

    /// Looks at these bundled worlds, outside the queue of jobs, and returns at once; what is seen of
    /// each is an event.
    pub fn glimpse(&self, worlds: Vec<&'static str>) {
        glimpse::start(&self.shared, worlds, &self.own_events);
    }

    fn queue<T>(&self, queue: &Sender<(JobId, T)>, wanted: T) -> JobId {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.shared.control(id);
        if let Err(error) = queue.try_send((id, wanted)) {
            let why = match error {
                TrySendError::Full(_) => "too many jobs are waiting; let some finish first",
                TrySendError::Disconnected(_) => "the worker has stopped; start the program again",
            };
            let _ = self.own_events.try_send(Event::JobEnded { id, outcome: Outcome::Failed(why.into()) });
            (self.shared.wake)();
        }
        id
    }

    /// Opens the best epoch so far of the run in a folder, and returns at once. Does not wait in
    /// the queue: a training under way opens it between two steps and goes on undisturbed.
    pub fn use_checkpoint(&self, run: PathBuf) -> JobId {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.shared.control(id);
        if let Some((before, _)) = self.shared.checkpoint.swap((id, run)) {
            // One that was cancelled has been told so.
            let told = self.shared.known(before).is_none_or(|control| !control.take());
            self.shared.forget(before);
            if !told {
                let _ = self.own_events.try_send(Event::JobEnded { id: before, outcome: Outcome::Cancelled });
            }
        }
        self.shared.notify();
        id
    }

    /// Asks for a gallery; a request not begun is replaced, one under way stops at its next report.
    pub fn show(&self, request: GalleryRequest) {
        self.shared.gallery_request.put(request);
        self.shared.notify();
    }

    /// Asks for everything about one image; replaces a request not begun.
    pub fn inspect(&self, request: InspectRequest) {
        self.shared.inspect_request.put(request);
        self.shared.notify();
    }

    /// Asks for an evidence map; replaces a request not begun.
    pub fn explain(&self, request: EvidenceRequest) {
        self.shared.evidence_request.put(request);
        self.shared.notify();
    }

    /// Asks for the posterior of a drawing; replaces a request not begun.
    pub fn sketch(&self, request: SketchRequest) {
        self.shared.sketch_request.put(request);
        self.shared.notify();
    }

    /// Asks for key pictures; replaces a request not begun.
    pub fn draw_keys(&self, request: KeyRequest) {
        self.shared.key_request.put(request);
        self.shared.notify();
    }

    /// Asks about the Bayes error of the open oracle; answers are events. Waits neither for jobs
    /// nor for galleries.
    pub fn ask(&self, question: Question) {
        self.shared.bayes.ask(question);
    }

    /// Watches these run folders from now on, and no others; changes are events.
    pub fn watch(&self, request: WatchRequest) {
        self.shared.watch.put(request);
        let _ = self.shared.watch_notifier.try_send(());
    }

    /// Stops a job: at once while it waits, at its next event while it runs.
    pub fn cancel(&self, id: JobId) {
        let Some(control) = self.shared.known(id) else { return };
        control.cancelled.store(true, Ordering::Relaxed);
        if control.take() {
            // It need not wait for its turn to hear of it.
            match self.own_events.try_send(Event::JobEnded { id, outcome: Outcome::Cancelled }) {
                Ok(()) => (self.shared.wake)(),
                Err(_) => control.taken.store(false, Ordering::Release),
            }
        }
        self.shared.notify();
    }

    /// Holds a running job at its next event, or lets it go on.
    pub fn set_paused(&self, id: JobId, paused: bool) {
        self.shared.control(id).paused.store(paused, Ordering::Relaxed);
        self.shared.notify();
    }

    /// The next event, if one waits.
    pub fn poll(&self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// The gallery tiles that came since the last call.
    pub fn take_gallery(&self) -> Option<GalleryUpdate> {
        self.shared.gallery.take()
    }

    /// The newest inspection, once.
    pub fn take_inspection(&self) -> Option<Inspection> {
        self.shared.inspection.take()
    }

    /// What is known of the posterior of the image being inspected, once.
    pub fn take_running(&self) -> Option<RunningPosterior> {
        self.shared.running.take()
    }

    /// The newest evidence map, once.
    pub fn take_evidence(&self) -> Option<EvidenceMap> {
        self.shared.evidence.take()
    }

    /// The key pictures that came since the last call.
    pub fn take_keys(&self) -> Option<KeyPictures> {
        self.shared.keys.take()
    }

    /// The newest answer about a drawing, once.
    pub fn take_sketch(&self) -> Option<SketchAnswer> {
        self.shared.sketch.take()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.notify();
        self.shared.bayes.notify();
        let _ = self.shared.watch_notifier.try_send(());
    }
}
