//! The bar at the top.

use eframe::egui::{self, RichText, Ui};

use super::command::{Command, Line, Needs, menus, shortcut};
use super::context::Cx;
use super::prefs::{History, ThemePreference};
use super::theme::Theme;

/// What a menu leaves free of the window's height below the bar, its own edges with it, points.
const BELOW: f32 = 28.0;

pub fn show(ui: &mut Ui, cx: &mut Cx, panels: &[(&'static str, &'static str)], history: &History) {
    egui::MenuBar::new().ui(ui, |ui| {
        ui.label(RichText::new("Bayescope").strong().color(Theme::of(ui).accent()));
        for (title, lines) in menus(panels) {
            let room = (ui.ctx().content_rect().bottom() - ui.min_rect().bottom() - BELOW).max(0.0);
            ui.menu_button(title, |ui| {
                let scroll = egui::ScrollArea::vertical().max_height(room).min_scrolled_height(room);
                scroll.show(ui, |ui| {
                    ui.style_mut().wrap_mode = Some(egui::TextWrapMode::Extend);
                    lines.into_iter().for_each(|it| line(ui, cx, history, it));
                });
            });
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            for (look, text) in
                [(ThemePreference::Dark, "Dark"), (ThemePreference::Light, "Light"), (ThemePreference::System, "Auto")]
            {
                let button = ui.selectable_label(cx.prefs.theme == look, text);
                if button.accessible_name(format!("Theme: {text}")).on_hover_text("Light or dark").clicked() {
                    cx.prefs.theme = look;
                }
            }
            ui.separator();
            if ui.button("Commands").on_hover_text("Every command by name (Ctrl+P)").clicked() {
                cx.commands.push(Command::Palette);
            }
        });
    });
}

fn line(ui: &mut Ui, cx: &mut Cx, history: &History, line: Line) {
    match line {
        Line::Separator => drop(ui.separator()),
        Line::Choice(title, choices) => {
            let button = ui.menu_button(title, |ui| {
                for (text, command) in choices {
                    let holds = match command {
                        Command::Theme(look) => cx.prefs.theme == look,
                        Command::Scale(percent) => cx.prefs.scale == percent,
                        _ => false,
                    };
                    if ui.selectable_label(holds, text).clicked() {
                        cx.commands.push(command);
                        ui.close();
                    }
                }
            });
            in_view(&button.response);
        }
        Line::Item(text, command, needs) => {
            // What would change is named: it may be out of sight.
            let of = |change: Option<String>| change.map(|what| format!("{text}: {what}"));
            let (enabled, named) = match needs {
                Needs::Nothing => (true, None),
                Needs::Oracle => (cx.session.oracle.is_some(), None),
                Needs::Past => (history.available().0, of(history.undoes())),
                Needs::Future => (history.available().1, of(history.redoes())),
            };
            item(ui, cx, named.as_deref().unwrap_or(text), command, enabled);
        }
    }
}

fn item(ui: &mut Ui, cx: &mut Cx, text: &str, command: Command, enabled: bool) {
    let keys = shortcut(&command).map(|keys| ui.ctx().format_shortcut(&keys)).unwrap_or_default();
    let button = ui.add_enabled(enabled, egui::Button::new(text).shortcut_text(keys));
    in_view(&button);
    if button.accessible_name(text).clicked() {
        cx.commands.push(command);
        ui.close();
    }
}

/// Scrolls a long menu to the line that the keyboard has come to.
fn in_view(line: &egui::Response) {
    if line.gained_focus() {
        line.scroll_to_me(None);
    }
}
