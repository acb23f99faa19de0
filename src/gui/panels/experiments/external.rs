//! An external run: what another program's classifier has yet to learn, step by step.

use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::{self, RichText, Slider, Ui};

use super::{cell_images, findings};
use crate::figure::Figure;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::plot::Boards;
use crate::gui::session::runs::RunView;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{badge, heading_with, hint};
use crate::run::external::{StepFigures, figures};
use crate::worker::cell_images::CellImages;
use crate::worker::runs::ExternalFound;

/// Its last step in figures, what could not be read, and its curves.
pub fn show(
    ui: &mut Ui,
    cx: &mut Cx,
    (run, found): (&RunView, &Arc<ExternalFound>),
    (boards, step, drawn): (&mut Boards, &mut Step, &mut Drawn),
) {
    let ExternalFound { spec, course } = &**found;
    let figures = drawn.of(found);
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
        Some(last) => drop(ui.label(sentence(&last))),
        None => hint(ui, "No record of predictions has been read yet: curves appear with the first."),
    }
    if course.waiting > 0 {
        hint(ui, format!("{} records are still to be read.", format::count(course.waiting)));
    }
    for text in course.unread() {
        ui.add(egui::Label::new(RichText::new(text).color(Theme::of(ui).warning())).wrap());
    }
    worst(ui, cx, (run, found), step);
    findings::all(ui, cx, figures, boards);
}

/// The step whose images are asked for; the last where none is chosen.
#[derive(Default)]
pub struct Step(Option<(PathBuf, u64)>);

/// The figures of the run that is shown, as long as what is known of it stays the same.
#[derive(Default)]
pub struct Drawn(Option<(Arc<ExternalFound>, Vec<Figure>)>);

impl Drawn {
    fn of(&mut self, found: &Arc<ExternalFound>) -> &[Figure] {
        let kept = self.0.take().filter(|(of, _)| Arc::ptr_eq(of, found));
        let drawn = || (found.clone(), figures(&found.spec, &found.course));
        &self.0.insert(kept.unwrap_or_else(drawn)).1
    }
}

/// A step is chosen, and its worst images go to the gallery.
fn worst(ui: &mut Ui, cx: &mut Cx, (run, found): (&RunView, &ExternalFound), Step(chosen): &mut Step) {
    let course = &*found.course;
    let Some(last) = course.count().checked_sub(1) else { return };
    let of_run = chosen.as_ref().filter(|(folder, _)| *folder == run.folder);
    let before = of_run.map_or(last, |(_, step)| course.nearest(*step as f64));
    let mut at = before;
    ui.horizontal_wrapped(|ui| {
        let label = ui.label("Step of the images");
        let named = |at: f64, _| course.step(at.round() as usize).map_or_else(String::new, |step| step.to_string());
        let slider = Slider::new(&mut at, 0..=last)
            .custom_formatter(named)
            .custom_parser(|text| text.trim().parse().ok().map(|step| course.nearest(step) as f64));
        let about = "A logged step of this run; arrow keys go from one to the next";
        ui.add(slider).labelled_by(label.id).on_hover_text(about);
        if at != before {
            // The last is the last also when more come.
            *chosen = course.step(at).filter(|_| at < last).map(|step| (run.folder.clone(), step));
        }
        let Some(step) = course.step(at) else { return };
        let about = "The test images with the largest KL(p || q) at this step, in the gallery, each with its exact posterior and the \
                     classifier's q; τ, T and π become those of the run";
        cell_images::button(ui, cx, run, "", (CellImages::AtStep(step), "Show worst images", about));
    });
    cell_images::trouble(ui, cx, run, "");
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
