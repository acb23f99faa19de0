//! What part of the numbers a figure shows, and what it has to leave out.

use std::fmt;

use super::{Axis, Figure, Point, Rule, Scale, Series, Style, Way};

/// The part of the plane a figure shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Ends of the x axis, ascending.
    pub x: [f64; 2],
    /// Ends of the y axis, ascending.
    pub y: [f64; 2],
    /// What has no place in it.
    pub omitted: Omitted,
}

/// What of a figure cannot be shown. Its text, empty if nothing, belongs under the picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Points with a coordinate that is not finite.
    pub not_finite: usize,
    /// Points at or below zero on a log axis.
    pub not_positive: usize,
    /// Points beyond the ends given to an axis, or at no category.
    pub outside: usize,
    /// Intervals of shown points and bands of shown reference lines that are drawn only up to the edge, or not finite.
    pub cut: usize,
    /// Reference lines without a place.
    pub rules: usize,
}

/// Where a series of bars or markers stands beside x, in places of the axis ([`Scale::place`]).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slot {
    /// Distance from x.
    pub offset: f64,
    /// Width of a bar; zero for a series without a place of its own.
    pub width: f64,
}

/// Free space between the data and the ends of an axis, as a share of its length.
const MARGIN: f64 = 0.05;
/// How far an interval may stretch a log axis beyond the points, decades: points need room.
const REACH: f64 = 1.0;
/// Share of the distance between two categories that bars and markers fill.
const FILLED: f64 = 0.8;

/// Returns the ends of both axes, so that every point and interval is inside, and what is not.
pub fn bounds(figure: &Figure) -> Frame {
    let (x_scale, y_scale) = (figure.x.shown_scale(), figure.y.shown_scale());
    let (x_fixed, y_fixed) = (fixed(&figure.x), fixed(&figure.y));
    let mut omitted = Omitted::default();
    let inside = |fixed: Option<[f64; 2]>, value: f64| fixed.is_none_or(|[low, high]| (low..=high).contains(&value));
    let mut shown: Vec<(&Series, &Point)> = Vec::new();
    for (series, point) in
        figure.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)))
    {
        match () {
            () if !(Scale::Linear.has(point.x) && Scale::Linear.has(point.y)) => omitted.not_finite += 1,
            () if !(x_scale.has(point.x) && y_scale.has(point.y)) => omitted.not_positive += 1,
            () if !(inside(x_fixed, point.x) && inside(y_fixed, point.y)) => omitted.outside += 1,
            () => shown.push((series, point)),
        }
    }
    let rules = |way| {
        let of_way = figure.rules.iter().filter(move |rule| rule.way == way);
        of_way.map(|rule| (rule.at, band(rule).map_or([None; 2], |band| band.map(Some))))
    };
    let half = slots(figure).iter().fold(0.0_f64, |most, slot| most.max(slot.offset.abs() + slot.width / 2.0));
    let xs = shown.iter().flat_map(|(_, point)| {
        let place = x_scale.place(point.x);
        [x_scale.value(place - half), x_scale.value(place + half)]
    });
    let x = x_fixed.unwrap_or_else(|| padded(xs.chain(spans(rules(Way::Vertical), x_scale)), x_scale, MARGIN / 2.0));
    let heights = || shown.iter().map(|(_, point)| (point.y, [point.low, point.high])).chain(rules(Way::Horizontal));
    let feet = shown.iter().filter(|(series, _)| series.style == Style::Bars && y_scale == Scale::Linear).map(|_| 0.0);
    let y = y_fixed.unwrap_or_else(|| padded(spans(heights(), y_scale).chain(feet), y_scale, MARGIN));
    let holds = |way, end: &f64| beside(way, [x, y]).contains(end);
    let (there, absent): (Vec<&Rule>, Vec<&Rule>) = figure.rules.iter().partition(|rule| holds(rule.way, &rule.at));
    let cut = |rule: &&&Rule| band(rule).is_some_and(|ends| !ends.iter().all(|end| holds(rule.way, end)));
    let ends = |point: &Point| point.low.into_iter().chain(point.high).all(|end| holds(Way::Horizontal, &end));
    omitted.cut = shown.iter().filter(|(_, point)| !ends(point)).count() + there.iter().filter(cut).count();
    omitted.rules = absent.len();
    Frame { x, y, omitted }
}

/// The ends of the band of a reference line, where it has both.
fn band(rule: &Rule) -> Option<[f64; 2]> {
    rule.low.zip(rule.high).map(|(low, high)| [low, high])
}

/// The numbers a line of this kind can be at.
fn beside(way: Way, [x, y]: [[f64; 2]; 2]) -> std::ops::RangeInclusive<f64> {
    match way {
        Way::Horizontal => y[0]..=y[1],
        Way::Vertical => x[0]..=x[1],
    }
}

/// Returns the given ends of an axis if they are possible, else those of its categories.
fn fixed(axis: &Axis) -> Option<[f64; 2]> {
    let scale = axis.shown_scale();
    let asked = axis.range.filter(|[a, b]| scale.has(*a) && scale.has(*b) && a != b);
    let ascending = asked.map(|[a, b]| [a.min(b), a.max(b)]);
    let named = (!axis.categories.is_empty()).then(|| [-0.5, axis.categories.len() as f64 - 0.5]);
    ascending.or(named)
}

