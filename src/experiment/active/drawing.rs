//! How numbers over seeds are drawn and tabled.

use super::Strategy;
use super::curves::{Spread, Stated};
use crate::figure::{Point, Series, Style, Value};

/// What bands and error bars of purchases are.
pub(super) const OVER_SEEDS: &str = "Student's 95 % interval over seeds; where a single seed is finished there is none";

/// What those of figures on the test images are that leave these out.
pub(super) const OVER_SEEDS_ALONE: &str = "Student's 95 % interval over seeds; where a single seed is finished there is none. All seeds \
    share their test images: what these have too much or too little is not in it";

/// What those of figures on the test images are.
pub(super) const OVER_IMAGES: &str = "95 % interval over seeds (Student) and over test images, added in quadrature; where a single seed is \
    finished there is none";

/// The same of differences.
pub(super) const PAIRED: &str = "95 % interval over seeds (Student) and over test images (block means), added in quadrature; over seeds \
    alone where cells were finished by an older version; where a single seed is finished there is none";

/// A number with its interval at a place.
pub(super) fn point(x: f64, spread: Spread, label: Option<String>) -> Point {
    let (low, high) = (spread.interval.map(|interval| interval.low), spread.interval.map(|interval| interval.high));
    Point { x, y: spread.value, low, high, label }
}

/// The same in a table.
pub(super) fn value(spread: Spread) -> Value {
    match spread.interval {
        Some(interval) => Value::within(spread.value, interval.low, interval.high),
        None => Value::from(spread.value),
    }
}

/// A number times a factor, or why there is none.
pub(super) fn stated(stated: &Stated, factor: f64) -> Value {
    match (stated.number, &stated.why_not) {
        (Some(number), _) => value(number.scaled(factor)),
        (None, Some(why)) => Value::from(why.clone()),
        (None, None) => Value::Nothing,
    }
}

/// A series of a strategy: the same colour in every figure; controls are dashed.
pub(super) fn series(strategy: Strategy, style: Style, points: Vec<Point>) -> Option<Series> {
    let control = matches!(strategy, Strategy::Random | Strategy::MaxAleatoric);
    (!points.is_empty()).then(|| Series {
        name: strategy.label().to_owned(),
        style,
        colour: strategy as usize,
        points,
        band: style == Style::LinePoints,
        dashed: control,
        ..Series::default()
    })
}
