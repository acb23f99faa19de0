//! The cells of the run that is shown.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eframe::egui::{self, Button, Color32, FocusDirection, Key, Response, RichText, Ui};

use super::law_plot::bracketed;
use crate::experiment::{CellResult, DamagedCell};
use crate::gui::chosen_cells::ChosenCells;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::glossary;
use crate::gui::selection::Click;
use crate::gui::session::jobs::State as JobState;
use crate::gui::session::runs::RunView;
use crate::gui::theme::Theme;
use crate::gui::widgets::{heading_with, hint, list};
use crate::run::State;
use crate::worker::runs::{CellLook, Found};

/// Height of the list, points.
const HEIGHT: f32 = 150.0;
/// Widths of the columns after the first, points, and the least share of them in a narrow panel.
const WIDTHS: [f32; 4] = [92.0, 92.0, 70.0, 62.0];
const NARROWEST: f32 = 0.7;
/// Width of the first, points, at least and at most.
const FIRST: [f32; 2] = [110.0, 420.0];

/// The list of cells from frame to frame.
#[derive(Default)]
pub struct CellList {
    /// The newest cell, which it has scrolled to.
    followed: Option<String>,
    /// The row that has the focus.
    focused: Option<usize>,
    /// Rows in sight.
    in_sight: Range<usize>,
}

/// The list; clicks and keys choose cells. It scrolls to the newest cell, unless one is chosen.
pub fn show(ui: &mut Ui, cx: &mut Cx, (run, found): (&RunView, &Found), state: &mut CellList) {
    heading_with(ui, "Cells", |ui| {
        let chosen = cx.view.cells.len();
        if chosen > 0 && ui.button("Follow the newest").clicked() {
            cx.view.cells = ChosenCells::default();
        }
        if chosen > 1 {
            hint(ui, format!("{} cells chosen", format::count(chosen)));
        }
    });
    let weak = Theme::of(ui).weak();
    let titles = ["classifier", "state", "step", "time left", "KL (nats)"];
    // A finished run has no steps to come, and no time left.
    let moves = run.live.is_some() || !found.cells.iter().all(|cell| cell.finished);
    let widths = widths(ui, moves);
    ui.horizontal(|ui| {
        for (title, width) in titles.into_iter().zip(widths).filter(|(_, width)| *width > 0.0) {
            let title = RichText::new(title).small().color(weak);
            let words = title.text().to_owned();
            column(ui, width, |ui| drop(glossary::explain(ui.add(egui::Label::new(title).truncate()), &words)));
        }
    });
    let moved = state.keys(ui, cx, found);
    let height = ui.spacing().interact_size.y;
    let pitch = height + ui.spacing().item_spacing.y;
    let list = list(HEIGHT).id_salt("cells").auto_shrink([false, true]);
    let list = match state.follow(cx, run, found, moved) {
        Some(top) => list.vertical_scroll_offset(top as f32 * pitch),
        None => list,
    };
    let alike = alike(found);
    list.show_rows(ui, height, found.cells.len(), |ui, rows| {
        state.in_sight = rows.clone();
        for (place, cell) in rows.clone().zip(&found.cells[rows]) {
            let name = match &cell.planned.under {
                Some(under) if alike => format!("{under}, seed {}", cell.planned.cell.seed),
                _ => cell.planned.label(),
            };
            let name = ui.horizontal(|ui| row(ui, cx, (run, found), (cell, &name), widths)).inner;
            if moved == Some(place) {
                name.request_focus();
            }
            if name.has_focus() {
                state.focused = Some(place);
            }
        }
    });
}

impl CellList {
    /// The row that the arrow keys lead to: it is chosen, with Shift also those up to it.
    fn keys(&mut self, ui: &Ui, cx: &mut Cx, found: &Found) -> Option<usize> {
        let at = self.focused.take()?;
        let [up, down, shift] = ui
            .input(|input| [input.key_pressed(Key::ArrowUp), input.key_pressed(Key::ArrowDown), input.modifiers.shift]);
        let to = match (up, down) {
            (true, false) => at.checked_sub(1)?,
            (false, true) => Some(at + 1).filter(|to| *to < found.cells.len())?,
            _ => return None,
        };
        // The row itself asks for the focus.
        ui.memory_mut(|memory| memory.move_focus(FocusDirection::None));
        let order = order(found);
        cx.view.cells.click(if shift { Click::Range } else { Click::Only }, order.get(to)?, &order);
        Some(to)
    }

