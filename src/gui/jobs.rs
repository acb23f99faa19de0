//! The bottom of the window: jobs with progress, time left, pause and cancel; and the status line.

use std::time::Instant;

use eframe::egui::{self, Button, ProgressBar, RichText, Ui};

use super::command::Command;
use super::context::Cx;
use super::format;
use super::session::jobs::{JobView, State};
use super::theme::Theme;
use super::widgets::list;
use crate::units::counted;
use crate::worker::protocol::{Asked, Outcome};

/// The list scrolls when it is higher than this, points.
const HEIGHT: f32 = 140.0;

/// Shows the list of jobs.
pub fn show(ui: &mut Ui, cx: &mut Cx) {
    let now = Instant::now();
    ui.horizontal(|ui| {
        ui.label(RichText::new("Jobs").strong());
        if cx.session.jobs.iter().any(JobView::ended) && ui.button("Clear finished").clicked() {
            cx.commands.push(Command::ClearJobs);
        }
    });
    list(HEIGHT).auto_shrink([false, true]).id_salt("jobs").show(ui, |ui| {
        for job in cx.session.jobs.iter() {
            ui.scope(|ui| {
                ui.set_opacity(job.presence(now));
                let said = cx.view.told.contains(&job.id);
                row(ui, (job, cx.session.jobs.waiting(job), said), now, cx.commands);
            });
        }
    });
}

/// A job, what it waits for, and whether a panel in view says why it failed.
type Row<'a> = (&'a JobView, Option<String>, bool);

fn row(ui: &mut Ui, (job, waiting, said): Row<'_>, now: Instant, commands: &mut Vec<Command>) {
    let theme = Theme::of(ui);
    match &job.state {
        State::Ended(outcome) => {
            let (colour, word, text) = match outcome {
                Outcome::Done(text) => (theme.good(), "done", text.as_str()),
                Outcome::Cancelled => (theme.weak(), "cancelled", ""),
                Outcome::Failed(_) if said => (theme.error(), "failed", ""),
                Outcome::Failed(text) => (theme.error(), "failed", text.as_str()),
            };
            ui.horizontal_wrapped(|ui| {
                ui.label(RichText::new(word).color(colour).strong());
                ui.label(&job.title);
                ui.add(egui::Label::new(RichText::new(text).color(colour)).wrap().selectable(true));
            });
        }
        state => {
            ui.horizontal(|ui| {
                let paused = *state == State::Paused;
                let cancel = Button::new("Cancel");
                let cancel =
                    ui.add_enabled(!job.stopping, cancel).on_disabled_hover_text("It stops after the step it is in.");
                if cancel.accessible_name(format!("Cancel job {}: {}", job.id, job.title)).clicked() {
                    commands.push(Command::Cancel(job.id));
                }
                let word = if paused { "Resume" } else { "Pause" };
                if ui.button(word).accessible_name(format!("{word} job {}: {}", job.id, job.title)).clicked() {
                    commands.push(Command::SetPaused(job.id, !paused));
                }
                let width = (ui.available_width() * 0.35).clamp(80.0, 260.0);
                let bar = ProgressBar::new(job.fraction().unwrap_or(0.0)).desired_width(width);
                let progress = progress_text(job, waiting.is_some());
                ui.add(bar.text(progress.as_str())).widget_info(|| {
                    let name = format!("{}: {progress}", job.title);
                    egui::WidgetInfo::labeled(egui::Role::ProgressIndicator, true, name)
                });
                ui.label(&job.title);
                if let Some(left) = job.eta_secs(now) {
                    ui.label(RichText::new(format!("{} left", format::duration(left))).color(theme.weak()));
                }
                let note = waiting.filter(|_| job.behind.is_some()).unwrap_or_else(|| job.note.clone());
                ui.add(egui::Label::new(RichText::new(note).color(theme.weak())).truncate());
            });
        }
    }
}

fn progress_text(job: &JobView, waiting: bool) -> String {
    match (&job.state, job.progress) {
        _ if job.stopping => "stopping".into(),
        _ if waiting => "waiting".into(),
        (State::Paused, _) => "paused".into(),
        (_, Some(p)) if p.total > 0 => {
            format!(
                "{:.0} % ({} of {})",
                100.0 * p.done as f64 / p.total as f64,
                format::count(p.done),
                format::count(p.total)
            )
        }
        (_, Some(_)) => "at work".into(),
        _ => "starting".into(),
    }
}

/// The line at the very bottom.
pub fn status(ui: &mut Ui, cx: &Cx) {
    ui.horizontal(|ui| {
        let weak = Theme::of(ui).weak();
        let active = cx.session.jobs.active().count();
        let gallery = &cx.session.gallery;
        let progress = gallery.progress();
        let mut text = match active {
            0 => "No jobs".to_owned(),
            n => counted(n, "job"),
        };
        if let Some(what) = &cx.session.preparing {
            text += &format!(" · {what}…");
        } else if cx.session.unanswered.contains_key(&Asked::Gallery) {
            text += " · the samples cannot be drawn: see the log";
        } else if progress.total > 0 && !gallery.complete() {
            let doing = if cx.view.halted { "samples stopped" } else { "drawing samples" };
            text += &format!(" · {doing}: {} of {}", format::count(progress.done), format::count(progress.total));
        }
        ui.label(RichText::new(text).small().color(weak));
        if let Some(late) = &cx.view.late {
            ui.spinner();
            ui.label(RichText::new(format!("{late}…")).small());
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let device =
                cx.session.device.as_ref().map_or("looking for a device…", |report| report.used.name.as_str());
            ui.label(RichText::new(device).small().color(weak));
            let oracle = cx.session.oracle.as_ref().map_or("no oracle", |oracle| oracle.name.as_str());
            ui.label(RichText::new(format!("{oracle} ·")).small().color(weak));
        });
    });
}
