//! The runs this window knows, and what can be done with the one that is shown.

use std::time::Instant;

use eframe::egui::{self, Button, Color32, RichText, TextEdit, Ui};

use super::listed::{Column, Listed, Order};
use super::notes_form::NotesForm;
use crate::experiment::ExperimentSpec;
use crate::gui::command::Command;
use crate::gui::command::RunCommand;
use crate::gui::context::Cx;
use crate::gui::failures;
use crate::gui::format;
use crate::gui::runs::carry_on_command;
use crate::gui::session::runs::{RunView, Standing};
use crate::gui::theme::Theme;
use crate::gui::widgets::{self, heading_with, hint};

/// Characters of a run's name, and of its tags, that are shown at least and at most; the rest is in their tooltips.
const LETTERS: [usize; 2] = [9, 28];
/// Width of the columns after them, and of the times left, points.
const REST: f32 = 260.0;
const TIMES: f32 = 80.0;
/// Width of the filter, points.
const FIELD: f32 = 190.0;
/// Files of what is said of runs that cannot be read and are named.
const WARNINGS: usize = 3;

/// The list of runs from frame to frame.
#[derive(Default)]
pub struct RunList {
    order: Order,
    notes: NotesForm,
}

/// The table; the spec to copy into the form, if that was asked for.
pub fn show(ui: &mut Ui, cx: &mut Cx, list: &mut RunList) -> Option<ExperimentSpec> {
    heading_with(ui, "Runs", |ui| {
        if ui.button("Open a run…").on_hover_text("A run folder, also one that others are working on").clicked() {
            cx.commands.push(Command::Open);
        }
    });
    let session = cx.session;
    let runs: Vec<&RunView> = session.runs.iter().collect();
    if runs.is_empty() {
        return None;
    }
    let said: Vec<Listed<'_>> = runs.iter().map(|run| listed(ui, cx, run)).collect();
    let shown = list.order.of(&said);
    filter(ui, &mut list.order.filter, shown.len(), runs.len());
    let columns: Vec<Column> = Column::shown(&said).collect();
    let longest = letters(ui, &columns);
    egui::Grid::new("runs").num_columns(columns.len() + 1).striped(true).spacing([14.0, 3.0]).show(ui, |ui| {
        head(ui, &mut list.order, &columns);
        for i in shown {
            row(ui, cx, (runs[i], &said[i]), &columns, longest);
            ui.end_row();
        }
    });
    if runs.len() == 1 {
        hint(ui, "To compare, a second run is needed: start one, or open its folder.");
    }
    for why in runs.iter().filter_map(|run| run.notes.as_ref().err()).take(WARNINGS) {
        widgets::said(ui, why, Theme::of(ui).warning());
    }
    let run = session.runs.get(&cx.view.run.clone()?)?;
    let copied = buttons(ui, cx, run);
    list.notes.show(ui, cx, run);
    copied
}

/// What the list says of a run.
fn listed<'a>(ui: &Ui, cx: &Cx, run: &'a RunView) -> Listed<'a> {
    let (tags, notes) = run.notes.as_ref().map_or((&[][..], ""), |said| (&said.tags, &said.notes));
    let of_grid = run.found().map(|found| found.finished());
    let job = run.job.and_then(|job| cx.session.jobs.get(job));
    Listed {
        name: run.name(),
        tags,
        notes,
        finished: of_grid.or_else(|| run.external().map(|found| found.course.records)),
        state: words(ui, &run.standing(&cx.session.jobs)).0,
        left: job.and_then(|job| job.eta_secs(Instant::now())),
    }
}

/// The field that leaves runs out of the list.
fn filter(ui: &mut Ui, text: &mut String, shown: usize, all: usize) {
    ui.horizontal_wrapped(|ui| {
        let label = ui.label("Filter the runs");
        let field = ui.add(TextEdit::singleline(text).desired_width(FIELD));
        field.labelled_by(label.id).on_hover_text("Only runs whose name, tags or notes contain these words");
        if shown < all {
            hint(ui, format!("{shown} of {all} runs"));
        }
    });
}

/// The titles; a click on one sorts.
fn head(ui: &mut Ui, order: &mut Order, columns: &[Column]) {
    for &column in columns {
        let (way, chosen) = match order.by {
            Some((by, falling)) if by == column => (if falling { " ⬇" } else { " ⬆" }, true),
            _ => ("", false),
        };
        let title = RichText::new(format!("{}{way}", column.name())).small().color(Theme::of(ui).weak());
        let button = ui.add(Button::selectable(chosen, title));
        let about = "Sorts the list: ascending; a second click, descending; a third, in the original order";
        if button.on_hover_text(about).accessible_name(format!("Sort the runs by {}", column.name())).clicked() {
            order.click(column);
        }
    }
    ui.label(RichText::new("compare").small().color(Theme::of(ui).weak()));
    ui.end_row();
}

