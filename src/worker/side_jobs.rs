//! Jobs that need no device, on a thread of their own: neither samples nor training wait for them.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, after};

use super::protocol::{Event, JobId, Outcome};
use super::shared::{Control, Shared};
use crate::error::{Error, Result, panic_message};

/// How often a paused job checks whether to continue.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A job of such a thread, and its line to the window.
pub struct SideJob<'a> {
    pub shared: &'a Shared,
    pub id: JobId,
    events: &'a Sender<Event>,
    control: Arc<Control>,
}

impl SideJob<'_> {
    /// Sends an event and wakes the reader; a vanished reader is no error.
    pub fn send(&self, event: Event) {
        let _ = self.events.send(event);
        (self.shared.wake)();
    }

    /// Sends that a job has ended.
    pub fn end(&self, id: JobId, outcome: Outcome) {
        self.shared.forget(id);
        self.send(Event::JobEnded { id, outcome });
    }

    /// Blocks while paused. Returns whether to go on.
    pub fn check(&self) -> ControlFlow<()> {
        loop {
            if self.control.cancelled.load(Ordering::Relaxed) || self.shared.stopping.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if !self.control.paused.load(Ordering::Relaxed) {
                return ControlFlow::Continue(());
            }
            let _ = after(LOOK_EVERY).recv();
        }
    }

    fn run<T>(&self, what: &str, request: &T, work: Work<T>) {
        if !self.control.take() {
            return self.shared.forget(self.id);
        }
        if self.check().is_break() {
            return self.end(self.id, Outcome::Cancelled);
        }
        self.send(Event::JobStarted { id: self.id });
        let done = catch_unwind(AssertUnwindSafe(|| work(self, request)));
        let done = done.unwrap_or_else(|panic| {
            Err(Error::Numeric(format!("{what} failed inside: {}", panic_message(panic.as_ref()))))
        });
        match done {
            Ok(None) => {}
            Ok(Some(sentence)) => self.end(self.id, Outcome::Done(sentence)),
            Err(Error::Cancelled) => self.end(self.id, Outcome::Cancelled),
            Err(error) => self.end(self.id, Outcome::Failed(error.to_string())),
        }
    }
}

/// What is done for a request. Returns a sentence, or `None` where another thread ends the job.
pub type Work<T> = fn(&SideJob<'_>, &T) -> Result<Option<String>>;

/// Starts a thread called `name`, which answers requests one after the other. `what` it does and
/// `on` what stand in messages.
pub fn start<T: Send + 'static>(
    [name, what, on]: [&'static str; 3],
    shared: &Arc<Shared>,
    queue: Receiver<(JobId, T)>,
    events: &Sender<Event>,
    work: Work<T>,
) {
    let (shared, sender) = (shared.clone(), events.clone());
    let run = move || {
        while let Ok((id, request)) = queue.recv() {
            let control = shared.control(id);
            SideJob { shared: &shared, id, events: &sender, control }.run(what, &request, work);
        }
    };
    if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(run) {
        let _ = events.try_send(Event::Failed(format!("the system gave no thread to {on} on: {error}")));
    }
}
