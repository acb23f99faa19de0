//! Which experiment, and the fields that only it has.

use eframe::egui::{self, ComboBox, DragValue, RichText, TextEdit, Ui};

use super::grid::boxes;
use crate::experiment::form::{Cell, Choices, Field, Input, Number, Rows, Text};
use crate::experiment::{Experiment, KINDS, Preset};
use crate::gui::glossary::{self, beside, explain};
use crate::gui::widgets::{hint, list};

/// The row of kinds. Returns the preset to load, where another kind was chosen.
pub fn kinds(ui: &mut Ui, experiment: &Experiment) -> Option<&'static Preset> {
    let (mut chosen, own) = (None, experiment.about());
    ui.horizontal_wrapped(|ui| {
        for kind in KINDS {
            let button = ui.selectable_label(kind.name == own.name, kind.label).on_hover_text(kind.question);
            if button.accessible_name(format!("New experiment: {}", kind.label)).clicked() {
                chosen = kind.presets.first();
            }
        }
    });
    hint(ui, own.question);
    chosen
}

/// The fields that only one kind has, as they are being edited.
#[derive(Default)]
pub struct KindFields {
    fields: Vec<Field>,
    /// The row that was removed last, and where it stood.
    removed: Option<(usize, Vec<Cell>)>,
}

impl KindFields {
    /// Those of an experiment.
    pub fn of(experiment: &Experiment) -> Self {
        Self { fields: experiment.fields(), removed: None }
    }

    /// The experiment of the fields, or what is wrong with them.
    pub fn ready(&self, experiment: &Experiment) -> Result<Experiment, String> {
        Ok(experiment.with_fields(&self.fields)?.unwrap_or_else(|| experiment.clone()))
    }

    /// Paints the fields; numbers that follow each other stand in a grid.
    pub fn show(&mut self, ui: &mut Ui) {
        let number = |field: &Field| matches!(field, Field::Number(_));
        for (i, fields) in self.fields.chunk_by_mut(|a, b| number(a) && number(b)).enumerate() {
            match fields {
                [Field::Text(field)] => text(ui, field),
                [Field::Choices(field)] => choices(ui, field),
                [Field::Rows(field)] => rows(ui, field, &mut self.removed),
                [Field::Hint(text)] => hint(ui, *text),
                numbers => grid(ui, i, numbers),
            }
        }
    }
}

fn text(ui: &mut Ui, Text { label, meaning, text }: &mut Text) {
    ui.horizontal_wrapped(|ui| {
        let label = ui.label(*label).on_hover_text(*meaning);
        ui.add(TextEdit::singleline(text).desired_width(270.0)).labelled_by(label.id).on_hover_text(*meaning);
    });
}

fn choices(ui: &mut Ui, Choices { label, meaning, each, all }: &mut Choices) {
    ui.horizontal_wrapped(|ui| {
        let shown = ui.label(*label);
        match meaning.is_empty() {
            true => explain(shown, label),
            false => shown.on_hover_text(*meaning),
        };
        boxes(ui, each, all);
    });
}

fn grid(ui: &mut Ui, id: usize, numbers: &mut [Field]) {
    egui::Grid::new(("numbers of the experiment", id)).num_columns(4).spacing([12.0, 4.0]).show(ui, |ui| {
        for (i, field) in numbers.iter_mut().enumerate() {
            if let Field::Number(field) = field {
                number(ui, field);
            }
            if i % 2 == 1 {
                ui.end_row();
            }
        }
    });
}

fn number(ui: &mut Ui, field: &mut Number) {
    let meaning = beside(field.meaning, field.label);
    let label = ui.label(field.label).on_hover_text(&meaning);
    let mut shown = field.scale * field.value;
    let drag = DragValue::new(&mut shown).suffix(field.unit).speed(field.speed).range(0.0..=field.most);
    let drag = if field.decimals == 0 { drag.fixed_decimals(0) } else { drag.max_decimals(field.decimals) };
    if ui
        .add(drag.clamp_existing_to_range(false).update_while_editing(false))
        .labelled_by(label.id)
        .on_hover_text(meaning)
        .changed()
    {
        field.value = shown / field.scale;
    }
}

