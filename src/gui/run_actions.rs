//! Executes the commands about runs. Work on the disk has a thread of its own.

use std::path::{Path, PathBuf};

use eframe::egui::{self, Id, Modal, RichText};

use super::app::App;
use super::background::{self, BackgroundTask, Purpose};
use super::command::{Command, RunCommand};
use super::kept_path;
use super::panels;
use super::prompt::Prompt;
use super::runs::{Done, example_folder, run_command};
use super::session::log::Level;
use super::session::runs::Standing;
use super::shared_lists::SharedLists;
use super::theme::Theme;
use crate::data::write_atomically;
use crate::error::Result;
use crate::experiment::{ExperimentSpec, PRESETS};
use crate::figure::{Figure, Illustrated, Table};
use crate::provenance::Made;
use crate::run::external::figures;
use crate::run::hardness::{HardnessFolder, RankCorpora};
use crate::run::{Example, RunExperiment, RunFolder, RunSettings, write_figures};
use crate::worker::cell_images::{CellImages, CellImagesRequest};
use crate::worker::protocol::Job;

impl App {
    /// Executes the commands about runs. Work on the disk has a thread of its own.
    pub(super) fn run_command(&mut self, ctx: &egui::Context, command: RunCommand) {
        match command {
            RunCommand::Start(spec, folder) => {
                let folder = self.show_run(&folder);
                self.submit(Job::task(RunExperiment { spec: Some(*spec), folder, settings: RunSettings::default() }));
            }
            RunCommand::Resume(folder) => {
                let folder = self.show_run(&folder);
                self.submit(Job::task(RunExperiment { spec: None, folder, settings: RunSettings::default() }));
            }
            RunCommand::CopyRanking(spec, folder) => {
                let device = self.prefs.device;
                self.copy_written(ctx, move || {
                    let file = HardnessFolder::write_spec(&folder, &spec)?;
                    Ok(run_command(&file.display().to_string(), &folder, device))
                });
            }
            RunCommand::Open(folder) => self.open_run(ctx, folder),
            RunCommand::OpenExample(name) => self.open_example(ctx, name),
            RunCommand::Forget(folder) => self.forget_run(&folder),
            RunCommand::AskToDelete(folder) => self.runs.asked = Some(folder),
            RunCommand::Delete(folder) => {
                let does = format!("Deleting {}", folder.display());
                let work =
                    move || RunFolder::delete(&folder).map(|()| Done::Deleted(folder)).map_err(|e| e.to_string());
                self.runs.background.push(BackgroundTask::start(ctx, "delete a run", work).doing(does));
            }
            RunCommand::Notes(folder, notes) => {
                let does = format!("Writing the notes of {}", folder.display());
                let work = move || {
                    notes.write(&folder).map(|()| Done::Noted(folder, notes)).map_err(|error| error.to_string())
                };
                self.runs.background.push(BackgroundTask::start(ctx, "notes of a run", work).doing(does));
            }
            RunCommand::CopyCommand(spec, folder) => self.copy_run_command(ctx, *spec, folder),
            RunCommand::ShowCell(which, folder, cell) => self.open_cell_images(which, folder, cell),
            RunCommand::New(preset) => {
                self.view.preset = Some(preset);
                self.bring(panels::experiments::ID);
            }
            RunCommand::ShowCellIn(oracle, which, folder, cell) => {
                let oracle = kept_path::oracle(&oracle);
                self.commands.push(Command::OpenOracle(oracle.clone()));
                self.runs.cell_images_next = Some((oracle, which, folder, cell));
            }
            RunCommand::SavePoints(text, name) => {
                self.runs.place.clear();
                self.runs.points = Some(text);
                self.prompt = Some(Prompt::new(Purpose::SavePoints(name)));
            }
            RunCommand::SaveFigure(figure) => self.ask_for_figure(figure),
            RunCommand::CopyPicture(figure) => self.copy_picture(ctx, figure),
            RunCommand::SaveFigures(folder) => {
                self.prompt = Some(Prompt::named(Purpose::SaveFigures, folder.join("figures").display().to_string()));
                self.runs.place.clear();
                self.runs.figures_of = Some(folder);
            }
        }
    }

