//! The runs this window knows, and what can be done with the one that is shown.

use std::time::Instant;

use eframe::egui::{self, Button, Color32, RichText, Ui};

use crate::experiment::ExperimentSpec;
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::runs::carry_on_command;
use crate::gui::session::runs::{RunView, Standing};
use crate::gui::theme::Theme;
use crate::gui::widgets::heading_with;

/// Characters of a run's name that are shown; the rest is in its tooltip.
const LONGEST: usize = 28;

/// The table; the spec to copy into the form, if that was asked for.
pub fn show(ui: &mut Ui, cx: &mut Cx) -> Option<ExperimentSpec> {
    heading_with(ui, "Runs", |ui| {
        if ui.button("Open a run…").on_hover_text("A run folder, also one that others are working on").clicked() {
            cx.commands.push(Command::Open);
        }
    });
    let session = cx.session;
    session.runs.iter().next()?;
    let several = session.runs.iter().nth(1).is_some();
    egui::Grid::new("runs").num_columns(5).striped(true).spacing([14.0, 3.0]).show(ui, |ui| {
        let compare = if several { "compare" } else { "" };
        for title in ["run", "cells finished", "state", "time left", compare] {
            ui.label(RichText::new(title).small().color(Theme::of(ui).weak()));
        }
        ui.end_row();
        for run in session.runs.iter() {
            row(ui, cx, run);
            ui.end_row();
        }
    });
    let shown = cx.view.run.clone()?;
    buttons(ui, cx, session.runs.get(&shown)?)
}

fn row(ui: &mut Ui, cx: &mut Cx, run: &RunView) {
    let place = run.folder.display().to_string();
    let shown = cx.view.run.as_ref() == Some(&run.folder);
    let name = elided(&run.name());
    let name = ui.add(Button::selectable(shown, RichText::new(name).strong()).wrap_mode(egui::TextWrapMode::Extend));
    if name.on_hover_text(&place).accessible_name(format!("Show run {place}")).clicked() {
        cx.view.show_run(Some(run.folder.clone()));
    }
    let records = || run.external().map(|found| format!("{} records", found.course.records));
    let cells = run.found().map(|found| format!("{} of {}", found.finished(), found.cells.len())).or_else(records);
    ui.label(cells.unwrap_or_else(|| "?".into()));
    let standing = run.standing(&cx.session.jobs);
    let (word, colour, about) = words(ui, &standing);
    let about = run.trouble.as_ref().map_or(about, Clone::clone);
    let state = ui.colored_label(colour, word);
    if !about.is_empty() {
        state.on_hover_text(about);
    }
    let job = run.job.and_then(|job| cx.session.jobs.get(job));
    let left = job.and_then(|job| job.eta_secs(Instant::now())).map(format::duration);
    ui.label(left.unwrap_or_default()).on_hover_text("At the pace of steps so far; those of other networks differ.");
    if cx.session.runs.iter().nth(1).is_none() {
        return;
    }
    let mut compared = cx.view.compared.contains(&run.folder);
    let has_laws = run.external().is_none();
    let check = ui.add_enabled(!shown && has_laws, egui::Checkbox::without_text(&mut compared));
    let check = check.on_hover_text("Draws its laws beside those of the run that is shown");
    let why = if has_laws { "This is the run that is shown." } else { "An external run has no laws." };
    let check = check.on_disabled_hover_text(why);
    if check.accessible_name(format!("Compare with run {place}")).changed() {
        match compared {
            true => drop(cx.view.compared.insert(run.folder.clone())),
            false => drop(cx.view.compared.remove(&run.folder)),
        }
    }
}

/// A name short enough for its column.
fn elided(name: &str) -> String {
    if name.chars().count() <= LONGEST { name.into() } else { name.chars().take(LONGEST - 1).chain(['…']).collect() }
}

