//! What lies under the pointer: the nearest point of every series, and its words.

use std::collections::BTreeSet;

use eframe::egui::Pos2;

use super::map::Map;
use crate::figure::{Axis, Figure, Point, Rule, Slot, Style, Way};
use crate::gui::format;

/// A pointer this near to a mark is meant for it, points.
const REACH: f32 = 12.0;
/// Series that are named at most.
const NAMED: usize = 12;

/// A point of a figure on the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// Its place in the figure.
    pub series: usize,
    /// Its place in the series.
    pub point: usize,
    /// Where it stands.
    pub at: Pos2,
}

/// What of a figure is on the screen.
#[derive(Clone, Copy)]
pub struct Visible<'a> {
    pub figure: &'a Figure,
    pub slots: &'a [Slot],
    /// Names of what the legend hides.
    pub hidden: &'a BTreeSet<String>,
    pub map: Map,
}

impl Visible<'_> {
    /// Of every series the point nearest in x to the pointer, of those the nearest in y; the nearest series first.
    fn nearest(&self, pointer: Pos2) -> Vec<Near> {
        let of = |series: usize| {
            let near = self.places(series).map(|near| {
                let off = near.at - pointer;
                ((off.x.abs(), off.y.abs()), near)
            });
            near.min_by(|((x, y), _), ((u, v), _)| x.total_cmp(u).then(y.total_cmp(v))).map(|(_, near)| near)
        };
        let mut found: Vec<Near> = (0..self.figure.series.len()).filter_map(of).collect();
        found.sort_by(|a, b| a.at.distance(pointer).total_cmp(&b.at.distance(pointer)));
        found
    }

    /// The mark that the pointer is meant for.
    pub fn mark(&self, pointer: Pos2) -> Option<Near> {
        let marked = |i: &usize| matches!(self.figure.series[*i].style, Style::Points | Style::LinePoints);
        let all = (0..self.figure.series.len()).filter(marked).flat_map(|i| self.places(i));
        let near = all.map(|near| (near.at.distance(pointer), near)).filter(|(off, _)| *off <= REACH);
        near.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, near)| near)
    }

    /// The points of a series that are in view.
    fn places(&self, series: usize) -> impl Iterator<Item = Near> {
        let (of, beside, inside) =
            (&self.figure.series[series], self.slots[series].offset, self.map.frame().expand(1.0));
        let points = if self.hidden.contains(&of.name) { &[][..] } else { &of.points };
        let at =
            move |(point, of): (usize, &Point)| Some(Near { series, point, at: self.map.at([of.x, of.y], beside)? });
        points.iter().enumerate().filter_map(at).filter(move |near| inside.contains(near.at))
    }

    /// What is said of the points under the pointer. A mark that it is meant for comes first, with its own words.
    pub fn words(&self, pointer: Pos2) -> Option<String> {
        let (figure, near, mark) = (self.figure, self.nearest(pointer), self.mark(pointer));
        let first = mark.or(near.first().copied())?;
        let x = point(figure, first).x;
        let mut lines = vec![format!("{}: {}", titled(&figure.x), value(&figure.x, x))];
        let others = near.iter().filter(|near| mark.is_none_or(|mark| mark.series != near.series));
        lines.extend(mark.iter().chain(others.take(NAMED)).map(|near| line(figure, *near, x)));
        if let Some(label) = mark.and_then(|mark| point(figure, mark).label.clone()) {
            lines.insert(2, label);
        }
        if near.len() > NAMED {
            lines.push(format!("and {} more", near.len() - NAMED));
        }
        let rules = figure.rules.iter().filter(|rule| !self.hidden.contains(&rule.label));
        lines.extend(rules.filter_map(|rule| ruled(figure, rule)));
        Some(lines.join("\n"))
    }
}

fn point(figure: &Figure, near: Near) -> &Point {
    &figure.series[near.series].points[near.point]
}

/// Name, number and interval; where it is, if that is elsewhere than the first.
fn line(figure: &Figure, near: Near, x: f64) -> String {
    let (series, point) = (&figure.series[near.series], point(figure, near));
    let elsewhere = if point.x == x { String::new() } else { format!(" (at {})", value(&figure.x, point.x)) };
    format!("{}: {}{elsewhere}", series.name, with_unit(&figure.y, point.y, point.low.zip(point.high)))
}

fn ruled(figure: &Figure, rule: &Rule) -> Option<String> {
    let axis = match rule.way {
        Way::Horizontal => &figure.y,
        Way::Vertical => &figure.x,
    };
    let said = || format!("{}: {}", rule.label, with_unit(axis, rule.at, rule.low.zip(rule.high)));
    axis.shown_scale().has(rule.at).then(said)
}

