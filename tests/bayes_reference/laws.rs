//! What must hold for every problem: methods agree, E grows with τ between its limits, labels and directions do not matter.

use std::ops::ControlFlow;

use bayescope::bayes::{
    Claims, GaussianClasses, Method, Problem, Spec, bayes_error, derivative, information, information_at_zero,
    limit_at_zero, one_vs_rest, pairwise, reachable, tau_of_error,
};
use bayescope::error::Error;
use bayescope::units::{Seed, Tau};
use rand::distr::{Distribution, StandardUniform};

use crate::values::solve;

fn numbers(seed: u64, n: usize) -> Vec<f64> {
    let mut rng = Seed(seed).rng(0);
    (0..n).map(|_| StandardUniform.sample(&mut rng)).collect()
}

/// Random means in a cube of side `side`, random priors.
fn random(seed: u64, count: usize, dims: usize, side: f64) -> GaussianClasses {
    let means = numbers(seed, count * dims).chunks(dims).map(|m| m.iter().map(|x| side * x).collect()).collect();
    let weights: Vec<f64> = numbers(seed + 1000, count).iter().map(|u| 0.2 + u).collect();
    let total: f64 = weights.iter().sum();
    GaussianClasses::new(means, weights.iter().map(|w| w / total).collect()).unwrap()
}

