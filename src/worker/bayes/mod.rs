//! Two light threads beside the desk. The Bayes error of a shared-map world needs no device, so it waits neither behind
//! sampling nor behind jobs: the *quick* lane answers a dragged slider and a typed target, the *study* lane computes what
//! takes longer, a piece at a time. Each has threads of its own to spread work over, so that neither queues behind the
//! other's, or behind the desk's.

mod board;
mod compare;
mod figure1;
mod lane;
pub mod protocol;
mod quick;
mod ranking;
mod study;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use self::lane::Lane;
use self::protocol::Answer;
use super::priority::give_way;
use super::protocol::Event;
use super::shared::Shared;
use crate::error::panic_message;

pub use self::board::Board;

/// Starts both threads.
pub(super) fn start(shared: &Arc<Shared>, [quick, study]: [Receiver<()>; 2], events: &Sender<Event>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let begin = |name: &'static str, ringing, threads, sit: fn(&Lane)| {
        if let Err(error) = start_one(name, ringing, threads, sit, shared.clone(), events.clone()) {
            let text = format!("the system gave no thread to compute Bayes errors on: {error}");
            let _ = events.try_send(Event::Failed(text));
        }
    };
    begin("bayes", quick, cores, quick::sit);
    // Leaves a core to the quick one.
    begin("bayes study", study, (cores - 1).max(1), study::sit);
}

fn start_one(
    name: &'static str,
    ringing: Receiver<()>,
    threads: usize,
    sit: fn(&Lane),
    shared: Arc<Shared>,
    events: Sender<Event>,
) -> std::result::Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(move |i| format!("{name} {i}"));
    let pool = pool.start_handler(|_| give_way()).build().map_err(|error| error.to_string())?;
    let lane = Lane { shared, ringing, events, pool };
    let work = move || {
        give_way();
        survive(&lane, || sit(&lane));
    };
    std::thread::Builder::new().name(name.into()).spawn(work).map_err(|error| error.to_string())?;
    Ok(())
}

/// Runs `sitting` until it returns, again after every panic, which is told.
fn survive(lane: &Lane, sitting: impl Fn()) {
    while let Err(panic) = catch_unwind(AssertUnwindSafe(&sitting)) {
        let reason = panic_message(panic.as_ref());
        tracing::error!("a Bayes error lane panicked: {reason}");
        lane.send(Answer::Lost { reason: format!("the computation of a Bayes error failed inside: {reason}") });
        if lane.stopping() {
            return;
        }
    }
}