fn row(ui: &mut Ui, cx: &mut Cx, (run, said): (&RunView, &Listed<'_>), columns: &[Column], longest: usize) {
    let place = run.folder.display().to_string();
    let shown = cx.view.run.as_ref() == Some(&run.folder);
    let name = RichText::new(elided(&said.name, longest)).strong();
    let name = ui.add(Button::selectable(shown, name).wrap_mode(egui::TextWrapMode::Extend));
    let named = run.notes.as_ref().is_ok_and(|notes| !notes.name.is_empty());
    let called = if named { format!("Show run {}: {place}", said.name) } else { format!("Show run {place}") };
    let about = if said.notes.is_empty() { place.clone() } else { format!("{place}\n{}", said.notes) };
    if name.on_hover_text(about).accessible_name(called).clicked() {
        cx.view.show_run(Some(run.folder.clone()));
    }
    if columns.contains(&Column::Tags) {
        let tags = said.tags.join(", ");
        ui.label(elided(&tags, longest)).on_hover_text(&tags);
    }
    let records = || run.external().map(|found| format!("{} records", found.course.records));
    let cells = run.found().map(|found| format!("{} of {}", found.finished(), found.cells.len())).or_else(records);
    ui.label(cells.unwrap_or_else(|| "?".into()));
    let (word, colour, about) = words(ui, &run.standing(&cx.session.jobs));
    let about = run.trouble.as_ref().map_or(about, |(_, why)| why.clone());
    let state = ui.colored_label(colour, word);
    if !about.is_empty() {
        state.on_hover_text(about);
    }
    if columns.contains(&Column::Left) {
        let left = said.left.map(format::duration).unwrap_or_default();
        ui.label(left).on_hover_text("At the pace of steps so far; those of other networks differ.");
    }
    compare(ui, cx, run, shown, cx.session.runs.iter().count() == 1);
}

/// Whether a run is drawn beside the one that is shown.
fn compare(ui: &mut Ui, cx: &mut Cx, run: &RunView, shown: bool, alone: bool) {
    let mut compared = cx.view.compared.contains(&run.folder);
    let has_laws = run.external().is_none();
    let check = ui.add_enabled(!alone && !shown && has_laws, egui::Checkbox::without_text(&mut compared));
    let check = check.on_hover_text("Draws its laws beside those of the run that is shown");
    let why = match (alone, has_laws) {
        (true, _) => "A second run is needed: start one, or open its folder.",
        (false, true) => "This is the run that is shown.",
        (false, false) => "An external run has no laws.",
    };
    let check = check.on_disabled_hover_text(why);
    if check.accessible_name(format!("Compare with run {}", run.folder.display())).changed() {
        match compared {
            true => drop(cx.view.compared.insert(run.folder.clone())),
            false => drop(cx.view.compared.remove(&run.folder)),
        }
    }
}

/// Characters of names, and of tags where there are any, that the panel has room for: a list that is wider would push all that lies
/// below it out of sight.
fn letters(ui: &Ui, columns: &[Column]) -> usize {
    let texts = if columns.contains(&Column::Tags) { 2.0 } else { 1.0 };
    let letter = ui.text_style_height(&egui::TextStyle::Body) / 2.0;
    let [least, most] = LETTERS;
    let rest = if columns.contains(&Column::Left) { REST + TIMES } else { REST };
    ((ui.available_width() - rest).max(0.0) / texts / letter).clamp(least as f32, most as f32) as usize
}

/// A text short enough for its column.
fn elided(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest { text.into() } else { text.chars().take(longest - 1).chain(['…']).collect() }
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
        Standing::Damaged(1) => ("1 cell damaged".into(), theme.error(), "The list of cells says which file."),
        Standing::Damaged(n) => (format!("{n} cells damaged"), theme.error(), "The list of cells says which files."),
        Standing::Logged => {
            ("logged elsewhere".into(), theme.accent(), "Another program trains and logs what it predicts.")
        }
        Standing::Stopped => ("stopped".into(), theme.warning(), "Can be resumed where it stopped."),
        Standing::Planned => ("planned".into(), theme.weak(), "Nothing has begun."),
        Standing::Done => ("done".into(), theme.good(), "All cells are finished."),
    };
    (word, colour, about.to_owned())
}

/// The button that goes on with a run, and why it cannot be pressed.
fn resume(ui: &mut Ui, cx: &mut Cx, run: &RunView, standing: &Standing) {
    let external = run.external().is_some();
    let nothing_to_train =
        matches!(standing, Standing::Done | Standing::Damaged(_) | Standing::Unknown | Standing::Unreadable(_));
    let resume = ui.add_enabled(!nothing_to_train && !external, Button::new("Resume run"));
    let about = match standing {
        Standing::Elsewhere(_) => "Another process works on it: its cell is left to it, the others are trained",
        _ => "Trains what is not finished, from the last checkpoint",
    };
    let why = match standing {
        Standing::Unknown => "Its folder is being looked at.",
        Standing::Unreadable(_) => "Its folder cannot be read.",
        Standing::Damaged(_) => "Delete the file that is named below: its cell is trained again then.",
        _ if external => "The program that logs its predictions goes on with it.",
        _ => "There is nothing left to train.",
    };
    if resume.on_hover_text(about).on_disabled_hover_text(why).clicked() {
        cx.commands.push(Command::Run(RunCommand::Resume(run.folder.clone())));
    }
}

/// What can be done with the run that is shown.
fn buttons(ui: &mut Ui, cx: &mut Cx, run: &RunView) -> Option<ExperimentSpec> {
    let standing = run.standing(&cx.session.jobs);
    let mut copied = None;
    if let Some((job, why)) = &run.trouble {
        failures::show(ui, *job, why);
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
            _ => resume(ui, cx, run, &standing),
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
