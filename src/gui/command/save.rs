//! Where results are saved: asked, checked for what lies there, and used.

use std::path::{Path, PathBuf};

use eframe::egui;

use crate::data::{Taken, write_atomically};
use crate::events::silent;
use crate::gui::app::App;
use crate::gui::background::{self, Asked, Purpose};
use crate::gui::prompt::Prompt;
use crate::gui::runs::Place;
use crate::gui::selection::Source;
use crate::gui::session::log::Level;
use crate::gui::{bayes_error_view, guidance, kept_path};
use crate::judge::write_report;
use crate::oracle::provenance::{Machine, write_provenance};
use crate::provenance::Made;
use crate::run::JudgeModels;
use crate::worker::protocol::Job;
use crate::worker::save::SaveSamples;
use crate::worker::walk::SaveWalk;

impl App {
    pub(super) fn ask_where_to_save(&mut self) {
        if self.session.oracle.is_none() {
            self.session.notify(Level::Warning, "There are no samples to save: no oracle is open.");
        } else if self.view.source == Source::Outside {
            self.session
                .notify(Level::Warning, "Images from outside are already files; switch to the world's samples.");
        } else {
            let images = self.to_save().len();
            let images = if images == 0 { self.prefs.n } else { images };
            let look = guidance::options(&self.session, &self.prefs).is_some();
            self.prompt = Some(Prompt::new(Purpose::Save { images, look }));
        }
    }

    pub(super) fn ask_where_to_save_curve(&mut self) {
        match bayes_error_view::curve_to_save(&self.session, &self.prefs) {
            Ok(_) => self.prompt = Some(Prompt::new(Purpose::SaveCurve)),
            Err(why) => self.session.notify(Level::Warning, why),
        }
    }

    /// Uses paths that were typed or chosen. Where something is saved, what lies there is replaced only if somebody was asked:
    /// the desktop's dialog asks before a file is replaced, and never about a folder.
    pub(in crate::gui) fn take_paths(
        &mut self,
        ctx: &egui::Context,
        purpose: Purpose,
        paths: Vec<PathBuf>,
        asked: Asked,
    ) {
        let Some(path) = paths.first().map(|path| kept_path::folder(path)) else { return };
        match purpose {
            Purpose::Open | Purpose::OpenFolder => self.open_asked(ctx, purpose, paths),
            Purpose::Field(field) => return self.view.picked = Some((field, path)),
            _ => return self.look_where(ctx, Place { purpose, path, asked }),
        }
        self.prompt = None;
    }

    /// Saves where `there` lies, or asks first.
    pub(in crate::gui) fn save_at(&mut self, ctx: &egui::Context, place: Place, there: Option<Taken>) {
        let Place { purpose, path, asked } = place;
        match (there, asked) {
            (None, _) | (_, Asked::Here) | (Some(Taken::File), Asked::Desktop) => {}
            (Some(there), _) => return self.prompt = Some(Prompt::taken(purpose, path, there)),
        }
        match purpose {
            Purpose::Save { .. } => self.save_to(path),
            Purpose::SaveCurve => self.save_curve(ctx, path),
            Purpose::SaveSketch => self.save_sketch(ctx, path),
            Purpose::SavePoints(_) => self.save_points(ctx, path),
            Purpose::SaveFigure => self.save_figure(ctx, path),
            Purpose::SaveFigures => self.save_figures(ctx, path),
            Purpose::SaveReport => self.write_report(ctx, path),
            Purpose::SaveWalk => {
                if let Some(walked) = self.finished_walk() {
                    self.submit(Job::task(SaveWalk { walked, path }));
                }
            }
            // Nothing is saved there.
            Purpose::Open | Purpose::OpenFolder | Purpose::Field(_) => {}
        }
        // Where the window asked, its question is closed; another may be open.
        if asked == Asked::Desktop {
            self.prompt = None;
        }
    }

    fn save_curve(&mut self, ctx: &egui::Context, path: PathBuf) {
        let (text, provenance) = match bayes_error_view::curve_to_save(&self.session, &self.prefs) {
            Ok(found) => found,
            Err(why) => return self.session.notify(Level::Warning, why),
        };
        let (what, place) = ("curve of Bayes errors".to_owned(), Some(path.display().to_string()));
        let made = Made { what: what.clone(), place, provenance: provenance.clone() };
        self.saving.push(background::save(ctx, path, made, move |path| {
            write_atomically(path, |file| file.write_all(text.as_bytes()))?;
            write_provenance(path, &what, provenance, &Machine::alone(), &mut silent()).map(drop)
        }));
    }

    /// Returns the selected samples if there are several; none stands for all.
    fn to_save(&self) -> Vec<usize> {
        if self.view.selection.len() > 1 { self.view.selection.iter().copied().collect() } else { Vec::new() }
    }

    fn save_to(&mut self, path: PathBuf) {
        let (spec, settings) = (self.prefs.spec(), self.prefs.settings());
        let indices = self.to_save();
        let look = guidance::options(&self.session, &self.prefs);
        self.submit(Job::task(SaveSamples { spec, indices, settings, look, sheet: false, path }));
    }

    /// Writes the report of the last judgement.
    fn write_report(&mut self, ctx: &egui::Context, folder: PathBuf) {
        let report = self.session.tasks.get::<JudgeModels>().and_then(|view| view.report);
        if let Some((report, figure)) =
            report.as_ref().and_then(|report| Some((report.clone(), report.figures.first()?)))
        {
            let made = Made::of_lines("report on classifiers", Some(&folder), &figure.provenance);
            let write = move |folder: &Path| write_report(folder, &report.found).map(drop);
            self.saving.push(background::save(ctx, folder, made, write));
        }
    }
}
