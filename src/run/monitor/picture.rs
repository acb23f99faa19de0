//! Courses as one figure.

use std::collections::BTreeMap;

use super::mean::{mean, smoothed};
use super::track::{Named, Over, Quantity, Seen, Track};
use crate::figure::{Axis, Figure, Point, Rule, Scale, Series, Way, colour};

/// Floors that get a line each; of more, none is told from the others.
const FLOORS: usize = 6;
/// How much of its colour what was logged keeps under its smoothed line.
const PALE: f64 = 0.35;

/// Points of a picture, and of one of its runs at least.
const POINTS: usize = 50_000;
const LEAST: usize = 250;
/// Lines that have their intervals: bands of more hide each other.
const BANDS: usize = 12;
/// What the caption calls runs.
const WORDS: [&str; 3] = ["run", "a group over its runs", "filter, group or leave out"];

/// What is drawn, and how.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// What.
    pub quantity: Quantity,
    /// Over what.
    pub over: Over,
    /// Axes on which equal ratios are equal distances: across and up.
    pub log: [bool; 2],
    /// Weight of what came before in a running mean, 0 to 1: 0 smooths nothing.
    pub smoothing: f64,
    /// The field of the spec whose values make groups; every run for itself without one.
    pub group: Option<String>,
    /// Only runs in whose name or fields this stands.
    pub filter: String,
}

impl Choice {
    /// Whether every run has the same line under both.
    pub fn draws_as(&self, other: &Self) -> bool {
        let line = |of: &Self| (of.quantity, of.over, of.smoothing);
        line(self) == line(other)
    }
}

/// The line of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawn {
    points: Vec<Point>,
    /// Their running mean, where one is chosen.
    smooth: Vec<Point>,
    /// What they cannot fall below in the mean.
    floor: Option<f64>,
    /// Whether there are more points than these.
    thinned: bool,
}

impl Drawn {
    /// Of a run: every point, or every second, third … and the last, so that they are about `most`. What is smoothed is
    /// smoothed before.
    pub fn of(track: &Track, choice: &Choice, most: usize) -> Self {
        let floor = track.steps.iter().rev().find_map(|seen| seen.floor(choice.quantity));
        Self::through(course(track, choice), floor, choice.smoothing, most)
    }

    /// Through points by rising place.
    pub(super) fn through(points: Vec<Point>, floor: Option<f64>, smoothing: f64, most: usize) -> Self {
        let smooth = if smoothing > 0.0 { smoothed(&points, smoothing) } else { Vec::new() };
        let thinned = points.len() > most;
        Self { points: few(points, most), smooth: few(smooth, most), floor, thinned }
    }
}

/// Runs that make one line.
pub(super) struct Group<'a> {
    pub name: String,
    /// Place in the palette.
    pub colour: usize,
    pub of: Vec<&'a Drawn>,
}

