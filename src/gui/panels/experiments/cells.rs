//! The cells of the run that is shown.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eframe::egui::{self, Button, Color32, RichText, Ui};

use super::law_plot::bracketed;
use crate::experiment::CellResult;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::glossary;
use crate::gui::session::jobs::State as JobState;
use crate::gui::session::runs::RunView;
use crate::gui::theme::Theme;
use crate::gui::widgets::heading_with;
use crate::run::State;
use crate::worker::runs::{CellLook, Found};

/// Height of the list, points.
const HEIGHT: f32 = 150.0;
/// Widths of the columns after the first, points.
const WIDTHS: [f32; 4] = [92.0, 92.0, 70.0, 62.0];

/// The list; a click chooses a cell. It scrolls to the newest cell, noted in `followed`, unless one
/// is chosen.
pub fn show(ui: &mut Ui, cx: &mut Cx, (run, found): (&RunView, &Found), followed: &mut Option<String>) {
    heading_with(ui, "Cells", |ui| {
        if cx.view.cell.is_some() && ui.button("Follow the newest").clicked() {
            cx.view.cell = None;
        }
    });
    let weak = Theme::of(ui).weak();
    let titles = ["classifier", "state", "step", "time left", "KL (nats)"];
    let first = first_width(ui);
    ui.horizontal(|ui| {
        for (title, width) in titles.into_iter().zip(std::iter::once(first).chain(WIDTHS)) {
            let title = RichText::new(title).small().color(weak);
            let words = title.text().to_owned();
            column(ui, width, |ui| drop(glossary::explain(ui.add(egui::Label::new(title).truncate()), &words)));
        }
    });
    let height = ui.spacing().interact_size.y;
    let list = egui::ScrollArea::vertical().id_salt("cells").max_height(HEIGHT).auto_shrink([false, true]);
    let newest = run.live.as_ref().map(|live| &live.id).or(found.newest().map(|cell| &cell.planned.id));
    let moved = newest.filter(|newest| cx.view.cell.is_none() && followed.as_ref() != Some(newest));
    let at = moved.and_then(|id| found.cells.iter().position(|cell| cell.planned.id == *id));
    *followed = moved.cloned().or(followed.take());
    let list = match at {
        Some(at) => list.vertical_scroll_offset(at.saturating_sub(2) as f32 * (height + ui.spacing().item_spacing.y)),
        None => list,
    };
    let alike = alike(found);
    list.show_rows(ui, height, found.cells.len(), |ui, rows| {
        for cell in &found.cells[rows] {
            let name = match &cell.planned.under {
                Some(under) if alike => format!("{under}, seed {}", cell.planned.cell.seed),
                _ => cell.planned.label(),
            };
            ui.horizontal(|ui| row(ui, cx, (run, found), (cell, &name), first));
        }
    });
}

/// Whether cells differ by condition and seed alone: the rest of their names is then left out.
fn alike(found: &Found) -> bool {
    let of = |look: &CellLook| {
        let cell = look.planned.cell;
        (cell.architecture, cell.train_size, cell.labels)
    };
    found.cells.windows(2).all(|pair| of(&pair[0]) == of(&pair[1]))
}

/// What is left for the first column.
fn first_width(ui: &Ui) -> f32 {
    let between = ui.spacing().item_spacing.x * WIDTHS.len() as f32;
    let bar = ui.spacing().scroll.allocated_width();
    (ui.available_width() - WIDTHS.iter().sum::<f32>() - between - bar).clamp(120.0, 420.0)
}

fn column(ui: &mut Ui, width: f32, content: impl FnOnce(&mut Ui)) {
    let size = egui::vec2(width, ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(size, egui::Layout::left_to_right(egui::Align::Center), |ui| {
        ui.set_min_width(width);
        content(ui);
    });
}

fn row(ui: &mut Ui, cx: &mut Cx, (run, found): (&RunView, &Found), (cell, name): (&CellLook, &str), first: f32) {
    let id = &cell.planned.id;
    let chosen = cx.view.cell.as_ref() == Some(id);
    let label = cell.planned.label();
    column(ui, first, |ui| {
        let button = ui.add(Button::selectable(chosen, name).truncate()).on_hover_text(label.as_str());
        if button.accessible_name(format!("Cell: {label}")).clicked() {
            cx.view.cell = Some(id.clone());
        }
    });
    let live = run.live.as_ref().filter(|live| live.id == *id);
    let paused = run.job.and_then(|job| cx.session.jobs.get(job)).is_some_and(|job| job.state == JobState::Paused);
    let (word, colour, about) = match live {
        Some(_) if paused => ("paused".into(), Theme::of(ui).warning(), String::new()),
        Some(_) => ("running".into(), Theme::of(ui).accent(), String::new()),
        None => state(ui, cell),
    };
    column(ui, WIDTHS[0], |ui| {
        let shown = ui.add(egui::Label::new(RichText::new(word).color(colour)).truncate());
        if !about.is_empty() {
            shown.on_hover_text(about);
        }
    });
    let status = cell.status.as_ref();
    let steps = live.map(|live| (live.step, live.steps)).or(status.map(|status| (status.step, status.steps)));
    let steps = steps.filter(|(_, steps)| *steps > 0);
    let running = |state| state == State::Running && !cell.stale && !cell.finished;
    let left = match live {
        Some(live) => live.eta_secs.filter(|_| !paused),
        None => status.filter(|status| running(status.state)).and_then(|status| status.eta_secs),
    };
    let kl = result(found, id).map(|result| result.measured.epistemic);
    let interval = kl.map(|kl| format!("KL = {} nats over the test images, with its 95 % interval", bracketed(kl)));
    let texts = [
        (steps.map(|(step, steps)| format!("{} of {}", format::count(step), format::count(steps))), None),
        (left.map(format::duration), None),
        (kl.map(|kl| format::sig4(kl.value)), interval),
    ];
    for ((text, about), width) in texts.into_iter().zip(&WIDTHS[1..]) {
        column(ui, *width, |ui| {
            let shown = ui.add(egui::Label::new(text.unwrap_or_default()).truncate());
            if let Some(about) = about {
                shown.on_hover_text(about);
            }
        });
    }
}

/// What a finished cell gave.
pub fn result<'a>(found: &'a Found, id: &str) -> Option<&'a CellResult> {
    found.results.summary.cells.iter().find(|result| result.id == id)
}

/// A word for where a cell stands, its colour, and what it means.
fn state(ui: &Ui, cell: &CellLook) -> (String, Color32, String) {
    let theme = Theme::of(ui);
    let Some(status) = cell.status.as_ref().filter(|_| !cell.finished) else {
        return match cell.finished {
            true => ("done".into(), theme.good(), String::new()),
            false => ("planned".into(), theme.weak(), String::new()),
        };
    };
    if cell.stale {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64();
        let silent = format::duration((now - status.heartbeat).abs());
        let about =
            format!("Process {} on {} has said nothing for {silent}: killed? Resume the run.", status.pid, status.host);
        return (format!("silent {silent}"), theme.warning(), about);
    }
    let message = status.message.clone().unwrap_or_default();
    match status.state {
        State::Running => ("running".into(), theme.accent(), format!("Process {} on {}", status.pid, status.host)),
        State::Stopped => ("stopped".into(), theme.warning(), message),
        State::Failed => ("failed".into(), theme.error(), message),
        State::Done => ("done".into(), theme.good(), message),
    }
}
