use rand::distr::{Distribution, StandardUniform};

use super::super::classes::Merge;
use super::super::compute::{self, Spec};
use super::super::labels::at_zero;
use super::super::middle::MiddleSum;
use super::super::refine::Refined;
use super::super::simd::{Fused, Plain};
use super::*;
use crate::events::silent;
use crate::oracle::label_noise::LabelNoise;
use crate::units::{Seed, Tau};

/// Classes in a plane, the first two of them in one place where they are to be `coincident`.
fn problem(smoothing: f64, noise: Option<&str>, coincident: bool) -> GaussianClasses {
    let second = if coincident { vec![0.0, 0.0] } else { vec![1.5, 0.0] };
    let means = vec![vec![0.0, 0.0], second, vec![0.0, 1.8], vec![2.0, 2.4]];
    let classes = GaussianClasses::new(means, vec![0.4, 0.3, 0.2, 0.1]).unwrap();
    let noise = noise.map(|text| LabelNoise::parse(text).unwrap());
    classes.with_label_noise(noise.as_ref()).unwrap().with_smoothing(Smoothing::new(smoothing).unwrap())
}

fn doubt(classes: &GaussianClasses, tau: f64) -> (Scene, Doubt) {
    let scene = classes.scene(Tau::new(tau).unwrap(), Merge::Sum);
    let doubt = Doubt::new(classes, &scene, &at_zero(classes));
    (scene, doubt)
}

/// F and R by their definitions, the joints being those of the groups.
fn defined(classes: &GaussianClasses, (scene, share): (&Scene, f64), log_joints: &[f64]) -> (f64, f64) {
    let smoothing = classes.smoothing().get();
    let joints: Vec<f64> = log_joints.iter().map(|j| j.exp()).collect();
    let all: f64 = joints.iter().sum();
    // p_T of every class: its part of the density of its group.
    let mut of_class = vec![0.0; classes.classes()];
    for ((group, joint), weight) in scene.members.iter().zip(&joints).zip(&scene.weights) {
        group.iter().for_each(|&k| of_class[k] = (joint * classes.priors()[k] / weight).powf(1.0 / smoothing));
    }
    let tempered: f64 = of_class.iter().sum();
    of_class.iter_mut().for_each(|p| *p /= tempered);
    let of_label = classes.label_noise().map_or(of_class.clone(), |noise| noise.labels(&of_class));
    let certain = at_zero(classes).into_iter().map(|(_, law)| 1.0 - law.into_iter().fold(0.0, f64::max));
    let expected: f64 = certain.zip(&joints).map(|(error, joint)| error * joint / all).sum();
    let doubt = 1.0 - of_label.into_iter().fold(0.0, f64::max) - expected;
    let count = joints.len();
    let pairs = (0..count).flat_map(|g| (0..count).map(move |h| (g, h))).filter(|(g, h)| g != h);
    let density: f64 = pairs.map(|(g, h)| joints[g].powf(1.0 - share) * joints[h].powf(share)).sum();
    (doubt, doubt * all / if share == 0.5 { 0.5 * density } else { density })
}

#[test]
fn ratios_are_those_of_the_definition_and_below_their_peak() {
    let mut rng = Seed(9).rng(0);
    for (smoothing, noise, coincident) in [
        (2.0, None, false),
        (7.0, None, false),
        (0.4, None, false),
        (2.0, None, true),
        (0.4, None, true),
        (5.0, None, true),
        (1.0, Some("pair:0.2"), false),
        (1.0, Some("by-class:0.9,0.1,0,0.5"), true),
        (3.0, Some("by-class:0.3,0,0.1,0.2"), true),
        (0.4, Some("[[1,0,0,0],[1,0,0,0],[0,0,1,0],[0,0,0.5,0.5]]"), false),
    ] {
        let classes = problem(smoothing, noise, coincident);
        let (scene, doubt) = doubt(&classes, 1.0);
        let count = scene.count();
        let joints: Vec<f64> = (0..BLOCK * count)
            .map(|_| {
                let uniform: f64 = StandardUniform.sample(&mut rng);
                6.0 * uniform
            })
            .collect();
        let mut room = doubt.room();
        let ratios = [doubt.ratios::<Fused>(&joints, &mut room), doubt.ratios::<Plain>(&joints, &mut room)];
        for (point, joints) in joints.chunks(count).enumerate() {
            let (_, expected) = defined(&classes, (&scene, doubt.share()), joints);
            for ratios in ratios {
                let off = (ratios[point] - expected).abs();
                assert!(off < 1e-9, "T = {smoothing}, {noise:?}, {coincident}: {} for {expected}", ratios[point]);
            }
            assert!(expected.abs() <= doubt.peak * (1.0 + 1e-9), "T = {smoothing}, {noise:?}: {expected}");
        }
    }
}