/// What is drawn of groups, over what, and how.
pub(super) struct Drawing {
    pub id: &'static str,
    /// What one is called, what a group is and over what, and what to do about too many.
    pub words: [&'static str; 3],
    pub quantity: Quantity,
    pub over: Over,
    pub log: [bool; 2],
    pub smoothing: f64,
    /// Points that each run may have.
    pub most: usize,
}

/// Points of a run of so many in one picture, about: what can be told apart, and drawn in time. A power of two: one run more or
/// less seldom means other points of all.
pub fn points_each(runs: usize) -> usize {
    (POINTS / runs.max(1)).max(LEAST).next_power_of_two()
}

/// The courses in one figure. A group of several runs is their mean at every place that at least two of them reach, with a
/// 95 % interval over the runs and their test images; a single run has its own intervals.
pub fn picture(runs: &[(&Named, &Drawn)], choice: &Choice) -> Figure {
    let kept: Vec<(&Named, &Drawn)> = runs.iter().copied().filter(|(track, _)| track.matches(&choice.filter)).collect();
    let mut groups: BTreeMap<(usize, String), Vec<&Drawn>> = BTreeMap::new();
    for (i, (track, drawn)) in kept.iter().enumerate() {
        let key = match &choice.group {
            Some(field) => {
                (0, track.fields.get(field).map_or_else(|| format!("without {field}"), |v| format!("{field} = {v}")))
            }
            None => (i, track.name.clone()),
        };
        groups.entry(key).or_default().push(drawn);
    }
    let group = |(colour, ((_, name), of))| Group { name, colour, of };
    let groups: Vec<Group<'_>> = groups.into_iter().enumerate().map(group).collect();
    let Choice { quantity, over, log, smoothing, .. } = *choice;
    let most = points_each(runs.len());
    let drawing = Drawing { id: "monitor", words: WORDS, quantity, over, log, smoothing, most };
    let of = kept.iter().map(|(track, _)| track.name.as_str()).collect::<Vec<_>>().join(", ");
    let program = format!("bayescope {}", env!("CARGO_PKG_VERSION"));
    let floors: Vec<(&str, Option<f64>)> =
        kept.iter().map(|(track, drawn)| (track.name.as_str(), drawn.floor)).collect();
    Figure { provenance: vec![("runs".into(), of), ("program".into(), program)], ..drawing.figure(&groups, &floors) }
}

impl Drawing {
    /// Groups as lines of one figure, above the floors of those named. Where it comes from is still to be said.
    pub fn figure(&self, groups: &[Group<'_>], floors: &[(&str, Option<f64>)]) -> Figure {
        let Self { quantity, over, .. } = *self;
        let scale = |log: bool| if log { Scale::Log10 } else { Scale::Linear };
        let y = Axis::linear(quantity.name());
        let y = quantity.unit().map_or(y.clone(), |unit| y.in_unit(unit));
        Figure {
            id: self.id.into(),
            title: format!("{} over {}", quantity.name(), over.name()),
            caption: self.caption(groups),
            provenance: Vec::new(),
            x: Axis { scale: scale(self.log[0]), ..Axis::linear(over.name()) },
            y: Axis { scale: scale(self.log[1]), ..y },
            series: series(groups, quantity.range()),
            rules: rules(floors, quantity),
            ..Figure::default()
        }
    }

    fn caption(&self, groups: &[Group<'_>]) -> String {
        let [kind, group, fewer] = self.words;
        let mut text = match groups.len() <= BANDS {
            true => {
                format!("Bands are 95 % intervals: of one {kind} over its test images, of {group} and test images.")
            }
            false => format!("Above {BANDS} lines none has its 95 % interval: {fewer}."),
        };
        if groups.iter().flat_map(|group| &group.of).any(|drawn| drawn.thinned) {
            text += &format!(" Of a long {kind} about {} steps are drawn.", self.most);
        }
        if self.smoothing > 0.0 {
            text += &format!(" Lines are running means of weight {}; pale, what was logged.", self.smoothing);
        }
        text
    }
}

/// The lines of groups: the mean of several runs, and the points of a single one.
fn series(groups: &[Group<'_>], range: [f64; 2]) -> Vec<Series> {
    let band = groups.len() <= BANDS;
    let mut series = Vec::new();
    for Group { name, colour, of } in groups {
        let [points, smooth] = match of.as_slice() {
            [one] => [one.points.clone(), one.smooth.clone()],
            several => {
                let of = |line: fn(&Drawn) -> &Vec<Point>| {
                    mean(&several.iter().map(|one| &line(one)[..]).collect::<Vec<_>>(), range)
                };
                [of(|one| &one.points), of(|one| &one.smooth)]
            }
        };
        if points.is_empty() {
            continue;
        }
        let [points, smooth] = if band { [points, smooth] } else { [points, smooth].map(plain) };
        let line = Series { name: name.clone(), colour: *colour, points, band, ..Series::default() };
        series.extend(over_pale(line, smooth));
    }
    series
}

/// A line and its running mean of a weight; with weight 0 the line alone.
pub fn smooth_line(line: Series, weight: f64) -> Vec<Series> {
    let smooth = if weight > 0.0 { smoothed(&line.points, weight) } else { Vec::new() };
    over_pale(line, smooth)
}

/// A smoothed line over what was logged, pale; the line itself where nothing is smoothed.
fn over_pale(line: Series, smooth: Vec<Point>) -> Vec<Series> {
    if smooth.is_empty() {
        return vec![line];
    }
    let own = Some([false, true].map(|dark| pale(colour(line.colour, dark), dark)));
    let (name, points) = (format!("{}, as logged", line.name), plain(line.points.clone()));
    let logged = Series { name, own, points, band: false, ..line.clone() };
    vec![logged, Series { points: smooth, ..line }]
}

/// Points without their intervals.
fn plain(points: Vec<Point>) -> Vec<Point> {
    points.into_iter().map(|point| Point::new(point.x, point.y)).collect()
}

/// The points of a run, by rising place.
fn course(track: &Track, choice: &Choice) -> Vec<Point> {
    let point = |seen: Seen| {
        let (x, (y, interval)) = (track.at(&seen, choice.over)?, seen.number(choice.quantity)?);
        let point = Point::new(x, y);
        Some(interval.map_or(point.clone(), |[low, high]| point.within(low, high)))
    };
    let mut points: Vec<Point> = track.steps.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// Every second, third … and the last, so that they are about `most`.
pub(super) fn few<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let (each, count) = (all.len().div_ceil(most.max(1)).max(1), all.len());
    let kept = all.into_iter().enumerate().filter(|(i, _)| i.is_multiple_of(each) || i + 1 == count);
    // In the memory of all of them: there may be hundreds of runs.
    let mut few: Vec<T> = kept.map(|(_, one)| one).collect();
    few.shrink_to_fit();
    few
}

/// A colour as it looks under its line.
fn pale(rgb: [u8; 3], dark: bool) -> [u8; 3] {
    let ground = if dark { 0.0 } else { 255.0 };
    rgb.map(|value| (PALE * f64::from(value) + (1.0 - PALE) * ground).round() as u8)
}

/// A line for every floor there is: runs on the same test images share theirs.
fn rules(floors: &[(&str, Option<f64>)], quantity: Quantity) -> Vec<Rule> {
    let Some(name) = quantity.floor() else { return Vec::new() };
    let mut found: Vec<(f64, &str)> = Vec::new();
    for (of, floor) in floors {
        let Some(floor) = *floor else { continue };
        if !found.iter().any(|(known, _)| (known - floor).abs() <= 1e-9 * floor.abs()) {
            found.push((floor, of));
        }
    }
    if found.len() > FLOORS {
        return Vec::new();
    }
    let several = found.len() > 1;
    let rule = |(at, of): (f64, &str)| Rule {
        way: Way::Horizontal,
        at,
        low: None,
        high: None,
        label: if several { format!("{name} of {of}") } else { name.to_owned() },
    };
    found.into_iter().map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::super::track::Steps;
    use super::*;
    use crate::experiment::Watched;

    fn track(name: &str, rate: &str, points: &[(usize, f64)]) -> Track {
        let watched = points.iter().map(|&(step, kl)| Watched {
            step,
            epoch: step / 10,
            train_loss: kl,
            cross_entropy: 0.25 + kl,
            aleatoric: 0.25,
            epistemic: kl,
            expected_accuracy: 0.5,
            intervals: None,
        });
        let fields = BTreeMap::from([("rate".to_owned(), rate.to_owned()), ("same".to_owned(), "1".to_owned())]);
        let of = Named { name: name.into(), fields };
        Track { of, steps: Steps::Watched(watched.collect()), finished: false, one_training: true }
    }

    fn drawn(tracks: &[Track], choice: &Choice) -> Figure {
        together(tracks, choice, 1000)
    }

    fn together(tracks: &[Track], choice: &Choice, most: usize) -> Figure {
        let lines: Vec<Drawn> = tracks.iter().map(|track| Drawn::of(track, choice, most)).collect();
        picture(&tracks.iter().map(|track| &track.of).zip(&lines).collect::<Vec<_>>(), choice)
    }

    fn tracks() -> Vec<Track> {
        vec![
            track("a", "0.1", &[(10, 1.0), (20, 0.5), (30, 0.2)]),
            track("b", "0.1", &[(10, 2.0), (30, 0.4)]),
            track("c", "0.3", &[(10, 3.0), (40, 1.0)]),
        ]
    }

    #[test]
    fn groups_are_means_of_their_runs_with_students_intervals() {
        let choice = Choice { quantity: Quantity::Epistemic, group: Some("rate".into()), ..Choice::default() };
        let figure = drawn(&tracks(), &choice);
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["rate = 0.1", "rate = 0.3"]);
        let xy: Vec<(f64, f64)> = figure.series[0].points.iter().map(|point| (point.x, point.y)).collect();
        // b at step 20 is halfway between 2.0 and 0.4.
        assert_eq!(xy, [(10.0, 1.5), (20.0, (0.5 + 1.2) / 2.0), (30.0, (0.2 + 0.4) / 2.0)]);
        let half = 12.706_204_736 * (0.5_f64).sqrt() / (2.0_f64).sqrt();
        assert!((figure.series[0].points[0].high.unwrap() - 1.5 - half).abs() < 1e-6);
        assert_eq!(figure.series[1].points.len(), 2, "a run alone keeps its points");
        assert_eq!(super::super::differing(&tracks().iter().map(|track| &track.of).collect::<Vec<_>>()), ["rate"]);
        assert!(figure.rules.is_empty(), "KL has no floor");
    }

    #[test]
    fn filters_floors_and_places_are_those_that_were_chosen() {
        let choice = Choice { over: Over::Epochs, filter: "RATE = 0.1".into(), ..Choice::default() };
        let figure = drawn(&tracks(), &choice);
        assert_eq!(figure.series.len(), 2);
        assert_eq!(figure.series[0].points[1], Point::new(2.0, 0.75));
        assert_eq!(
            figure.rules.iter().map(|rule| (rule.label.as_str(), rule.at)).collect::<Vec<_>>(),
            [("aleatoric A", 0.25)]
        );
        // Nobody said when.
        assert!(drawn(&tracks(), &Choice { over: Over::Seconds, ..Choice::default() }).series.is_empty());
    }

    #[test]
    fn smoothing_begins_at_the_first_point_and_shows_what_was_logged() {
        let choice = Choice { quantity: Quantity::Epistemic, smoothing: 0.5, filter: "a".into(), ..Choice::default() };
        let tracks = [track("a", "1", &[(1, 4.0), (2, 0.0), (3, 0.0)])];
        let figure = drawn(&tracks, &choice);
        assert_eq!(figure.series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["a, as logged", "a"]);
        let ys: Vec<f64> = figure.series[1].points.iter().map(|point| point.y).collect();
        assert!(
            (ys[0] - 4.0).abs() < 1e-12 && (ys[1] - 4.0 / 3.0).abs() < 1e-12 && (ys[2] - 4.0 / 7.0).abs() < 1e-12,
            "{ys:?}"
        );
        assert_eq!(figure.series[0].points[1].y, 0.0);
    }

    #[test]
    fn of_many_and_long_runs_some_points_are_drawn_smoothed_from_all() {
        let long: Vec<(usize, f64)> = (0..10_000).map(|i| (i, if i % 2 == 0 { 1.0 } else { 3.0 })).collect();
        let many: Vec<Track> =
            (0..200).map(|i| track(&format!("run {i}"), "1", if i == 0 { &long } else { &[] })).collect();
        let choice = Choice { quantity: Quantity::Epistemic, smoothing: 0.99, ..Choice::default() };
        let figure = together(&many, &choice, points_each(200));
        let [logged, smooth] = &figure.series[..] else { panic!("{} series", figure.series.len()) };
        assert!((225..=275).contains(&logged.points.len()) && smooth.points.len() == logged.points.len());
        assert_eq!(smooth.points.last().map(|point| point.x), Some(9999.0));
        // Every fortieth point alone is 1: the mean of all is 2.
        assert!((smooth.points[225].y - 2.0).abs() < 0.02, "{}", smooth.points[225].y);
        assert!(!logged.band && figure.caption.contains("about 256 steps"), "{}", figure.caption);
    }
}
