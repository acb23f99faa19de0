//! Which part of a figure is in view, and where its numbers lie on the screen.

use eframe::egui::{Pos2, Rect, Vec2};

use crate::figure::{Figure, Frame, Scale};

/// The deepest zoom: this share of the whole axis is in view.
const DEEPEST: f64 = 1.0 / 200.0;
/// How far the part in view may lie beside the whole, as a share of itself.
const BESIDE: f64 = 0.5;

/// Both axes of a plot on the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Map {
    /// The plot between its axes, points.
    pub plot: Rect,
    x: Line,
    y: Line,
}

/// An axis: its scale and the places at its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    scale: Scale,
    ends: [f64; 2],
}

/// The ends of both axes, in their own numbers.
pub type Part = [[f64; 2]; 2];

impl Line {
    fn new(scale: Scale, ends: [f64; 2]) -> Self {
        Self { scale, ends: ends.map(|end| scale.place(end)) }
    }

    /// Share of the axis before a number, `beside` places after it.
    fn share(self, value: f64, beside: f64) -> f64 {
        (self.scale.place(value) + beside - self.ends[0]) / (self.ends[1] - self.ends[0])
    }

    fn value(self, share: f64) -> f64 {
        self.scale.value(self.place(share))
    }

    fn place(self, share: f64) -> f64 {
        self.ends[0] + share * (self.ends[1] - self.ends[0])
    }

    /// The part between two shares of the axis, no deeper than [`DEEPEST`] of `whole` and near it; all of `whole` where it
    /// is as long.
    fn part(self, shares: [f64; 2], whole: [f64; 2]) -> [f64; 2] {
        let whole = whole.map(|end| self.scale.place(end));
        let all = whole[1] - whole[0];
        let asked = shares.map(|share| self.place(share));
        let length = (asked[1] - asked[0]).max(DEEPEST * all);
        if length >= all * (1.0 - 1e-9) {
            return whole.map(|place| self.scale.value(place));
        }
        let free = BESIDE * length;
        let middle = f64::midpoint(asked[0], asked[1]);
        let low = (middle - length / 2.0).clamp(whole[0] - free, whole[1] + free - length);
        [low, low + length].map(|place| self.scale.value(place))
    }
}

impl Map {
    /// Of the part `frame` of a figure in a rectangle of the screen.
    pub fn new(figure: &Figure, frame: &Frame, plot: Rect) -> Self {
        let (x, y) = (Line::new(figure.x.shown_scale(), frame.x), Line::new(figure.y.shown_scale(), frame.y));
        Self { plot, x, y }
    }

    /// Where a point stands, `beside` places of the x axis after its x; nowhere if it has no place.
    pub fn at(&self, [x, y]: [f64; 2], beside: f64) -> Option<Pos2> {
        let (x, y) = (self.x.scale.has(x).then_some(x)?, self.y.scale.has(y).then_some(y)?);
        let [right, up] = [self.x.share(x, beside) as f32, self.y.share(y, 0.0) as f32];
        Some(self.plot.left_bottom() + Vec2::new(right * self.plot.width(), -up * self.plot.height()))
    }

    /// The column of an x.
    pub fn column(&self, x: f64) -> Option<f32> {
        let share = self.x.scale.has(x).then(|| self.x.share(x, 0.0))? as f32;
        Some(self.plot.left() + share * self.plot.width())
    }

    /// The numbers at a place of the screen.
    pub fn numbers(&self, at: Pos2) -> [f64; 2] {
        let [right, up] = self.shares(at);
        [self.x.value(right), self.y.value(up)]
    }

    fn shares(&self, at: Pos2) -> [f64; 2] {
        let along = (at - self.plot.left_bottom()) / self.plot.size();
        [f64::from(along.x), -f64::from(along.y)]
    }

    /// The part in view after a zoom about a place that stays where it is: `factor` below 1 goes closer.
    pub fn scaled(&self, about: Pos2, factor: f64, whole: &Frame) -> Part {
        let [x, y] = self.shares(about);
        let around = |share: f64| [share - factor * share, share + factor * (1.0 - share)];
        [self.x.part(around(x), whole.x), self.y.part(around(y), whole.y)]
    }

    /// The part in view after the picture was moved by so many points.
    pub fn moved(&self, by: Vec2, whole: &Frame) -> Part {
        let [x, y] = [-f64::from(by.x / self.plot.width()), f64::from(by.y / self.plot.height())];
        [self.x.part([x, 1.0 + x], whole.x), self.y.part([y, 1.0 + y], whole.y)]
    }

