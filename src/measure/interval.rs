//! A number with its 95 % interval. (`bayes::Figure` is its sister for Bayes errors, in a room beside this one, which may not
//! be entered from here.)

use serde::{Deserialize, Serialize};
use statrs::function::gamma::ln_gamma;

use crate::stats::{Z95, mean_and_error, student_95};

/// Range of accuracies, errors and calibration errors.
pub const SHARE: [f64; 2] = [0.0, 1.0];
/// Range of divergences, nats, and of whatever is not below 0.
pub const NATS: [f64; 2] = [0.0, f64::INFINITY];
/// Range of differences of what has no bound.
pub const UNBOUNDED: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

/// A 95 % interval, in the unit of the number it belongs to. In files it is `[low, high]`, as every interval there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "(f64, f64)", from = "Stored")]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How files have an interval.
#[derive(Deserialize)]
#[serde(untagged, expecting = "an interval is [low, high]")]
enum Stored {
    Pair(f64, f64),
    /// In files of older versions: cells, exports, oracles and the examples that come with the program.
    Former {
        low: f64,
        high: f64,
    },
}

impl From<Stored> for Interval {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Pair(low, high) | Stored::Former { low, high } => Self { low, high },
        }
    }
}

impl From<Interval> for (f64, f64) {
    fn from(Interval { low, high }: Interval) -> Self {
        (low, high)
    }
}

impl Interval {
    /// Returns whether `x` lies inside; the ends belong to it.
    pub fn contains(&self, x: f64) -> bool {
        (self.low..=self.high).contains(&x)
    }

    /// Cut to where the number can lie.
    #[must_use]
    pub fn within(self, [least, most]: [f64; 2]) -> Self {
        Self { low: self.low.max(least), high: self.high.min(most) }
    }

    /// No less than Wilson's interval of `hits` of `n` trials: a spread over a few groups of trials has no width where they
    /// agree by chance.
    #[must_use]
    pub fn no_less_than_counted(self, hits: usize, n: usize) -> Self {
        let counted = wilson(hits, n);
        Self { low: self.low.min(counted.low), high: self.high.max(counted.high) }
    }

    /// The standard error of log `value` that its 95 % interval implies: half the width in logs
    /// where both ends are positive, otherwise relative to the value; 0 of a value ≤ 0.
    pub fn log_error(&self, value: f64) -> f64 {
        let width = if self.low > 0.0 { (self.high / self.low).ln() } else { (self.high - self.low) / value };
        if value > 0.0 && width.is_finite() { width.max(0.0) / (2.0 * Z95) } else { 0.0 }
    }
}

/// A number with its 95 % interval, which holds the number itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its 95 % interval.
    pub interval: Interval,
}

impl Estimate {
    /// A number and its interval, widened to hold the number despite chance and rounding.
    pub(super) fn new(value: f64, interval: Interval) -> Self {
        Self { value, interval: Interval { low: interval.low.min(value), high: interval.high.max(value) } }
    }

    /// `hits` of `n` with their Wilson interval.
    pub fn proportion(hits: usize, n: usize) -> Self {
        Self::new(hits as f64 / n.max(1) as f64, wilson(hits, n))
    }

    /// `hits` of `n` with their Clopper-Pearson interval, for a claim that must hold.
    pub fn exact_proportion(hits: usize, n: usize) -> Self {
        Self::new(hits as f64 / n.max(1) as f64, clopper_pearson(hits, n))
    }

    /// This number with the other sign: a difference the other way round.
    #[must_use]
    pub fn negated(self) -> Self {
        // Not −0.0 of 0.
        let negated = |number: f64| 0.0 - number;
        let Interval { low, high } = self.interval;
        Self { value: negated(self.value), interval: Interval { low: negated(high), high: negated(low) } }
    }

    /// One minus this number, e.g. the error of an accuracy.
    #[must_use]
    pub fn complement(self) -> Self {
        Self {
            value: 1.0 - self.value,
            interval: Interval { low: 1.0 - self.interval.high, high: 1.0 - self.interval.low },
        }
    }
}

/// Wilson's score interval of a proportion: `hits` of `n` independent trials (Wilson 1927). Unlike
/// a bootstrap it does not shrink to a point where all trials agree, which accurate classifiers and
/// small bins do. All of [0, 1] for n = 0.
pub fn wilson(hits: usize, n: usize) -> Interval {
    if n == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let (count, share) = (n as f64, hits.min(n) as f64 / n as f64);
    let z2 = Z95 * Z95 / count;
    let centre = share + z2 / 2.0;
    let half = Z95 * (share * (1.0 - share) / count + z2 / (4.0 * count)).sqrt();
    let end = |x: f64| (x / (1.0 + z2)).clamp(0.0, 1.0);
    // Both ends are exact at the edges, where rounding would leave 1e-18.
    let low = if hits == 0 { 0.0 } else { end(centre - half) };
    let high = if hits >= n { 1.0 } else { end(centre + half) };
    Interval { low, high }
}

