//! Jobs, as the faces ask for them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::walk::Walked;
use super::sketch::Sketch;
use crate::data::{Fit, is_image_name};
use crate::device::DeviceChoice;
use crate::oracle::pictures::Fits;
use crate::oracle::world::Settings;
use crate::task::{AnyTask, Task};

/// Identifies a job while the program runs.
pub type JobId = u64;

/// A picture from the clipboard, as the bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pasted(pub Arc<[u8]>);

impl Pasted {
    /// What it is called.
    pub const NAME: &str = "pasted picture";

    /// Of the pixels of a clipboard, red, green, blue and alpha, row by row: as a portable arbitrary
    /// map, which takes no time to write.
    pub fn of_rgba([width, height]: [usize; 2], rgba: impl Iterator<Item = [u8; 4]>) -> Self {
        let head = format!("P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n");
        Self(head.into_bytes().into_iter().chain(rgba.flatten()).collect())
    }
}

/// So many pictures at most are few.
const FEW_FILES: usize = 16;
/// Bytes of an archive of a few dozen images.
const SMALL: u64 = 256 << 10;

/// Work that takes long enough to be watched.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// Open an oracle: a bundled name, an oracle folder or a public checkpoint.
    OpenOracle(String),
    /// Compute on another device (the open oracle moves along).
    UseDevice(DeviceChoice),
    /// Read images from files or a folder, map them into the world and compute their posteriors.
    Classify {
        /// Image files, a folder, an IDX, CIFAR or npz file.
        paths: Vec<PathBuf>,
        /// How pictures get the world's shape.
        fits: Fits,
        /// The world's knobs.
        settings: Settings,
        /// The job that opened these images, where they are read again: not shown once others were opened.
        again: Option<JobId>,
    },
    /// Map a picture from the clipboard into the world and compute its posterior.
    ClassifyPasted {
        /// The picture.
        picture: Pasted,
        /// How it gets the world's shape.
        fit: Fit,
        /// The world's knobs.
        settings: Settings,
        /// As of [`Job::Classify`].
        again: Option<JobId>,
    },
    /// A task of any type.
    Task(AnyTask),
    /// The images of a walk take the place of those from outside.
    SendWalk {
        /// The walk.
        walked: Arc<Walked>,
        /// The world's knobs.
        settings: Settings,
    },
    /// A drawing takes the place of the images from outside.
    SendSketch {
        /// The drawing.
        sketch: Arc<Sketch>,
        /// The world's knobs.
        settings: Settings,
    },
    /// Posteriors of the images from outside once more; nothing is read again.
    RateAgain {
        /// The world's knobs.
        settings: Settings,
    },
}

impl Job {
    /// A task as a job.
    pub fn task(task: impl Task) -> Self {
        Self::Task(task.into())
    }

    /// Whether it takes a few seconds at most, so that it is carried out above a long job.
    pub fn is_short(&self) -> bool {
        match self {
            Self::Classify { paths, .. } => paths.len() <= FEW_FILES && paths.iter().all(|path| is_read_soon(path)),
            Self::Task(task) => task.is_short(),
            // One picture.
            Self::ClassifyPasted { .. } | Self::SendSketch { .. } => true,
            Self::OpenOracle(_) | Self::UseDevice(_) | Self::SendWalk { .. } | Self::RateAgain { .. } => true,
        }
    }

    /// Whether it is meant for the oracle that is open when it is submitted.
    pub fn needs_open_oracle(&self) -> bool {
        match self {
            Self::OpenOracle(_) | Self::UseDevice(_) => false,
            Self::Task(task) => !task.lets_oracles_open(),
            Self::Classify { .. } | Self::ClassifyPasted { .. } => true,
            Self::SendWalk { .. } | Self::SendSketch { .. } | Self::RateAgain { .. } => true,
        }
    }

    /// Whether what it is given, its knobs above all, is of the oracle that is open when it is submitted, and it does not
    /// say itself of which.
    pub fn is_of_the_oracle_shown(&self) -> bool {
        self.needs_open_oracle() && !matches!(self, Self::Task(task) if task.names_its_oracle())
    }

    /// Whether another oracle may be opened while it is under way.
    pub fn lets_oracles_open(&self) -> bool {
        matches!(self, Self::Task(task) if !task.is_of_open_oracle())
    }

    /// The job that opened the images from outside that this one reads again, if it does.
    pub fn reads_again(&self) -> Option<JobId> {
        match self {
            Self::Classify { again, .. } | Self::ClassifyPasted { again, .. } => *again,
            _ => None,
        }
    }

    /// A short name for the list of jobs.
    pub fn title(&self) -> String {
        match self {
            Self::OpenOracle(name) => format!("Open {name}"),
            Self::UseDevice(choice) => format!("Switch to device {choice}"),
            Self::Classify { paths, .. } => match paths.as_slice() {
                [path] => format!("Posterior of {}", path.display()),
                paths => format!("Posterior of {} files", paths.len()),
            },
            Self::ClassifyPasted { .. } => format!("Posterior of the {}", Pasted::NAME),
            Self::Task(task) => task.title(),
            Self::SendWalk { .. } => "Send the walk to the gallery".into(),
            Self::SendSketch { .. } => "Send the drawing to the gallery".into(),
            Self::RateAgain { .. } => "Posteriors of the images from outside".into(),
        }
    }
}

/// Whether a file is one picture, a small archive, or not there at all.
fn is_read_soon(path: &Path) -> bool {
    is_image_name(path) || std::fs::metadata(path).map_or(true, |file| file.is_file() && file.len() <= SMALL)
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Done; a sentence about the result.
    Done(String),
    /// Stopped by the user.
    Cancelled,
    /// Failed; the message names file and cause.
    Failed(String),
}

impl Outcome {
    /// Why it failed, if it did.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(why.clone()),
            Self::Done(_) | Self::Cancelled => None,
        }
    }
}
