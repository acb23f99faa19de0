//! The worker's thread: its loop, and what happens when it falls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::channels::Channels;
use super::device_thread::DeviceThread;
use super::jobs;
use super::priority::lower_priority;
use super::protocol::{Event, Outcome};
use super::remote_device::{Heartbeat, reconnect_or_cpu};
use crate::device::{DeviceChoice, OpenDevice, choose, explain};
use crate::error::{Error, panic_message};
use crate::events::silent;

/// Falls in a row after which the oracle is not opened again, and after which the thread ends.
const UNTIL_CLOSED: usize = 3;
const UNTIL_ENDED: usize = 6;
/// A thread that has run for so long falls for the first time again.
const STEADY: Duration = Duration::from_secs(600);

/// Runs until the handle is dropped. After a panic a new [`DeviceThread`] opens the same oracle.
pub fn work(channels: &Channels, device: DeviceChoice, oracle: String) {
    lower_priority();
    let mut again = (device, oracle);
    restart_on_panic(channels, |falls| run(channels, &mut again, falls));
}

/// Calls `run` until it returns, again after every panic, which fails the job that computed; those
/// it was carried out above begin again. `run` gets how often it fell in a row without a job, by the device
/// or the oracle alone, which would go on for ever; it puts that back to 0 where these are others.
fn restart_on_panic(channels: &Channels, mut run: impl FnMut(&mut usize)) {
    let mut falls = 0;
    loop {
        let begun = Instant::now();
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&mut falls))) else { return };
        let reason = panic_message(panic.as_ref());
        tracing::error!("the worker panicked: {reason}");
        let job = channels.jobs.fell();
        if let Some(id) = job {
            let outcome = Outcome::Failed(format!("the computation failed inside: {reason}"));
            channels.shared.forget(id);
            channels.send(Event::JobEnded { id, outcome });
        }
        falls = match job {
            Some(_) => 0,
            None if begun.elapsed() > STEADY => 1,
            None => falls + 1,
        };
        if falls == UNTIL_ENDED {
            return give_up(channels, falls);
        }
        channels.send(Event::Restarted { reason });
        if channels.stopping() {
            return;
        }
    }
}

/// Says that the thread ends, and fails the jobs that wait for it.
fn give_up(channels: &Channels, falls: usize) {
    let told = format!("the computation failed inside {falls} times in a row and is given up: start the program again");
    for entry in channels.drain_jobs() {
        channels.shared.forget(entry.id);
        // Of one that was cancelled meanwhile it has been told.
        if entry.control.take() {
            channels.send(Event::JobEnded { id: entry.id, outcome: Outcome::Failed(told.clone()) });
        }
    }
    channels.send(Event::Failed(told));
}

/// The loop of the thread. `again` holds the device and the oracle in use, for the run after a
/// panic; after so many `falls` in a row the oracle stays closed.
fn run(channels: &Channels, again: &mut (DeviceChoice, String), falls: &mut usize) {
    let mut heartbeat = Heartbeat::default();
    let Some(chosen) = choose_or_cpu(channels, again) else { return };
    let mut thread = DeviceThread::new(chosen);
    if *falls >= UNTIL_CLOSED {
        let told = format!(
            "the computation failed inside {falls} times in a row with {}: it is not opened again. Choose another oracle or another \
             device",
            again.1
        );
        channels.send(Event::Failed(told));
    } else if let Err(error) = thread.open(channels, &again.1, &mut silent()) {
        channels.send(Event::Failed(explain(error, Some(thread.chosen.report.used.choice)).to_string()));
    }
    while !channels.stopping() {
        thread.reconnect(channels, &again.1);
        thread.open_checkpoint_if_asked(channels);
        let busy = thread.serve_or_switch(channels);
        let wait = match busy || thread.is_cut_off() {
            true => Duration::ZERO,
            false => {
                let due = thread.interactive.reference_due();
                heartbeat.tick(channels, thread.chosen.report.used.choice).min(due)
            }
        };
        let waiting = channels.next_job();
        channels.tell_waits();
        if waiting.is_none() && channels.wait(wait).is_err() {
            return;
        }
        if let Some(job) = waiting.or_else(|| channels.next_job()) {
            heartbeat.pass();
            jobs::run(channels, &mut thread, job);
        }
        if let Some(opened) = &thread.opened {
            let now = (thread.chosen.report.asked, opened.name.clone());
            if now != *again {
                (*again, *falls) = (now, 0);
            }
        }
    }
}

