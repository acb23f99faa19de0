//! Data as shapes: bands, bars, lines, intervals, markers and reference lines.

use super::bounds::{Frame, Slot, slots};
use super::csv::name;
use super::grid;
use super::palette::{Theme, colour, markers, outline};
use super::scene::{Ink, Path, Scene, Stroke};
use super::{Axis, Figure, Marker, Point, Rule, Scale, Series, Style, Way, number};

/// Width of lines, and of the numbers of others.
const LINE: f64 = 2.0;
const FAINT_LINE: f64 = 1.5;
/// How much of what is below the numbers of others, bands and bars cover.
const FAINT: f64 = 0.6;
const BAND: f64 = 0.17;
const BAR: f64 = 0.8;
const RULE_BAND: f64 = 0.1;
/// Size of a marker, half the width of an interval's ends, and the widths of their lines.
const MARKER: f64 = 3.8;
const CAP: f64 = 3.5;
/// Half the length of a line through one point: seen beside a marker on it.
const DASH: f64 = 9.0;
const INTERVAL_LINE: f64 = 1.3;
const OUTLINE: f64 = 0.8;
/// Dashes of second settings and of the numbers of others.
const DASHED: [f64; 2] = [6.0, 4.0];
const FAINT_DASHED: [f64; 2] = [3.5, 3.0];
/// Dashes of reference lines, one after the other.
const RULES: [[f64; 2]; 3] = [[9.0, 4.0], [2.5, 3.0], [14.0, 3.0]];
/// Farthest pixel: far outside any picture, and what is drawn up to there is still straight.
const FAR: f64 = 1e5;

/// Everything needed to place and colour the data of one figure.
pub(super) struct Painter<'a> {
    figure: &'a Figure,
    frame: Frame,
    /// Left, top, right and bottom of the plot.
    plot: [f64; 4],
    dark: bool,
    theme: Theme,
    markers: Vec<Marker>,
    slots: Vec<Slot>,
}

impl<'a> Painter<'a> {
    pub(super) fn new(figure: &'a Figure, frame: Frame, plot: [f64; 4], dark: bool) -> Self {
        let theme = Theme::new(dark);
        Self { figure, frame, plot, dark, theme, markers: markers(figure), slots: slots(figure) }
    }

    /// Draws all data: grids lowest, then bands and bars, then published numbers, then ours.
    pub(super) fn paint(&self, scene: &mut Scene) {
        grid::paint(self.figure, scene, |x, y| self.at(x, y, 0.0), self.dark);
        for (i, series) in self.figure.series.iter().enumerate().filter(|(_, series)| series.band) {
            self.band(scene, series, self.ink(i).pale(BAND));
        }
        for i in (0..self.figure.series.len()).filter(|&i| self.figure.series[i].style == Style::Bars) {
            self.bars(scene, i);
        }
        for (i, rule) in self.figure.rules.iter().enumerate() {
            self.rule(scene, i, rule);
        }
        let (others, ours): (Vec<usize>, Vec<usize>) =
            (0..self.figure.series.len()).partition(|&i| self.figure.series[i].faint);
        for i in others.into_iter().chain(ours) {
            self.series(scene, i);
        }
    }

    fn ink(&self, i: usize) -> Ink {
        let series = &self.figure.series[i];
        let own = series.own.map(|own| own[usize::from(self.dark)]);
        let ink = Ink::solid(own.unwrap_or_else(|| colour(series.colour, self.dark)));
        if series.faint { ink.pale(FAINT) } else { ink }
    }

    fn stroke(&self, i: usize) -> Stroke {
        let series = &self.figure.series[i];
        let (width, dash) = match (series.faint, series.dashed) {
            (true, _) => (FAINT_LINE, Some(FAINT_DASHED)),
            (false, true) => (LINE, Some(DASHED)),
            (false, false) => (LINE, None),
        };
        Stroke { ink: self.ink(i), width, dash }
    }

    /// The pixel of a number, `offset` places beside x. Numbers without a place on a log axis lie
    /// at its lower end.
    fn at(&self, x: f64, y: f64, offset: f64) -> [f64; 2] {
        let [left, top, right, bottom] = self.plot;
        let along = |axis: &Axis, [low, high]: [f64; 2], value: f64, offset: f64| {
            let scale = axis.shown_scale();
            let place = if value <= 0.0 && scale == Scale::Log10 { f64::NEG_INFINITY } else { scale.place(value) };
            (place + offset - scale.place(low)) / (scale.place(high) - scale.place(low))
        };
        let x = left + (right - left) * along(&self.figure.x, self.frame.x, x, offset);
        let y = bottom - (bottom - top) * along(&self.figure.y, self.frame.y, y, 0.0);
        [x.clamp(-FAR, FAR), y.clamp(-FAR, FAR)]
    }

    fn has_place(&self, point: &Point) -> bool {
        self.figure.x.shown_scale().has(point.x) && self.figure.y.shown_scale().has(point.y)
    }

    fn has_interval(&self, point: &Point) -> bool {
        self.has_place(point) && interval(point).is_some()
    }

