//! Precision and recall (Kynkäänniemi et al. 2019), density and coverage (Naeem et al. 2020):
//! whether generated images lie among the real ones, and real ones among the generated, by balls
//! that reach to an image's k-th neighbour in its own set.
//!
//! Balls are closed (≤), as in both papers; the `prdc` package has <. They differ where distances
//! tie: with copies, which here lie on the same side as what they copy. Memory is O(n k).
//!
//! None of the four is 1, or any other fixed number, for a perfect generator: precision and recall
//! depend on n, k and d; expected coverage of equal distributions is given by
//! [`expected_coverage`]. So each is read beside the same figure of held-out real images in the
//! place of the generated ([`compare_manifolds`]), in equal numbers.

use std::sync::atomic::{AtomicU32, Ordering};

use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use super::features::{Features, Real};
use super::neighbours::Neighbours;
use super::pairs::scan;
use crate::error::Result;
use crate::measure::{Bootstrap, Estimate, NATS};
use crate::units::Seed;

/// Neighbours of precision and recall in Kynkäänniemi et al.
pub const K_PRECISION: usize = 3;

/// Neighbours of density and coverage in Naeem et al.
pub const K_COVERAGE: usize = 5;

/// The four figures at one k.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifold {
    /// Share of generated images in some real image's ball. Wilson, given the real images.
    pub precision: Estimate,
    /// Share of real images in some generated image's ball. Wilson, given the generated ones.
    pub recall: Estimate,
    /// Mean number of real balls around a generated image, over k: about 1 for equal distributions,
    /// unbounded. Bootstrap (BCa) over generated images, given the real ones.
    pub density: Estimate,
    /// Share of real images whose ball holds a generated image. Wilson's interval; real images also
    /// make each other's balls, so that it is approximate.
    pub coverage: Estimate,
    /// Neighbours that balls reach to.
    pub k: usize,
    /// Real and generated images.
    pub n: [usize; 2],
}

/// One real image.
#[derive(Clone, Copy)]
struct Seen {
    /// Whether its ball holds a generated image.
    covered: bool,
    /// Whether it lies in the ball of one.
    recalled: bool,
}

/// The four figures of `generated` [m, d] against `real` [n, d].
///
/// # Errors
/// When the numbers of features differ, or k is not from 1 to n − 1 and m − 1.
pub fn manifold<A: Real, B: Real>(
    real: &Features<'_, A>,
    generated: &Features<'_, B>,
    k: usize,
    bootstrap: &Bootstrap,
) -> Result<Manifold> {
    real.same_dim(generated)?;
    let radii: Vec<f64> = Neighbours::within(real, k)?.squared_radii().collect();
    let generated_radii: Vec<f64> = Neighbours::within(generated, k)?.squared_radii().collect();
    // Counted from all threads at once: a sum of whole numbers has no order.
    let counts: Vec<AtomicU32> = (0..generated.n()).map(|_| AtomicU32::new(0)).collect();
    let rows = scan(
        real,
        generated,
        |_| Seen { covered: false, recalled: false },
        |seen, pair| {
            if pair.within(radii[pair.i]) {
                counts[pair.j].fetch_add(1, Ordering::Relaxed);
                seen.covered = true;
            }
            seen.recalled = seen.recalled || pair.within(generated_radii[pair.j]);
        },
    );
    let balls: Vec<u32> = counts.into_iter().map(AtomicU32::into_inner).collect();
    let (n, m) = (real.n(), generated.n());
    let share = |hits: usize, n: usize| Estimate::proportion(hits, n);
    Ok(Manifold {
        precision: share(balls.iter().filter(|&&b| b > 0).count(), m),
        recall: share(rows.iter().filter(|seen| seen.recalled).count(), n),
        density: density(&balls, k, bootstrap),
        coverage: share(rows.iter().filter(|seen| seen.covered).count(), n),
        k,
        n: [n, m],
    })
}

fn density(balls: &[u32], k: usize, bootstrap: &Bootstrap) -> Estimate {
    let each: Vec<f64> = balls.iter().map(|&b| f64::from(b) / k as f64).collect();
    bootstrap.mean(&each, NATS)
}

/// Expected coverage where generated and real images have the same distribution, whatever it is and
/// in any dimension, without ties (Naeem et al. 2020, lemma 2, here for sets of different size): 1
/// − Π_{i=1..k} (n − i) / (n + m − i).
pub fn expected_coverage(real: usize, generated: usize, k: usize) -> f64 {
    let (n, m) = (real as f64, generated as f64);
    1.0 - (1..=k).map(|i| (n - i as f64) / (n + m - i as f64)).product::<f64>()
}

/// A figure of generated images and the same one of held-out real images.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Compared<T> {
    /// Generated images against the training images.
    pub generated: T,
    /// Held-out real images against the training images: what a perfect generator would get.
    pub held_out: T,
}

