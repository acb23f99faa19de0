//! The page *Verify this device*: reference cases on the device in use, and a report.

use eframe::egui::{self, RichText, Ui};

use super::command::Command;
use super::context::Cx;
use super::panels::experiments::findings::grid;
use super::theme::Theme;
use super::widgets::{dialog, empty_state, hint, standing};
use crate::verify::{Report, VerifyDevice};

pub fn show(ctx: &egui::Context, open: &mut bool, cx: &mut Cx) {
    dialog(ctx, "Verify this device", open).default_size([760.0, 560.0]).show(ctx, |ui| content(ui, cx));
}

fn content(ui: &mut Ui, cx: &mut Cx) {
    hint(
        ui,
        "Flows and classifiers whose results are known are computed on the device in use, and each must come within the bound that 32 bits have.",
    );
    let (session, view) = (cx.session, cx.session.tasks.get::<VerifyDevice>());
    let report = view.as_ref().and_then(|view| view.report.clone());
    buttons(ui, cx, view.as_ref().is_some_and(|view| view.under_way()), report.as_deref());
    match &view {
        // What failed says so in its report.
        Some(view) if report.is_none() => {
            standing(
                ui,
                session,
                view,
                "Pause and cancel below, in the list of jobs.",
                "Stopped: press 'Verify' again.",
            );
        }
        Some(_) => {}
        None => empty_state(
            ui,
            "Not verified yet",
            "It takes seconds on a processor; a graphics card compiles its kernels first.\nThe gallery waits while a case computes.",
        ),
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
            cx.commands.push(Command::task(VerifyDevice));
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
