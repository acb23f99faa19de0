//! What is taken away and brought back: the dataset, the judgement and the corpus that were asked for last.

use super::Session;
use super::export::ExportView;
use super::fetch::FetchView;
use super::judge::JudgeView;
use super::log::Level;
use crate::data::fetch::Fetched;
use crate::export::Manifest;
use crate::judge::Report;
use crate::worker::fetch::FetchRequest;
use crate::worker::protocol::{Event, Job, JobId, Outcome};

/// All of it.
#[derive(Debug, Default)]
pub struct Exchange {
    /// The dataset that was asked for last.
    pub export: Option<ExportView>,
    /// The classifiers that were judged last.
    pub judge: Option<JudgeView>,
    /// The corpus that was asked for last.
    pub fetch: Option<FetchView>,
    /// The job that reads images of a judged model, and what it failed of.
    pub images: Option<(JobId, Option<String>)>,
}

impl Session {
    /// The worst images of a judged model were asked for.
    pub fn asks_judged_images(&mut self, id: JobId, title: String) {
        self.jobs.add(id, title.clone());
        self.log.add(Level::Info, title);
        // What comes next is not of a cell.
        self.runs.cell_images = None;
        self.exchange.images = Some((id, None));
    }

    /// A corpus was asked for.
    pub fn asks_corpus(&mut self, id: JobId, request: FetchRequest) {
        self.jobs.add(id, request.title());
        self.log.add(Level::Info, request.title());
        self.exchange.fetch = Some(FetchView::begin(id, request));
    }
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

    /// Takes in what belongs here.
    pub fn take(&mut self, event: Event) {
        match event {
            Event::Exported(id, manifest) => self.exported(id, manifest),
            Event::Judged(id, report) => self.judged(id, report),
            Event::MirrorFailed { id, mirror, cause } => self.refused(id, mirror, cause),
            Event::Fetched(id, fetched) => self.fetched(id, fetched),
            _ => {}
        }
    }

    /// A dataset is complete.
    fn exported(&mut self, id: JobId, manifest: Box<Manifest>) {
        if let Some(view) = self.export.as_mut().filter(|view| view.job == id) {
            view.manifest = Some(manifest);
        }
    }

    /// Classifiers were judged.
    fn judged(&mut self, id: JobId, report: Box<Report>) {
        if let Some(view) = self.judge.as_mut().filter(|view| view.job == id) {
            view.take(report);
        }
    }

    /// A mirror did not give a file.
    fn refused(&mut self, id: JobId, mirror: String, cause: String) {
        if let Some(view) = self.fetch.as_mut().filter(|view| view.job == id) {
            view.refused(mirror, cause);
        }
    }

    /// A corpus is there.
    fn fetched(&mut self, id: JobId, fetched: Box<Fetched>) {
        if let Some(view) = self.fetch.as_mut().filter(|view| view.job == id) {
            view.fetched = Some(fetched);
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
        if let (Some((_, trouble)), Outcome::Failed(why)) =
            (self.images.as_mut().filter(|(job, _)| *job == id), outcome)
        {
            *trouble = Some(why.clone());
        }
        if let Some(view) = self.fetch.as_mut().filter(|view| view.job == id) {
            view.outcome = Some(outcome.clone());
        }
    }
}
