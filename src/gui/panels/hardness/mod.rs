//! The panel *Hardness* (of datasets): corpora ranked by the Bayes error of a flow trained on each.

mod form;

use eframe::egui::{self, RichText, Ui};

use super::experiments::findings::{all, figures_command, grid};
use crate::figure::Illustrated;
use crate::gui::command::{Command, RunCommand};
use crate::gui::context::{Cx, Panel};
use crate::gui::failures;
use crate::gui::format;
use crate::gui::plot::Boards;
use crate::gui::runs::resume_command;
use crate::gui::session::tasks::TaskView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{badge, empty_state, heading_with, hint};
use crate::run::Share;
use crate::run::hardness::{LiveCorpus, RankCorpora};
use form::Form;

pub use form::FOLDER;

/// The panel's name in saved layouts.
pub const ID: &str = "hardness";

/// The form, and the figures as they were painted last.
#[derive(Default)]
pub struct HardnessPanel {
    form: Form,
    figures: Boards,
}

impl Panel for HardnessPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        // A folder that was dropped, or chosen elsewhere, is seen: the form may be closed above another ranking.
        let unfold = self.form.picked(ui.ctx(), &mut cx.view.picked).then_some(true);
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            let view = cx.session.tasks.get::<RankCorpora>();
            let header = egui::CollapsingHeader::new("New ranking").id_salt("ranking form").default_open(view.is_none());
            header.open(unfold).show(ui, |ui| self.form.show(ui, cx));
            match &view {
                Some(view) => self.ranking(ui, cx, view),
                None => empty_state(
                    ui,
                    "No ranking yet",
                    "Give the folder of each corpus above and press 'Start ranking': a flow is trained on each, and the\nBayes error \
                     of its world is computed. Or name the folder of a ranking and continue it.",
                ),
            }
            ui.add_space(12.0);
        });
    }
}

impl HardnessPanel {
    fn ranking(&mut self, ui: &mut Ui, cx: &mut Cx, view: &TaskView<'_, RankCorpora>) {
        let running = view.under_way();
        heading_with(ui, "Dataset hardness", |ui| buttons(ui, cx, view, running));
        hint(ui, view.task.folder.display().to_string());
        if let Some(why) = view.trouble() {
            failures::show(ui, view.job, why);
        }
        if let Some(live) = view.live.live.as_ref().filter(|_| running) {
            ui.label(training(live));
        }
        let Some(Illustrated { found, figures, tables }) = &view.live.found else {
            let text = match running {
                true => "Figures appear with the first finished corpus. Pause and cancel below, in the list of jobs.",
                false => "Stopped: 'Resume ranking' trains what is not finished.",
            };
            return hint(ui, text);
        };
        ui.label(format!("{} of {} corpora finished, easiest first:", found.corpora.len(), found.planned));
        for trouble in &found.troubles {
            let text = format!("{}: {}", trouble.corpus, trouble.why);
            ui.add(egui::Label::new(RichText::new(text).color(Theme::of(ui).warning())).wrap());
        }
        all(ui, cx, figures, &mut self.figures);
        tables.iter().for_each(|table| grid(ui, table));
    }
}

/// What can be done with the ranking on show.
fn buttons(ui: &mut Ui, cx: &mut Cx, view: &TaskView<'_, RankCorpora>, running: bool) {
    let folder = &view.task.folder;
    badge(
        ui,
        Badge::Estimated,
        "The Bayes error of each trained world, with its interval; how near the world is to the corpus, the NLL hints at",
    );
    if ui
        .add_enabled(!running, egui::Button::new("Resume ranking"))
        .on_hover_text("Trains what is not finished")
        .on_disabled_hover_text("It is under way.")
        .clicked()
    {
        cx.commands.push(Command::task(RankCorpora { spec: None, folder: folder.clone(), share: Share::ALL }));
    }
    if ui.button("Copy resume command").clicked() {
        cx.commands.push(Command::CopyText(resume_command(folder, cx.prefs)));
    }
    let drawn = view.live.found.as_ref().is_some_and(|found| !found.figures.is_empty());
    let save = ui.add_enabled(drawn, egui::Button::new("Save all ranking figures…"));
    if save.on_disabled_hover_text("No corpus has finished yet.").clicked() {
        cx.commands.push(Command::Run(RunCommand::SaveFigures(folder.clone())));
    }
    let copy = ui.add_enabled(drawn, egui::Button::new("Copy figures command"));
    let copy = copy.on_hover_text("The same on the command line");
    if copy.on_disabled_hover_text("No corpus has finished yet.").clicked() {
        cx.commands.push(Command::CopyText(figures_command(folder)));
    }
}

/// The corpus at work, in a line.
fn training(live: &LiveCorpus) -> String {
    let mut text = match live.epochs {
        0 => format!("{}: reading its images", live.name),
        epochs => format!("{}: epoch {:.2} of {epochs}", live.name, live.epoch),
    };
    if let Some(of) = &live.held_out {
        text += &format!(", held out {} bits/dim", format::sig4(of.bits_per_dim));
    }
    if let Some(secs) = live.eta_secs {
        text += &format!(", {} left of its training", format::duration(secs));
    }
    text
}
