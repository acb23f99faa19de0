//! Fields that several forms have.

use eframe::egui::{DragValue, TextEdit, Ui, emath::Numeric};

use super::Cx;
use crate::gui::background::Purpose;
use crate::gui::command::Command;

/// A path: typed, or chosen in the desktop's dialog.
pub fn path(ui: &mut Ui, cx: &mut Cx, name: &str, value: &mut String, purpose: Purpose) {
    let label = ui.label(name);
    let width = (ui.available_size_before_wrap().x - 230.0).clamp(120.0, 420.0);
    ui.add(TextEdit::singleline(value).desired_width(width)).labelled_by(label.id);
    if ui.button("Browse…").accessible_name(format!("Browse for: {name}")).clicked() {
        cx.commands.push(Command::Browse(purpose));
    }
}

/// A number with its unit; whether it changed.
pub fn number<N: Numeric>(ui: &mut Ui, name: &str, value: &mut N, unit: &str, speed: f64, meaning: &str) -> bool {
    let label = ui.label(name).on_hover_text(meaning);
    let field = DragValue::new(value).suffix(unit).speed(speed).range(0.0..=1e9).update_while_editing(false);
    let field = if N::INTEGRAL { field.fixed_decimals(0) } else { field.max_decimals(7) };
    ui.add(field).labelled_by(label.id).on_hover_text(meaning).changed()
}
