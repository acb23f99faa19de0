//! The legend of a plot: a row above it, where it hides nothing.

use eframe::egui::{
    Color32, Id, Painter, Pos2, Response, Role, Sense, Shape, Stroke, StrokeKind, TextStyle, Ui, WidgetInfo, pos2, vec2,
};
use egui_plot::{ItemId, PlotMemory};

/// With more entries they are small.
const FEW: usize = 6;
/// With more names the row would take more room than the plot: the menu below it has them alone.
pub const MOST: usize = 14;
/// Distance between two entries, points.
const APART: f32 = 12.0;
/// Width of the mark before a name, its radius where it is round, and its distance from the name, as shares of the height of a
/// line of text.
const WIDE: f32 = 1.3;
const RADIUS: f32 = 0.25;
const GAP: f32 = 0.3;
/// Width of lines and length of dashes and gaps, points.
const LINE: f32 = 2.0;
const DASH: f32 = 4.0;
const BETWEEN: f32 = 3.0;

/// A name in the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The series or rule that it hides, by the name in the figure.
    pub id: String,
    /// What it says.
    pub name: String,
    pub ink: Color32,
    pub mark: Mark,
}

/// What stands before a name: what the plot has of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Disc,
    Ring,
    Line,
    Dashes,
}

/// Shows the entries of a plot. A click takes a series away and brings it back; with Alt it leaves that one alone, and brings
/// all back.
pub fn show(ui: &mut Ui, plot: Id, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    let memory = PlotMemory::load(ui.ctx(), plot);
    let hidden = |entry: &Entry| memory.as_ref().is_some_and(|it| it.hidden_items.contains(&ItemId::new(&entry.id)));
    let style = if entries.len() > FEW { TextStyle::Small } else { TextStyle::Body };
    let row = ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing.x = APART;
        entries.iter().map(|entry| show_one(ui, entry, !hidden(entry), &style)).collect::<Vec<Response>>()
    });
    let Some(mut memory) = memory else { return };
    let found = |is: fn(&Response) -> bool| row.inner.iter().zip(entries).find(|(shown, _)| is(shown));
    let hovered = found(Response::hovered).map(|(_, entry)| ItemId::new(&entry.id));
    let clicked = found(Response::clicked).map(|(_, entry)| entry);
    if clicked.is_none() && memory.hovered_legend_item == hovered {
        return;
    }
    memory.hovered_legend_item = hovered;
    if let Some(entry) = clicked {
        hide(&mut memory, entries, entry, ui.input(|input| input.modifiers.alt));
    }
    memory.store(ui.ctx(), plot);
}

/// Hides or shows an entry; `alone` leaves it alone, or brings all back where it is alone already.
fn hide(memory: &mut PlotMemory, entries: &[Entry], entry: &Entry, alone: bool) {
    let (item, items) = (ItemId::new(&entry.id), entries.iter().map(|entry| ItemId::new(&entry.id)));
    let others: Vec<ItemId> = items.filter(|other| *other != item).collect();
    let is_alone = others.iter().all(|other| memory.hidden_items.contains(other));
    if !alone {
        if !memory.hidden_items.remove(&item) {
            memory.hidden_items.insert(item);
        }
        return;
    }
    memory.hidden_items.clear();
    if !is_alone {
        memory.hidden_items.extend(others);
    }
}

fn show_one(ui: &mut Ui, entry: &Entry, shown: bool, style: &TextStyle) -> Response {
    let font = style.resolve(ui.style());
    let line = ui.text_style_height(style);
    let before = (WIDE + GAP) * line;
    // A name that is wider than the panel is broken.
    let room = (ui.max_rect().width() - before).max(line);
    let usual = ui.visuals().text_color();
    let name = ui.fonts_mut(|fonts| fonts.layout(entry.name.clone(), font, usual, room));
    let (rect, response) = ui.allocate_exact_size(vec2(before, 0.0) + name.size(), Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::CheckBox, ui.is_enabled(), shown, &entry.name));
    if !ui.is_rect_visible(rect) {
        return response;
    }
    let (painter, visuals) = (ui.painter(), ui.style().interact(&response));
    let ink = if shown { entry.ink } else { ui.visuals().weak_text_color() };
    mark(painter, entry.mark, pos2(rect.left(), rect.top() + 0.5 * line), line, Stroke::new(LINE, ink));
    let text = if shown { visuals.text_color() } else { ui.visuals().weak_text_color() };
    painter.galley_with_override_text_color(pos2(rect.left() + before, rect.top()), name, text);
    if response.has_focus() {
        painter.rect_stroke(rect.expand(2.0), 2.0, ui.visuals().selection.stroke, StrokeKind::Outside);
    }
    response
}

/// Paints a mark right of a place, for text with lines so high.
fn mark(painter: &Painter, mark: Mark, left: Pos2, line: f32, stroke: Stroke) {
    let ends = [left, left + vec2(WIDE * line, 0.0)];
    let (centre, radius) = (ends[0].lerp(ends[1], 0.5), RADIUS * line);
    match mark {
        Mark::Disc => {
            painter.circle_filled(centre, radius, stroke.color);
        }
        Mark::Ring => {
            painter.circle_stroke(centre, radius, stroke);
        }
        Mark::Line => {
            painter.line_segment(ends, stroke);
        }
        Mark::Dashes => painter.extend(Shape::dashed_line(&ends, stroke, DASH, BETWEEN)),
    }
}