/// Where marks are and how far their ends reach: of a log axis, as far as there is room beyond the marks ([`REACH`]).
fn spans(marks: impl Iterator<Item = (f64, [Option<f64>; 2])> + Clone, scale: Scale) -> impl Iterator<Item = f64> {
    let places = || marks.clone().map(|(at, _)| at).filter(|at| scale.has(*at)).map(|at| scale.place(at));
    let lowest = places().fold(f64::INFINITY, f64::min) - REACH;
    let highest = places().fold(f64::NEG_INFINITY, f64::max) + REACH;
    let near =
        move |end: &f64| scale.has(*end) && (scale == Scale::Linear || (lowest..=highest).contains(&end.log10()));
    marks.flat_map(move |(at, ends)| ends.into_iter().flatten().filter(near).chain([at]))
}

/// The span of `values` with free space on both sides; it crosses zero only where they do.
fn padded(values: impl Iterator<Item = f64>, scale: Scale, margin: f64) -> [f64; 2] {
    let places = values.filter(|value| scale.has(*value)).map(|value| scale.place(value));
    let [low, high] = places.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], at| [low.min(at), high.max(at)]);
    if low > high {
        return if scale == Scale::Linear { [0.0, 1.0] } else { [1.0, 10.0] };
    }
    let (width, most) = (high - low, low.abs().max(high.abs()));
    let free = match scale {
        _ if width > 1e-9 * most && width * Scale::LARGEST > 1.0 => width * margin,
        Scale::Linear if most * Scale::LARGEST <= 1.0 => 0.5,
        Scale::Linear => most * 0.1,
        Scale::Log10 => 0.2,
    };
    let [mut start, mut end] = [low - free, high + free];
    if scale == Scale::Linear && low >= 0.0 {
        start = start.max(0.0);
    }
    if scale == Scale::Linear && high <= 0.0 && low < 0.0 {
        end = end.min(0.0);
    }
    [start, end].map(|place| scale.value(place))
}

/// Returns where each series stands beside its x. Bars stand side by side, at categories markers
/// too; bars at numbers are as wide as the smallest gap. Series of one colour are neighbours;
/// series that never meet share a place.
pub fn slots(figure: &Figure) -> Vec<Slot> {
    let named = !figure.x.categories.is_empty();
    let own = |series: &Series| match series.style {
        Style::Bars => true,
        Style::Points | Style::LinePoints => named,
        Style::Line | Style::Steps => false,
    };
    let mut standing: Vec<usize> = (0..figure.series.len()).filter(|&i| own(&figure.series[i])).collect();
    let same = |i: usize, series: &Series| own(series) && series.colour == figure.series[i].colour;
    standing.sort_by_key(|&i| figure.series.iter().position(|series| same(i, series)));
    let places = places(figure, &standing);
    let room = if named { FILLED } else { smallest_gap(figure) };
    let width = room / places.iter().max().map_or(1.0, |last| (last + 1) as f64);
    let beside = |series: &Series| if series.aside.is_finite() { series.aside } else { 0.0 };
    let mut slots: Vec<Slot> =
        figure.series.iter().map(|series| Slot { offset: beside(series), ..Slot::default() }).collect();
    for (place, i) in places.into_iter().zip(standing) {
        slots[i] = Slot { offset: slots[i].offset + (place as f64 + 0.5) * width - room / 2.0, width };
    }
    slots
}

/// The place of each of some series, from 0: the first one in which it meets no other at any x.
fn places(figure: &Figure, standing: &[usize]) -> Vec<usize> {
    let meet = |a: usize, b: usize| {
        let [a, b] = [a, b].map(|i| &figure.series[i].points);
        a.iter().any(|p| b.iter().any(|q| p.x == q.x))
    };
    let mut places: Vec<usize> = Vec::with_capacity(standing.len());
    for (n, &i) in standing.iter().enumerate() {
        let taken = |place: usize| places.iter().zip(&standing[..n]).any(|(p, &j)| *p == place && meet(i, j));
        let free = (0..).find(|&place| !taken(place)).unwrap_or(0);
        places.push(free);
    }
    places
}

/// Smallest distance between the places of two bars on the x axis; one where there are not two.
fn smallest_gap(figure: &Figure) -> f64 {
    let scale = figure.x.shown_scale();
    let bars = figure.series.iter().filter(|series| series.style == Style::Bars);
    let xs = bars.flat_map(|series| &series.points).map(|point| point.x).filter(|x| scale.has(*x));
    let mut places: Vec<f64> = xs.map(|x| scale.place(x)).collect();
    places.sort_by(f64::total_cmp);
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
    let least = gaps.fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 1.0 }
}

impl fmt::Display for Omitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points = self.not_finite + self.not_positive + self.outside;
        let count = |n: usize, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
        let mut sentences = Vec::new();
        if points > 0 {
            let reasons = [
                (self.not_finite, "not finite"),
                (self.not_positive, "at or below zero on a log axis"),
                (self.outside, "outside the axes"),
            ];
            let reasons: Vec<_> = reasons.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}")).collect();
            sentences.push(format!("{} not shown: {}.", count(points, "point is", "points are"), reasons.join(", ")));
        }
        if self.cut > 0 {
            sentences
                .push(format!("{} cut at the edge of the picture.", count(self.cut, "interval is", "intervals are")));
        }
        if self.rules > 0 {
            sentences
                .push(format!("{} outside the axes.", count(self.rules, "reference line is", "reference lines are")));
        }
        f.write_str(&sentences.join(" "))
    }
}
