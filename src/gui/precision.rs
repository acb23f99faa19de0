//! The page *Precision*: 32-bit arithmetic on the present device against 64 bits on the CPU.

use eframe::egui::{self, Ui};

use super::command::Command;
use super::context::Cx;
use super::panels::experiments::findings::{all, grid};
use super::plot::Boards;
use super::widgets::{dialog, empty_state, hint, standing};
use crate::units::Seed;
use crate::validate::{ComparePrecision, IMAGES};

/// The page, and its figure as it was painted last.
#[derive(Default)]
pub struct PrecisionPage {
    pub open: bool,
    boards: Boards,
}

impl PrecisionPage {
    pub fn show(&mut self, ctx: &egui::Context, cx: &mut Cx) {
        let Self { open, boards } = self;
        dialog(ctx, "Precision", open).default_size([620.0, 560.0]).show(ctx, |ui| content(ui, boards, cx));
    }
}

fn content(ui: &mut Ui, boards: &mut Boards, cx: &mut Cx) {
    hint(
        ui,
        "Posteriors are computed in 32 bits with sums over dimensions in 64. Here the very same images are scored once more in 64 bits on the CPU.",
    );
    let (session, view) = (cx.session, cx.session.tasks.get::<ComparePrecision>());
    let report = view.as_ref().and_then(|view| view.last_report.clone());
    buttons(ui, cx, view.as_ref().is_some_and(|view| view.under_way()));
    match &view {
        Some(view) => {
            let stopped = format!("Stopped: press 'Compare {IMAGES} images' again.");
            standing(ui, session, view, "Pause and cancel below, in the list of jobs.", &stopped);
        }
        None => empty_state(
            ui,
            "Not compared yet",
            "It takes seconds for a small oracle of few classes and grows with both: every class of every image is\nscored in 64 bits on the CPU. Cancel below, in the list of jobs.",
        ),
    }
    let Some(report) = report else { return };
    egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        report.tables.iter().for_each(|table| grid(ui, table));
        all(ui, cx, &report.figures, boards);
    });
}

fn buttons(ui: &mut Ui, cx: &mut Cx, running: bool) {
    let open = cx.session.oracle.is_some();
    ui.horizontal_wrapped(|ui| {
        let button = egui::Button::new(format!("Compare {IMAGES} images"));
        let compare = ui.add_enabled(open && cx.prefs.tau > 0.0 && !running, button);
        let why = if running { "It is being compared." } else { "Open an oracle and choose a τ above 0 first." };
        if compare.on_disabled_hover_text(why).clicked() {
            cx.commands.push(Command::task(ComparePrecision {
                images: IMAGES,
                settings: cx.prefs.settings(),
                seed: Seed(0),
            }));
        }
        let copy = ui.add_enabled(open, egui::Button::new("Copy comparison as command"));
        let copy = copy.on_hover_text("The same on the command line").on_disabled_hover_text("Open an oracle first.");
        if copy.clicked() {
            let oracle = super::command::quote(&cx.session.oracle_name);
            let knobs = super::command::knobs(cx.prefs);
            let text = format!("bayescope oracle precision {oracle} --images {IMAGES}{knobs}");
            cx.commands.push(Command::CopyText(text));
        }
    });
}
