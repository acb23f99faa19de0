//! What is known of the engine: a fold of its events. No egui in here.

mod answers;
pub mod bayes;
pub mod exchange;
pub mod far;
pub mod gallery;
pub mod jobs;
pub mod keys;
pub mod ledger;
pub mod log;
mod newest;
mod outside;
pub mod references;
pub mod runs;
pub mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::kept_path;
use crate::bayes::sampling::Survey;
use crate::device::{DeviceReport, MatmulPrecision};
use crate::oracle::folder::OracleInfo;
use crate::oracle::precision::PrecisionReport;
use crate::oracle::world::Settings;
use crate::run::{JudgeModels, RunExperiment};
use crate::worker::bayes::protocol::Answer;
use crate::worker::protocol::{
    Asked, Event, EvidenceMap, Glimpse, Inspection, Job, JobId, Outcome, RunningPosterior, SketchAnswer,
};
use crate::worker::sampling::SurveyWorld;

use bayes::BayesFigures;
use exchange::Exchange;
use far::Connection;
use gallery::Gallery;
use jobs::Jobs;
use keys::Keys;
use ledger::Ledger;
use log::{Level, Log, Notice};
pub use outside::{External, OutsideInput};
use references::References;
use runs::Runs;
use tasks::Tasks;

/// What is known of the engine.
#[derive(Debug, Default)]
pub struct Session {
    /// What computes.
    pub device: Option<DeviceReport>,
    /// The connection to another machine's device.
    pub far: Connection,
    pub oracle: Option<Arc<OracleInfo>>,
    /// Formats of matrix products in which it can draw on this device; 32 bits first.
    pub formats: Vec<MatmulPrecision>,
    /// How the open oracle was asked for, where that is known: for commands.
    pub oracle_name: String,
    /// Samples of the world.
    pub gallery: Gallery,
    /// Pictures of them at a few temperatures.
    pub keys: Keys,
    pub external: Option<External>,
    /// Paths of the last images from outside: for commands.
    pub external_paths: Vec<PathBuf>,
    /// What else they were read from, and how.
    pub outside: OutsideInput,
    /// The same of images that are on their way, by their job.
    coming: BTreeMap<JobId, (Vec<PathBuf>, OutsideInput)>,
    /// Jobs that follow a knob: they bring the same images again.
    pub(super) refreshing: BTreeSet<JobId>,
    /// What 32-bit arithmetic costs on this device, once it is measured.
    pub precision: Option<PrecisionReport>,
    /// What the device compiles before the first picture, if it does.
    pub preparing: Option<String>,
    /// Why no oracle is open, if opening one failed.
    pub stuck: Option<String>,
    pub jobs: Jobs,
    /// The run folders of the panel Experiments.
    pub runs: Runs,
    /// Tasks, by their type.
    pub tasks: Tasks,
    /// What is fetched, and what is shown of a judgement.
    pub exchange: Exchange,
    /// What bundled worlds look like, by name, or why that is not known.
    pub glimpses: BTreeMap<&'static str, Result<Arc<Glimpse>, String>>,
    /// What is known of the Bayes error.
    pub bayes: BayesFigures,
    pub inspection: Option<Inspection>,
    pub evidence: Option<EvidenceMap>,
    /// What is known of the drawing.
    pub sketch: Option<SketchAnswer>,
    /// Samples that images are held against.
    pub references: References,
    /// What is known of the posterior of the image being inspected.
    running: Option<RunningPosterior>,
    /// Why the newest of them could not be answered.
    pub unanswered: BTreeMap<Asked, String>,
    /// What was given away, and how far it can be trusted.
    pub ledger: Ledger,
    pub log: Log,
    /// The newest running number of the requests.
    pub asked: u64,
    /// Answers to requests before this one are of another world.
    least: u64,
    notices: Vec<Notice>,
    clock: u64,
    /// The newest job that opens an oracle, and whether the preferences follow it.
    opening: Option<(JobId, bool)>,
    switching: Option<JobId>,
}

