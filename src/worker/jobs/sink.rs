//! What every job is given: the open oracle, and its line to the window.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::world::World;
use crate::worker::channels::Channels;
use crate::worker::desk::{Desk, Opened, open_so_far};
use crate::worker::interactive::Interactive;
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Progress is told at most this often.
pub const TELL_EVERY: Duration = Duration::from_millis(50);

pub fn opened_of(desk: &Desk) -> Result<&Opened> {
    desk.opened.as_ref().ok_or_else(|| Error::input("no oracle is open; open one first"))
}

pub fn world_of(desk: &Desk) -> Result<&World> {
    opened_of(desk).map(|opened| &opened.world)
}

/// A job's line to the window: progress out; cancel, pause and interactive requests in.
pub struct Sink<'a> {
    pub channels: &'a Channels,
    pub interactive: &'a Interactive,
    pub world: Option<&'a World>,
    pub id: JobId,
    pub control: &'a Control,
    told: Option<Instant>,
    /// Where the device is, if the best epoch of a run may be opened meanwhile.
    pub stands_aside: Option<&'a OpenDevice>,
    /// That oracle: it serves the window from then on.
    pub opened: Option<Opened>,
}

impl<'a> Sink<'a> {
    pub fn new(
        channels: &'a Channels,
        interactive: &'a Interactive,
        world: Option<&'a World>,
        id: JobId,
        control: &'a Control,
    ) -> Self {
        Self { channels, interactive, world, id, control, told: None, stands_aside: None, opened: None }
    }

    /// Serves the window, holds while paused, and says whether to go on.
    pub fn check(&mut self) -> ControlFlow<()> {
        loop {
            let cancelled = || self.control.cancelled.load(Ordering::Relaxed);
            if let Some(chosen) = self.stands_aside
                && let Some(opened) = open_so_far(self.channels, chosen, self.interactive)
            {
                self.opened = Some(opened);
            }
            let world = self.opened.as_ref().map(|opened| &opened.world).or(self.world);
            let urgent = || cancelled() || (self.stands_aside.is_some() && self.channels.shared.aside.is_full());
            let more = self.interactive.serve(self.channels, world, &urgent);
            self.channels.tell_notes();
            if self.channels.stopping() || cancelled() || self.interactive.lost() {
                return ControlFlow::Break(());
            }
            if !self.control.paused.load(Ordering::Relaxed) {
                return ControlFlow::Continue(());
            }
            if !more {
                // Woken by any request, cancel or resume.
                let _ = self.channels.ringing.recv_timeout(Duration::from_millis(200));
            }
        }
    }

    /// Tells progress if it is time to; returns whether it was.
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
