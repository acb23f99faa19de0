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
    pub events: &'a mut dyn Events<CellEvent>,
    /// Steps of all trainings.
    pub total: usize,
    /// Those of the trainings before this one.
    pub before: usize,
    /// Whether the start was reported.
    pub started: bool,
}

impl Trainings<'_> {
    /// Reports between trainings that the cell is alive; all that was trained is on disk.
    ///
    /// # Errors
    /// [`crate::error::Error::Cancelled`] when the caller stops.
    pub fn alive(&mut self) -> Result<()> {
        // Before a start was reported no step is known that a line could be kept at: of a resumed cell whose
        // trainings so far are all finished.
        let (done, total) = (self.before, self.total);
        self.events.report(match self.started {
            true => CellEvent::Checkpoint { step: done },
            false => CellEvent::Drawing(Progress { done, total }),
        })
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
                let step = before + resumed_at;
                // Reported once, for the training that really goes on: earlier lines of finished
                // trainings stay.
                if self.started || (resumed_at == steps && step < self.total) {
                    return ControlFlow::Continue(());
                }
                self.started = true;
                CellEvent::Started { parameters, steps: self.total, resumed_at: step }
            }
            CellEvent::Step { step, loss, rate } => CellEvent::Step { step: before + step, loss, rate },
            CellEvent::Watched(watched) => CellEvent::Watched(Watched { step: before + watched.step, ..watched }),
            CellEvent::Checkpoint { step } => CellEvent::Checkpoint { step: before + step },
            event @ (CellEvent::Drawing(_) | CellEvent::Measuring { .. }) => event,
        };
        self.events.emit(event)
    }
}
