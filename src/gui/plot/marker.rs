//! A vertical line of a plot that can be taken and moved, by the hand or by the arrow keys.

use eframe::egui::{
    Color32, CursorIcon, EventFilter, Id, Key, Painter, Rect, Response, Sense, Stroke, Ui, WidgetInfo, pos2, vec2,
};

use super::zoom::Map;

/// It is taken from so near, points.
const GRIP: f32 = 6.0;
/// A step of the arrow keys, share of the axis.
const STEP: f32 = 0.01;

/// The line in column `x`; the number it was moved to.
pub fn line(ui: &Ui, plot: Id, map: &Map, x: f32) -> (Response, Option<f64>) {
    let number = |x: f32| map.numbers(pos2(x.clamp(map.plot.left(), map.plot.right()), map.plot.top()))[0];
    let area = Rect::from_x_y_ranges(x - GRIP..=x + GRIP, map.plot.y_range());
    let response = ui.interact(area, plot.with("line"), Sense::click_and_drag());
    let response =
        response.on_hover_cursor(CursorIcon::ResizeHorizontal).on_hover_text("Drag it, or press the arrow keys");
    response.widget_info(|| WidgetInfo::slider(true, number(x), "Marker in the plot"));
    let by_hand = response.interact_pointer_pos().filter(|_| response.dragged()).map(|at| number(at.x));
    if !response.has_focus() {
        return (response, by_hand);
    }
    let filter = EventFilter { horizontal_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let steps = ui.input(|input| input.num_presses(Key::ArrowRight) as f32 - input.num_presses(Key::ArrowLeft) as f32);
    let by_key = (steps != 0.0).then(|| number(x + STEP * steps * map.plot.width()));
    (response, by_hand.or(by_key))
}

/// Paints the line and its grip.
pub fn paint(painter: &Painter, map: &Map, x: f32, colour: Color32) {
    painter.vline(x, map.plot.y_range(), Stroke::new(1.5, colour));
    let grip = Rect::from_center_size(pos2(x, map.plot.top() + 9.0), vec2(9.0, 18.0));
    painter.rect_filled(grip, 3.0, colour);
}
