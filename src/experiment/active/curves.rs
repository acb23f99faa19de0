//! Numbers by which learning curves are compared, and their ratio. They are given by seed: what two strategies share cancels.

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
    pub(super) fn number(number: Spread) -> Self {
        Self { number: Some(number), why_not: None }
    }

    pub(super) fn none(why: impl Into<String>) -> Self {
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
}
