//! A ranking of corpora, as far as it has come.

use std::path::PathBuf;

use crate::experiment::hardness::Ranking;
use crate::figure::{Figure, Table};
use crate::oracle::evaluate::Evaluation;
use crate::oracle::train::TrainEvent;
use crate::run::hardness::HardnessEvent;
use crate::worker::protocol::{JobId, Outcome};

/// The ranking on show.
#[derive(Debug)]
pub struct RankingView {
    /// Its job.
    pub job: JobId,
    /// Its run folder.
    pub folder: PathBuf,
    /// The corpus at work.
    pub live: Option<LiveCorpus>,
    /// What the finished corpora say; nothing before the first word.
    pub found: Option<Ranking>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// What the job failed of.
    pub trouble: Option<String>,
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

impl RankingView {
    /// A ranking was submitted.
    pub fn begin(job: JobId, folder: PathBuf) -> Self {
        Self { job, folder, live: None, found: None, figures: Vec::new(), tables: Vec::new(), trouble: None }
    }

    /// It reports.
    pub fn take(&mut self, event: HardnessEvent) {
        match event {
            HardnessEvent::Reading { corpus: name } => {
                self.live = Some(LiveCorpus { name, epoch: 0.0, epochs: 0, eta_secs: None, held_out: None });
            }
            HardnessEvent::Training { said, eta_secs, .. } => self.train(*said, eta_secs),
            HardnessEvent::Finished(_) | HardnessEvent::Failed { .. } => self.live = None,
            HardnessEvent::Ranking(found) => {
                (self.figures, self.tables) = (found.figures(), found.tables());
                self.found = Some(*found);
            }
            HardnessEvent::Planned { .. } | HardnessEvent::Integrating { .. } => {}
        }
    }

    fn train(&mut self, said: TrainEvent, eta_secs: Option<f64>) {
        let Some(live) = &mut self.live else { return };
        match said {
            TrainEvent::Started { resumed_at, epochs, .. } => (live.epoch, live.epochs) = (resumed_at as f64, epochs),
            TrainEvent::Step { epoch, epochs, step, steps, .. } => {
                live.epoch = (epoch - 1) as f64 + step as f64 / steps.max(1) as f64;
                (live.epochs, live.eta_secs) = (epochs, eta_secs);
            }
            TrainEvent::Epoch { held_out, .. } => live.held_out = Some(held_out),
            _ => {}
        }
    }

    /// Its job is over.
    pub fn ended(&mut self, outcome: &Outcome) {
        self.live = None;
        if let Outcome::Failed(why) = outcome {
            self.trouble = Some(why.clone());
        }
    }
}
