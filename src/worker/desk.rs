//! The worker's thread: its loop, what it owns, and what happens when it falls.

mod idle;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use super::Shared;
use super::far::{Held, Pulse, instead};
use super::interactive::{FIRST_PIECE, Interactive};
use super::priority::give_way;
use super::protocol::{Event, Job, JobId, Outcome};
use crate::device::{Chosen, DeviceChoice, Losses, Moved, choose, explain, guarded};
use crate::error::{Error, Result, panic_message};
use crate::events::{Events, Progress, silent};
use crate::flow::Precision;
use crate::flow::weights::Weights;
use crate::oracle::folder::{self, OracleInfo};
use crate::oracle::strategies;
use crate::oracle::train::oracle_so_far;
use crate::oracle::world::World;

/// The worker's ends of all lines.
pub struct Line {
    pub shared: Arc<Shared>,
    pub queue: Receiver<(JobId, Job)>,
    pub ringing: Receiver<()>,
    pub events: Sender<Event>,
}

impl Line {
    /// Sends an event and wakes the reader. Waits while the channel is full; a vanished reader is no error.
    pub fn send(&self, event: Event) {
        let _ = self.events.send(event);
        (self.shared.wake)();
    }

    /// Whether anybody waits for anything, or the program ends.
    pub fn wanted(&self) -> bool {
        let shared = &self.shared;
        let looks = shared.inspect_request.is_full() || shared.evidence_request.is_full();
        let asked = shared.gallery_request.is_full() || looks;
        asked || shared.aside.is_full() || shared.handed.is_full() || !self.queue.is_empty() || self.stopping()
    }

    /// Tells what was done about faults of the device on this thread.
    pub fn tell_notes(&self) {
        crate::device::notes().into_iter().for_each(|note| self.send(Event::Note(note)));
    }

    pub fn stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }
}

/// An opened oracle. Its weights are in its world only: whoever needs them again reads them again.
pub struct Opened {
    pub name: String,
    pub info: OracleInfo,
    pub world: World,
    /// Whether its kernels are compiled, or need not be.
    prepared: bool,
    /// Whether its precision was told.
    measured: bool,
    /// Whether the ways of inverting its blocks were measured, or need not be.
    tuned: bool,
}

/// What the worker owns.
pub struct Desk {
    pub chosen: Chosen,
    pub opened: Option<Opened>,
    pub interactive: Interactive,
    /// Devices lost since all that the window asked for was there.
    losses: Losses,
}

impl Desk {
    /// Opens an oracle and tells so.
    pub fn open(&mut self, line: &Line, name: &str, events: &mut dyn Events<Progress>) -> Result<()> {
        let read = folder::read_watched(name, events)?;
        self.opened = Some(settle_world(line, &self.chosen, &self.interactive, name.to_owned(), read)?);
        Ok(())
    }

    /// Puts the open oracle on another device.
    pub fn move_to(&mut self, line: &Line, device: DeviceChoice) -> Result<()> {
        self.sit_at(line, choose(device)?)
    }

    fn sit_at(&mut self, line: &Line, chosen: Chosen) -> Result<()> {
        self.chosen = chosen;
        line.send(Event::Device(self.chosen.report.clone()));
        match self.opened.as_ref().map(|opened| opened.name.clone()) {
            Some(name) => self.open(line, &name, &mut silent()),
            None => Ok(()),
        }
    }

    /// Goes on at the device after a lost one: the open oracle moves there, and what the window waits for is begun again.
    pub fn move_on(&mut self, line: &Line, moved: Moved) -> Result<()> {
        line.tell_notes();
        self.interactive.put_back(&line.shared);
        self.sit_at(line, moved.chosen)
    }

