//! Does a classifier know the posteriors?
//!
//! Compares the log-odds of an image's two most probable classes, on images where the second has at
//! least 1 %: where one class is all but certain, honest classifiers agree to any number of digits.
//! Images with the same log-odds count once, so a correct constant is one agreement.
//!
//! Noisy labels make constants of many images: where x leaves no doubt, p~ = Cᵀp is a row of C but for an exponentially
//! small rest, and so is q of an honest model that knows C (forward correction, Patrini et al. 2017), to any number of
//! digits. Where C is known, images whose p~ is within 1e-3 of one of its rows tell nothing; they are left out. So
//! are, always, images of log-odds that far more have than would where odds are spread evenly: a world may not say its C.
//!
//! * **Nearly all**: the median |Δ log-odds| is at most 1e-3, a KL of about Δ²·p(1−p)/2 < 1e-7
//!   nats. A correctly specified model of d parameters fitted to N labels has a KL of d/2N at best
//!   (Akaike 1974): with d = 3 it needs 15 million labels for 1e-7. Networks have a million parameters.
//!   Rounding the posteriors to float16 or four digits changes log-odds by 5e-4, too little.
//! * **Some**: the errors of an honest classifier have a density about 0, so that one in a hundred
//!   of those within 1e-3 is within 1e-5, the round-off of float32 logits. If this share is at most
//!   one in 25 (a density that rises fourfold towards 0), the number within 1e-5 is at most
//!   binomial; its tail is the p-value.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::hits::upper_tail;
use crate::oracle::label_noise::LabelNoise;

/// An error of the log-odds that cannot be reached by learning.
pub(in crate::judge) const KNOWN: f64 = 1e-3;
/// The error that float32 leaves of a number that was copied.
const COPIED: f64 = 1e-5;
/// Largest share of errors within [`KNOWN`] that are within [`COPIED`] by chance: 4 times flat.
const BY_CHANCE: f64 = 0.04;
/// Smallest probability of the second class of an image that tells something.
const TELLING: f64 = 0.01;
/// How near a posterior is to a row of C that is but a rest away from it.
const SURE: f64 = 1e-3;
/// So many times more images than of odds that are spread evenly make a crowd.
const CROWD: f64 = 10.0;
/// Odds in a range that is narrower are not told from a constant.
const NARROWEST: f64 = 100.0 * KNOWN;
/// Fewer images have no median that tells something.
const FEWEST: usize = 20;

/// How near a classifier's log-odds are to the world's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// Images whose second class has at least 1 %, those of equal log-odds once, those of a constant not at all.
    pub telling: usize,
    /// Median |Δ log-odds| over them, nats; absent without any.
    pub median: Option<f64>,
    /// Those within 1e-3.
    pub near: usize,
    /// Those within 1e-5.
    pub copied: usize,
    /// Probability of as many copies among the near ones by chance.
    pub p_value: f64,
}

impl Copied {
    /// Returns whether nearly all posteriors are known.
    pub(super) fn nearly_all(&self) -> bool {
        self.telling >= FEWEST && self.median.is_some_and(|median| median <= KNOWN)
    }
}

/// An image with two classes in doubt.
struct Telling {
    /// Its two most probable classes.
    classes: (usize, usize),
    /// log p of the first less that of the second, ≥ 0.
    odds: f64,
    /// How far the classifier's are from it.
    error: f64,
}

/// Compares `log_q` [n, K] with `p` [n, K]; labels were drawn by `noise`, as far as it is known.
pub(super) fn test(p: &[f64], log_q: &[f64], classes: usize, noise: Option<&LabelNoise>) -> Copied {
    let rows: Vec<Vec<f64>> =
        noise.map_or_else(Vec::new, |noise| (0..classes).map(|class| noise.row(class, classes)).collect());
    let near = |c: &f64, p: &f64| (c - p).abs() <= SURE;
    // Most rows differ where p is largest.
    let of_class = |a: usize, p: &[f64]| {
        rows.iter().filter(|row| near(&row[a], &p[a])).any(|row| row.iter().zip(p).all(|(c, p)| near(c, p)))
    };
    let telling = |(p, log_q): (&[f64], &[f64])| {
        let (a, b) = two_largest(p).filter(|&(a, b)| p[b] >= TELLING && !of_class(a, p))?;
        let odds = (p[a] / p[b]).ln();
        Some(Telling { classes: (a, b), odds, error: (log_q[a] - log_q[b] - odds).abs() })
    };
    let mut images: Vec<Telling> = p.chunks(classes).zip(log_q.chunks(classes)).filter_map(telling).collect();
    // The odds of a constant may be those of all classes, or of the most probable one.
    disperse(&mut images, |_| 0);
    disperse(&mut images, |image| image.classes.0);
    let mut seen = HashSet::new();
    images.retain(|Telling { classes: (a, b), odds, .. }| seen.insert((*a, *b, (odds / KNOWN).round() as i64)));
    let mut errors: Vec<f64> = images.iter().map(|image| image.error).collect();
    errors.sort_unstable_by(f64::total_cmp);
    let within = |bound: f64| errors.partition_point(|&error| error <= bound);
    let (near, copied) = (within(KNOWN), within(COPIED));
    let median = errors.get(errors.len() / 2).copied();
    let p_value = upper_tail(&vec![BY_CHANCE; near], copied);
    Copied { telling: errors.len(), median, near, copied, p_value }
}

