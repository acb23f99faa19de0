//! Executes the commands of the start page, the tour, the window Help and the size of everything; brings panels to the front.

use super::app::App;
use super::command::Command;
use super::panels;
use super::prefs::{SCALE_STEP, SCALES};

impl App {
    /// Begins the tour unless it was taken or left before.
    pub fn offer_tour(&mut self) {
        if !self.prefs.toured {
            self.tour.begin();
        }
    }

    /// Shows the start page, in the place of the panels; `then_tour` offers the tour to those who go
    /// on to the samples.
    pub fn show_start(&mut self, then_tour: bool) {
        let worlds = self.start.open(then_tour);
        if !worlds.is_empty() {
            self.engine.glimpse(worlds);
        }
    }

    /// Leaves the start page for what it covers. Returns whether it was open.
    pub(super) fn leave_start(&mut self) -> bool {
        let left = self.start.close();
        if left && self.start.take_tour() {
            self.offer_tour();
        }
        left
    }

    /// Brings a panel to the front. Who goes from the start page to another panel than the gallery is
    /// not offered the tour.
    pub(super) fn bring(&mut self, id: &str) {
        if id == panels::gallery::ID {
            self.leave_start();
        } else {
            self.start.close();
        }
        panels::activate(&mut self.layout, id);
        self.view.primary.bring(id);
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
            Command::StartPage => self.show_start(false),
            Command::StartTour => {
                self.start.close();
                self.tour.begin();
            }
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
