//! Grid lines and labels of the axes: those of the files, by the rules of egui_plot.

use std::ops::RangeInclusive;

use egui_plot::{GridInput, GridMark};

use crate::figure::{Axis, minor_ticks, number, ticks};
use crate::gui::widgets::break_lines;

/// egui_plot gives the step of lines so far apart, points.
const NEAREST: f64 = 8.0;
/// Step of lines without labels, in those of [`NEAREST`]: faint ones.
const FAINT: f64 = 3.0;
/// Width of a letter, and least distance of two names, points.
const LETTER: f64 = 6.5;
const NAMES: f64 = 26.0;
/// So little beyond an end of the axis still counts, share of it.
const SLACK: f64 = 1e-9;

/// Lines of an axis, a label about every `room` points. Those with labels have the whole axis for a step: their labels are
/// always written.
pub fn marks(axis: &Axis, input: &GridInput, room: f64) -> Vec<GridMark> {
    let ((low, high), scale) = (input.bounds, axis.shown_scale());
    let (step_size, length) = (high - low, NEAREST * (high - low) / input.base_step_size);
    if !axis.categories.is_empty() {
        let every = (NAMES * step_size / length).ceil().max(1.0) as usize;
        let named = (0..axis.categories.len()).step_by(every).map(|i| i as f64);
        return named.filter(|at| (low..=high).contains(at)).map(|value| GridMark { value, step_size }).collect();
    }
    // An end that was a round number is not quite one after its logarithm.
    let ends = [low - SLACK * step_size, high + SLACK * step_size].map(|place| scale.value(place));
    let labelled = ticks(ends, scale, (length / room) as usize).into_iter().map(|tick| tick.at);
    let labelled = labelled.map(|at| GridMark { value: scale.place(at), step_size });
    let between = minor_ticks(ends, scale).into_iter();
    let faint = FAINT * input.base_step_size;
    labelled.chain(between.map(|at| GridMark { value: scale.place(at), step_size: faint })).collect()
}

/// What is written at a line of an axis of `length` points; nothing at faint ones.
pub fn label(axis: &Axis, mark: GridMark, range: &RangeInclusive<f64>, length: f64) -> String {
    let whole = range.end() - range.start();
    match axis.categories.get(mark.value.max(0.0).round() as usize) {
        Some(name) => break_lines(name, (length / (whole * LETTER)).max(4.0) as usize),
        None if mark.step_size < 0.5 * whole => String::new(),
        None => number(axis.shown_scale().value(mark.value)),
    }
}

/// The title of an axis of so many points, in as many lines as it needs.
pub fn title(axis: &Axis, length: f32) -> String {
    break_lines(&axis.full_title(), (f64::from(length) / LETTER) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written along an axis of 500 points.
    fn written(axis: &Axis, low: f64, high: f64) -> Vec<String> {
        let input = GridInput { bounds: (low, high), base_step_size: NEAREST * (high - low) / 500.0 };
        let texts = marks(axis, &input, 90.0).into_iter().map(|mark| label(axis, mark, &(low..=high), 500.0));
        texts.filter(|text| !text.is_empty()).collect()
    }

    #[test]
    fn axes_are_labelled_in_their_own_numbers() {
        assert_eq!(written(&Axis::log10("τ"), 0.2f64.log10(), 4f64.log10()), ["0.2", "0.5", "1", "2"]);
        assert_eq!(written(&Axis::linear("E"), 0.0, 94.0), ["0", "20", "40", "60", "80"]);
        assert!(written(&Axis::log10("E"), -25.0, 2.0).len() <= 9);
    }

    #[test]
    fn names_stand_at_their_places_and_are_broken_or_left_out_where_they_are_many() {
        let axis = Axis::named("class", ["mean squared error", "b", "c"]);
        assert_eq!(written(&axis, -0.5, 2.5), ["mean squared error", "b", "c"]);
        assert_eq!(written(&axis, 0.5, 2.5), ["b", "c"]);
        let many = Axis::named("class", (0..100).map(|i| format!("class {i}")));
        assert!(written(&many, -0.5, 99.5).len() < 25);
    }
}