/// Leaves out crowds: images that share their odds, within [`KNOWN`], with [`CROWD`] times more of their group than if the
/// group's odds were spread evenly over their range.
fn disperse(images: &mut Vec<Telling>, group: impl Fn(&Telling) -> usize) {
    images.sort_by(|a, b| group(a).cmp(&group(b)).then(a.odds.total_cmp(&b.odds)));
    let crowded = |alike: &[Telling]| -> Vec<bool> {
        let range = alike.last().map_or(0.0, |last| last.odds) - alike.first().map_or(0.0, |first| first.odds);
        let widest = range.clamp(NARROWEST, (1.0 / TELLING - 1.0).ln());
        let most = 1.0 + CROWD * alike.len() as f64 * 2.0 * KNOWN / widest;
        let others = |image: &Telling| {
            let from = alike.partition_point(|other| other.odds < image.odds - KNOWN);
            let to = alike.partition_point(|other| other.odds <= image.odds + KNOWN);
            (to - from - 1) as f64
        };
        alike.iter().map(|image| others(image) > most).collect()
    };
    let drop: Vec<bool> = images.chunk_by(|a, b| group(a) == group(b)).flat_map(crowded).collect();
    let mut drop = drop.into_iter();
    images.retain(|_| !drop.next().unwrap_or_default());
}

fn two_largest(p: &[f64]) -> Option<(usize, usize)> {
    let largest = |not: Option<usize>| {
        let others = (0..p.len()).filter(|&y| Some(y) != not);
        others.reduce(|best, y| if p[y] > p[best] { y } else { best })
    };
    let first = largest(None)?;
    Some((first, largest(Some(first))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    /// Log-odds spread over ±3, and a classifier that is off by `error` of each.
    fn worlds(n: usize, error: impl Fn(usize, f64) -> f64) -> Copied {
        let mut rng = Seed(2).rng(0);
        let (mut p, mut log_q) = (Vec::new(), Vec::new());
        for i in 0..n {
            let odds = 6.0 * rng.random::<f64>() - 3.0;
            let off = odds + error(i, rng.random::<f64>() - 0.5);
            p.extend([1.0 / (1.0 + (-odds).exp()), 1.0 / (1.0 + odds.exp())]);
            log_q.extend([-(-off).exp().ln_1p(), -off.exp().ln_1p()]);
        }
        test(&p, &log_q, 2, None)
    }

    #[test]
    fn round_off_is_told_from_learning() {
        let honest = worlds(5000, |_, u| 0.05 * u);
        assert!(!honest.nearly_all() && honest.p_value > 1e-3 && honest.near > 50, "{honest:?}");
        let all = worlds(5000, |_, u| 1e-6 * u);
        assert!(all.nearly_all() && all.p_value < 1e-300, "{all:?}");
        // Rounded to float16 nothing is a copy, but all are known.
        let rounded = worlds(5000, |_, u| 1e-3 * u);
        assert!(rounded.nearly_all(), "{rounded:?}");
    }

    #[test]
    fn a_few_copies_are_found() {
        let few = worlds(5000, |i, u| if i % 300 == 0 { 1e-6 * u } else { 0.5 * u });
        assert!(!few.nearly_all() && few.copied >= 8 && few.p_value < 1e-8, "{few:?}");
    }

    #[test]
    fn a_constant_that_is_right_is_no_copy() {
        let p = [0.5, 0.5].repeat(1000);
        let found = test(&p, &p.iter().map(|p: &f64| p.ln()).collect::<Vec<_>>(), 2, None);
        assert_eq!((found.telling, found.copied), (0, 0));
        assert!(found.p_value == 1.0 && !found.nearly_all());
    }

    /// Posteriors of noisy labels and those of a model that corrects for the noise, of images of which most are sure.
    fn corrected(n: usize, classes: usize, noise: &LabelNoise) -> (Vec<f64>, Vec<f64>) {
        let mut rng = Seed(5).rng(0);
        let (mut p, mut log_q) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let class = rng.random_range(0..classes);
            // From hardly known to sure beyond float64.
            let far = 6.0 + 30.0 * rng.random::<f64>();
            let odds: Vec<f64> =
                (0..classes).map(|y| 4.0 * rng.random::<f64>() + if y == class { far } else { 0.0 }).collect();
            let theirs: Vec<f64> = odds.iter().map(|odds| 0.8 * odds + 3.0 * rng.random::<f64>()).collect();
            let [of_p, of_q] = [odds, theirs].map(|logits| {
                noise.labels(
                    &crate::measure::log_softmax(&logits, classes).into_iter().map(f64::exp).collect::<Vec<_>>(),
                )
            });
            p.extend(of_p);
            log_q.extend(of_q.iter().map(|q| q.ln()));
        }
        (p, log_q)
    }

    #[test]
    fn a_model_that_knows_how_labels_were_drawn_copies_nothing() {
        let rates: Vec<f64> = (0..10).map(|y| 0.1 + 0.03 * f64::from(y)).collect();
        let kinds = [LabelNoise::symmetric(0.2), LabelNoise::pair(0.3), LabelNoise::by_class(rates)];
        for noise in kinds.map(Result::unwrap) {
            for n in [200, 1000, 10_000] {
                let (p, log_q) = corrected(n, 10, &noise);
                for known in [Some(&noise), None] {
                    let found = test(&p, &log_q, 10, known);
                    assert!(
                        found.p_value > 1e-3 && !found.nearly_all(),
                        "{noise:?} {n} {}: {found:?}",
                        known.is_some()
                    );
                }
                // The posteriors themselves are still known as such.
                let exact: Vec<f64> = p.iter().map(|p| p.ln()).collect();
                let copy = test(&p, &exact, 10, Some(&noise));
                assert!(n == 200 || copy.p_value < 1e-5, "{noise:?} {n}: {copy:?}");
            }
        }
    }
}