    /// The part between two corners of a frame that was drawn. A frame that is flat one way leaves that axis as it is;
    /// nothing of one that is flat both ways.
    pub fn framed(&self, a: Pos2, b: Pos2, whole: &Frame) -> Option<Part> {
        const FLAT: f32 = 8.0;
        let [a, b] = [a, b].map(|corner| self.plot.clamp(corner));
        let ([wide, tall], [from, to]) = ([(a.x - b.x).abs(), (a.y - b.y).abs()], [a, b].map(|at| self.shares(at)));
        let part = |line: Line, ends: [f64; 2], flat: bool, whole: [f64; 2]| {
            let ends = if flat { [0.0, 1.0] } else { [ends[0].min(ends[1]), ends[0].max(ends[1])] };
            line.part(ends, whole)
        };
        (wide >= FLAT || tall >= FLAT).then(|| {
            [part(self.x, [from[0], to[0]], wide < FLAT, whole.x), part(self.y, [from[1], to[1]], tall < FLAT, whole.y)]
        })
    }
}

/// Whether a part is all there is.
pub fn is_whole(part: Part, whole: &Frame, figure: &Figure) -> bool {
    let same = |scale: Scale, part: [f64; 2], whole: [f64; 2]| {
        let [part, whole] = [part, whole].map(|ends| ends.map(|end| scale.place(end)));
        let close = 1e-6 * (whole[1] - whole[0]).abs();
        part.iter().zip(whole).all(|(a, b)| (a - b).abs() <= close)
    };
    same(figure.x.shown_scale(), part[0], whole.x) && same(figure.y.shown_scale(), part[1], whole.y)
}

#[cfg(test)]
mod tests {
    use eframe::egui::pos2;

    use super::*;
    use crate::figure::{Axis, Omitted};

    fn frame() -> Frame {
        Frame { x: [1.0, 1000.0], y: [-2.0, 6.0], omitted: Omitted::default() }
    }

    fn figure() -> Figure {
        Figure { x: Axis::log10("n"), y: Axis::linear("loss"), ..Figure::default() }
    }

    fn map(part: Part) -> Map {
        let frame = Frame { x: part[0], y: part[1], ..frame() };
        Map::new(&figure(), &frame, Rect::from_min_max(pos2(100.0, 50.0), pos2(400.0, 250.0)))
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-4
    }

    #[test]
    fn numbers_and_places_are_inverse() {
        let map = map([[1.0, 1000.0], [-2.0, 6.0]]);
        assert_eq!(map.at([10.0, 2.0], 0.0), Some(pos2(200.0, 150.0)));
        assert_eq!(map.at([10.0, 2.0], 1.0), Some(pos2(300.0, 150.0)));
        assert_eq!((map.at([0.0, 2.0], 0.0), map.at([1.0, f64::NAN], 0.0)), (None, None));
        for at in [pos2(100.0, 50.0), pos2(333.0, 77.0), pos2(20.0, 300.0)] {
            let back = map.at(map.numbers(at), 0.0).unwrap();
            assert!(back.distance(at) < 1e-2, "{at} {back}");
        }
    }

    #[test]
    fn a_zoom_leaves_the_place_under_the_pointer_and_the_way_back_ends_at_the_whole() {
        let (whole, about) = (frame(), pos2(250.0, 90.0));
        let mut part = [whole.x, whole.y];
        for _ in 0..8 {
            let before = map(part).numbers(about);
            part = map(part).scaled(about, 0.7, &whole);
            let after = map(part).numbers(about);
            assert!(near(after[0], before[0]) && near(after[1], before[1]), "{before:?} {after:?}");
        }
        assert!(!is_whole(part, &whole, &figure()));
        for _ in 0..40 {
            part = map(part).scaled(pos2(390.0, 60.0), 1.4, &whole);
        }
        assert!(is_whole(part, &whole, &figure()), "{part:?}");
        // The other way ends, too.
        for _ in 0..200 {
            part = map(part).scaled(about, 0.7, &whole);
        }
        let length = (part[0][1].log10() - part[0][0].log10()) / 3.0;
        assert!((length / DEEPEST - 1.0).abs() < 1e-6, "{length}");
    }

    #[test]
    fn a_drawn_frame_is_in_view_and_a_click_is_none() {
        let (whole, all) = (frame(), map([frame().x, frame().y]));
        let part = all.framed(pos2(300.0, 200.0), pos2(200.0, 100.0), &whole).unwrap();
        assert!(near(part[0][0], 10.0) && near(part[0][1], 100.0), "{part:?}");
        assert!((part[1][0] - 0.0).abs() < 1e-6 && near(part[1][1], 4.0), "{part:?}");
        // A flat one zooms one axis alone.
        let part = all.framed(pos2(300.0, 200.0), pos2(200.0, 199.0), &whole).unwrap();
        assert_eq!(part[1], whole.y);
        assert_eq!(all.framed(pos2(300.0, 200.0), pos2(301.0, 199.0), &whole), None);
        // What is moved far away stays within reach.
        let mut part = part;
        for _ in 0..50 {
            part = map(part).moved(Vec2::new(500.0, 0.0), &whole);
        }
        assert!(part[0][1] > whole.x[0], "{part:?}");
        assert!(near(part[0][1] / part[0][0], 10.0), "moving changes no length: {part:?}");
    }
}