#[test]
fn of_coincident_classes_the_label_is_decided_by_p_t_not_by_the_likelier_group() {
    let classes = |smoothing: f64| {
        let means = vec![vec![0.0, 0.0], vec![0.0, 0.0], vec![3.0, 1.0]];
        let classes = GaussianClasses::new(means, vec![0.6, 0.1, 0.3]).unwrap();
        classes.with_smoothing(Smoothing::new(smoothing).unwrap())
    };
    // The pair is likelier by e^0.1 together, its larger class less likely by 6/7 of that.
    let (_, doubt) = doubt(&classes(0.01), 1.0);
    let found = doubt.ratios::<Fused>(&[0.0, -0.1].repeat(BLOCK), &mut doubt.room())[0];
    let odds = (((6.0 / 7.0f64).ln() + 0.1) / 0.01).exp();
    let expected = odds / (1.0 + odds) * (1.0 + (-0.1f64).exp()) / (-0.05f64).exp();
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} for {expected}");
    // And what is not seen may be as large as (7/6)^½, not ^(1/T).
    assert!((doubt.peak / (7.0 / 6.0f64).sqrt() - 1.0).abs() < 1e-9, "{}", doubt.peak);
    // By the trapezoidal rule over the line of the means, 4,000,001 points.
    let truth = 0.001_799_274_732_387;
    let (value, half_width) = after(&classes(0.04), 1.0, 3, Some(200_000.0));
    assert!((value - truth).abs() <= 2.0 * half_width, "{value} ± {half_width} for {truth}");
    assert!(half_width < 0.02 * truth, "{half_width}");
}

#[test]
fn small_doubts_keep_their_digits() {
    for (smoothing, noise) in [(2.0, None), (0.5, None), (1.0, Some("[[1,0,0,0],[1,0,0,0],[0,0,1,0],[0,0,0,1]]"))] {
        let classes = problem(smoothing, noise, false);
        let (_, doubt) = doubt(&classes, 1.0);
        // The third class is next to impossible, the others more so.
        let depth = 80.0;
        let joints = [0.0, -900.0, -depth, -900.0].repeat(BLOCK);
        let found = doubt.ratios::<Fused>(&joints, &mut doubt.room())[0];
        let expected = (-depth * (1.0 / smoothing - doubt.share())).exp();
        assert!((found / expected - 1.0).abs() < 1e-6, "T = {smoothing}, {noise:?}: {found} for {expected}");
    }
}

/// After so many points of a replicate, or the first ones: value, half width.
fn after(classes: &GaussianClasses, tau: f64, seed: u64, points: Option<f64>) -> (f64, f64) {
    let (scene, doubt) = doubt(classes, tau);
    let mut sum = MiddleSum::new(&scene, doubt, Seed(seed), &mut || Ok(())).unwrap();
    let points = points.unwrap_or(sum.first_points());
    while !sum.refine(points, f64::INFINITY) {}
    let found = sum.sum();
    (found.value * found.log_scale.exp(), found.half_width * found.log_scale.exp())
}

