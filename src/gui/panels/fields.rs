//! Fields that several forms have.

use eframe::egui::{Button, ComboBox, DragValue, TextEdit, TextStyle, Ui, emath::Numeric};

use crate::gui::background::{Field, Purpose};
use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::glossary;
use crate::gui::primary_action::primary_button;
use crate::gui::theme::Theme;
use crate::task::Task;

/// Moves a path that was chosen for `field` into `value`. Returns whether there was one.
pub fn take_picked(cx: &mut Cx, field: Field, value: &mut String) -> bool {
    let picked = cx.view.picked.take_if(|(wanted, _)| *wanted == field);
    picked.map(|(_, path)| *value = path.display().to_string()).is_some()
}

/// A path field with a button for the desktop's dialog. Returns whether a path was chosen there.
pub fn path(ui: &mut Ui, cx: &mut Cx, name: &str, value: &mut String, field: Field) -> bool {
    let picked = take_picked(cx, field, value);
    let label = glossary::explain(ui.label(name), name);
    let width = (ui.available_size_before_wrap().x - 230.0).clamp(120.0, 420.0);
    ui.add(TextEdit::singleline(value).desired_width(width)).labelled_by(label.id);
    if ui.button("Browse…").accessible_name(format!("Browse for: {name}")).clicked() {
        cx.commands.push(Command::Browse(Purpose::Field(field)));
    }
    picked
}

/// A path field in a row of its own.
pub fn path_row(ui: &mut Ui, cx: &mut Cx, name: &str, value: &mut String, field: Field) -> bool {
    ui.horizontal_wrapped(|ui| path(ui, cx, name, value, field)).inner
}

/// Words of the row that starts a task.
pub struct StartWords {
    pub start: &'static str,
    /// Tooltip of the button; may be empty.
    pub about: &'static str,
    /// Label of the button that copies the task as a command line; `None` for a task without one.
    pub copy: Option<&'static str>,
    /// Why nothing can be started while a task of the type is under way.
    pub busy: &'static str,
}

/// The row below a form: start button, copy button, and why the form is not `ready`.
pub fn start_row<T: Task>(
    ui: &mut Ui,
    cx: &mut Cx,
    ready: Result<T, String>,
    words: &StartWords,
    command: impl FnOnce(&T) -> String,
) {
    ui.horizontal_wrapped(|ui| {
        let why = start_buttons(ui, cx, (ready, true), words, command);
        if !why.is_empty() {
            ui.colored_label(Theme::of(ui).warning(), &why);
        }
    });
}

/// The same row for a task beside the panel's main one: no key starts it, and why it cannot be
/// started is a tooltip.
pub fn side_row<T: Task>(
    ui: &mut Ui,
    cx: &mut Cx,
    ready: Result<T, String>,
    words: &StartWords,
    command: impl FnOnce(&T) -> String,
) {
    ui.horizontal_wrapped(|ui| start_buttons(ui, cx, (ready, false), words, command));
}

/// The buttons of a task that is `main` in its panel or not. Returns why it cannot be started.
fn start_buttons<T: Task>(
    ui: &mut Ui,
    cx: &mut Cx,
    (ready, main): (Result<T, String>, bool),
    words: &StartWords,
    command: impl FnOnce(&T) -> String,
) -> String {
    let running = cx.session.tasks.get::<T>().is_some_and(|view| view.under_way());
    let why = match &ready {
        _ if running => words.busy.to_owned(),
        Err(why) => why.clone(),
        Ok(_) => String::new(),
    };
    let start = match main {
        true => primary_button(ui, &mut cx.view.primary, words.start, words.about, &why),
        false => {
            let button = ui.add_enabled(why.is_empty(), Button::new(words.start)).on_disabled_hover_text(&why);
            button.on_hover_text(words.about).clicked()
        }
    };
    let copied = words.copy.is_some_and(|text| {
        let copy = ui.add_enabled(ready.is_ok(), Button::new(text)).on_disabled_hover_text(&why);
        copy.on_hover_text("The same on the command line").clicked()
    });
    if let Ok(task) = ready {
        if copied {
            cx.commands.push(Command::CopyText(command(&task)));
        }
        if start {
            cx.commands.push(Command::task(task));
        }
    }
    why
}

/// Breaks the row where less than `width` points are left. Returns whether it did.
pub fn together(ui: &mut Ui, width: f32) -> bool {
    let breaks = ui.available_size_before_wrap().x < width;
    if breaks {
        ui.end_row();
        // A row begins without a height, and its label would lie above the field.
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

/// A choice among presets. Returns the one that was chosen.
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

/// A row with the file of a spec. Returns whether it was just chosen or is to be loaded.
pub fn spec_file(ui: &mut Ui, cx: &mut Cx, name: &str, value: &mut String, field: Field, verb: &str) -> bool {
    ui.horizontal_wrapped(|ui| {
        let picked = path(ui, cx, name, value, field);
        let load = ui.add_enabled(!value.trim().is_empty(), Button::new(verb));
        load.on_disabled_hover_text("Give the file first.").clicked() || picked
    })
    .inner
}

/// What a number takes of a row with its label and its unit, about, points.
pub const NUMBER: f32 = 210.0;

/// A number with its unit. Returns whether it changed.
pub fn number<N: Numeric>(ui: &mut Ui, name: &str, value: &mut N, unit: &str, speed: f64, meaning: &str) -> bool {
    let field = DragValue::new(value).suffix(unit).speed(speed).range(0.0..=1e9);
    let field = if N::INTEGRAL { field.fixed_decimals(0) } else { field.max_decimals(7) };
    drag(ui, name, field, meaning)
}

/// A seed: any whole number of 64 bits. Returns whether it changed.
pub fn seed(ui: &mut Ui, name: &str, value: &mut u64, speed: f64, meaning: &str) -> bool {
    drag(ui, name, DragValue::new(value).speed(speed).range(0..=u64::MAX).fixed_decimals(0), meaning)
}

/// A field with its label. A number that a file has brought stays what it is until somebody edits it.
fn drag(ui: &mut Ui, name: &str, field: DragValue<'_>, meaning: &str) -> bool {
    let meaning = glossary::beside(meaning, name);
    let label = ui.label(name).on_hover_text(&meaning);
    let field = field.clamp_existing_to_range(false).update_while_editing(false);
    ui.add(field).labelled_by(label.id).on_hover_text(meaning).changed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use eframe::egui::{self, RawInput};

    #[test]
    fn what_is_painted_stays_as_it_was() {
        let ctx = egui::Context::default();
        let (mut many, mut share, mut any) = (3_000_000_000_u64, 2e10, u64::MAX - 5);
        let _ = ctx.run_ui(RawInput::default(), |ui| {
            assert!(!number(ui, "Steps", &mut many, "", 1.0, "Steps"));
            assert!(!number(ui, "Rate", &mut share, "", 1.0, "Rate"));
            assert!(!seed(ui, "Seed", &mut any, 1.0, "Seed"));
        });
        assert_eq!((many, share, any), (3_000_000_000, 2e10, u64::MAX - 5));
    }
}
