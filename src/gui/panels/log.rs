//! The log: what happened, when, how bad.

use eframe::egui::{self, RichText, Ui};

use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::session::log::Level;
use crate::gui::theme::Theme;
use crate::gui::widgets::empty_state;

/// Lines that are painted; the rest can be copied.
const SHOWN: usize = 400;

#[derive(Default)]
pub struct LogPanel {
    least: Option<Level>,
}

impl Panel for LogPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        ui.horizontal(|ui| {
            for (least, text) in [(None, "All"), (Some(Level::Warning), "Warnings and errors")] {
                ui.selectable_value(&mut self.least, least, text);
            }
            ui.separator();
            if ui.button("Copy log").clicked() {
                cx.commands.push(Command::CopyText(cx.session.log.to_text()));
            }
            if ui.button("Clear log").clicked() {
                cx.commands.push(Command::ClearLog);
            }
        });
        ui.separator();
        let shown = cx.session.log.iter().filter(|entry| self.least.is_none_or(|least| entry.level >= least));
        let mut last: Vec<_> = shown.rev().take(SHOWN).collect();
        if last.is_empty() {
            let nothing = cx.session.log.iter().len() == 0;
            let title = if nothing { "Nothing has happened yet" } else { "No warnings and no errors" };
            return empty_state(ui, title, "");
        }
        last.reverse();
        let theme = Theme::of(ui);
        egui::ScrollArea::vertical().auto_shrink([false, false]).stick_to_bottom(true).show(ui, |ui| {
            for entry in last {
                let colour = match entry.level {
                    Level::Info => theme.weak(),
                    Level::Warning => theme.warning(),
                    Level::Error => theme.error(),
                };
                ui.horizontal_top(|ui| {
                    ui.label(RichText::new(format!("{} UTC", entry.time())).monospace().color(theme.weak()));
                    ui.label(RichText::new(format!("{:<7}", entry.level.name())).monospace().color(colour));
                    ui.add(egui::Label::new(&entry.text).wrap());
                });
            }
        });
    }
}
