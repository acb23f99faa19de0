//! An external run: what another program's classifier has yet to learn, step by step.

use eframe::egui::{self, RichText, Ui};

use super::findings;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::plot::Boards;
use crate::gui::session::runs::RunView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{badge, heading_with, hint};
use crate::run::external::StepFigures;
use crate::worker::runs::ExternalFound;

/// Its last step in figures, what could not be read, and its curves.
pub fn show(ui: &mut Ui, cx: &mut Cx, (run, found): (&RunView, &ExternalFound), boards: &mut Boards) {
    let ExternalFound { spec, course, figures } = found;
    heading_with(ui, "External run", |ui| {
        badge(ui, Badge::Estimated, "Exact posteriors; intervals are over the test images");
        let none = figures.is_empty().then_some("No record of predictions has been read yet.");
        findings::save_buttons(ui, cx, &run.folder, none);
    });
    let (images, kind) = (spec.test.images, spec.external.predictions.describe());
    hint(
        ui,
        format!(
            "Another program logs {kind} on {} test images of {} at τ = {}.",
            format::count(images),
            spec.world.oracle,
            spec.world.tau.get()
        ),
    );
    match course.steps().next_back() {
        Some(last) => drop(ui.label(sentence(last))),
        None => hint(ui, "No record of predictions has been read yet: curves appear with the first."),
    }
    if course.waiting > 0 {
        hint(ui, format!("{} records are still to be read.", format::count(course.waiting)));
    }
    let refused = course.refused();
    if let Some(last) = refused.last() {
        let text = format!("{} records are not read; that of step {}: {}", refused.len(), last.step, last.why);
        ui.add(egui::Label::new(RichText::new(text).color(Theme::of(ui).warning())).wrap());
    }
    findings::all(ui, cx, figures, boards);
}

fn sentence(step: &StepFigures) -> String {
    let percent = |share: f64| format::sig4(100.0 * share);
    format!(
        "Step {}: L {} = A {} + KL {} nats; wrong {} % expected, {} % at least; ECE {}, exact {}",
        step.step,
        format::sig4(step.cross_entropy.value),
        format::sig4(step.aleatoric.value),
        format::sig4(step.epistemic.value),
        percent(step.expected_error.value),
        percent(step.bayes_error.value),
        format::sig4(step.ece),
        format::sig4(step.exact_calibration_error)
    )
}
