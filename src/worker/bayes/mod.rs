//! Two light threads beside the desk. The Bayes error of a shared-map world needs no device, so it waits neither behind
//! sampling nor behind jobs: the *quick* lane answers a dragged slider and a typed target, the *study* lane computes what
//! takes longer, a piece at a time. Each has threads of its own to spread work over, so that neither queues behind the
//! other's, or behind the desk's.

mod compare;
mod figure1;
pub mod protocol;
mod quick;
mod ranking;
mod study;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use rayon::ThreadPool;

use self::protocol::{Answer, At, CurveQuestion, Question, RankingQuestion, TargetQuestion, WorldProblem};
use super::Shared;
use super::priority::give_way;
use super::protocol::Event;
use super::slot::Slot;
use crate::bayes::{Estimate, GaussianClasses, Spec, bayes_error, limit_at_zero};
use crate::error::{Error, Result, panic_message};
use crate::flow::base::GaussianBase;
use crate::oracle::posterior::Prior;
use crate::units::Tau;

/// A knob that has not moved for so long is at rest. Longer than a frame takes where the processor paints: a refinement in
/// every frame of a drag would slow the next.
const REST: Duration = Duration::from_millis(350);

/// The classes of the open oracle, reduced by whichever lane needs them first.
struct Opened {
    base: Option<GaussianBase>,
    reduced: OnceLock<std::result::Result<GaussianClasses, String>>,
}

/// Said of worlds without a shared base.
const CLASS_MAP: &str = "the map of this world depends on the class, so its Bayes error is no integral over Gaussians: \
                         only Monte Carlo over samples is possible";

impl Opened {
    fn reduced(&self) -> Result<&GaussianClasses> {
        let reduce = || {
            let base = self.base.as_ref().ok_or_else(|| CLASS_MAP.to_owned())?;
            GaussianClasses::of_base(base, &Prior::uniform(base.classes())).map_err(|error| error.to_string())
        };
        self.reduced.get_or_init(reduce).as_ref().map_err(Error::input)
    }
}

/// What the faces ask, and the problem they ask about.
pub struct Board {
    opened: Mutex<Option<Arc<Opened>>>,
    /// Grows with every oracle.
    epoch: AtomicU64,
    readout: Slot<At>,
    information: Slot<At>,
    target: Slot<TargetQuestion>,
    curve: Slot<CurveQuestion>,
    hardness: Slot<At>,
    ranking: Slot<RankingQuestion>,
    compare: Slot<At>,
    figure1: Slot<u64>,
    bells: [Sender<()>; 2],
}

impl Board {
    /// A board, and the two bells it rings: the quick lane's and the study lane's.
    pub fn new() -> (Self, [Receiver<()>; 2]) {
        let ((quick, hear_quick), (study, hear_study)) = (bounded(1), bounded(1));
        let board = Self {
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
            bells: [quick, study],
        };
        (board, [hear_quick, hear_study])
    }

    /// Puts a question where its lane finds it; a question of its kind not begun is replaced.
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
        }
        self.ring();
    }

    /// Whether the study lane is asked anything it has not taken yet.
    fn asked(&self) -> bool {
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
        self.ring();
    }

    /// Wakes both lanes.
    pub fn ring(&self) {
        for bell in &self.bells {
            // A full bell is already ringing.
            let _ = bell.try_send(());
        }
    }
}

/// One of the two threads' ends of all lines.
struct Lane {
    shared: Arc<Shared>,
    ringing: Receiver<()>,
    events: Sender<Event>,
    pool: ThreadPool,
}

/// Starts both threads.
pub(super) fn start(shared: &Arc<Shared>, [quick, study]: [Receiver<()>; 2], events: &Sender<Event>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let begin = |name: &'static str, ringing, threads, sit: fn(&Lane)| {
        if let Err(error) = start_one(name, ringing, threads, sit, shared.clone(), events.clone()) {
            let text = format!("the system gave no thread to compute Bayes errors on: {error}");
            let _ = events.try_send(Event::Failed(text));
        }
    };
    begin("bayes", quick, cores, quick::sit);
    // Leaves a core to the quick one.
    begin("bayes study", study, (cores - 1).max(1), study::sit);
}