/// The exact interval of a proportion (Clopper & Pearson 1934): it holds the truth in at least 95 %
/// of all cases whatever `n` and the truth are, and each end is missed in at most 2.5 %. Wilson's
/// is narrower, and holds it in about 95 %. All of [0, 1] for n = 0.
pub fn clopper_pearson(hits: usize, n: usize) -> Interval {
    let hits = hits.min(n);
    Interval { low: 1.0 - largest_share(n - hits, n), high: largest_share(hits, n) }
}

/// The share p at which `hits` of `n` or fewer have probability 2.5 %.
fn largest_share(hits: usize, n: usize) -> f64 {
    if hits == n {
        return 1.0;
    }
    let (mut low, mut high) = (hits as f64 / n as f64, 1.0);
    // Each step gives a bit.
    for _ in 0..f64::MANTISSA_DIGITS {
        let middle = 0.5 * (low + high);
        if at_most(hits, n, middle) > 0.025 { low = middle } else { high = middle }
    }
    high
}

/// The score interval of the `area` under the ROC curve of so many positives and negatives (Newcombe 2006, Stat. Med.
/// 25:559, method 5): the areas θ that are within 1.96 of their own standard errors, by the variance of Hanley & McNeil
/// (1982), θ(1 − θ)(1 + (s − 1)((1 − θ)/(2 − θ) + θ/(1 + θ)))/(mn), s = (m + n)/2. Where every positive is above every
/// negative it keeps a width, which a bootstrap does not. All of [0, 1] without one of either.
fn newcombe(area: f64, positives: usize, negatives: usize) -> Interval {
    let (m, n) = (positives as f64, negatives as f64);
    if positives == 0 || negatives == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let more = (m + n) / 2.0 - 1.0;
    let variance = |t: f64| t * (1.0 - t) * (1.0 + more * ((1.0 - t) / (2.0 - t) + t / (1.0 + t))) / (m * n);
    let holds = |t: f64| (area - t).powi(2) <= Z95 * Z95 * variance(t);
    // The end between the area and an edge of [0, 1]; each step gives a bit.
    let end = |edge: f64| {
        let (mut inside, mut outside) = (area, edge);
        for _ in 0..f64::MANTISSA_DIGITS {
            let middle = 0.5 * (inside + outside);
            if holds(middle) { inside = middle } else { outside = middle }
        }
        inside
    };
    Interval { low: end(0.0), high: end(1.0) }
}

/// The interval of an area under the ROC curve, wide enough to hold the score interval ([`newcombe`]).
pub(super) fn with_score(Estimate { value, interval }: Estimate, positives: usize, negatives: usize) -> Estimate {
    let score = newcombe(value, positives, negatives);
    let interval = Interval { low: interval.low.min(score.low), high: interval.high.max(score.high) };
    Estimate::new(value, interval)
}

/// P(X ≤ hits) of a binomial X of `n` trials with probability `p` ≥ hits/n, 0 < p < 1: a sum whose
/// terms fall from the last one on.
fn at_most(hits: usize, n: usize, p: f64) -> f64 {
    let (k, all) = (hits as f64, n as f64);
    let choices = ln_gamma(all + 1.0) - ln_gamma(k + 1.0) - ln_gamma(all - k + 1.0);
    let last = (choices + k * p.ln() + (all - k) * (-p).ln_1p()).exp();
    let (mut term, mut sum) = (1.0, 0.0);
    for k in (0..=hits).rev() {
        sum += term;
        term *= k as f64 / (n - k + 1) as f64 * (1.0 - p) / p;
        if term < f64::EPSILON * sum {
            break;
        }
    }
    last * sum
}

/// Mean of independent values and half the width of Student's 95 % interval, t s/√n. The half width of fewer than two values
/// is infinite.
pub fn student_mean(values: &[f64]) -> (f64, f64) {
    let (mean, error) = mean_and_error(values);
    (mean, student_half(error, values.len()))
}

