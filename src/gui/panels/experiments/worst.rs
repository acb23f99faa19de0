//! The way from a cell to its worst images in the gallery, and what to do where there is none.

use eframe::egui::{self, Button, RichText, Ui};

use super::super::Cx;
use crate::gui::command::Command;
use crate::gui::runs::RunCommand;
use crate::gui::session::runs::{RunView, WorstView};
use crate::gui::theme::Theme;

/// The button of a finished cell.
pub fn button(ui: &mut Ui, cx: &mut Cx, run: &RunView, cell: &str) {
    let worst = cx.session.runs.worst.as_ref();
    let waits = worst.and_then(|worst| cx.session.jobs.get(worst.job)).is_some_and(|job| !job.ended());
    let button = ui.add_enabled(!waits, Button::new("Worst images"));
    let about = "The test images with the largest KL(p || q), in the gallery; τ, T and π become those of the run";
    if button.on_hover_text(about).on_disabled_hover_text("They are being read.").clicked() {
        cx.commands.push(Command::Run(RunCommand::Worst(run.folder.clone(), cell.to_owned())));
    }
}

/// Why the worst images of a cell cannot be shown, if they were asked for last; where another oracle is open, the way to the
/// run's.
pub fn trouble(ui: &mut Ui, cx: &mut Cx, run: &RunView, cell: &str) {
    let of = |worst: &&WorstView| worst.request.folder == run.folder && worst.request.cell == cell;
    let worst = cx.session.runs.worst.as_ref().filter(of);
    let Some((worst, why)) = worst.and_then(|worst| Some((worst, worst.trouble.as_ref()?))) else { return };
    ui.add(egui::Label::new(RichText::new(why).color(Theme::of(ui).warning())).wrap());
    let Some(oracle) = run.found().map(|found| &found.spec.world.oracle) else { return };
    let other = worst.request.oracle != *oracle;
    if other && ui.button(format!("Open {oracle} and show them")).clicked() {
        let (folder, cell) = (run.folder.clone(), worst.request.cell.clone());
        cx.commands.push(Command::Run(RunCommand::WorstIn(oracle.clone(), folder, cell)));
    }
}
