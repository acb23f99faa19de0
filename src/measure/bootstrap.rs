//! Resampling of images, and intervals from it.
//!
//! *Images* are drawn n out of n with replacement, once per replicate; all statistics of a
//! replicate come from the same counts, so their differences are paired. Intervals are BCa (Efron
//! 1987): the figures here are means of skewed quantities (most images have next to no KL, few have
//! much), for which the plain percentile interval lies too low, and since each is a mean its
//! acceleration is its skewness / (6 √n), which costs nothing. The interval of a mean is widened by
//! what few images need (`of_few`) and, where hardly any of them show what the mean is made of, by
//! what was not seen (`with_unseen`). It keeps to the range of the statistic: a KL or a gap never
//! gets a negative end.

use rand::Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::interval::{Estimate, Interval, student_mean};
use crate::error::{Error, Result};
use crate::parallel;
use crate::stats::{DOUBT, Z95, above_least, count_in_doubt, ends_of_share, student_95, unseen};
use crate::units::Seed;

/// Replicates of a bootstrap unless a caller wants another number.
pub const REPLICATES: usize = 1000;

/// Fewer replicates do not hold a 2.5 % quantile.
const FEWEST: usize = 200;

/// How intervals are drawn: same seed, same intervals, on any number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bootstrap {
    seed: Seed,
    replicates: usize,
}

impl Bootstrap {
    /// [`REPLICATES`] replicates from `seed`.
    pub fn new(seed: Seed) -> Self {
        Self { seed, replicates: REPLICATES }
    }

    /// Another number of replicates.
    ///
    /// # Errors
    /// When there are fewer than 200: too few for the ends of a 95 % interval.
    pub fn with_replicates(seed: Seed, replicates: usize) -> Result<Self> {
        if replicates < FEWEST {
            return Err(Error::input(format!("a bootstrap needs at least {FEWEST} replicates, not {replicates}")));
        }
        Ok(Self { seed, replicates })
    }

    /// The mean of `values` in [least, most], one an image, with its BCa interval, which allows for few images; 0 of
    /// none. An end of the range may be infinite.
    pub fn mean(&self, values: &[f64], range: [f64; 2]) -> Estimate {
        let count = values.len().max(1) as f64;
        let of = |counts: &[u16]| counts.iter().zip(values).map(|(&c, x)| f64::from(c) * x).sum::<f64>() / count;
        let mut replicates = self.resample(values.len(), of);
        of_mean(of(&vec![1; values.len()]), &mut replicates, values.iter().copied(), range)
    }

    /// The same in a finite range, of values of which most may be 0 or small, as differences of two decisions are: what
    /// images that were not seen may add is in the interval, too ([`with_unseen`]). Values beyond 0.1 or −0.1 show it
    /// ([`seen_of`]).
    pub fn mean_within(&self, values: &[f64], range: [f64; 2]) -> Estimate {
        self.mean_of_seen(values, seen_of(values.iter().copied()), range)
    }

    /// The same of values of which most may be alike, whatever their value is ([`seen_apart`]).
    pub fn mean_of_alike(&self, values: &[f64], range: [f64; 2]) -> Estimate {
        self.mean_of_seen(values, seen_apart(values), range)
    }

    /// The same where so many images were `seen` to be of the kind that makes the mean.
    pub fn mean_of_seen(&self, values: &[f64], seen: usize, range: [f64; 2]) -> Estimate {
        with_unseen(self.mean(values, range), values.len(), seen, range)
    }

    /// Of no replicates, for thousands of sets of figures: the mean of `values` in [least, most] with Student's 95 % interval,
    /// and, as [`Self::mean_of_seen`], with what images that were not seen may add where it is told how many were.
    pub fn quick_mean(values: &[f64], seen: Option<usize>, [least, most]: [f64; 2]) -> Estimate {
        let (value, half) = student_mean(values);
        let around = Interval { low: (value - half).max(least), high: (value + half).min(most) };
        let mean = Estimate::new(value, around);
        seen.map_or(mean, |seen| with_unseen(mean, values.len(), seen, [least, most]))
    }