/// A number in the unit of its axis, with its interval where it has one.
fn with_unit(axis: &Axis, at: f64, ends: Option<(f64, f64)>) -> String {
    match (ends, &axis.unit) {
        (Some(ends), unit) => format::estimate(at, ends, unit.as_deref().unwrap_or_default()),
        (None, Some(unit)) => format!("{} {unit}", value(axis, at)),
        (None, None) => value(axis, at),
    }
}

fn titled(axis: &Axis) -> String {
    if axis.title.is_empty() { "x".into() } else { axis.full_title() }
}

/// A number of an axis, or the name that stands there.
fn value(axis: &Axis, at: f64) -> String {
    let counted = (0.0..1e15).contains(&at) && at.fract() == 0.0;
    match axis.categories.get(at.max(0.0).round() as usize) {
        Some(name) => name.clone(),
        None if counted => format::count(at as usize),
        None => format::sig4(at),
    }
}

#[cfg(test)]
mod tests {
    use eframe::egui::{Rect, pos2};
    use egui_plot::PlotTransform;

    use super::*;
    use crate::figure::{Series, bounds, slots};
    use crate::gui::plot::map::Places;

    fn figure() -> Figure {
        let line = |name: &str, up: f64| Series {
            name: name.into(),
            points: (0..=10).map(|i| Point::new(f64::from(i), up + f64::from(i))).collect(),
            ..Series::default()
        };
        let marks = Series {
            style: Style::Points,
            points: vec![Point { label: Some("cell 7".into()), ..Point::new(3.4, 9.0) }],
            ..line("marks", 0.0)
        };
        let (x, y) = (
            Axis { range: Some([0.0, 10.0]), ..Axis::linear("step") },
            Axis { range: Some([0.0, 20.0]), ..Axis::linear("L").in_unit("nats") },
        );
        Figure { x, y, series: vec![line("a", 0.0), line("b", 5.0), marks], ..Figure::default() }
    }

    #[test]
    fn every_series_is_named_with_its_nearest_point_and_a_mark_with_its_own_words() {
        let figure = figure();
        let (slots, shown) = (slots(&figure), BTreeSet::new());
        let area = Rect::from_min_max(pos2(0.0, 0.0), pos2(1000.0, 200.0));
        let map = |x: [f64; 2]| {
            let places = Places::of(&figure);
            let seen = places.bounds(&crate::figure::Frame { x, ..bounds(&figure) });
            Map { places, transform: PlotTransform::new(area, seen, false) }
        };
        let visible = Visible { figure: &figure, slots: &slots, hidden: &shown, map: map([0.0, 10.0]) };
        let pointer = pos2(320.0, 120.0);
        let found: Vec<(usize, usize)> =
            visible.nearest(pointer).iter().map(|near| (near.series, near.point)).collect();
        // b is at (3, 8), 20 points away; the mark 22; a 54.
        assert_eq!(found, [(1, 3), (2, 0), (0, 3)]);
        assert_eq!(visible.mark(pointer), None);
        let text = visible.words(pointer).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), ["step: 3", "b: 8 nats", "marks: 9 nats (at 3.400)", "a: 3 nats"]);
        let hit = visible.mark(pos2(345.0, 115.0));
        assert_eq!(hit.map(|hit| (hit.series, hit.point)), Some((2, 0)));
        let text = visible.words(pos2(345.0, 115.0)).unwrap();
        assert!(text.starts_with("step: 3.400\nmarks: 9 nats\ncell 7\n"), "{text}");
        // What is hidden or out of view is not spoken of.
        let hidden = BTreeSet::from(["b".to_owned()]);
        let rest = Visible { hidden: &hidden, map: map([6.0, 8.0]), ..visible };
        let text = rest.words(pos2(500.0, 50.0)).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), ["step: 7", "a: 7 nats"]);
    }
    #[test]
    fn intervals_are_told_with_the_digits_that_they_have_of_lines_too() {
        let axis = Axis::linear("E").in_unit("%");
        let rule = |at: f64, [low, high]: [f64; 2]| Rule {
            way: Way::Horizontal,
            at,
            low: Some(low),
            high: Some(high),
            label: "Bayes error".into(),
        };
        let told = |rule: Rule| ruled(&Figure { y: axis.clone(), ..Figure::default() }, &rule).unwrap();
        assert_eq!(told(rule(13.93, [13.41, 14.45])), "Bayes error: 13.93 ± 0.52 %");
        assert_eq!(told(Rule { low: None, high: None, ..rule(13.93, [0.0; 2]) }), "Bayes error: 13.93 %");
        assert_eq!(with_unit(&axis, 17.61, Some((17.609_988, 17.610_012))), "17.610000 ± 0.000012 %");
        assert_eq!(with_unit(&Axis::linear("p"), 0.5, Some((0.4, 0.7))), "0.50 [0.40, 0.70]", "a share has no unit");
    }
}
