//! What every job is given: the open oracle, and its line to the window.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::classify::ExternalImages;
use crate::oracle::world::Settings;
use crate::worker::channels::Channels;
use crate::worker::device_thread::{Opened, open_checkpoint};
use crate::worker::interactive::{Brought, Interactive};
use crate::worker::protocol::Event;
use crate::worker::queue::Entry;

/// Progress is sent at most this often.
pub const TELL_EVERY: Duration = Duration::from_millis(50);

/// Runs a job above the one whose line this is. Returns the oracle that serves the window from then
/// on, where that is another one.
pub type RunAbove = fn(&Sink<'_>, Entry) -> Option<Opened>;

/// What a job is given.
pub struct JobContext<'a> {
    pub channels: &'a Channels,
    pub chosen: &'a OpenDevice,
    pub interactive: &'a Interactive,
    /// The oracle that was open when it began, if any.
    pub opened: Option<&'a Opened>,
    pub entry: &'a Entry,
    /// The oracle that was opened by it or above it: it serves the window from then on.
    pub replaced: Option<Opened>,
    /// How a job that may begin above this one is run.
    pub run_above: RunAbove,
}

impl<'a> JobContext<'a> {
    /// Whether the user stops the job or ends the program.
    pub fn is_stopped(&self) -> bool {
        self.entry.is_cancelled() || self.channels.stopping()
    }

    /// The open oracle.
    ///
    /// # Errors
    /// When none is open.
    pub fn opened(&self) -> Result<&'a Opened> {
        self.opened.ok_or_else(|| Error::input("no oracle is open; open one first"))
    }

    /// Checks that the open oracle is the one the job is of.
    ///
    /// # Errors
    /// When another is open: what the job was given is not of its world.
    pub fn check_world(&self) -> Result<()> {
        match (&self.entry.world, self.opened) {
            (Some(meant), Some(opened)) if opened.info.world_id() != *meant => {
                let title = self.entry.job.title();
                let why = format!(
                    "{title}: this was asked for in another world than {}, which is open now; ask again here",
                    opened.name
                );
                Err(Error::input(why))
            }
            _ => Ok(()),
        }
    }

    /// Where the job's progress goes.
    pub fn sink(&self) -> Sink<'a> {
        Sink {
            channels: self.channels,
            chosen: self.chosen,
            interactive: self.interactive,
            before: self.opened,
            entry: self.entry,
            told: None,
            turns: Turns::default(),
            lets_oracles_open: self.channels.jobs.lets_oracles_open(),
            replaced: None,
            run_above: self.run_above,
        }
    }

    /// Whether the job reads images from outside again, and others were opened since: these stay on show.
    pub fn others_were_opened(&self) -> bool {
        let again = self.entry.job.reads_again();
        again.is_some_and(|of| self.channels.shared.opener().is_some_and(|opener| opener != of))
    }

    /// Shows images from outside. Returns a sentence about them.
    ///
    /// # Errors
    /// As [`Interactive::show_external`].
    pub fn show(&self, images: ExternalImages, settings: &Settings) -> Result<String> {
        let world = &self.opened()?.world;
        let brought = Brought { again: self.entry.job.reads_again(), ..Brought::by(self.entry.id) };
        self.interactive.show_external(self.channels, world, (images, Vec::new()), settings, brought)
    }
}

/// A job's line to the window: progress out; cancel, pause and interactive requests in.
pub struct Sink<'a> {
    pub channels: &'a Channels,
    pub chosen: &'a OpenDevice,
    pub interactive: &'a Interactive,
    /// The oracle that was open when the job began.
    before: Option<&'a Opened>,
    pub entry: &'a Entry,
    told: Option<Instant>,
    turns: Turns,
    /// Whether another oracle may be opened meanwhile.
    lets_oracles_open: bool,
    /// That oracle: it serves the window from then on.
    pub replaced: Option<Opened>,
    /// How a job that may begin above this one is run.
    run_above: RunAbove,
}

