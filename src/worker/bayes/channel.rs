//! What a thread that computes Bayes errors works with.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use rayon::ThreadPool;

use super::protocol::{Answer, WorldProblem};
use super::request_slots::{Opened, RequestSlots};
use crate::bayes::{Estimate, GaussianClasses, Spec, bayes_error, limit_at_zero};
use crate::error::{Error, Result};
use crate::oracle::world::LabelLaw;
use crate::units::Tau;
use crate::worker::protocol::Event;
use crate::worker::shared::Shared;

/// A knob that has not moved for so long is at rest. Longer than a frame takes where the processor
/// paints: a refinement in every frame of a drag would slow the next.
pub const REST: Duration = Duration::from_millis(350);

/// One of the two threads' ends of all channels.
pub struct Channel {
    pub shared: Arc<Shared>,
    pub notified: Receiver<()>,
    pub events: Sender<Event>,
    pub pool: ThreadPool,
}

impl Channel {
    pub fn slots(&self) -> &RequestSlots {
        &self.shared.bayes
    }

    pub fn stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    pub fn epoch(&self) -> u64 {
        self.slots().epoch.load(Ordering::Relaxed)
    }

    /// Sends an answer and wakes the reader; a vanished reader is no error.
    pub fn send(&self, answer: Answer) {
        let _ = self.events.send(Event::Bayes(Box::new(answer)));
        (self.shared.wake)();
    }

    /// Waits to be notified. Returns whether it was.
    pub fn wait(&self, longest: Option<Duration>) -> bool {
        self.notified.recv_timeout(longest.unwrap_or(Duration::from_secs(3600))).is_ok()
    }

    pub fn opened(&self) -> Option<Arc<Opened>> {
        self.slots().opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The classes of the open oracle under a prior, with smoothing and label noise.
    pub fn classes(&self, law: &LabelLaw) -> Result<GaussianClasses> {
        let opened = self.opened().ok_or_else(|| Error::input("no oracle is open"))?;
        self.pool.install(|| opened.reduced()?.with_law(law))
    }

    /// What is known of the open oracle's problem.
    pub fn describe(&self) -> Option<std::result::Result<WorldProblem, String>> {
        let opened = self.opened()?;
        let described = self.pool.install(|| {
            opened.reduced().map(|c| WorldProblem { classes: c.classes(), rank: c.rank(), dims: c.dims() })
        });
        Some(described.map_err(|error| error.to_string()))
    }

    /// The Bayes error on this channel's threads; at τ = 0 its limit.
    pub fn error(
        &self,
        classes: &GaussianClasses,
        tau: Tau,
        spec: &Spec,
        mut tell: impl FnMut(Estimate) -> ControlFlow<()> + Send,
    ) -> Result<Estimate> {
        if tau.get() > 0.0 {
            return self.pool.install(|| bayes_error(classes, tau, spec, &mut tell));
        }
        limit_at_zero(classes)
    }

    /// As [`Self::error`], ended after `budget` with what is known by then. `None` when `stop` says
    /// so before anything is.
    pub fn error_within(
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
