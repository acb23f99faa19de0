//! An endless, reproducible stream of batches, drawn ahead by the engine's thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use bayescope::oracle::world::Settings;
use bayescope::units::Seed;
use crossbeam_channel::{Receiver, Sender, bounded};
use pyo3::prelude::*;

use crate::draw::{Arrays, Drawn, batches};
use crate::engine::{Engine, Pending, received};

/// Passes that are asked for ahead.
const AHEAD: usize = 2;

/// What was drawn ahead, and what is being drawn.
#[derive(Default)]
struct Ahead {
    /// The first batch that was not asked for.
    asked: usize,
    ready: VecDeque<Drawn>,
    pending: VecDeque<Pending<Vec<Drawn>>>,
}

/// What is ahead, in the hands of one Python thread; dropped, it is the next one's.
struct Turn<'a> {
    ahead: Ahead,
    back: &'a Sender<Ahead>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // There is room for it: it was taken from there, and the stream keeps both ends.
        drop(self.back.send(std::mem::take(&mut self.ahead)));
    }
}

/// The batches of a seed from one on. Several Python threads may take them: each batch comes once.
#[pyclass(frozen, module = "bayescope._engine")]
pub struct Stream {
    engine: Engine,
    settings: Settings,
    seed: Seed,
    /// Images of a batch.
    size: usize,
    /// Batches of a pass of the device.
    each: usize,
    shape: [usize; 3],
    classes: usize,
    /// The batch that comes next: written by whoever has the turn, read at any time.
    next: AtomicUsize,
    /// What is ahead, where nobody has it. Who wants it waits without the GIL, as who has it does for a batch: a lock that is held
    /// meanwhile could not be waited for with an eye on signals.
    turns: (Sender<Ahead>, Receiver<Ahead>),
}

impl Stream {
    /// From batch `next` on; `pass` images fill a pass of the device.
    pub fn new(
        engine: Engine,
        settings: Settings,
        seed: Seed,
        (size, next, pass): (usize, usize, usize),
        (shape, classes): ([usize; 3], usize),
    ) -> Self {
        let each = (pass / size.max(1)).max(1);
        let turns = bounded(1);
        let stream = Self { engine, settings, seed, size, each, shape, classes, next: AtomicUsize::new(next), turns };
        drop(Turn { ahead: Ahead { asked: next, ..Ahead::default() }, back: &stream.turns.0 });
        stream
    }

    /// Waits until no other thread has what is ahead.
    fn turn(&self, py: Python<'_>) -> PyResult<Turn<'_>> {
        let (back, turns) = &self.turns;
        Ok(Turn { ahead: received(py, turns)?, back })
    }

    fn ask(&self, ahead: &mut Ahead) {
        while ahead.pending.len() < AHEAD {
            let (settings, seed, what) = (self.settings.clone(), self.seed, (ahead.asked, self.each, self.size));
            ahead.pending.push_back(self.engine.ask(move |open, stop| batches(open, stop, &settings, seed, what)));
            // Behind the last batch there is none: who comes there is told so.
            ahead.asked = ahead.asked.saturating_add(self.each);
        }
    }

    /// Forgets what was drawn ahead.
    fn forget(&self, ahead: &mut Ahead) {
        *ahead = Ahead { asked: self.position(), ..Ahead::default() };
    }
}

#[pymethods]
impl Stream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        let mut turn = self.turn(py)?;
        let ahead = &mut turn.ahead;
        self.ask(ahead);
        while ahead.ready.is_empty() {
            self.ask(ahead);
            let Some(first) = ahead.pending.pop_front() else { continue };
            match first.wait(py) {
                Ok(drawn) => ahead.ready.extend(drawn),
                Err(error) => {
                    // The same batch comes again, if it is asked for.
                    self.forget(ahead);
                    return Err(error);
                }
            }
            self.ask(ahead);
        }
        let drawn = ahead.ready.pop_front().unwrap_or_default();
        self.next.fetch_add(1, Ordering::Relaxed);
        drop(turn);
        drawn.arrays(py, self.shape, self.classes)
    }

    /// Number of the batch that comes next.
    #[getter]
    fn position(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }

    /// Goes on at a batch.
    #[setter]
    fn set_position(&self, py: Python<'_>, batch: usize) -> PyResult<()> {
        let mut turn = self.turn(py)?;
        if batch != self.position() {
            self.next.store(batch, Ordering::Relaxed);
            self.forget(&mut turn.ahead);
        }
        Ok(())
    }
}
