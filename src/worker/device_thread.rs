//! What the worker's thread owns: the device, the open oracle, and requests under way.

mod idle;
mod reconnect;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::channels::Channels;
use super::interactive::{FIRST_PIECE, Interactive};
use super::protocol::{Event, JobId, Outcome};
use super::shared::{Control, Shared};
use crate::device::{DeviceFailures, OpenDevice, Replacement, explain, guarded};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Precision;
use crate::flow::weights::Weights;
use crate::oracle::folder::{self, OracleInfo};
use crate::oracle::strategies;
use crate::oracle::train::oracle_so_far;
use crate::oracle::world::World;

/// An opened oracle. Its weights are in its world only; to use them again means to read them again.
pub struct Opened {
    pub name: String,
    pub info: OracleInfo,
    pub world: World,
    /// Whether its kernels are compiled, or need not be.
    prepared: bool,
    /// Whether its precision was reported.
    measured: bool,
    /// Whether the ways of inverting its blocks were measured, or need not be.
    tuned: bool,
}

/// What the worker owns.
pub struct DeviceThread {
    pub chosen: OpenDevice,
    pub opened: Option<Opened>,
    pub interactive: Interactive,
    /// Devices lost since all that the window asked for was there.
    losses: DeviceFailures,
}

impl DeviceThread {
    /// A device on which nothing is open yet.
    pub fn new(chosen: OpenDevice) -> Self {
        Self { chosen, opened: None, interactive: Interactive::default(), losses: DeviceFailures::default() }
    }

    /// Opens an oracle and reports it.
    pub fn open(&mut self, channels: &Channels, name: &str, events: &mut dyn Events<Progress>) -> Result<()> {
        let read = folder::read_watched(name, events)?;
        self.opened = Some(build_world(channels, &self.chosen, &self.interactive, name.to_owned(), read)?);
        Ok(())
    }

    /// Puts the open oracle on another device. Where it cannot be built there, everything stays as it
    /// was.
    pub fn switch_device(&mut self, channels: &Channels, chosen: OpenDevice) -> Result<()> {
        let moved = self.opened.as_ref().map(|opened| build_elsewhere(&chosen, &opened.name)).transpose()?;
        self.chosen = chosen;
        channels.send(Event::Device(self.chosen.report.clone()));
        if let Some(moved) = moved {
            announce(channels, &self.chosen, &self.interactive, &moved);
            self.opened = Some(moved);
        }
        Ok(())
    }

    /// Switches to the replacement device, reloads the oracle and queues pending requests again. An
    /// oracle that is no longer there is closed: its world was on the device that was lost.
    pub fn resume_on(&mut self, channels: &Channels, moved: Replacement) -> Result<()> {
        channels.tell_notes();
        self.interactive.requeue(&channels.shared);
        self.chosen = moved.chosen;
        channels.send(Event::Device(self.chosen.report.clone()));
        let Some(name) = self.opened.as_ref().map(|opened| opened.name.clone()) else { return Ok(()) };
        let done = self.open(channels, &name, &mut silent());
        if done.as_ref().is_err_and(|error| !matches!(error, Error::DeviceLost { .. })) {
            self.opened = None;
        }
        done
    }

    /// Does a piece of a request, or of the work for idle times. Returns whether more waits.
    fn serve(&mut self, channels: &Channels) -> Result<bool> {
        // What is asked for of a device that is cut off waits for the next one.
        if self.is_cut_off() {
            return Ok(false);
        }
        let device = self.chosen.device.clone();
        let served = guarded(&device, || {
            self.prepare(channels)?;
            let job_waits = || channels.job_waits() || channels.shared.checkpoint_waits();
            let world = self.opened.as_ref().map(|opened| &opened.world);
            let busy = self.interactive.serve(channels, world, &job_waits);
            if let Some(loss) = self.interactive.take_loss() {
                return Err(loss);
            }
            if !busy && self.interactive.served() {
                self.tell_precision(channels)?;
                self.tune_sampling(channels)?;
            }
            if busy {
                return Ok(true);
            }
            let world = self.opened.as_ref().map(|opened| &opened.world);
            let more = self.interactive.refer(channels, world, (&job_waits, usize::MAX));
            self.interactive.take_loss().map_or(Ok(more), Err)
        });
        channels.tell_notes();
        served
    }

    /// [`Self::serve`]; switches to another device where this one was lost.
    pub fn serve_or_switch(&mut self, channels: &Channels) -> bool {
        match self.serve(channels) {
            Ok(busy) => {
                // A piece that succeeds proves nothing: the next may lose the device again.
                if !busy {
                    self.losses = DeviceFailures::default();
                }
                busy
            }
            Err(loss) => {
                let next = match loss {
                    Error::DeviceLost { .. } => self.losses.replace(&self.chosen, loss),
                    other => Err(other),
                };
                let settled = next.and_then(|moved| {
                    channels.send(Event::Note(moved.sentence.clone()));
                    match self.resume_on(channels, moved) {
                        // Lost, too: the next one takes over, as long as there is one.
                        Err(again @ Error::DeviceLost { .. }) => {
                            self.interactive.lose(again);
                            Ok(())
                        }
                        settled => settled,
                    }
                });
                let told = settled.map_err(|error| explain(error, Some(self.chosen.report.used.choice)));
                // A connection that is gone is reported once, when it is tried again.
                if let Err(error) = &told
                    && !self.is_cut_off()
                {
                    channels.send(Event::Failed(error.to_string()));
                }
                told.is_ok()
            }
        }
    }

