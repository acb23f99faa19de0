//! The page *Precision*: what 32-bit arithmetic on the present device costs, against 64 bits on the CPU.

use eframe::egui::{self, Ui};

use super::command::Command;
use super::figures::Drawings;
use super::panels::Cx;
use super::panels::experiments::findings::{grid, one};
use super::widgets::{empty_state, hint, on_top};
use crate::validate::IMAGES;
use crate::worker::protocol::Job;

/// The page, and its figure as it was painted last.
#[derive(Default)]
pub struct PrecisionPage {
    /// Whether it is open.
    pub open: bool,
    drawings: Drawings,
}

impl PrecisionPage {
    /// Shows the page while it is open.
    pub fn show(&mut self, ctx: &egui::Context, cx: &mut Cx) {
        let Self { open, drawings } = self;
        on_top(ctx, "Precision", open).default_size([620.0, 560.0]).show(ctx, |ui| content(ui, drawings, cx));
    }
}

fn content(ui: &mut Ui, drawings: &mut Drawings, cx: &mut Cx) {
    hint(
        ui,
        "Posteriors are computed in 32 bits with sums over dimensions in 64. Here the very same images are scored once more in 64 bits on the CPU.",
    );
    let running = cx.session.jobs.active().any(|job| Some(job.id) == cx.session.exchange.comparing);
    let ready = cx.session.oracle.is_some() && cx.prefs.tau > 0.0 && !running;
    ui.horizontal_wrapped(|ui| {
        let compare = ui.add_enabled(ready, egui::Button::new(format!("Compare {IMAGES} images")));
        let why = if running { "It is being compared." } else { "Open an oracle and choose a τ above 0 first." };
        if compare.on_disabled_hover_text(why).clicked() {
            let job = Job::ComparePrecision { images: IMAGES, settings: cx.prefs.settings() };
            cx.commands.push(Command::Submit(Box::new(job)));
        }
        let copy = ui.add_enabled(cx.session.oracle.is_some(), egui::Button::new("Copy comparison as command"));
        if copy.on_hover_text("The same on the command line").clicked() {
            let oracle = super::command::quote(&cx.session.oracle_name);
            let knobs = super::command::knobs(cx.prefs);
            let text = format!("bayescope oracle precision {oracle} --images {IMAGES}{knobs}");
            cx.commands.push(Command::CopyText(text));
        }
    });
    let session = cx.session;
    let Some((table, figure)) = &session.exchange.compared else {
        return empty_state(
            ui,
            "Not compared yet",
            "It takes seconds for a small oracle of few classes and grows with both: every class of every image is\nscored in 64 bits on the CPU. Cancel below, in the list of jobs.",
        );
    };
    egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        grid(ui, table);
        one(ui, cx, figure, |ui| drawings.show(ui, 0, figure));
    });
}
