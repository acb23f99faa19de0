//! Risk and coverage (El-Yaniv & Wiener 2010): the error of the images that a score is surest of.
//! Here the risk of an image is its expectation 1 − p(decision) under the exact posterior, which the
//! noise of a label does not reach; and the best order of all is known.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::measure::bootstrap::{Bootstrap, bca, doubtful, of_few, seen_apart, with_share};
use crate::measure::interval::{Estimate, Interval, SHARE};
use crate::stats::unseen;

/// Points of a curve.
const POINTS: usize = 20;

/// What a score is worth to a classifier that may leave images to others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RiskCoverage {
    /// Shares of images that are kept, rising to 1.
    pub coverage: Vec<f64>,
    /// Mean risk of those, the surest by the score; images that tie come in an order of chance.
    pub risk: Vec<f64>,
    /// The same in the order of the true risks: no score does better for this classifier.
    pub exact: Vec<f64>,
    /// Mean risk over all coverages (AURC).
    pub area: Estimate,
    /// The same in the order of the true risks.
    pub exact_area: Estimate,
    /// The first less the second, ≥ 0, paired by image.
    pub excess: Estimate,
}

impl RiskCoverage {
    /// Of `doubt` [n], the larger the less sure, and the true `risk` [n] of every image. Intervals
    /// are over images: bias-corrected, widened for few of them and, where hardly any is in doubt or
    /// hardly any is not (of a score: where hardly any is in doubt and among its surest), by what was not
    /// seen.
    ///
    /// # Errors
    /// When lengths differ, below two images, or for a number that is not finite.
    pub fn of(doubt: &[f64], risk: &[f64], bootstrap: &Bootstrap) -> Result<Self> {
        let n = doubt.len();
        if n < 2 || risk.len() != n {
            return Err(Error::input(format!(
                "{n} scores and {} risks are not those of two or more images",
                risk.len()
            )));
        }
        if let Some(i) = (0..n).find(|&i| !doubt[i].is_finite() || !risk[i].is_finite()) {
            return Err(Error::Numeric(format!("image {i}: its score is {}, its risk {}", doubt[i], risk[i])));
        }
        let orders = [doubt, risk].map(groups);
        let whole = vec![1; n];
        let [shown, exact] = orders.each_ref().map(|order| means(order, risk, &whole));
        let areas = |counts: &[u16]| {
            let [of, exact] = orders.each_ref().map(|order| {
                let means = means(order, risk, counts);
                means.iter().sum::<f64>() / means.len() as f64
            });
            // Not below 0 but for the rounding of two sums.
            [of, exact, (of - exact).max(0.0)]
        };
        let (values, replicates) = (areas(&whole), bootstrap.resample(n, areas));
        // Images that were not seen come last in the best order where they are wrong, and first where
        // they are right: the rarer kind shows both. A score may be surest of wrong ones as well: only
        // images that it misplaces show those.
        let last = unseen(n, seen_apart(risk));
        let (first, of_score) = (weight_of_first(last), weight_of_first(unseen(n, misplaced(&orders[0], risk))));
        let estimate = |at: usize, [down, up]: [f64; 2]| {
            let mut areas: Vec<f64> = replicates.iter().map(|r| r[at]).collect();
            let around = of_few(bca(values[at], &mut areas, 0.0), n, SHARE);
            let [Interval { low, .. }, Interval { high, .. }] =
                [down, up].map(|share| with_share(around, share, SHARE).interval);
            Estimate::new(values[at], Interval { low, high })
        };
        let kept: Vec<usize> = (1..=POINTS).map(|point| (point * n).div_ceil(POINTS)).collect();
        let at = |means: &[f64]| kept.iter().map(|&kept| means[kept - 1]).collect();
        Ok(Self {
            coverage: kept.iter().map(|&kept| kept as f64 / n as f64).collect(),
            risk: at(&shown),
            exact: at(&exact),
            area: estimate(0, [of_score; 2]),
            exact_area: estimate(1, [first, last]),
            excess: estimate(2, [of_score; 2]),
        })
    }
}

/// The weight that a `share` ε of images has in an area where it comes first: ∫ min(1, ε/c) dc =
/// ε (1 − ln ε) over the coverage c.
fn weight_of_first(share: f64) -> f64 {
    if share > 0.0 { share * (1.0 - share.ln()) } else { 0.0 }
}

/// How many of the d images in doubt are among the n − d that the score is surest of, in expectation over the order of ties.
fn misplaced(order: &[Vec<usize>], risk: &[f64]) -> usize {
    let mut known = vec![false; risk.len()];
    doubtful(risk.iter().copied()).for_each(|i| known[i] = true);
    let surest = known.iter().filter(|known| !**known).count();
    let (mut begin, mut sum) = (0, 0.0);
    for group in order {
        let among = surest.saturating_sub(begin).min(group.len());
        let of_group = group.iter().filter(|i| known[**i]).count();
        sum += (of_group * among) as f64 / group.len() as f64;
        begin += group.len();
    }
    // Rounded down: fewer make the interval wider.
    sum as usize
}

/// Images by rising value, those that tie together.
fn groups(values: &[f64]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    order.chunk_by(|&a, &b| values[a] == values[b]).map(<[usize]>::to_vec).collect()
}