    /// Opens the best epoch of a run, if that was asked for.
    pub fn open_checkpoint_if_asked(&mut self, channels: &Channels) {
        if let Some(opened) = open_checkpoint(channels, &self.chosen, &self.interactive) {
            self.opened = Some(opened);
        }
    }
}

/// Builds a world and reports that it is open.
pub fn build_world(
    channels: &Channels,
    chosen: &OpenDevice,
    interactive: &Interactive,
    name: String,
    (info, weights): (OracleInfo, Weights),
) -> Result<Opened> {
    let opened = build(chosen, name, (info, weights))?;
    announce(channels, chosen, interactive, &opened);
    Ok(opened)
}

fn build(chosen: &OpenDevice, name: String, (info, weights): (OracleInfo, Weights)) -> Result<Opened> {
    let world = info.clone().build(weights, &chosen.device, Precision::F32, chosen.batch)?.world;
    Ok(Opened { name, info, world, prepared: false, measured: false, tuned: false })
}

/// Builds a world on a device that is not in use yet: if that is lost, the one in use is not.
fn build_elsewhere(chosen: &OpenDevice, name: &str) -> Result<Opened> {
    let read = folder::read(name)?;
    guarded(&chosen.device, || build(chosen, name.to_owned(), read)).map_err(|error| match error {
        Error::DeviceLost { device, why } => Error::Device(format!("{device} was lost ({why})")),
        other => other,
    })
}

/// Reports that a world is open.
fn announce(channels: &Channels, chosen: &OpenDevice, interactive: &Interactive, opened: &Opened) {
    let Opened { name, info, world, .. } = opened;
    channels.shared.bayes.open(world.flow().shared_base());
    channels.send(Event::Formats(world.flow().formats()));
    channels.send(Event::Oracle { name: name.clone(), info: Arc::new(info.clone()) });
    interactive.enter(&info.world_id(), chosen.report.used.choice, &chosen.report.used.label());
    // What was measured before holds from the first picture on.
    strategies::recall(world.flow(), &info.weights_sha256, &chosen.report.used.label(), FIRST_PIECE);
}

/// Opens the best epoch of a run, if that was asked for, and ends its job. One that was cancelled opens
/// nothing. One that is held waits, and is begun again where it had begun: what it is carried out above
/// goes on meanwhile.
pub fn open_checkpoint(channels: &Channels, chosen: &OpenDevice, interactive: &Interactive) -> Option<Opened> {
    let shared = &channels.shared;
    let (id, run) = shared.checkpoint.take_if(|(id, _)| !shared.is_held(*id))?;
    let control = shared.control(id);
    if !control.take() {
        shared.forget(id);
        return None;
    }
    channels.send(Event::JobStarted { id });
    let held = Cell::new(false);
    let cancelled = || channels.stopping() || control.cancelled.load(Ordering::Relaxed);
    let goes_on = |_: Progress| {
        held.set(!cancelled() && control.paused.load(Ordering::Relaxed));
        if cancelled() || held.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let check = || match goes_on(Progress { done: 0, total: 0 }) {
        ControlFlow::Break(()) => Err(Error::Cancelled),
        ControlFlow::Continue(()) => Ok(()),
    };
    let open = || -> Result<Opened> {
        check()?;
        let name = oracle_so_far(&run)?.display().to_string();
        let read = folder::read_watched(&name, &mut { goes_on })?;
        check()?;
        build_world(channels, chosen, interactive, name, read)
    };
    let (opened, outcome) = match open() {
        Ok(opened) => {
            let done = Outcome::Done(format!("{} is open", opened.info.name));
            (Some(opened), done)
        }
        // It is opened on the next device.
        Err(loss @ Error::DeviceLost { .. }) => {
            interactive.lose(loss);
            put_back(shared, &control, (id, run))?
        }
        Err(Error::Cancelled) if held.get() && !cancelled() => put_back(shared, &control, (id, run))?,
        Err(Error::Cancelled) => (None, Outcome::Cancelled),
        Err(error) => (None, Outcome::Failed(error.to_string())),
    };
    shared.forget(id);
    channels.send(Event::JobEnded { id, outcome });
    opened
}

/// Puts the best epoch that was to be opened back, to be opened later. Returns how its job ended where
/// that of another run was asked for meanwhile.
fn put_back(shared: &Shared, control: &Control, wanted: (JobId, PathBuf)) -> Option<(Option<Opened>, Outcome)> {
    control.taken.store(false, Ordering::Release);
    let (id, _) = shared.checkpoint.offer(wanted)?;
    if control.take() {
        return Some((None, Outcome::Cancelled));
    }
    // It was cancelled in this moment, and that has been told.
    shared.forget(id);
    None
}
