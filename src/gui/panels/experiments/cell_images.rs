//! From a cell to its images in the gallery, its worst or those it bought, and what to do without
//! any.

use eframe::egui::{self, Button, RichText, Ui};

use crate::experiment::{Bought, CellResult};
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::failures;
use crate::gui::session::runs::{CellImagesView, RunView};
use crate::gui::theme::Theme;
use crate::oracle::library;
use crate::worker::cell_images::CellImages;

/// The buttons of a finished cell.
pub fn buttons(ui: &mut Ui, cx: &mut Cx, run: &RunView, result: &CellResult) {
    let about = "The test images with the largest KL(p || q), in the gallery; τ, T and π become those of the run";
    button(ui, cx, run, &result.id, (CellImages::Worst, "Worst images", about));
    if result.output.as_ref().is_some_and(|output| output.get::<Bought>().is_some()) {
        let about = "The first images whose labels its strategy bought after the random start, in that order, in the gallery; τ, T and π \
                     become those of the run";
        button(ui, cx, run, &result.id, (CellImages::Bought, "Images it bought", about));
    }
}

/// A button that asks for images, once at a time.
pub fn button(ui: &mut Ui, cx: &mut Cx, run: &RunView, cell: &str, (which, title, about): (CellImages, &str, &str)) {
    let images = cx.session.runs.cell_images.as_ref();
    let waits = images.and_then(|images| cx.session.jobs.get(images.job)).is_some_and(|job| !job.ended());
    let button = ui.add_enabled(!waits, Button::new(title));
    if button.on_hover_text(about).on_disabled_hover_text("They are being read.").clicked() {
        cx.commands.push(Command::Run(RunCommand::ShowCell(which, run.folder.clone(), cell.to_owned())));
    }
}

/// Why the images of a cell that were asked for last cannot be shown; with another oracle open, the
/// way to the run's.
pub fn trouble(ui: &mut Ui, cx: &mut Cx, run: &RunView, cell: &str) {
    let of = |images: &&CellImagesView| images.request.folder == run.folder && images.request.cell == cell;
    let images = cx.session.runs.cell_images.as_ref().filter(of);
    let Some((images, why)) = images.and_then(|images| Some((images, images.trouble.as_ref()?))) else { return };
    let told = ui.add(egui::Label::new(RichText::new(why).color(Theme::of(ui).warning())).wrap());
    failures::seen(&told, images.job);
    let of_external = || {
        let world = &run.external()?.spec.world;
        Some(library::opening(&world.oracle, &world.weights_sha256))
    };
    let Some(oracle) = run.found().map(|found| found.results.oracle.clone()).or_else(of_external) else { return };
    let other = images.request.oracle != oracle;
    if other && ui.button(format!("Open {oracle} and show them")).clicked() {
        let (folder, cell) = (run.folder.clone(), images.request.cell.clone());
        cx.commands.push(Command::Run(RunCommand::ShowCellIn(oracle, images.request.which, folder, cell)));
    }
}