    /// Does a piece of what the window asks for, or what nobody waits for; whether more is to be done.
    fn serve(&mut self, line: &Line, held: &Held) -> Result<bool> {
        // What is asked for of a device that is cut off waits for the next one.
        if self.is_cut_off() {
            return Ok(false);
        }
        let device = self.chosen.device.clone();
        let served = guarded(&device, || {
            self.prepare(line)?;
            let job_waits = || !line.queue.is_empty() || !held.is_empty() || line.shared.aside.is_full();
            let world = self.opened.as_ref().map(|opened| &opened.world);
            let busy = self.interactive.serve(line, world, &job_waits);
            if let Some(loss) = self.interactive.take_loss() {
                return Err(loss);
            }
            if !busy && self.interactive.served() {
                self.tell_precision(line)?;
                self.tune_sampling(line)?;
            }
            Ok(busy)
        });
        line.tell_notes();
        served
    }

    /// [`Self::serve`], on another device where this one was lost.
    fn serve_on(&mut self, line: &Line, held: &Held) -> bool {
        match self.serve(line, held) {
            Ok(busy) => {
                // A piece that succeeds is no proof: what loses the device may be the next, or what is done at rest.
                if !busy {
                    self.losses = Losses::default();
                }
                busy
            }
            Err(loss) => {
                let next = match loss {
                    Error::DeviceLost { .. } => self.losses.replace(&self.chosen, loss),
                    other => Err(other),
                };
                let settled = next.and_then(|moved| {
                    line.send(Event::Note(moved.sentence.clone()));
                    match self.move_on(line, moved) {
                        // Lost, too: the next one takes over, as long as there is one.
                        Err(again @ Error::DeviceLost { .. }) => {
                            self.interactive.lose(again);
                            Ok(())
                        }
                        settled => settled,
                    }
                });
                let told = settled.map_err(|error| explain(error, Some(self.chosen.report.used.choice)));
                // A connection that is gone is told once, by who connects again.
                if let Err(error) = &told
                    && !self.is_cut_off()
                {
                    line.send(Event::Failed(error.to_string()));
                }
                told.is_ok()
            }
        }
    }

    /// Opens the best epoch of a run, if that was asked for.
    fn step_aside(&mut self, line: &Line) {
        if let Some(opened) = open_so_far(line, &self.chosen, &self.interactive) {
            self.opened = Some(opened);
        }
    }
}

/// Builds a world and tells that it is open.
fn settle_world(
    line: &Line,
    chosen: &Chosen,
    interactive: &Interactive,
    name: String,
    (info, weights): (OracleInfo, Weights),
) -> Result<Opened> {
    let world = info.clone().build(weights, &chosen.device, Precision::F32, chosen.batch)?.world;
    line.shared.bayes.open(world.flow().shared_base());
    line.send(Event::Formats(world.flow().formats()));
    line.send(Event::Oracle(Arc::new(info.clone())));
    interactive.enter(&info.weights_sha256, chosen.report.used.choice);
    // What was measured before holds from the first picture on.
    strategies::recall(world.flow(), &info.weights_sha256, &chosen.report.used.label(), FIRST_PIECE);
    Ok(Opened { name, info, world, prepared: false, measured: false, tuned: false })
}

/// Opens the world of an experiment, which the window need not show.
pub fn world_beside(chosen: &Chosen, name: &str, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, World)> {
    let (info, weights) = folder::read_watched(name, events)?;
    let world = info.clone().build(weights, &chosen.device, Precision::F32, chosen.batch)?.world;
    let images = world.batch().next_power_of_two();
    strategies::recall(world.flow(), &info.weights_sha256, &chosen.report.used.label(), images);
    Ok((info, world))
}

