//! What a ranking of corpora reports.

use serde::Serialize;

use crate::experiment::hardness::{CorpusResult, Ranking};
use crate::oracle::train::TrainEvent;

/// What a ranking reports. Breaking off after any event leaves a folder to go on with.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum HardnessEvent {
    /// The plan is known.
    Planned {
        /// Corpora of this share.
        corpora: usize,
        /// Those of them that are finished.
        finished: usize,
    },
    /// The images of a corpus are read and looked at.
    Reading {
        /// The corpus.
        corpus: String,
    },
    /// A word from the training of a corpus.
    Training {
        /// The corpus.
        corpus: String,
        /// The word.
        said: Box<TrainEvent>,
        /// Seconds the rest of its training will take at the pace of this sitting.
        eta_secs: Option<f64>,
    },
    /// The Bayes error of a trained world is being refined.
    Integrating {
        /// The corpus.
        corpus: String,
    },
    /// Another process trains on a corpus: it is left to that one.
    Elsewhere {
        /// The corpus.
        corpus: String,
        /// The process and its machine.
        by: String,
        /// Whether nothing else is left to do, so that it is waited for.
        waiting: bool,
    },
    /// Another process has finished a corpus.
    FinishedElsewhere {
        /// The corpus.
        corpus: String,
    },
    /// A corpus is finished.
    Finished(Box<CorpusResult>),
    /// A corpus could not be finished; the others go on.
    Failed {
        /// The corpus.
        corpus: String,
        /// Why, with file and cause.
        why: String,
    },
    /// What all finished corpora say; after every corpus, and at the end.
    Ranking(Box<Ranking>),
}
