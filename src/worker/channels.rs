//! The worker's ends of all channels.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, Sender};

use super::protocol::{Event, Job, JobId};
use super::shared::Shared;

/// The worker's ends of all channels.
pub struct Channels {
    pub shared: Arc<Shared>,
    pub queue: Receiver<(JobId, Job)>,
    pub notified: Receiver<()>,
    pub events: Sender<Event>,
}

impl Channels {
    /// Sends an event and wakes the reader. Waits while the channel is full.
    pub fn send(&self, event: Event) {
        let _ = self.events.send(event);
        (self.shared.wake)();
    }

    /// Returns whether a request or a job waits, or the program ends.
    pub fn wanted(&self) -> bool {
        let shared = &self.shared;
        shared.asked()
            || shared.checkpoint.is_full()
            || shared.loaded.is_full()
            || !self.queue.is_empty()
            || self.stopping()
    }

    /// Sends notes about faults of the device on this thread.
    pub fn tell_notes(&self) {
        crate::device::notes().into_iter().for_each(|note| self.send(Event::Note(note)));
    }

    pub fn stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }
}
