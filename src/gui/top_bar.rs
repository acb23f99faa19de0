//! The bar at the top.

use eframe::egui::{self, RichText, Ui};

use super::command::{Command, shortcut};
use super::panels::Cx;
use super::prefs::Look;
use super::theme::Theme;

/// Shows the bar.
pub fn show(ui: &mut Ui, cx: &mut Cx, panels: &[(&'static str, &'static str)], (undo, redo): (bool, bool)) {
    egui::MenuBar::new().ui(ui, |ui| {
        ui.label(RichText::new("Bayescope").strong().color(Theme::of(ui).accent()));
        ui.menu_button("File", |ui| {
            item(ui, cx, "Open…", Command::Open, true);
            item(ui, cx, "Save samples…", Command::Save, cx.session.oracle.is_some());
            item(ui, cx, "Fetch a corpus…", Command::ShowFetch(None), true);
            item(ui, cx, "Copy as command", Command::CopyCommand, cx.session.oracle.is_some());
            ui.separator();
            item(ui, cx, "Quit", Command::Quit, true);
        });
        ui.menu_button("Edit", |ui| {
            item(ui, cx, "Undo", Command::Undo, undo);
            item(ui, cx, "Redo", Command::Redo, redo);
            ui.separator();
            item(ui, cx, "Select all", Command::SelectAll, true);
            item(ui, cx, "Reset τ, T and prior", Command::ResetKnobs, true);
        });
        ui.menu_button("View", |ui| {
            item(ui, cx, "World card", Command::ToggleWorldCard, true);
            item(ui, cx, "Inspector", Command::ToggleInspector, true);
            for (id, title) in panels {
                item(ui, cx, title, Command::ShowPanel(id), true);
            }
            item(ui, cx, "Reset the layout", Command::ResetLayout, true);
            ui.separator();
            item(ui, cx, "Fullscreen", Command::Fullscreen, true);
            item(ui, cx, "Frame times", Command::Overlay, true);
            item(ui, cx, "Exactness ledger", Command::Ledger, true);
            item(ui, cx, "Precision", Command::Precision, true);
        });
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            for (look, text) in [(Look::Dark, "Dark"), (Look::Light, "Light"), (Look::System, "Auto")] {
                let button = ui.selectable_label(cx.prefs.look == look, text);
                if button.accessible_name(format!("Theme: {text}")).on_hover_text("Light or dark").clicked() {
                    cx.prefs.look = look;
                }
            }
            ui.separator();
            if ui.button("Commands").on_hover_text("Every command by name (Ctrl+P)").clicked() {
                cx.commands.push(Command::Palette);
            }
        });
    });
}

fn item(ui: &mut Ui, cx: &mut Cx, text: &str, command: Command, enabled: bool) {
    let keys = shortcut(&command).map(|keys| ui.ctx().format_shortcut(&keys)).unwrap_or_default();
    if ui.add_enabled(enabled, egui::Button::new(text).shortcut_text(keys)).clicked() {
        cx.commands.push(command);
        ui.close();
    }
}
