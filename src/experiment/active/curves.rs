//! How learning curves are compared. Curves are given by seed: what two strategies share cancels.

use serde::{Deserialize, Serialize};

use crate::experiment::blocks::Difference;
use crate::experiment::repeats::{SeedGain, SeedMean};
use crate::measure::{Estimate, Interval, SHARE, student_mean};

/// A mean over seeds, with a 95 % interval: Student's over seeds unless stated; a single seed has none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean.
    pub value: f64,
    /// Its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

/// A number, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stated {
    /// The number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Spread>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// How many queries strategy A saves to reach strategy B at half its budget. Queries are labels
/// bought after the random start, which both have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saving {
    /// Labels half way between start and budget: the middle regime.
    pub middle: f64,
    /// What B's mean curve is there.
    pub target: f64,
    /// Labels at which A's mean curve first is as high, linear between rounds; absent where it
    /// never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<f64>,
    /// 1 − (reached − start)/(middle − start): below 0 where A needs more. The interval is the
    /// jackknife's over seeds, cut at 1; the error of the test images is not in it.
    pub saved: Stated,
}

impl Spread {
    /// Of one value a seed; none of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let (value, half) = student_mean(values);
        Some(Self::around(value, half))
    }

    /// Of a figure on the test images that all seeds have, one a seed: the interval is over both and cut to
    /// `range`.
    pub fn measured(figures: &[Estimate], range: [f64; 2]) -> Option<Self> {
        let SeedMean { value, interval, .. } = SeedMean::of(figures, range)?;
        Some(Self { value, interval })
    }

    /// Of differences on the same test images, one a seed: the interval is over both, over seeds alone where
    /// blocks are not known.
    pub fn paired(differences: &[Difference]) -> Option<Self> {
        let SeedGain { value, interval, .. } = SeedGain::paired(differences)?;
        Some(Self { value, interval })
    }

    fn around(value: f64, half: f64) -> Self {
        let interval = half.is_finite().then_some(Interval { low: value - half, high: value + half });
        Self { value, interval }
    }

    /// The opposite.
    #[must_use]
    pub fn negated(self) -> Self {
        let turned = |Interval { low, high }| Interval { low: -high, high: -low };
        Self { value: -self.value, interval: self.interval.map(turned) }
    }

    /// In another unit.
    pub fn scaled(self, factor: f64) -> Self {
        let interval = self.interval.map(|Interval { low, high }| Interval { low: factor * low, high: factor * high });
        Self { value: factor * self.value, interval }
    }

    /// The interval cut to where the number can lie.
    pub fn within(self, range: [f64; 2]) -> Self {
        Self { interval: self.interval.map(|interval| interval.within(range)), ..self }
    }

    /// Of shares, one a seed, that are these hits of these trials, no two seeds having any in common:
    /// [`Interval::no_less_than_counted`]. None without a seed.
    pub(super) fn counted(shares: &[(usize, usize)]) -> Option<Self> {
        let each: Vec<f64> = shares.iter().map(|(hits, n)| *hits as f64 / (*n).max(1) as f64).collect();
        let (hits, n) = shares.iter().fold((0, 0), |(hits, n), one| (hits + one.0, n + one.1));
        let Self { value, interval } = Self::of(&each)?.within(SHARE);
        Some(Self { value, interval: interval.map(|interval| interval.no_less_than_counted(hits, n)) })
    }
}

impl Stated {
    fn number(number: Spread) -> Self {
        Self { number: Some(number), why_not: None }
    }

    fn none(why: impl Into<String>) -> Self {
        Self { number: None, why_not: Some(why.into()) }
    }

