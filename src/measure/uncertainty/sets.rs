//! Sets of classes that claim to hold the label, as conformal prediction makes them (Vovk et al.
//! 2005). Their promise is a mean over images; with the exact posterior the coverage of each image is
//! known, Σ p(y|x) over its set, and with it for which images the promise is broken.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::measure::bootstrap::{Bootstrap, quantile};
use crate::measure::interval::{Estimate, SHARE};
use crate::units::ClassId;

/// Shares of images of the quantiles.
pub const LEVELS: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

/// What sets of classes cover.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetCoverage {
    /// Images.
    pub n: usize,
    /// Share of images whose set holds the drawn label.
    pub drawn: Estimate,
    /// mean Σ p(y|x) over the set: the same mean without the noise of the labels.
    pub exact: Estimate,
    /// Mean number of classes in a set.
    pub size: Estimate,
    /// Exact coverage of single images at the shares [`LEVELS`], rising.
    pub quantiles: [f64; LEVELS.len()],
    /// The images by the size of their set.
    pub by_size: Vec<SizeCoverage>,
}

/// The images whose sets are of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SizeCoverage {
    /// Classes in the set.
    pub size: usize,
    /// Images.
    pub count: usize,
    /// Mean exact coverage of them.
    pub exact: f64,
}

impl SetCoverage {
    /// Of `sets` [n, K], exact posteriors `p` [n, K] and drawn `labels` [n].
    ///
    /// # Errors
    /// When shapes differ, or there is no image.
    pub fn of(sets: &[bool], p: &[f64], labels: &[ClassId], classes: usize, bootstrap: &Bootstrap) -> Result<Self> {
        let n = labels.len();
        let right = n > 0 && classes > 0 && sets.len() == n * classes && p.len() == sets.len();
        if !right || labels.iter().any(|&label| label >= classes) {
            let (sets, p) = (sets.len(), p.len());
            return Err(Error::input(format!("{sets} entries of sets and {p} posteriors are not those of {n} images")));
        }
        let rows = || sets.chunks(classes).zip(p.chunks(classes));
        let within = |(set, p): (&[bool], &[f64])| {
            // From 0 on: an empty sum is −0 in Rust.
            let sum =
                |all: bool| set.iter().zip(p).filter(|(inside, _)| all || **inside).fold(0.0, |sum, (_, p)| sum + p);
            sum(false) / sum(true)
        };
        let exact: Vec<f64> = rows().map(within).collect();
        let sizes: Vec<usize> = rows().map(|(set, _)| set.iter().filter(|inside| **inside).count()).collect();
        let counts: Vec<f64> = sizes.iter().map(|&size| size as f64).collect();
        let hits = rows().zip(labels).filter(|((set, _), label)| set[**label]).count();
        let mut sorted = exact.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let of_size = |size: usize| {
            let those: Vec<f64> = sizes.iter().zip(&exact).filter(|(s, _)| **s == size).map(|(_, e)| *e).collect();
            let count = those.len();
            (count > 0).then(|| SizeCoverage { size, count, exact: those.iter().sum::<f64>() / count as f64 })
        };
        Ok(Self {
            n,
            drawn: Estimate::proportion(hits, n),
            exact: bootstrap.mean_of_alike(&exact, SHARE),
            size: bootstrap.mean_of_alike(&counts, [0.0, classes as f64]),
            quantiles: LEVELS.map(|level| quantile(&sorted, level)),
            by_size: (0..=classes).filter_map(of_size).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::units::Seed;

    #[test]
    fn three_images_by_hand() {
        let p = [0.7, 0.2, 0.1, 0.5, 0.3, 0.2, 0.4, 0.4, 0.2];
        let sets = [true, false, false, true, true, false, false, false, false];
        let found = SetCoverage::of(&sets, &p, &[0, 2, 1], 3, &Bootstrap::new(Seed(0))).unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
        close(found.drawn.value, 1.0 / 3.0);
        close(found.exact.value, 1.5 / 3.0);
        close(found.size.value, 1.0);
        assert_eq!(found.by_size.iter().map(|s| (s.size, s.count)).collect::<Vec<_>>(), [(0, 1), (1, 1), (2, 1)]);
        close(found.by_size[2].exact, 0.8);
        // Of an empty set 0, and not −0.
        assert_eq!([found.quantiles[0], found.by_size[0].exact].map(f64::to_bits), [0, 0]);
        close(found.quantiles[3], 0.7);
        // What 200 sets that hold all probability do not show: the rule of three.
        let (sure, one) = ([1.0, 0.0].repeat(200), [true, false].repeat(200));
        let whole = SetCoverage::of(&one, &sure, &[0; 200], 2, &Bootstrap::new(Seed(0))).unwrap();
        close(whole.exact.interval.low, 0.985);
        close(whole.exact.interval.high, 1.0);
        close(whole.size.interval.high, 1.015);
        assert!(SetCoverage::of(&sets[..8], &p, &[0, 2, 1], 3, &Bootstrap::new(Seed(0))).is_err());
    }

    /// Nearly all sets have two classes and cover 0.8; 3 % have one and cover all, 1 % have eight and
    /// cover nothing.
    #[test]
    fn a_few_small_sets_do_not_show_large_ones_that_cover_nothing() {
        const RUNS: u64 = 200;
        let image = |at: f64| match at {
            0.0..0.03 => (0..1, [1.0, 0.0, 0.0]),
            0.03..0.04 => (2..10, [0.5, 0.5, 0.0]),
            _ => (0..2, [0.4, 0.4, 0.2]),
        };
        let covers = |run: u64| {
            let mut rng = Seed(run).rng(0);
            let images: Vec<_> = (0..100).map(|_| image(rng.random())).collect();
            let sets: Vec<bool> =
                images.iter().flat_map(|(set, _)| (0..10).map(move |class| set.contains(&class))).collect();
            let p: Vec<f64> = images.iter().flat_map(|(_, p)| p.iter().copied().chain([0.0; 7])).collect();
            let bootstrap = Bootstrap::with_replicates(Seed(run), 200).unwrap();
            let found = SetCoverage::of(&sets, &p, &[0; 100], 10, &bootstrap).unwrap();
            [(found.exact, 0.03 + 0.96 * 0.8), (found.size, 0.03 + 0.01 * 8.0 + 0.96 * 2.0)]
                .map(|(found, truth)| found.interval.contains(truth))
        };
        let covered: Vec<[bool; 2]> = (0..RUNS).map(covers).collect();
        // Where all above the least counted as seen: 63 % in a simulation.
        for at in 0..2 {
            let count = covered.iter().filter(|one| one[at]).count();
            assert!(count * 100 >= 92 * RUNS as usize, "{at}: {count} of {RUNS}");
        }
    }
}