    fn shown(&self, point: &Point) -> bool {
        let [x, y] = [self.frame.x, self.frame.y];
        self.has_place(point) && (x[0]..=x[1]).contains(&point.x) && (y[0]..=y[1]).contains(&point.y)
    }

    fn band(&self, scene: &mut Scene, series: &Series, fill: Ink) {
        for run in series.runs(|point| self.has_interval(point)).filter(|run| run.len() > 1) {
            let side =
                |pick: fn([f64; 2]) -> f64| run.iter().filter_map(move |point| Some((point.x, pick(interval(point)?))));
            let (lower, upper) = (side(|[low, _]| low), side(|[_, high]| high).collect::<Vec<_>>());
            let points = lower.chain(upper.into_iter().rev()).map(|(x, y)| self.at(x, y, 0.0)).collect();
            scene.path(Path { points, closed: true, fill: Some(fill), clipped: true, ..Path::default() });
        }
    }

    fn series(&self, scene: &mut Scene, i: usize) {
        let (series, slot) = (&self.figure.series[i], self.slots[i]);
        match series.style {
            Style::Points | Style::Bars => {}
            Style::Line | Style::LinePoints | Style::Steps => {
                for run in series.runs(|point| self.has_place(point)).filter(|run| run.len() > 1) {
                    let corners = if series.style == Style::Steps { stairs(run) } else { plain(run) };
                    let points = corners.into_iter().map(|[x, y]| self.at(x, y, slot.offset)).collect();
                    scene.path(Path { points, stroke: Some(self.stroke(i)), clipped: true, ..Path::default() });
                }
            }
        }
        self.intervals(scene, i);
        let line = matches!(series.style, Style::Line | Style::Steps);
        for point in series.marked(|point| self.has_place(point)).filter(|point| self.shown(point)) {
            let ([x, y], tip) = (self.at(point.x, point.y, slot.offset), Some(self.tip(series, point)));
            if line {
                let (points, stroke) = (vec![[x - DASH, y], [x + DASH, y]], Some(self.stroke(i)));
                scene.path(Path { points, stroke, clipped: true, tip, ..Path::default() });
            } else {
                self.marker(scene, i, [x, y], tip);
            }
        }
    }

    fn bars(&self, scene: &mut Scene, i: usize) {
        let (series, slot) = (&self.figure.series[i], self.slots[i]);
        for point in series.points.iter().filter(|point| self.has_place(point)) {
            let half = slot.width * 0.45;
            let [left, foot] = self.at(point.x, 0.0, slot.offset - half);
            let [right, end] = self.at(point.x, point.y, slot.offset + half);
            let corners = [[left, foot], [left, end], [right, end], [right, foot]];
            self.bar(scene, i, corners, Some(self.tip(series, point)));
        }
    }

    fn bar(&self, scene: &mut Scene, i: usize, corners: [[f64; 2]; 4], tip: Option<String>) {
        let series = &self.figure.series[i];
        let hollow = series.faint || series.dashed;
        let fill = self.ink(i).pale(if hollow { BAND } else { BAR }).over(self.theme.ground);
        let stroke = hollow.then(|| Stroke { width: INTERVAL_LINE, ..self.stroke(i) });
        scene.path(Path {
            points: corners.to_vec(),
            closed: true,
            fill: Some(fill),
            stroke,
            clipped: tip.is_some(),
            tip,
        });
    }

    fn intervals(&self, scene: &mut Scene, i: usize) {
        let series = &self.figure.series[i];
        // On a bar of its own colour an interval would not be seen.
        let ink = if series.style == Style::Bars { self.theme.text } else { self.ink(i) };
        for point in series.barred(|point| self.has_interval(point)).filter(|point| self.shown(point)) {
            let Some([low, high]) = interval(point) else { continue };
            let ends = [low, high].map(|end| self.at(point.x, end, self.slots[i].offset));
            let cap = |[x, y]: [f64; 2]| [[x - CAP, y], [x + CAP, y]];
            for line in [ends, cap(ends[0]), cap(ends[1])] {
                let stroke = Some(Stroke::new(ink, INTERVAL_LINE));
                scene.path(Path { points: line.to_vec(), stroke, clipped: true, ..Path::default() });
            }
        }
    }

    fn marker(&self, scene: &mut Scene, i: usize, [x, y]: [f64; 2], tip: Option<String>) {
        let series = &self.figure.series[i];
        let hollow = series.faint || series.dashed;
        let points = outline(self.markers[i]).into_iter().map(|[a, b]| [x + a * MARKER, y - b * MARKER]).collect();
        let (fill, stroke) = match hollow {
            true => (self.theme.ground, Stroke::new(self.ink(i), FAINT_LINE)),
            false => (self.ink(i), Stroke::new(self.theme.ground, OUTLINE)),
        };
        scene.path(Path { points, closed: true, fill: Some(fill), stroke: Some(stroke), clipped: false, tip });
    }