    /// mean a / mean b of differences paired by seed, with the interval of Fieller (1954): all ρ for
    /// which mean(a − ρb) = 0 is not rejected, by Student's test over seeds, whose half width has that
    /// over test images added in quadrature where blocks are known. It is bounded only where the interval
    /// of mean b does not hold 0; otherwise there is no ratio.
    pub fn ratio(a: &[Difference], b: &[Difference]) -> Self {
        let (Some(above), Some(below)) = (Spread::paired(a), Spread::paired(b)) else {
            return Self::none("no seed has both");
        };
        if below.value == 0.0 || below.interval.is_some_and(|interval| interval.contains(0.0)) {
            return Self::none("the 95 % interval of the denominator holds 0");
        }
        let value = above.value / below.value;
        if below.interval.is_none() {
            return Self::number(Spread { value, interval: None });
        }
        // Squared half widths are sums of t²/n times variances, of seeds and of images; those of sum
        // and difference give the covariance.
        let square = |all: &[Difference]| {
            let half = Spread::paired(all).and_then(|all| Some(all.interval?.high - all.value));
            half.unwrap_or(f64::INFINITY).powi(2)
        };
        let paired = |sign: f64| square(&a.iter().zip(b).map(|(a, b)| a.plus(sign, b)).collect::<Vec<_>>());
        let (of_a, of_b, both) = (square(a), square(b), (paired(1.0) - paired(-1.0)) / 4.0);
        // (ā − ρb̄)² ≤ A − 2ρC + ρ²B, a quadratic in ρ.
        let (second, first) = (below.value.powi(2) - of_b, above.value * below.value - both);
        let discriminant = first.powi(2) - second * (above.value.powi(2) - of_a);
        let root = discriminant.max(0.0).sqrt();
        let [low, high] = [(first - root) / second, (first + root) / second];
        Self::number(Spread { value, interval: Some(Interval { low: low.min(value), high: high.max(value) }) })
    }
}

/// Labels and a figure at each, labels rising.
type Line = [(f64, f64)];

/// The smallest place at which a line is at least as high as `target`.
fn first_reaches(line: &Line, target: f64) -> Option<f64> {
    let start = line.first().filter(|(_, y)| *y >= target).map(|(x, _)| *x);
    let crossing = |pair: &[(f64, f64)]| {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        (y0 < target && y1 >= target).then(|| x0 + (x1 - x0) * (target - y0) / (y1 - y0))
    };
    start.or_else(|| line.windows(2).find_map(crossing))
}

/// The height of a line at a place between its ends.
fn height(line: &Line, at: f64) -> Option<f64> {
    let between = |pair: &[(f64, f64)]| {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        (x0..=x1).contains(&at).then(|| if x1 > x0 { y0 + (y1 - y0) * (at - x0) / (x1 - x0) } else { y0 })
    };
    line.windows(2).find_map(between)
}

/// The mean over some seeds of curves [seed][round] at `labels`.
fn mean_curve(labels: &[f64], curves: &[Vec<f64>], seeds: &[usize]) -> Vec<(f64, f64)> {
    let mean = |round: usize| seeds.iter().map(|&seed| curves[seed][round]).sum::<f64>() / seeds.len().max(1) as f64;
    labels.iter().enumerate().map(|(round, &labels)| (labels, mean(round))).collect()
}

/// A saving without its interval.
struct Point {
    middle: f64,
    target: f64,
    reached: Option<f64>,
    saved: Result<f64, &'static str>,
}

/// The saving of the mean curves over some seeds.
fn saving(labels: &[f64], [a, b]: [&[Vec<f64>]; 2], seeds: &[usize]) -> Option<Point> {
    let (start, budget) = (*labels.first()?, *labels.last()?);
    let middle = (start + budget) / 2.0;
    let [a, b] = [a, b].map(|curves| mean_curve(labels, curves, seeds));
    let target = height(&b, middle)?;
    if target <= b.first()?.1 {
        let saved = Err("half the budget brought the other strategy nothing");
        return Some(Point { middle, target, reached: None, saved });
    }
    let reached = first_reaches(&a, target);
    let share = |reached: f64| 1.0 - (reached - start) / (middle - start);
    Some(Point { middle, target, reached, saved: reached.map(share).ok_or("not reached within the budget") })
}

