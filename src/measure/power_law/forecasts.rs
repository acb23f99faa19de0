//! Which way of fitting forecasts best: laws fitted over some smaller N, beside what came at larger
//! ones.
//!
//! Every form (with and without a floor), weighting (squares of log values, squares of values) and
//! range (all smaller N, or the largest half of them) forecasts every N above it.

use serde::{Deserialize, Serialize};

use super::points::{Design, LARGEST_LOG};
use super::{Curve, Point, Variant};
use crate::error::Result;

/// Exponents among which squares of values are least: from and to.
const EXPONENTS: [f64; 2] = [0.0, 4.0];
/// Exponents that are tried before the best is refined.
const TRIED: usize = 200;
/// Steps of the golden section, each of a factor of 0.618.
const REFINED: usize = 40;

/// Which squares are least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// Those of log value − log curve.
    Relative,
    /// Those of value − curve.
    Absolute,
}

/// Which of the N below a cut are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitRange {
    /// All.
    All,
    /// The largest half of them, no fewer than the law needs.
    LargestHalf,
}

/// A way of fitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FitWay {
    /// Which law.
    pub form: Variant,
    /// Which squares.
    pub weighting: Weighting,
    /// Which N.
    pub range: FitRange,
}

/// A forecast beside what came.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GradedForecast {
    /// How it was made.
    pub way: FitWay,
    /// Smallest and largest N that the law was fitted to.
    pub fitted: [f64; 2],
    /// N that it is for.
    pub n: f64,
    /// The law there.
    pub forecast: f64,
    /// Geometric mean of the runs there.
    pub came: f64,
}

impl FitWay {
    /// All combinations of form, weighting and range.
    pub fn all() -> impl Iterator<Item = Self> {
        let ways = |form| {
            [Weighting::Relative, Weighting::Absolute].into_iter().flat_map(move |weighting| {
                [FitRange::All, FitRange::LargestHalf].map(|range| Self { form, weighting, range })
            })
        };
        [Variant::Pure, Variant::Floor].into_iter().flat_map(ways)
    }

    /// In words.
    pub fn label(self) -> String {
        let form = if self.form == Variant::Pure { "a·N^(−α)" } else { "a·N^(−α) + c" };
        let squares = if self.weighting == Weighting::Relative { "log values" } else { "values" };
        let range = if self.range == FitRange::All { "all smaller N" } else { "the largest half" };
        format!("{form}, squares of {squares}, {range}")
    }

    /// The curve of points over enough different N.
    fn fit(self, points: &[&Point]) -> Curve {
        let x: Vec<f64> = points.iter().map(|point| point.n.ln()).collect();
        match self.weighting {
            Weighting::Relative => {
                Curve::fit(&x, &points.iter().map(|point| point.value.ln()).collect::<Vec<_>>(), self.form)
            }
            Weighting::Absolute => absolute(&x, &points.iter().map(|point| point.value).collect::<Vec<_>>(), self.form),
        }
    }
}

impl GradedForecast {
    /// log forecast − log what came: 0 is right, above it the forecast was too large.
    pub fn error(&self) -> f64 {
        (self.forecast / self.came).ln()
    }
}

/// All forecasts of `points` by all ways: from each N on that leaves enough below, for each larger
/// N. None where there are too few different N.
///
/// # Errors
/// When a value or N is not a positive number.
pub fn graded_forecasts(points: &[Point]) -> Result<Vec<GradedForecast>> {
    Design::of(points, None)?;
    let mut sizes: Vec<f64> = points.iter().map(|point| point.n).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let mut all = Vec::new();
    for way in FitWay::all() {
        let needed = way.form.parameters() + 1;
        for cut in needed..sizes.len() {
            let kept = if way.range == FitRange::All { cut } else { cut.div_ceil(2).max(needed) };
            // With as many as all, the half is no other range.
            if way.range == FitRange::LargestHalf && kept == cut {
                continue;
            }
            let fitted = [sizes[cut - kept], sizes[cut - 1]];
            let below: Vec<&Point> = points.iter().filter(|p| (fitted[0]..=fitted[1]).contains(&p.n)).collect();
            let curve = way.fit(&below);
            all.extend(sizes[cut..].iter().map(|&n| {
                let forecast = curve.log_value(n.ln()).clamp(-LARGEST_LOG, LARGEST_LOG).exp();
                let came = geometric_mean(points, n);
                GradedForecast { way, fitted, n, forecast, came }
            }));
        }
    }
    Ok(all)
}

fn geometric_mean(points: &[Point], n: f64) -> f64 {
    let there: Vec<f64> = points.iter().filter(|point| point.n == n).map(|point| point.value.ln()).collect();
    (there.iter().sum::<f64>() / there.len() as f64).exp()
}

