//! Intervals are honest: over 200 seeds the 95 % intervals of the four methods that draw cover the truth in 90 to 99 % of cases.

use bayescope::bayes::{GaussianClasses, HdrSpec, Method, Spec};
use bayescope::units::{Seed, Tau};
use rayon::prelude::*;

use crate::values::solve;

const SEEDS: u64 = 200;

/// K classes at a·e_k, with and without a shared tilt of the priors.
fn orthogonal(count: usize, a: f64) -> GaussianClasses {
    let mean = |k: usize| (0..count).map(|i| if i == k { a } else { 0.0 }).collect();
    GaussianClasses::new((0..count).map(mean).collect(), vec![1.0 / count as f64; count]).unwrap()
}

/// In how many of a hundred cases the interval covers the closed form.
fn coverage(classes: &GaussianClasses, spec: Spec) -> f64 {
    let truth = solve(classes, Tau::ONE, &Spec { method: Some(Method::Closed), ..spec }).figure.value;
    let covered: u64 = (0..SEEDS)
        .into_par_iter()
        .map(|seed| {
            let (low, high) = solve(classes, Tau::ONE, &Spec { seed: Seed(seed), ..spec }).figure.interval;
            u64::from(low <= truth && truth <= high)
        })
        .sum();
    100.0 * covered as f64 / SEEDS as f64
}

#[test]
fn intervals_cover_as_often_as_they_say() {
    let hdr = HdrSpec { samples: 4000, ..HdrSpec::default() };
    for (method, tolerance) in [(Method::Sov, 1e-3), (Method::Pair, 1e-2), (Method::Hdr, 1.0), (Method::Mc, 2e-2)] {
        for (count, a) in [(10, 2.2), (7, 3.5)] {
            let classes = orthogonal(count, a);
            let covered = coverage(&classes, Spec { method: Some(method), tolerance, hdr, ..Spec::default() });
            assert!((90.0..=99.0).contains(&covered), "{method:?}, K = {count}, a = {a}: {covered} %");
        }
    }
}

#[test]
fn errors_of_a_class_that_shows_none_yet_are_allowed_for() {
    // The rare class is often in doubt and soon known; half of the error is of the other one, which hardly ever is. Of two classes the
    // bounds by pairs are exact and cut the interval: what is looked at is the error bar before.
    for (rare, distance) in [(0.01, 6.0), (0.1, 5.5)] {
        let classes = GaussianClasses::new(vec![vec![0.0], vec![distance]], vec![1.0 - rare, rare]).unwrap();
        let by = |method| Spec { method: Some(method), tolerance: 0.2, ..Spec::default() };
        let truth = solve(&classes, Tau::ONE, &by(Method::Closed)).figure.value;
        let covers = |seed: &u64| {
            let found = solve(&classes, Tau::ONE, &Spec { seed: Seed(*seed), ..by(Method::Mc) }).figure;
            (found.value - truth).abs() <= 1.96 * found.std_error
        };
        let covered = 100.0 * (0..SEEDS).into_par_iter().filter(covers).count() as f64 / SEEDS as f64;
        assert!(covered >= 90.0, "priors {rare} at {distance}: {covered} %");
    }
}
