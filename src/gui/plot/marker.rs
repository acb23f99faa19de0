//! A vertical line of a plot that can be taken and moved, by the hand or by the arrow keys.

use eframe::egui::{CursorIcon, EventFilter, Id, Key, Rect, Sense, Ui, WidgetInfo, pos2, vec2};

use super::map::Map;
use crate::gui::theme::Theme;

/// It is taken from so near, points.
const GRIP: f32 = 6.0;
/// A step of the arrow keys, share of the axis.
const STEP: f32 = 0.01;

/// The handle of the line at `at` over its plot; the number it was moved to.
pub fn handle(ui: &Ui, plot: Id, map: &Map, at: f64) -> Option<f64> {
    let x = map.column(at)?;
    let area = Rect::from_x_y_ranges(x - GRIP..=x + GRIP, map.frame().y_range());
    let response = ui.interact(area, plot.with("line"), Sense::click_and_drag());
    let response =
        response.on_hover_cursor(CursorIcon::ResizeHorizontal).on_hover_text("Drag it, or press the arrow keys");
    response.widget_info(|| WidgetInfo::slider(true, at, "Marker in the plot"));
    let grip = Rect::from_center_size(pos2(x, map.frame().top() + 9.0), vec2(9.0, 18.0));
    ui.painter().rect_filled(grip, 3.0, Theme::of(ui).mismatch());
    let by_hand = response.interact_pointer_pos().filter(|_| response.dragged()).map(|pointer| map.number(pointer.x));
    if !response.has_focus() {
        return by_hand;
    }
    let filter = EventFilter { horizontal_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let steps = ui.input(|input| input.num_presses(Key::ArrowRight) as f32 - input.num_presses(Key::ArrowLeft) as f32);
    by_hand.or((steps != 0.0).then(|| map.number(x + STEP * steps * map.frame().width())))
}
