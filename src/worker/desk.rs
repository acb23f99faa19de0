//! The worker's thread: its loop, what it owns, and what happens when it falls.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use super::Shared;
use super::far::{Held, Pulse, instead};
use super::interactive::{FIRST_PIECE, Interactive};
use super::protocol::{Event, Job, JobId, Outcome};
use crate::device::{Chosen, DeviceChoice, choose, explain};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Precision;
use crate::flow::weights::Weights;
use crate::oracle::folder::{self, OracleInfo};
use crate::oracle::train::oracle_so_far;
use crate::oracle::world::{Settings, World};
use crate::oracle::{precision, strategies};

/// Samples of a class-map world on which its precision is measured.
const MEASURED: usize = 2;
/// A measurement in 64 bits that costs more than this is left out: nothing else is served meanwhile.
const MEASURABLE_FLOP: f64 = 5e10;

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

    pub fn stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }
}

/// An opened oracle. Its weights are in its world only: whoever needs them again reads them again.
pub struct Opened {
    pub name: String,
    pub info: OracleInfo,
    pub world: World,
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
        self.chosen = choose(device)?;
        line.send(Event::Device(self.chosen.report.clone()));
        match self.opened.take() {
            Some(Opened { name, .. }) => self.open(line, &name, &mut silent()),
            None => Ok(()),
        }
    }

    /// Measures the precision of the open oracle, once, when nobody waits for anything else.
    fn tell_precision(&mut self, line: &Line) {
        let Some(opened) = self.opened.as_mut().filter(|opened| !opened.measured) else { return };
        opened.measured = true;
        let measured = if opened.world.flow().class_map().is_some() {
            // Samples are dear here: two of those on show must do, and only where 64 bits do not take minutes.
            let x = self.interactive.some_images(MEASURED);
            let flop = opened.info.architecture.flop_per_image() * (MEASURED * opened.info.class_names.len()) as f64;
            if x.is_empty() || flop > MEASURABLE_FLOP {
                return;
            }
            let settings = Settings::default_for(opened.info.class_names.len());
            let scores = opened.world.flow().score(&x);
            let read = folder::read(&opened.name);
            scores.and_then(|s| precision::compare(&opened.info, read?.1, &x, &s, &settings))
        } else {
            folder::read(&opened.name).and_then(|(info, weights)| precision::measure(&info, weights, &opened.world))
        };
        match measured {
            Ok(report) => line.send(Event::Precision(report)),
            Err(error) => tracing::warn!("the precision of {} could not be measured: {error}", opened.name),
        }
    }

    /// Measures how the blocks of a class-map world are best inverted on this device, once for a model and a device, when
    /// nobody waits for anything else; stops as soon as somebody does.
    fn tune_sampling(&mut self, line: &Line) {
        let Some(opened) = self.opened.as_mut().filter(|opened| !opened.tuned) else { return };
        let mut undisturbed = |_: Progress| match line.wanted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let (flow, device) = (opened.world.flow(), self.chosen.report.used.label());
        let images = FIRST_PIECE;
        match strategies::adopt(flow, &opened.info.weights_sha256, &device, images, &mut undisturbed) {
            Err(Error::Cancelled) => return,
            Ok(measured) => {
                if let Some(measured) = measured {
                    line.send(Event::Note(format!("Sampling {}: {}", opened.info.name, measured.describe())));
                }
            }
            Err(error) => tracing::warn!("the ways of sampling {} could not be measured: {error}", opened.name),
        }
        opened.tuned = true;
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
    line.send(Event::Oracle(Arc::new(info.clone())));
    interactive.enter(&info.weights_sha256, chosen.report.used.choice);
    // What was measured before holds from the first picture on.
    if let Some(flow) = world.flow().class_map()
        && let Some(known) = strategies::remembered(&info.weights_sha256, &chosen.report.used.label(), FIRST_PIECE)
    {
        flow.set_strategies(known.strategies());
    }
    Ok(Opened { name, info, world, measured: false, tuned: false })
}

/// Opens the world of an experiment, which the window need not show.
pub fn world_beside(chosen: &Chosen, name: &str, events: &mut dyn Events<Progress>) -> Result<(OracleInfo, World)> {
    let (info, weights) = folder::read_watched(name, events)?;
    let world = info.clone().build(weights, &chosen.device, Precision::F32, chosen.batch)?.world;
    let images = world.batch().next_power_of_two();
    let known = strategies::remembered(&info.weights_sha256, &chosen.report.used.label(), images);
    if let (Some(flow), Some(known)) = (world.flow().class_map(), known) {
        flow.set_strategies(known.strategies());
    }
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
        Err(error) => (None, Outcome::Failed(error.to_string())),
    };
    line.send(Event::JobEnded { id, outcome });
    opened
}

/// Runs until the handle is dropped. A panic ends the desk, not the thread: a new desk opens the same oracle.
pub fn work(line: &Line, device: DeviceChoice, oracle: String) {
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

/// What a panic said.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// One desk's life. `again` is kept at the device and oracle in use, for the desk after a fall.
fn sit(line: &Line, again: &mut (DeviceChoice, String), running: &mut Option<JobId>) {
    let (mut pulse, mut held) = (Pulse::default(), Held::default());
    let Some(chosen) = settle(line, again, &mut held) else { return };
    let mut desk = Desk { chosen, opened: None, interactive: Interactive::default() };
    if let Err(error) = desk.open(line, &again.1, &mut silent()) {
        line.send(Event::Failed(explain(error, Some(desk.chosen.report.used.choice)).to_string()));
    }
    while !line.stopping() {
        desk.come_back(line, &again.1, &mut held);
        desk.step_aside(line);
        let job_waits = || !line.queue.is_empty() || !held.is_empty() || line.shared.aside.is_full();
        // What was asked for of a device that is cut off waits for the next one.
        let opened = desk.opened.as_ref().filter(|_| !desk.is_cut_off());
        let busy = desk.interactive.serve(line, opened.map(|opened| &opened.world), &job_waits);
        if !busy && desk.interactive.served() {
            desk.tell_precision(line);
            desk.tune_sampling(line);
        }
        let wait = match busy {
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
