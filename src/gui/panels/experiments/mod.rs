//! The panel *Experiments*: classifiers on a world, planned, trained, watched, measured, compared.

mod cell_images;
mod cells;
mod course;
mod csv;
mod external;
pub(in crate::gui) mod findings;
mod form;
pub(in crate::gui) mod law;
mod law_plot;
mod listed;
mod notes_form;
mod overlay;
mod reliability;
mod table;

use std::path::PathBuf;

use eframe::egui::{self, RichText, Ui};

use crate::experiment::DamagedCell;
use crate::gui::context::{Cx, Panel};
use crate::gui::plot::{Board, Boards};
use crate::gui::session::runs::RunView;
use crate::gui::theme::Theme;
use crate::gui::widgets::{empty_state, heading, hint};
use cells::CellList;
use course::Course;
use form::Form;
use law_plot::Shown;
use table::RunList;

/// The panel's name in saved layouts.
pub const ID: &str = "experiments";

/// The form, and what the plots show.
#[derive(Default)]
pub struct ExperimentsPanel {
    form: Form,
    shown: Shown,
    course: Course,
    figures: Boards,
    law: Board,
    reliability: Board,
    /// The step of an external run whose images are asked for.
    external_step: external::Step,
    /// Its plots.
    external_drawn: external::Drawn,
    runs: RunList,
    /// The list of cells.
    cells: CellList,
    /// The form is to open, something was put into it; or to close, the run is to be seen.
    unfold: Option<bool>,
    /// The run that was shown when the panel was last painted.
    seen: Option<PathBuf>,
}

impl Panel for ExperimentsPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        self.form.picked(ui.ctx(), &mut cx.view.picked);
        // A run that was opened from elsewhere is to be seen: at 1280×800 the form fills the panel.
        if cx.view.run.is_some() && cx.view.run != self.seen {
            self.unfold = Some(false);
        }
        if let Some(preset) = cx.view.preset.take() {
            self.form.take_preset(preset);
            self.unfold = Some(true);
        }
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| self.rows(ui, cx));
        self.seen.clone_from(&cx.view.run);
    }
}

fn nothing_yet(ui: &mut Ui) {
    empty_state(
        ui,
        "No experiment yet",
        "Choose a preset above and press 'Start experiment': classifiers are trained on images of a world\nwhose exact \
         posterior is known. Or open the folder of a run, also one another machine is working on.",
    );
    ui.add_space(12.0);
}

impl ExperimentsPanel {
    /// The form, the list of runs, and the one that is shown.
    fn rows(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let known = cx.session.runs.iter().next().is_some();
        let header = egui::CollapsingHeader::new("New experiment").id_salt("experiment form").default_open(!known);
        let form = header.open(self.unfold.take()).show(ui, |ui| self.form.show(ui, cx));
        if form.body_returned == Some(true) {
            self.unfold = Some(false);
        }
        if let Some(spec) = table::show(ui, cx, &mut self.runs) {
            self.form.duplicate(&spec, cx.prefs);
            self.unfold = Some(true);
        }
        if !known {
            nothing_yet(ui);
            return;
        }
        let session = cx.session;
        let run = cx.view.run.clone().and_then(|folder| session.runs.get(&folder));
        match run {
            Some(run) => self.run(ui, cx, run),
            None => hint(ui, "Click the name of a run to see its cells and curves."),
        }
        ui.add_space(12.0);
    }

    fn run(&mut self, ui: &mut Ui, cx: &mut Cx, run: &RunView) {
        if let Some(Err(why)) = &run.look {
            empty_state(ui, "This run cannot be read", &format!("{why}\nForget it, or put the folder back."));
            return;
        }
        if let Some(found) = run.external() {
            let own = (&mut self.figures, &mut self.external_step, &mut self.external_drawn);
            return external::show(ui, cx, (run, found), own);
        }
        let Some(found) = run.found() else {
            let jobs = &cx.session.jobs;
            let waiting = run.job.and_then(|id| jobs.get(id)).and_then(|job| jobs.waiting(job));
            hint(ui, waiting.unwrap_or_else(|| "Looking into the folder…".into()));
            return;
        };
        cells::show(ui, cx, (run, found), &mut self.cells);
        let summary = &found.results.summary;
        for said in summary.damaged.iter().map(DamagedCell::warning).chain(summary.caveats()) {
            ui.add(egui::Label::new(RichText::new(said).color(Theme::of(ui).warning())).wrap());
        }
        if found.spec.experiment.has_laws() {
            self.course.show(ui, cx, run);
            law::show(ui, cx, run, &mut self.shown, &mut self.law);
        } else {
            findings::show(ui, cx, run, &mut self.figures);
            self.course.show(ui, cx, run);
        }
        match reliability::chosen(found, cx.view.cells.cursor()) {
            Some(result) => reliability::show(ui, cx, run, result, &mut self.reliability),
            None => {
                heading(ui, "Reliability", None);
                hint(
                    ui,
                    "Once a cell has finished: click it in the list of cells to see how well its confidence is calibrated.",
                );
            }
        }
    }
}
