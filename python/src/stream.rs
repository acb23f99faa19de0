//! An endless, reproducible stream of batches, drawn ahead by the engine's thread.

use std::collections::VecDeque;

use bayescope::oracle::world::Settings;
use bayescope::units::Seed;
use pyo3::prelude::*;

use crate::draw::{Arrays, Drawn, batches};
use crate::engine::{Engine, Pending};

/// Passes that are asked for ahead.
const AHEAD: usize = 2;

/// The batches of a seed from one on.
#[pyclass(module = "bayescope._engine")]
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
    /// The batch that comes next.
    next: usize,
    /// The first batch that was not asked for.
    asked: usize,
    ready: VecDeque<Drawn>,
    pending: VecDeque<Pending<Vec<Drawn>>>,
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
        let (ready, pending) = (VecDeque::new(), VecDeque::new());
        Self { engine, settings, seed, size, each, shape, classes, next, asked: next, ready, pending }
    }

    fn ask(&mut self) {
        while self.pending.len() < AHEAD {
            let (settings, seed, what) = (self.settings.clone(), self.seed, (self.asked, self.each, self.size));
            self.pending.push_back(self.engine.ask(move |open, stop| batches(open, stop, &settings, seed, what)));
            self.asked += self.each;
        }
    }

    /// Forgets what was drawn ahead.
    fn forget(&mut self) {
        self.ready.clear();
        self.pending.clear();
        self.asked = self.next;
    }
}

#[pymethods]
impl Stream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        self.ask();
        while self.ready.is_empty() {
            self.ask();
            let Some(first) = self.pending.pop_front() else { continue };
            match first.wait(py) {
                Ok(drawn) => self.ready.extend(drawn),
                Err(error) => {
                    // The same batch comes again, if it is asked for.
                    self.forget();
                    return Err(error);
                }
            }
            self.ask();
        }
        let drawn = self.ready.pop_front().unwrap_or_default();
        self.next += 1;
        drawn.arrays(py, self.shape, self.classes)
    }

    /// Number of the batch that comes next.
    #[getter]
    fn position(&self) -> usize {
        self.next
    }

    /// Goes on at a batch.
    #[setter]
    fn set_position(&mut self, batch: usize) {
        if batch != self.next {
            self.next = batch;
            self.forget();
        }
    }
}
