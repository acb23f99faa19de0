//! Places of a figure's numbers: on the linear axes of egui_plot, and on the screen.

use eframe::egui::{Pos2, Rect, pos2};
use egui_plot::{PlotBounds, PlotPoint, PlotTransform};

use crate::figure::{Figure, Frame, Scale};

/// The deepest zoom: this share of the whole axis is in view.
const DEEPEST: f64 = 1.0 / 200.0;
/// How far the part in view may lie beside the whole, as a share of itself.
const BESIDE: f64 = 0.5;

/// The ends of both axes, in their own numbers.
pub type Part = [[f64; 2]; 2];

/// The scales of both axes. A place is what egui_plot calls a value: it knows no logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Places {
    x: Scale,
    y: Scale,
}

impl Places {
    pub fn of(figure: &Figure) -> Self {
        Self { x: figure.x.shown_scale(), y: figure.y.shown_scale() }
    }

    /// Where a point stands, `beside` places after its x; nowhere if it has no place.
    pub fn at(self, [x, y]: [f64; 2], beside: f64) -> Option<[f64; 2]> {
        (self.x.has(x) && self.y.has(y)).then(|| [self.x.place(x) + beside, self.y.place(y)])
    }

    pub fn x(self, x: f64) -> Option<f64> {
        self.x.has(x).then(|| self.x.place(x))
    }

    pub fn y(self, y: f64) -> Option<f64> {
        self.y.has(y).then(|| self.y.place(y))
    }

    /// The numbers at a place.
    pub fn numbers(self, at: PlotPoint) -> [f64; 2] {
        [self.x.value(at.x), self.y.value(at.y)]
    }

    /// The places at the ends of a frame.
    pub fn bounds(self, frame: &Frame) -> PlotBounds {
        let ([left, right], [bottom, top]) =
            (frame.x.map(|end| self.x.place(end)), frame.y.map(|end| self.y.place(end)));
        PlotBounds::from_min_max([left, bottom], [right, top])
    }

    /// The numbers at the ends of what is in view.
    pub fn part(self, bounds: &PlotBounds) -> Part {
        let ([left, bottom], [right, top]) = (bounds.min(), bounds.max());
        [[left, right].map(|place| self.x.value(place)), [bottom, top].map(|place| self.y.value(place))]
    }
}

/// What is in view, no deeper than [`DEEPEST`] of the whole and near it; nothing where that is the whole.
pub fn held(seen: &PlotBounds, whole: &PlotBounds) -> Option<PlotBounds> {
    let axis = |i: usize| {
        let ([low, high], [first, last]) = ([whole.min()[i], whole.max()[i]], [seen.min()[i], seen.max()[i]]);
        let all = high - low;
        let length = (last - first).max(DEEPEST * all);
        let free = BESIDE * length;
        match () {
            () if length >= all * (1.0 - 1e-9) => [low, high],
            () if length == last - first && first >= low - free && last <= high + free => [first, last],
            () => {
                let start = (f64::midpoint(first, last) - length / 2.0).clamp(low - free, high + free - length);
                [start, start + length]
            }
        }
    };
    let [[left, right], [bottom, top]] = [axis(0), axis(1)];
    let held = PlotBounds::from_min_max([left, bottom], [right, top]);
    (held != *whole).then_some(held)
}

/// A plot on the screen.
#[derive(Clone, Copy)]
pub struct Map {
    pub places: Places,
    pub transform: PlotTransform,
}

impl Map {
    /// The plot between its axes.
    pub fn frame(&self) -> Rect {
        *self.transform.frame()
    }

    /// Where a point stands, `beside` places of the x axis after its x; nowhere if it has no place.
    pub fn at(&self, point: [f64; 2], beside: f64) -> Option<Pos2> {
        let [x, y] = self.places.at(point, beside)?;
        Some(self.transform.position_from_point(&PlotPoint::new(x, y)))
    }

    /// The column of an x, if it is in view.
    pub fn column(&self, x: f64) -> Option<f32> {
        let column = self.transform.position_from_point_x(self.places.x(x)?);
        self.frame().x_range().contains(column).then_some(column)
    }

    /// The numbers at a place of the screen.
    pub fn numbers(&self, at: Pos2) -> [f64; 2] {
        self.places.numbers(self.transform.value_from_position(at))
    }

    /// The x of a column of the plot, or of its nearest end.
    pub fn number(&self, column: f32) -> f64 {
        self.numbers(pos2(self.frame().x_range().clamp(column), self.frame().top()))[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Axis, Omitted};

    fn places() -> Places {
        Places::of(&Figure { x: Axis::log10("n"), y: Axis::linear("loss"), ..Figure::default() })
    }

    fn frame() -> Frame {
        Frame { x: [1.0, 1000.0], y: [-2.0, 6.0], omitted: Omitted::default() }
    }

    #[test]
    fn numbers_and_places_are_inverse() {
        let bounds = places().bounds(&frame());
        let area = Rect::from_min_max(pos2(100.0, 50.0), pos2(400.0, 250.0));
        let map = Map { places: places(), transform: PlotTransform::new(area, bounds, false) };
        assert_eq!(map.at([10.0, 2.0], 0.0), Some(pos2(200.0, 150.0)));
        assert_eq!(map.at([10.0, 2.0], 1.0), Some(pos2(300.0, 150.0)));
        assert_eq!((map.at([0.0, 2.0], 0.0), map.at([1.0, f64::NAN], 0.0)), (None, None));
        for at in [pos2(100.0, 50.0), pos2(333.0, 77.0), pos2(20.0, 300.0)] {
            let back = map.at(map.numbers(at), 0.0).unwrap();
            assert!(back.distance(at) < 1e-2, "{at} {back}");
        }
        let [x, y] = places().part(&bounds);
        assert!(x.iter().zip(frame().x).all(|(a, b)| (a / b - 1.0).abs() < 1e-12) && y == frame().y);
    }

    #[test]
    fn what_is_in_view_is_neither_too_deep_nor_far_away_and_the_whole_is_no_part() {
        let whole = PlotBounds::from_min_max([0.0, 10.0], [4.0, 20.0]);
        assert_eq!(held(&whole, &whole), None);
        assert_eq!(held(&PlotBounds::from_min_max([-1.0, 0.0], [9.0, 40.0]), &whole), None, "zoomed out");
        let inside = PlotBounds::from_min_max([1.0, 12.0], [2.0, 13.0]);
        assert_eq!(held(&inside, &whole), Some(inside));
        let deep = held(&PlotBounds::from_min_max([1.0, 12.0], [1.0, 12.0]), &whole).unwrap();
        assert!((deep.width() / (4.0 * DEEPEST) - 1.0).abs() < 1e-9 && (deep.height() / 0.05 - 1.0).abs() < 1e-9);
        let away = held(&PlotBounds::from_min_max([90.0, 12.0], [91.0, 13.0]), &whole).unwrap();
        assert_eq!((away.min()[0], away.max()[0]), (3.5, 4.5), "half of it still shows the plot");
    }
}
