//! Images from outside: opened, pasted, and brought into the world's shape in another way.

use std::path::PathBuf;

use crate::data::Fit;
use crate::gui::app::App;
use crate::gui::session::log::Level;
use crate::oracle::pictures::Fits;
use crate::worker::protocol::{Job, Pasted};

impl App {
    /// Opens images from files, where there is no world yet as soon as there is one.
    pub(in crate::gui) fn classify(&mut self, paths: Vec<PathBuf>) {
        if self.session.oracle.is_none() {
            return self.session.await_world(paths);
        }
        self.submit(Job::Classify { paths, fits: Fits::default(), settings: self.prefs.settings(), again: None });
    }

    /// Opens a picture from the clipboard.
    pub(super) fn classify_pasted(&mut self, picture: Pasted) {
        self.leave_start();
        if self.session.oracle.is_none() {
            return self.session.notify(Level::Warning, "There is no world yet: open an oracle first.");
        }
        let (fit, settings) = (Fit::default(), self.prefs.settings());
        self.submit(Job::ClassifyPasted { picture, fit, settings, again: None });
    }

    /// Reads the images from outside again, one of them with another fit.
    pub(super) fn fit_again(&mut self, index: usize, fit: Fit) {
        self.session.outside.fits.own.insert(index, fit);
        if let Some(job) = self.session.read_outside_again(self.prefs.settings()) {
            self.submit(job);
        }
    }

    /// Why images from outside cannot be had on the command line.
    pub(super) fn why_no_command(&self) -> &'static str {
        match self.session.outside.pasted {
            Some(_) => "A pasted picture has no file: save it in the program it came from, and open that.",
            None => "These images have no files of their own: the panel they came from copies its command.",
        }
    }
}
