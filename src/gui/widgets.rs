//! Small widgets used in several places.

use std::cmp::Reverse;

use eframe::egui::{self, Label, RichText, TextStyle, TextWrapMode, Ui, WidgetText};

use super::session::Session;
use super::session::jobs::{JobView, Jobs};
use super::session::tasks::TaskView;
use super::theme::{Badge, SECTION_GAP, Theme};
use super::{failures, glossary};
use crate::task::Task;
use crate::units::ClassId;

/// The mark that says how far a number or picture can be trusted.
pub fn badge(ui: &mut Ui, badge: Badge, why: &str) {
    let colour = Theme::of(ui).badge(badge);
    let frame = egui::Frame::new().stroke(egui::Stroke::new(1.0, colour)).corner_radius(3.0);
    let response = frame.inner_margin(egui::Margin::symmetric(4, 0)).show(ui, |ui| {
        let text = RichText::new(badge.name()).small().color(colour);
        ui.add(egui::Label::new(text).selectable(false).wrap_mode(egui::TextWrapMode::Extend));
    });
    response.response.on_hover_text(why);
}

/// A window on top of the panels, in the middle when it is first shown.
pub fn dialog<'a>(ctx: &egui::Context, title: &'a str, open: &'a mut bool) -> egui::Window<'a> {
    // Only the frame after the first knows how large it is, and places it and its bar by that.
    let (frame, id) = (ctx.cumulative_frame_nr(), egui::Id::unique(("dialog", title)));
    let before = ctx.data_mut(|data| std::mem::replace(data.get_temp_mut_or(id, 0), frame));
    if before + 1 < frame {
        ctx.request_repaint();
    }
    let window = egui::Window::new(title).open(open).collapsible(false).constrain(true);
    window.pivot(egui::Align2::CENTER_CENTER).default_pos(ctx.content_rect().center())
}

/// A heading with a badge behind it.
pub fn heading(ui: &mut Ui, text: &str, mark: Option<(Badge, &str)>) {
    ui.add_space(SECTION_GAP);
    ui.horizontal(|ui| {
        glossary::label(ui, RichText::new(text).strong());
        if let Some((kind, why)) = mark {
            badge(ui, kind, why);
        }
    });
}

/// A heading with a button or two behind it.
pub fn heading_with(ui: &mut Ui, text: &str, more: impl FnOnce(&mut Ui)) {
    ui.add_space(SECTION_GAP);
    ui.horizontal_wrapped(|ui| {
        glossary::label(ui, RichText::new(text).strong());
        more(ui);
    });
}

/// A key to a colour of a plot.
pub fn swatch(ui: &mut Ui, colour: egui::Color32) {
    let (rect, _) = ui.allocate_exact_size(egui::vec2(16.0, 12.0), egui::Sense::hover());
    ui.painter().line_segment([rect.left_center(), rect.right_center()], egui::Stroke::new(3.0, colour));
}

/// Shows what lies in a side of the window, cut off at its edge: the side is as wide as the user has
/// it, whatever digits are in it.
pub fn as_wide_as_it_is(ui: &mut Ui, show: impl FnOnce(&mut Ui)) {
    let room = ui.available_rect_before_wrap();
    let mut inside = ui.new_child(egui::UiBuilder::new().max_rect(room));
    inside.set_clip_rect(ui.clip_rect().intersect(room.expand2(egui::vec2(4.0, 0.0))));
    show(&mut inside);
    ui.advance_cursor_after_rect(room);
}

/// A line of a table of facts: a name, a value, and what it means.
pub fn fact(ui: &mut Ui, name: &str, value: impl Into<String>, meaning: &str) {
    let weak = Theme::of(ui).weak();
    let label = ui.label(RichText::new(name).color(weak));
    // The pass that finds out how wide the columns are has no room: lines broken there would make the rows too high in the first frame
    // that is seen, and what is centred in them would lie on the next.
    let value = egui::Label::new(value.into());
    let value = ui.add(if ui.is_sizing_pass() { value.extend() } else { value.wrap() });
    if !meaning.is_empty() {
        label.on_hover_text(glossary::beside(meaning, name));
        value.on_hover_text(meaning);
    } else {
        glossary::explain(label, name);
    }
    ui.end_row();
}

/// A two-column table of facts.
pub fn facts(ui: &mut Ui, name: &str, rows: impl FnOnce(&mut Ui)) {
    egui::Grid::new(name).num_columns(2).spacing(egui::vec2(10.0, 3.0)).show(ui, rows);
}

/// Headings of the columns of a grid.
pub fn grid_head(ui: &mut Ui, titles: &[&str]) {
    let weak = Theme::of(ui).weak();
    for title in titles {
        glossary::label(ui, RichText::new(*title).small().color(weak));
    }
    ui.end_row();
}

/// The name of a class in its colour, cut off where there is no room.
pub fn class_label(ui: &mut Ui, session: &Session, class: ClassId) {
    let colour = Theme::of(ui).class(class, session.class_names().len());
    ui.add(Label::new(RichText::new(session.class_name(class)).color(colour).strong()).truncate());
}