/// What an event means for the requests in flight.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    None,
    /// The gallery must be asked for again.
    AskAgain,
    /// Images from outside have come.
    Outside {
        /// Whether they have the names of those before, and stand in their places.
        same: bool,
        /// Whether somebody opened them, and not a knob that moved.
        opened: bool,
        /// Their own knobs, where they were drawn at some.
        knobs: Option<Settings>,
    },
    /// The base temperature τ of a target Bayes error was found.
    SetTau(f64),
    /// The best epoch of a run is open: what is set follows.
    OracleAdopted,
    /// The oracle that was asked for could not be opened: the one before is still open.
    OracleRefused,
    /// The device that was asked for cannot be used: the one before still computes.
    DeviceRefused,
}

impl Session {
    /// The engine was started with this oracle.
    pub fn opening(oracle: &str) -> Self {
        Self { oracle_name: oracle.into(), ..Self::default() }
    }

    /// How an oracle is called: the open one by the name in its description.
    pub fn called(&self, oracle: &str) -> String {
        match &self.oracle {
            Some(info) if self.oracle_name == oracle => info.name.clone(),
            _ => kept_path::short(oracle),
        }
    }

    pub fn class_names(&self) -> &[String] {
        self.oracle.as_ref().map_or(&[], |oracle| &oracle.class_names)
    }

    pub fn class_name(&self, class: usize) -> &str {
        self.class_names().get(class).map_or("?", String::as_str)
    }

    pub fn is_opening(&self) -> bool {
        self.opening.is_some()
    }

    /// Returns whether the newest gallery is there in full.
    pub fn gallery_complete(&self) -> bool {
        self.gallery.complete()
    }

    /// Tiles on show, of whatever age.
    pub fn gallery_count(&self) -> usize {
        self.gallery.iter().count()
    }

    /// A job was submitted.
    pub fn submitted(&mut self, id: JobId, job: &Job) {
        self.jobs.add(id, job.title());
        match job {
            Job::OpenOracle(_) => self.opening = Some((id, false)),
            Job::UseDevice(choice) => {
                self.switching = Some(id);
                self.far.asks(id, *choice);
            }
            Job::Task(task) => {
                // What was said of its images was of the judgement before.
                self.exchange.images.take_if(|_| task.get::<JudgeModels>().is_some());
                if let Some(run) = task.get::<RunExperiment>() {
                    self.runs.begin(id, &run.folder);
                }
                self.tasks.begin(id, task.clone());
            }
            _ => self.asks_outside(id, job),
        }
        self.log.add(Level::Info, job.title());
    }

    /// The best epoch of a run was asked for.
    pub fn adopts(&mut self, id: JobId, run: &Path) {
        let title = format!("Use the best epoch of {}", run.display());
        self.jobs.add(id, title.clone());
        self.opening = Some((id, true));
        self.log.add(Level::Info, title);
    }

    /// Takes one event in.
    pub fn take(&mut self, event: Event, now: Instant) -> Effect {
        match event {
            Event::Device(report) => {
                self.log.add(Level::Info, format!("Computing on {} ({})", report.used.name, report.reason));
                self.device = Some(report);
                // Another device may be fast enough for them.
                self.keys = Keys::default();
                self.far.settled();
                return Effect::AskAgain;
            }
            Event::Formats(formats) => self.formats = formats,
            Event::Oracle { name, info } => {
                self.open(name, info);
                return Effect::AskAgain;
            }
            Event::Preparing(what) => self.preparing = what,
            Event::Remote(news) => {
                if let Some(line) = self.far.take(news, now) {
                    self.log.add(Level::Warning, line);
                }
            }
            Event::JobStarted { id } => self.jobs.started(id),
            Event::JobWaits { id, behind } => self.jobs.waits(id, behind),
            Event::JobLeft { id, left } => self.jobs.left(id, left, now),
            Event::JobProgress { id, progress, note } => self.jobs.progressed(id, progress, note, now),
            Event::JobEnded { id, outcome } => return self.ended(id, outcome, now),
            Event::Made(made) => self.ledger.add(*made),
            Event::Task { id, news } => {
                if let Some(event) = news.event::<RunExperiment>() {
                    self.runs.take(id, event);
                }
                if let Some(survey) = news.event::<SurveyWorld>() {
                    self.take_survey(id, survey);
                }
                self.tasks.take(id, news);
            }
            Event::MirrorFailed { id, mirror, cause } => self.exchange.refused(id, mirror, cause),
            Event::Fetched(id, fetched) => self.exchange.fetched(id, fetched),
            Event::Looked(look) => self.runs.looked(*look),
            Event::Bayes(answer) => return self.take_bayes(*answer),
            Event::Glimpsed { world, outcome } => drop(self.glimpses.insert(world, outcome)),
            event @ Event::External { .. } => return self.take_outside(event),
            Event::Precision(report) => self.precision = Some(report),
            Event::Reference(news) => self.references.take(*news),
            Event::Note(note) => self.log.add(Level::Info, note),
            Event::Failed(message) => {
                if self.oracle.is_none() {
                    self.stuck = Some(message.clone());
                }
                self.notify(Level::Error, message);
            }
            Event::Unanswered { asked, why } => self.take_unanswered(asked, why),
            Event::Restarted { reason } => {
                self.notify(Level::Error, format!("The engine failed and was started again: {reason}"));
                return Effect::AskAgain;
            }
        }
        Effect::None
    }

