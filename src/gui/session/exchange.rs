//! What is taken away and brought back, and what is compared with it: the dataset, the judgement, the validation and the corpus that were
//! asked for last.

use super::Session;
use super::export::ExportView;
use super::fetch::FetchView;
use super::judge::JudgeView;
use super::ledger::of_figure;
use super::log::Level;
use super::validate::ValidateView;
use crate::data::fetch::Fetched;
use crate::export::Manifest;
use crate::figure::{Figure, Table};
use crate::judge::Report;
use crate::validate::{Pairs, Validation};
use crate::verify;
use crate::worker::fetch::FetchRequest;
use crate::worker::protocol::{Event, Job, JobId, Outcome};

/// All of it.
#[derive(Debug, Default)]
pub struct Exchange {
    /// The dataset that was asked for last.
    pub export: Option<ExportView>,
    /// The classifiers that were judged last.
    pub judge: Option<JudgeView>,
    /// The validation that was asked for last.
    pub validate: Option<ValidateView>,
    /// The job that compared precision last, and how it ended.
    pub comparing: Option<(JobId, Option<Outcome>)>,
    /// What came of it.
    pub compared: Option<(Table, Figure)>,
    /// The job that verified the device last, and how it ended.
    pub verifying: Option<(JobId, Option<Outcome>)>,
    /// What came of it.
    pub verified: Option<Box<verify::Report>>,
    /// The job that compared pictures last, and how it ended.
    pub measuring_depth: Option<(JobId, Option<Outcome>)>,
    /// What came of it.
    pub depth: Option<(Table, Figure)>,
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

    /// Takes in what is taken away, brought back or compared.
    pub(super) fn exchanged(&mut self, event: Event) {
        match event {
            Event::Judged(id, report) => self.judged(id, report),
            Event::Validated(id, found) => self.validated(id, *found),
            other => self.exchange.take(other),
        }
    }

    /// The oracle was compared with real images.
    fn validated(&mut self, id: JobId, found: (Validation, Option<Pairs>)) {
        self.exchange.validated(id, found);
        let view = self.exchange.validate.as_ref().filter(|view| view.job == id);
        if let Some((figure, view)) = view.and_then(|view| Some((view.figures.first()?, view))) {
            self.ledger.add(of_figure("validation", Some(&view.folder), &figure.provenance));
        }
    }

    /// Classifiers were judged.
    fn judged(&mut self, id: JobId, report: Box<Report>) {
        self.exchange.judged(id, report);
        let figures = self.exchange.judge.as_ref().filter(|view| view.job == id).map(|view| &view.figures);
        if let Some(figure) = figures.and_then(|figures| figures.first()) {
            self.ledger.add(of_figure("judgement of classifiers", None, &figure.provenance));
        }
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
            Job::Judge(_) => {
                self.judge = Some(JudgeView::begin(id));
                // What was said of them was of the report before.
                self.images = None;
            }
            Job::Validate { folder, .. } => self.validate = Some(ValidateView::begin(id, folder.clone())),
            Job::ComparePrecision { .. } => self.comparing = Some((id, None)),
            Job::Verify => (self.verifying, self.verified) = (Some((id, None)), None),
            Job::MeasureDepth { .. } => self.measuring_depth = Some((id, None)),
            _ => {}
        }
    }

    /// The oracle was compared with real images.
    pub fn validated(&mut self, id: JobId, found: (Validation, Option<Pairs>)) {
        if let Some(view) = self.validate.as_mut().filter(|view| view.job == id) {
            view.take(found);
        }
    }

    /// Takes in what belongs here alone.
    fn take(&mut self, event: Event) {
        match event {
            Event::Exported(id, manifest) => self.exported(id, manifest),
            Event::Compared(found) => self.compared = Some((found.table(), found.figure())),
            Event::Verified(report) => self.verified = Some(report),
            Event::Depth(found) => self.depth = Some(*found),
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
    pub fn judged(&mut self, id: JobId, report: Box<Report>) {
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

    /// Another oracle: what was compared was compared with that before.
    pub fn forget_world(&mut self) {
        (self.compared, self.depth) = (None, None);
        for job in [&mut self.comparing, &mut self.measuring_depth] {
            job.take_if(|(_, outcome)| outcome.is_some());
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
        if let (Some((_, trouble)), Outcome::Failed(why)) =
            (self.images.as_mut().filter(|(job, _)| *job == id), outcome)
        {
            *trouble = Some(why.clone());
        }
        for job in [&mut self.comparing, &mut self.measuring_depth, &mut self.verifying] {
            if let Some((_, ended)) = job.as_mut().filter(|(job, _)| *job == id) {
                *ended = Some(outcome.clone());
            }
        }
        if let Some(view) = self.fetch.as_mut().filter(|view| view.job == id) {
            view.outcome = Some(outcome.clone());
        }
    }
}
