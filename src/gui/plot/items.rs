//! A figure as items of egui_plot. What belongs to a series or a rule has its ID, so that the legend hides it with it; the
//! legend names the main item of each.

use eframe::egui::{Color32, Stroke, Ui};
use egui_plot::{Bar, BarChart, FilledArea, HLine, Line, LineStyle, MarkerShape, PlotBounds, PlotUi, Points, VLine};

use super::legend::{Entry, Mark};
use super::map::Places;
use crate::figure::{Figure, Marker, Point, Rule, Series, Slot, Style, Way, colour, markers};
use crate::gui::theme::{Theme, pixel};

/// Widths of lines, of the numbers of others and of intervals, and half the width of an interval's ends.
const LINE: f32 = 2.0;
const FAINT_LINE: f32 = 1.5;
const INTERVAL: f32 = 1.3;
const RULE: f32 = 1.4;
const CAP: f64 = 3.5;
/// Half the length of a line through one point: seen beside a marker on it.
const DASH: f64 = 9.0;
/// How much of what is below the numbers of others, bands, bars and the bands of rules cover.
const FAINT: f32 = 0.6;
const BAND: f32 = 0.17;
const BAR: f32 = 0.8;
const RULE_BAND: f32 = 0.1;
/// Radius of a marker, and of the ring around a chosen point.
const MARKER: f32 = 4.3;
const CHOSEN: f32 = 7.0;
/// What lies farther beside the whole is drawn so many times its length away: no dash is drawn where nobody sees it.
const FAR: f64 = 100.0;

/// Makes the items of one figure.
pub struct Items<'a> {
    figure: &'a Figure,
    slots: &'a [Slot],
    places: Places,
    whole: PlotBounds,
    markers: Vec<Marker>,
    theme: Theme,
    text: Color32,
}

impl<'a> Items<'a> {
    pub fn new(ui: &Ui, figure: &'a Figure, slots: &'a [Slot], whole: PlotBounds) -> Self {
        let (places, text) = (Places::of(figure), ui.visuals().strong_text_color());
        Self { figure, slots, places, whole, markers: markers(figure), theme: Theme::of(ui), text }
    }

    /// Adds all: bands and bars lowest, then rules, published numbers, ours, and rings around chosen points on top.
    pub fn add(&self, plot: &mut PlotUi, movable: Option<usize>, chosen: &[[usize; 2]]) {
        let all = || 0..self.figure.series.len();
        let of = |i: usize| &self.figure.series[i];
        all().filter(|i| of(*i).band).for_each(|i| self.band(plot, i));
        all().filter(|i| of(*i).style == Style::Bars).for_each(|i| self.bars(plot, i));
        self.figure.rules.iter().enumerate().for_each(|(i, rule)| self.rule(plot, rule, i, movable));
        all().filter(|i| of(*i).faint).for_each(|i| self.series(plot, i));
        all().filter(|i| !of(*i).faint).for_each(|i| self.series(plot, i));
        let ring =
            |[i, j]: &[usize; 2]| self.at(self.figure.series.get(*i)?.points.get(*j)?, self.slots.get(*i)?.offset);
        let rings: Vec<[f64; 2]> = chosen.iter().filter_map(ring).collect();
        plot.points(Points::new("", rings).radius(CHOSEN).filled(false).color(self.text).allow_hover(false));
    }

