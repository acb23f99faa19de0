//! The exactness ledger: how far everything on show and everything given away can be trusted, and why.

use eframe::egui::{self, RichText, Ui};

use super::command::Command;
use super::panels::Cx;
use super::session::ledger::{on_show, page};
use super::theme::{Badge, Theme};
use super::widgets::{badge, empty_state, heading, hint, on_top};
use crate::provenance::Made;

/// Shows the window of the ledger while it is open.
pub fn show(ctx: &egui::Context, open: &mut bool, cx: &mut Cx) {
    on_top(ctx, "Exactness ledger", open).default_size([620.0, 520.0]).show(ctx, |ui| lines(ui, cx));
}

fn lines(ui: &mut Ui, cx: &mut Cx) {
    let shown = on_show(cx.session, cx.prefs);
    if shown.is_empty() {
        return empty_state(
            ui,
            "Nothing to account for yet",
            "Open an oracle: every number of its world appears here.",
        );
    }
    egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        hint(
            ui,
            "Every number and file with its badge and the chain behind it. Files have theirs beside them (FILE.provenance.json, with their \
             SHA-256), datasets in dataset.json, figures and tables in their captions and CSV.",
        );
        legend(ui);
        if ui.button("Copy ledger").on_hover_text("All of it as a Markdown list").clicked() {
            cx.commands.push(Command::CopyText(page(cx.session, cx.prefs)));
        }
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