impl Saving {
    /// Compares curves A and B by seed, [seed][round], paired, at `labels` of each round. `None`
    /// without a seed or a second round.
    pub fn of(labels: &[f64], a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<Self> {
        let all: Vec<usize> = (0..a.len().min(b.len())).collect();
        if all.is_empty() {
            return None;
        }
        let Point { middle, target, reached, saved } = saving(labels, [a, b], &all)?;
        let saved = match saved {
            Err(why) => Stated::none(why),
            Ok(value) => {
                // Tukey's pseudo-values; no interval where there is no saving without some seed.
                let n = all.len() as f64;
                let pseudo = |&left_out: &usize| {
                    let others: Vec<usize> = all.iter().copied().filter(|seed| *seed != left_out).collect();
                    let without = saving(labels, [a, b], &others)?.saved.ok()?;
                    Some(n * value - (n - 1.0) * without)
                };
                let values: Option<Vec<f64>> = (all.len() > 1).then(|| all.iter().map(pseudo).collect()).flatten();
                let half = values.map_or(f64::INFINITY, |values| student_mean(&values).1);
                // A cannot have the target before the start, where it has bought nothing.
                Stated::number(Spread::around(value, half).within([f64::NEG_INFINITY, 1.0]))
            }
        };
        Some(Self { middle, target, reached, saved })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_has_no_interval_and_none_has_nothing() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[2.0]), Some(Spread { value: 2.0, interval: None }));
        let three = Spread::of(&[1.0, 2.0, 3.0]).unwrap();
        // t of 2 degrees of freedom is 4.302653.
        let half = 4.302_652_73 / 3f64.sqrt();
        assert!((three.interval.unwrap().high - 2.0 - half).abs() < 1e-7);
        let cut = three.scaled(100.0).within([0.0, 300.0]);
        assert_eq!((cut.value, cut.interval.unwrap()), (200.0, Interval { low: 0.0, high: 300.0 }));
    }

    fn bare(values: &[f64]) -> Vec<Difference> {
        values.iter().copied().map(Difference::bare).collect()
    }

    fn ratio(a: &[f64], b: &[f64]) -> Stated {
        Stated::ratio(&bare(a), &bare(b))
    }

    #[test]
    fn a_ratios_interval_holds_what_students_test_does_not_reject() {
        let (a, b) = ([0.30, 0.36, 0.33, 0.31], [0.20, 0.22, 0.19, 0.21]);
        let found = ratio(&a, &b).number.unwrap();
        assert!((found.value - 1.3 / 0.82).abs() < 1e-12);
        let interval = found.interval.unwrap();
        for (rho, inside) in [(interval.low, true), (interval.high, true), (found.value, true)] {
            let rest: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - rho * b).collect();
            let (mean, half) = student_mean(&rest);
            assert_eq!(mean.abs() <= half * (1.0 + 1e-9), inside);
            // The ends are where the test is at its limit.
            assert!(rho == found.value || (mean.abs() / half - 1.0).abs() < 1e-9, "{rho}: {mean} ± {half}");
        }
        // The same multiple in every seed: no doubt is left.
        let exact = ratio(&b.map(|b| 1.6 * b), &b).number.unwrap().interval.unwrap();
        assert!((exact.low - 1.6).abs() < 1e-6 && (exact.high - 1.6).abs() < 1e-6, "{exact:?}");
    }

    #[test]
    fn a_ratio_to_what_may_be_nothing_is_none() {
        let none = ratio(&[0.3, 0.3, 0.3], &[-0.1, 0.1, 0.2]);
        assert!(none.number.is_none() && none.why_not.unwrap().contains("holds 0"));
        assert!(ratio(&[0.3], &[0.0]).number.is_none() && ratio(&[], &[]).number.is_none());
        assert_eq!(ratio(&[0.3], &[0.2]).number.unwrap().interval, None);
    }

    const LABELS: [f64; 5] = [100.0, 200.0, 300.0, 400.0, 500.0];

    /// The saving of a single seed.
    fn saving_of(a: &[f64], b: &[f64]) -> Saving {
        Saving::of(&LABELS, &[a.to_vec()], &[b.to_vec()]).unwrap()
    }

    #[test]
    fn queries_saved_on_curves_of_known_shape() {
        // B rises evenly to 0.9; at 300 labels it is 0.7. A is there at 150 labels: 50 queries for
        // 200.
        let (a, b) = (vec![0.5, 0.9, 0.9, 0.9, 0.9], vec![0.5, 0.6, 0.7, 0.8, 0.9]);
        let saving = saving_of(&a, &b);
        assert_eq!((saving.middle, saving.target, saving.reached), (300.0, 0.7, Some(150.0)));
        let saved = saving.saved.number.unwrap();
        assert!((saved.value - 0.75).abs() < 1e-12 && saved.interval.is_none());
        // The other way round B needs 400 queries for A's 0.9 of half its budget: 100 % more.
        let back = saving_of(&b, &a);
        assert!((back.saved.number.unwrap().value + 1.0).abs() < 1e-12);
        // Itself: nothing is saved.
        assert_eq!(saving_of(&b, &b).saved.number.unwrap().value, 0.0);
    }

    #[test]
    fn a_dip_before_the_rise_counts_from_where_the_curve_first_is_high_enough() {
        let line: Vec<(f64, f64)> = LABELS.into_iter().zip([0.5, 0.4, 0.8, 0.6, 0.9]).collect();
        assert_eq!(first_reaches(&line, 0.6), Some(250.0));
        assert_eq!((first_reaches(&line, 0.5), first_reaches(&line, 0.95)), (Some(100.0), None));
        assert_eq!((height(&line, 350.0), height(&line, 99.0)), (Some(0.7), None));
    }

    #[test]
    fn a_saving_that_does_not_exist_says_why() {
        let (low, high) = (vec![0.5; 5], vec![0.5, 0.6, 0.7, 0.8, 0.9]);
        let never = saving_of(&low, &high);
        assert!(never.reached.is_none() && never.saved.why_not.unwrap().contains("not reached"));
        let nothing = saving_of(&high, &low);
        assert!(nothing.saved.why_not.unwrap().contains("brought the other strategy nothing"));
        assert_eq!(Saving::of(&LABELS, &[], &[]), None);
        assert_eq!(Saving::of(&[100.0], &[vec![0.5]], &[vec![0.5]]), None);
    }

    #[test]
    fn the_jackknifes_interval_of_a_saving_that_is_a_mean_is_students() {
        // B is the same in every seed. A reaches 0.7 within its first step, where the inverse of
        // its height is averaged. The heights are so near that the pseudo-values are linear in
        // them: the jackknife is Student's interval of their image.
        let b = vec![0.5, 0.6, 0.7, 0.8, 0.9];
        let heights = [0.8999, 0.9000, 0.9001];
        let a: Vec<Vec<f64>> = heights.iter().map(|h| vec![0.5, *h, 0.9, 0.9, 0.9]).collect();
        let saved = Saving::of(&LABELS, &a, &[b.clone(), b.clone(), b]).unwrap().saved.number.unwrap();
        let of_height: Vec<f64> = heights.iter().map(|h| 1.0 - 100.0 * 0.2 / (h - 0.5) / 200.0).collect();
        let (mean, half) = student_mean(&of_height);
        let found = saved.interval.unwrap();
        assert!((saved.value - mean).abs() < 1e-6, "{} {mean}", saved.value);
        assert!(((found.high - found.low) / 2.0 / half - 1.0).abs() < 1e-3, "{found:?} {half}");
    }

    #[test]
    fn no_more_than_all_queries_are_saved() {
        let b = vec![0.5, 0.6, 0.7, 0.8, 0.9];
        let a = [0.9, 0.6].map(|height| vec![0.5, height, 0.9, 0.9, 0.9]).to_vec();
        let saved = Saving::of(&LABELS, &a, &[b.clone(), b]).unwrap().saved.number.unwrap();
        let Interval { low, high } = saved.interval.unwrap();
        assert!(low < 0.0 && saved.value < 1.0 && high == 1.0, "{saved:?}");
    }
}