    /// What the legend says: our series, reference lines, then the numbers of others, as in a file. What has one name is one entry.
    pub fn entries(&self, movable: Option<usize>) -> Vec<Entry> {
        let of = |faint: bool| self.figure.series.iter().filter(move |series| series.faint == faint);
        let entry = |series: &Series| {
            let mark = match (series.style, series.dashed || series.faint) {
                (Style::Points | Style::Bars, false) => Mark::Disc,
                (Style::Points | Style::Bars, true) => Mark::Ring,
                (Style::Line | Style::LinePoints | Style::Steps, false) => Mark::Line,
                (Style::Line | Style::LinePoints | Style::Steps, true) => Mark::Dashes,
            };
            Entry { id: series.name.clone(), name: self.in_legend(series), ink: self.ink(series), mark }
        };
        let rule = |(i, rule): (usize, &Rule)| {
            self.rule_place(rule)?;
            let (ink, name) = (self.rule_ink(i, movable), self.ruled(i, movable).1);
            let mark = if movable == Some(i) { Mark::Line } else { Mark::Dashes };
            Some(Entry { id: rule.label.clone(), name, ink, mark })
        };
        let rules = self.figure.rules.iter().enumerate().filter_map(rule);
        let mut entries: Vec<Entry> = Vec::new();
        for entry in of(false).map(entry).chain(rules).chain(of(true).map(entry)) {
            if !(entry.name.is_empty() || entries.iter().any(|other| other.name == entry.name)) {
                entries.push(entry);
            }
        }
        entries
    }

    fn ink(&self, series: &Series) -> Color32 {
        let dark = self.theme.is_dark();
        let [r, g, b] = series.own.map_or_else(|| colour(series.colour, dark), |own| own[usize::from(dark)]);
        pixel(r, g, b).gamma_multiply(if series.faint { FAINT } else { 1.0 })
    }

    /// Its name in the legend: series of one colour are told apart in words, too.
    fn in_legend(&self, series: &Series) -> String {
        let twin = |other: &Series| (other.colour, other.own, other.faint) == (series.colour, series.own, series.faint);
        if !(series.dashed && self.figure.series.iter().any(|other| twin(other) && !other.dashed)) {
            return series.name.clone();
        }
        let look = match series.style {
            Style::Points | Style::Bars => "hollow",
            Style::Line | Style::LinePoints | Style::Steps => "dashed",
        };
        format!("{}, {look}", series.name)
    }

    /// Where a rule crosses its axis; nowhere if that has no such number.
    fn rule_place(&self, rule: &Rule) -> Option<f64> {
        self.place(usize::from(rule.way == Way::Horizontal), rule.at)
    }

    fn rule_ink(&self, i: usize, movable: Option<usize>) -> Color32 {
        if movable == Some(i) { self.theme.mismatch() } else { self.text.gamma_multiply(BAR) }
    }

    /// The dashes of a rule, and its name in the legend: rules have one colour, and where there are several that cannot be moved, words
    /// tell them apart, too.
    fn ruled(&self, i: usize, movable: Option<usize>) -> (LineStyle, String) {
        let label = &self.figure.rules[i].label;
        if movable == Some(i) {
            return (LineStyle::Solid, label.clone());
        }
        let dashes = [
            (LineStyle::dashed_loose(), "dashed"),
            (LineStyle::dotted_dense(), "dotted"),
            (LineStyle::dashed_dense(), "finely dashed"),
        ];
        let (style, look) = dashes[i % dashes.len()];
        let several = self.figure.rules.len() > 1 + usize::from(movable.is_some());
        (style, if several { format!("{label}, {look}") } else { label.clone() })
    }

    /// A place, or one far beside the whole in its direction.
    fn near(&self, axis: usize, place: f64) -> f64 {
        let (low, high) = (self.whole.min()[axis], self.whole.max()[axis]);
        place.clamp(low - FAR * (high - low), high + FAR * (high - low))
    }

    fn at(&self, point: &Point, beside: f64) -> Option<[f64; 2]> {
        let [x, y] = self.places.at([point.x, point.y], beside)?;
        Some([self.near(0, x), self.near(1, y)])
    }

    /// The place of a number on an axis; nowhere if it has none.
    fn place(&self, axis: usize, value: f64) -> Option<f64> {
        if axis == 0 { self.places.x(value) } else { self.places.y(value) }
    }

    /// The place of an end of an interval on an axis; before all others for what has none on a log axis.
    fn end(&self, axis: usize, value: f64) -> f64 {
        let beyond = if value > 0.0 { f64::INFINITY } else { f64::NEG_INFINITY };
        self.near(axis, self.place(axis, value).unwrap_or(beyond))
    }

