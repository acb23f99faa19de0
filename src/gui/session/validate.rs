//! The validation that was asked for last.

use std::path::PathBuf;

use crate::figure::{Figure, Table};
use crate::validate::{Pairs, Validation, figures, tables};
use crate::worker::protocol::{JobId, Outcome};

/// A validation, as far as it has come.
#[derive(Debug)]
pub struct ValidateView {
    /// Its job.
    pub job: JobId,
    /// Its folder.
    pub folder: PathBuf,
    /// What was measured.
    pub found: Option<Box<Validation>>,
    /// The nearest pairs.
    pub pairs: Option<Pairs>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// What the job failed of.
    pub trouble: Option<String>,
}

impl ValidateView {
    /// A validation was submitted.
    pub fn begin(job: JobId, folder: PathBuf) -> Self {
        let (figures, tables) = Default::default();
        Self { job, folder, found: None, pairs: None, figures, tables, trouble: None }
    }

    /// It is there.
    pub fn take(&mut self, (found, pairs): (Validation, Option<Pairs>)) {
        (self.figures, self.tables) = (figures(&found), tables(&found));
        (self.found, self.pairs) = (Some(Box::new(found)), pairs);
    }

    /// Its job ended.
    pub fn ended(&mut self, outcome: &Outcome) {
        self.trouble = outcome.trouble();
    }
}
