//! KID: the squared maximum mean discrepancy of features with a cubic kernel (Bińkowski et al.
//! 2018), unbiased at any number of images, where FID is not.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::features::{Features, Real};
use super::pairs::sums_of_products;
use crate::error::{Error, Result};
use crate::measure::{Estimate, Interval, student_mean};
use crate::units::Seed;

/// Images of a block unless a caller wants others, as in the paper.
pub const BLOCK: usize = 1000;

/// Fewest blocks that have a spread worth an interval.
const FEWEST: usize = 3;

/// MMD² of two sets with k(x, y) = (x·y/d + 1)³, the unbiased estimator (Gretton et al. 2012, eq.
/// 3): the mean of k over pairs of different images of `a`, the same of `b`, less twice the mean
/// over pairs across. Needs no table of pairs. Can be negative for equal distributions.
///
/// # Errors
/// When the numbers of features differ, or a set has fewer than two images.
pub fn mmd2<A: Real, B: Real>(a: &Features<'_, A>, b: &Features<'_, B>) -> Result<f64> {
    a.same_dim(b)?;
    let (n, m) = (a.n() as f64, b.n() as f64);
    if a.n() < 2 || b.n() < 2 {
        return Err(Error::input(format!("KID needs two images a set at least, not {n} and {m}")));
    }
    let cubic = |x: f64| (x + 1.0).powi(3);
    let ((aa, aa_own), (bb, bb_own)) = (sums_of_products(a, a, cubic), sums_of_products(b, b, cubic));
    let across = sums_of_products(a, b, cubic).0;
    let value = (aa - aa_own) / (n * (n - 1.0)) + (bb - bb_own) / (m * (m - 1.0)) - 2.0 * across / (n * m);
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::Numeric("cubic kernels of the features overflow: scale the features down".into()))
}

/// KID with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kid {
    /// Mean of [`mmd2`] over the blocks, and Student's 95 % interval of it.
    pub estimate: Estimate,
    /// Standard error of the mean, s/√blocks.
    pub std_error: f64,
    /// Standard deviation of one block: for comparison with what torch-fidelity prints as ±.
    pub spread: f64,
    /// How many blocks the mean is over.
    pub blocks: usize,
    /// Images of a block, of either set.
    pub block: usize,
}

/// KID of two sets, cut at random into as many disjoint pairs of blocks of `block` images as the
/// smaller set has. Blocks share no image and so are independent: their spread is an honest
/// standard error, of both sets' draws. (torch-fidelity takes 100 subsets of 1,000 that overlap;
/// its mean estimates the same number, its deviation is that of one subset.)
///
/// # Errors
/// Those of [`mmd2`]; fewer than 3 blocks.
pub fn kid<A: Real, B: Real>(a: &Features<'_, A>, b: &Features<'_, B>, block: usize, seed: Seed) -> Result<Kid> {
    a.same_dim(b)?;
    let (least, seed) = (a.n().min(b.n()), seed.split("blocks of KID"));
    let blocks = least.checked_div(block).unwrap_or(0);
    if block < 2 || blocks < FEWEST {
        return Err(Error::input(format!(
            "{least} images make no {FEWEST} blocks of {block}: an interval of KID needs them; take smaller blocks \
             (KID is unbiased at any size)"
        )));
    }
    let order = |n: usize, stream: u64| {
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut seed.rng(stream));
        order
    };
    let (of_a, of_b) = (order(a.n(), 0), order(b.n(), 1));
    let pairs = of_a.chunks_exact(block).zip(of_b.chunks_exact(block)).take(blocks);
    let one = |(x, y): (&[usize], &[usize])| {
        let (x, y) = (a.gather(x), b.gather(y));
        mmd2(&Features::new(&x, a.dim())?, &Features::new(&y, b.dim())?)
    };
    let values = pairs.map(one).collect::<Result<Vec<f64>>>()?;
    let (value, half) = student_mean(&values);
    let count = blocks as f64;
    let spread = (values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    let estimate = Estimate::new(value, Interval { low: value - half, high: value + half });
    Ok(Kid { estimate, std_error: spread / count.sqrt(), spread, blocks, block })
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;

    /// E k(x, y) of independent x, y in one dimension with raw moments `a`, `b` (first to third).
    fn expected(a: [f64; 3], b: [f64; 3]) -> f64 {
        1.0 + 3.0 * a[0] * b[0] + 3.0 * a[1] * b[1] + a[2] * b[2]
    }

    #[test]
    fn blocks_are_unbiased_and_their_interval_covers_the_known_value() {
        // x ~ N(0, 1), y ~ N(0.3, 1): moments 0, 1, 0 and μ, μ² + 1, μ³ + 3μ.
        let (x, y) = ([0.0, 1.0, 0.0], [0.3, 1.09, 0.027 + 0.9]);
        let truth = expected(x, x) + expected(y, y) - 2.0 * expected(x, y);
        let (trials, mut covered, mut mean) = (300u64, 0u32, 0.0);
        for trial in 0..trials {
            let (a, b) = (normal(Seed(trial), 400), normal(Seed(9000 + trial), 430));
            let b: Vec<f32> = b.iter().map(|v| (v + 0.3) as f32).collect();
            let (a, b) = (Features::new(&a, 1).unwrap(), Features::new(&b, 1).unwrap());
            let found = kid(&a, &b, 40, Seed(trial)).unwrap();
            assert_eq!((found.blocks, found.block), (10, 40));
            covered += u32::from(found.estimate.interval.contains(truth));
            mean += found.estimate.value / trials as f64;
        }
        println!("truth {truth}, mean {mean}, covered {covered} of {trials}");
        assert!((mean - truth).abs() < 0.05, "{mean} {truth}");
        assert!((0.90..=0.99).contains(&(f64::from(covered) / trials as f64)), "{covered}");
    }

    #[test]
    fn two_images_by_hand() {
        // aa: 1; bb: (2·3+1)³ = 343; across: (0·2+1)³ + (0·3+1)³ + (2+1)³ + (3+1)³ = 93.
        let value = mmd2(&Features::new(&[0.0, 1.0], 1).unwrap(), &Features::new(&[2.0f32, 3.0], 1).unwrap()).unwrap();
        assert!((value - (1.0 + 343.0 - 2.0 * 93.0 / 4.0)).abs() < 1e-12, "{value}");
    }

    #[test]
    fn too_few_images_are_named() {
        let (one, few) = (Features::new(&[1.0], 1).unwrap(), Features::new(&[1.0, 2.0, 3.0, 4.0, 5.0], 1).unwrap());
        assert!(mmd2(&one, &few).is_err());
        let error = kid(&few, &few, 2, Seed(1)).unwrap_err().to_string();
        assert!(error.contains("smaller blocks"), "{error}");
        assert!(kid(&few, &few, 0, Seed(1)).is_err());
    }
}