/// The curve of least squares of values: for each α the best a > 0 and c ≥ 0 are those of a
/// straight line in N^(−α), and the best α is searched for.
fn absolute(x: &[f64], values: &[f64], form: Variant) -> Curve {
    let centre = x.iter().sum::<f64>() / x.len() as f64;
    let at = |alpha: f64| line(x, values, alpha, centre, form);
    let step = (EXPONENTS[1] - EXPONENTS[0]) / TRIED as f64;
    let tried = (1..=TRIED).map(|i| EXPONENTS[0] + step * i as f64);
    let best = tried.min_by(|a, b| at(*a).0.total_cmp(&at(*b).0)).unwrap_or(step);
    let (mut low, mut high) = ((best - step).max(0.0), best + step);
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    for _ in 0..REFINED {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if at(left).0 <= at(right).0 { high = right } else { low = left }
    }
    at((low + high) / 2.0).1
}

/// Squares of values left by the best a and c at an exponent, and the curve.
fn line(x: &[f64], values: &[f64], alpha: f64, centre: f64, form: Variant) -> (f64, Curve) {
    let n = x.len() as f64;
    // Centred, so that no power is too large or too small.
    let falling: Vec<f64> = x.iter().map(|x| (-alpha * (x - centre)).exp()).collect();
    let mean = |of: &dyn Fn(usize) -> f64| (0..x.len()).map(of).sum::<f64>() / n;
    let through_zero = mean(&|i| falling[i] * values[i]) / mean(&|i| falling[i] * falling[i]);
    let (f, v) = (mean(&|i| falling[i]), mean(&|i| values[i]));
    let spread = mean(&|i| (falling[i] - f).powi(2));
    let slope = mean(&|i| (falling[i] - f) * (values[i] - v)) / spread;
    let lifted = v - slope * f;
    let sound = form == Variant::Floor && slope > 0.0 && lifted > 0.0;
    let (a, c) = if sound { (slope, lifted) } else { (through_zero, 0.0) };
    let squares = mean(&|i| (values[i] - a * falling[i] - c).powi(2));
    (squares, Curve { log_a: a.ln() + alpha * centre, alpha, floor: c })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SILENT, SIZES, synthetic};
    use super::*;

    #[test]
    fn what_follows_a_law_is_forecast_by_every_way_that_has_it() {
        let pure = graded_forecasts(&synthetic((2.0, 0.4, 0.0), &SIZES, 2, SILENT, 0)).unwrap();
        assert!(pure.iter().all(|one| one.error().abs() < 1e-3), "{pure:?}");
        let lifted = graded_forecasts(&synthetic((2.0, 0.4, 0.3), &SIZES, 2, SILENT, 0)).unwrap();
        for one in &lifted {
            // Without a floor the fall is thought to go on; how far that is off grows with N.
            match one.way.form {
                Variant::Floor => assert!(one.error().abs() < 5e-4, "{one:?}"),
                Variant::Pure => assert!(one.error() < -1e-3, "{one:?}"),
            }
            assert!(one.n > one.fitted[1]);
        }
        // Of 8 sizes: 5 + 4 + 3 + 2 + 1 forecasts from 3 to 7 of all of them, 10 from 4 on; the half
        // is another range from 4 sizes on, with a floor from 5.
        let count = |form, range| {
            let of = |one: &&GradedForecast| {
                one.way.form == form && one.way.range == range && one.way.weighting == Weighting::Absolute
            };
            lifted.iter().filter(of).count()
        };
        assert_eq!(
            [
                count(Variant::Pure, FitRange::All),
                count(Variant::Floor, FitRange::All),
                count(Variant::Pure, FitRange::LargestHalf),
                count(Variant::Floor, FitRange::LargestHalf)
            ],
            [15, 10, 10, 6]
        );
    }

    #[test]
    fn squares_of_values_heed_the_large_ones() {
        // The last point is off by a factor: the largest values fit on, the logarithms do not.
        let mut points = synthetic((1.0, 1.0, 0.0), &SIZES[..4], 1, SILENT, 0);
        points[3].value *= 2.0;
        let [relative, absolute] = [Weighting::Relative, Weighting::Absolute].map(|weighting| {
            let way = FitWay { form: Variant::Pure, weighting, range: FitRange::All };
            way.fit(&points.iter().collect::<Vec<_>>()).alpha
        });
        assert!((absolute - 1.0).abs() < 0.1 && (relative - 1.0).abs() > 0.2, "{relative} {absolute}");
    }

    #[test]
    fn too_few_sizes_forecast_nothing() {
        assert_eq!(graded_forecasts(&synthetic((1.0, 0.5, 0.0), &SIZES[..3], 2, SILENT, 0)).unwrap(), []);
    }
}
