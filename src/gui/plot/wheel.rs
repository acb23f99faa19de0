//! Zoom by Ctrl and the wheel, by two fingers and by keys. The wheel alone scrolls the panel, as it does over maps on web pages:
//! who scrolls past a plot is not caught by it.

use eframe::egui::{Key, Vec2};
use egui_plot::{PlotBounds, PlotUi};

use super::map::held;

/// A step of the keyboard.
const STEP: f32 = 1.25;

/// Zooms by hand and keys, and keeps what is in view near the `whole`. egui_plot would also zoom out beyond the whole.
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
    // egui makes a zoom of the wheel where Ctrl is held, on a Mac Cmd, and then nothing scrolls.
    let by_hand = over.map_or(Vec2::splat(1.0), |_| plot.ctx().input(|input| input.zoom_delta_2d()));
    let pressed = |key: Key| response.has_focus() && response.ctx.input(|input| input.key_pressed(key));
    let factor = match () {
        () if by_hand != Vec2::splat(1.0) => by_hand,
        () if pressed(Key::Num0) => return plot.set_auto_bounds(true),
        () if pressed(Key::Plus) || pressed(Key::Equals) => Vec2::splat(STEP),
        () if pressed(Key::Minus) => Vec2::splat(1.0 / STEP),
        () => return,
    };
    // There is nothing to see beyond the whole.
    if factor.max_elem() > 1.0 || !plot.auto_bounds().all() {
        plot.zoom_bounds(factor, over.unwrap_or(seen.center()));
    }
}
