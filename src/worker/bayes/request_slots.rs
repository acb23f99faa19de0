//! What the faces ask about Bayes errors, and the problem they ask about.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::protocol::{At, CurveQuestion, Question, RankingQuestion, TargetQuestion};
use crate::bayes::GaussianClasses;
use crate::bayes::sampling::DrawKey;
use crate::error::{Error, Result};
use crate::flow::base::GaussianBase;
use crate::oracle::posterior::Prior;
use crate::worker::slot::Slot;

/// The classes of the open oracle, reduced by whichever thread needs them first.
pub struct Opened {
    base: Option<GaussianBase>,
    reduced: OnceLock<std::result::Result<GaussianClasses, String>>,
}

/// Said of worlds without a shared base.
const CLASS_MAP: &str = "the map of this world depends on the class, so its Bayes error is no integral over Gaussians: \
                         only Monte Carlo over samples is possible";

impl Opened {
    pub fn reduced(&self) -> Result<&GaussianClasses> {
        let reduce = || {
            let base = self.base.as_ref().ok_or_else(|| CLASS_MAP.to_owned())?;
            GaussianClasses::of_base(base, &Prior::uniform(base.classes())).map_err(|error| error.to_string())
        };
        self.reduced.get_or_init(reduce).as_ref().map_err(Error::input)
    }
}

/// What the faces ask, and the problem they ask about.
pub struct RequestSlots {
    pub(super) opened: Mutex<Option<Arc<Opened>>>,
    /// Grows with every oracle.
    pub(super) epoch: AtomicU64,
    pub(super) readout: Slot<At>,
    pub(super) information: Slot<At>,
    pub(super) target: Slot<TargetQuestion>,
    pub(super) curve: Slot<CurveQuestion>,
    pub(super) hardness: Slot<At>,
    pub(super) ranking: Slot<RankingQuestion>,
    pub(super) compare: Slot<At>,
    pub(super) figure1: Slot<u64>,
    pub(super) kept: Slot<(u64, DrawKey)>,
    notifiers: [Sender<()>; 2],
}

impl RequestSlots {
    /// Empty slots, and what wakes the quick thread and the study thread.
    pub fn new() -> (Self, [Receiver<()>; 2]) {
        let ((quick, hear_quick), (study, hear_study)) = (bounded(1), bounded(1));
        let slots = Self {
            opened: Mutex::default(),
            epoch: AtomicU64::new(0),
            readout: Slot::default(),
            information: Slot::default(),
            target: Slot::default(),
            curve: Slot::default(),
            hardness: Slot::default(),
            ranking: Slot::default(),
            compare: Slot::default(),
            figure1: Slot::default(),
            kept: Slot::default(),
            notifiers: [quick, study],
        };
        (slots, [hear_quick, hear_study])
    }

    /// Puts a question where its thread finds it; a question of its kind not begun is replaced.
    pub fn ask(&self, question: Question) {
        match question {
            Question::Readout(at) => {
                self.information.put(at.clone());
                self.readout.put(at);
            }
            Question::Target(target) => self.target.put(target),
            Question::Curve(curve) => self.curve.put(curve),
            Question::Hardness(at) => self.hardness.put(at),
            Question::Ranking(question) => self.ranking.put(question),
            Question::Compare(at) => self.compare.put(at),
            Question::Figure1 { generation } => self.figure1.put(generation),
            Question::Kept { generation, key } => self.kept.put((generation, key)),
        }
        self.notify();
    }

    /// Whether the study thread is asked anything it has not taken yet.
    pub fn asked(&self) -> bool {
        self.information.is_full()
            || self.curve.is_full()
            || self.hardness.is_full()
            || self.ranking.is_full()
            || self.compare.is_full()
            || self.figure1.is_full()
    }

    /// Another oracle is open.
    pub fn open(&self, base: Option<&GaussianBase>) {
        let opened = Arc::new(Opened { base: base.cloned(), reduced: OnceLock::new() });
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        self.epoch.fetch_add(1, Ordering::Relaxed);
        self.notify();
    }

    /// Wakes both threads.
    pub fn notify(&self) {
        for notifier in &self.notifiers {
            // A full channel wakes it already.
            let _ = notifier.try_send(());
        }
    }
}
