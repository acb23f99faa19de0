//! The window that shows the numbers behind a plot, and the button at the plot that opens it.

use std::time::Instant;

use eframe::egui::{self, RichText, ScrollArea, Ui};

use super::command::{Command, RunCommand};
use super::context::Cx;
use super::data_table::{DataTable, shown};
use super::format;
use super::theme::Theme;
use super::view::View;
use super::widgets::{dialog, empty_state, hint};

/// Seconds between two looks at numbers that may have changed.
const REFRESHED: f64 = 0.5;
/// At most this share of the time goes into looking.
const SHARE: f64 = 0.05;

/// A button that shows the numbers of a plot. `title` is unique in the window, `file` the name of a
/// saved file, `csv` writes the numbers. An open table follows its plot.
pub fn button(ui: &mut Ui, view: &mut View, title: &str, file: &'static str, csv: impl FnOnce() -> String) {
    let open = view.table.as_ref().is_some_and(|table| table.title == title);
    let button = ui
        .add(egui::Button::new("Table").selected(open))
        .on_hover_text("The numbers of the plot, to read, copy and save");
    let clicked = button.accessible_name(format!("Table of {title}")).clicked();
    if clicked && open {
        view.table = None;
        return;
    }
    let now = ui.input(|input| input.time);
    let due = view.table.as_ref().is_none_or(|table| now >= table.due);
    if clicked || (open && due) {
        let began = Instant::now();
        let text = csv();
        let next = |began: Instant| now + REFRESHED.max(began.elapsed().as_secs_f64() / SHARE);
        match &mut view.table {
            Some(table) if open && table.csv == text => table.due = next(began),
            table => {
                let read = DataTable::read(title, file, text, now);
                *table = Some(DataTable { due: next(began), ..read });
            }
        }
    }
}

/// Shows the window of the table while it is open.
pub fn show(ctx: &egui::Context, cx: &mut Cx) {
    let Some(table) = cx.view.table.take() else { return };
    let mut open = true;
    let title = format!("Table: {}", table.title);
    let window = dialog(ctx, &title, &mut open).id(egui::Id::unique("data table")).default_size([780.0, 420.0]);
    window.show(ctx, |ui| content(ui, cx, &table));
    if open && cx.view.table.is_none() {
        cx.view.table = Some(table);
    }
}

fn content(ui: &mut Ui, cx: &mut Cx, table: &DataTable) {
    if table.rows.is_empty() {
        return empty_state(ui, "No numbers yet", "They appear here as soon as the plot has points.");
    }
    ui.horizontal_wrapped(|ui| {
        let rows = if table.rows.len() == 1 { "row" } else { "rows" };
        ui.label(format!("{} {rows}", format::count(table.rows.len())));
        if ui.button("Copy as CSV").on_hover_text("Comma-separated, with the lines that say what it is").clicked() {
            cx.commands.push(Command::CopyText(table.csv.clone()));
        }
        if ui.button("Copy as TSV").on_hover_text("Tab-separated, to be pasted into a spreadsheet").clicked() {
            cx.commands.push(Command::CopyText(table.tsv()));
        }
        if ui.button("Save table…").on_hover_text("As comma-separated values").clicked() {
            cx.commands.push(Command::Run(RunCommand::SavePoints(table.csv.clone(), table.file)));
        }
    });
    if !table.about.is_empty() {
        egui::CollapsingHeader::new("Where from").id_salt("about the table").show(ui, |ui| {
            table.about.iter().for_each(|line| hint(ui, line.as_str()));
        });
    }
    let font = egui::TextStyle::Monospace.resolve(ui.style());
    let character = ui.ctx().fonts_mut(|fonts| fonts.glyph_width(&font, '0'));
    let weak = Theme::of(ui).weak();
    ScrollArea::horizontal().auto_shrink([false, false]).show(ui, |ui| {
        line(ui, &table.columns, &table.widths, character, |text| RichText::new(text).strong().color(weak));
        let height = ui.text_style_height(&egui::TextStyle::Monospace) + 2.0;
        let rows = ScrollArea::vertical().auto_shrink([false, false]).id_salt(&table.title);
        rows.show_rows(ui, height, table.rows.len(), |ui, range| {
            for row in &table.rows[range] {
                line(ui, row, &table.widths, character, |text| RichText::new(text).monospace());
            }
        });
    });
}

fn line(ui: &mut Ui, cells: &[String], widths: &[usize], character: f32, style: impl Fn(String) -> RichText) {
    ui.horizontal(|ui| {
        for (cell, width) in cells.iter().zip(widths) {
            let size = egui::vec2((*width as f32 + 1.0) * character, ui.text_style_height(&egui::TextStyle::Monospace));
            let text = shown(cell);
            let layout = egui::Layout::left_to_right(egui::Align::Center);
            let label = ui.allocate_ui_with_layout(size, layout, |ui| {
                ui.set_min_width(size.x);
                ui.add(egui::Label::new(style(text.clone())).truncate())
            });
            if text != *cell {
                label.inner.on_hover_text(cell);
            }
        }
    });
}
