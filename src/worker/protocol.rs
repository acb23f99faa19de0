//! What the faces and the worker say to each other.
//!
//! Two lanes lead out of the worker: small typed facts ([`Event`]) through a bounded channel, and
//! pictures ([`GalleryUpdate`], [`Inspection`], [`EvidenceMap`], [`SketchAnswer`]) through newest-wins
//! slots.
//! Requests that follow sliders and the pen ([`GalleryRequest`], [`InspectRequest`],
//! [`EvidenceRequest`], [`SketchRequest`], [`KeyRequest`]) wait in slots of their own: only the newest
//! runs.

mod job;
mod keys;
mod reference;
mod sketch;
mod subject;

use std::sync::Arc;
use std::time::Duration;

use super::bayes::protocol::Answer;
use super::runs::Look as RunLook;
use crate::bayes::Estimate;
use crate::data::ImageShape;
use crate::data::fetch::Fetched;
use crate::device::{DeviceChoice, DeviceReport, ImageSource, Latency, MatmulPrecision};
use crate::events::Progress;
use crate::experiment::WorstImage;
use crate::flow::Evidence;
use crate::flow::sampling::SamplerOptions;
use crate::oracle::folder::OracleInfo;
use crate::oracle::pictures::Picture;
use crate::oracle::posterior::Posterior;
use crate::oracle::precision::PrecisionReport;
use crate::oracle::running::Running;
use crate::oracle::world::{SampleSpec, Settings};
use crate::provenance::Made;
use crate::task::News;
use crate::units::{ClassId, Tau};

pub use job::{Job, JobId, Outcome, Pasted};
pub use keys::{KeyOrigin, KeyPictures, KeyRequest};
pub use reference::ReferenceNews;
pub use sketch::{Ground, Sketch, SketchAnswer, SketchRequest};
pub use subject::Subject;

/// Which gallery the user looks at. A newer one replaces an older one; the worker stops the older
/// between two batches.
#[derive(Debug, Clone, PartialEq)]
pub struct GalleryRequest {
    /// Running number of requests; updates carry it.
    pub generation: u64,
    /// Which samples.
    pub spec: SampleSpec,
    /// The world's knobs.
    pub settings: Settings,
    /// Running numbers of the samples in view now, computed first; the others follow.
    pub first: Vec<usize>,
    /// How the pictures are made, where they need not be samples of the world.
    pub look: Option<SamplerOptions>,
    /// Nothing is to be made: only cached samples are wanted.
    pub halted: bool,
}

/// One image of the gallery.
#[derive(Debug, Clone)]
pub struct Tile {
    /// Running number under its seed.
    pub index: usize,
    /// The class y₀ it was drawn from.
    pub source: ClassId,
    /// Its label y.
    pub label: ClassId,
    /// 8-bit picture for the eye (clipped and quantised: not the world-space image).
    pub pixels: ImageSource,
    /// Exact posterior of the world-space image; of a sample, before x is rounded to 32 bits. Never
    /// that of `look`.
    pub posterior: Arc<Posterior>,
    /// The picture of the same latent with a look: it has left the world, and has no posterior.
    pub look: Option<Looked>,
}

/// A picture with a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Looked {
    /// How it was made.
    pub look: SamplerOptions,
    /// The picture.
    pub pixels: ImageSource,
}

/// An image that is still being made.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Running number under its seed.
    pub index: usize,
    /// What it looks like after so many blocks: not yet an image of the world.
    pub pixels: ImageSource,
    /// Blocks inverted, of how many.
    pub blocks: Progress,
}

/// New tiles of the gallery; updates of one generation add up until they are taken.
#[derive(Debug, Clone)]
pub struct GalleryUpdate {
    /// The request they answer.
    pub generation: u64,
    /// Shape of the pictures.
    pub shape: ImageShape,
    /// The tiles, in any order.
    pub tiles: Vec<Tile>,
    /// Images still being made, as they look now.
    pub drafts: Vec<Draft>,
    /// Running numbers of samples that cannot be made.
    pub failed: Vec<usize>,
    /// Tiles of this generation delivered so far, these included, of how many.
    pub progress: Progress,
}

