//! What wheel, drags and keys ask of a plot.

use eframe::egui::{Context, CursorIcon, Id, Key, PointerButton, Pos2, Rect, Response, Stroke, StrokeKind, Ui, Vec2};

use super::faint;
use super::zoom::{Map, Part};
use crate::figure::Frame;
use crate::gui::theme::Theme;

/// Points of the wheel that double what is seen, or halve it.
const WHEEL: f32 = 200.0;
/// A pause of so many seconds begins another turn of the wheel.
const PAUSE: f64 = 0.3;
/// A step of the keyboard.
const STEP: f64 = 0.8;

/// What the hand does with a plot.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub enum Gesture {
    /// Nothing.
    #[default]
    None,
    /// It draws the frame of what is to be seen, from here.
    Frame(Pos2, Pos2),
    /// It moves the picture.
    Picture,
}

/// What is to be seen then.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Asked {
    /// Another part.
    pub part: Option<Part>,
    /// All of it.
    pub all: bool,
}

impl Gesture {
    /// Follows the hand. `over` is where the pointer is in the plot, `whole` all that could be in view.
    pub fn follow(&mut self, ui: &Ui, response: &Response, map: &Map, over: Option<Pos2>, whole: &Frame) -> Asked {
        let mut asked = Asked { all: response.double_clicked(), ..Asked::default() };
        if response.drag_started() {
            *self =
                ui.input(|input| input.pointer.press_origin()).map_or(Self::None, |from| Self::begin(ui, map, from));
        }
        match (*self, response.interact_pointer_pos()) {
            (Self::Picture, _) if response.drag_delta() != Vec2::ZERO => {
                asked.part = Some(map.moved(response.drag_delta(), whole));
            }
            (Self::Frame(from, _), Some(at)) => {
                *self = Self::Frame(from, at);
                if response.drag_stopped() {
                    asked.part = map.framed(from, at, whole);
                }
            }
            _ => {}
        }
        if response.drag_stopped() || !(response.dragged() || response.drag_started()) {
            *self = Self::None;
        }
        if let Some(factor) = turned(ui, response, over).or_else(|| keyed(ui, response, &mut asked)) {
            asked.part = Some(map.scaled(over.unwrap_or(map.plot.center()), factor, whole));
        }
        asked
    }

    fn begin(ui: &Ui, map: &Map, from: Pos2) -> Self {
        let first = ui.input(|input| input.pointer.button_down(PointerButton::Primary) && !input.modifiers.shift);
        match first {
            _ if !map.plot.contains(from) => Self::None,
            true => Self::Frame(from, from),
            false => Self::Picture,
        }
    }

    /// The pointer over the plot.
    pub fn cursor(self) -> CursorIcon {
        if self == Self::Picture { CursorIcon::Grabbing } else { CursorIcon::Crosshair }
    }

    /// The frame that is drawn.
    pub fn paint(self, ui: &Ui, map: &Map) {
        let Self::Frame(from, to) = self else { return };
        let accent = Theme::of(ui).accent();
        let frame = Rect::from_two_pos(map.plot.clamp(from), map.plot.clamp(to));
        ui.painter().rect(frame, 0.0, faint(accent), Stroke::new(1.0, accent), StrokeKind::Inside);
    }
}

/// By how much the wheel or two fingers zoom. A turn of the wheel that began beside the plot goes on scrolling the panel
/// when the plot comes under the pointer.
fn turned(ui: &Ui, response: &Response, over: Option<Pos2>) -> Option<f64> {
    let (wheel, pinch) = ui.input(|input| (input.smooth_scroll_delta().y, input.zoom_delta()));
    if over.is_some() && pinch != 1.0 {
        return Some(f64::from(1.0 / pinch));
    }
    if wheel == 0.0 || owner(ui.ctx(), over.map(|_| response.id)) != Some(response.id) || over.is_none() {
        return None;
    }
    ui.input_mut(|input| input.smooth_scroll_delta = Vec2::ZERO);
    Some(2f64.powf(f64::from(-wheel / WHEEL)))
}

/// A turn of the wheel.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// When it was heard of last, seconds.
    last: f64,
    /// The frame in which it began: whose plot it is, is decided then.
    began: u64,
    owner: Option<Id>,
}

/// Whose turn of the wheel it is. `over`: the plot that asks, if the pointer is over it.
fn owner(ctx: &Context, over: Option<Id>) -> Option<Id> {
    let (now, frame, key) = (ctx.input(|input| input.time), ctx.cumulative_frame_nr(), Id::unique("turn of the wheel"));
    ctx.data_mut(|data| {
        let fresh = Turn { last: now, began: frame, owner: None };
        let before = data.get_temp::<Turn>(key).filter(|turn| now - turn.last <= PAUSE);
        let mut turn = Turn { last: now, ..before.unwrap_or(fresh) };
        if turn.began == frame && turn.owner.is_none() {
            turn.owner = over;
        }
        data.insert_temp(key, turn);
        turn.owner
    })
}

/// The same by the keyboard, while the plot has the focus.
fn keyed(ui: &Ui, response: &Response, asked: &mut Asked) -> Option<f64> {
    if !response.has_focus() {
        return None;
    }
    let pressed = |key: Key| ui.input(|input| input.key_pressed(key));
    asked.all |= pressed(Key::Num0);
    match () {
        () if pressed(Key::Plus) || pressed(Key::Equals) => Some(STEP),
        () if pressed(Key::Minus) => Some(1.0 / STEP),
        () => None,
    }
}