    /// The x of a point's interval, and its ends.
    fn interval(&self, point: &Point, beside: f64) -> Option<(f64, [f64; 2])> {
        let [x, _] = self.at(point, beside)?;
        let (low, high) = point.low.zip(point.high).filter(|(low, high)| low <= high)?;
        Some((x, [low, high].map(|end| self.end(1, end))))
    }

    fn area(&self, plot: &mut PlotUi, id: &str, [xs, low, high]: [&[f64]; 3], fill: Color32) {
        plot.add(FilledArea::new("", xs, low, high).id(id).fill_color(fill).allow_hover(false));
    }

    fn band(&self, plot: &mut PlotUi, i: usize) {
        let (series, beside) = (&self.figure.series[i], self.slots[i].offset);
        let edges = |point: &Point| self.interval(point, beside);
        for run in series.runs(|point| edges(point).is_some()).filter(|run| run.len() > 1) {
            let (xs, ends): (Vec<f64>, Vec<[f64; 2]>) = run.iter().filter_map(edges).unzip();
            let side = |pick: usize| ends.iter().map(|ends| ends[pick]).collect::<Vec<f64>>();
            self.area(plot, &series.name, [&xs, &side(0), &side(1)], self.ink(series).gamma_multiply(BAND));
        }
    }

    fn bars(&self, plot: &mut PlotUi, i: usize) {
        let (series, slot) = (&self.figure.series[i], self.slots[i]);
        let (ink, hollow) = (self.ink(series), series.faint || series.dashed);
        let foot = self.end(1, 0.0);
        let bar = |[x, y]: [f64; 2]| {
            let fill = ink.gamma_multiply(if hollow { BAND } else { BAR });
            let stroke = if hollow { Stroke::new(INTERVAL, ink) } else { Stroke::NONE };
            Bar::new(x, y - foot).base_offset(foot).width(0.9 * slot.width).fill(fill).stroke(stroke)
        };
        let bars = series.points.iter().filter_map(|point| self.at(point, slot.offset)).map(bar).collect();
        let name = self.in_legend(series);
        plot.bar_chart(BarChart::new(name, bars).id(&series.name).color(ink).allow_hover(false));
    }

    fn series(&self, plot: &mut PlotUi, i: usize) {
        let (series, beside, ink) = (&self.figure.series[i], self.slots[i].offset, self.ink(&self.figure.series[i]));
        let (width, style) = match (series.faint, series.dashed) {
            (true, _) => (FAINT_LINE, LineStyle::dashed_dense()),
            (false, true) => (LINE, LineStyle::dashed_loose()),
            (false, false) => (LINE, LineStyle::Solid),
        };
        let has_place = |point: &Point| self.at(point, beside).is_some();
        if !matches!(series.style, Style::Points | Style::Bars) {
            for run in series.runs(has_place).filter(|run| run.len() > 1) {
                let run: Vec<[f64; 2]> = run.iter().filter_map(|point| self.at(point, beside)).collect();
                let run = if series.style == Style::Steps { stairs(&run) } else { run };
                let line = Line::new(self.in_legend(series), run).id(&series.name).color(ink).width(width).style(style);
                // A band instead of a line joins points of one column: of steps it would make slanted ribbons.
                plot.line(line.allow_band(false).allow_hover(series.style == Style::Line));
            }
        }
        self.intervals(plot, i);
        // Without a point, too: the legend names a line that has nothing to show.
        if series.style != Style::Bars {
            let at: Vec<[f64; 2]> = series.marked(has_place).filter_map(|point| self.at(point, beside)).collect();
            let is_line = matches!(series.style, Style::Line | Style::Steps);
            let half = DASH * plot.transform().dvalue_dpos()[0].abs();
            for &[x, y] in at.iter().filter(|_| is_line) {
                let dash = Line::new(self.in_legend(series), vec![[x - half, y], [x + half, y]]).id(&series.name);
                plot.line(dash.color(ink).width(width).style(style).allow_hover(false));
            }
            // On a dash it is not seen: it says what the point is.
            let radius = if is_line { 0.5 * LINE } else { MARKER };
            let points =
                Points::new(self.in_legend(series), at).id(&series.name).shape(shape(self.markers[i])).radius(radius);
            plot.points(points.filled(!(series.faint || series.dashed)).color(ink));
        }
    }

