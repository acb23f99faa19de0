//! Fields that several forms have.

use eframe::egui::{Button, ComboBox, DragValue, TextEdit, TextStyle, Ui, emath::Numeric};

use crate::gui::background::{Field, Purpose};
use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::glossary;

/// A path: typed, or chosen in the desktop's dialog.
pub fn path(ui: &mut Ui, cx: &mut Cx, name: &str, value: &mut String, field: Field) {
    let label = glossary::explain(ui.label(name), name);
    let width = (ui.available_size_before_wrap().x - 230.0).clamp(120.0, 420.0);
    ui.add(TextEdit::singleline(value).desired_width(width)).labelled_by(label.id);
    if ui.button("Browse…").accessible_name(format!("Browse for: {name}")).clicked() {
        cx.commands.push(Command::Browse(Purpose::Field(field)));
    }
}

/// Breaks the row where less than `width` points are left of it, so that a label is not parted from its field; whether it did.
pub fn together(ui: &mut Ui, width: f32) -> bool {
    let breaks = ui.available_size_before_wrap().x < width;
    if breaks {
        ui.end_row();
        // A row begins without a height, and its label would lie at the top of what the field makes of it.
        let field = ui.text_style_height(&TextStyle::Button) + 2.0 * ui.spacing().button_padding.y;
        ui.set_row_height(field.max(ui.spacing().interact_size.y));
    }
    breaks
}

/// What something is called. Label and field stay together where a row is broken.
pub fn called(ui: &mut Ui, name: &str, value: &mut String) {
    together(ui, 290.0);
    let label = ui.label(name);
    ui.add(TextEdit::singleline(value).desired_width(140.0)).labelled_by(label.id);
}

/// A choice among presets; the one that was chosen.
pub fn preset<'a, P>(
    ui: &mut Ui,
    label: &str,
    current: &str,
    presets: impl Iterator<Item = &'a P>,
    name: fn(&P) -> &'static str,
) -> Option<&'a P> {
    let of = glossary::explain(ui.label(label), label);
    let mut chosen = None;
    let combo = ComboBox::from_id_salt(("preset", label)).width(190.0).truncate().selected_text(current);
    let shown = combo.show_ui(ui, |ui| {
        for preset in presets {
            if ui.selectable_label(current == name(preset), name(preset)).clicked() {
                chosen = Some(preset);
            }
        }
    });
    shown.response.labelled_by(of.id);
    chosen
}

/// A row with the file of a spec; whether it is to be loaded.
pub fn spec_file(ui: &mut Ui, cx: &mut Cx, name: &str, value: &mut String, field: Field, verb: &str) -> bool {
    ui.horizontal_wrapped(|ui| {
        path(ui, cx, name, value, field);
        let load = ui.add_enabled(!value.trim().is_empty(), Button::new(verb));
        load.on_disabled_hover_text("Give the file first.").clicked()
    })
    .inner
}

/// A number with its unit; whether it changed.
pub fn number<N: Numeric>(ui: &mut Ui, name: &str, value: &mut N, unit: &str, speed: f64, meaning: &str) -> bool {
    let meaning = glossary::beside(meaning, name);
    let label = ui.label(name).on_hover_text(&meaning);
    let field = DragValue::new(value).suffix(unit).speed(speed).range(0.0..=1e9).update_while_editing(false);
    let field = if N::INTEGRAL { field.fixed_decimals(0) } else { field.max_decimals(7) };
    ui.add(field).labelled_by(label.id).on_hover_text(meaning).changed()
}