/// The device asked for, or the CPU with the reason.
fn choose_or_cpu(channels: &Channels, again: &mut (DeviceChoice, String)) -> Option<OpenDevice> {
    let chosen = choose(again.0).or_else(|error: Error| {
        if matches!(again.0, DeviceChoice::Remote(_)) {
            return reconnect_or_cpu(channels, again.0, error);
        }
        channels.send(Event::Failed(format!("{error}. Computing on the CPU instead")));
        again.0 = DeviceChoice::Cpu;
        choose(DeviceChoice::Cpu)
    });
    match chosen {
        Ok(chosen) => {
            channels.send(Event::Device(chosen.report.clone()));
            Some(chosen)
        }
        Err(error) => {
            channels.send(Event::Failed(error.to_string()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crossbeam_channel::bounded;

    use super::*;
    use crate::worker::bayes::RequestSlots;
    use crate::worker::channels::tests::alone;
    use crate::worker::protocol::Job;
    use crate::worker::queue::{Entry, Queue};
    use crate::worker::shared::Shared;

    #[test]
    fn a_panic_is_told_and_the_work_goes_on() {
        let (notifier, notified) = bounded(1);
        let (_jobs, queue) = bounded(1);
        let (events, told) = bounded(8);
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = woken.clone();
        let wake = Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let channels = Channels {
            shared: Arc::new(Shared::new([notifier.clone(), notifier], RequestSlots::new().0, wake)),
            queue,
            notified,
            events,
            jobs: Queue::default(),
        };
        let mut runs = 0;
        restart_on_panic(&channels, |falls| {
            assert_eq!(*falls, 0, "a job fell, not the thread alone");
            runs += 1;
            if runs == 1 {
                let job = Job::OpenOracle("mnist".into());
                channels.jobs.begin(Entry::new(7, job, channels.shared.control(7)));
                panic!("the device was lost");
            }
        });
        assert_eq!(runs, 2);
        let lost = |text: &str| text.contains("the device was lost");
        assert!(matches!(told.try_recv(), Ok(Event::JobEnded { id: 7, outcome: Outcome::Failed(why) }) if lost(&why)));
        assert!(matches!(told.try_recv(), Ok(Event::Restarted { reason }) if lost(&reason)));
        assert_eq!(woken.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_falls_again_and_again_is_given_up_and_told() {
        let (channels, told) = alone();
        // One is held, of the other it was told that it is cancelled.
        let [held, cancelled] = [7, 8].map(|id| channels.shared.control(id));
        held.paused.store(true, Ordering::Relaxed);
        assert!(cancelled.take());
        for (id, control) in [(7, held), (8, cancelled)] {
            channels.jobs.hold(Entry::new(id, Job::OpenOracle("mnist".into()), control));
        }
        let mut falls = Vec::new();
        restart_on_panic(&channels, |before| {
            falls.push(*before);
            if falls.len() == 3 {
                // Another oracle was opened, and falls as well.
                *before = 0;
            }
            panic!("no world can be built");
        });
        assert_eq!(falls, (0..3).chain(1..UNTIL_ENDED).collect::<Vec<_>>());
        let told: Vec<Event> = told.try_iter().collect();
        let restarts = told.iter().filter(|event| matches!(event, Event::Restarted { .. })).count();
        assert_eq!(restarts, falls.len() - 1, "nobody asks a thread that has ended");
        let ended = told.iter().filter_map(|event| match event {
            Event::JobEnded { id, outcome: Outcome::Failed(_) } => Some(*id),
            _ => None,
        });
        assert_eq!(ended.collect::<Vec<_>>(), [7]);
        let last = told.last();
        assert!(matches!(&last, Some(Event::Failed(why)) if why.contains("6 times in a row")), "{last:?}");
    }
}