/// Asks for everything about one image.
#[derive(Debug, Clone, PartialEq)]
pub struct InspectRequest {
    /// Running number of requests; the answer carries it.
    pub generation: u64,
    /// The image.
    pub subject: Subject,
    /// The world's knobs.
    pub settings: Settings,
    /// Temperatures at which the same latent is shown (samples only).
    pub taus: Vec<Tau>,
    /// How the picture is made (samples only), where it need not be a sample of the world.
    pub look: Option<SamplerOptions>,
}

/// Everything about one image.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The request this answers.
    pub generation: u64,
    /// The image.
    pub subject: Subject,
    /// The world's knobs that its figures are of.
    pub settings: Settings,
    /// Shape of the pictures.
    pub shape: ImageShape,
    /// Itself.
    pub tile: Tile,
    /// How far its posterior moves when computed again from x as rounded to 32 bits (samples only).
    pub rounding: Option<f64>,
    /// The same latent at other temperatures, as far as they are made (samples only).
    pub morph: Vec<(Tau, Tile)>,
    /// Temperatures still to be made.
    pub missing: usize,
}

/// What is answered outside the queue of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// [`GalleryRequest`].
    Gallery,
    /// [`InspectRequest`].
    Inspection,
    /// [`EvidenceRequest`].
    Evidence,
    /// [`SketchRequest`].
    Sketch,
}

/// What is known of the posterior of an image whose classes are still being evaluated.
#[derive(Debug, Clone)]
pub struct RunningPosterior {
    /// The inspection it precedes.
    pub generation: u64,
    /// The image.
    pub subject: Subject,
    /// Shape of the picture.
    pub shape: ImageShape,
    /// The picture, CHW bytes.
    pub pixels: Vec<u8>,
    /// Upper values, and what they would be if the open classes were as likely as the best.
    pub running: Running,
}

/// Asks where in an image the evidence for one class against another lies.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceRequest {
    /// Running number of requests; the answer carries it.
    pub generation: u64,
    /// The image.
    pub subject: Subject,
    /// The world's knobs.
    pub settings: Settings,
    /// The class it speaks for.
    pub a: ClassId,
    /// The class it speaks against.
    pub b: ClassId,
}

/// log p(x|a) − log p(x|b) over the image.
#[derive(Debug, Clone)]
pub struct EvidenceMap {
    /// The request this answers.
    pub request: EvidenceRequest,
    /// Shape of the picture.
    pub shape: ImageShape,
    /// The picture, CHW bytes or levels.
    pub pixels: ImageSource,
    /// Its cells and their total.
    pub evidence: Evidence,
    /// The cells once more where the window paints them, if they were computed there: nats.
    pub cells: Option<ImageSource>,
}

/// News about the connection to another machine's device.
#[derive(Debug, Clone, PartialEq)]
pub enum RemoteNews {
    /// How long small round trips take.
    Latency(Latency),
    /// It is gone, and will be tried again.
    Trying {
        /// The device.
        address: DeviceChoice,
        /// Why it is gone, or why the last try failed.
        reason: String,
        /// Which try comes next, from 1.
        attempt: usize,
        /// Of how many.
        of: usize,
        /// How long until then.
        wait: Duration,
    },
}

/// A world at a glance.
#[derive(Debug, Clone)]
pub struct Glimpse {
    /// Shape of the picture.
    pub shape: ImageShape,
    /// The first samples at τ = 1 on one sheet, 8-bit levels, CHW.
    pub picture: Vec<u8>,
    /// Bayes error at τ = 1, T = 1 and uniform π; `None` where the map depends on the class, so that
    /// it must be sampled.
    pub bayes_error: Option<Estimate>,
}

