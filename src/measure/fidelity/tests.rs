//! What the tests of this folder share.

use rand_distr::{Distribution, StandardNormal};

use crate::units::Seed;

/// `n` standard normal numbers.
pub fn normal(seed: Seed, n: usize) -> Vec<f64> {
    let mut rng = seed.split("normal").rng(0);
    (0..n).map(|_| StandardNormal.sample(&mut rng)).collect()
}
