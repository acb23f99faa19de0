//! What lies at paths, asked on threads: a network drive may be gone, and the window would stand still.

use std::path::{Path, PathBuf};

use eframe::egui;

use super::app::App;
use super::background::{self, BackgroundTask};
use super::command::{Opened, run_at, sort_paths};
use super::panels;
use super::runs::{Done, Place};
use super::session::log::Level;
use crate::data::taken;
use crate::oracle::library;

impl App {
    /// Returns whether a thread still looks what lies at a path, or works for a run.
    pub fn waits_for_disk(&self) -> bool {
        self.runs.waits()
    }

    /// Has the bundled world opened in place of the oracle of the last time, where that is not there any more.
    pub fn look_for_oracle(&mut self, ctx: &egui::Context) {
        let saved = self.prefs.oracle.clone();
        if library::find(&saved).is_some() {
            return;
        }
        self.look(ctx, move || match Path::new(&saved).exists() {
            true => Done::Found(Vec::new()),
            false => Done::Gone(saved),
        });
    }

    /// Opens the bundled world in place of an oracle that is not there any more, unless another was chosen meanwhile.
    pub(super) fn replace_gone(&mut self, saved: &str) {
        if self.prefs.oracle == saved {
            self.prefs.oracle = library::DEFAULT.into();
            let text = format!(
                "The oracle of the last time is not there any more: {saved}. '{}' is opened in its place; open the oracle from where \
                 it is now.",
                library::DEFAULT
            );
            self.session.notify(Level::Warning, text);
        }
    }

    /// Opens dropped, typed or chosen paths, when it is known what they are.
    pub(super) fn open_paths(&mut self, ctx: &egui::Context, paths: Vec<PathBuf>) {
        self.look(ctx, move || Done::Found(sort_paths(paths)));
    }

    /// Opens the folder of a run, when it is known of which kind it is.
    pub(super) fn open_run(&mut self, ctx: &egui::Context, folder: PathBuf) {
        self.look(ctx, move || Done::Found(vec![run_at(folder)]));
    }

    /// Opens what was found.
    pub(super) fn open_found(&mut self, found: Vec<Opened>) {
        for opened in found {
            match opened {
                Opened::Run(folder) => {
                    self.show_run(&folder);
                    self.bring(panels::experiments::ID);
                }
                Opened::Ranking(folder) => {
                    self.view.picked = Some((panels::hardness::FOLDER, folder));
                    self.bring(panels::hardness::ID);
                }
                Opened::Oracle(path) => self.open_oracle(path.display().to_string()),
                Opened::Images(paths) => self.classify(paths),
            }
        }
    }

    /// Saves at a place, when it is known what lies there. What was to be saved elsewhere and still waits for this is forgotten.
    pub(super) fn look_where(&mut self, ctx: &egui::Context, place: Place) {
        let work = move || match taken(&place.path) {
            Ok(there) => Ok((place, there)),
            Err(why) => Err(why.to_string()),
        };
        self.runs.place = vec![BackgroundTask::start(ctx, "look at a place", work)];
    }

    /// Goes on with what is to be saved.
    pub(super) fn poll_place(&mut self, ctx: &egui::Context) {
        for looked in background::poll_all(&mut self.runs.place) {
            match looked {
                Ok((place, there)) => self.save_at(ctx, place, there),
                Err(why) => self.session.notify(Level::Error, why),
            }
        }
    }

    fn look(&mut self, ctx: &egui::Context, work: impl FnOnce() -> Done + Send + 'static) {
        self.runs.background.push(BackgroundTask::start(ctx, "look at a disk", move || Ok(work())));
    }
}