    /// Saves the points of a plot that wait for a path.
    pub(super) fn save_points(&mut self, ctx: &egui::Context, path: PathBuf) {
        let Some(text) = self.runs.points.take() else { return };
        // Its first lines say where it comes from.
        let said = text.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
        let said: Vec<_> = said.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let made = Made::of_lines("points of a plot", Some(&path), &said);
        let write = move |path: &Path| write_atomically(path, |file| file.write_all(text.as_bytes()));
        self.saving.push(background::save(ctx, path, made, write));
    }

    /// Saves the figures and tables of the run that waits for a folder.
    pub(super) fn save_figures(&mut self, ctx: &egui::Context, path: PathBuf) {
        let run = self.runs.figures_of.take();
        let Some((figures, tables, name)) = run.and_then(|folder| self.figures_of(&folder)) else { return };
        let said = figures.first().map_or(&[][..], |figure| &figure.provenance);
        let made = Made::of_lines(format!("figures and tables of {name}"), Some(&path), said);
        let write = move |path: &Path| write_figures(&figures, &tables, path, &name).map(drop);
        self.saving.push(background::save(ctx, path, made, write));
    }

    /// Figures, tables and name of what was run in a folder.
    fn figures_of(&self, folder: &Path) -> Option<(Vec<Figure>, Vec<Table>, String)> {
        let ranking = self.session.tasks.get::<RankCorpora>().filter(|view| view.task.folder == folder);
        if let Some(view) = ranking {
            let Illustrated { found, figures, tables } = view.live.found.as_ref()?;
            return Some((figures.clone(), tables.clone(), found.name.clone()));
        }
        let run = self.session.runs.get(folder)?;
        if let Some(found) = run.external() {
            return Some((figures(&found.spec, &found.course), Vec::new(), found.spec.name.clone()));
        }
        let found = run.found()?;
        Some((found.results.figures.clone(), found.results.tables.clone(), found.spec.name.clone()))
    }

    fn open_cell_images(&mut self, which: CellImages, folder: PathBuf, cell: String) {
        let Some(info) = &self.session.oracle else {
            return self.session.notify(Level::Warning, "There is no world yet: open an oracle first.");
        };
        let (oracle, world) = (self.session.oracle_name.clone(), info.world_id());
        let planned = self
            .session
            .runs
            .get(&folder)
            .and_then(|run| run.found()?.cells.iter().find(|look| look.planned.id == cell));
        let label = planned.map_or_else(|| cell.clone(), |look| look.planned.label());
        let request = CellImagesRequest { which, folder, cell, label, oracle, world };
        let id = self.engine.open_cell_images(request.clone());
        self.session.asks_cell_images(id, request);
    }

    /// An oracle has opened: if it is the one that was waited for, the images are asked for.
    pub(super) fn open_cell_images_next(&mut self) {
        let wanted = self.runs.cell_images_next.take_if(|(oracle, ..)| *oracle == self.session.oracle_name);
        if let Some((_, which, folder, cell)) = wanted.filter(|_| self.session.oracle.is_some()) {
            self.open_cell_images(which, folder, cell);
        }
    }

    /// Shows a run from now on. Returns its folder as it is kept.
    pub(super) fn show_run(&mut self, folder: &Path) -> PathBuf {
        let folder = kept_path::folder(folder);
        if !self.prefs.runs.contains(&folder) {
            self.prefs.runs.push(folder.clone());
        }
        self.session.runs.know(&self.prefs.runs);
        self.view.show_run(Some(folder.clone()));
        folder
    }

    /// Has the best epoch of a run opened.
    pub(super) fn use_checkpoint(&mut self, run: &Path) {
        let run = kept_path::folder(run);
        let id = self.engine.use_checkpoint(run.clone());
        self.session.adopts(id, &run);
    }

    /// Brings what was open lately into line with other windows. A run that this window computes stays.
    pub(super) fn share(&mut self, lists: &mut SharedLists) {
        let before = self.prefs.runs.clone();
        let computed = self.session.runs.iter().filter(|run| run.job.is_some()).map(|run| run.folder.clone());
        lists.save(&mut self.prefs, &computed.collect::<Vec<_>>());
        for gone in before.iter().filter(|folder| !self.prefs.runs.contains(folder)).collect::<Vec<_>>() {
            self.forget_run(gone);
        }
    }

    fn forget_run(&mut self, folder: &Path) {
        self.prefs.runs.retain(|known| known != folder);
        self.view.compared.remove(folder);
        if self.view.run.as_deref() == Some(folder) {
            self.view.show_run(None);
        }
    }

