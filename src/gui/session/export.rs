//! The dataset that was asked for last.

use std::path::PathBuf;

use crate::export::Manifest;
use crate::worker::protocol::{JobId, Outcome};

/// An export, as far as it has come.
#[derive(Debug)]
pub struct ExportView {
    /// Its job.
    pub job: JobId,
    /// Its folder.
    pub folder: PathBuf,
    /// What was made.
    pub manifest: Option<Box<Manifest>>,
    /// What the job failed of.
    pub trouble: Option<String>,
}

impl ExportView {
    /// An export was submitted.
    pub fn begin(job: JobId, folder: PathBuf) -> Self {
        Self { job, folder, manifest: None, trouble: None }
    }

    /// Its job ended.
    pub fn ended(&mut self, outcome: &Outcome) {
        self.trouble = outcome.trouble();
    }
}
