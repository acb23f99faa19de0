//! Zoom by the wheel, which egui_plot leaves to Ctrl and the wheel, and by keys.

use eframe::egui::{Context, Id, Key, Vec2};
use egui_plot::{PlotBounds, PlotUi};

use super::map::held;

/// Points of the wheel that double what is seen, or halve it.
const WHEEL: f32 = 200.0;
/// A pause of so many seconds begins another turn of the wheel.
const PAUSE: f64 = 0.3;
/// A step of the keyboard.
const STEP: f32 = 1.25;

/// Zooms by wheel and keys, and keeps what is in view near the `whole`.
pub fn zoom(plot: &mut PlotUi, whole: &PlotBounds) {
    let (response, seen) = (plot.response().clone(), plot.plot_bounds());
    if !plot.auto_bounds().all() {
        match held(&seen, whole) {
            None => plot.set_auto_bounds(true),
            Some(part) if part != seen => plot.set_plot_bounds(part),
            Some(_) => {}
        }
    }
    let over = plot.pointer_coordinate().filter(|_| response.contains_pointer());
    let wheel = plot.ctx().input(|input| input.smooth_scroll_delta().y);
    let own = wheel != 0.0 && owner(plot.ctx(), over.map(|_| response.id)) == Some(response.id) && over.is_some();
    let pressed = |key: Key| response.has_focus() && response.ctx.input(|input| input.key_pressed(key));
    let factor = match () {
        () if own => {
            plot.ctx().input_mut(|input| input.smooth_scroll_delta = Vec2::ZERO);
            2f32.powf(wheel / WHEEL)
        }
        () if pressed(Key::Num0) => return plot.set_auto_bounds(true),
        () if pressed(Key::Plus) || pressed(Key::Equals) => STEP,
        () if pressed(Key::Minus) => 1.0 / STEP,
        () => return,
    };
    // There is nothing to see beyond the whole.
    if factor > 1.0 || !plot.auto_bounds().all() {
        plot.zoom_bounds(Vec2::splat(factor), over.unwrap_or(seen.center()));
    }
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

/// Whose turn of the wheel it is. `over`: the plot that asks, if the pointer is over it. A turn that began beside the plot
/// goes on scrolling the panel when the plot comes under the pointer.
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
