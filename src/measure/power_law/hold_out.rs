//! Tests a law on the largest N: fits it without, and compares its forecast with the runs there.
//!
//! Forecast and outcome are measured on the same test images, whose deviation is in both. So the
//! forecast's interval is conditional on the images, and holds the doubt about the curve and its form
//! (`forms`), a new size, and the averaged runs. Where the images' values are known, each replicate draws them anew
//! for both, and the rest that does not cancel counts; otherwise all is taken to cancel. Seeds
//! count as new, which is wider where they are those of the fit.

use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::points::{LARGEST_LOG, plain};
use super::{Comparison, Curve, Point, TestImages, compare};
use crate::error::{Error, Result};
use crate::measure::bootstrap::quantile;
use crate::measure::interval::{Estimate, Interval, student_mean};
use crate::stats::Z95;
use crate::units::Seed;

/// A forecast whose ends are a factor of this apart, ten on each side, is met by any value that anyone
/// expects: that what came lies in it is no test.
const WIDEST: f64 = 100.0;

/// The forecast of a law for an N that it was not fitted to, and what came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldOut {
    /// The largest N that was run: held out.
    pub n: f64,
    /// Smallest and largest N that the law was fitted to.
    pub fitted: [f64; 2],
    /// Runs at `n`.
    pub runs: usize,
    /// The law that the smaller N prefer.
    pub curve: Curve,
    /// Its value at `n`, with the 95 % prediction interval for the geometric mean of `runs`.
    pub forecast: Estimate,
    /// Geometric mean of the runs at `n`. Its 95 % interval: over runs (Student; of one run nothing
    /// is known) and over test images, added in quadrature.
    pub came: Estimate,
    /// Whether `came` lies in the interval of the forecast; no test where that
    /// [is too uncertain](Self::is_too_uncertain).
    pub holds: bool,
    /// The same in words.
    pub sentence: String,
}

/// Fits the law that [`compare`] prefers without the largest N, and forecasts the points there.
///
/// # Errors
/// When fewer than three N are left, `images` are of other points, or as [`compare`].
pub fn hold_out(points: &[Point], images: Option<&TestImages>, seed: Seed) -> Result<HoldOut> {
    if images.is_some_and(|images| images.points() != points.len()) {
        return Err(Error::input("test images of other points"));
    }
    let n = points.iter().map(|point| point.n).fold(0.0, f64::max);
    let (held, rest): (Vec<Point>, Vec<Point>) = points.iter().partition(|point| point.n >= n);
    // One error of all points is in both, and no doubt about the one given the other.
    let rest: Vec<Point> = rest.into_iter().map(|point| Point { error: 0.0, ..point }).collect();
    let of = |largest: bool| {
        let kept: Vec<bool> = points.iter().map(|point| (point.n >= n) == largest).collect();
        images.map(|images| images.of_points(&kept))
    };
    let (images_of_rest, moves) = (of(false), of(true).map(|images| images.means()));
    let fits = compare(&rest, images_of_rest.as_ref(), seed);
    let fits = fits.map_err(|e| Error::input(format!("no law without the largest N: {e}")))?;
    let law = fits.law();
    let forecast = forecast(&fits, n, held.len(), moves.as_deref(), seed);
    let came = mean_of(&held, moves.as_deref());
    let mut found = HoldOut {
        n,
        fitted: [law.smallest(), law.largest()],
        runs: held.len(),
        curve: law.curve,
        forecast,
        came,
        holds: forecast.interval.contains(came.value),
        sentence: String::new(),
    };
    found.sentence = found.words();
    Ok(found)
}

/// The curve at `n`, with the interval for the mean log value of runs on images moved by `moves`.
fn forecast(fits: &Comparison, n: f64, runs: usize, moves: Option<&[f64]>, seed: Seed) -> Estimate {
    let (seed, x) = (seed.split("runs held out"), n.ln());
    let draw = |(i, replicate): (usize, &super::Replicate)| {
        let rng = &mut seed.rng(i as u64);
        let mut normal = |width: f64| width * Distribution::<f64>::sample(&StandardNormal, rng);
        let widths = replicate.widths;
        // What moves the curve and what came alike is no doubt about the one given the other.
        replicate.curve.log_value(x) - moves.map_or(0.0, |moves| moves[i % moves.len()])
            + normal(widths.size)
            + normal(widths.seed.hypot(widths.run) / (runs as f64).sqrt())
    };
    let mut draws: Vec<f64> = fits.drawn().iter().enumerate().map(draw).collect();
    draws.sort_unstable_by(f64::total_cmp);
    let end = |level: f64| quantile(&draws, level).min(LARGEST_LOG).exp();
    Estimate::new(fits.law().value(n), Interval { low: end(0.025), high: end(0.975) })
}

/// Geometric mean of runs at one N, which each replicate's images move by `moves`.
fn mean_of(held: &[Point], moves: Option<&[f64]>) -> Estimate {
    let logs: Vec<f64> = held.iter().map(|point| point.value.ln()).collect();
    let (mean, half) = student_mean(&logs);
    let common = held.iter().map(|point| point.error).sum::<f64>() / held.len().max(1) as f64;
    let images = Z95 * moves.map_or(common, deviation);
    let half = if half.is_finite() { half.hypot(images) } else { images };
    Estimate::new(mean.exp(), Interval { low: (mean - half).exp(), high: (mean + half).exp() })
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt()
}