    /// `statistics` of every replicate, from how often each of `n` images was drawn.
    pub fn resample<T: Send>(&self, n: usize, statistics: impl Fn(&[u16]) -> T + Sync) -> Vec<T> {
        let seed = self.seed.split("bootstrap of images");
        parallel::map(self.replicates, |replicate| {
            let mut counts = vec![0; n];
            draw_counts(&mut counts, &mut seed.rng(replicate as u64));
            statistics(&counts)
        })
    }
}

/// Widens the interval of the mean over `n` images of values in [least, most] where hardly any image was `seen` to be of
/// the kind that makes the mean: a resampled mean of values that are all 0 has no width, although 3 of n images can be
/// of another kind and none of it be seen (the rule of three, as for Bayes errors of samples). A mean without a bound
/// cannot have it: one unseen image may add any amount.
pub(super) fn with_unseen(mean: Estimate, n: usize, seen: usize, range: [f64; 2]) -> Estimate {
    with_share(mean, unseen(n, seen), range)
}

/// The interval of a mean where a share `unseen` of the weight may lie at either end of the range.
pub(super) fn with_share(mean: Estimate, unseen: f64, [least, most]: [f64; 2]) -> Estimate {
    let Estimate { value, interval: Interval { low, high } } = mean;
    let [down, up] = ends_of_share(value, unseen, [least, most]);
    Estimate::new(value, Interval { low: (low - down).max(least), high: (high + up).min(most) })
}

/// How many of these differences show what their mean is made of. Up, down, or of no size that counts
/// ([`crate::stats::DOUBT`]), however many of those there are: all but the most frequent of the three.
pub(super) fn seen_of(differences: impl Iterator<Item = f64> + Clone) -> usize {
    let all = differences.clone().count();
    let [up, down] = [1.0, -1.0].map(|sign| count_in_doubt(differences.clone().map(|difference| sign * difference)));
    all - up.max(down).max(all - up - down)
}

/// How many of these values are of the rarer of two kinds more than 0.1 apart, where it has most. A
/// count of all above the least would take nearly all for seen where a few are below the others.
pub(super) fn seen_apart(values: &[f64]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let above = |value: &f64| sorted.len() - sorted.partition_point(|other| other - value <= DOUBT);
    let rarer = |(i, value): (usize, &f64)| above(value).min(i + 1);
    sorted.iter().enumerate().map(rarer).max().unwrap_or(0)
}

/// How many of these doubts, 1 − max p each, lie clearly above the least. With noisy labels every image is in doubt: where no
/// more is known of the noise, what was seen of the classes is how many are more so.
pub(super) fn in_doubt(doubts: impl Iterator<Item = f64> + Clone) -> usize {
    doubtful(doubts).count()
}

/// Which of these images [`in_doubt`] counts.
pub(super) fn doubtful(doubts: impl Iterator<Item = f64> + Clone) -> impl Iterator<Item = usize> {
    above_least(doubts.map(|doubt| (0, doubt)))
}

/// The interval of the `mean` of `values` in [least, most] from its replicates: BCa's, wider for few values
/// ([`of_few`]). Of two values, n of n drawn, BCa alone holds the mean in half of all cases, of five in 80 (exponential) to
/// 87 % (uniform values); widened in 87 to 89 and in 89 to 94 %.
pub(super) fn of_mean(
    mean: f64,
    replicates: &mut [f64],
    values: impl Iterator<Item = f64> + Clone,
    range: [f64; 2],
) -> Estimate {
    of_few(bca(mean, replicates, acceleration(values.clone())), values.count(), range)
}

/// The distances of the ends from the value times Student's over the normal quantile and √(n/(n − 1)), within [least,
/// most]: what was resampled from `n` values scatters by (n − 1)/n too little, and few of them do not know their own
/// scatter.
pub(super) fn of_few(estimate: Estimate, n: usize, [least, most]: [f64; 2]) -> Estimate {
    let Estimate { value, interval: Interval { low, high } } = estimate;
    let times = match n {
        // A single value has no scatter to be widened.
        0 | 1 => 1.0,
        n => student_95(n - 1) / Z95 * (n as f64 / (n - 1) as f64).sqrt(),
    };
    let (down, up) = (times * (value - low), times * (high - value));
    Estimate::new(value, Interval { low: (value - down).max(least), high: (value + up).min(most) })
}

