//! The classifiers that were judged last.

use crate::figure::{Figure, Table};
use crate::judge::{Report, figures, tables};
use crate::worker::protocol::{JobId, Outcome};

/// A judgement, as far as it has come.
#[derive(Debug)]
pub struct JudgeView {
    /// Its job.
    pub job: JobId,
    /// What came of it.
    pub report: Option<Box<Report>>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// What the job failed of.
    pub trouble: Option<String>,
}

impl JudgeView {
    /// A judgement was asked for.
    pub fn begin(job: JobId) -> Self {
        Self { job, report: None, figures: Vec::new(), tables: Vec::new(), trouble: None }
    }

    /// It is there.
    pub fn take(&mut self, report: Box<Report>) {
        (self.figures, self.tables) = (figures(&report), tables(&report));
        self.report = Some(report);
    }

    /// Its job ended.
    pub fn ended(&mut self, outcome: &Outcome) {
        self.trouble = outcome.trouble();
    }
}