impl Sink<'_> {
    /// The oracle that serves the window.
    pub fn opened(&self) -> Option<&Opened> {
        self.replaced.as_ref().or(self.before)
    }

    /// Serves the window, carries out what may be done above this job, and blocks while it is
    /// paused. Returns whether to go on.
    pub fn check(&mut self) -> ControlFlow<()> {
        let (channels, entry) = (self.channels, self.entry);
        loop {
            if self.lets_oracles_open
                && let Some(opened) = open_checkpoint(channels, self.chosen, self.interactive)
            {
                self.replaced = Some(opened);
            }
            let urgent = || entry.is_cancelled() || self.checkpoint_waits() || channels.job_waits();
            let (world, began) = (self.opened().map(|opened| &opened.world), Instant::now());
            let more = self.interactive.serve(channels, world, &urgent)
                // The job goes on between two pieces.
                || self.interactive.refer(channels, world, (&urgent, 1));
            // Neither a pause nor what is done above this job is time of the window.
            self.turns.served(began, Instant::now());
            channels.tell_notes();
            if channels.stopping() || entry.is_cancelled() || self.interactive.lost() {
                return ControlFlow::Break(());
            }
            if let Some(next) = channels.next_job() {
                if let Some(opened) = (self.run_above)(self, next) {
                    self.replaced = Some(opened);
                }
                continue;
            }
            channels.tell_waits();
            if !entry.is_held() {
                return ControlFlow::Continue(());
            }
            if channels.jobs.gives_way() {
                entry.control.gave_way.store(true, Ordering::Relaxed);
                return ControlFlow::Break(());
            }
            if !more {
                // Woken by any job, request, cancel or resume.
                let _ = channels.wait(Duration::from_millis(200));
            }
        }
    }

    /// Whether another oracle is to be opened, and may be.
    fn checkpoint_waits(&self) -> bool {
        self.lets_oracles_open && self.channels.shared.checkpoint_waits()
    }

    /// [`Self::check`] that leaves the job half of the time while the window has much to be served:
    /// after a piece of it the job works as long as that took. What is newly asked for comes first, and
    /// so does a job that may begin above this one.
    pub fn check_in_turns(&mut self) -> ControlFlow<()> {
        let (channels, entry) = (self.channels, self.entry);
        let held = entry.is_cancelled() || entry.is_held() || channels.stopping();
        let called = held || channels.shared.asked() || self.checkpoint_waits() || channels.job_waits();
        if !called && !self.turns.over(Instant::now()) {
            return ControlFlow::Continue(());
        }
        self.check()
    }

    /// Sends progress if it is due. Returns whether it was.
    pub fn progress(&mut self, progress: Progress, note: String) -> bool {
        let due = self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) || progress.done == progress.total;
        if due {
            self.told = Some(Instant::now());
            self.channels.send(Event::JobProgress { id: self.entry.id, progress, note });
        }
        due
    }
}

/// Whose turn it is, the job's or the window's.
#[derive(Default)]
struct Turns {
    /// When the window was served last, and how long that took.
    last: Option<(Instant, Duration)>,
}

impl Turns {
    /// Whether the job's turn is over.
    fn over(&self, now: Instant) -> bool {
        self.last.is_none_or(|(ended, took)| now.saturating_duration_since(ended) >= took)
    }

    /// The window was served.
    fn served(&mut self, began: Instant, ended: Instant) {
        self.last = Some((ended, ended.saturating_duration_since(began)));
    }
}

impl Events<Progress> for Sink<'_> {
    fn emit(&mut self, progress: Progress) -> ControlFlow<()> {
        self.progress(progress, format!("{} of {} images", progress.done, progress.total));
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_works_as_long_as_it_was_held_up() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut turns = Turns::default();
        assert!(turns.over(begin), "nothing was served yet");
        turns.served(begin, begin + second);
        assert!(!turns.over(begin + second) && !turns.over(begin + 2 * second - Duration::from_millis(1)));
        assert!(turns.over(begin + 2 * second));
        // What cost nothing costs no turn.
        turns.served(begin + 2 * second, begin + 2 * second);
        assert!(turns.over(begin + 2 * second));
    }
}
