//! What becomes of a drawing: a file, or an image from outside.

use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui;

use super::app::App;
use super::background::{self, Purpose};
use super::command::Command;
use super::panels;
use super::prompt::Prompt;
use super::session::log::Level;
use crate::data::write_png;
use crate::events::silent;
use crate::oracle::provenance::{Machine, write_provenance};
use crate::provenance::{Badge, Made, Provenance};
use crate::worker::protocol::{Job, Sketch};

/// What a saved drawing is.
const WHAT: &str = "drawing";

impl App {
    /// The drawing that the panel Draw shows.
    fn sketch(&mut self) -> Option<Arc<Sketch>> {
        let sketch = self.view.drawing.as_ref().map(|drawing| drawing.sketch.clone());
        if sketch.is_none() {
            self.session.notify(Level::Warning, "There is no drawing: use the panel Draw first.");
        }
        sketch
    }

    /// Asks where to save the drawing, or sends it to the gallery.
    pub(super) fn give_sketch(&mut self, command: &Command) {
        let Some(sketch) = self.sketch() else { return };
        if *command == Command::SaveSketch {
            self.prompt = Some(Prompt::new(Purpose::SaveSketch));
            return;
        }
        self.submit(Job::SendSketch { sketch, settings: self.prefs.settings() });
        self.bring(panels::gallery::ID);
    }

    /// Saves the 8-bit picture of the drawing.
    pub(super) fn save_sketch(&mut self, ctx: &egui::Context, path: PathBuf) {
        let (Some(sketch), Some(info)) = (self.sketch(), self.session.oracle.clone()) else { return };
        if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png")) {
            return self.session.notify(Level::Warning, "A drawing is saved as .png: give a name that ends so.");
        }
        let shape = info.architecture.shape();
        let why = match &sketch.ground {
            None => "8-bit levels: opened again, they are mapped in as the drawing was",
            Some(_) => "8-bit levels: the float image below the ink is not in them",
        };
        let provenance = Provenance::new(Badge::Exact)
            .with("drawn in the world of", info.name.clone())
            .with("weights", info.weights_sha256.clone())
            .for_the_eye(why);
        let place = Some(path.display().to_string());
        let made = Made { what: WHAT.into(), place, provenance: provenance.clone() };
        self.saving.push(background::save(ctx, path, made, move |path| {
            write_png(path, shape, &sketch.levels)?;
            write_provenance(path, WHAT, provenance, &Machine::alone(), &mut silent()).map(drop)
        }));
    }
}