    fn intervals(&self, plot: &mut PlotUi, i: usize) {
        let (series, beside) = (&self.figure.series[i], self.slots[i].offset);
        // On a bar of its own colour an interval would not be seen.
        let ink = if series.style == Style::Bars { self.text } else { self.ink(series) };
        let cap = CAP * plot.transform().dvalue_dpos()[0].abs();
        let ends = |point: &Point| self.interval(point, beside);
        for (x, [low, high]) in series.barred(|point| ends(point).is_some()).filter_map(ends) {
            let drawn = [[x - cap, low], [x + cap, low], [x, low], [x, high], [x - cap, high], [x + cap, high]];
            plot.line(Line::new("", drawn.to_vec()).id(&series.name).color(ink).width(INTERVAL).allow_hover(false));
        }
    }

    /// The ends of a rule's band along x and along y.
    fn rule_band(&self, rule: &Rule) -> Option<[[f64; 2]; 2]> {
        let (low, high) = rule.low.zip(rule.high).filter(|(low, high)| !(low.is_nan() || high.is_nan()))?;
        let far = |axis: usize| [f64::NEG_INFINITY, f64::INFINITY].map(|end| self.near(axis, end));
        Some(match rule.way {
            Way::Horizontal => [far(0), [low, high].map(|end| self.end(1, end))],
            Way::Vertical => [[low, high].map(|end| self.end(0, end)), far(1)],
        })
    }

    fn rule(&self, plot: &mut PlotUi, rule: &Rule, i: usize, movable: Option<usize>) {
        let Some(at) = self.rule_place(rule) else { return };
        if let Some([xs, ys]) = self.rule_band(rule) {
            let fill = self.text.gamma_multiply(RULE_BAND);
            self.area(plot, &rule.label, [&xs, &[ys[0]; 2], &[ys[1]; 2]], fill);
        }
        let (ink, (style, name), id) = (self.rule_ink(i, movable), self.ruled(i, movable), &rule.label);
        match rule.way {
            Way::Horizontal => plot.hline(HLine::new(name, at).id(id).color(ink).width(RULE).style(style)),
            Way::Vertical => plot.vline(VLine::new(name, at).id(id).color(ink).width(RULE).style(style)),
        }
    }
}

/// The corners of a staircase.
fn stairs(run: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let steps = run.windows(2).flat_map(|pair| [pair[0], [pair[1][0], pair[0][1]]]);
    steps.chain(run.last().copied()).collect()
}

fn shape(marker: Marker) -> MarkerShape {
    match marker {
        Marker::Circle => MarkerShape::Circle,
        Marker::Square => MarkerShape::Square,
        Marker::Triangle => MarkerShape::Up,
        Marker::Diamond => MarkerShape::Diamond,
        Marker::TriangleDown => MarkerShape::Down,
        Marker::Plus => MarkerShape::Plus,
        Marker::Star => MarkerShape::Asterisk,
        Marker::Cross => MarkerShape::Cross,
    }
}

#[cfg(test)]
mod tests {
    use eframe::egui::{Context, Id, Pos2, RawInput, Shape};

    use super::super::of_width;
    use super::*;
    use crate::figure::{Axis, bounds, slots};

