//! The place to draw on: pointer and keys become strokes.

use eframe::egui::{
    self, EventFilter, Key, KeyboardShortcut, Modifiers, PointerButton, Pos2, Rect, Response, Role, Sense, Stroke,
    StrokeKind, Ui, WidgetInfo, pos2, vec2,
};

use super::brush::{Ink, Tool};
use crate::gui::theme::Theme;

/// Name of the canvas for who cannot see it.
pub const NAME: &str = "Canvas";
/// How far Shift and an arrow key move the pen, pixels.
const FAR: f32 = 4.0;

/// What draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Brush {
    pub tool: Tool,
    /// Half the width, pixels.
    pub radius: f32,
}

/// Where keys have moved the pen, pixels.
#[derive(Debug, Default)]
pub struct KeyPen {
    at: Option<[f32; 2]>,
}

/// Pixels of the image under the points of the window.
#[derive(Clone, Copy)]
struct Place {
    rect: Rect,
    size: [usize; 2],
}

impl Place {
    fn pixel(self, at: Pos2) -> [f32; 2] {
        let share = (at - self.rect.min) / self.rect.size();
        [share.x * self.size[0] as f32, share.y * self.size[1] as f32]
    }

    fn point(self, [x, y]: [f32; 2]) -> Pos2 {
        let share = vec2(x / self.size[0].max(1) as f32, y / self.size[1].max(1) as f32);
        self.rect.min + share * self.rect.size()
    }
}

/// A place of this size, points, for an image of `size` pixels; draws what pointer and keys draw.
pub fn show(ui: &mut Ui, ink: &mut Ink, (brush, pen): (Brush, &mut KeyPen), side: f32, size: [usize; 2]) -> Response {
    let aspect = size[1] as f32 / size[0].max(1) as f32;
    let (rect, response) = ui.allocate_exact_size(vec2(side, side * aspect), Sense::click_and_drag());
    let place = Place { rect, size };
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, NAME));
    pointer(ui, ink, (brush, place), &response);
    if response.has_focus() {
        let filter = EventFilter { horizontal_arrows: true, vertical_arrows: true, ..EventFilter::default() };
        ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
        keys(ui, ink, (brush, place), pen);
    }
    response
}

/// Strokes of the pointer; the right button erases. All that it did since the last frame counts.
fn pointer(ui: &Ui, ink: &mut Ink, (brush, place): (Brush, Place), response: &Response) {
    let drawing = response.is_pointer_button_down_on()
        || response.clicked_by(PointerButton::Primary)
        || response.clicked_by(PointerButton::Secondary)
        || response.drag_stopped();
    if !drawing {
        if !ui.input(|input| input.key_down(Key::Space)) {
            ink.lift();
        }
        return;
    }
    if !response.has_focus() {
        response.request_focus();
    }
    let erases = ui.input(|input| input.pointer.button_down(PointerButton::Secondary));
    let tool = if erases { Tool::Eraser } else { brush.tool };
    let way: Vec<Pos2> = ui.input(|input| {
        let moved = |event: &egui::Event| match event {
            egui::Event::PointerMoved(at) => Some(*at),
            _ => None,
        };
        // Where the button went down comes before all moves of its frame.
        let began = input.pointer.press_origin().filter(|_| input.pointer.any_pressed());
        let after = input.events.iter().filter_map(moved).filter(|_| began.is_none());
        began.into_iter().chain(after).chain(response.interact_pointer_pos()).collect()
    });
    way.into_iter().for_each(|at| ink.draw(tool, brush.radius, place.pixel(at)));
    if !response.is_pointer_button_down_on() {
        ink.lift();
    }
}

/// Arrow keys move a pen, Space holds it down; Ctrl+Z takes strokes back while the canvas has the focus.
fn keys(ui: &Ui, ink: &mut Ink, (brush, place): (Brush, Place), pen: &mut KeyPen) {
    let again = Modifiers { shift: true, ..Modifiers::COMMAND };
    // Those with more keys first.
    let asked = |modifiers, key| ui.input_mut(|input| input.consume_shortcut(&KeyboardShortcut::new(modifiers, key)));
    if asked(again, Key::Z) || asked(Modifiers::COMMAND, Key::Y) {
        ink.redo();
    } else if asked(Modifiers::COMMAND, Key::Z) {
        ink.undo();
    }
    let [width, height] = place.size.map(|side| side as f32);
    let mut at = pen.at.unwrap_or([0.5 * width, 0.5 * height]);
    let (step, moved, pressed, down) = ui.input(|input| {
        let step = if input.modifiers.shift { FAR } else { 1.0 };
        let times = |key| input.num_presses(key) as f32;
        let x = times(Key::ArrowRight) - times(Key::ArrowLeft);
        let y = times(Key::ArrowDown) - times(Key::ArrowUp);
        (step, [x, y], input.key_pressed(Key::Space), input.key_down(Key::Space))
    });
    at = [(at[0] + step * moved[0]).clamp(0.0, width), (at[1] + step * moved[1]).clamp(0.0, height)];
    if pressed || (down && moved != [0.0; 2]) {
        ink.draw(brush.tool, brush.radius, at);
    }
    if !down && !ui.input(|input| input.pointer.any_down()) {
        ink.lift();
    }
    pen.at = Some(at);
}

/// The edge of the canvas, and the brush where it would draw.
pub fn outline(ui: &Ui, response: &Response, brush: Brush, (pen, size): (&KeyPen, [usize; 2])) {
    let (theme, place) = (Theme::of(ui), Place { rect: response.rect, size });
    let focused = response.has_focus();
    let edge = Stroke::new(if focused { 2.0 } else { 1.0 }, if focused { theme.accent() } else { theme.grid() });
    ui.painter().rect_stroke(response.rect, 0.0, edge, StrokeKind::Outside);
    let scale = response.rect.width() / size[0].max(1) as f32;
    let by_keys = pen.at.filter(|_| focused).map(|at| place.point(at));
    if let Some(at) = response.hover_pos().or(by_keys) {
        let painter = ui.painter().with_clip_rect(response.rect);
        painter.circle_stroke(at, (brush.radius * scale).max(1.5), Stroke::new(1.0, theme.accent()));
    }
}

/// The whole of a texture.
pub fn whole() -> Rect {
    Rect::from_min_max(pos2(0.0, 0.0), pos2(1.0, 1.0))
}