#[test]
fn at_t_1_without_noise_it_is_the_bayes_error_of_the_classes() {
    let equidistant = |k: usize| (0..10).map(|i| if i == k { 2.2 } else { 0.0 }).collect();
    let ten = GaussianClasses::new((0..10).map(equidistant).collect(), vec![0.1; 10]).unwrap();
    for (name, classes) in [("plane", problem(1.0, None, false)), ("merged", problem(1.0, None, true)), ("ten", ten)] {
        for tau in [0.15, 0.5, 1.0, 4.0] {
            let at = Tau::new(tau).unwrap();
            let exact = compute::bayes_error(&classes, at, &Spec::default(), &mut silent()).unwrap().figure.value;
            let (value, half_width) = after(&classes, tau, 3, Some(60_000.0));
            let off = (value - exact).abs();
            assert!(off <= 3.0 * half_width + 1e-5 * exact, "{name}, τ = {tau}: {value} ± {half_width} for {exact}");
            assert!(half_width < 3e-3 * exact, "{name}, τ = {tau}: {half_width} of {exact}");
        }
    }
}

/// E~ of classes in a plane for T → 0: (2 ln 2) T Σ (1/d) ∫ p(x) dS over the faces between classes d apart in units of τ.
/// There the log odds of two classes change by d a unit of length, and the integral of 1/(1 + e^(|u|/T)) is (2 ln 2) T.
fn error_at_faces(classes: &GaussianClasses, means: &[[f64; 2]], tau: f64) -> f64 {
    const STEP: f64 = 1e-3;
    let (priors, norm) = (classes.priors(), 0.5 / std::f64::consts::PI);
    let joints = |x: [f64; 2]| -> Vec<f64> {
        let squared = |m: &[f64; 2]| (x[0] - m[0] / tau).powi(2) + (x[1] - m[1] / tau).powi(2);
        means.iter().zip(priors).map(|(m, prior)| norm * prior * (-0.5 * squared(m)).exp()).collect()
    };
    let mut sum = 0.0;
    for (g, h) in (0..means.len()).flat_map(|g| (0..g).map(move |h| (g, h))) {
        let way = [0, 1].map(|i| (means[g][i] - means[h][i]) / tau);
        let d = way[0].hypot(way[1]);
        // From the middle of the means to where their joints are the same.
        let beside = (priors[h] / priors[g]).ln() / (d * d);
        for i in -20_000..=20_000 {
            let along = STEP * f64::from(i) / d;
            let x = [0, 1].map(|k| 0.5 * (means[g][k] + means[h][k]) / tau + beside * way[k]);
            let joints = joints([x[0] - along * way[1], x[1] + along * way[0]]);
            let largest = joints.iter().copied().fold(0.0, f64::max);
            sum += if largest <= joints[g] * (1.0 + 1e-9) { STEP * joints.iter().sum::<f64>() / d } else { 0.0 };
        }
    }
    2.0 * std::f64::consts::LN_2 * classes.smoothing().get() * sum
}

#[test]
fn intervals_of_labels_that_few_points_tell_apart_hold_the_truth() {
    let means = [[0.0, 0.0], [1.5, 0.0], [0.0, 1.8], [2.0, 2.4]];
    // Of the first 12,288 points hardly one is in doubt, and at the last T a few.
    for smoothing in [1e-5, 1e-4, 1e-3] {
        let classes = problem(smoothing, None, false);
        let truth = error_at_faces(&classes, &means, 0.3);
        for seed in 0..20 {
            let (value, half_width) = after(&classes, 0.3, seed, None);
            let told = format!("T = {smoothing}, seed {seed}: {value} ± {half_width} for {truth}");
            assert!((value - truth).abs() <= half_width && half_width < 1e-4, "{told}");
        }
    }
}

#[test]
fn labels_that_are_alike_leave_nothing_unseen() {
    let rows = vec![vec![0.5, 0.5, 0.0, 0.0]; 4];
    let alike = problem(1.0, None, false).with_label_noise(Some(&LabelNoise::matrix(rows).unwrap())).unwrap();
    let (value, half_width) = after(&alike, 1.0, 1, None);
    assert!((value - 0.5).abs() < 1e-12 && half_width < 1e-12, "{value} ± {half_width}");
}
