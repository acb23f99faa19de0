//! What the finished cells of a run say together: its figures and tables, to read and to save.

use std::path::Path;

use eframe::egui::{self, RichText, Ui};

use crate::figure::{Figure, Table};
use crate::gui::command::RunCommand;
use crate::gui::command::{Command, quote};
use crate::gui::context::Cx;
use crate::gui::glossary;
use crate::gui::plot::{About, Boards};
use crate::gui::session::runs::RunView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{heading_with, hint};

/// Characters from which on a cell of a table is a sentence, and how wide it may be, points.
const SENTENCE: usize = 44;
const WIDEST: f32 = 260.0;

/// Figures and tables of a run.
pub fn show(ui: &mut Ui, cx: &mut Cx, run: &RunView, boards: &mut Boards) {
    let Some(found) = run.found() else { return };
    let results = &found.results;
    let name = found.spec.experiment.about().label;
    heading_with(ui, name, |ui| {
        crate::gui::widgets::badge(
            ui,
            Badge::Estimated,
            "Every figure says in its caption what its intervals are over",
        );
        let none = results.figures.is_empty().then_some("No cell has finished yet.");
        save_buttons(ui, cx, &run.folder, none);
    });
    hint(ui, found.spec.experiment.about().question);
    if results.figures.is_empty() {
        hint(ui, "No cell has finished yet: figures appear with the first and fill in as more are done.");
    }
    all(ui, cx, &results.figures, boards);
    results.tables.iter().for_each(|table| grid(ui, table));
}

/// Buttons that save all figures of a run, and copy the command that does; `none` says why there are
/// no figures.
pub fn save_buttons(ui: &mut Ui, cx: &mut Cx, folder: &Path, none: Option<&str>) {
    let save = ui.add_enabled(none.is_none(), egui::Button::new("Save all figures…"));
    let about = "Every figure as SVG, PNG and CSV, every table as CSV, and a page with all of them, into a folder";
    if save.on_hover_text(about).on_disabled_hover_text(none.unwrap_or_default()).clicked() {
        cx.commands.push(Command::Run(RunCommand::SaveFigures(folder.to_owned())));
    }
    let copy = ui.add_enabled(none.is_none(), egui::Button::new("Copy figures command"));
    if copy.on_hover_text("The same on the command line").clicked() {
        cx.commands.push(Command::CopyText(figures_command(folder)));
    }
}

/// The command that writes all figures and tables of a run.
pub fn figures_command(folder: &Path) -> String {
    let path = |path: &Path| quote(&path.display().to_string());
    format!("bayescope summary {} --figures {}", path(folder), path(&folder.join("figures")))
}

/// Paints all figures of a report, each as [`one`].
pub fn all(ui: &mut Ui, cx: &mut Cx, figures: &[Figure], boards: &mut Boards) {
    figures.iter().for_each(|figure| one(ui, cx, figure, boards));
}

/// A figure with its title, its caption and where it comes from.
pub fn one(ui: &mut Ui, cx: &mut Cx, figure: &Figure, boards: &mut Boards) {
    ui.add_space(8.0);
    ui.label(RichText::new(&figure.title).strong());
    boards.of(figure).show(ui, cx, figure, &About::default());
    ui.add(egui::Label::new(RichText::new(&figure.caption).small()).wrap());
    let said = figure.provenance.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n");
    ui.label(RichText::new("provenance").small().color(Theme::of(ui).weak())).on_hover_text(said);
}

/// A table with its caption.
pub fn grid(ui: &mut Ui, table: &Table) {
    ui.add_space(8.0);
    ui.label(RichText::new(&table.title).strong());
    egui::ScrollArea::horizontal().id_salt(("table", &table.id)).show(ui, |ui| {
        let columns = table.columns.len();
        egui::Grid::new(&table.id).num_columns(columns).striped(true).spacing([14.0, 2.0]).show(ui, |ui| {
            for column in &table.columns {
                glossary::label(ui, RichText::new(column.heading()).small().color(Theme::of(ui).weak()));
            }
            ui.end_row();
            for row in table.shown() {
                for cell in row {
                    // Sentences take several lines, figures one.
                    ui.scope(|ui| {
                        let long = cell.chars().count() > SENTENCE;
                        let label = egui::Label::new(cell);
                        if long {
                            ui.set_max_width(WIDEST);
                            ui.add(label.wrap());
                        } else {
                            ui.add(label.wrap_mode(egui::TextWrapMode::Extend));
                        }
                    });
                }
                ui.end_row();
            }
        });
    });
    hint(ui, table.caption.clone());
}
