//! ∫ p(x|y) dx = 1, by importance sampling with a proposal that knows nothing of the flow.

use bayescope::flow::{Flow, Precision};
use bayescope::units::{Seed, Tau};
use rand::RngExt;

use crate::common::tiny;

/// Mean and standard error of p(x|y)/g(x) over x ~ g, the uniform distribution on the whole support of p, for every
/// (τ, class).
fn integrals(flow: &dyn Flow, taus: &[f64], n: usize, seed: Seed) -> Vec<(f64, f64)> {
    let dims = flow.shape().dims();
    // Where the bounded logit map is defined: (½ − ½/b, ½ + ½/b) in every dimension.
    let side = 1.0 / f64::from(0.9f32);
    let log_volume = dims as f64 * side.ln();
    let mut sums = vec![(0.0, 0.0); taus.len() * flow.classes()];
    let mut rng = seed.rng(0);
    let (batch, mut done) = (4096, 0);
    while done < n {
        let x: Vec<f32> = (0..batch * dims)
            .map(|_| (0.5 + side * (rng.random::<f64>().clamp(1e-6, 1.0 - 1e-6) - 0.5)) as f32)
            .collect();
        let scores = flow.score(&x).unwrap();
        for i in 0..batch {
            let weights = taus.iter().flat_map(|&t| scores.log_likelihoods(i, Tau::new(t).unwrap()));
            for ((sum, squares), log_p) in sums.iter_mut().zip(weights) {
                let weight = (log_p + log_volume).exp();
                *sum += weight;
                *squares += weight * weight;
            }
        }
        done += batch;
    }
    let n = done as f64;
    sums.iter().map(|(sum, squares)| (sum / n, ((squares / n - (sum / n).powi(2)) / n).sqrt())).collect()
}

/// Four dimensions, the fewest a Glow can have. The weights p/g are bounded (z is Gaussian, and e^(−z²/2) beats the growth of
/// the logit's derivative), so the standard error is honest; it must also be small.
#[test]
fn densities_integrate_to_one() {
    for (seed, steps) in [(41, 1), (42, 2)] {
        let flow = tiny::flow(&tiny::config(1, 2, 1, steps), seed, Precision::F64);
        for (mean, std_error) in integrals(&flow, &[0.7, 1.0, 1.4], 200_000, Seed(seed)) {
            println!("∫p dx = {mean:.5} ± {std_error:.5}");
            assert!(std_error < 0.01, "too uncertain to tell: {std_error}");
            assert!((mean - 1.0).abs() < 4.0 * std_error, "{mean} ± {std_error}");
        }
    }
}