    /// Copies the command of a run. A spec that is no preset is written to the folder first.
    fn copy_run_command(&mut self, ctx: &egui::Context, spec: ExperimentSpec, folder: PathBuf) {
        let device = self.prefs.device;
        let shipped = PRESETS.iter().find(|preset| preset.spec().is_ok_and(|preset| preset == spec));
        if let Some(preset) = shipped {
            let text = run_command(preset.name, &folder, device);
            return self.copy_line(ctx, text);
        }
        self.copy_written(ctx, move || {
            let file = RunFolder::write_spec(&folder, &spec)?;
            Ok(run_command(&file.display().to_string(), &folder, device))
        });
    }

    /// Opens a run that comes with the program, from where the window keeps its own.
    fn open_example(&mut self, ctx: &egui::Context, name: &'static str) {
        let work = move || unpack(name);
        let does = format!("Unpacking {name} into {}", example_folder(name).display());
        self.runs.background.push(BackgroundTask::start(ctx, "unpack a run", work).doing(does));
    }

    /// Copies the command that comes of writing a spec.
    fn copy_written(&mut self, ctx: &egui::Context, write: impl FnOnce() -> Result<String> + Send + 'static) {
        let work = move || write().map(Done::Written).map_err(|error| error.to_string());
        self.runs.background.push(BackgroundTask::start(ctx, "write a spec", work).doing("Writing the spec of a run"));
    }

    /// Takes the results of background work.
    pub(super) fn poll_run_tasks(&mut self, ctx: &egui::Context) {
        for answer in background::poll_all(&mut self.runs.background) {
            match answer {
                Ok(Done::Written(text)) => {
                    self.copy_line(ctx, text);
                }
                Ok(Done::Unpacked(folder)) => self.open_run(ctx, folder),
                Ok(Done::Found(found)) => self.open_found(found),
                Ok(Done::Missing(purpose, path)) => self.ask_again_for(purpose, path),
                Ok(Done::Gone(saved)) => self.replace_gone(&saved),
                Ok(Done::Picture(image)) => {
                    let [width, height] = image.size;
                    ctx.copy_image(image);
                    self.session.notify(Level::Info, format!("Copied a picture of {width}×{height} pixels"));
                }
                Ok(Done::Deleted(folder)) => {
                    self.forget_run(&folder);
                    self.session.notify(Level::Info, format!("Deleted {}", folder.display()));
                }
                Ok(Done::Noted(folder, notes)) => self.session.runs.noted(&folder, notes),
                Err(why) => self.session.notify(Level::Error, why),
            }
        }
    }

    /// Asks before something is lost.
    pub(super) fn run_question(&mut self, ctx: &egui::Context) {
        let Some(folder) = self.runs.asked.clone() else { return };
        let run = self.session.runs.get(&folder);
        let cells = run.and_then(|run| run.found()).map(|found| (found.finished(), found.cells.len()));
        let modal = Modal::new(Id::unique("delete a run")).show(ctx, |ui| {
            ui.set_width(460.0);
            ui.heading("Delete this run?");
            ui.label(RichText::new(folder.display().to_string()).strong());
            if let Some((finished, all)) = cells {
                ui.label(format!("{finished} of {all} cells are finished."));
            }
            if let Some(Standing::Elsewhere(host)) = run.map(|run| run.standing(&self.session.jobs)) {
                ui.colored_label(Theme::of(ui).error(), format!("A process on {host} is working on it."));
            }
            let text =
                "Its spec, plan, images, checkpoints and results are deleted from the disk. This cannot be taken back.";
            ui.colored_label(Theme::of(ui).warning(), text);
            ui.horizontal(|ui| {
                let delete = ui.button(RichText::new("Delete run").color(Theme::of(ui).error())).clicked();
                (delete, ui.button("Keep run").clicked())
            })
            .inner
        });
        let (delete, keep) = modal.inner;
        if delete {
            self.commands.push(Command::Run(RunCommand::Delete(folder)));
        }
        if delete || keep || modal.should_close() {
            self.runs.asked = None;
        }
    }
}

/// Writes a run that comes with the program to where the window keeps its own.
fn unpack(name: &str) -> std::result::Result<Done, String> {
    let example = Example::find(name).ok_or_else(|| format!("no run {name} comes with the program"))?;
    let folder = example_folder(name);
    example.unpack(&folder).map(|()| Done::Unpacked(folder)).map_err(|error| error.to_string())
}
