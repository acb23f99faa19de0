//! Task: corpora are ranked.

use std::ops::ControlFlow;
use std::path::PathBuf;

use super::{HardnessEvent, HardnessFolder, rank};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::experiment::HardnessSpec;
use crate::experiment::hardness::Ranking;
use crate::figure::Illustrated;
use crate::oracle::evaluate::Evaluation;
use crate::oracle::train::TrainEvent;
use crate::run::Share;
use crate::task::{Done, Task, TaskContext};

/// Parts of a corpus in the task's progress: how many steps it takes is known only once it is read.
const PARTS: usize = 1000;

/// Plans a ranking of corpora, or finds its plan, and trains what is not finished.
#[derive(Debug, Clone, PartialEq)]
pub struct RankCorpora {
    /// Of what; where absent, the folder says.
    pub spec: Option<HardnessSpec>,
    /// The run folder; what is finished in it stays.
    pub folder: PathBuf,
    /// Which corpora.
    pub share: Share,
}

/// A ranking under way.
#[derive(Debug, Default)]
pub struct RankingSoFar {
    /// The corpus at work.
    pub live: Option<LiveCorpus>,
    /// What the finished corpora say; nothing before the first word.
    pub found: Option<Illustrated<Ranking>>,
}

/// A corpus whose flow is in training.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveCorpus {
    /// Its name.
    pub name: String,
    /// Epochs and parts of one trained.
    pub epoch: f64,
    /// Epochs in all.
    pub epochs: usize,
    /// Seconds left of its training.
    pub eta_secs: Option<f64>,
    /// The last finished epoch on its held-out images.
    pub held_out: Option<Evaluation>,
}

impl Task for RankCorpora {
    type Event = HardnessEvent;
    type Live = RankingSoFar;
    type Report = Ranking;

    fn title(&self) -> String {
        let resume = || format!("Resume {}", self.folder.display());
        self.spec.as_ref().map_or_else(resume, |spec| format!("Hardness {}", spec.name))
    }

    fn lets_oracles_open(&self) -> bool {
        true
    }

    fn fold(&self, live: &mut RankingSoFar, event: &HardnessEvent) {
        live.take(event);
    }

    fn run(&self, cx: &mut TaskContext<'_, HardnessEvent>) -> Result<Done<Ranking>> {
        let folder = match &self.spec {
            Some(spec) => HardnessFolder::create(&self.folder, spec)?,
            None => HardnessFolder::open(&self.folder)?,
        };
        let chosen = cx.chosen;
        let mut told = Reporter { cx, corpora: Progress { done: 0, total: 0 } };
        let found = rank(&folder, self.share, chosen, &mut told)?;
        let (failed, damaged) = folder.failed_and_damaged(&found.troubles);
        let failed = match failed.len() {
            0 => String::new(),
            n => format!(", {n} failed (resuming tries them again)"),
        };
        let damaged = match damaged.len() {
            0 => String::new(),
            n => format!(", {n} left out with a damaged result (delete it, and resuming computes it again)"),
        };
        let (finished, place) = (found.corpora.len(), folder.path.display());
        let sentence = format!("{finished} of {} corpora are ranked{failed}{damaged} in {place}", found.planned);
        Ok(Done::new(found, sentence))
    }
}

/// Tells what a ranking says: of its steps a few, of everything else all.
struct Reporter<'a, 'b> {
    cx: &'a mut TaskContext<'b, HardnessEvent>,
    /// Corpora done with, of how many.
    corpora: Progress,
}

impl Reporter<'_, '_> {
    /// Says how far all is, being so far in the present corpus; whether it was time to.
    fn progress(&mut self, Progress { done, total }: Progress, note: &str) -> bool {
        let within = PARTS * done / total.max(1);
        let Progress { done, total } = self.corpora;
        let note = format!("{done} of {total} corpora · {note}");
        // The last step is not the end: the Bayes error is yet to come.
        let done = (PARTS * done + within).min((PARTS * total).saturating_sub(1));
        self.cx.progress(Progress { done, total: PARTS * total }, note)
    }
}

impl Events<HardnessEvent> for Reporter<'_, '_> {
    fn emit(&mut self, event: HardnessEvent) -> ControlFlow<()> {
        match &event {
            HardnessEvent::Planned { corpora, finished } => {
                self.corpora = Progress { done: *finished, total: *corpora };
                self.cx.event(event);
            }
            HardnessEvent::Training { corpus, said, .. } => {
                // Pictures are for the panel Oracle training.
                let pictures = matches!(&**said, TrainEvent::Samples { .. } | TrainEvent::NoSamples { .. });
                let told = said.progress().is_none_or(|at| self.progress(at.whole, &format!("{corpus}: {}", at.note)));
                if told && !pictures {
                    self.cx.event(event);
                }
            }
            HardnessEvent::Reading { corpus } => {
                self.progress(Progress { done: 0, total: 1 }, &format!("reading {corpus}"));
                self.cx.event(event);
            }
            HardnessEvent::Integrating { corpus } => {
                self.progress(Progress { done: 1, total: 1 }, &format!("Bayes error of {corpus}"));
                self.cx.event(event);
            }
            HardnessEvent::Elsewhere { corpus, by, waiting } => {
                let begun = Progress { done: 0, total: 1 };
                if !waiting || self.progress(begun, &format!("waiting for {corpus}, on which {by} is at work")) {
                    self.cx.event(event);
                }
            }
            HardnessEvent::Finished(_) | HardnessEvent::Failed { .. } | HardnessEvent::FinishedElsewhere { .. } => {
                self.corpora.done += 1;
                self.cx.event(event);
            }
            HardnessEvent::Ranking(_) => self.cx.event(event),
        }
        self.cx.check()
    }
}

impl RankingSoFar {
    fn take(&mut self, event: &HardnessEvent) {
        match event {
            HardnessEvent::Reading { corpus } => {
                let (name, epoch, epochs) = (corpus.clone(), 0.0, 0);
                self.live = Some(LiveCorpus { name, epoch, epochs, eta_secs: None, held_out: None });
            }
            HardnessEvent::Training { said, eta_secs, .. } => self.train(said, *eta_secs),
            HardnessEvent::Finished(_) | HardnessEvent::Failed { .. } => self.live = None,
            HardnessEvent::Ranking(found) => {
                let (figures, tables) = (found.figures(), found.tables());
                self.found = Some(Illustrated { found: (**found).clone(), figures, tables });
            }
            HardnessEvent::Planned { .. }
            | HardnessEvent::Integrating { .. }
            | HardnessEvent::Elsewhere { .. }
            | HardnessEvent::FinishedElsewhere { .. } => {}
        }
    }

    fn train(&mut self, said: &TrainEvent, eta_secs: Option<f64>) {
        let Some(live) = &mut self.live else { return };
        match said {
            TrainEvent::Started { resumed_at, epochs, .. } => (live.epoch, live.epochs) = (*resumed_at as f64, *epochs),
            TrainEvent::Step { epoch, epochs, step, steps, .. } => {
                live.epoch = (epoch - 1) as f64 + *step as f64 / (*steps).max(1) as f64;
                (live.epochs, live.eta_secs) = (*epochs, eta_secs);
            }
            TrainEvent::Epoch { held_out, .. } => live.held_out = Some(held_out.clone()),
            _ => {}
        }
    }
}
