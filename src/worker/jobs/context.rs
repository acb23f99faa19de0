//! What every job is given: the open oracle, and its line to the window.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::classify::ExternalImages;
use crate::oracle::world::{Settings, World};
use crate::worker::channels::Channels;
use crate::worker::device_thread::{DeviceThread, Opened, open_checkpoint};
use crate::worker::interactive::Interactive;
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Progress is sent at most this often.
pub const TELL_EVERY: Duration = Duration::from_millis(50);

/// What a job is given.
pub struct JobContext<'a> {
    pub channels: &'a Channels,
    pub thread: &'a mut DeviceThread,
    pub id: JobId,
    pub control: &'a Control,
}

impl JobContext<'_> {
    /// Whether the user stops the job or ends the program.
    pub fn is_stopped(&self) -> bool {
        self.control.cancelled.load(Ordering::Relaxed) || self.channels.stopping()
    }

    /// The open oracle.
    ///
    /// # Errors
    /// When none is open.
    pub fn opened(&self) -> Result<&Opened> {
        self.thread.opened.as_ref().ok_or_else(|| Error::input("no oracle is open; open one first"))
    }

    /// Where the job's progress goes.
    pub fn sink(&self) -> Sink<'_> {
        Sink {
            channels: self.channels,
            interactive: &self.thread.interactive,
            world: self.thread.opened.as_ref().map(|opened| &opened.world),
            id: self.id,
            control: self.control,
            told: None,
            turns: Turns::default(),
            checkpoints_on: None,
            opened: None,
        }
    }

    /// Shows images from outside. Returns a sentence about them.
    ///
    /// # Errors
    /// As [`Interactive::show_external`].
    pub fn show(&self, images: ExternalImages, settings: &Settings) -> Result<String> {
        self.thread.interactive.show_external(
            self.channels,
            &self.opened()?.world,
            (images, Vec::new()),
            settings,
            false,
        )
    }
}

/// A job's line to the window: progress out; cancel, pause and interactive requests in.
pub struct Sink<'a> {
    pub channels: &'a Channels,
    pub interactive: &'a Interactive,
    world: Option<&'a World>,
    pub id: JobId,
    control: &'a Control,
    told: Option<Instant>,
    turns: Turns,
    /// The device, if the best epoch of a run may be opened meanwhile.
    pub checkpoints_on: Option<&'a OpenDevice>,
    /// That oracle: it serves the window from then on.
    pub opened: Option<Opened>,
}

impl Sink<'_> {
    /// Serves the window and blocks while paused. Returns whether to go on.
    pub fn check(&mut self) -> ControlFlow<()> {
        loop {
            let cancelled = || self.control.cancelled.load(Ordering::Relaxed);
            if let Some(chosen) = self.checkpoints_on
                && let Some(opened) = open_checkpoint(self.channels, chosen, self.interactive)
            {
                self.opened = Some(opened);
            }
            let world = self.opened.as_ref().map(|opened| &opened.world).or(self.world);
            let urgent = || cancelled() || (self.checkpoints_on.is_some() && self.channels.shared.checkpoint.is_full());
            let more = self.interactive.serve(self.channels, world, &urgent)
                // The job goes on between two pieces.
                || self.interactive.refer(self.channels, world, (&urgent, 1));
            self.channels.tell_notes();
            if self.channels.stopping() || cancelled() || self.interactive.lost() {
                return ControlFlow::Break(());
            }
            if !self.control.paused.load(Ordering::Relaxed) {
                return ControlFlow::Continue(());
            }
            if !more {
                // Woken by any request, cancel or resume.
                let _ = self.channels.notified.recv_timeout(Duration::from_millis(200));
            }
        }
    }

    /// [`Self::check`] that leaves the job half of the time while the window has much to be served:
    /// after a piece of it the job works as long as that took. What is newly asked for comes first.
    pub fn check_in_turns(&mut self) -> ControlFlow<()> {
        let stopped = self.control.cancelled.load(Ordering::Relaxed) || self.control.paused.load(Ordering::Relaxed);
        let called = stopped || self.channels.stopping() || self.channels.shared.asked();
        if !called && !self.turns.over(Instant::now()) {
            return ControlFlow::Continue(());
        }
        let began = Instant::now();
        let go_on = self.check();
        self.turns.served(began, Instant::now());
        go_on
    }

    /// Sends progress if it is due. Returns whether it was.
    pub fn progress(&mut self, progress: Progress, note: String) -> bool {
        let due = self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) || progress.done == progress.total;
        if due {
            self.told = Some(Instant::now());
            self.channels.send(Event::JobProgress { id: self.id, progress, note });
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
