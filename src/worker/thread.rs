//! The worker's thread: its loop, and what happens when it falls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::channels::Channels;
use super::desk::Desk;
use super::far::{Held, Pulse, instead};
use super::jobs;
use super::priority::give_way;
use super::protocol::{Event, JobId, Outcome};
use crate::device::{DeviceChoice, OpenDevice, choose, explain};
use crate::error::{Error, panic_message};
use crate::events::silent;

/// Runs until the handle is dropped. A panic ends the desk, not the thread: a new desk opens the same oracle.
pub fn work(channels: &Channels, device: DeviceChoice, oracle: String) {
    give_way();
    let mut again = (device, oracle);
    survive(channels, |running| sit(channels, &mut again, running));
}

/// Runs `sitting` until it returns, again after every panic, which is told as the failure of the running job.
fn survive(channels: &Channels, mut sitting: impl FnMut(&mut Option<JobId>)) {
    loop {
        let mut running: Option<JobId> = None;
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| sitting(&mut running))) else { return };
        let reason = panic_message(panic.as_ref());
        tracing::error!("the worker panicked: {reason}");
        if let Some(id) = running {
            let outcome = Outcome::Failed(format!("the computation failed inside: {reason}"));
            channels.shared.forget(id);
            channels.send(Event::JobEnded { id, outcome });
        }
        channels.send(Event::Restarted { reason });
        if channels.stopping() {
            return;
        }
    }
}

/// One desk's life. `again` is kept at the device and oracle in use, for the desk after a fall.
fn sit(channels: &Channels, again: &mut (DeviceChoice, String), running: &mut Option<JobId>) {
    let (mut pulse, mut held) = (Pulse::default(), Held::default());
    let Some(chosen) = settle(channels, again, &mut held) else { return };
    let mut desk = Desk::new(chosen);
    if let Err(error) = desk.open(channels, &again.1, &mut silent()) {
        channels.send(Event::Failed(explain(error, Some(desk.chosen.report.used.choice)).to_string()));
    }
    while !channels.stopping() {
        desk.come_back(channels, &again.1, &mut held);
        desk.step_aside(channels);
        let busy = desk.serve_on(channels, &held);
        let wait = match busy || desk.is_cut_off() {
            true => Duration::ZERO,
            false => pulse.beat(channels, desk.chosen.report.used.choice),
        };
        let Ok(job) = held.next(channels, wait) else { return };
        if let Some((id, job)) = job {
            pulse.pass();
            *running = Some(id);
            jobs::run(channels, &mut desk, id, job);
            *running = None;
        }
        if let Some(opened) = &desk.opened {
            *again = (desk.chosen.report.asked, opened.name.clone());
        }
    }
}

/// The device asked for, or the CPU with the reason.
fn settle(channels: &Channels, again: &mut (DeviceChoice, String), held: &mut Held) -> Option<OpenDevice> {
    let chosen = choose(again.0).or_else(|error: Error| {
        if matches!(again.0, DeviceChoice::Remote(_)) {
            return instead(channels, again.0, error, held);
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
    use crate::worker::bayes::Board;
    use crate::worker::shared::Shared;

    #[test]
    fn a_panic_is_told_and_the_work_goes_on() {
        let (bell, ringing) = bounded(1);
        let (_jobs, queue) = bounded(1);
        let (events, told) = bounded(8);
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = woken.clone();
        let wake = Arc::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let channels = Channels {
            shared: Arc::new(Shared::new([bell.clone(), bell], Board::new().0, wake)),
            queue,
            ringing,
            events,
        };
        let mut sittings = 0;
        survive(&channels, |running| {
            sittings += 1;
            if sittings == 1 {
                *running = Some(7);
                panic!("the device was lost");
            }
        });
        assert_eq!(sittings, 2);
        let lost = |text: &str| text.contains("the device was lost");
        assert!(matches!(told.try_recv(), Ok(Event::JobEnded { id: 7, outcome: Outcome::Failed(why) }) if lost(&why)));
        assert!(matches!(told.try_recv(), Ok(Event::Restarted { reason }) if lost(&reason)));
        assert_eq!(woken.load(Ordering::Relaxed), 2);
    }
}
