//! Names below an x axis that do not fit side by side, turned to read upwards: egui_plot writes upright ones alone.

use std::f32::consts::FRAC_PI_2;

use eframe::egui::epaint::TextShape;
use eframe::egui::{Align2, FontSelection, Galley, TextStyle, Ui, WidgetText, pos2, vec2};
use egui_plot::PlotTransform;

use super::axes::title;
use crate::figure::Axis;
use crate::gui::widgets::break_lines;

/// Width of an upright letter, and height of a turned line, points.
const LETTER: f64 = 6.5;
const LINE: f64 = 13.0;
/// Distance between axis, names and title, points.
const GAP: f32 = 5.0;
/// Shortest and longest line of a turned name, letters; a longer name is broken however near its neighbours stand.
const LETTERS: std::ops::RangeInclusive<usize> = 10..=30;

/// Whether a name has a word that is wider than its place on an axis of `length` points.
pub fn are_needed(axis: &Axis, length: f32) -> bool {
    let place = f64::from(length) / axis.categories.len() as f64;
    let words = axis.categories.iter().flat_map(|name| name.split_whitespace());
    words.map(|word| word.chars().count()).max().is_some_and(|letters| letters as f64 * LETTER > place)
}

/// Of how many names one is written, and all of them broken so that neighbours `apart` points from each other do not touch.
fn broken(names: &[String], apart: f64) -> (usize, Vec<String>) {
    let at = |letters: usize| -> Vec<String> { names.iter().map(|name| break_lines(name, letters)).collect() };
    let lines = |names: &[String]| names.iter().map(|name| name.lines().count()).max().unwrap_or(1) as f64;
    let found = LETTERS.map(at).find(|names| lines(names) * LINE <= apart);
    let broken = found.unwrap_or_else(|| at(*LETTERS.end()));
    ((lines(&broken) * LINE / apart).ceil().max(1.0) as usize, broken)
}

/// Writes the names of the x axis that are in view below a plot, then the axis' title.
pub fn names(ui: &mut Ui, axis: &Axis, plot: &PlotTransform) {
    let frame = plot.frame();
    let apart = plot.dpos_dvalue_x().abs();
    let (every, names) = broken(&axis.categories, apart);
    let colour = ui.visuals().text_color();
    let galley = |ui: &Ui, text: String, style: TextStyle| {
        WidgetText::from(text).into_galley(ui, None, f32::INFINITY, FontSelection::Style(style))
    };
    let top = frame.bottom() + GAP;
    let mut depth = 0.0_f32;
    for (i, name) in names.into_iter().enumerate().step_by(every) {
        let galley: std::sync::Arc<Galley> = galley(ui, name, TextStyle::Small);
        depth = depth.max(galley.size().x);
        let x = plot.position_from_point_x(i as f64);
        if frame.x_range().contains(x) {
            // The end of the name touches the axis.
            let corner = pos2(x, top) - vec2(galley.rect.right(), galley.rect.center().y);
            let shape = TextShape::new(corner, galley, colour);
            ui.painter().add(shape.with_angle_and_anchor(-FRAC_PI_2, Align2::RIGHT_CENTER));
        }
    }
    let title = galley(ui, title(axis, frame.width()), TextStyle::Body);
    let below = top + depth + GAP;
    let size = title.size();
    ui.painter().galley(pos2(frame.center().x - size.x / 2.0, below), title, colour);
    ui.add_space((below + size.y - ui.cursor().top()).max(0.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turned_names_keep_apart_and_all_their_letters() {
        let names: Vec<String> =
            ["1-NN, τ = 0.8", "1-NN by k neighbours on features, τ = 1.3", "k-NN"].map(String::from).into();
        for apart in [4.0, 13.0, 20.0, 30.0, 60.0, 200.0] {
            let (every, broken) = broken(&names, apart);
            let lines = broken.iter().map(|name| name.lines().count()).max().unwrap();
            assert!(lines as f64 * LINE <= every as f64 * apart, "{apart}");
            assert!(broken.iter().zip(&names).all(|(broken, name)| broken.replace('\n', "") == *name));
        }
        assert_eq!(broken(&names, 60.0).0, 1);
        assert!(broken(&names, 4.0).0 > 1);
    }

    #[test]
    fn names_are_turned_where_a_word_does_not_fit() {
        let axis = Axis::named("class", ["lymphocyte", "monocyte"]);
        assert!(!are_needed(&axis, 400.0) && are_needed(&axis, 100.0));
        assert!(!are_needed(&Axis::linear("E"), 1.0));
    }
}
