//! Several trainings of one cell, told as one course.

use std::ops::ControlFlow;

use super::cell::Cell;
use super::train::CellEvent;
use super::watched::Watched;
use crate::error::Result;
use crate::events::Events;
use crate::units::Seed;

/// Seed of a member of a cell's ensemble; the first one starts as the cell's own classifier does.
pub(super) fn member_seed(cell: &Cell, member: usize) -> u64 {
    match member {
        0 => cell.seed,
        _ => Seed(cell.seed).split("member").split(&member.to_string()).0,
    }
}

/// The trainings of a cell told as one course: steps count over all of them.
pub(super) struct Told<'a> {
    /// Who is told.
    pub events: &'a mut dyn Events<CellEvent>,
    /// Steps of all trainings.
    pub total: usize,
    /// Those of the trainings before this one.
    pub before: usize,
    /// Whether it was told where work goes on.
    pub started: bool,
}

impl Told<'_> {
    /// Between trainings: all that was trained is on disk. Shows that the cell is alive, and may break off.
    pub fn alive(&mut self) -> Result<()> {
        if self.started { self.events.report(CellEvent::Checkpoint { step: self.before }) } else { Ok(()) }
    }
}

impl Events<CellEvent> for Told<'_> {
    fn emit(&mut self, event: CellEvent) -> ControlFlow<()> {
        let before = self.before;
        let event = match event {
            CellEvent::Started { parameters, steps, resumed_at } => {
                let step = before + resumed_at;
                // Told once: where work really goes on, so that nothing told earlier of finished trainings is dropped.
                if self.started || (resumed_at == steps && step < self.total) {
                    return ControlFlow::Continue(());
                }
                self.started = true;
                CellEvent::Started { parameters, steps: self.total, resumed_at: step }
            }
            CellEvent::Step { step, loss, rate } => CellEvent::Step { step: before + step, loss, rate },
            CellEvent::Watched(watched) => CellEvent::Watched(Watched { step: before + watched.step, ..watched }),
            CellEvent::Checkpoint { step } => CellEvent::Checkpoint { step: before + step },
            CellEvent::Drawing(progress) => CellEvent::Drawing(progress),
        };
        self.events.emit(event)
    }
}