    /// A survey that was stopped for a newer one has nothing more to say.
    fn take_survey(&mut self, id: JobId, survey: &Survey) {
        if self.tasks.get::<SurveyWorld>().is_some_and(|view| view.job == id) {
            self.bayes.take_survey(survey);
        }
    }

    fn take_bayes(&mut self, answer: Answer) -> Effect {
        if let Answer::Lost { reason } = &answer {
            self.notify(Level::Error, reason.clone());
        }
        self.bayes.take(answer).map_or(Effect::None, Effect::SetTau)
    }

    fn open(&mut self, name: String, info: Arc<OracleInfo>) {
        self.log.add(Level::Info, format!("Oracle {}: {} classes", info.name, info.class_names.len()));
        let same = self.oracle.as_ref().is_some_and(|old| old.world_id() == info.world_id());
        if let Some(sentences) = info.inferred.as_ref().filter(|sentences| !same && !sentences.is_empty()) {
            self.notify(Level::Info, format!("{}, inferred from the file:\n{}", info.name, sentences.join("\n")));
        }
        if !same {
            self.least = self.asked + 1;
            self.gallery.clear();
            self.inspection = None;
            self.evidence = None;
            self.sketch = None;
            self.running = None;
            self.references = References::default();
            self.leave_outside();
            self.tasks.forget_world();
            self.bayes.forget_world();
        }
        // The engine keeps images from outside only as long as the oracle stays where it is.
        if let Some(external) = &mut self.external {
            external.settings = None;
        }
        self.precision = None;
        self.stuck = None;
        self.oracle_name = name;
        self.oracle = Some(info);
    }

    fn ended(&mut self, id: JobId, outcome: Outcome, now: Instant) -> Effect {
        let title = self.jobs.get(id).map(|job| job.title.clone()).unwrap_or_default();
        let opening = self.opening.take_if(|(opening, _)| *opening == id);
        let switching = self.switching.take_if(|switching| *switching == id).is_some();
        let done = matches!(outcome, Outcome::Done(_));
        self.runs.ended(id, &outcome);
        self.lack_outside(id);
        self.refreshing.remove(&id);
        self.far.ended(id, &outcome);
        match &outcome {
            Outcome::Done(text) => self.log.add(Level::Info, format!("{title}: {text}")),
            Outcome::Cancelled => self.log.add(Level::Info, format!("{title}: cancelled")),
            Outcome::Failed(text) => self.notice(Level::Error, text.clone(), Some(id)),
        }
        self.tasks.ended(id, &outcome);
        self.exchange.ended(id, &outcome);
        self.jobs.ended(id, outcome, now);
        match (done, opening, switching) {
            (true, Some((_, true)), _) => Effect::OracleAdopted,
            (false, Some(_), _) => Effect::OracleRefused,
            (false, _, true) => Effect::DeviceRefused,
            _ => Effect::None,
        }
    }

    /// Logs something and shows it to the user.
    pub fn notify(&mut self, level: Level, text: impl Into<String>) {
        self.notice(level, text.into(), None);
    }

    fn notice(&mut self, level: Level, text: String, failed: Option<JobId>) {
        self.log.add(level, text.clone());
        self.notices.push(Notice { level, text, failed });
    }

    /// What the user should notice, once.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}

#[cfg(test)]
mod tests;
