//! An external run: what another program's classifier has yet to learn, step by step.

use std::path::PathBuf;

use eframe::egui::{self, RichText, Slider, Ui};

use super::{cell_images, findings};
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::plot::Boards;
use crate::gui::session::runs::RunView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{badge, heading_with, hint};
use crate::run::external::StepFigures;
use crate::worker::cell_images::CellImages;
use crate::worker::runs::ExternalFound;

/// Its last step in figures, what could not be read, and its curves.
pub fn show(
    ui: &mut Ui,
    cx: &mut Cx,
    (run, found): (&RunView, &ExternalFound),
    (boards, step): (&mut Boards, &mut Step),
) {
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
    worst(ui, cx, (run, found), step);
    findings::all(ui, cx, figures, boards);
}

/// The step whose images are asked for; the last where none is chosen.
#[derive(Default)]
pub struct Step(Option<(PathBuf, u64)>);

/// A step is chosen, and its worst images go to the gallery.
fn worst(ui: &mut Ui, cx: &mut Cx, (run, found): (&RunView, &ExternalFound), Step(chosen): &mut Step) {
    let steps: Vec<u64> = found.course.steps().map(|step| step.step).collect();
    let Some(last) = steps.len().checked_sub(1) else { return };
    let of_run = chosen.as_ref().filter(|(folder, _)| *folder == run.folder);
    let before = of_run.map_or(last, |(_, step)| nearest(&steps, *step as f64));
    let mut at = before;
    ui.horizontal_wrapped(|ui| {
        let label = ui.label("Step of the images");
        let named = steps.clone();
        let slider = Slider::new(&mut at, 0..=last)
            .custom_formatter(move |at, _| named.get(at.round() as usize).map_or_else(String::new, u64::to_string))
            .custom_parser(|text| text.trim().parse().ok().map(|step| nearest(&steps, step) as f64));
        let about = "A logged step of this run; arrow keys go from one to the next";
        ui.add(slider).labelled_by(label.id).on_hover_text(about);
        if at != before {
            // The last is the last also when more come.
            *chosen = (at < last).then(|| (run.folder.clone(), steps[at]));
        }
        let about = "The test images with the largest KL(p || q) at this step, in the gallery, each with its exact posterior and the \
                     classifier's q; τ, T and π become those of the run";
        cell_images::button(ui, cx, run, "", (CellImages::AtStep(steps[at]), "Show worst images", about));
    });
    cell_images::trouble(ui, cx, run, "");
}

/// Where the step nearest to a number stands among rising steps.
fn nearest(steps: &[u64], wanted: f64) -> usize {
    let distance = |&i: &usize| (steps[i] as f64 - wanted).abs();
    (0..steps.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
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
