//! The estimators in Gaussian worlds of known Bayes error. N and seeds are fixed.

use rand_distr::{Distribution, StandardNormal};
use statrs::distribution::{ContinuousCDF, Normal};

use super::*;
use crate::measure::student_mean;
use crate::stats::mean_and_error;
use crate::units::Seed;

/// Standard normal numbers.
pub(super) fn normal(seed: Seed, count: usize) -> Vec<f32> {
    let mut rng = seed.rng(0);
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// `n` samples of N(mean_y, I) in `dim` dimensions, classes in turn.
fn gaussians(seed: Seed, n: usize, dim: usize, means: &[[f32; 2]]) -> (Vec<f32>, Vec<usize>) {
    let mut features = normal(seed, n * dim);
    let labels: Vec<usize> = (0..n).map(|i| i % means.len()).collect();
    for (x, &y) in features.chunks_mut(dim).zip(&labels) {
        x.iter_mut().zip(means[y]).for_each(|(x, mean)| *x += mean);
    }
    (features, labels)
}

/// All estimates of one draw by name.
fn graded(features: &[f32], dim: usize, labels: &[usize], classes: usize) -> impl Fn(Estimator) -> Graded {
    let all = grade(Sample::new(features, dim, labels, classes).unwrap(), None, &mut || Ok(())).unwrap();
    move |estimator| {
        let found = all.iter().find(|(name, _)| *name == estimator).unwrap();
        found.1.as_ref().unwrap().clone()
    }
}

/// Three standard errors of a share near `p` of `n`.
fn chance(p: f64, n: usize) -> f64 {
    3.0 * (p * (1.0 - p) / n as f64).sqrt()
}

/// What theory says of every estimator, at N = 4,000.
fn holds(truth: f64, dim: usize, means: &[[f32; 2]], seed: Seed) {
    let n = 4000;
    let (features, labels) = gaussians(seed, n, dim, means);
    let of = graded(&features, dim, &labels, means.len());
    let slack = chance(truth, n);
    let told = |estimator: Estimator| {
        let Graded { estimate, lower, upper, chosen, .. } = of(estimator);
        format!("{} {estimate:.4} [{lower:.4?}, {upper:.4?}] {chosen:?}", estimator.name())
    };
    let report: Vec<String> = Estimator::ALL[..6].iter().map(|&estimator| told(estimator)).collect();
    println!("D = {dim}, truth {truth:.4}: {}", report.join("; "));
    for estimator in [Estimator::OneNn, Estimator::Devijver, Estimator::Ghp] {
        let g = of(estimator);
        // With much overlap the lower bound is within 2 points of the truth, and its chance is
        // larger.
        let lowest = nearest::cover_hart(g.estimate - chance(g.estimate, n), means.len());
        assert!(lowest < truth && truth < g.upper.unwrap(), "{g:?} {truth}");
    }
    let (knn, one_nn) = (of(Estimator::Knn), of(Estimator::OneNn));
    assert!(knn.estimate > truth - slack && knn.estimate < one_nn.estimate, "{knn:?} {truth}");
    assert!(knn.lower.unwrap() < truth, "{knn:?} {truth}");
    let error = of(Estimator::KdeError);
    assert!(error.estimate > truth - slack && error.estimate < one_nn.estimate, "{error:?} {truth}");
    if dim <= 2 {
        // A point for smoothing: h = 0.3 widens the classes by √1.09.
        let plug_in = of(Estimator::KdePlugIn);
        assert!((error.estimate - truth).abs() < slack + 0.01, "{error:?} {truth}");
        assert!((plug_in.estimate - truth).abs() < slack + 0.01, "{plug_in:?} {truth}");
    }
}

#[test]
fn two_gaussians_in_few_and_in_more_dimensions() {
    for delta in [1.0f32, 2.0, 3.0] {
        let truth = Normal::standard().cdf(-f64::from(delta) / 2.0);
        for dim in [1, 2, 8] {
            holds(truth, dim, &[[0.0, 0.0], [delta, 0.0]], Seed(dim as u64).split(&delta.to_string()));
        }
    }
}

#[test]
fn three_equidistant_gaussians() {
    let means = [[0.0f32, 0.0], [2.0, 0.0], [1.0, 3f32.sqrt()]];
    // ∫ max_y π_y p(x|y) by the midpoint rule.
    let (steps, low, width) = (2000, -9.0, 20.0);
    let step = width / f64::from(steps);
    let mut right = 0.0;
    for i in 0..steps {
        for j in 0..steps {
            let x = [i, j].map(|at| low + (f64::from(at) + 0.5) * step);
            let log = means.map(|m| -((x[0] - f64::from(m[0])).powi(2) + (x[1] - f64::from(m[1])).powi(2)) / 2.0);
            right += log.into_iter().fold(f64::NEG_INFINITY, f64::max).exp();
        }
    }
    let truth = 1.0 - right * step * step / (3.0 * std::f64::consts::TAU);
    for dim in [2, 8] {
        holds(truth, dim, &means, Seed(31));
    }
}

#[test]
fn coincident_classes_have_the_error_of_a_guess() {
    for classes in [2usize, 5] {
        let (n, truth) = (4000, 1.0 - 1.0 / classes as f64);
        let (features, labels) = gaussians(Seed(40), n, 2, &vec![[0.0; 2]; classes]);
        let of = graded(&features, 2, &labels, classes);
        for estimator in [Estimator::OneNn, Estimator::Devijver, Estimator::Knn, Estimator::Ghp, Estimator::KdeError] {
            let g = of(estimator);
            println!("K = {classes}: {} {:.4} lower {:?}", g.estimator.name(), g.estimate, g.lower);
            assert!((g.estimate - truth).abs() < chance(truth, n) + 0.01, "{g:?} {truth}");
        }
        // The plug-in takes the noise of densities for knowledge: biased low here.
        assert!(of(Estimator::KdePlugIn).estimate < truth);
    }
}

#[test]
fn separated_classes_have_none() {
    let (features, labels) = gaussians(Seed(50), 1000, 8, &[[0.0; 2], [40.0, 0.0], [0.0, 40.0]]);
    let of = graded(&features, 8, &labels, 3);
    for estimator in [Estimator::OneNn, Estimator::Devijver, Estimator::Knn, Estimator::KdeError] {
        assert_eq!((of(estimator).estimate, of(estimator).lower.unwrap_or(0.0)), (0.0, 0.0));
    }
    // A tree must join three classes: two edges.
    assert_eq!(of(Estimator::Ghp).estimate, 2.0 / 1000.0);
    assert!(of(Estimator::KdePlugIn).estimate.abs() < 1e-12);
}

#[test]
fn choosing_k_on_the_other_half_is_not_optimistic() {
    // Coincident classes: every k errs ½. The least of the leave-one-out errors of 12 k lies below
    // it, the cross-chosen one does not; means over draws, three standard errors.
    let (n, trials) = (300, 200);
    let (mut honest, mut least) = (Vec::new(), Vec::new());
    for trial in 0..trials {
        let (features, labels) = gaussians(Seed(60).split(&trial.to_string()), n, 2, &[[0.0; 2]; 2]);
        let geometry = Geometry::new(Sample::new(&features, 2, &labels, 2).unwrap()).unwrap();
        honest.push(knn(&geometry, &KS).unwrap().estimate);
        least.push(KS.iter().map(|&k| knn(&geometry, &[k]).unwrap().estimate).fold(1.0, f64::min));
    }
    let ((honest, half), (least, half_least)) = (student_mean(&honest), student_mean(&least));
    println!("honest {honest:.4} ± {half:.4}, least {least:.4} ± {half_least:.4}");
    assert!(honest > 0.5 - 1.6 * half && least < 0.5 - 1.6 * half_least);
}

#[test]
fn lower_bounds_of_theory_fail_in_many_dimensions() {
    // Σ p(1 − p) is reached only where neighbours are near: 500 samples of 64 dimensions have none.
    let truth = Normal::standard().cdf(-0.5);
    let lower = |trial: u64| {
        let (features, labels) = gaussians(Seed(66).split(&trial.to_string()), 500, 64, &[[0.0; 2], [1.0, 0.0]]);
        let of = graded(&features, 64, &labels, 2);
        [Estimator::OneNn, Estimator::Ghp].map(|estimator| of(estimator).lower.unwrap())
    };
    let lowers: Vec<[f64; 2]> = (0..20).map(lower).collect();
    for (at, name) in ["1-NN", "GHP"].into_iter().enumerate() {
        let (mean, half) = student_mean(&lowers.iter().map(|l| l[at]).collect::<Vec<_>>());
        println!("{name}: mean lower bound {mean:.4} ± {half:.4}, truth {truth:.4}");
        assert!(mean - 1.6 * half > truth);
    }
}

#[test]
fn devijver_varies_less_than_one_nn() {
    let (n, trials) = (400, 200);
    let (mut one, mut five, mut tree) = (Vec::new(), Vec::new(), Vec::new());
    for trial in 0..trials {
        let (features, labels) = gaussians(Seed(65).split(&trial.to_string()), n, 2, &[[0.0; 2], [2.0, 0.0]]);
        let geometry = Geometry::new(Sample::new(&features, 2, &labels, 2).unwrap()).unwrap();
        one.push(one_nn(&geometry).estimate);
        five.push(devijver(&geometry, DEVIJVER_K).unwrap().estimate);
        tree.push(ghp(&geometry).estimate);
    }
    let spread = |values: &[f64]| mean_and_error(values).1 * (values.len() as f64).sqrt();
    let (one, five, tree) = (spread(&one), spread(&five), spread(&tree));
    println!("standard deviations over draws: 1-NN {one:.4}, Devijver {five:.4}, GHP {tree:.4}");
    assert!(five < 0.9 * one);
}

#[test]
fn the_order_of_the_samples_does_not_matter() {
    let (features, labels) = gaussians(Seed(70), 500, 3, &[[0.0; 2], [1.0, 0.5]]);
    // Sorted by class.
    let order: Vec<usize> = (0..500).step_by(2).chain((1..500).step_by(2)).collect();
    let sorted: Vec<f32> = order.iter().flat_map(|&i| features[i * 3..][..3].to_vec()).collect();
    let sorted_labels: Vec<usize> = order.iter().map(|&i| labels[i]).collect();
    let (one, other) = (graded(&features, 3, &labels, 2), graded(&sorted, 3, &sorted_labels, 2));
    for estimator in [Estimator::OneNn, Estimator::Devijver, Estimator::Knn, Estimator::Ghp, Estimator::KdeError] {
        assert_eq!(
            (one(estimator).estimate, one(estimator).chosen),
            (other(estimator).estimate, other(estimator).chosen)
        );
    }
    assert!((one(Estimator::KdePlugIn).estimate - other(Estimator::KdePlugIn).estimate).abs() < 1e-12);
}

#[test]
fn one_estimator_that_cannot_does_not_stop_the_others() {
    // Class 1 has a single sample.
    let (features, mut labels) = gaussians(Seed(80), 20, 2, &[[0.0; 2]]);
    labels[7] = 1;
    let all = grade(Sample::new(&features, 2, &labels, 2).unwrap(), None, &mut || Ok(())).unwrap();
    for (estimator, graded) in all {
        let kde = matches!(estimator, Estimator::KdePlugIn | Estimator::KdeError);
        assert_eq!(graded.is_err(), kde, "{estimator:?}");
        if let Ok(graded) = graded {
            assert_eq!(graded.estimator, estimator);
        }
    }
}

#[test]
fn unusable_samples_are_refused_with_their_cause() {
    let refusal = |features: &[f32], dim, labels: &[usize], classes| {
        Sample::new(features, dim, labels, classes).unwrap_err().to_string()
    };
    assert!(refusal(&[0.0; 3], 2, &[0, 1], 2).contains("need 4 numbers, not 3"));
    assert!(refusal(&[0.0; 2], 1, &[0, 2], 2).contains("label 2"));
    assert!(refusal(&[0.0; 2], 1, &[0, 0], 2).contains("class 1 has no sample"));
    assert!(refusal(&[0.0; 2], 1, &[0, 0], 1).contains("two classes"));
    assert!(refusal(&[0.0], 1, &[0], 2).contains("not 1"));
    assert!(refusal(&[0.0; MOST + 1], 1, &[0; MOST + 1], 2).contains("not 16385"));
    assert!(refusal(&[0.0, f32::NAN], 1, &[0, 1], 2).contains("sample 1: its feature 0 is NaN"));
}

#[test]
fn duplicates_of_all_samples_are_handled() {
    // Everything at one point: distances tie, densities do not exist.
    let all = grade(Sample::new(&[1.0; 40], 2, &[0, 1].repeat(10), 2).unwrap(), None, &mut || Ok(())).unwrap();
    for (estimator, graded) in all {
        match graded {
            Ok(g) => assert!((0.0..=1.0).contains(&g.estimate), "{g:?}"),
            Err(error) => {
                assert!(matches!(estimator, Estimator::KdePlugIn | Estimator::KdeError));
                assert!(error.contains("duplicate"), "{error}");
            }
        }
    }
}

#[test]
fn names_are_what_serde_writes() {
    for estimator in Estimator::ALL {
        assert_eq!(serde_json::to_string(&estimator).unwrap(), format!("\"{}\"", estimator.name()));
    }
    assert_eq!(Chosen::Halves([3, 5]).to_string(), "k = 3 and 5");
    assert_eq!(Chosen::Halves([3, 3]).to_string(), "k = 3");
}