    /// The row that is to stand on top, where it is not where it is: `moved`, the row that keys lead to, comes into sight, or the
    /// newest cell where none is chosen.
    fn follow(&mut self, cx: &Cx, run: &RunView, found: &Found, moved: Option<usize>) -> Option<usize> {
        let newest = run.live.as_ref().map(|live| &live.id).or(found.newest().map(|cell| &cell.planned.id));
        let newer = newest.filter(|newest| cx.view.cells.cursor().is_none() && self.followed.as_ref() != Some(newest));
        let at = newer.and_then(|id| found.cells.iter().position(|cell| cell.planned.id == *id));
        self.followed = newer.cloned().or(self.followed.take());
        // The outermost rows in sight are cut off.
        let inside = |row: &usize| (self.in_sight.start + 1..self.in_sight.end.saturating_sub(2)).contains(row);
        at.or(moved.filter(|row| !inside(row))).map(|row| row.saturating_sub(2))
    }
}

/// The cells, in the order of the list.
fn order(found: &Found) -> Vec<&str> {
    found.cells.iter().map(|cell| cell.planned.id.as_str()).collect()
}

/// Whether cells differ by condition and seed alone: the rest of their names is then left out.
fn alike(found: &Found) -> bool {
    let of = |look: &CellLook| {
        let cell = look.planned.cell;
        (cell.architecture, cell.train_size, cell.labels)
    };
    found.cells.windows(2).all(|pair| of(&pair[0]) == of(&pair[1]))
}

/// Widths of all columns: the first has what the others leave, and these give way where that is too little. Where nothing
/// `moves`, those of step and time left have none.
fn widths(ui: &Ui, moves: bool) -> [f32; 5] {
    let [state, _, _, kl] = WIDTHS;
    let others = if moves { WIDTHS } else { [state, 0.0, 0.0, kl] };
    let between = ui.spacing().item_spacing.x * others.iter().filter(|width| **width > 0.0).count() as f32;
    let room = ui.available_width() - between - ui.spacing().scroll.allocated_width();
    let all: f32 = others.iter().sum();
    let share = ((room - FIRST[0]) / all).clamp(NARROWEST, 1.0);
    let [state, step, left, kl] = others.map(|width| share * width);
    [(room - share * all).clamp(FIRST[0], FIRST[1]), state, step, left, kl]
}

fn column<R>(ui: &mut Ui, width: f32, content: impl FnOnce(&mut Ui) -> R) -> R {
    let size = egui::vec2(width, ui.spacing().interact_size.y);
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    let shown = ui.allocate_ui_with_layout(size, layout, |ui| {
        ui.set_min_width(width);
        content(ui)
    });
    shown.inner
}

/// How a click or a key chooses.
fn click(ui: &Ui) -> Click {
    ui.input(|input| match input.modifiers {
        held if held.shift => Click::Range,
        held if held.command || input.key_pressed(Key::Space) => Click::Toggle,
        _ => Click::Only,
    })
}

/// A row; what its name answers.
fn row(
    ui: &mut Ui,
    cx: &mut Cx,
    (run, found): (&RunView, &Found),
    (cell, name): (&CellLook, &str),
    widths: [f32; 5],
) -> Response {
    let id = &cell.planned.id;
    let label = cell.planned.label();
    let named = column(ui, widths[0], |ui| {
        let button = ui.add(Button::selectable(cx.view.cells.contains(id), name).truncate());
        let about = "Ctrl+click adds or takes away, Shift+click goes up to here: their courses in one plot";
        button.on_hover_text(format!("{label}\n{about}")).accessible_name(format!("Cell: {label}"))
    });
    if named.clicked() {
        cx.view.cells.click(click(ui), id, &order(found));
        named.request_focus();
    }
    progress(ui, cx, (run, found), cell, &widths[1..]);
    named
}

/// The columns of a row after the name.
fn progress(ui: &mut Ui, cx: &Cx, (run, found): (&RunView, &Found), cell: &CellLook, widths: &[f32]) {
    let id = &cell.planned.id;
    let live = run.live.as_ref().filter(|live| live.id == *id);
    let damaged = found.results.summary.damaged.iter().find(|damaged| damaged.id == *id);
    let paused = run.job.and_then(|job| cx.session.jobs.get(job)).is_some_and(|job| job.state == JobState::Paused);
    let (word, colour, about) = match live {
        Some(_) if paused => ("paused".into(), Theme::of(ui).warning(), String::new()),
        Some(_) => ("running".into(), Theme::of(ui).accent(), String::new()),
        None => state(ui, cell, damaged),
    };
    column(ui, widths[0], |ui| {
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
    for ((text, about), width) in texts.into_iter().zip(&widths[1..]).filter(|(_, width)| **width > 0.0) {
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
fn state(ui: &Ui, cell: &CellLook, damaged: Option<&DamagedCell>) -> (String, Color32, String) {
    let theme = Theme::of(ui);
    if let Some(damaged) = damaged {
        return ("damaged".into(), theme.error(), damaged.why.clone());
    }
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