/// How often each image is drawn, n out of n with replacement.
fn draw_counts(counts: &mut [u16], rng: &mut impl Rng) {
    counts.fill(0);
    let n = counts.len() as u64;
    let mut left = n;
    // An image's share is off by n/2³² of itself at most: 2e-6 for 10,000 images.
    let mut add = |bits: u64| {
        let image = ((bits & 0xffff_ffff) * n) >> 32;
        counts[image as usize] += 1;
    };
    while left >= 2 {
        let bits = rng.next_u64();
        add(bits);
        add(bits >> 32);
        left -= 2;
    }
    if left == 1 {
        add(rng.next_u64());
    }
}

/// The BCa interval of `value`, a smooth statistic with this `acceleration`, from its replicates,
/// which are sorted. Without replicates the interval is the value.
pub(super) fn bca(value: f64, replicates: &mut [f64], acceleration: f64) -> Estimate {
    if replicates.is_empty() {
        return Estimate::new(value, Interval { low: value, high: value });
    }
    replicates.sort_unstable_by(f64::total_cmp);
    let below = replicates.partition_point(|&x| x < value);
    let ties = replicates.partition_point(|&x| x <= value) - below;
    let count = replicates.len() as f64;
    let share = ((below as f64 + ties as f64 / 2.0) / count).clamp(0.5 / count, 1.0 - 0.5 / count);
    let normal = Normal::standard();
    let bias = normal.inverse_cdf(share);
    let end = |z: f64| {
        let shifted = bias + z;
        // Positive for any data: |acceleration| ≤ 1/6, the case of a single value that differs.
        let level = normal.cdf(bias + shifted / (1.0 - acceleration * shifted).max(0.05));
        quantile(replicates, level)
    };
    Estimate::new(value, Interval { low: end(-Z95), high: end(Z95) })
}

/// The acceleration of the mean of `values`: their skewness over 6 √n; 0 where all are equal.
fn acceleration(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / n;
    let moments = values.fold((0.0, 0.0), |(second, third), x| {
        let d = x - mean;
        (second + d * d, third + d * d * d)
    });
    let accelerated = moments.1 / (6.0 * moments.0.powf(1.5));
    if accelerated.is_finite() { accelerated } else { 0.0 }
}

