//! The legend: a column right of the plot, where it hides nothing, or below the plot of a narrow picture.

use super::palette::Theme;
use super::scene::{Anchor, Scene};
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
/// Above the numbers of others.
const PUBLISHED: &str = "Published numbers";

/// What an entry shows before its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sample {
    Heading,
    Series(usize),
    Rule(usize),
}

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
            kept.map(|(i, series)| (Sample::Series(i), series.name.as_str()))
        };
        let rules = figure.rules.iter().enumerate().map(|(i, rule)| (Sample::Rule(i), rule.label.as_str()));
        let heading = figure.series.iter().any(|series| series.faint).then_some((Sample::Heading, PUBLISHED));
        let all = series(|own| !own.faint).chain(rules).chain(heading).chain(series(|other| other.faint));
        let names = room - SAMPLE - GAP;
        let entries: Vec<_> = all.map(|(sample, name)| (sample, text::wrap(name, SIZE, names))).collect();
        let wide =
            entries.iter().map(|(sample, lines)| sample.indent() + text::widest(lines, SIZE)).fold(0.0, f64::max);
        let height = entries.iter().map(|(_, lines)| height(lines)).sum();
        Self { entries, width: wide, height }
    }

    /// Draws it with its upper left corner at `at`.
    pub(super) fn paint(&self, scene: &mut Scene, painter: &Painter, theme: &Theme, at: [f64; 2]) {
        let [x, mut y] = at;
        for (sample, lines) in &self.entries {
            let middle = y + SIZE * LEADING / 2.0;
            let ink = if *sample == Sample::Heading { theme.weak } else { theme.text };
            match *sample {
                Sample::Heading => {}
                Sample::Series(i) => painter.series_sample(scene, i, [x, middle], SAMPLE),
                Sample::Rule(i) => painter.rule_sample(scene, i, [x, middle], SAMPLE),
            }
            scene.block(lines, [x + sample.indent(), middle + 0.35 * SIZE], Anchor::Start, SIZE, ink);
            y += height(lines);
        }
    }
}

impl Sample {
    /// Where its name begins.
    fn indent(self) -> f64 {
        if self == Self::Heading { 0.0 } else { SAMPLE + GAP }
    }
}

fn height(lines: &[String]) -> f64 {
    lines.len().max(1) as f64 * SIZE * LEADING + APART
}