    #[test]
    fn the_band_of_a_rule_reaches_beyond_a_log_axis_on_which_its_end_has_no_place() {
        for (way, axis) in [(Way::Vertical, 0), (Way::Horizontal, 1)] {
            let rule = Rule { way, at: 0.02, low: Some(0.0), high: Some(0.05), label: "floor".into() };
            let points = [0.01, 0.1].map(|at| Point::new(at, at)).to_vec();
            let figure = Figure {
                x: Axis::log10("x"),
                y: Axis::log10("y"),
                series: vec![Series { points, ..Series::default() }],
                rules: vec![rule],
                ..Figure::default()
            };
            let (slots, whole) = (slots(&figure), Places::of(&figure).bounds(&bounds(&figure)));
            let mut found = None;
            let mut output = Context::default().run_ui(RawInput::default(), |ui| {
                found = Items::new(ui, &figure, &slots, whole).rule_band(&figure.rules[0]);
            });
            output.textures_delta.clear();
            let band = found.unwrap();
            assert!((band[axis][1] - 0.05f64.log10()).abs() < 1e-9, "{way:?}: {band:?}");
            assert!(band[axis][0] <= whole.min()[axis], "{way:?}: {band:?}");
            let [low, high] = band[1 - axis];
            assert!(low <= whole.min()[1 - axis] && high >= whole.max()[1 - axis], "{way:?}: {band:?}");
        }
    }

    #[test]
    fn steps_are_level_and_upright_lines() {
        let points = [5.0, 5.0, 43.0, 50.0, 8.0].into_iter().enumerate();
        let points = points.map(|(i, share)| Point::new(10f64.powf(0.5 * i as f64 - 3.0), share));
        let series = vec![Series { style: Style::Steps, points: points.collect(), ..Series::default() }];
        let figure = Figure { x: Axis::log10("KL"), y: Axis::linear("images"), series, ..Figure::default() };
        let (slots, whole) = (slots(&figure), Places::of(&figure).bounds(&bounds(&figure)));
        let ([left, bottom], [right, top]) = (whole.min(), whole.max());
        let mut output = Context::default().run_ui(RawInput::default(), |ui| {
            let items = Items::new(ui, &figure, &slots, whole);
            let plot = of_width(Id::unique("steps"), 600.0).height(300.0);
            let plot = plot.default_x_bounds(left, right).default_y_bounds(bottom, top);
            plot.show(ui, |plot| items.add(plot, None, &[]));
        });
        output.textures_delta.clear();
        let shapes: Vec<&Shape> = output.shapes.iter().map(|clipped| &clipped.shape).collect();
        assert!(!shapes.iter().any(|shape| matches!(shape, Shape::Band(_))), "a band instead of steps");
        let level = |pair: &[Pos2]| (pair[0].x - pair[1].x).abs() < 0.01 || (pair[0].y - pair[1].y).abs() < 0.01;
        let stairs = |shape: &&Shape| match shape {
            Shape::Path(path) => path.points.len() >= 7 && path.points.windows(2).all(level),
            _ => false,
        };
        assert_eq!(shapes.into_iter().filter(stairs).count(), 1);
    }

    #[test]
    fn the_legend_tells_dashes_dots_and_hollow_marks_apart() {
        let series = |name: &str, style, dashed| Series { name: name.into(), style, dashed, ..Series::default() };
        let rule = |label: &str| Rule { way: Way::Horizontal, at: 0.5, low: None, high: None, label: label.into() };
        let mut figure = Figure {
            series: vec![
                series("exact", Style::LinePoints, false),
                series("drawn", Style::Points, true),
                series("later", Style::Line, true),
            ],
            rules: ["guessing", "target", "marker"].map(rule).into(),
            ..Figure::default()
        };
        let told = |figure: &Figure| {
            let (slots, whole) = (slots(figure), PlotBounds::from_min_max([0.0; 2], [1.0; 2]));
            let mut told = Vec::new();
            let mut output = Context::default().run_ui(RawInput::default(), |ui| {
                let items = Items::new(ui, figure, &slots, whole);
                let entries = items.entries(Some(figure.rules.len() - 1));
                told = entries.into_iter().map(|entry| entry.name).collect();
            });
            output.textures_delta.clear();
            told
        };
        let all = ["exact", "drawn, hollow", "later, dashed", "guessing, dashed", "target, dotted", "marker"];
        assert_eq!(told(&figure), all);
        // One line that cannot be moved is told from the other by its colour.
        figure.rules.remove(1);
        assert_eq!(told(&figure)[3..], ["guessing", "marker"]);
    }
}