/// The quantile of sorted numbers at `level` in [0, 1], linear between them (Hyndman & Fan's type
/// 6, which does not favour the middle); 0 of none.
pub(super) fn quantile(sorted: &[f64], level: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = (level * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, last as f64);
    let (below, part) = (position.floor() as usize, position.fract());
    let above = (below + 1).min(last);
    // An infinite neighbour must not turn into NaN where it has no weight.
    if part == 0.0 { sorted[below] } else { sorted[below] * (1.0 - part) + sorted[above] * part }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{NATS, UNBOUNDED};
    use rand::RngExt;
    use rand_distr::{Distribution, Exp1};

    #[test]
    fn every_replicate_draws_as_many_images_as_there_are() {
        for n in [1usize, 2, 7, 1000] {
            let sums =
                Bootstrap::new(Seed(3)).resample(n, |counts| counts.iter().map(|&c| usize::from(c)).sum::<usize>());
            assert_eq!(sums, vec![n; REPLICATES]);
        }
    }

    #[test]
    fn counts_are_multinomial() {
        // Mean 1, variance 1 − 1/n, covariance −1/n of two images.
        let draws =
            Bootstrap::with_replicates(Seed(1), 40_000).unwrap().resample(5, |c| (f64::from(c[0]), f64::from(c[4])));
        let n = draws.len() as f64;
        let mean = draws.iter().map(|d| d.0).sum::<f64>() / n;
        let variance = draws.iter().map(|d| (d.0 - 1.0).powi(2)).sum::<f64>() / n;
        let covariance = draws.iter().map(|d| (d.0 - 1.0) * (d.1 - 1.0)).sum::<f64>() / n;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((variance - 0.8).abs() < 0.03, "{variance}");
        assert!((covariance + 0.2).abs() < 0.02, "{covariance}");
    }

    #[test]
    fn the_same_seed_gives_the_same_replicates_on_any_number_of_threads() {
        let run = |seed| Bootstrap::new(Seed(seed)).resample(50, <[u16]>::to_vec);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(run(5), one.install(|| run(5)));
        assert_ne!(run(5), run(6));
        assert!(Bootstrap::with_replicates(Seed(5), 10).is_err());
    }

    /// Shares of 95 % intervals of an exponential mean (n = 40) that are too low and too high.
    fn misses(skewed: bool) -> (f64, f64) {
        let trials = 1000u64;
        let (mut low, mut high) = (0u32, 0u32);
        for trial in 0..trials {
            let mut rng = Seed(77).rng(trial);
            let data: Vec<f64> = (0..40).map(|_| Exp1.sample(&mut rng)).collect();
            let mean = |counts: &[u16]| counts.iter().zip(&data).map(|(&c, x)| f64::from(c) * x).sum::<f64>() / 40.0;
            let mut replicates = Bootstrap::new(Seed(trial)).resample(40, mean);
            let a = if skewed { acceleration(data.iter().copied()) } else { 0.0 };
            let interval = bca(mean(&[1; 40]), &mut replicates, a).interval;
            low += u32::from(interval.high < 1.0);
            high += u32::from(interval.low > 1.0);
        }
        (f64::from(low) / trials as f64, f64::from(high) / trials as f64)
    }

    #[test]
    fn intervals_of_a_skewed_mean_cover_it_and_acceleration_balances_their_tails() {
        let ((low, high), (plain_low, plain_high)) = (misses(true), misses(false));
        println!("BCa misses {low} below, {high} above; without acceleration {plain_low}, {plain_high}");
        assert!((0.92..0.97).contains(&(1.0 - low - high)), "{low} {high}");
        assert!((low - high).abs() < (plain_low - plain_high).abs());
    }

    #[test]
    fn differences_that_are_hardly_ever_seen_are_within_the_interval_of_their_mean() {
        const RUNS: u64 = 300;
        // Two classifiers differ on 2 % of all images, by half.
        for n in [20, 50, 400] {
            let covers = |run: &u64| {
                let mut rng = Seed(*run).rng(0);
                let values: Vec<f64> = (0..n).map(|_| if rng.random::<f64>() < 0.02 { 0.5 } else { 0.0 }).collect();
                let found = Bootstrap { seed: Seed(*run), replicates: 200 }.mean_within(&values, [0.0, 1.0]);
                assert!(found.interval.low >= 0.0 && found.interval.high <= 1.0);
                found.interval.contains(0.01)
            };
            let covered = (0..RUNS).filter(covers).count();
            assert!(covered * 100 >= 92 * RUNS as usize, "{n} images: {covered} of {RUNS}");
        }
        let signed = Bootstrap::new(Seed(1)).mean_within(&[0.0; 10], [-1.0, 1.0]).interval;
        assert!((signed.low + 0.3).abs() < 1e-12 && (signed.high - 0.3).abs() < 1e-12, "{signed:?}");
    }

    #[test]
    fn small_differences_do_not_show_large_ones() {
        const RUNS: u64 = 300;
        // 40 % differ by up to 0.004, and 1 % by 0.9.
        let covers = |run: &u64| {
            let mut rng = Seed(*run).rng(0);
            let mut one = || match rng.random::<f64>() {
                at if at < 0.01 => 0.9,
                at if at < 0.41 => 0.004 * rng.random::<f64>(),
                _ => 0.0,
            };
            let values: Vec<f64> = (0..100).map(|_| one()).collect();
            let found = Bootstrap { seed: Seed(*run), replicates: 200 }.mean_within(&values, [0.0, 1.0]);
            found.interval.contains(0.01 * 0.9 + 0.4 * 0.002)
        };
        let covered = (0..RUNS).filter(covers).count();
        // Where small ones count: 60 %.
        assert!(covered * 100 >= 92 * RUNS as usize, "{covered} of {RUNS}");
        let of = |values: &[f64]| seen_of(values.iter().copied());
        assert_eq!(
            [of(&[0.0, 0.01, 0.2, -0.2, 0.0]), of(&[1.0, 1.0, 1.0, 0.05]), of(&[-1.0, -1.0, 1.0]), of(&[])],
            [2, 1, 1, 0]
        );
    }

    #[test]
    fn a_mean_of_few_values_has_an_interval_that_holds_it() {
        const RUNS: u64 = 400;
        for n in [2, 3, 5] {
            let covers = |run: &u64| {
                let values: Vec<f64> = Exp1.sample_iter(Seed(*run).rng(0)).take(n).collect();
                let found = Bootstrap { seed: Seed(*run), replicates: 200 }.mean(&values, NATS);
                assert!(found.interval.low >= 0.0);
                found.interval.contains(1.0)
            };
            let covered = (0..RUNS).filter(covers).count();
            // Without Student's quantile: 46, 69 and 80 %.
            assert!(covered * 100 >= 80 * RUNS as usize, "{n} values: {covered} of {RUNS}");
        }
        let one = Bootstrap::new(Seed(1)).mean(&[0.5], UNBOUNDED);
        assert_eq!(one.interval, Interval { low: 0.5, high: 0.5 });
    }

    #[test]
    fn a_quick_mean_is_students_and_holds_what_was_not_seen() {
        // t of 2 degrees of freedom is 4.302653; s = 0.1.
        let half = 4.302_652_73 * 0.1 / 3f64.sqrt();
        let nats = Bootstrap::quick_mean(&[0.1, 0.2, 0.3], None, NATS).interval;
        assert!(nats.low == 0.0 && (nats.high - 0.2 - half).abs() < 1e-8, "{nats:?}");
        // None of 60 images is in doubt: 3 of 60 may be.
        let sure = Bootstrap::quick_mean(&[0.01; 60], Some(0), [0.0, 1.0]).interval;
        assert!((sure.high - (0.01 + 0.05 * 0.99)).abs() < 1e-12 && (sure.low - 0.0095).abs() < 1e-12, "{sure:?}");
    }

    #[test]
    fn doubt_is_counted_above_what_all_images_have() {
        let of = |doubts: &[f64]| in_doubt(doubts.iter().copied());
        assert_eq!((of(&[]), of(&[0.0, 0.05, 0.2, 0.5]), of(&[0.2, 0.25, 0.2, 0.5])), (0, 2, 1));
    }

    #[test]
    fn the_rarer_of_two_kinds_is_counted_where_it_has_most() {
        assert_eq!(
            [[1.0, 0.0, 1.0, 0.0, 1.0], [0.0, 0.5, 0.55, 0.6, 1.0], [0.3; 5]].map(|v| seen_apart(&v)),
            [2, 1, 0]
        );
    }

    #[test]
    fn equal_values_have_no_width() {
        let mut replicates = vec![0.25; 300];
        let estimate = bca(0.25, &mut replicates, acceleration([0.25; 9].into_iter()));
        assert_eq!(estimate.interval, Interval { low: 0.25, high: 0.25 });
    }

    #[test]
    fn quantiles_are_those_of_the_order_statistics() {
        let sorted: Vec<f64> = (1..=99).map(f64::from).collect();
        assert_eq!(quantile(&sorted, 0.5), 50.0);
        assert!((quantile(&sorted, 0.025) - 2.5).abs() < 1e-12);
        assert_eq!((quantile(&sorted, 0.0), quantile(&sorted, 1.0)), (1.0, 99.0));
        assert_eq!(quantile(&[1.0, f64::INFINITY], 1.0 / 3.0), 1.0);
    }
}