fn rows(ui: &mut Ui, field: &mut Rows, removed: &mut Option<(usize, Vec<Cell>)>) {
    let Rows { row: what, titles, rows, new, hint: word } = field;
    let mut gone = None;
    list(190.0).hscroll(true).id_salt(*what).auto_shrink([false, true]).show(ui, |ui| {
        let columns = titles.len();
        egui::Grid::new(("rows", *what)).num_columns(columns).striped(true).spacing([10.0, 3.0]).show(ui, |ui| {
            for title in titles {
                glossary::label(ui, RichText::new(*title).small());
            }
            ui.end_row();
            for (i, cells) in rows.iter_mut().enumerate() {
                if row(ui, &format!("{what} {}", i + 1), cells) {
                    gone = Some(i);
                }
                ui.end_row();
            }
        });
    });
    if let Some(i) = gone {
        *removed = Some((i, rows.remove(i)));
    }
    ui.horizontal(|ui| {
        if ui.button(format!("Add a {what}")).clicked() {
            let mut cells = new.clone();
            if let Some(Cell { input: Input::Text(text, _), .. }) = cells.first_mut() {
                *text = format!("{what} {}", rows.len() + 1);
            }
            rows.push(cells);
        }
        let name = removed.as_ref().map(|(_, cells)| format!("Put {} back", first_text(cells)));
        if name.is_some_and(|name| ui.button(name).clicked())
            && let Some((i, cells)) = removed.take()
        {
            rows.insert(i.min(rows.len()), cells);
        }
        hint(ui, *word);
    });
}

fn first_text(cells: &[Cell]) -> &str {
    match cells.first().map(|cell| &cell.input) {
        Some(Input::Text(text, _)) => text,
        _ => "it",
    }
}

/// One row. Returns whether it is to be removed.
fn row(ui: &mut Ui, of: &str, cells: &mut [Cell]) -> bool {
    let choice = cells.iter().position(|cell| matches!(cell.input, Input::Choice(..))).unwrap_or(cells.len());
    let (before, rest) = cells.split_at_mut(choice);
    before.iter_mut().for_each(|cell| input(ui, of, cell));
    // Before a choice, whose width changes: the button stays in view.
    let gone = ui.button("Remove").accessible_name(format!("Remove the setting of {of}")).clicked();
    ui.horizontal(|ui| {
        let mut chosen = 0;
        for cell in rest {
            if cell.only.is_empty() || cell.only.contains(&chosen) {
                input(ui, of, cell);
            }
            if let Input::Choice(now, _) = cell.input {
                chosen = now;
            }
        }
    });
    gone
}

fn input(ui: &mut Ui, of: &str, Cell { name, meaning, word, input, .. }: &mut Cell) {
    let name = format!("{name} of {of}");
    let about = |text: &str| {
        let text = if meaning.is_empty() { text } else { meaning };
        if word.is_empty() { text.to_owned() } else { beside(text, word) }
    };
    match input {
        Input::Text(text, width) => {
            // A field in a grid is as narrow as its column was, unless it asks for its own width.
            let size = [*width, ui.spacing().interact_size.y];
            let shown = ui.add_sized(size, TextEdit::singleline(text)).accessible_name(name);
            shown.on_hover_text(about(text));
        }
        Input::Number { value, range: [least, most], speed, decimals, unit } => {
            let field = DragValue::new(value).range(*least..=*most).speed(*speed).suffix(*unit);
            let field = if *decimals == 0 { field.fixed_decimals(0) } else { field.max_decimals(*decimals) };
            let field = field.clamp_existing_to_range(false).update_while_editing(false);
            ui.add(field).accessible_name(name).on_hover_text(about(""));
        }
        Input::Choice(chosen, all) => {
            let combo = ComboBox::from_id_salt(&name).width(110.0).selected_text(all[*chosen]);
            let shown = combo.show_ui(ui, |ui| {
                all.iter().enumerate().for_each(|(i, word)| drop(ui.selectable_value(chosen, i, *word)));
            });
            let meaning = about("");
            let shown = if meaning.is_empty() { shown.response } else { shown.response.on_hover_text(meaning) };
            shown.accessible_name(name);
        }
    }
}
