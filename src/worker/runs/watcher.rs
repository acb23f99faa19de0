//! The thread that looks at run folders.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, select};

use super::{Look, WatchRequest, look};
use crate::error::panic_message;
use crate::worker::protocol::Event;
use crate::worker::shared::Shared;

/// Time between two looks: network file systems send no events.
const EVERY: Duration = Duration::from_secs(2);
/// Time between two looks where nothing is watched; a new request rings.
const NEVER: Duration = Duration::from_secs(3600);

/// Starts the thread.
pub fn start(shared: &Arc<Shared>, notified: Receiver<()>, events: &Sender<Event>) {
    let watcher = Watcher { shared: shared.clone(), notified, events: events.clone() };
    let work = move || {
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| watcher.watch())) {
            let reason = panic_message(panic.as_ref());
            tracing::error!("the run watcher panicked: {reason}");
            watcher.send(Event::Failed(format!("a run folder could not be looked at: {reason}")));
            // What made it fall is not looked at again before somebody asks anew.
            watcher.shared.watch.take();
        }
    };
    if let Err(error) = std::thread::Builder::new().name("run watcher".into()).spawn(work) {
        let _ = events.try_send(Event::Failed(format!("the system gave no thread to watch runs on: {error}")));
    }
}

struct Watcher {
    shared: Arc<Shared>,
    notified: Receiver<()>,
    events: Sender<Event>,
}

impl Watcher {
    fn send(&self, event: Event) {
        let _ = self.events.send(event);
        (self.shared.wake)();
    }

    /// Looks until the program ends.
    fn watch(&self) {
        let mut request = WatchRequest::default();
        let mut told: Vec<Look> = Vec::new();
        loop {
            let wait = if request.folders.is_empty() { NEVER } else { EVERY };
            select! {
                recv(self.notified) -> notifier => if notifier.is_err() { return },
                default(wait) => {}
            }
            if self.shared.stopping.load(Ordering::Relaxed) {
                return;
            }
            if let Some(newer) = self.shared.watch.take() {
                request = newer;
                // Who comes back to a run is told again, even if nothing has changed.
                told.retain(|look| request.folders.contains(&look.folder));
            }
            self.round(&request, &mut told);
        }
    }

    fn round(&self, request: &WatchRequest, told: &mut Vec<Look>) {
        for folder in &request.folders {
            if self.shared.watch.is_full() || self.shared.stopping.load(Ordering::Relaxed) {
                return;
            }
            let cells = request.cells.as_ref().filter(|(of, _)| of == folder).map_or(&[][..], |(_, cells)| cells);
            let at = told.iter().position(|look| look.folder == *folder);
            let before = at.and_then(|at| told[at].found.as_ref().ok());
            let seen = look(folder, cells, request.all_cells, before);
            if at.is_some_and(|at| seen.is_same(&told[at])) {
                continue;
            }
            match at {
                Some(at) => told[at] = seen.clone(),
                None => told.push(seen.clone()),
            }
            self.send(Event::Looked(Box::new(seen)));
        }
    }
}