    /// What the SVG says about a point under the pointer.
    fn tip(&self, series: &Series, point: &Point) -> String {
        let short = |value: f64| {
            number(format!("{value:.3e}").parse().ok().filter(|short: &f64| short.is_finite()).unwrap_or(value))
        };
        let text = |axis: &Axis, value| name(axis, value).map_or_else(|| short(value), ToOwned::to_owned);
        let ends = interval(point).map(|[low, high]| format!(" [{}, {}]", short(low), short(high))).unwrap_or_default();
        let label = point.label.as_ref().map(|label| format!(" – {label}")).unwrap_or_default();
        let (x, y) = (text(&self.figure.x, point.x), text(&self.figure.y, point.y));
        format!("{}: {x}, {y}{ends}{label}", series.name)
    }

    fn rule_stroke(&self, i: usize) -> Stroke {
        Stroke { ink: self.theme.text.pale(0.8), width: 1.4, dash: Some(RULES[i % RULES.len()]) }
    }

    fn rule_band(&self, scene: &mut Scene, [left, top, right, bottom]: [f64; 4]) {
        let points = vec![[left, top], [right, top], [right, bottom], [left, bottom]];
        let fill = Some(self.theme.text.pale(RULE_BAND));
        scene.path(Path { points, closed: true, fill, ..Path::default() });
    }

    fn rule(&self, scene: &mut Scene, i: usize, rule: &Rule) {
        let [left, top, right, bottom] = self.plot;
        let ([x, y], scale) = match rule.way {
            Way::Horizontal => ([self.frame.x[0], rule.at], self.figure.y.shown_scale()),
            Way::Vertical => ([rule.at, self.frame.y[0]], self.figure.x.shown_scale()),
        };
        if !scale.has(rule.at) {
            return;
        }
        let side = |value: f64| match rule.way {
            Way::Horizontal => self.at(x, value, 0.0)[1],
            Way::Vertical => self.at(value, y, 0.0)[0],
        };
        if let Some((low, high)) = rule.low.zip(rule.high).filter(|(low, high)| !(low.is_nan() || high.is_nan())) {
            let [a, b] = [side(low), side(high)];
            let area = match rule.way {
                Way::Horizontal => [left, a.clamp(top, bottom), right, b.clamp(top, bottom)],
                Way::Vertical => [a.clamp(left, right), top, b.clamp(left, right), bottom],
            };
            self.rule_band(scene, area);
        }
        let at = side(rule.at);
        let points = match rule.way {
            Way::Horizontal => vec![[left, at], [right, at]],
            Way::Vertical => vec![[at, bottom], [at, top]],
        };
        let (stroke, tip) = (Some(self.rule_stroke(i)), Some(rule.label.clone()));
        scene.path(Path { points, stroke, clipped: true, tip, ..Path::default() });
    }

    /// Draws the legend's sample of a series, `width` pixels around the height of `at`.
    pub(super) fn series_sample(&self, scene: &mut Scene, i: usize, [x, y]: [f64; 2], width: f64) {
        let series = &self.figure.series[i];
        let around = |half: f64, inset: f64| {
            let [a, b] = [x + inset, x + width - inset];
            [[a, y + half], [a, y - half], [b, y - half], [b, y + half]]
        };
        if series.band {
            let fill = Some(self.ink(i).pale(BAND));
            scene.path(Path { points: around(6.0, 0.0).to_vec(), closed: true, fill, ..Path::default() });
        }
        match series.style {
            Style::Bars => self.bar(scene, i, around(5.0, width / 2.0 - 6.0), None),
            Style::Points => {}
            Style::Line | Style::LinePoints | Style::Steps => scene.line([[x, y], [x + width, y]], self.stroke(i)),
        }
        if matches!(series.style, Style::Points | Style::LinePoints) {
            self.marker(scene, i, [x + width / 2.0, y], None);
        }
    }

    /// The same for a reference line.
    pub(super) fn rule_sample(&self, scene: &mut Scene, i: usize, [x, y]: [f64; 2], width: f64) {
        let (middle, rule) = (x + width / 2.0, &self.figure.rules[i]);
        if rule.low.is_some() && rule.high.is_some() {
            let [across, along] = match rule.way {
                Way::Horizontal => [width / 2.0, 5.0],
                Way::Vertical => [5.0, 8.0],
            };
            self.rule_band(scene, [middle - across, y - along, middle + across, y + along]);
        }
        let ends = match rule.way {
            Way::Horizontal => [[x, y], [x + width, y]],
            Way::Vertical => [[middle, y + 8.0], [middle, y - 8.0]],
        };
        scene.line(ends, self.rule_stroke(i));
    }
}

/// The interval of a point, ascending, if both its ends are numbers.
fn interval(point: &Point) -> Option<[f64; 2]> {
    let (low, high) = point.low.zip(point.high)?;
    (low <= high).then_some([low, high])
}

fn plain(run: &[Point]) -> Vec<[f64; 2]> {
    run.iter().map(|point| [point.x, point.y]).collect()
}

/// The corners of a staircase.
fn stairs(run: &[Point]) -> Vec<[f64; 2]> {
    let steps = run.windows(2).flat_map(|pair| [[pair[0].x, pair[0].y], [pair[1].x, pair[0].y]]);
    steps.chain(run.last().map(|point| [point.x, point.y])).collect()
}
