//! Executes the commands of the tour, the window Help and the size of everything.

use super::app::App;
use super::command::Command;
use super::prefs::{SCALE_STEP, SCALES};

impl App {
    /// Begins the tour unless it was taken or left before.
    pub fn offer_tour(&mut self) {
        if !self.prefs.toured {
            self.tour.begin();
        }
    }

    /// Ends the tour for good. Returns whether it was under way.
    pub(super) fn leave_tour(&mut self) -> bool {
        let under_way = self.tour.end();
        self.prefs.toured |= under_way;
        under_way
    }

    /// Commands that show how the window is used, and how large it is.
    pub(super) fn guide(&mut self, command: Command) {
        match command {
            Command::StartTour => self.tour.begin(),
            Command::LeaveTour => {
                self.leave_tour();
            }
            Command::Help(page) => self.help.toggle(page),
            Command::Scale(percent) => self.prefs.scale = percent.clamp(*SCALES.start(), *SCALES.end()),
            Command::Larger => self.prefs.scale = (self.prefs.scale + SCALE_STEP).min(*SCALES.end()),
            Command::Smaller => {
                self.prefs.scale = self.prefs.scale.saturating_sub(SCALE_STEP).max(*SCALES.start());
            }
            _ => {}
        }
    }
}
