//! What a job is: written first, and compared with what a later start asks for.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::{FolderKind, check_folder_kind, claim_ticket, fields, read_json, sha256, ticket_conflict};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::world::Settings;

/// Name of the description inside a job folder.
pub const JOB: &str = "job.json";
/// Version of the folder's layout.
const FORMAT: u32 = 1;
/// What may change between two starts of the same job: names, not contents.
const NAMES: [&str; 2] = ["oracle", "input.name"];

/// The content of `job.json`: everything the numbers depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Version of the folder's layout.
    pub format: u32,
    /// Name of the oracle.
    pub oracle: String,
    /// SHA-256 of its weights.
    pub weights_sha256: String,
    /// How pixels enter its world, in a word, where no record of a training says so of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed_pixels: Option<String>,
    /// Names of its K classes.
    pub classes: Vec<String>,
    /// τ, T and π.
    pub settings: Settings,
    /// Arithmetic of the passes.
    pub precision: Precision,
    /// The images.
    pub input: InputRecord,
    /// Images of one pass: shards begin and end between passes.
    pub images_per_pass: usize,
    /// Number of shards; each has a contiguous part of the passes.
    pub shards: usize,
}

/// Which images, and how they become world-space x.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRecord {
    /// File or folder.
    pub name: String,
    /// Number of images N.
    pub images: usize,
    /// `world-space` (float32 x) or `pixels` (8-bit, as padded).
    pub kind: String,
    /// SHA-256 of those numbers, NCHW, little-endian.
    pub sha256: String,
    /// How pixels were dequantised; absent for world-space x.
    pub dequantisation: Option<Dequantisation>,
    /// What was done to pictures of other sizes and kinds; absent where there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<String>,
}

impl Job {
    /// A job of the present format.
    pub fn new(mut job: Self) -> Self {
        job.format = FORMAT;
        job
    }

    /// The job in its folder: made with it where there is none.
    ///
    /// # Errors
    /// When the folder holds another job (says what differs) or something else, is the one that the
    /// images are read from, or the system refuses.
    pub fn settle(&self, folder: &Path) -> Result<()> {
        check_folder_kind(folder, Some(FolderKind::Posteriors))?;
        if !folder.join(JOB).exists() && self.is_read_from(folder) {
            return Err(Error::file(
                folder,
                "is the folder that the images are read from; choose another folder for --out",
            ));
        }
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let path = folder.join(JOB);
        claim_ticket(&path, self, |found| ticket_conflict(&path, "job", (found, self), &NAMES))
    }

    /// Whether the images lie in this very folder, by whatever name it is called.
    fn is_read_from(&self, folder: &Path) -> bool {
        let place = |path: &Path| path.canonicalize().ok();
        place(folder).is_some_and(|folder| place(Path::new(&self.input.name)) == Some(folder))
    }

    /// Reads the description of a job folder.
    ///
    /// # Errors
    /// Names the file and the cause.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(JOB);
        let job: Self = read_json(&path)?.ok_or_else(|| Error::file(&path, "is not there"))?;
        if job.format == FORMAT {
            return Ok(job);
        }
        Err(Error::file(path, format!("has format {}, this program reads {FORMAT}", job.format)))
    }

    /// Identifies the job: SHA-256 of everything but names.
    pub fn id(&self) -> String {
        sha256(format!("{:?}", fields(self, &NAMES)).as_bytes())
    }
}