/// Opens the best epoch of a run, if that was asked for; tells how it went.
pub fn open_so_far(line: &Line, chosen: &Chosen, interactive: &Interactive) -> Option<Opened> {
    let (id, run) = line.shared.aside.take()?;
    line.send(Event::JobStarted { id });
    let open = || -> Result<Opened> {
        let name = oracle_so_far(&run)?.display().to_string();
        let read = folder::read(&name)?;
        settle_world(line, chosen, interactive, name, read)
    };
    let (opened, outcome) = match open() {
        Ok(opened) => {
            let done = Outcome::Done(format!("{} is open", opened.info.name));
            (Some(opened), done)
        }
        // It is opened on the next device.
        Err(loss @ Error::DeviceLost { .. }) => {
            interactive.lose(loss);
            line.shared.aside.offer((id, run));
            return None;
        }
        Err(error) => (None, Outcome::Failed(error.to_string())),
    };
    line.send(Event::JobEnded { id, outcome });
    opened
}

/// Runs until the handle is dropped. A panic ends the desk, not the thread: a new desk opens the same oracle.
pub fn work(line: &Line, device: DeviceChoice, oracle: String) {
    give_way();
    let mut again = (device, oracle);
    survive(line, |running| sit(line, &mut again, running));
}

/// Runs `sitting` until it returns, again after every panic, which is told as the failure of the running job.
fn survive(line: &Line, mut sitting: impl FnMut(&mut Option<JobId>)) {
    loop {
        let mut running: Option<JobId> = None;
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| sitting(&mut running))) else { return };
        let reason = panic_message(panic.as_ref());
        tracing::error!("the worker panicked: {reason}");
        if let Some(id) = running {
            let outcome = Outcome::Failed(format!("the computation failed inside: {reason}"));
            line.shared.forget(id);
            line.send(Event::JobEnded { id, outcome });
        }
        line.send(Event::Restarted { reason });
        if line.stopping() {
            return;
        }
    }
}

/// One desk's life. `again` is kept at the device and oracle in use, for the desk after a fall.
fn sit(line: &Line, again: &mut (DeviceChoice, String), running: &mut Option<JobId>) {
    let (mut pulse, mut held) = (Pulse::default(), Held::default());
    let Some(chosen) = settle(line, again, &mut held) else { return };
    let mut desk = Desk { chosen, opened: None, interactive: Interactive::default(), losses: Losses::default() };
    if let Err(error) = desk.open(line, &again.1, &mut silent()) {
        line.send(Event::Failed(explain(error, Some(desk.chosen.report.used.choice)).to_string()));
    }
    while !line.stopping() {
        desk.come_back(line, &again.1, &mut held);
        desk.step_aside(line);
        let busy = desk.serve_on(line, &held);
        let wait = match busy || desk.is_cut_off() {
            true => Duration::ZERO,
            false => pulse.beat(line, desk.chosen.report.used.choice),
        };
        let Ok(job) = held.next(line, wait) else { return };
        if let Some((id, job)) = job {
            pulse.pass();
            *running = Some(id);
            super::jobs::run(line, &mut desk, id, job);
            *running = None;
        }
        if let Some(opened) = &desk.opened {
            *again = (desk.chosen.report.asked, opened.name.clone());
        }
    }
}

/// The device asked for, or the CPU with the reason.
fn settle(line: &Line, again: &mut (DeviceChoice, String), held: &mut Held) -> Option<Chosen> {
    let chosen = choose(again.0).or_else(|error: Error| {
        if matches!(again.0, DeviceChoice::Remote(_)) {
            return instead(line, again.0, error, held);
        }
        line.send(Event::Failed(format!("{error}. Computing on the CPU instead")));
        again.0 = DeviceChoice::Cpu;
        choose(DeviceChoice::Cpu)
    });
    match chosen {
        Ok(chosen) => {
            line.send(Event::Device(chosen.report.clone()));
            Some(chosen)
        }
        Err(error) => {
            line.send(Event::Failed(error.to_string()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use crossbeam_channel::bounded;

    use super::*;

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
        let line = Line {
            shared: Arc::new(Shared::new([bell.clone(), bell], super::super::bayes::Board::new().0, wake)),
            queue,
            ringing,
            events,
        };
        let mut sittings = 0;
        survive(&line, |running| {
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
