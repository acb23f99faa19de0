//! Fetched corpora and images of a judgement: neither waits in the queue of jobs.

use super::Session;
use super::log::Level;
use crate::data::fetch::Fetched;
use crate::worker::fetch::FetchRequest;
use crate::worker::protocol::{JobId, Outcome};

/// Downloads of corpora and images of judged models: what was asked for, and how it goes.
#[derive(Debug, Default)]
pub struct Exchange {
    /// The corpus that was asked for last.
    pub fetch: Option<FetchView>,
    /// The job that reads images of a judged model, and what it failed of.
    pub images: Option<(JobId, Option<String>)>,
}

/// A corpus on its way.
#[derive(Debug)]
pub struct FetchView {
    pub job: JobId,
    pub request: FetchRequest,
    /// What mirrors answered that gave nothing: address and cause, the last of each.
    pub refused: Vec<(String, String)>,
    pub fetched: Option<Box<Fetched>>,
    pub outcome: Option<Outcome>,
}

impl FetchView {
    pub fn begin(job: JobId, request: FetchRequest) -> Self {
        Self { job, request, refused: Vec::new(), fetched: None, outcome: None }
    }

    /// A mirror gave nothing.
    pub fn refused(&mut self, mirror: String, cause: String) {
        self.refused.retain(|(other, _)| *other != mirror);
        self.refused.push((mirror, cause));
    }
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

    pub fn asks_corpus(&mut self, id: JobId, request: FetchRequest) {
        self.jobs.add(id, request.title());
        self.log.add(Level::Info, request.title());
        self.exchange.fetch = Some(FetchView::begin(id, request));
    }
}

impl Exchange {
    /// A mirror did not give a file.
    pub fn refused(&mut self, id: JobId, mirror: String, cause: String) {
        if let Some(view) = self.fetch.as_mut().filter(|view| view.job == id) {
            view.refused(mirror, cause);
        }
    }

    pub fn fetched(&mut self, id: JobId, fetched: Box<Fetched>) {
        if let Some(view) = self.fetch.as_mut().filter(|view| view.job == id) {
            view.fetched = Some(fetched);
        }
    }

    /// A job ended, perhaps one of these.
    pub fn ended(&mut self, id: JobId, outcome: &Outcome) {
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
