//! Grid lines and labels of the axes: those of the files, by the rules of egui_plot. Names below an axis are written here, as in
//! the files: upright, turned or fewer of them, so that none lies on another.

use std::ops::RangeInclusive;

use eframe::egui::epaint::TextShape;
use eframe::egui::{Align2, FontId, TextStyle, Ui, pos2};
use egui_plot::{GridInput, GridMark, PlotPoint, PlotTransform};

use crate::figure::{Axis, LABEL_GAP, LABEL_SIZE, LabelRow, label_row, minor_ticks, number, ticks};
use crate::gui::widgets::break_lines;

/// egui_plot gives the step of lines so far apart, points.
const NEAREST: f64 = 8.0;
/// Step of lines without labels, in those of [`NEAREST`]: faint ones.
const FAINT: f64 = 3.0;
/// Width of a letter, and least distance of the lines at two names, points.
const LETTER: f64 = 6.5;
const NAMES: f64 = 26.0;
/// Height of a title, in lines of text: egui_plot leaves so much free above it.
const TITLE: f32 = 1.25;
/// So little beyond an end of the axis still counts, share of it.
const SLACK: f64 = 1e-9;
/// A number so near to the corner of a plot reaches around it, share of the axis.
const CORNER: f64 = 0.02;

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

/// What egui_plot writes at a line of an axis; nothing at faint ones, and no name.
pub fn label(axis: &Axis, mark: GridMark, range: &RangeInclusive<f64>) -> String {
    let whole = range.end() - range.start();
    match axis.categories.is_empty() && mark.step_size >= 0.5 * whole {
        true => number(axis.shown_scale().value(mark.value)),
        false => String::new(),
    }
}

/// Returns whether a number stands in the left corner below an x axis of `length` points between its `ends`, a label about
/// every `room` points.
pub fn reaches_around(axis: &Axis, ends: [f64; 2], length: f64, room: f64) -> bool {
    let scale = axis.shown_scale();
    let [low, high] = ends.map(|end| scale.place(end));
    let near = |at: f64| scale.place(at) - low < CORNER * (high - low);
    let ends = [low - SLACK * (high - low), high].map(|place| scale.value(place));
    axis.categories.is_empty() && ticks(ends, scale, (length / room) as usize).into_iter().any(|tick| near(tick.at))
}

/// [`label`] of a y axis. Where a number of the x axis reaches around the corner (`beside`), the lowest stands above the corner,
/// by an empty line below it, and not on that number.
pub fn y_label(axis: &Axis, mark: GridMark, range: &RangeInclusive<f64>, beside: bool) -> String {
    let text = label(axis, mark, range);
    let lowest = mark.value - range.start() < CORNER * (range.end() - range.start());
    if beside && lowest && !text.is_empty() { text + "\n" } else { text }
}

/// The names below an x axis of `length` points, the right part of a plot of `width`, between its `ends`; none where it has
/// numbers.
pub fn names(axis: &Axis, ends: [f64; 2], width: f32, length: f32) -> Option<LabelRow> {
    let [length, left] = [length, width - length].map(f64::from);
    (!axis.categories.is_empty()).then(|| label_row(axis, ends, length, left))
}

/// The room that names and title take below the axis, points.
pub fn height(ui: &Ui, names: &LabelRow, title: &str) -> f32 {
    (LABEL_GAP + names.height + LABEL_GAP) as f32
        + TITLE * title.lines().count() as f32 * ui.text_style_height(&TextStyle::Body)
}

/// Writes names where they belong, as far as they are in view.
pub fn write(ui: &Ui, names: &LabelRow, transform: &PlotTransform) {
    let (frame, colour) = (transform.frame(), ui.visuals().text_color());
    let (anchor, angle) = match names.angle == 0.0 {
        true => (Align2::CENTER_CENTER, 0.0),
        false => (Align2::RIGHT_CENTER, -names.angle.to_radians() as f32),
    };
    for label in &names.labels {
        let x = transform.position_from_point(&PlotPoint::new(label.at, 0.0)).x;
        if !frame.x_range().contains(x) {
            continue;
        }
        for (line, [x, y]) in names.lines(label, f64::from(x), f64::from(frame.bottom())) {
            let galley = ui.painter().layout_no_wrap(line.to_owned(), FontId::proportional(LABEL_SIZE as f32), colour);
            let corner = pos2(x as f32, y as f32) - anchor.pos_in_rect(&galley.rect).to_vec2();
            ui.painter().add(TextShape::new(corner, galley, colour).with_angle_and_anchor(angle, anchor));
        }
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
        let texts = marks(axis, &input, 90.0).into_iter().map(|mark| label(axis, mark, &(low..=high)));
        texts.filter(|text| !text.is_empty()).collect()
    }

    #[test]
    fn axes_are_labelled_in_their_own_numbers() {
        assert_eq!(written(&Axis::log10("τ"), 0.2f64.log10(), 4f64.log10()), ["0.2", "0.5", "1", "2"]);
        assert_eq!(written(&Axis::linear("E"), 0.0, 94.0), ["0", "20", "40", "60", "80"]);
        assert!(written(&Axis::log10("E"), -25.0, 2.0).len() <= 9);
    }

    #[test]
    fn names_are_those_of_the_files_and_egui_plot_writes_none() {
        let axis = Axis::named("class", ["mean squared error", "b", "c"]);
        assert_eq!(written(&axis, -0.5, 2.5), [""; 0]);
        let shown = |ends, width, length| {
            let names = names(&axis, ends, width, length).unwrap();
            names.labels.into_iter().map(|label| label.lines.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(shown([-0.5, 2.5], 600.0, 540.0), ["mean squared error", "b", "c"]);
        assert_eq!(shown([0.5, 2.5], 600.0, 540.0), ["b", "c"]);
        assert!(names(&Axis::linear("E"), [0.0, 1.0], 600.0, 540.0).is_none());
        // A hundred lines would hide what is between them.
        let many = Axis::named("class", (0..100).map(|i| format!("class {i}")));
        let input = GridInput { bounds: (-0.5, 99.5), base_step_size: NEAREST * 100.0 / 500.0 };
        assert!(marks(&many, &input, 90.0).len() < 25);
    }
    #[test]
    fn two_numbers_at_a_corner_do_not_lie_on_each_other() {
        let corner = |low: f64| reaches_around(&Axis::log10("τ"), [low, 4.0], 540.0, 90.0);
        assert!(corner(0.2) && !corner(0.15));
        let axis = Axis::linear("E");
        let told = |value: f64, beside| y_label(&axis, GridMark { value, step_size: 94.0 }, &(0.0..=94.0), beside);
        assert_eq!([told(0.0, true), told(20.0, true), told(0.0, false)], ["0\n", "20", "0"]);
    }
}
