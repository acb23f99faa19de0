//! The legend: a column right of the plot, where it hides nothing, or below the plot of a narrow picture.

use std::collections::BTreeSet;

use super::palette::Theme;
use super::scene::{Anchor, Entry, Key, Scene};
use super::series::Painter;
use super::text::{self, LEADING};
use super::{Figure, Series};

/// Font size of names.
const SIZE: f64 = 12.5;
/// Width of the sample before a name, and its distance from the name.
const SAMPLE: f64 = 30.0;
const GAP: f64 = 8.0;
/// Distance between two entries.
const APART: f64 = 6.0;
/// How much of what is below the name of something hidden covers.
const HIDDEN: f64 = 0.55;
/// Above the numbers of others.
const PUBLISHED: &str = "Published numbers";

/// What an entry shows before its name; nothing before a heading.
type Sample = Option<Entry>;

/// All entries, broken into lines.
pub(super) struct Legend {
    entries: Vec<(Sample, Vec<String>)>,
    /// Of the whole column; zero if it is empty.
    pub width: f64,
    pub height: f64,
}

impl Legend {
    /// Our series, reference lines, then published numbers, in at most `room` pixels.
    pub(super) fn new(figure: &Figure, room: f64) -> Self {
        let series = |keep: fn(&Series) -> bool| {
            let kept = figure.series.iter().enumerate().filter(move |(_, series)| keep(series));
            kept.map(|(i, series)| (Some(Entry::Series(i)), series.name.as_str()))
        };
        let rules = figure.rules.iter().enumerate().map(|(i, rule)| (Some(Entry::Rule(i)), rule.label.as_str()));
        let heading = figure.series.iter().any(|series| series.faint).then_some((None, PUBLISHED));
        let all = series(|own| !own.faint).chain(rules).chain(heading).chain(series(|other| other.faint));
        let names = room - SAMPLE - GAP;
        let entries: Vec<_> = all.map(|(sample, name)| (sample, text::wrap(name, SIZE, names))).collect();
        let wide =
            entries.iter().map(|(sample, lines)| indent(*sample) + text::widest(lines, SIZE)).fold(0.0, f64::max);
        let height = entries.iter().map(|(_, lines)| height(lines)).sum();
        Self { entries, width: wide, height }
    }

    /// Draws it with its upper left corner at `at`, what is hidden without its sample, and notes where everything is.
    pub(super) fn paint(
        &self,
        scene: &mut Scene,
        painter: &Painter,
        theme: &Theme,
        at: [f64; 2],
        hidden: &BTreeSet<Entry>,
    ) {
        let [x, mut y] = at;
        for (sample, lines) in &self.entries {
            let middle = y + SIZE * LEADING / 2.0;
            let away = sample.is_some_and(|entry| hidden.contains(&entry));
            let ink = match sample {
                None => theme.weak,
                Some(_) if away => theme.weak.pale(HIDDEN),
                Some(_) => theme.text,
            };
            match *sample {
                Some(Entry::Series(i)) if !away => painter.series_sample(scene, i, [x, middle], SAMPLE),
                Some(Entry::Rule(i)) if !away => painter.rule_sample(scene, i, [x, middle], SAMPLE),
                _ => {}
            }
            scene.block(lines, [x + indent(*sample), middle + 0.35 * SIZE], Anchor::Start, SIZE, ink);
            let below = y + height(lines);
            let right = x + indent(*sample) + text::widest(lines, SIZE);
            scene.keys.extend(sample.map(|entry| Key { entry, area: [x, y, right, below - APART / 2.0] }));
            y = below;
        }
    }
}

/// Where the name of an entry begins.
fn indent(sample: Sample) -> f64 {
    if sample.is_none() { 0.0 } else { SAMPLE + GAP }
}

fn height(lines: &[String]) -> f64 {
    lines.len().max(1) as f64 * SIZE * LEADING + APART
}
