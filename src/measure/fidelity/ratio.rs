//! The ratio of two positive means of independent sets, with its interval.

use crate::measure::{Estimate, Interval};
use crate::stats::student_95;

/// A positive mean, the variance of that mean (not of its terms), and how many terms it is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Positive {
    pub value: f64,
    pub variance: f64,
    pub n: usize,
}

impl Positive {
    /// The mean of independent `terms`, and s²/n; `None` below three terms.
    pub fn mean(terms: &[f64]) -> Option<Self> {
        if terms.len() < 3 {
            return None;
        }
        let (count, n) = (terms.len(), terms.len() as f64);
        let value = terms.iter().sum::<f64>() / n;
        let spread = terms.iter().map(|t| (t - value).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Self { value, variance: spread / n, n: count })
    }

    /// This over `other`, with the 95 % interval of its logarithm by the delta method: var log r =
    /// var a / a² + var b / b², Student's t of the smaller set. `None` where one is 0: there is no
    /// ratio.
    pub fn over(self, other: Self) -> Option<Estimate> {
        if !(self.value > 0.0 && other.value > 0.0) {
            return None;
        }
        let ratio = self.value / other.value;
        let relative = |x: Self| x.variance / x.value.powi(2);
        let t = student_95(self.n.min(other.n) - 1);
        let factor = (t * (relative(self) + relative(other)).sqrt()).exp();
        Some(Estimate::new(ratio, Interval { low: ratio / factor, high: ratio * factor }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;
    use crate::units::Seed;

    #[test]
    fn the_interval_covers_the_ratio_of_the_means() {
        let (trials, mut covered) = (2000u64, 0u32);
        for trial in 0..trials {
            let squares =
                |seed, n, scale: f64| -> Vec<f64> { normal(Seed(seed), n).iter().map(|x| scale * x * x).collect() };
            let (a, b) = (squares(trial, 150, 1.5), squares(trial + 70_000, 90, 2.0));
            let ratio = Positive::mean(&a).unwrap().over(Positive::mean(&b).unwrap()).unwrap();
            covered += u32::from(ratio.interval.contains(0.75));
        }
        let covered = f64::from(covered) / trials as f64;
        assert!((0.93..=0.97).contains(&covered), "{covered}");
    }

    #[test]
    fn nothing_over_nothing_is_no_ratio() {
        let (zero, one) = (Positive::mean(&[0.0; 5]).unwrap(), Positive::mean(&[1.0; 5]).unwrap());
        assert_eq!((zero.over(one), one.over(zero)), (None, None));
        assert_eq!(one.over(one), Some(Estimate::new(1.0, Interval { low: 1.0, high: 1.0 })));
        assert_eq!(Positive::mean(&[1.0, 2.0]), None);
    }
}
