//! What is taken away and brought back: the dataset and the judgement that were asked for last.

use super::export::ExportView;
use super::judge::JudgeView;
use crate::export::Manifest;
use crate::judge::Report;
use crate::worker::protocol::{Job, JobId, Outcome};

/// Both.
#[derive(Debug, Default)]
pub struct Exchange {
    /// The dataset that was asked for last.
    pub export: Option<ExportView>,
    /// The classifiers that were judged last.
    pub judge: Option<JudgeView>,
}

impl Exchange {
    /// A job was submitted, perhaps one of these.
    pub fn submitted(&mut self, id: JobId, job: &Job) {
        match job {
            Job::Export { folder, .. } => self.export = Some(ExportView::begin(id, folder.clone())),
            Job::Judge(_) => self.judge = Some(JudgeView::begin(id)),
            _ => {}
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
    }
}