/// [`manifold`] of generated images against `train`, and of `held_out` real images against the
/// same, both in the number of the smaller set: the larger is thinned at random.
///
/// # Errors
/// Those of [`manifold`].
pub fn compare_manifolds<A: Real, B: Real, C: Real>(
    train: &Features<'_, A>,
    held_out: &Features<'_, B>,
    generated: &Features<'_, C>,
    k: usize,
    seed: Seed,
) -> Result<Compared<Manifold>> {
    let n = held_out.n().min(generated.n());
    let bootstrap = Bootstrap::new(seed);
    let (real, made) = (thinned(held_out, n, seed), thinned(generated, n, seed));
    Ok(Compared {
        generated: manifold(train, &Features::new(&made, generated.dim())?, k, &bootstrap)?,
        held_out: manifold(train, &Features::new(&real, held_out.dim())?, k, &bootstrap)?,
    })
}

/// Draws `n` of the images without replacement, in their order, [n, D]; whatever D, the same.
pub fn thinned<T: Real>(features: &Features<'_, T>, n: usize, seed: Seed) -> Vec<T> {
    let mut kept = sample(&mut seed.split("thinned to equal numbers").rng(0), features.n(), n).into_vec();
    kept.sort_unstable();
    features.gather(&kept)
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;

    fn of(real: &[f64], generated: &[f64], dim: usize, k: usize) -> Manifold {
        let (a, b) = (Features::new(real, dim).unwrap(), Features::new(generated, dim).unwrap());
        manifold(&a, &b, k, &Bootstrap::new(Seed(1))).unwrap()
    }

    #[test]
    fn a_line_by_hand() {
        // Real 0, 1, 3: radii 1, 1, 2; generated 1.5, 5, 9: radii 3.5, 3.5, 4. 1.5 lies in the
        // balls of 1 and 3, 5 in that of 3 (its rim), 9 in none.
        let found = of(&[0.0, 1.0, 3.0], &[1.5, 5.0, 9.0], 1, 1);
        assert!((found.precision.value - 2.0 / 3.0).abs() < 1e-15);
        assert!((found.density.value - 1.0).abs() < 1e-15);
        assert!((found.coverage.value - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!((found.recall.value, found.n), (1.0, [3, 3]));
        // Moved away nothing is left.
        let far = of(&[0.0, 1.0, 3.0], &[101.5, 105.0, 109.0], 1, 1);
        assert_eq!([far.precision.value, far.recall.value, far.density.value, far.coverage.value], [0.0; 4]);
    }

    #[test]
    fn coverage_of_equal_distributions_is_what_counting_says() {
        for (n, m, k, dim) in [(80, 80, 5, 2), (60, 120, 3, 20)] {
            let trials = 60u64;
            let mean = (0..trials)
                .map(|t| of(&normal(Seed(t), n * dim), &normal(Seed(500 + t), m * dim), dim, k).coverage.value)
                .sum::<f64>()
                / trials as f64;
            let expected = expected_coverage(n, m, k);
            // Standard deviation of one share is 0.05 at most.
            assert!((mean - expected).abs() < 0.02, "{n} {m} {k}: {mean} {expected}");
        }
        // Published: k = 5 gives 0.97 for many images.
        assert!((expected_coverage(10_000, 10_000, 5) - 0.969).abs() < 1e-3);
    }

    #[test]
    fn a_collapsed_generator_keeps_its_precision_and_loses_the_rest() {
        let dim = 8;
        let (train, test) = (normal(Seed(1), 400 * dim), normal(Seed(2), 300 * dim));
        // One training image, a thousandth of a deviation apart.
        let collapsed: Vec<f64> = (0..250)
            .flat_map(|i| {
                normal(Seed(100 + i), dim).into_iter().zip(&train[..dim]).map(|(e, x)| x + 1e-3 * e).collect::<Vec<_>>()
            })
            .collect();
        let set = |values| Features::new(values, dim).unwrap();
        let found = compare_manifolds(&set(&train), &set(&test), &set(&collapsed), 3, Seed(1)).unwrap();
        assert_eq!((found.generated.n, found.held_out.n), ([400, 250], [400, 250]));
        assert!(found.generated.precision.value == 1.0 && found.generated.recall.value < 0.01, "{found:?}");
        assert!(found.generated.coverage.value < 0.2 && found.held_out.coverage.value > 0.7, "{found:?}");
        assert!(found.held_out.recall.value > 0.5, "{found:?}");
    }

    #[test]
    fn copies_are_inside_the_balls_that_reach_them() {
        // Every ball ends at a training image: < instead of ≤ would lose a fifth of the density.
        let train = normal(Seed(3), 200 * 6);
        let copied = of(&train, &train, 6, 4);
        assert_eq!([copied.precision.value, copied.recall.value, copied.coverage.value], [1.0; 3]);
        // Each ball holds its centre and k more.
        assert!((copied.density.value - 5.0 / 4.0).abs() < 1e-12, "{copied:?}");
    }
}
