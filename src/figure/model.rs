//! Figures as data.

use serde::{Deserialize, Deserializer, Serialize};

/// One picture with everything a reader needs to judge it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figure {
    /// Stem of its file names, e.g. `scaling-kl`.
    pub id: String,
    /// One line above the picture.
    pub title: String,
    /// A paragraph below it: what is shown, and how to read it.
    pub caption: String,
    /// Where the numbers come from, in order: world hash, τ, seeds, badge, spec, program version.
    pub provenance: Vec<(String, String)>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the first at the bottom.
    pub series: Vec<Series>,
    /// Reference lines across the whole picture.
    pub rules: Vec<Rule>,
    /// Squares below everything else: a figure that has some has no other axes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<Grid>,
}

/// One axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Axis {
    /// What is counted or measured.
    pub title: String,
    /// Its unit, shown in brackets; none for counts and shares.
    pub unit: Option<String>,
    /// How numbers become places.
    pub scale: Scale,
    /// Names instead of numbers: name i stands at i on a linear scale. Empty for numbers.
    pub categories: Vec<String>,
    /// The ends of the axis; by default they follow from the points. Impossible ends are ignored.
    pub range: Option<[f64; 2]>,
}

/// How numbers become places on an axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal differences are equal distances.
    #[default]
    Linear,
    /// Equal ratios are equal distances; only numbers above zero have a place.
    Log10,
}

/// Points that belong together and share a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Place in the palette. The same thing has the same colour in every figure.
    pub colour: usize,
    /// The points in the order of their line. A point without a place breaks it.
    pub points: Vec<Point>,
    /// Draws the intervals as one band instead of as bars; that of a point alone stays a bar.
    pub band: bool,
    /// Published numbers: pale, dashed, and under a heading of their own in the legend.
    pub faint: bool,
    /// A dashed line and hollow markers: a fit, a limit, or a second setting of the same thing.
    pub dashed: bool,
    /// How far beside its x it is drawn, places of the axis ([`Scale::place`]): series that would hide each other stand
    /// side by side.
    pub aside: f64,
    /// sRGB on light and on dark grounds of what has a colour of its own everywhere, in place of that of the palette.
    pub own: Option<[[u8; 3]; 2]>,
}

impl Series {
    /// Markers joined by a line, in the order of x.
    pub fn markers_joined(name: String, colour: usize, points: impl Iterator<Item = Point>) -> Self {
        let mut points: Vec<Point> = points.collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Self { name, style: Style::LinePoints, colour, points, ..Self::default() }
    }

    /// The parts of its line or band: points one after the other that can stand in it.
    pub fn runs(&self, can: impl Fn(&Point) -> bool) -> impl Iterator<Item = &[Point]> {
        self.points.split(move |point| !can(point)).filter(|run| !run.is_empty())
    }

    /// The points with a marker, of those that have a place. Of a line those that stand alone, where it has no length: theirs
    /// is a dash.
    pub fn marked(&self, has_place: impl Fn(&Point) -> bool) -> impl Iterator<Item = &Point> {
        let marked = |run: &&[Point]| match self.style {
            Style::Points | Style::LinePoints => true,
            Style::Line | Style::Steps => run.len() == 1,
            Style::Bars => false,
        };
        self.runs(has_place).filter(marked).flatten()
    }

    /// The points whose interval is a bar, of those that can have one. Of a band those that stand alone: it has no width
    /// there.
    pub fn barred(&self, has_interval: impl Fn(&Point) -> bool) -> impl Iterator<Item = &Point> {
        self.runs(has_interval).filter(|run| !self.band || run.len() == 1).flatten()
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A line through the points; a dash for one that stands alone.
    #[default]
    Line,
    /// Markers.
    Points,
    /// Markers joined by a line.
    LinePoints,
    /// Bars from zero, or from the bottom of a log axis.
    Bars,
    /// A staircase: y holds from its x to the next point's. A point alone is a dash.
    Steps,
}

/// A number and its 95 % interval, at a place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// Place on the x axis: a number, or the index of a category.
    #[serde(deserialize_with = "number_or_null")]
    pub x: f64,
    /// The number.
    #[serde(deserialize_with = "number_or_null")]
    pub y: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// What this point is: in the tooltip and the table, not in the picture.
    pub label: Option<String>,
}

/// A straight line across the picture. An estimated one carries its interval, drawn as a band.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Which way it runs.
    pub way: Way,
    /// Where: y of a horizontal line, x of a vertical one.
    #[serde(deserialize_with = "number_or_null")]
    pub at: f64,
    /// Lower end of its 95 % interval.
    #[serde(default)]
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    #[serde(default)]
    pub high: Option<f64>,
    /// Its name in the legend.
    pub label: String,
}

/// Which way a reference line runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// One y for every x.
    Horizontal,
    /// One x for every y.
    Vertical,
}

