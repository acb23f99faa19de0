//! Slopes of labels, and what a search for τ takes from its levels.

use super::super::tests::{at, integral_at};
use super::*;

fn two(priors: [f64; 2]) -> GaussianClasses {
    GaussianClasses::new(vec![vec![0.0], vec![2.0]], priors.to_vec()).unwrap()
}

#[test]
fn slopes_of_smoothed_labels_hold_the_truth_where_they_turn_fast() {
    const SEEDS: u64 = 100;
    for (smoothing, tau) in [(5.0, 0.5), (3.0, 0.6), (2.0, 0.7)] {
        let priors = [0.5, 0.5];
        let error = |delta: f64| integral_at(tau * f64::exp(delta), 1e-4, priors, smoothing, None).0;
        let difference = |h: f64| (error(h) - error(-h)) / (2.0 * h);
        let truth = (4.0 * difference(0.01) - difference(0.02)) / 3.0;
        let classes = two(priors).with_smoothing(at(smoothing));
        let mut held = 0;
        for seed in 0..SEEDS {
            let spec = Spec { seed: Seed(seed), ..Spec::default() };
            let found = derivative(&classes, Tau::new(tau).unwrap(), &spec).unwrap();
            held += u64::from((found.interval.0..=found.interval.1).contains(&truth));
            // Narrower than what a central difference misses, so that it is not width that holds the truth.
            let open = Z95 * found.std_error / truth;
            assert!(open < 4e-4, "T = {smoothing}, τ = {tau}: {found:?} for {truth}");
        }
        println!("T = {smoothing}, τ = {tau}: of {SEEDS} intervals {held} hold the slope");
        assert!(held >= SEEDS * 90 / 100, "T = {smoothing}, τ = {tau}: {held} of {SEEDS} hold {truth}");
    }
}
