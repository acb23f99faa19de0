//! Grids as shapes: coloured squares, and the scale of those that are numbers.

use super::labels::LABEL_SIZE;
use super::palette::{Theme, diverging};
use super::scene::{Anchor, Ink, Path, Scene, Stroke};
use super::{Cells, Figure, Grid, number};

/// Share of the longer side of its place that a grid fills.
const FILLED: f64 = 0.96;
/// How far a square reaches below its neighbours, pixels: without it the ground shines through between them.
const OVERLAP: f64 = 0.5;
/// Steps, widest width and height of the scale of colours, and its distance from what stands above, pixels.
const STEPS: usize = 64;
const WIDEST: f64 = 420.0;
const HEIGHT: f64 = 10.0;
const ABOVE: f64 = 16.0;

impl Grid {
    /// Columns and rows.
    fn size(&self) -> [usize; 2] {
        let columns = self.columns.max(1);
        [columns, self.len().div_ceil(columns)]
    }

    /// The ends of the scale of its numbers: ± the largest magnitude.
    fn extent(&self) -> f64 {
        let Cells::Numbers { values, .. } = &self.cells else { return 0.0 };
        values.iter().filter(|value| value.is_finite()).fold(0.0, |most, value| value.abs().max(most))
    }

    /// The colour of a square, on a scale to ± `extent`, and what it says under the pointer.
    fn square(&self, i: usize, extent: f64, dark: bool) -> Option<(Ink, Option<String>)> {
        match &self.cells {
            Cells::Pixels(pixels) => Some((Ink::solid(*pixels.get(i)?), None)),
            Cells::Numbers { values, unit, .. } => {
                let value = values.get(i).filter(|value| value.is_finite())?;
                let (row, column) = (i / self.columns.max(1) + 1, i % self.columns.max(1) + 1);
                let tip = format!("row {row} column {column}: {} {unit}", short(*value));
                Some((Ink::solid(diverging(share(*value, extent), dark)), Some(tip)))
            }
        }
    }

    fn paint(&self, scene: &mut Scene, middle: f64, at: impl Fn(f64, f64) -> [f64; 2], dark: bool) {
        let [columns, rows] = self.size();
        let half = |squares: usize| 0.5 * FILLED * squares as f64 / columns.max(rows) as f64;
        let [left, top] = at(middle - half(columns), half(rows));
        let [right, bottom] = at(middle + half(columns), -half(rows));
        let edge = |from: f64, to: f64, i: usize, of: usize| from + (to - from) * i as f64 / of as f64;
        let extent = self.extent();
        for i in 0..self.len() {
            let Some((ink, tip)) = self.square(i, extent, dark) else { continue };
            let (row, column) = (i / columns, i % columns);
            let [x, next] = [column, column + 1].map(|i| edge(left, right, i, columns));
            let [y, below] = [row, row + 1].map(|i| edge(top, bottom, i, rows));
            scene.path(Path { tip, ..square([x, y, (next + OVERLAP).min(right), (below + OVERLAP).min(bottom)], ink) });
        }
        let frame = square([left, top, right, bottom], Ink::solid([0; 3]));
        let line = Stroke::new(Theme::new(dark).axis, 1.0);
        scene.path(Path { fill: None, stroke: Some(line), ..frame });
    }
}

/// Draws the grids of a figure, whose places `at` finds.
pub(super) fn paint(figure: &Figure, scene: &mut Scene, at: impl Fn(f64, f64) -> [f64; 2], dark: bool) {
    for (i, grid) in figure.grids.iter().enumerate() {
        grid.paint(scene, i as f64, &at, dark);
    }
}

/// Draws the scales of the grids of numbers, the first at the height `top`. Returns the height they take.
pub(super) fn scales(figure: &Figure, scene: &mut Scene, mut top: f64, dark: bool) -> f64 {
    let (theme, start) = (Theme::new(dark), top);
    let [left, _, right, _] = scene.plot;
    let width = (right - left).min(WIDEST);
    let left = f64::midpoint(left, right) - width / 2.0;
    for grid in &figure.grids {
        let Cells::Numbers { unit, sides, .. } = &grid.cells else { continue };
        top += ABOVE;
        let step = width / STEPS as f64;
        for i in 0..STEPS {
            let share = 2.0 * (i as f64 + 0.5) / STEPS as f64 - 1.0;
            let x = left + i as f64 * step;
            let end = (x + step + OVERLAP).min(left + width);
            scene.path(square([x, top, end, top + HEIGHT], Ink::solid(diverging(share, dark))));
        }
        let (extent, baseline) = (short(grid.extent()), top + HEIGHT + 1.2 * LABEL_SIZE);
        let labels = [
            (format!("−{extent} {unit} ({})", sides[0]), left, Anchor::Start),
            ("0".to_owned(), left + width / 2.0, Anchor::Middle),
            (format!("+{extent} {unit} ({})", sides[1]), left + width, Anchor::End),
        ];
        for (text, x, anchor) in labels {
            scene.block(&[text], [x, baseline], anchor, LABEL_SIZE, theme.text);
        }
        top = baseline + 0.4 * LABEL_SIZE;
    }
    top - start
}

fn square([left, top, right, bottom]: [f64; 4], ink: Ink) -> Path {
    let points = vec![[left, top], [right, top], [right, bottom], [left, bottom]];
    Path { points, closed: true, fill: Some(ink), ..Path::default() }
}

/// The place of a number on a scale to ± `extent`.
fn share(value: f64, extent: f64) -> f64 {
    if extent > 0.0 { value / extent } else { 0.0 }
}

/// Four digits.
fn short(value: f64) -> String {
    number(format!("{value:.3e}").parse().unwrap_or(value))
}
