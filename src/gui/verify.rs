//! The page *Verify this device*: reference cases on the device in use, and a report for whoever can mend it.

use eframe::egui::{self, RichText, Ui};

use super::command::Command;
use super::context::Cx;
use super::panels::experiments::findings::grid;
use super::theme::Theme;
use super::widgets::{empty_state, hint, on_its_way, on_top};
use crate::verify::Report;
use crate::worker::protocol::{Job, Outcome};

/// Shows the page while it is open.
pub fn show(ctx: &egui::Context, open: &mut bool, cx: &mut Cx) {
    on_top(ctx, "Verify this device", open).default_size([760.0, 560.0]).show(ctx, |ui| content(ui, cx));
}

fn content(ui: &mut Ui, cx: &mut Cx) {
    hint(
        ui,
        "Flows and classifiers whose results are known are computed on the device in use, and each must come within the bound that 32 bits have.",
    );
    let (session, verifying) = (cx.session, cx.session.exchange.verifying.as_ref());
    let job = verifying.and_then(|(id, _)| session.jobs.active().find(|job| job.id == *id));
    let report = session.exchange.verified.as_deref();
    buttons(ui, cx, job.is_some(), report);
    match (job, verifying) {
        (Some(job), _) => on_its_way(ui, job, "Pause and cancel below, in the list of jobs."),
        (None, Some((_, Some(Outcome::Cancelled)))) => hint(ui, "Stopped: press 'Verify' again."),
        (None, Some((_, Some(Outcome::Failed(why))))) if report.is_none() => said(ui, why, true),
        (None, _) if report.is_none() => empty_state(
            ui,
            "Not verified yet",
            "It takes seconds on a processor; a graphics card compiles its kernels first.\nThe gallery waits while a case computes.",
        ),
        (None, _) => {}
    }
    let Some(report) = report else { return };
    said(ui, &report.sentence, !report.passed);
    egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| grid(ui, &report.table()));
}

fn said(ui: &mut Ui, sentence: &str, failed: bool) {
    let text = RichText::new(sentence);
    let text = if failed { text.color(Theme::of(ui).error()) } else { text.strong() };
    ui.add(egui::Label::new(text).wrap());
}

fn buttons(ui: &mut Ui, cx: &mut Cx, running: bool, report: Option<&Report>) {
    ui.horizontal_wrapped(|ui| {
        let verify = ui.add_enabled(!running, egui::Button::new("Verify"));
        if verify.on_disabled_hover_text("It is being verified.").clicked() {
            cx.commands.push(Command::Submit(Box::new(Job::Verify)));
        }
        let copy = ui.add_enabled(report.is_some(), egui::Button::new("Copy report"));
        let copy = copy.on_hover_text("As JSON, for a bug report").on_disabled_hover_text("Verify the device first.");
        if let (true, Some(text)) =
            (copy.clicked(), report.and_then(|report| serde_json::to_string_pretty(report).ok()))
        {
            cx.commands.push(Command::CopyText(text));
        }
        let copy = ui.button("Copy verification as command").on_hover_text("The same on the command line");
        if let (true, Some(device)) = (copy.clicked(), &cx.session.device) {
            cx.commands.push(Command::CopyText(format!("bayescope verify --device {}", device.used.choice)));
        }
    });
}