/// Mean risk of the first 1, 2, … images of a replicate, in expectation over the order of ties.
fn means(order: &[Vec<usize>], risk: &[f64], counts: &[u16]) -> Vec<f64> {
    let (mut sum, mut means) = (0.0, Vec::with_capacity(risk.len()));
    for group in order {
        let drawn: usize = group.iter().map(|&i| usize::from(counts[i])).sum();
        let all: f64 = group.iter().map(|&i| f64::from(counts[i]) * risk[i]).sum();
        for _ in 0..drawn {
            sum += all / drawn as f64;
            means.push(sum / (means.len() + 1) as f64);
        }
    }
    means
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::units::Seed;

    #[test]
    fn four_images_by_hand_and_ties_by_their_expectation() {
        let bootstrap = Bootstrap::new(Seed(0));
        let risk = [0.4, 0.0, 0.2, 0.2];
        let found = RiskCoverage::of(&[0.1, 0.2, 0.3, 0.4], &risk, &bootstrap).unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
        close(found.area.value, (0.4 + 0.2 + 0.2 + 0.2) / 4.0);
        close(found.exact_area.value, (0.0 + 0.1 + 0.4 / 3.0 + 0.2) / 4.0);
        close(found.excess.value, found.area.value - found.exact_area.value);
        assert_eq!((found.coverage[0], found.coverage[19], found.risk[0]), (0.25, 1.0, 0.4));
        // A score that says nothing has the mean risk at every coverage.
        let nothing = RiskCoverage::of(&[7.0; 4], &risk, &bootstrap).unwrap();
        nothing.risk.iter().for_each(|r| close(*r, 0.2));
        // No score beats the true risk, in no replicate.
        assert!(
            found.excess.interval.low >= 0.0 && RiskCoverage::of(&risk, &risk, &bootstrap).unwrap().excess.value == 0.0
        );
        // Four images without any risk say little: the rule of three.
        let sure = RiskCoverage::of(&[0.1, 0.2, 0.3, 0.4], &[0.0; 4], &bootstrap).unwrap();
        close(sure.exact_area.interval.high, 0.75);
        // They come first in the order of a score: wrong with certainty up to 0.75, then 0.75 of those kept.
        let curve = |c: f64| (0.75 / c).min(1.0);
        let integral = (0..100_000).map(|i| curve((f64::from(i) + 0.5) / 1e5)).sum::<f64>() / 1e5;
        [sure.area, sure.excess]
            .iter()
            .for_each(|area| assert!((area.interval.high - integral).abs() < 1e-6, "{area:?}"));
        assert!(RiskCoverage::of(&[f64::NAN; 4], &risk, &bootstrap).is_err());
        assert!(RiskCoverage::of(&[1.0], &[0.0], &bootstrap).is_err());
    }

    /// One image in a hundred is right. Where a share s is, the best curve is 1 − s/c from c = s on,
    /// and its area 1 − s + s ln s.
    #[test]
    fn the_best_order_may_begin_with_images_that_were_not_seen_to_be_right() {
        const RUNS: u64 = 200;
        let truth = 0.99 + 0.01 * 0.01f64.ln();
        let covers = |run: &u64| {
            let mut rng = Seed(*run).rng(0);
            let risk: Vec<f64> = (0..100).map(|_| if rng.random::<f64>() < 0.01 { 0.0 } else { 1.0 }).collect();
            let bootstrap = Bootstrap::with_replicates(Seed(*run), 200).unwrap();
            RiskCoverage::of(&risk, &risk, &bootstrap).unwrap().exact_area.interval.contains(truth)
        };
        let covered = (0..RUNS).filter(covers).count();
        // Where those that were not seen were last: 61 % in a simulation.
        assert!(covered * 100 >= 92 * RUNS as usize, "{covered} of {RUNS}");
    }

    #[test]
    fn images_in_doubt_that_a_score_knows_do_not_show_what_it_is_surest_of() {
        // A share of 15 % has risk 0.3 and the score says so; a rare one is wrong, and the score is sure of it.
        let image = |[kind, at]: [f64; 2]| match kind {
            0.0..0.15 => (0.7 + 0.3 * at, 0.3),
            0.997.. => (0.1 * at, 0.95),
            _ => (0.1 + 0.5 * at, 0.01),
        };
        let drawn = |n: usize, seed: u64| -> (Vec<f64>, Vec<f64>) {
            let mut rng = Seed(seed).rng(3);
            (0..n).map(|_| image([rng.random(), rng.random()])).unzip()
        };
        let of = |n: usize, seed: u64, replicates| {
            let (doubt, risk) = drawn(n, seed);
            let bootstrap = Bootstrap::with_replicates(Seed(seed), replicates).unwrap();
            RiskCoverage::of(&doubt, &risk, &bootstrap).unwrap()
        };
        let truth = of(200_000, 1, 200);
        let found: Vec<RiskCoverage> = (0..100).map(|seed| of(500, seed, 200)).collect();
        let held = |estimate: fn(&RiskCoverage) -> Estimate| {
            found.iter().filter(|found| estimate(found).interval.contains(estimate(&truth).value)).count()
        };
        // Where all images in doubt counted as seen, 75, 96 and 63.
        let covered = [held(|found| found.area), held(|found| found.exact_area), held(|found| found.excess)];
        assert!(covered.iter().all(|held| *held >= 93), "{covered:?}");
        // Of equal scores half of the images in doubt are among the surest half.
        let half: Vec<f64> = (0..120).map(|i| f64::from(i % 2)).collect();
        assert_eq!(misplaced(&groups(&[0.0; 120]), &half), 30);
        assert_eq!(misplaced(&groups(&half), &half), 0);
    }
}
