//! The thread that owns an open world, and what is asked of it. A device is driven by one thread, whichever Python thread asks;
//! whoever waits has released the GIL, and looks for signals.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bayescope::device::{DeviceChoice, OpenDevice, choose, explain, guarded};
use bayescope::error::{Error, Result};
use bayescope::flow::Precision;
use bayescope::oracle::folder::{self, OracleInfo};
use bayescope::oracle::strategies;
use bayescope::oracle::world::World;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::raised;

/// How long a wait goes on before signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// A world that is open on a device. It stays on its thread.
pub struct Open {
    /// As it was asked for.
    pub name: String,
    /// What is known about it.
    pub info: OracleInfo,
    /// The flow with its names.
    pub world: World,
    /// What computes, in words.
    pub device: String,
    /// Arithmetic of its passes.
    pub precision: Precision,
    /// The device it is open on.
    pub chosen: OpenDevice,
}

/// Whether whoever asked still wants the answer.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether to go on.
    pub fn flow(&self) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// A sink of events that stops where nobody waits any more.
    pub fn sink<E>(&self) -> impl FnMut(E) -> ControlFlow<()> + use<E> {
        let stop = self.clone();
        move |_| stop.flow()
    }

    /// # Errors
    /// [`Error::Cancelled`] where nobody waits any more.
    pub fn check(&self) -> Result<()> {
        if self.flow().is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

type Job = Box<dyn FnOnce(&Open) + Send>;

/// A thread with an open world; it ends with its last handle.
#[derive(Clone)]
pub struct Engine {
    jobs: Sender<Job>,
}

/// What is said of a world when it has been opened.
pub struct Opened {
    /// What is known about it.
    pub info: OracleInfo,
    /// Channels, height and width of its images.
    pub shape: [usize; 3],
    /// What computes, in words.
    pub device: String,
    /// Images in one pass of the device.
    pub batch: usize,
}

/// An answer that is being computed. Dropped, it is not wanted any more.
pub struct Pending<T> {
    answer: Receiver<Result<T>>,
    stop: Stop,
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.stop.set();
    }
}

impl<T: Send> Pending<T> {
    /// Waits without the GIL. A signal (Ctrl+C) ends the wait, and the work.
    ///
    /// # Errors
    /// What the work returned, as an exception; what a signal raised.
    pub fn wait(self, py: Python<'_>) -> PyResult<T> {
        received(py, &self.answer)?.map_err(raised)
    }
}

/// Waits without the GIL for what comes. A signal (Ctrl+C) ends the wait.
///
/// # Errors
/// What a signal raised; where nothing can come any more.
pub fn received<T: Send>(py: Python<'_>, from: &Receiver<T>) -> PyResult<T> {
    loop {
        match py.detach(|| from.recv_timeout(TICK)) {
            Ok(came) => return Ok(came),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(gone()),
        }
    }
}

/// What came of a job, with the cause of a failure. It may take another machine's answer to know it: on the job's thread, where
/// the GIL is not held.
fn explained<T>(done: Result<T>) -> Result<T> {
    done.map_err(|error| explain(error, None))
}

fn gone() -> PyErr {
    PyRuntimeError::new_err(
        "the engine has ended by an error of its own, which it has written to stderr: open the world again",
    )
}

/// A thread of this name.
fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let begun = std::thread::Builder::new().name(name.into()).spawn(work);
    begun.map(drop).map_err(|e| PyRuntimeError::new_err(format!("the system gave no thread: {e}")))
}

/// Does work that needs no open world on a thread of its own.
///
/// # Errors
/// As [`Pending::wait`].
pub fn aside<T: Send + 'static>(py: Python<'_>, work: impl FnOnce(&Stop) -> Result<T> + Send + 'static) -> PyResult<T> {
    let (send, answer) = bounded(1);
    let stop = Stop::default();
    let asked = stop.clone();
    thread("work", move || {
        // Nobody may wait any more.
        drop(send.send(explained(work(&asked))));
    })?;
    Pending { answer, stop }.wait(py)
}

impl Engine {
    /// Opens a world on a thread of its own.
    ///
    /// # Errors
    /// When the world or the device cannot be had.
    pub fn open(py: Python<'_>, name: String, device: DeviceChoice, precision: Precision) -> PyResult<(Self, Opened)> {
        let (jobs, asked) = unbounded::<Job>();
        let (send, answer) = bounded(1);
        let stop = Stop::default();
        let wanted = stop.clone();
        thread("world", move || {
            let opened = |chosen: OpenDevice| guarded(&chosen.device, || open(name, &chosen, precision, &wanted));
            match explained(choose(device).and_then(opened)) {
                Err(error) => drop(send.send(Err(error))),
                Ok(open) => {
                    let shape = open.world.shape();
                    let (info, device, batch) = (open.info.clone(), open.device.clone(), open.world.batch());
                    let shape = [shape.channels, shape.height, shape.width];
                    drop(send.send(Ok(Opened { info, shape, device, batch })));
                    asked.iter().for_each(|job| job(&open));
                }
            }
        })?;
        let opened = Pending { answer, stop }.wait(py)?;
        Ok((Self { jobs }, opened))
    }

    /// Gives the thread something to do.
    pub fn ask<T: Send + 'static>(&self, work: impl FnOnce(&Open, &Stop) -> Result<T> + Send + 'static) -> Pending<T> {
        let (send, answer) = bounded(1);
        let stop = Stop::default();
        let asked = stop.clone();
        let job = move |open: &Open| {
            let done = asked.check().and_then(|()| guarded(&open.chosen.device, || work(open, &asked)));
            // Nobody may wait any more.
            drop(send.send(explained(done)));
        };
        // Where the thread has ended the answer is disconnected, and whoever waits says so.
        drop(self.jobs.send(Box::new(job)));
        Pending { answer, stop }
    }
}

/// As a command opens it.
fn open(name: String, chosen: &OpenDevice, precision: Precision, stop: &Stop) -> Result<Open> {
    let (info, weights) = folder::read_watched(&name, &mut stop.sink())?;
    let world = info.clone().build(weights, &chosen.device, precision, chosen.batch)?.world;
    let device = chosen.report.used.label();
    strategies::recall(world.flow(), &info.weights_sha256, &device, world.batch().next_power_of_two());
    Ok(Open { name, info, world, device, precision, chosen: chosen.clone() })
}