fn start_one(
    name: &'static str,
    ringing: Receiver<()>,
    threads: usize,
    sit: fn(&Lane),
    shared: Arc<Shared>,
    events: Sender<Event>,
) -> std::result::Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(move |i| format!("{name} {i}"));
    let pool = pool.start_handler(|_| give_way()).build().map_err(|error| error.to_string())?;
    let lane = Lane { shared, ringing, events, pool };
    let work = move || {
        give_way();
        survive(&lane, || sit(&lane));
    };
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(|error| error.to_string())?;
    Ok(())
}

/// Runs `sitting` until it returns, again after every panic, which is told.
fn survive(lane: &Lane, sitting: impl Fn()) {
    while let Err(panic) = catch_unwind(AssertUnwindSafe(&sitting)) {
        let reason = panic_message(panic.as_ref());
        tracing::error!("a Bayes error lane panicked: {reason}");
        lane.send(Answer::Lost { reason: format!("the computation of a Bayes error failed inside: {reason}") });
        if lane.stopping() {
            return;
        }
    }
}

impl Lane {
    fn board(&self) -> &Board {
        &self.shared.bayes
    }

    fn stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    fn epoch(&self) -> u64 {
        self.board().epoch.load(Ordering::Relaxed)
    }

    /// Sends an answer and wakes the reader; a vanished reader is no error.
    fn send(&self, answer: Answer) {
        let _ = self.events.send(Event::Bayes(Box::new(answer)));
        (self.shared.wake)();
    }

    /// Waits for the bell; whether it rang.
    fn wait(&self, longest: Option<Duration>) -> bool {
        self.ringing.recv_timeout(longest.unwrap_or(Duration::from_secs(3600))).is_ok()
    }

    fn opened(&self) -> Option<Arc<Opened>> {
        self.board().opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The classes of the open oracle under a prior.
    fn classes(&self, prior: &Prior) -> Result<GaussianClasses> {
        let opened = self.opened().ok_or_else(|| Error::input("no oracle is open"))?;
        self.pool.install(|| opened.reduced()?.with_priors(prior.probabilities()))
    }

    /// What is known of the open oracle's problem.
    fn describe(&self) -> Option<std::result::Result<WorldProblem, String>> {
        let opened = self.opened()?;
        let described = self.pool.install(|| {
            opened.reduced().map(|c| WorldProblem { classes: c.classes(), rank: c.rank(), dims: c.dims() })
        });
        Some(described.map_err(|error| error.to_string()))
    }

    /// The Bayes error on this lane's threads; at τ = 0 its limit.
    fn error(
        &self,
        classes: &GaussianClasses,
        tau: Tau,
        spec: &Spec,
        mut tell: impl FnMut(Estimate) -> ControlFlow<()> + Send,
    ) -> Result<Estimate> {
        if tau.get() > 0.0 {
            return self.pool.install(|| bayes_error(classes, tau, spec, &mut tell));
        }
        Ok(limit_at_zero(classes))
    }

    /// As [`Self::error`], ended after `budget` with what is known by then. `None` when `stop` says so before anything is.
    fn error_within(
        &self,
        classes: &GaussianClasses,
        tau: Tau,
        spec: &Spec,
        budget: Duration,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<Option<Estimate>> {
        let begun = Instant::now();
        let mut last = None;
        let outcome = self.error(classes, tau, spec, |estimate| {
            last = Some(estimate);
            if stop() || begun.elapsed() > budget { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match outcome {
            Ok(estimate) => Ok(Some(estimate)),
            Err(Error::Cancelled) if stop() => Ok(None),
            Err(Error::Cancelled) => Ok(last.map(|last| {
                let met = last.figure.relative_half_width() <= spec.tolerance;
                let end = if met { "" } else { "; stopped when its time was up" };
                Estimate { why: format!("{}{end}", last.why), ..last }
            })),
            Err(error) => Err(error),
        }
    }
}
