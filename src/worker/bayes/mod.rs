//! Two threads for Bayes errors. A shared-map world needs no device for them, so they wait neither
//! for sampling nor for jobs. The *quick* thread answers a dragged slider and a typed target; the
//! *study* thread computes what takes longer, a piece at a time. Each has a thread pool of its own.

mod channel;
mod compare;
mod figure1;
pub mod protocol;
mod quick;
mod ranking;
mod request_slots;
mod study;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use self::channel::Channel;
use self::protocol::Answer;
use super::priority::lower_priority;
use super::protocol::Event;
use super::shared::Shared;
use crate::error::panic_message;

pub use self::request_slots::RequestSlots;

/// Starts both threads.
pub(super) fn start(shared: &Arc<Shared>, [quick, study]: [Receiver<()>; 2], events: &Sender<Event>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let begin = |name: &'static str, notified, threads, run: fn(&Channel)| {
        if let Err(error) = start_one(name, notified, threads, run, shared.clone(), events.clone()) {
            let text = format!("the system gave no thread to compute Bayes errors on: {error}");
            let _ = events.try_send(Event::Failed(text));
        }
    };
    begin("bayes", quick, cores, quick::run);
    // Leaves a core to the quick one.
    begin("bayes study", study, (cores - 1).max(1), study::run);
}

fn start_one(
    name: &'static str,
    notified: Receiver<()>,
    threads: usize,
    run: fn(&Channel),
    shared: Arc<Shared>,
    events: Sender<Event>,
) -> std::result::Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(move |i| format!("{name} {i}"));
    let pool = pool.start_handler(|_| lower_priority()).build().map_err(|error| error.to_string())?;
    let channel = Channel { shared, notified, events, pool };
    let work = move || {
        lower_priority();
        restart_on_panic(&channel, || run(&channel));
    };
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(|error| error.to_string())?;
    Ok(())
}

/// Calls `run` until it returns, again after every panic, which is reported.
fn restart_on_panic(channel: &Channel, run: impl Fn()) {
    while let Err(panic) = catch_unwind(AssertUnwindSafe(&run)) {
        let reason = panic_message(panic.as_ref());
        tracing::error!("a Bayes error channel panicked: {reason}");
        channel.send(Answer::Lost { reason: format!("the computation of a Bayes error failed inside: {reason}") });
        if channel.stopping() {
            return;
        }
    }
}
