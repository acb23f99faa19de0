//! The worker's ends of all channels.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvError, Sender, select};

use super::protocol::{Event, JobId};
use super::queue::{Entry, Queue, Submitted};
use super::shared::Shared;

/// The worker's ends of all channels.
pub struct Channels {
    pub shared: Arc<Shared>,
    /// Jobs on their way from the handle.
    pub queue: Receiver<(JobId, Submitted)>,
    /// Jobs that have come.
    pub jobs: Queue,
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
            || shared.checkpoint_waits()
            || shared.loaded.is_full()
            || !self.queue.is_empty()
            || self.stopping()
    }

    /// Takes in the jobs that have been submitted.
    fn take_in(&self) {
        while let Ok(submitted) = self.queue.try_recv() {
            self.hold(submitted);
        }
    }

    fn hold(&self, (id, (job, world)): (JobId, Submitted)) {
        self.jobs.hold(Entry::new(id, job, self.shared.control(id)).within(world));
    }

    /// Takes the next job that may begin now, if there is one.
    pub fn next_job(&self) -> Option<Entry> {
        self.take_in();
        self.jobs.next()
    }

    /// Takes all jobs that wait, also those that are held: none of them will begin.
    pub fn drain_jobs(&self) -> Vec<Entry> {
        self.take_in();
        self.jobs.drain()
    }

    /// Whether a job waits that may begin now.
    pub fn job_waits(&self) -> bool {
        self.take_in();
        self.jobs.is_ready()
    }

    /// Waits until a job or a notification comes, at most so long.
    ///
    /// # Errors
    /// When no job will come any more.
    pub fn wait(&self, most: Duration) -> Result<(), RecvError> {
        select! {
            recv(self.queue) -> job => self.hold(job?),
            recv(self.notified) -> _ => {}
            default(most) => {}
        }
        Ok(())
    }

    /// Tells which jobs wait for which, where that has changed.
    pub fn tell_waits(&self) {
        self.jobs.news().into_iter().for_each(|(id, behind)| self.send(Event::JobWaits { id, behind }));
    }

    /// Sends notes about faults of the device on this thread.
    pub fn tell_notes(&self) {
        crate::device::notes().into_iter().for_each(|note| self.send(Event::Note(note)));
    }

    pub fn stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use crossbeam_channel::bounded;

    use super::*;
    use crate::worker::bayes::RequestSlots;

    /// Channels without a handle, and the end to which events come.
    pub fn alone() -> (Channels, Receiver<Event>) {
        let ((notifier, notified), (_, queue), (events, told)) = (bounded(1), bounded(1), bounded(16));
        let shared = Shared::new([notifier.clone(), notifier], RequestSlots::new().0, Arc::new(|| {}));
        (Channels { shared: Arc::new(shared), queue, jobs: Queue::default(), notified, events }, told)
    }
}