/// Room for the longest class name, within limits.
pub fn names_width(ui: &Ui, session: &Session) -> f32 {
    // Of the names with the most letters, since a letter is wider than another.
    let mut names: Vec<&str> = session.class_names().iter().map(String::as_str).collect();
    names.sort_by_cached_key(|name| Reverse(name.chars().count()));
    let width = |name: &&str| {
        let text = WidgetText::from(RichText::new(*name).strong());
        text.into_galley(ui, Some(TextWrapMode::Extend), f32::INFINITY, TextStyle::Body).size().x
    };
    names.iter().take(12).map(width).fold(36.0, f32::max).min(96.0).ceil()
}

/// The same in a column of a table that is so wide: a cell that follows its content would cut names off from the first frame on.
pub fn class_cell(ui: &mut Ui, session: &Session, class: ClassId, width: f32) {
    ui.scope(|ui| {
        ui.set_width(width);
        class_label(ui, session, class);
    });
}

/// A list that scrolls where it is higher than so many points, however little room is left: by itself one in a panel that scrolls
/// shrinks to a few lines at the panel's lower edge.
pub fn list(height: f32) -> egui::ScrollArea {
    egui::ScrollArea::vertical().max_height(height).min_scrolled_height(height)
}

/// Text of a colour that wraps.
pub fn said(ui: &mut Ui, text: impl Into<String>, colour: egui::Color32) {
    ui.add(Label::new(RichText::new(text.into()).color(colour)).wrap().selectable(true));
}

/// What a panel shows that needs a world while none is open.
pub fn no_world(ui: &mut Ui, session: &Session) {
    let why = session.stuck.as_deref().unwrap_or("Opening the oracle…");
    empty_state(ui, "No world yet", &format!("{why}\nChoose an oracle on the left, or press Ctrl+O."));
}

/// Text that may be overlooked.
pub fn hint(ui: &mut Ui, text: impl Into<String>) {
    let weak = Theme::of(ui).weak();
    ui.add(egui::Label::new(RichText::new(text.into()).color(weak).small()).wrap());
}

/// Says that something must be done first.
pub fn complain(ui: &mut Ui, text: &str) {
    let colour = Theme::of(ui).warning();
    ui.add(egui::Label::new(RichText::new(text).color(colour).small()).wrap());
}

/// How a job goes whose result is not there yet, and what more is to be known of it.
pub fn on_its_way(ui: &mut Ui, jobs: &Jobs, job: &JobView, more: &str) {
    heading(ui, "On its way", None);
    let note = jobs.waiting(job).unwrap_or_else(|| job.note.clone());
    ui.add(egui::ProgressBar::new(job.fraction().unwrap_or(0.0)).text(note));
    hint(ui, more);
}

/// Shows why a task without a report failed, how far it is (with `more`), or how it goes on.
pub fn standing<T: Task>(ui: &mut Ui, session: &Session, view: &TaskView<'_, T>, more: &str, stopped: &str) {
    let job = session.jobs.get(view.job).filter(|job| !job.ended());
    match (view.trouble(), job) {
        (Some(why), _) => failures::show(ui, view.job, why),
        (None, _) if view.report.is_some() => {}
        (None, Some(job)) => on_its_way(ui, &session.jobs, job, more),
        (None, None) => hint(ui, stopped),
    }
}

/// What an empty place says.
pub fn empty_state(ui: &mut Ui, title: &str, what_to_do: &str) {
    let room = (ui.available_height() * 0.35).clamp(12.0, 220.0);
    ui.add_space(room);
    ui.vertical_centered(|ui| {
        ui.label(RichText::new(title).strong().size(16.0));
        // Its lines are broken for a wide panel.
        let narrow = ui.available_width() < 560.0;
        let what_to_do = if narrow { what_to_do.replace('\n', " ") } else { what_to_do.to_owned() };
        ui.label(RichText::new(what_to_do).color(Theme::of(ui).weak()));
    });
}

/// A tooltip, unless a window lies over the widget: egui would leave it open.
pub fn tooltip(response: egui::Response, show: impl FnOnce(&mut Ui)) -> egui::Response {
    let above = response.ctx.pointer_hover_pos().and_then(|at| response.ctx.layer_id_at(at));
    match above.is_some_and(|layer| layer != response.layer_id && layer.order != egui::Order::Tooltip) {
        true => response,
        false => response.on_hover_ui(show),
    }
}

/// Breaks text into lines no wider than `room`, between words, or inside words wider than that.
pub fn break_lines(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut column = 0;
    for piece in text.split_inclusive([' ', '/', '\n']) {
        let length = piece.chars().count();
        if column > 0 && column + length > width {
            out.push('\n');
            column = 0;
        }
        out.push_str(piece);
        column = if piece.ends_with('\n') { 0 } else { column + length };
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_messages_break_and_lose_nothing() {
        let text = "/a/very/long/path/to/a/file.png: is not a picture that can be read";
        let broken = super::break_lines(text, 20);
        assert!(broken.lines().all(|line| line.chars().count() <= 20), "{broken}");
        assert_eq!(broken.replace('\n', ""), text);
    }
}
