//! What is taken away and brought back, and what is compared with it: the dataset, the judgement and the validation that were asked for
//! last.

use super::export::ExportView;
use super::judge::JudgeView;
use super::validate::ValidateView;
use crate::export::Manifest;
use crate::figure::{Figure, Table};
use crate::judge::Report;
use crate::validate::{Pairs, Validation};
use crate::worker::protocol::{Job, JobId, Outcome};

/// All three.
#[derive(Debug, Default)]
pub struct Exchange {
    /// The dataset that was asked for last.
    pub export: Option<ExportView>,
    /// The classifiers that were judged last.
    pub judge: Option<JudgeView>,
    /// The validation that was asked for last.
    pub validate: Option<ValidateView>,
    /// The job that compares precision.
    pub comparing: Option<JobId>,
    /// What came of it.
    pub compared: Option<(Table, Figure)>,
}

impl Exchange {
    /// A job was submitted, perhaps one of these.
    pub fn submitted(&mut self, id: JobId, job: &Job) {
        match job {
            Job::Export { folder, .. } => self.export = Some(ExportView::begin(id, folder.clone())),
            Job::Judge(_) => self.judge = Some(JudgeView::begin(id)),
            Job::Validate { folder, .. } => self.validate = Some(ValidateView::begin(id, folder.clone())),
            Job::ComparePrecision { .. } => self.comparing = Some(id),
            _ => {}
        }
    }

    /// The oracle was compared with real images.
    pub fn validated(&mut self, id: JobId, found: (Validation, Option<Pairs>)) {
        if let Some(view) = self.validate.as_mut().filter(|view| view.job == id) {
            view.take(found);
        }
    }

    /// A dataset is complete.
    pub fn exported(&mut self, id: JobId, manifest: Box<Manifest>) {
        if let Some(view) = self.export.as_mut().filter(|view| view.job == id) {
            view.manifest = Some(manifest);
        }
    }

    /// Classifiers were judged.
    pub fn judged(&mut self, id: JobId, report: Box<Report>) {
        if let Some(view) = self.judge.as_mut().filter(|view| view.job == id) {
            view.take(report);
        }
    }

    /// A job ended, perhaps one of these.
    pub fn ended(&mut self, id: JobId, outcome: &Outcome) {
        if let Some(view) = self.export.as_mut().filter(|view| view.job == id) {
            view.ended(outcome);
        }
        if let Some(view) = self.judge.as_mut().filter(|view| view.job == id) {
            view.ended(outcome);
        }
        if let Some(view) = self.validate.as_mut().filter(|view| view.job == id) {
            view.ended(outcome);
        }
    }
}