/// Squares in rows. Grid i of a figure stands at name i of its x axis, on a y axis from −½ to ½ ([`Figure::of_grids`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// How many squares a row has.
    pub columns: usize,
    /// The squares row by row from the top.
    pub cells: Cells,
}

/// What colours squares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cells {
    /// Colours of their own, sRGB.
    Pixels(Vec<[u8; 3]>),
    /// Numbers: the largest magnitude has the full colour, zero none.
    Numbers {
        /// The numbers. One that is not finite has no colour.
        values: Vec<f64>,
        /// Their unit.
        unit: String,
        /// What numbers below zero and above it speak for.
        sides: [String; 2],
    },
}

/// How a picture looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RenderOptions {
    /// Light on dark.
    pub dark: bool,
    /// Width of the whole picture, pixels at scale 1.
    pub width: f64,
    /// Height of the area between the axes; title, labels, legend and caption add what they need.
    pub plot_height: f64,
    /// Without title, caption and provenance: they stand in the description alone.
    pub bare: bool,
    /// Points on paper of a pixel, where the picture has a size on paper.
    pub paper: Option<f64>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self { dark: false, width: 800.0, plot_height: 360.0, bare: false, paper: None }
    }
}

/// Points of a millimetre.
const POINTS_A_MM: f64 = 72.0 / 25.4;
/// Height of the area between the axes, as a share of the width, of a picture for paper.
const PAPER_HEIGHT: f64 = 0.45;

impl RenderOptions {
    /// The look of a picture that is `mm` millimetres wide, with labels of `font` points: everything in it is as much
    /// larger or smaller as they are.
    pub fn on_paper(mm: f64, font: f64) -> Self {
        let paper = font / super::labels::LABEL_SIZE;
        let width = mm * POINTS_A_MM / paper;
        Self { width, plot_height: (PAPER_HEIGHT * width).clamp(230.0, 560.0), paper: Some(paper), ..Self::default() }
    }
}

impl Figure {
    /// A figure of grids by their names, without words.
    pub fn of_grids(grids: impl IntoIterator<Item = (String, Grid)>) -> Self {
        let (names, grids): (Vec<String>, Vec<Grid>) = grids.into_iter().unzip();
        let y = Axis { range: Some([-0.5, 0.5]), ..Axis::default() };
        Self { x: Axis::named("", names), y, grids, ..Self::default() }
    }
}

impl Grid {
    /// How many squares it has.
    pub(super) fn len(&self) -> usize {
        match &self.cells {
            Cells::Pixels(pixels) => pixels.len(),
            Cells::Numbers { values, .. } => values.len(),
        }
    }
}

impl Axis {
    /// A linear axis of numbers.
    pub fn linear(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A logarithmic axis of numbers.
    pub fn log10(title: impl Into<String>) -> Self {
        Self { title: title.into(), scale: Scale::Log10, ..Self::default() }
    }

    /// An axis of names.
    pub fn named(title: impl Into<String>, categories: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let categories = categories.into_iter().map(Into::into).collect();
        Self { title: title.into(), categories, ..Self::default() }
    }

    /// The same axis with a unit.
    #[must_use]
    pub fn in_unit(self, unit: impl Into<String>) -> Self {
        Self { unit: Some(unit.into()), ..self }
    }

    /// The scale it is drawn on: names stand at equal distances.
    pub fn shown_scale(&self) -> Scale {
        if self.categories.is_empty() { self.scale } else { Scale::Linear }
    }

    /// Title with unit, e.g. `KL(p‖q) [nats]`.
    pub fn full_title(&self) -> String {
        self.unit.as_ref().map_or_else(|| self.title.clone(), |unit| format!("{} [{unit}]", self.title))
    }
}

impl Scale {
    /// Largest number an axis shows; its inverse is the smallest of a log axis.
    pub(super) const LARGEST: f64 = 1e300;

    /// Returns whether `value` has a place on such an axis: finite, and positive on a log axis.
    /// Magnitudes beyond 10^±300 count as infinite and as zero.
    pub fn has(self, value: f64) -> bool {
        value.abs() <= Self::LARGEST && (self == Self::Linear || value >= 1.0 / Self::LARGEST)
    }

    /// The place of `value` along the axis: itself, or log₁₀ of it.
    pub fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log10 => value.log10(),
        }
    }

    /// The number at `place`, the inverse of [`Scale::place`], or the nearest that an axis shows.
    pub fn value(self, place: f64) -> f64 {
        match self {
            Self::Linear => place.clamp(-Self::LARGEST, Self::LARGEST),
            Self::Log10 => 10f64.powf(place).clamp(1.0 / Self::LARGEST, Self::LARGEST),
        }
    }
}

impl Point {
    /// A number at a place, without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// The same with a 95 % interval.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { low: Some(low), high: Some(high), ..self }
    }
}

/// JSON has no NaN and writes null instead: a number that was lost is read back as lost.
fn number_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}
