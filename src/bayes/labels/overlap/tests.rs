//! Slopes of labels, and what a search for τ takes from its levels.

use rand_distr::{Distribution, StandardNormal};

use super::super::tests::{at, integral_at, two};
use super::*;
use crate::events::silent;
use crate::parallel;

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
            let found = derivative(&classes, Tau::new(tau).unwrap(), &spec, &mut silent()).unwrap();
            held += u64::from((found.interval.0..=found.interval.1).contains(&truth));
            // Narrower than what a central difference misses, so that it is not width that holds the truth.
            let open = Z95 * found.std_error / truth;
            assert!(open < 4e-4, "T = {smoothing}, τ = {tau}: {found:?} for {truth}");
        }
        println!("T = {smoothing}, τ = {tau}: of {SEEDS} intervals {held} hold the slope");
        assert!(held >= SEEDS * 90 / 100, "T = {smoothing}, τ = {tau}: {held} of {SEEDS} hold {truth}");
    }
}

/// Levels of E~ as it is by `error` of the way in log τ, all replicates alike.
fn around(step: f64, error: impl Fn(f64) -> f64) -> Around {
    let sum = Scaled { log_scale: 0.0, value: error(0.0), half_width: 0.0 };
    let level = |steps: f64| Level { sum, errors: [error(steps * step); REPLICATES], samples: 0, work: 0.0 };
    Around { levels: [-2.0, -1.0, 0.0, 1.0, 2.0].map(level), step, jumps: false }
}

#[test]
fn what_a_line_leaves_grows_with_the_curvature() {
    // E''/E' = 60, as at errors of 1e-13 or so, and E'' = 0.
    for (second, third) in [(60.0, 0.0), (-60.0, 900.0), (0.0, 2000.0)] {
        for root in [3e-3, -3e-3] {
            let error = |x: f64| 0.2 + 0.3 * (x + second * x * x / 2.0 + third * x * x * x / 6.0);
            let around = around(0.004, error);
            let Root { delta, scatter, unseen, bent } = around.root(error(root));
            let (off, told) = ((delta - root).abs(), format!("{second}, {third}: {delta} ± {bent} for {root}"));
            assert!(scatter < 1e-12 && unseen == 0.0 && off <= 1.3 * bent && bent <= 3.0 * off, "{told}");
            let slope = around.slope(root);
            let truth = 0.3 * (1.0 + second * root + third * root * root / 2.0);
            assert!((slope.value - truth).abs() <= slope.std_error * Z95 + 1e-9, "{told}: {slope:?}, not {truth}");
            assert!(slope.std_error < 0.01, "{told}: {slope:?}");
        }
    }
}

#[test]
fn the_stage_that_ends_a_search_is_not_one_of_little_scatter_by_chance() {
    const SEEDS: usize = 10_000;
    const FIRST: f64 = 512.0;
    let first = student_95(REPLICATES - 1) * 1e-3 / (REPLICATES as f64).sqrt();
    for rate in [0.6, 0.9] {
        for part in [1.2, 1.0, 0.8, 0.6, 0.1] {
            // Normal roots around 0, new ones at every stage, whose scatter falls as points^−rate.
            let covers = |seed: usize| {
                let mut random = Seed(seed as u64).rng(0);
                let mut stages = Stages { points: FIRST, look: Look::default() };
                loop {
                    let scale = 1e-3 * (stages.points / FIRST).powf(-rate);
                    let roots: [f64; REPLICATES] = std::array::from_fn(|_| {
                        let normal: f64 = StandardNormal.sample(&mut random);
                        scale * normal
                    });
                    let (root, error) = mean_and_error(&roots);
                    let half_width = stages.widen(student_95(REPLICATES - 1) * error);
                    if half_width <= part * first {
                        return root.abs() <= half_width;
                    }
                    stages.grow(half_width / (part * first), f64::INFINITY);
                }
            };
            let covered = parallel::map(SEEDS, covers).into_iter().filter(|covers| *covers).count();
            let covered = covered as f64 / SEEDS as f64;
            // Without what is left of earlier stages 90 to 94 %.
            assert!(covered >= 0.943, "rate {rate}, {part} of the first half width: {covered}");
        }
    }
}

#[test]
fn an_answer_says_where_it_is_less_close_than_was_asked_for() {
    let classes = two([0.5, 0.5]).with_smoothing(at(2.0));
    for (tolerance, says) in [(1e-4, false), (9e-5, true), (1e-7, true)] {
        let spec = Spec { tolerance, ..Spec::default() };
        let error = bayes_error(&classes, Tau::ONE, &spec, &mut silent()).unwrap();
        let found = tau_of_error(&classes, 0.2, &spec, &mut silent()).unwrap();
        for told in [&error.why, &found.achieved.why] {
            assert_eq!(told.contains("; no closer than 1e-4 of the value"), says, "{tolerance:e}: {told}");
        }
    }
}

#[test]
fn a_slope_where_a_class_stops_winning_is_in_the_interval() {
    // E'' jumps by 2 at a way of `jump`.
    for jump in [0.003_f64, -0.02, 0.05] {
        let error = |x: f64| 0.2 + 0.1 * x + (x - jump).max(0.0).powi(2);
        let slope = Around { jumps: true, ..around(0.04, error) }.slope(0.0);
        let (low, high) = slope.interval;
        let truth = 0.1 + 2.0 * (-jump).max(0.0);
        assert!((low..=high).contains(&truth), "{jump}: {slope:?}, not {truth}");
    }
}
