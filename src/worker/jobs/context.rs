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

impl Events<Progress> for Sink<'_> {
    fn emit(&mut self, progress: Progress) -> ControlFlow<()> {
        self.progress(progress, format!("{} of {} images", progress.done, progress.total));
        self.check()
    }
}
