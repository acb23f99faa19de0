//! How much time is left of a grid: steps at the pace of steps, and what follows the last step of a
//! cell at the pace of the cells that are over. Drawing images is charged to neither: it is done
//! once, and would make the first steps look slow.

use std::time::Duration;

/// What steps and cells took so far, in this sitting.
#[derive(Debug, Default)]
pub(super) struct Pace {
    steps: usize,
    stepping: Duration,
    cells: usize,
    measuring: Duration,
    /// Steps of the present cell, once it has made one.
    at: Option<usize>,
}

impl Pace {
    /// The present cell has come to a step. The first one of a cell is not counted: the network is
    /// built before it.
    pub fn stepped(&mut self, step: usize, took: Duration) {
        if let Some(before) = self.at.filter(|before| *before < step) {
            self.steps += step - before;
            self.stepping += took;
        }
        self.at = Some(step);
    }

    /// Test images were measured, or a checkpoint was written.
    pub fn measured(&mut self, took: Duration) {
        self.measuring += took;
    }

    /// The present cell is over; another begins.
    pub fn cell_ended(&mut self) {
        self.cells += 1;
        self.at = None;
    }

    /// What so many steps and cells more will take; `None` before steps were timed, and where only measuring is
    /// left that no cell has shown the length of.
    pub fn left(&self, steps: usize, cells: usize) -> Option<Duration> {
        let share = |took: Duration, of: usize, more: usize| match of {
            0 => Duration::ZERO,
            of => took.mul_f64(more as f64 / of as f64),
        };
        let known = self.steps > 0 && (steps > 0 || self.cells > 0 || cells == 0);
        known.then(|| share(self.stepping, self.steps, steps) + share(self.measuring, self.cells, cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_measuring_are_charged_each_to_its_own() {
        let secs = Duration::from_secs;
        let mut pace = Pace::default();
        assert_eq!(pace.left(10, 1), None);
        // Building the network took a minute.
        pace.stepped(1, secs(60));
        assert_eq!(pace.left(10, 1), None);
        pace.stepped(5, secs(4));
        assert_eq!(pace.left(100, 3), Some(secs(100)));
        assert_eq!(pace.left(0, 1), None, "how long the first cell measures nobody knows");
        pace.measured(secs(7));
        pace.cell_ended();
        assert_eq!(pace.left(100, 3), Some(secs(121)));
        // A cell that is resumed far on has not made those steps now.
        pace.stepped(50, secs(60));
        assert_eq!(pace.left(100, 3), Some(secs(121)));
    }
}
