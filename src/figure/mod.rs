//! Figures and tables as data: an experiment makes them, and every face draws the same ones.

mod table;

use serde::{Deserialize, Serialize};

pub use table::{Column, Table, Value};

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Stem of its files.
    pub id: String,
    /// Title.
    pub title: String,
    /// What is shown and how to read it.
    pub caption: String,
    /// Where the numbers come from: names and values.
    pub provenance: Vec<(String, String)>,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Reference lines.
    pub lines: Vec<Rule>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Title.
    pub title: String,
    /// Unit, where there is one.
    pub unit: Option<String>,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Names of the places 0, 1, 2 …; empty where the axis has numbers.
    pub categories: Vec<String>,
    /// Ends, where they are not those of what is shown.
    pub range: Option<[f64; 2]>,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten.
    Log10,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// A line.
    Line,
    /// Points.
    Points,
    /// Points on a line.
    LinePoints,
    /// Bars from 0.
    Bars,
    /// A line of steps.
    Steps,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Number of its colour: the same thing has the same one in every figure.
    pub colour: usize,
    /// Its points.
    pub points: Vec<Point>,
    /// Intervals are drawn as a band, not as error bars.
    pub band: bool,
    /// Somebody else's numbers: pale and dashed.
    pub faint: bool,
    /// Its line is dashed.
    pub dashed: bool,
}

/// A point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What it is called.
    pub label: Option<String>,
}

/// A reference line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What it says.
    pub label: String,
    /// Where it lies.
    pub at: f64,
    /// Whether it runs up and down, not across.
    pub vertical: bool,
}
