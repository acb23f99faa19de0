//! The exactness ledger: how far every number and file can be trusted, and why.

use eframe::egui::{self, RichText, Ui};

use super::command::Command;
use super::context::Cx;
use super::prefs::Prefs;
use super::session::Session;
use super::theme::{Badge, Theme};
use super::widgets::{badge, dialog, empty_state, heading, hint};
use crate::bayes::Method;
use crate::provenance::{Made, markdown};

/// What the window shows now, at the present knobs.
fn on_show(session: &Session, prefs: &Prefs) -> Vec<Made> {
    let Some(info) = &session.oracle else { return Vec::new() };
    let settings = prefs.settings();
    let line = |what: &str, provenance| Made { what: what.into(), place: None, provenance };
    let device = session.device.as_ref().map_or_else(String::new, |report| report.used.name.clone());
    let precision = match &session.precision {
        Some(report) => report.to_string(),
        None => "32-bit passes, sums over dimensions in 64 bits; not yet compared with 64-bit passes".into(),
    };
    let exact = info.provenance(Badge::Exact, &settings);
    let posteriors =
        exact.clone().with("seed", prefs.seed.to_string()).with("device", device).with("precision", precision);
    let mut shown = vec![line("Posteriors of the gallery and the inspector", posteriors.clone())];
    let pictures = posteriors.for_the_eye("clipped and rounded to 8 bits for the screen");
    shown.push(line("Pictures of the gallery", pictures));
    let of_world = |badge| info.provenance(badge, &settings);
    if let Some((figure, draws)) = session.bayes.surveyed_with_draws(prefs.tau, &settings.label_law()) {
        let (low, high) = figure.interval;
        let provenance = of_world(Badge::Estimated)
            .with("value", format!("{} [{low}, {high}] (fraction)", figure.value))
            .with("method", Method::Sampling.name())
            .with("draws at each τ", draws.to_string());
        shown.push(line("Bayes error", provenance));
    }
    let readout = session.bayes.readout.fresh();
    if let Some(Ok(estimate)) = readout.map(|readout| readout.outcome.as_ref()) {
        let (low, high) = estimate.figure.interval;
        let provenance = of_world(estimate.badge)
            .with("value", format!("{} [{low}, {high}] (fraction)", estimate.figure.value))
            .with("method", format!("{} ({})", estimate.method.name(), estimate.why))
            .with("points", estimate.samples.to_string());
        shown.push(line("Bayes error", provenance));
    }
    if let Some((_, found)) = session.bayes.information.fresh() {
        let (low, high) = found.aleatoric_nats.interval;
        let value = format!("{} nats [{low}, {high}]", found.aleatoric_nats.value);
        shown.push(line("Aleatoric uncertainty and mutual information", of_world(found.badge).with("A", value)));
    }
    shown
}

/// The whole ledger as a Markdown page.
fn page(session: &Session, prefs: &Prefs) -> String {
    format!(
        "# Exactness ledger\n\n## On show\n\n{}\n## Made in this session\n\n{}",
        markdown(&on_show(session, prefs)),
        markdown(session.ledger.iter())
    )
}

/// Shows the window of the ledger while it is open.
pub fn show(ctx: &egui::Context, open: &mut bool, cx: &mut Cx) {
    dialog(ctx, "Exactness ledger", open).default_size([620.0, 520.0]).show(ctx, |ui| lines(ui, cx));
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
        cx.session.ledger.iter().enumerate().rev().for_each(|(i, made)| line(ui, ("made", i), made));
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
