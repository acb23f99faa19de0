//! Progress of several trainings of one cell, reported as one training; progress of what it measures.

use std::ops::ControlFlow;

use super::cell::Cell;
use super::train::CellEvent;
use super::watched::Watched;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::units::Seed;

/// Seed of a member of a cell's ensemble; the first one starts as the cell's own classifier does.
pub(super) fn member_seed(cell: &Cell, member: usize) -> u64 {
    match member {
        0 => cell.seed,
        _ => Seed(cell.seed).split("member").split(&member.to_string()).0,
    }
}

/// The trainings of a cell reported as one: steps count over all of them.
pub(super) struct Trainings<'a> {
    /// Where the events go.
    events: &'a mut dyn Events<CellEvent>,
    /// Steps of all trainings.
    total: usize,
    /// Those of the trainings before this one.
    pub before: usize,
    /// Whether the start was reported.
    started: bool,
    /// The start of a training that has no step left: not yet reported.
    held: Option<CellEvent>,
}

impl<'a> Trainings<'a> {
    /// Of so many steps, none of them done.
    pub fn new(events: &'a mut dyn Events<CellEvent>, total: usize) -> Self {
        Self { events, total, before: 0, started: false, held: None }
    }

    /// Reports between trainings that labels are being chosen; all that was trained is on disk.
    ///
    /// # Errors
    /// [`crate::error::Error::Cancelled`] when the caller stops.
    pub fn choosing(&mut self) -> Result<()> {
        // No start, though one may be held: lines of later trainings would be dropped, which may be finished, too.
        self.events.report(CellEvent::Choosing { step: self.before, steps: self.total })
    }

    /// The start of a training, to be reported now. It is reported once, for the training that really
    /// goes on: earlier lines of finished trainings stay.
    fn start(&mut self, parameters: usize, steps: usize, resumed_at: usize) -> Option<CellEvent> {
        if self.started {
            return None;
        }
        let step = self.before + resumed_at;
        let start = CellEvent::Started { parameters, steps: self.total, resumed_at: step };
        // Stopped at its last step it is yet to be looked at: then it says more.
        let over = resumed_at == steps && step < self.total;
        self.held = over.then(|| start.clone());
        self.started = !over;
        (!over).then_some(start)
    }
}

/// A measurement reported piece by piece; the caller may stop between any two.
pub(super) struct Measuring<'a> {
    events: &'a mut dyn Events<CellEvent>,
    what: String,
    progress: Progress,
}

impl<'a> Measuring<'a> {
    /// Reports that a measurement of `total` pieces begins.
    ///
    /// # Errors
    /// [`crate::error::Error::Cancelled`] when the caller stops.
    pub fn begin(events: &'a mut dyn Events<CellEvent>, what: impl Into<String>, total: usize) -> Result<Self> {
        let mut begun = Self { events, what: what.into(), progress: Progress { done: 0, total } };
        begun.done(0)?;
        Ok(begun)
    }

    /// Reports that so many more pieces are done.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn done(&mut self, pieces: usize) -> Result<()> {
        self.progress.done += pieces;
        self.events.report(CellEvent::Measuring { what: self.what.clone(), progress: self.progress })
    }
}

impl Events<CellEvent> for Trainings<'_> {
    fn emit(&mut self, event: CellEvent) -> ControlFlow<()> {
        let before = self.before;
        let event = match event {
            CellEvent::Started { parameters, steps, resumed_at } => {
                let start = self.start(parameters, steps, resumed_at);
                return start.map_or(ControlFlow::Continue(()), |start| self.events.emit(start));
            }
            CellEvent::Step { step, loss, rate } => CellEvent::Step { step: before + step, loss, rate },
            CellEvent::Watched(watched) => CellEvent::Watched(Watched { step: before + watched.step, ..watched }),
            CellEvent::Checkpoint { step } => CellEvent::Checkpoint { step: before + step },
            // Nothing that is trained: a start that is held stays so.
            event @ (CellEvent::Drawing(_) | CellEvent::Choosing { .. } | CellEvent::Measuring { .. }) => {
                return self.events.emit(event);
            }
        };
        let start = self.held.take();
        self.started |= start.is_some();
        let began = start.map_or(ControlFlow::Continue(()), |start| self.events.emit(start));
        // Also where the caller stops at the start: what was watched is on disk, and would not be reported again.
        let said = self.events.emit(event);
        if began.is_break() { began } else { said }
    }
}
