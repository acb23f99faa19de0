//! The numbers behind a plot, as a table: what a saved CSV of it holds, to be read, copied and saved.

use eframe::egui::{self, RichText, ScrollArea, Ui};

use super::command::Command;
use super::format;
use super::panels::Cx;
use super::runs::RunCommand;
use super::theme::Theme;
use super::view::View;
use super::widgets::{empty_state, hint, on_top};

/// Seconds between two looks at numbers that may have changed.
const REFRESHED: f64 = 0.5;
/// Widest column, characters.
const WIDEST: usize = 40;

/// The table that is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataTable {
    /// Whose numbers: the plot's title.
    pub title: String,
    /// The name of its file.
    file: &'static str,
    csv: String,
    /// Lines before the table: what they say of it.
    about: Vec<String>,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    /// When the numbers were looked at last, seconds.
    looked: f64,
}

impl DataTable {
    /// Reads comma-separated values; lines that begin with `#` say what they are.
    fn read(title: &str, file: &'static str, csv: String, looked: f64) -> Self {
        let about = csv.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect();
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).flexible(true).from_reader(csv.as_bytes());
        let fields = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
        let columns = reader.headers().map(fields).unwrap_or_default();
        let rows = reader.records().filter_map(|record| record.ok().map(|record| fields(&record))).collect();
        Self { title: title.into(), file, about, columns, rows, looked, csv }
    }

    /// The same with tabs, for spreadsheets.
    fn tsv(&self) -> String {
        let clean = |field: &String| field.replace(['\t', '\n'], " ");
        let line = |fields: &Vec<String>| fields.iter().map(clean).collect::<Vec<_>>().join("\t") + "\n";
        std::iter::once(&self.columns).chain(&self.rows).map(line).collect()
    }

    /// Characters of each column.
    fn widths(&self) -> Vec<usize> {
        let longest = |place: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(place)).map(|cell| shown(cell).chars().count());
            let head = self.columns.get(place).map_or(0, |head| head.chars().count());
            cells.max().unwrap_or(0).max(head).min(WIDEST)
        };
        (0..self.columns.len()).map(longest).collect()
    }
}

/// A button at a plot that shows its numbers. `title` is the plot's, unique in the window; `file` is what a file of the numbers would
/// be called; `csv` writes them. While the table is open it follows the plot.
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
    let due = view.table.as_ref().is_none_or(|table| now - table.looked >= REFRESHED);
    if clicked || (open && due) {
        let text = csv();
        match &mut view.table {
            Some(table) if open && table.csv == text => table.looked = now,
            table => *table = Some(DataTable::read(title, file, text, now)),
        }
    }
}

/// Shows the window of the table while it is open.
pub fn show(ctx: &egui::Context, cx: &mut Cx) {
    let Some(table) = cx.view.table.take() else { return };
    let mut open = true;
    let title = format!("Table: {}", table.title);
    let window = on_top(ctx, &title, &mut open).id(egui::Id::unique("data table")).default_size([780.0, 420.0]);
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
    let widths = table.widths();
    let font = egui::TextStyle::Monospace.resolve(ui.style());
    let character = ui.ctx().fonts_mut(|fonts| fonts.glyph_width(&font, '0'));
    let weak = Theme::of(ui).weak();
    ScrollArea::horizontal().auto_shrink([false, false]).show(ui, |ui| {
        line(ui, &table.columns, &widths, character, |text| RichText::new(text).strong().color(weak));
        let height = ui.text_style_height(&egui::TextStyle::Monospace) + 2.0;
        let rows = ScrollArea::vertical().auto_shrink([false, false]).id_salt(&table.title);
        rows.show_rows(ui, height, table.rows.len(), |ui, range| {
            for row in &table.rows[range] {
                line(ui, row, &widths, character, |text| RichText::new(text).monospace());
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

/// Numbers with six digits; what is copied and saved has them all.
fn shown(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) if cell.len() > 9 && number.is_finite() => short(number),
        _ => cell.to_owned(),
    }
}

fn short(number: f64) -> String {
    if number != 0.0 && !(1e-4..1e7).contains(&number.abs()) {
        return format!("{number:.5e}");
    }
    let decimals = (5.0 - number.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_what_is_shown() {
        let csv = "# plot: p, over q\n# world: mnist\nname,value\n\"a, b\",0.123456789012\nc,-3\n";
        let table = DataTable::read("p", "p.csv", csv.into(), 0.0);
        assert_eq!(table.about, ["plot: p, over q", "world: mnist"]);
        assert_eq!(table.columns, ["name", "value"]);
        assert_eq!(table.rows, [["a, b", "0.123456789012"], ["c", "-3"]]);
        assert_eq!(table.tsv(), "name\tvalue\na, b\t0.123456789012\nc\t-3\n");
        assert_eq!(table.widths(), [4, 8]);
    }

    #[test]
    fn numbers_are_shortened_for_the_eye_only_where_they_are_long() {
        let pairs = [
            ("0.123456789012", "0.123457"),
            ("1e-300", "1e-300"),
            ("1.2345678901e-30", "1.23457e-30"),
            ("12345.678901", "12345.7"),
            ("100.000000000", "100"),
            ("0", "0"),
            ("linear net", "linear net"),
        ];
        for (cell, expected) in pairs {
            assert_eq!(shown(cell), expected);
        }
    }
}