/// Half the width of Student's 95 % interval of a mean of `n` independent values with such a standard error. Infinite for
/// fewer than two, whatever error was written for them.
pub fn student_half(std_error: f64, n: usize) -> f64 {
    if n < 2 { f64::INFINITY } else { std_error * student_95(n - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_students_interval() {
        // t of 2 degrees of freedom is 4.302653; s = 1 of 1, 2, 3.
        let (value, half) = student_mean(&[1.0, 2.0, 3.0]);
        assert!((value - 2.0).abs() < 1e-15 && (half - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-7, "{half}");
        assert_eq!(student_mean(&[2.0]), (2.0, f64::INFINITY));
        // s/√n of these three is 1/√3.
        assert!((student_half(3f64.sqrt().recip(), 3) - half).abs() < 1e-12);
        assert_eq!([0, 1].map(|n| student_half(0.0, n)), [f64::INFINITY; 2]);
    }

    #[test]
    fn wilson_gives_the_published_values() {
        // Newcombe 1998, table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (hits, n, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let interval = wilson(hits, n);
            assert!(
                (interval.low - low).abs() < 5e-5 && (interval.high - high).abs() < 5e-5,
                "{hits}/{n} {interval:?}"
            );
        }
        assert_eq!(wilson(0, 0), Interval { low: 0.0, high: 1.0 });
        assert_eq!(wilson(7, 7).high, 1.0);
    }

    #[test]
    fn clopper_and_pearson_give_the_published_values() {
        // Newcombe 1998, table I, method 5.
        for (hits, n, low, high) in
            [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)]
        {
            let Interval { low: from, high: to } = clopper_pearson(hits, n);
            assert!((from - low).abs() < 5e-5 && (to - high).abs() < 5e-5, "{hits}/{n} {from} {to}");
        }
        assert_eq!(clopper_pearson(0, 0), Interval { low: 0.0, high: 1.0 });
        // No hit in n: (1 - p)^n = 2.5 %.
        let none = clopper_pearson(0, 60_000);
        assert!(none.low == 0.0 && (none.high / (1.0 - 0.025_f64.powf(1.0 / 60_000.0)) - 1.0).abs() < 1e-6);
        // Wider than Wilson's above, where a bound must hold.
        assert!(clopper_pearson(245, 10_000).high > wilson(245, 10_000).high);
    }

    #[test]
    fn the_interval_of_an_area_is_where_the_score_test_does_not_reject() {
        // m = n = 2, s − 1 = 1: at area 1 the low end solves 1 − θ = z²θ(1 + (1 − θ)/(2 − θ) + θ/(1 + θ))/4.
        let end = newcombe(1.0, 2, 2);
        let t = end.low;
        let right = Z95 * Z95 * t * (1.0 + (1.0 - t) / (2.0 - t) + t / (1.0 + t)) / 4.0;
        assert!((1.0 - t - right).abs() < 1e-12 && end.high == 1.0, "{end:?}");
        // Turned over, and as a normal interval of many: at ½ the variance is (1 + (s − 1)·⅔)/(4mn).
        let (over, under) = (newcombe(0.9, 7, 30), newcombe(0.1, 7, 30));
        assert!((over.low - (1.0 - under.high)).abs() < 1e-12 && (over.high - (1.0 - under.low)).abs() < 1e-12);
        let half = newcombe(0.5, 3000, 5000);
        let error = ((1.0 + 3999.0 * 2.0 / 3.0) / (4.0 * 1.5e7f64)).sqrt();
        assert!(((half.high - half.low) / (2.0 * Z95 * error) - 1.0).abs() < 1e-3, "{half:?}");
        assert_eq!(newcombe(1.0, 0, 5), Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn a_file_has_the_ends_as_a_pair_and_those_of_earlier_versions_are_read() {
        let estimate = Estimate { value: 1.0, interval: Interval { low: -0.5, high: 2.0 } };
        let written = serde_json::to_string(&estimate).unwrap();
        assert_eq!(written, r#"{"value":1.0,"interval":[-0.5,2.0]}"#);
        // Whole numbers are numbers as well.
        for stored in
            [&written, r#"{"value":1,"interval":[-0.5,2]}"#, r#"{"value":1.0,"interval":{"low":-0.5,"high":2}}"#]
        {
            assert_eq!(serde_json::from_str::<Estimate>(stored).unwrap(), estimate, "{stored}");
        }
        for damaged in ["[1.0]", "[1.0,2.0,3.0]", r#"{"low":1.0}"#, "[null,1.0]", "1.0"] {
            assert!(serde_json::from_str::<Interval>(damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn an_interval_gives_back_its_error() {
        let of = |low, high| Interval { low, high };
        let (value, error) = (0.4_f64, 0.025_f64);
        let interval = of(value * (-Z95 * error).exp(), value * (Z95 * error).exp());
        assert!((interval.log_error(value) - error).abs() < 1e-12);
        assert!((of(0.0, 2.0 * Z95).log_error(2.0) - 0.5).abs() < 1e-12);
        assert_eq!((of(0.0, 1.0).log_error(0.0), of(1.0, 1.0).log_error(1.0)), (0.0, 0.0));
    }

    #[test]
    fn the_error_mirrors_the_accuracy() {
        let (accuracy, error) = (Estimate::proportion(3, 10), Estimate::proportion(7, 10));
        let mirrored = accuracy.complement();
        assert!((mirrored.value - error.value).abs() < 1e-15);
        assert!((mirrored.interval.low - error.interval.low).abs() < 1e-15);
        assert!((mirrored.interval.high - error.interval.high).abs() < 1e-15);
    }
}