/// A small fact.
#[derive(Debug, Clone)]
pub enum Event {
    /// The device that computes from now on, and why.
    Device(DeviceReport),
    /// About the connection to another machine's device.
    Remote(RemoteNews),
    /// Formats of matrix products in which the oracle of the next event can draw on the device in
    /// use; 32 bits first.
    Formats(Vec<MatmulPrecision>),
    /// Another oracle is open, or the same one on another device.
    Oracle {
        /// As it was asked for: a bundled world's name, a folder or a file.
        name: String,
        /// What it is.
        info: Arc<OracleInfo>,
    },
    /// The kernels of the open oracle are being prepared on a device that compiles them at their
    /// first use; none any more.
    Preparing(Option<String>),
    /// How far the 32-bit arithmetic of the device in use is from 64 bits, measured on samples of
    /// the open oracle.
    Precision(PrecisionReport),
    /// A job left the queue.
    JobStarted {
        /// Which.
        id: JobId,
    },
    /// A job that waits, whether or not it has begun, waits for another.
    JobWaits {
        /// Which.
        id: JobId,
        /// For which; for none any more.
        behind: Option<JobId>,
    },
    /// Progress of a job.
    JobProgress {
        /// Which.
        id: JobId,
        /// How far.
        progress: Progress,
        /// A word about the present step.
        note: String,
    },
    /// How long a job will take, in place of what its progress says.
    JobLeft {
        /// Which.
        id: JobId,
        /// How long; `None` where that cannot be known yet.
        left: Option<Duration>,
    },
    /// A job ended.
    JobEnded {
        /// Which.
        id: JobId,
        /// How.
        outcome: Outcome,
    },
    /// A file, a figure or a number was made: a line for the exactness ledger.
    Made(Box<Made>),
    /// News of a task.
    Task {
        /// The job.
        id: JobId,
        /// What.
        news: News,
    },
    /// A mirror did not give a file of a corpus; the next one is asked, if there is one.
    MirrorFailed {
        /// The job.
        id: JobId,
        /// Address of the file there.
        mirror: String,
        /// Why.
        cause: String,
    },
    /// A corpus is there.
    Fetched(JobId, Box<Fetched>),
    /// Something has changed in a run folder that is watched.
    Looked(Box<RunLook>),
    /// About the Bayes error of the open oracle.
    Bayes(Box<Answer>),
    /// What a bundled world looks like, or why that is not known.
    Glimpsed {
        /// Its name.
        world: &'static str,
        /// What was seen.
        outcome: std::result::Result<Arc<Glimpse>, String>,
    },
    /// Images from outside and their posteriors replace those of before.
    External {
        /// The job that brought them.
        job: JobId,
        /// Which set they are, as [`Subject`] names it. The same images at other knobs are the same set.
        set: u64,
        /// Where they came from.
        name: String,
        /// Shape of the pictures.
        shape: ImageShape,
        /// A name for each.
        ids: Vec<String>,
        /// The images; `label` is the dataset's label where it has one, otherwise the decision.
        tiles: Vec<Tile>,
        /// Whether `label` is a label.
        labelled: bool,
        /// The knobs their posteriors are of.
        settings: Settings,
        /// Whether the images were drawn at these knobs: the window takes them over.
        own_knobs: bool,
        /// What a classifier says of each; empty where none was asked.
        verdicts: Vec<WorstImage>,
        /// How each picture got the world's shape; empty where they are no single pictures.
        pictures: Vec<Picture>,
    },
    /// The newest gallery, inspection or evidence map cannot be had.
    Unanswered {
        /// Which.
        asked: Asked,
        /// Why.
        why: String,
    },
    /// Something that was not asked for went wrong.
    Failed(String),
    /// Samples that images are held against have been drawn.
    Reference(Box<ReferenceNews>),
    /// A sentence for the log.
    Note(String),
    /// The worker panicked; a new one took over, with the oracle opened again.
    Restarted {
        /// What the panic said.
        reason: String,
    },
}