/// A word for where a run stands, its colour, and what it means.
fn words(ui: &Ui, standing: &Standing) -> (String, Color32, String) {
    let theme = Theme::of(ui);
    let (word, colour, about) = match standing {
        Standing::Unknown => ("looking…".into(), theme.weak(), ""),
        Standing::Unreadable(why) => return ("cannot be read".into(), theme.error(), why.clone()),
        Standing::Waiting => ("waiting".into(), theme.weak(), "Another job of this window goes first."),
        Standing::Running => ("running".into(), theme.accent(), "This window works on it."),
        Standing::Paused => ("paused".into(), theme.warning(), "Held; nothing is lost."),
        Standing::Elsewhere(host) => (format!("running on {host}"), theme.accent(), "Another process works on it."),
        Standing::Silent => ("silent".into(), theme.warning(), "A cell has not been heard of for a minute: killed?"),
        Standing::Failed(1) => ("1 cell failed".into(), theme.error(), "The list of cells says why."),
        Standing::Failed(n) => (format!("{n} cells failed"), theme.error(), "The list of cells says why."),
        Standing::Logged => {
            ("logged elsewhere".into(), theme.accent(), "Another program trains and logs what it predicts.")
        }
        Standing::Stopped => ("stopped".into(), theme.warning(), "Can be resumed where it stopped."),
        Standing::Planned => ("planned".into(), theme.weak(), "Nothing has begun."),
        Standing::Done => ("done".into(), theme.good(), "All cells are finished."),
    };
    (word, colour, about.to_owned())
}

/// What can be done with the run that is shown.
fn buttons(ui: &mut Ui, cx: &mut Cx, run: &RunView) -> Option<ExperimentSpec> {
    let standing = run.standing(&cx.session.jobs);
    let mut copied = None;
    if let Some(why) = &run.trouble {
        ui.colored_label(Theme::of(ui).error(), why);
    }
    ui.horizontal_wrapped(|ui| {
        match (run.job, &standing) {
            (Some(job), Standing::Running | Standing::Paused | Standing::Waiting) => {
                let paused = standing == Standing::Paused;
                let word = if paused { "Continue run" } else { "Pause run" };
                if ui.button(word).on_hover_text("Holds after the present step; nothing is lost").clicked() {
                    cx.commands.push(Command::SetPaused(job, !paused));
                }
                let about = "Writes a checkpoint and stops: 'Resume run' goes on from there";
                if ui.button("Cancel run").on_hover_text(about).clicked() {
                    cx.commands.push(Command::Cancel(job));
                }
            }
            _ => {
                let external = run.external().is_some();
                let over = matches!(standing, Standing::Done | Standing::Unknown | Standing::Unreadable(_));
                let open = !over && !external;
                let resume = ui.add_enabled(open, Button::new("Resume run"));
                let about = match &standing {
                    Standing::Elsewhere(_) => "Another process works on it: both would train the same cells",
                    _ => "Trains what is not finished, from the last checkpoint",
                };
                let why = match &standing {
                    Standing::Unknown => "Its folder is being looked at.",
                    Standing::Unreadable(_) => "Its folder cannot be read.",
                    _ if external => "The program that logs its predictions goes on with it.",
                    _ => "There is nothing left to train.",
                };
                if resume.on_hover_text(about).on_disabled_hover_text(why).clicked() {
                    cx.commands.push(Command::Run(RunCommand::Resume(run.folder.clone())));
                }
            }
        }
        let spec = run.found().map(|found| &*found.spec);
        let duplicate = ui.add_enabled(spec.is_some(), Button::new("Duplicate"));
        if duplicate.on_hover_text("Fills the form above with the numbers of this run").clicked() {
            copied = spec.cloned();
        }
        let copy = ui.button("Copy command").on_hover_text("The same on the command line");
        if copy.clicked() {
            cx.commands.push(Command::CopyText(carry_on_command(run, cx.prefs)));
        }
        if ui.button("Forget run").on_hover_text("Takes it off this list; the folder stays").clicked() {
            cx.commands.push(Command::Run(RunCommand::Forget(run.folder.clone())));
        }
        let delete = ui.add_enabled(run.job.is_none(), Button::new("Delete run…"));
        let delete = delete.on_hover_text("Asks, and deletes the folder from the disk");
        if delete.on_disabled_hover_text("Cancel it first.").clicked() {
            cx.commands.push(Command::Run(RunCommand::AskToDelete(run.folder.clone())));
        }
    });
    copied
}
