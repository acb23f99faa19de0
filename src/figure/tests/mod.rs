//! Properties of figures, with random numbers from a fixed seed.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

mod bounded;
mod examples;
mod gridded;
mod marked;
mod painted;
mod paper;
mod written;

fn rng(purpose: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(purpose)
}

fn all() -> Vec<Figure> {
    vec![examples::scaling(), examples::sweep(), examples::shift(), examples::learning()]
}

/// Any f64 there is, now and then one of the awkward ones.
fn any_number(rng: &mut ChaCha8Rng) -> f64 {
    let awkward =
        [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324];
    match rng.random_range(0..4) {
        0 => awkward[rng.random_range(0..awkward.len())],
        1 => f64::from_bits(rng.next_u64()),
        _ => rng.random_range(-10.0..10.0),
    }
}