impl HoldOut {
    /// Whether what came lies in an interval so wide, a factor of 100 or more, that nearly anything would.
    pub fn is_too_uncertain(&self) -> bool {
        let Interval { low, high } = self.forecast.interval;
        self.holds && high >= WIDEST * low
    }

    /// The law at `points` N from its smallest to the held-out one, evenly in log N.
    pub fn course(&self, points: usize) -> impl Iterator<Item = [f64; 2]> {
        let (first, steps) = (self.fitted[0], points.saturating_sub(1).max(1) as f64);
        (0..points).map(move |i| {
            let n = first * (self.n / first).powf(i as f64 / steps);
            [n, self.curve.log_value(n.ln()).exp()]
        })
    }

    fn words(&self) -> String {
        let Self { n, fitted: [first, last], forecast, came, .. } = self;
        let within = |e: &Estimate| {
            format!("{} (95 %: {} to {})", plain(e.value), plain(e.interval.low), plain(e.interval.high))
        };
        let verdict = match (self.holds, came.value < forecast.value) {
            (true, _) if self.is_too_uncertain() => "within a forecast that is too uncertain to test the law",
            (true, _) => "within the forecast",
            (false, true) => "below the forecast: the values fall faster than this law",
            (false, false) => "above the forecast: the values fall more slowly than this law",
        };
        let runs = if self.runs == 1 { "one run".to_owned() } else { format!("the mean of {} runs", self.runs) };
        format!(
            "Held out N = {n}: the law fitted over N = {first} to {last} forecasts {} for {runs} on the same test images; {} came, {verdict}.",
            within(forecast),
            within(came)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Noise, SILENT, SIZES, synthetic};
    use super::*;

    /// Points with a scatter of runs of 1 % and one common factor; those of the largest N times
    /// another.
    fn points(law: (f64, f64, f64), last: f64, draw: u64) -> Vec<Point> {
        let changed = |p: Point| {
            let factor = 1.05 * if p.n >= SIZES[7] { last } else { 1.0 };
            Point { value: factor * p.value, error: 0.025, ..p }
        };
        synthetic(law, &SIZES, 3, Noise { run: 0.01, ..SILENT }, draw).into_iter().map(changed).collect()
    }

    #[test]
    fn a_law_that_goes_on_is_held_and_its_forecast_is_exact() {
        let exact = hold_out(&synthetic((1.0, 0.5, 0.02), &SIZES, 3, SILENT, 0), None, Seed(0)).unwrap();
        assert!((exact.forecast.value / exact.came.value - 1.0).abs() < 1e-6);
        assert_eq!((exact.n, exact.fitted, exact.runs), (45_000.0, [100.0, 10_000.0], 3));
        let trials = 200;
        let held =
            (0..trials).filter(|&draw| hold_out(&points((1.0, 0.3, 0.0), 1.0, draw), None, Seed(draw)).unwrap().holds);
        let share = held.count() as f64 / trials as f64;
        println!("held {share}");
        // Half of the curves may have a floor that the truth has not: more than 95 % are held.
        assert!(share >= 0.88, "{share}");
    }

    #[test]
    fn an_asymptote_that_is_passed_is_seen() {
        // As the audit found: the values fall on below the floor that the smaller N suggest.
        let found = hold_out(&points((1.0, 0.8, 0.05), 0.85, 1), None, Seed(1)).unwrap();
        assert!(!found.holds && found.came.value < found.forecast.interval.low, "{found:?}");
        assert!(found.sentence.contains("N = 100 to 10000") && found.sentence.contains("below the forecast"));
        // The images' error widens what came, and is no excuse for a forecast on the same images.
        assert!(found.came.interval.log_error(found.came.value) > 0.025);
        let above = hold_out(&points((1.0, 0.3, 0.0), 1.2, 1), None, Seed(1)).unwrap();
        assert!(!above.holds && above.sentence.contains("above the forecast"), "{}", above.sentence);
    }

    #[test]
    fn three_sizes_are_too_few_to_hold_one_out() {
        let three = synthetic((1.0, 0.5, 0.0), &SIZES[..3], 2, SILENT, 0);
        assert!(hold_out(&three, None, Seed(0)).unwrap_err().to_string().contains("without the largest N"));
    }

    #[test]
    fn a_forecast_of_anything_is_no_test() {
        let of = |points: &[Point], draw| hold_out(points, None, Seed(draw)).unwrap();
        let wild = |draw| of(&synthetic((1.0, 0.5, 0.0), &SIZES[..4], 1, Noise { run: 1.0, ..SILENT }, draw), draw);
        let found = (0..10).map(wild).filter(HoldOut::is_too_uncertain).collect::<Vec<_>>();
        assert!(found.len() >= 5 && found.iter().all(|held| held.sentence.contains("too uncertain to test")));
        assert!((0..10).all(|draw| !of(&points((1.0, 0.3, 0.0), 1.0, draw), draw).is_too_uncertain()));
    }
}
