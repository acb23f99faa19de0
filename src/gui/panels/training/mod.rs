//! Training an oracle: a form, and how the run goes.

mod curves;
mod form;
mod sheets;

use std::time::Instant;

use eframe::egui::{self, Ui};

use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::failures;
use crate::gui::format;
use crate::gui::plot::Board;
use crate::gui::session::jobs::{JobView, State};
use crate::gui::session::tasks::TaskView;
use crate::gui::theme::Theme;
use crate::gui::widgets::{empty_state, fact, facts, heading, hint, said};
use crate::measure::student_half;
use crate::run::TrainOracle;
use crate::worker::protocol::Outcome;
use form::Form;
use sheets::Sheets;

pub use form::DATA;

pub const ID: &str = "training";

/// The form and the textures of the samples.
#[derive(Default)]
pub struct TrainingPanel {
    form: Form,
    sheets: Sheets,
    bits: bool,
    boards: [Board; 2],
}

impl Panel for TrainingPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        self.form.prepare(cx);
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            let Some(view) = cx.session.tasks.get::<TrainOracle>() else {
                self.form.show(ui, cx);
                return empty_state(
                    ui,
                    "No training yet",
                    "Give a folder of images and a folder for the run, and press 'Start training': its curves and\nits samples appear \
                     here, epoch after epoch.",
                );
            };
            // Folded from the start on: the curves are what is looked at then.
            let header = egui::CollapsingHeader::new("New run").id_salt("training form");
            header.show(ui, |ui| self.form.show(ui, cx));
            heading(ui, "Run", None);
            controls(ui, cx, &view);
            if !view.under_way() && !view.live.has_begun() {
                return;
            }
            figures(ui, cx, &view);
            curves::show(ui, cx, view.live, &mut self.bits, &mut self.boards);
            self.sheets.show(ui, view.job, view.live);
        });
    }
}

/// Pause, resume, cancel, continue, and the world of the best epoch so far.
fn controls(ui: &mut Ui, cx: &mut Cx, view: &TaskView<'_, TrainOracle>) {
    let (train, folder) = (view.live, &view.task.folder);
    let place = format!("In {}", folder.display());
    hint(ui, if train.headline.is_empty() { place } else { format!("{}. {place}", train.headline) });
    let job = cx.session.jobs.get(view.job).filter(|job| !job.ended());
    let waiting = job.and_then(|job| cx.session.jobs.waiting(job));
    standing(ui, view, job, waiting.as_deref());
    ui.horizontal_wrapped(|ui| {
        if let Some(job) = job {
            let paused = job.state == State::Paused;
            let word = if paused { "Resume training" } else { "Pause training" };
            if ui.button(word).on_hover_text("Holds after the present step; nothing is lost").clicked() {
                cx.commands.push(Command::SetPaused(job.id, !paused));
            }
            let stop = ui.button("Cancel training");
            if stop
                .on_hover_text("What is trained so far stays in the folder: 'Continue training' goes on from there")
                .clicked()
            {
                cx.commands.push(Command::Cancel(job.id));
            }
        } else if unfinished(view) {
            let button =
                ui.button("Continue training").on_hover_text("Goes on where it stopped, with the spec in its folder");
            if button.clicked() {
                cx.commands.push(Command::task(view.task.clone()));
            }
        }
        let ready = (train.best.is_some() || train.resumed_at > 0) && !folder.as_os_str().is_empty();
        let button = ui.add_enabled(ready, egui::Button::new("Use this checkpoint now"));
        let about = "Opens the averaged weights of the best epoch so far as the world. The run goes on undisturbed.";
        let button = button.on_hover_text(about).on_disabled_hover_text("Once the first epoch is over.");
        if button.clicked() {
            cx.commands.push(Command::UseCheckpoint(folder.clone()));
        }
    });
}

/// Whether the run ended early and its folder has what it can go on from.
fn unfinished(view: &TaskView<'_, TrainOracle>) -> bool {
    matches!(view.outcome, Some(Outcome::Cancelled | Outcome::Failed(_))) && view.live.can_go_on()
}

/// Where the run stands, in a sentence.
fn standing(ui: &mut Ui, view: &TaskView<'_, TrainOracle>, job: Option<&JobView>, waiting: Option<&str>) {
    let theme = Theme::of(ui);
    let (text, colour) = match (view.outcome, job) {
        (Some(Outcome::Failed(why)), _) => return failures::show(ui, view.job, why),
        (Some(Outcome::Cancelled), _) if unfinished(view) => {
            ("Stopped: 'Continue training' goes on from here.", theme.warning())
        }
        (Some(Outcome::Cancelled), _) => ("Stopped before its first step: start it again.", theme.warning()),
        (Some(Outcome::Done(text)), _) => (text.as_str(), theme.good()),
        (None, Some(job)) => (waiting.unwrap_or(job.note.as_str()), theme.weak()),
        (None, None) => return,
    };
    if !text.is_empty() {
        said(ui, text, colour);
    }
}

fn figures(ui: &mut Ui, cx: &Cx, view: &TaskView<'_, TrainOracle>) {
    let (train, epochs) = (view.live, view.task.spec.training.epochs);
    facts(ui, "training facts", |ui| {
        let now = train.steps.last().map_or(0.0, |step| step[0]);
        fact(ui, "Epoch", format!("{now:.2} of {epochs}"), "Passes over the training images.");
        if let Some(left) = cx.session.jobs.get(view.job).and_then(|job| job.eta_secs(Instant::now())) {
            fact(ui, "Time left", format::duration(left), "At the pace so far.");
        }
        if let Some(point) = train.points.last() {
            let e = &point.held_out;
            let nll = format::plus_minus(e.nll_nats, student_half(e.nll_std_error, e.images));
            let about = "Mean -log p(x|y), 8-bit pixels, with its 95 % interval.";
            fact(ui, "Held-out NLL", format!("{nll} nats/image"), about);
            fact(ui, "Bits per dimension", format!("{} bits/dim", format::sig4(e.bits_per_dim)), "");
            let accuracy = format::right(e);
            fact(ui, "Held-out accuracy", accuracy, "Of the flow's own Bayes decision, [95 %].");
        }
        if let Some(best) = train.best {
            fact(ui, "Best epoch", best.to_string(), "By held-out NLL; this one is kept.");
        }
        if let Some(rate) = train.learning_rate {
            fact(ui, "Learning rate", format::sig4(rate), "Of the last step.");
        }
        if let Some(scale) = train.rate_scale {
            fact(ui, "Went back", format!("rate × {scale}"), "Training diverged and goes on from a checkpoint.");
        }
        if train.skipped > 0 {
            fact(ui, "Skipped steps", train.skipped.to_string(), "Loss or gradient was not finite.");
        }
    });
}
