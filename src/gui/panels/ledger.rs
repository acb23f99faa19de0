//! The panel *Ledger*: how far everything on show and everything given away can be trusted, and why.

use eframe::egui::{self, RichText, Ui};

use super::{Cx, Panel};
use crate::gui::command::Command;
use crate::gui::session::ledger::{on_show, page};
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{badge, empty_state, heading, hint};
use crate::provenance::Made;

/// The panel's name in saved layouts.
pub const ID: &str = "ledger";

/// The ledger.
#[derive(Default)]
pub struct LedgerPanel;

impl Panel for LedgerPanel {
    fn id(&self) -> &'static str {
        ID
    }

    fn title(&self) -> &'static str {
        "Ledger"
    }

    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let shown = on_show(cx.session, cx.prefs);
        if shown.is_empty() {
            return empty_state(
                ui,
                "Nothing to account for yet",
                "Open an oracle: every number of its world appears here.",
            );
        }
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            ui.horizontal_wrapped(|ui| {
                ui.label(RichText::new("Exactness ledger").strong());
                if ui.button("Copy ledger").on_hover_text("All of it as a Markdown list").clicked() {
                    cx.commands.push(Command::CopyText(page(cx.session, cx.prefs)));
                }
            });
            hint(
                ui,
                "Every number and file with its badge and the chain behind it. Files have theirs beside them: FILE.provenance.json, with their \
                 SHA-256; datasets in dataset.json, figures and tables in their captions and CSV.",
            );
            legend(ui);
            heading(ui, "On show", None);
            shown.iter().enumerate().for_each(|(i, made)| line(ui, ("shown", i), made));
            heading(ui, "Made in this session", None);
            if cx.session.ledger.iter().len() == 0 {
                hint(ui, "Nothing yet: save samples, export a dataset, judge a classifier, save a figure.");
            }
            cx.session.ledger.iter().rev().enumerate().for_each(|(i, made)| line(ui, ("made", i), made));
            ui.add_space(12.0);
        });
    }
}

/// What the four badges mean.
fn legend(ui: &mut Ui) {
    let meanings = [
        (Badge::Exact, "follows from the world without approximation, true to rounding"),
        (Badge::Bounded, "lies within a stated bound"),
        (Badge::Estimated, "its interval holds with 95 % confidence"),
        (Badge::Illustrative, "for the eye only"),
    ];
    ui.horizontal_wrapped(|ui| {
        for (kind, meaning) in meanings {
            badge(ui, kind, meaning);
            ui.label(RichText::new(meaning).small().color(Theme::of(ui).weak()));
            ui.add_space(8.0);
        }
    });
}

fn line(ui: &mut Ui, salt: (&str, usize), made: &Made) {
    let title = match &made.place {
        Some(place) => format!("{}: {place}", made.what),
        None => made.what.clone(),
    };
    ui.horizontal_top(|ui| {
        badge(ui, made.provenance.badge, made.provenance.badge.name());
        ui.vertical(|ui| {
            let header =
                egui::CollapsingHeader::new(title).id_salt(salt).default_open(salt.0 == "shown" && salt.1 == 0);
            header.show(ui, |ui| {
                for (name, value) in &made.provenance.chain {
                    ui.horizontal_wrapped(|ui| {
                        ui.label(RichText::new(name).small().color(Theme::of(ui).weak()));
                        ui.add(egui::Label::new(RichText::new(value).small()).wrap());
                    });
                }
            });
        });
    });
}
