//! What lies at paths, asked on threads: a network drive may be gone, and the window would stand still.

use std::path::{Path, PathBuf};
use std::time::Instant;

use eframe::egui;

use super::app::App;
use super::background::{self, BackgroundTask, Purpose};
use super::command::{Opened, run_at, sort_paths};
use super::panels;
use super::prompt::Prompt;
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
        let does = format!("Looking for the oracle {saved}");
        self.look(ctx, does, move || match Path::new(&saved).exists() {
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

    /// Opens dropped or chosen paths, when it is known what they are.
    pub(super) fn open_paths(&mut self, ctx: &egui::Context, paths: Vec<PathBuf>) {
        self.look(ctx, looking_at(&paths), move || Done::Found(sort_paths(paths)));
    }

    /// Opens what was asked for in the window, when it is known what it is; a path may be mistyped.
    pub(super) fn open_asked(&mut self, ctx: &egui::Context, purpose: Purpose, paths: Vec<PathBuf>) {
        // Where the disk does not say whether it is there, whoever opens it says why.
        let missing = |path: &PathBuf| path.try_exists().is_ok_and(|there| !there);
        self.look(ctx, looking_at(&paths), move || match &paths[..] {
            [path] if missing(path) => Done::Missing(purpose, path.clone()),
            _ => Done::Found(sort_paths(paths)),
        });
    }

    /// Says in the dialog that nothing lies at a path, or beside another that is open by now.
    pub(super) fn ask_again_for(&mut self, purpose: Purpose, path: PathBuf) {
        if self.asks() {
            self.session.notify(Level::Error, format!("There is no file or folder {}", path.display()));
        } else {
            self.prompt = Some(Prompt::missing(purpose, path));
        }
    }

    /// Opens the folder of a run, when it is known of which kind it is.
    pub(super) fn open_run(&mut self, ctx: &egui::Context, folder: PathBuf) {
        self.look(ctx, format!("Looking at {}", folder.display()), move || Done::Found(vec![run_at(folder)]));
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
        let does = format!("Looking whether anything lies at {}", place.path.display());
        let work = move || match taken(&place.path) {
            Ok(there) => Ok((place, there)),
            Err(why) => Err(why.to_string()),
        };
        self.runs.place = vec![BackgroundTask::start(ctx, "look at a place", work).doing(does)];
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

    /// What a disk or a thread is waited for since half a second, for the status line.
    pub(super) fn tell_what_is_late(&mut self, ctx: &egui::Context) {
        let now = Instant::now();
        let saving = self.saving.iter().filter_map(|task| task.late(now)).next();
        self.view.late = saving.or_else(|| self.runs.late(now)).map(str::to_owned);
        if self.view.late.is_none() && (self.runs.waits() || !self.saving.is_empty()) {
            ctx.request_repaint_after(background::PATIENCE / 2);
        }
    }

    fn look(&mut self, ctx: &egui::Context, does: String, work: impl FnOnce() -> Done + Send + 'static) {
        self.runs.background.push(BackgroundTask::start(ctx, "look at a disk", move || Ok(work())).doing(does));
    }
}

fn looking_at(paths: &[PathBuf]) -> String {
    match paths {
        [path] => format!("Looking at {}", path.display()),
        paths => format!("Looking at {} paths", paths.len()),
    }
}