fn inform(classes: &GaussianClasses, spec: &Spec) -> bayescope::bayes::Information {
    information(classes, Tau::ONE, spec, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn by(method: Method, tolerance: f64) -> Spec {
    Spec { method: Some(method), tolerance, ..Spec::default() }
}

#[test]
fn methods_agree_on_random_problems_with_any_priors() {
    for (seed, count, dims, side) in [(1, 3, 2, 4.0), (2, 5, 3, 5.0), (3, 6, 9, 3.0), (4, 9, 4, 6.0), (5, 20, 12, 3.0)]
    {
        let classes = random(seed, count, dims, side);
        let best = solve(&classes, Tau::ONE, &Spec { tolerance: 1e-5, ..Spec::default() });
        let specs = [by(Method::Sov, 1e-4), by(Method::Pair, 2e-3), by(Method::Mc, 2e-2), by(Method::Hdr, 1.0)];
        for spec in specs {
            let other = solve(&classes, Tau::ONE, &spec);
            let error = (best.figure.std_error.powi(2) + other.figure.std_error.powi(2)).sqrt();
            let off = (best.figure.value - other.figure.value).abs();
            assert!(off < 4.0 * error, "problem {seed}: {best:?} against {other:?}");
        }
    }
}

#[test]
fn the_error_grows_with_tau_from_zero_to_the_guess() {
    let classes = random(7, 8, 5, 4.0);
    let guess = 1.0 - classes.priors().iter().fold(0.0, |a: f64, &b| a.max(b));
    let mut last = 0.0;
    for tau in [1e-6, 1e-3, 0.1, 0.3, 1.0, 3.0, 10.0, 1e3, 1e6] {
        let estimate = solve(&classes, Tau::new(tau).unwrap(), &Spec::default());
        let value = estimate.figure.value;
        assert!(value >= last && value <= guess * (1.0 + 1e-4), "τ = {tau}: {estimate:?}");
        // Below the smallest double the logarithm still tells.
        assert!(value > 0.0 || estimate.log_value < -700.0, "τ = {tau}: {estimate:?}");
        last = value;
    }
    assert!((last / guess - 1.0).abs() < 1e-4, "{last} should near {guess}");
}

#[test]
fn the_derivative_is_the_difference() {
    for (seed, count, dims) in [(11, 2, 3), (12, 4, 2), (13, 5, 6), (14, 9, 9)] {
        let classes = random(seed, count, dims, 4.0);
        let spec = Spec { tolerance: 1e-6, ..Spec::default() };
        let at = |step: f64| solve(&classes, Tau::new(step.exp()).unwrap(), &spec).figure.value;
        let difference = (at(0.01) - at(-0.01)) / 0.02;
        let slope = derivative(&classes, Tau::ONE, &spec, &mut bayescope::events::silent()).unwrap().value;
        assert!((slope / difference - 1.0).abs() < 2e-3, "problem {seed}: {slope} against {difference}");
    }
}

#[test]
fn the_derivative_of_very_many_classes_is_that_of_the_closed_form() {
    // All at one distance there is a closed form; moved by a millionth there is none, and 104 classes are too many for faces.
    let classes = |moved: f64| {
        let side = |k: usize| {
            numbers(k as u64, 104)
                .into_iter()
                .enumerate()
                .map(move |(d, u)| moved * u + f64::from(u8::from(d == k)) * 3.0)
        };
        GaussianClasses::new((0..104).map(|k| side(k).collect()).collect(), vec![1.0 / 104.0; 104]).unwrap()
    };
    for tau in [0.6, 1.0] {
        let at = |moved, tolerance| {
            derivative(
                &classes(moved),
                Tau::new(tau).unwrap(),
                &Spec { tolerance, ..Spec::default() },
                &mut bayescope::events::silent(),
            )
            .unwrap()
        };
        let (closed, found) = (at(0.0, 1e-3), at(1e-6, 1e-3));
        assert!(found.std_error < 0.01 * found.value, "{found:?}");
        assert!(
            (found.value - closed.value).abs() <= 3.0 * found.std_error + 1e-3 * closed.value,
            "{found:?}, {closed:?}"
        );
    }
}

#[test]
fn tau_inverts_the_error() {
    for (seed, count, dims) in [(21, 2, 3), (22, 5, 2), (23, 6, 6), (24, 12, 12)] {
        let classes = random(seed, count, dims, 4.0);
        let (_, high) = reachable(&classes);
        for target in [1e-9, 0.01, 0.3 * high, 0.97 * high] {
            let found = tau_of_error(&classes, target, &Spec::default(), &mut |_| ControlFlow::Continue(())).unwrap();
            let tau = Tau::new(found.tau.value).unwrap();
            let again = solve(&classes, tau, &Spec { seed: Seed(99), ..Spec::default() }).figure;
            let open = 4.0 * again.std_error + 4.0 * found.slope.value * found.tau.std_error / found.tau.value;
            assert!((again.value - target).abs() <= open + 1e-9 * target, "problem {seed}, {target}: {again:?}");
        }
    }
}

#[test]
fn unreachable_errors_are_told_with_what_can_be_reached() {
    let classes = GaussianClasses::new(vec![vec![0.0], vec![0.0], vec![3.0]], vec![0.3, 0.2, 0.5]).unwrap();
    for target in [0.1, 0.2, 0.5, 0.7, f64::NAN] {
        let error = tau_of_error(&classes, target, &Spec::default(), &mut |_| ControlFlow::Continue(())).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("between 20.0000 % and 50.0000 %"), "{text}");
    }
    assert_eq!(reachable(&classes), (0.2, 0.5));
}

#[test]
fn the_limit_at_zero_temperature_is_what_small_temperatures_near() {
    let classes = GaussianClasses::new(vec![vec![0.0], vec![0.0], vec![3.0]], vec![0.3, 0.2, 0.5]).unwrap();
    let (error, found) = (limit_at_zero(&classes).unwrap(), information_at_zero(&classes).unwrap());
    let cold = Tau::new(0.01).unwrap();
    assert!((solve(&classes, cold, &Spec::default()).figure.value - error.figure.value).abs() < 1e-12);
    let near = information(&classes, cold, &Spec::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert!((near.aleatoric_nats.value - found.aleatoric_nats.value).abs() < 1e-12);
    assert!((error.figure.value - 0.2).abs() < 1e-15 && found.aleatoric_nats.value > 0.3);
}

#[test]
fn a_caller_may_stop_every_method_between_refinements() {
    let classes = random(61, 12, 11, 4.0);
    for method in [Method::Sov, Method::Pair, Method::Mc, Method::Hdr] {
        let mut told = 0;
        let mut sink = |_| {
            told += 1;
            ControlFlow::Break(())
        };
        let stopped = bayes_error(&classes, Tau::ONE, &by(method, 1e-9), &mut sink);
        assert!(matches!(stopped, Err(Error::Cancelled)) && told == 1, "{method:?}");
    }
    let mut stop = |_| ControlFlow::Break(());
    let stopped = information(&classes, Tau::ONE, &by(Method::Pair, 1e-9), &mut stop);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

#[test]
fn no_interval_ends_at_its_own_estimate_where_certain_bounds_cut_it() {
    // Of two classes the bounds are exact, and whatever is drawn misses them.
    let two = GaussianClasses::new(vec![vec![0.0, 0.0], vec![8f64.sqrt(), 0.5f64.sqrt()]], vec![0.3, 0.7]).unwrap();
    for method in [Method::Mc, Method::Hdr] {
        for seed in 0..4 {
            let found = solve(&two, Tau::ONE, &Spec { seed: Seed(seed), ..by(method, 2e-2) });
            let (low, high) = found.figure.interval;
            assert!(low < found.figure.value && found.figure.value < high, "{method:?}: {found:?}");
            assert!(found.why.contains("outside the certain bounds"), "{method:?}: {found:?}");
        }
    }
    // Where hardly anything tells the classes apart, half of all draws are worse than guessing.
    let many = random(61, 12, 11, 4.0);
    for seed in 0..16 {
        let spec = Spec { tolerance: 1e-2, seed: Seed(seed), ..Spec::default() };
        let found = solve(&many, Tau::new(1e3).unwrap(), &spec);
        let (value, interval, bounds) = (found.figure.value, found.figure.interval, found.bounds);
        let inside = |x: f64| bounds.0 * (1.0 - 1e-9) <= x && x <= bounds.1 * (1.0 + 1e-9);
        assert!([value, interval.0, interval.1].into_iter().all(inside) && interval.0 <= value, "{found:?}");
    }
}

#[test]
fn degenerate_problems_have_right_answers() {
    let solve = |means: Vec<Vec<f64>>, priors: Vec<f64>| {
        let classes = GaussianClasses::new(means, priors).unwrap();
        let methods = [None, Some(Method::Sov), Some(Method::Pair), Some(Method::Mc), Some(Method::Hdr)];
        methods
            .map(|method| solve(&classes, Tau::ONE, &Spec { method, tolerance: 1e-2, ..Spec::default() }).figure.value)
    };
    // One class; coincident classes; a class that cannot occur.
    assert_eq!(solve(vec![vec![1.0, 2.0]], vec![1.0]), [0.0; 5]);
    for value in solve(vec![vec![1.0]; 3], vec![0.5, 0.3, 0.2]) {
        assert!((value - 0.5).abs() < 1e-15);
    }
    for value in solve(vec![vec![0.0], vec![2.0], vec![1.0]], vec![0.5, 0.5, 0.0]) {
        assert!((value / 0.158_655_253_931_457_05 - 1.0).abs() < 0.05, "{value}");
    }
}

#[test]
fn a_thousand_classes_and_two_hundred_thousand_dimensions_are_fine() {
    let many = random(31, 1000, 40, 12.0);
    let estimate = solve(&many, Tau::ONE, &Spec { tolerance: 0.02, ..Spec::default() });
    assert_eq!(estimate.method, Method::Pair);
    assert!(estimate.figure.relative_half_width() <= 0.02, "{estimate:?}");
    // Distances are kept by any embedding: a small problem spread over 196,608 dimensions is the same problem.
    let small = numbers(32, 4 * 3);
    let wide: Vec<Vec<f64>> = small
        .chunks(3)
        .map(|mean| (0..196_608).map(|i| 4.0 * mean[i % 3] / 65_536f64.sqrt() + (i as f64).sin()).collect())
        .collect();
    let narrow = small.chunks(3).map(|mean| mean.iter().map(|x| 4.0 * x).collect()).collect();
    let [wide, narrow] = [wide, narrow].map(|means| GaussianClasses::new(means, vec![0.25; 4]).unwrap());
    let [a, b] = [&wide, &narrow].map(|classes| solve(classes, Tau::ONE, &Spec::default()).figure.value);
    assert!((a / b - 1.0).abs() < 1e-10, "{a} {b}");
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    let classes = random(41, 12, 11, 4.0);
    for method in [Method::Sov, Method::Pair, Method::Mc, Method::Hdr] {
        let value = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| solve(&classes, Tau::ONE, &by(method, 1e-2)).figure)
        };
        assert_eq!(value(1), value(3), "{method:?}");
    }
}

#[test]
fn what_a_world_says_of_itself_is_possible() {
    for seed in 51..56 {
        let classes = random(seed, 7, 6, 4.0);
        let spec = Spec { tolerance: 1e-3, ..Spec::default() };
        let (error, found) = (solve(&classes, Tau::ONE, &spec), inform(&classes, &spec));
        let claim = |figure: bayescope::bayes::Figure| Some((figure.value, 2.0 * figure.std_error));
        let claims = Claims {
            priors: classes.priors().to_vec(),
            aleatoric_nats: claim(found.aleatoric_nats),
            mutual_information_bits: claim(found.mutual_information_bits),
            bayes_error: claim(error.figure),
        };
        assert_eq!(claims.contradictions().unwrap(), Vec::<String>::new());
        // A class is at least half as hard to tell from all others as from the hardest single one.
        let ranked = one_vs_rest(&classes, Tau::ONE, &spec, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(ranked.iter().all(|class| class.one_vs_rest.value > 0.0 && class.one_vs_rest.value < 0.5));
        let pairs = pairwise(&classes, Tau::ONE, &spec, &mut |_| ControlFlow::Continue(())).unwrap().errors;
        assert!((0..7).all(|i| (0..7).all(|j| pairs[i * 7 + j] == pairs[j * 7 + i])));
    }
}

#[test]
fn problems_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("problem.json");
    std::fs::write(&path, r#"{"means":[[0,0],[2,0]],"cov_diag":[1,4],"priors":[0.5,0.5]}"#).unwrap();
    let classes = Problem::read(&path).unwrap().classes().unwrap();
    let value = solve(&classes, Tau::ONE, &Spec::default()).figure.value;
    assert!((value / 0.158_655_253_931_457_05 - 1.0).abs() < 1e-14);
    std::fs::write(&path, r#"{"means":[[0,0],[2]],"cov_diag":[1,4]}"#).unwrap();
    let text = Problem::read(&path).unwrap_err().to_string();
    assert!(text.contains("problem.json") && text.contains("means[1]"), "{text}");
}
