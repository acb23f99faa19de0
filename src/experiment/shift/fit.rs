//! Means over seeds, and a line through single runs.

use serde::{Deserialize, Serialize};

use crate::experiment::repeats::{SHARE, SeedMean};
use crate::measure::{Estimate, Interval, student_mean};

/// Values of several seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many there are.
    pub seeds: usize,
    /// Mean over them, in the unit of the values.
    pub mean: f64,
    /// Standard deviation, n − 1 below the bar; absent for one seed.
    pub std: Option<f64>,
    /// 95 % interval of the mean: Student's over seeds, and of what is measured on the test images, which all
    /// seeds share, over these in quadrature. Absent for one seed.
    pub interval: Option<Interval>,
}

/// A straight line through single runs: drop in accuracy over the size of the shift (BLC figure
/// 3f).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// What size is taken, and over which settings.
    pub over: String,
    /// Whether it is over exact joint KLs, not over KL_y.
    pub joint: bool,
    /// Size (nats) and drop (percentage points) of every run.
    pub points: Vec<[f64; 2]>,
    /// Percentage points a nat.
    pub slope: f64,
    /// Percentage points at no shift.
    pub intercept: f64,
    /// Share of the variance of the drop that the line explains, R².
    pub r2: f64,
}

impl Spread {
    /// Of one value a seed; none without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let (seeds, (mean, half)) = (values.len(), student_mean(values));
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (seeds as f64 - 1.0);
        let several = seeds > 1;
        let interval = Interval { low: mean - half, high: mean + half };
        Some(Self { seeds, mean, std: several.then(|| variance.sqrt()), interval: several.then_some(interval) })
    }

    /// Of one figure a seed, all measured on the same test images and within `range`, as [`SeedMean`];
    /// none without any.
    pub fn on_test_images(figures: &[Estimate], range: [f64; 2]) -> Option<Self> {
        let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
        Some(Self { interval: SeedMean::of(figures, range)?.interval, ..Self::of(&values)? })
    }

    /// With its interval cut to the range of the values.
    #[must_use]
    pub fn cut(self, range: [f64; 2]) -> Self {
        Self { interval: self.interval.map(|interval| interval.within(range)), ..self }
    }

    /// Of shares that are `hits` of `n` trials in all, no two seeds having any in common: [`Interval::no_less_than_counted`].
    #[must_use]
    pub fn counted(self, hits: usize, n: usize) -> Self {
        Self { interval: self.interval.map(|interval| interval.no_less_than_counted(hits, n)), ..self }.cut(SHARE)
    }

    /// With further distances of the lower and the upper end from the mean, in quadrature.
    #[must_use]
    pub fn widened(self, [down, up]: [f64; 2]) -> Self {
        let Self { mean, .. } = self;
        let wider =
            |i: Interval| Interval { low: mean - (mean - i.low).hypot(down), high: mean + (i.high - mean).hypot(up) };
        Self { interval: self.interval.map(wider), ..self }
    }
}

impl Fit {
    /// Least squares through (size, drop); none below three points, or where either does not vary.
    pub fn of(over: &str, joint: bool, points: Vec<[f64; 2]>) -> Option<Self> {
        let n = points.len() as f64;
        let mean = |at: usize| points.iter().map(|p| p[at]).sum::<f64>() / n;
        let means = [mean(0), mean(1)];
        let product = |a: usize, b: usize| points.iter().map(|p| (p[a] - means[a]) * (p[b] - means[b])).sum::<f64>();
        let (xx, xy, yy) = (product(0, 0), product(0, 1), product(1, 1));
        // Asked of the points themselves: the variance of equal numbers is 0 only up to rounding.
        let varies = |at: usize| points.iter().any(|p| p[at] != points[0][at]);
        if points.len() < 3 || !varies(0) || !varies(1) {
            return None;
        }
        let slope = xy / xx;
        let intercept = means[1] - slope * means[0];
        Some(Self { over: over.to_owned(), joint, points, slope, intercept, r2: xy * xy / (xx * yy) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::paper;
    use super::*;

    #[test]
    fn the_papers_numbers_give_the_papers_r_squared() {
        // Three runs of a mean and a standard deviation: mean − s, mean, mean + s. Table 8 so read
        // gives figure 3f's R² = 0.042; its ten means alone give 0.055: the paper fits runs, not
        // settings.
        let fit = |spread: f64| {
            let base = paper::ROWS[0].accuracy.0;
            let runs = paper::ROWS.iter().flat_map(|row| {
                let (mean, std) = row.accuracy;
                [-1.0, 0.0, 1.0].map(|at| [row.kl_y.0, base - mean - at * spread * std])
            });
            Fit::of("", false, runs.collect()).unwrap().r2
        };
        assert!((fit(1.0) - 0.042).abs() < 1e-3, "{}", fit(1.0));
        assert!((fit(0.0) - 0.055).abs() < 1e-3, "{}", fit(0.0));
        assert!(Fit::of("", false, vec![[0.1, 1.0], [0.1, 2.0], [0.1, 3.0]]).is_none());
        assert!(Fit::of("", false, vec![[0.1, 1.0], [0.2, 2.0]]).is_none());
        let line = Fit::of("", true, vec![[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]]).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.intercept - 1.0).abs() < 1e-12);
        assert!((line.r2 - 1.0).abs() < 1e-12);
    }
}
