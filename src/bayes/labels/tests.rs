//! Figures of noisy labels against integrals over a line, and against those of the classes.

use std::f64::consts::LN_2;

use super::*;
use crate::events::silent;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::world::LabelLaw;
use crate::units::Seed;

const DISTANCE: f64 = 2.0;

pub(super) fn two(priors: [f64; 2]) -> GaussianClasses {
    GaussianClasses::new(vec![vec![0.0], vec![DISTANCE]], priors.to_vec()).unwrap()
}

pub(super) fn four() -> GaussianClasses {
    let means = [[0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [0.0, 1.8, 0.0], [0.0, 1.0, 2.4]];
    GaussianClasses::new(means.iter().map(|mean| mean.to_vec()).collect(), vec![0.4, 0.3, 0.2, 0.1]).unwrap()
}

pub(super) fn noisy(classes: &GaussianClasses, text: &str) -> GaussianClasses {
    classes.with_label_noise(Some(&LabelNoise::parse(text).unwrap())).unwrap()
}

pub(super) fn at(smoothing: f64) -> Smoothing {
    Smoothing::new(smoothing).unwrap()
}

pub(super) fn spec() -> Spec {
    Spec { seed: Seed(3), tolerance: 3e-3, ..Spec::default() }
}

fn error_at(classes: &GaussianClasses, tau: f64) -> Estimate {
    bayes_error(classes, Tau::new(tau).unwrap(), &spec(), &mut silent()).unwrap()
}

/// Bayes error and entropy of the label of two classes on a line at τ = 1, drawn from p_T and by the noise.
fn integral(priors: [f64; 2], smoothing: f64, noise: Option<&LabelNoise>) -> (f64, f64) {
    integral_at(1.0, 1e-3, priors, smoothing, noise)
}

/// The same at any τ by the trapezoidal rule.
pub(in crate::bayes) fn integral_at(
    tau: f64,
    step: f64,
    priors: [f64; 2],
    smoothing: f64,
    noise: Option<&LabelNoise>,
) -> (f64, f64) {
    let distance = DISTANCE / tau;
    let normal = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let (mut error, mut entropy) = (0.0, 0.0);
    for i in 0..((distance + 18.0) / step) as usize {
        let x = -9.0 + step * i as f64;
        let joint = [priors[0] * normal(x), priors[1] * normal(x - distance)];
        let all = joint[0] + joint[1];
        let tempered = joint.map(|joint| (joint / all).powf(1.0 / smoothing));
        let of_class = tempered.map(|p| p / (tempered[0] + tempered[1]));
        let p = noise.map_or(of_class.to_vec(), |noise| noise.labels(&of_class));
        error += step * all * p[0].min(p[1]);
        entropy -= step * all * p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
    }
    (error, entropy)
}

/// Within four standard errors, and what the kink of a maximum takes from the trapezoidal rule.
fn near(figure: &Figure, truth: f64) -> bool {
    (figure.value - truth).abs() <= 4.0 * figure.std_error + 1e-6
}

#[test]
fn two_classes_meet_their_integral_whatever_the_noise() {
    // The second and the fifth turn the decision over: the other class has the likelier label.
    for text in ["pair:0.2", "symmetric:0.7", "by-class:0.3,0.05", "by-class:0,0.4", "by-class:0.9,0.8"] {
        for priors in [[0.5, 0.5], [0.8, 0.2]] {
            let classes = noisy(&two(priors), text);
            let (error, entropy) = integral(priors, 1.0, classes.label_noise());
            let found = error_at(&classes, 1.0);
            assert!(near(&found.figure, error), "{text}, {priors:?}: {found:?}, not {error}");
            let information = information(&classes, Tau::ONE, &spec(), &mut silent()).unwrap();
            assert!(near(&information.aleatoric_nats, entropy), "{text}, {priors:?}: {information:?}, not {entropy}");
            assert!(found.figure.std_error < 0.01 * error && information.aleatoric_nats.std_error < 0.01 * entropy);
            let h: f64 = classes.label_noise().unwrap().labels(&priors).iter().map(|p| -p * p.ln()).sum();
            assert!((information.label_entropy_nats - h).abs() < 1e-14);
            let mutual = (h - information.aleatoric_nats.value) / LN_2;
            assert!((information.mutual_information_bits.value - mutual).abs() < 1e-9);
        }
    }
}

#[test]
fn labels_of_a_smoothed_posterior_meet_their_integral() {
    for (smoothing, text) in [(2.0, None), (0.5, None), (2.0, Some("symmetric:0.2")), (3.0, Some("by-class:0.3,0.05"))]
    {
        for priors in [[0.5, 0.5], [0.8, 0.2]] {
            let clean = two(priors);
            let classes = text.map_or(clean.clone(), |text| noisy(&clean, text)).with_smoothing(at(smoothing));
            let (error, entropy) = integral(priors, smoothing, classes.label_noise());
            let found = error_at(&classes, 1.0);
            assert!(near(&found.figure, error), "T = {smoothing}, {text:?}, {priors:?}: {found:?}, not {error}");
            let plain = error_at(&classes.with_smoothing(Smoothing::ONE), 1.0).figure.value;
            assert!((plain - error).abs() > 0.01, "T = {smoothing} makes no difference");
            let information = information(&classes, Tau::ONE, &spec(), &mut silent()).unwrap();
            let (aleatoric, told) = (information.aleatoric_nats, format!("{information:?}, not {entropy}"));
            assert!(near(&aleatoric, entropy), "T = {smoothing}, {text:?}, {priors:?}: {told}");
            assert!(found.figure.std_error < 0.01 * error && found.method == Method::Pair);
        }
    }
}

#[test]
fn errors_of_labels_meet_their_integral_to_four_digits_however_rare() {
    let spec = Spec { tolerance: 1e-4, ..spec() };
    for smoothing in [0.05, 0.5, 1.5, 2.0, 3.0, 500.0] {
        for (text, tau, priors) in [
            (None, 1.0, [0.5, 0.5]),
            (None, 0.25, [0.8, 0.2]),
            (Some("by-class:0.3,0.05"), 0.8, [0.8, 0.2]),
            (Some("by-class:0,0.9"), 0.3, [0.5, 0.5]),
        ] {
            let clean = two(priors);
            let classes = text.map_or(clean.clone(), |text| noisy(&clean, text)).with_smoothing(at(smoothing));
            let (truth, _) = integral_at(tau, 1e-4, priors, smoothing, classes.label_noise());
            let found = bayes_error(&classes, Tau::new(tau).unwrap(), &spec, &mut silent()).unwrap();
            let told = format!("T = {smoothing}, {text:?}, τ = {tau}, {priors:?}: {found:?}, not {truth}");
            // The sharper p_T is, the fewer points of the way between two classes tell of it: the work ends first.
            let met = if smoothing < 0.1 { 3e-4 } else { 1.01e-4 };
            assert!(found.figure.relative_half_width() < met && found.method == Method::Pair, "{told}");
            assert!((found.figure.value / truth - 1.0).abs() < 2e-4, "{told}");
        }
    }
}

#[test]
fn intervals_of_errors_and_slopes_of_labels_hold_the_truth() {
    const SEEDS: u64 = 200;
    for (smoothing, text) in [(0.5, None), (3.0, None), (20.0, None), (1.0, Some("by-class:0.3,0.05"))] {
        let clean = two([0.8, 0.2]);
        let classes = text.map_or(clean.clone(), |text| noisy(&clean, text)).with_smoothing(at(smoothing));
        let truth = |tau: f64| integral_at(tau, 1e-4, [0.8, 0.2], smoothing, classes.label_noise()).0;
        let (error, slope) = (truth(1.0), (truth(1.01) - truth(1.0 / 1.01)) / (2.0 * 1.01f64.ln()));
        let held = |figure: &Figure, truth: f64| (figure.interval.0..=figure.interval.1).contains(&truth);
        let (mut errors, mut slopes) = (0, 0);
        for seed in 0..SEEDS {
            // So close that it is not the floor of the interval that holds the truth.
            let spec = Spec { seed: Seed(seed), tolerance: 2e-4, ..Spec::default() };
            let found = bayes_error(&classes, Tau::ONE, &spec, &mut silent()).unwrap();
            errors += u64::from(held(&found.figure, error));
            let found = derivative(&classes, Tau::ONE, &spec, &mut silent()).unwrap();
            slopes += u64::from(held(&found, slope));
            assert!(found.std_error < 0.01 * slope.abs(), "T = {smoothing}, {text:?}: {found:?} for {slope}");
        }
        println!("T = {smoothing}, {text:?}: of {SEEDS} intervals {errors} hold the error, {slopes} the slope");
        let least = SEEDS * 90 / 100;
        assert!(errors >= least && slopes >= least, "T = {smoothing}, {text:?}: {errors} and {slopes} of {SEEDS}");
    }
}

#[test]
fn slopes_hold_the_truth_where_a_class_between_two_others_stops_being_the_likeliest() {
    // At τ = 0.86485. The fourth class, never in doubt, makes it a problem in a plane.
    let means = [[0.0, 0.0], [1.5, 0.0], [3.0, 0.0], [1.5, 1000.0]].map(|mean| mean.to_vec()).to_vec();
    let classes = GaussianClasses::new(means, vec![0.36, 0.08, 0.36, 0.2]).unwrap().with_smoothing(at(0.5));
    let found = derivative(&classes, Tau::new(0.865).unwrap(), &spec(), &mut silent()).unwrap();
    // By the trapezoidal rule over the line of three, 2,000,001 points, and one-sided differences in log τ.
    let truth = -0.002_765_7;
    assert!((found.interval.0..=found.interval.1).contains(&truth) && found.std_error < 0.002, "{found:?}");
}

/// E~ of K classes at even distances on a circle at τ = 1: in the sector of a class its label is the likeliest.
fn error_on_a_ring(classes: usize, radius: f64, smoothing: f64) -> f64 {
    let means: Vec<[f64; 2]> = ring(classes, radius).collect();
    let (half, far, steps) = (std::f64::consts::PI / classes as f64, radius + 9.0, [200, 6000]);
    let weight = |i: usize, n: usize| if i == 0 || i == n { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
    let mut right = 0.0;
    for a in 0..=steps[0] {
        let angle = half * (2.0 * a as f64 / steps[0] as f64 - 1.0);
        for b in 0..=steps[1] {
            let r = far * b as f64 / steps[1] as f64;
            let x = [r * angle.cos(), r * angle.sin()];
            let joint = |m: &[f64; 2]| (-0.5 * ((x[0] - m[0]).powi(2) + (x[1] - m[1]).powi(2))).exp();
            let joints: Vec<f64> = means.iter().map(joint).collect();
            let tempered: f64 = joints.iter().map(|joint| (joint / joints[0]).powf(1.0 / smoothing)).sum();
            right += weight(a, steps[0]) * weight(b, steps[1]) * r * joints.iter().sum::<f64>() / tempered;
        }
    }
    // Simpson's rule in both; every class has its sector, and 1/K of the images.
    let scale = 2.0 * half / steps[0] as f64 * far / steps[1] as f64 / 9.0;
    1.0 - right * scale / (2.0 * std::f64::consts::PI)
}

fn ring(classes: usize, radius: f64) -> impl Iterator<Item = [f64; 2]> {
    (0..classes).map(move |k| {
        let angle = 2.0 * std::f64::consts::PI * k as f64 / classes as f64;
        [radius * angle.cos(), radius * angle.sin()]
    })
}

#[test]
fn intervals_of_many_classes_in_a_plane_hold_the_truth_however_close_they_are_asked_for() {
    const SEEDS: u64 = 100;
    let (count, smoothing) = (16, 2.0);
    let means = ring(count, 5.0).map(|mean| mean.to_vec()).collect();
    let classes = GaussianClasses::new(means, vec![1.0 / count as f64; count]).unwrap().with_smoothing(at(smoothing));
    let truth = error_on_a_ring(count, 5.0, smoothing);
    let (mut held, mut widest) = (0, 0.0f64);
    for seed in 0..SEEDS {
        let spec = Spec { seed: Seed(seed), tolerance: 1e-7, ..Spec::default() };
        let found = bayes_error(&classes, Tau::ONE, &spec, &mut silent()).unwrap().figure;
        held += u64::from((found.interval.0..=found.interval.1).contains(&truth));
        widest = widest.max(found.relative_half_width());
    }
    println!("of {SEEDS} intervals {held} hold {truth}; the widest is {widest} of it");
    assert!(held >= SEEDS * 90 / 100 && widest < 1.01e-4, "{held} of {SEEDS} hold {truth}, {widest}");
}

#[test]
fn intervals_of_the_tau_of_an_error_of_labels_hold_it() {
    const SEEDS: u64 = 100;
    for (smoothing, text, tau, priors) in
        [(2.0, None, 0.9, [0.8, 0.2]), (0.5, None, 1.2, [0.5, 0.5]), (1.0, Some("by-class:0.3,0.05"), 0.8, [0.8, 0.2])]
    {
        let clean = two(priors);
        let classes = text.map_or(clean.clone(), |text| noisy(&clean, text)).with_smoothing(at(smoothing));
        let (target, _) = integral_at(tau, 1e-4, priors, smoothing, classes.label_noise());
        let mut held = 0;
        for seed in 0..SEEDS {
            let spec = Spec { seed: Seed(seed), tolerance: 5e-4, ..Spec::default() };
            let found = tau_of_error(&classes, target, &spec, &mut silent()).unwrap();
            assert!(found.tau.relative_half_width() <= 5.1e-4, "T = {smoothing}, {text:?}: {found:?}");
            assert!((found.achieved.figure.value / target - 1.0).abs() < 1e-4, "T = {smoothing}, {text:?}: {found:?}");
            held += u64::from((found.tau.interval.0..=found.tau.interval.1).contains(&tau));
        }
        println!("T = {smoothing}, {text:?}: of {SEEDS} intervals {held} hold τ");
        assert!(held >= SEEDS * 90 / 100, "T = {smoothing}, {text:?}: {held} of {SEEDS}");
    }
}

#[test]
fn the_tau_of_an_error_is_that_of_smoothed_labels() {
    let plain = four();
    let law = LabelLaw { prior: Prior::new(plain.priors()).unwrap(), smoothing: at(2.0), label_noise: None };
    let classes = plain.with_law(&law).unwrap();
    let found = tau_of_error(&classes, 0.35, &spec(), &mut silent()).unwrap();
    let achieved = error_at(&classes, found.tau.value);
    let open = found.achieved.figure.std_error + achieved.figure.std_error;
    assert!((achieved.figure.value - 0.35).abs() < 4.0 * open + 1e-4, "{found:?}, {achieved:?}");
    // Smoothed labels are in more doubt: a smaller τ does.
    let without = tau_of_error(&plain, 0.35, &spec(), &mut silent()).unwrap().tau.value;
    assert!(found.tau.interval.1 < without, "{found:?}, {without} at T = 1");
    let slope = derivative(&classes, Tau::ONE, &spec(), &mut silent()).unwrap();
    assert!(slope.interval.0 > 0.0 && slope.std_error > 0.0, "{slope:?}");
}

#[test]
fn a_class_against_the_rest_and_pairs_are_those_of_smoothed_labels() {
    // Of two labels at even odds both are the Bayes error.
    let classes = two([0.5, 0.5]).with_smoothing(at(2.0));
    let (error, _) = integral([0.5, 0.5], 2.0, None);
    for one in one_vs_rest(&classes, Tau::ONE, &spec(), &mut silent()).unwrap() {
        assert!(near(&one.one_vs_rest, error), "{one:?}, not {error}");
    }
    let ranking = rank_classes(&classes, Tau::ONE, &spec(), &mut silent()).unwrap();
    assert!(ranking.classes.iter().all(|one| near(&one.one_vs_rest, error)), "{ranking:?}, not {error}");
    let PairErrors { errors, intervals } = pairwise(&classes, Tau::ONE, &spec(), &mut silent()).unwrap();
    let (low, high) = intervals[1].unwrap();
    assert!(errors[0] == 0.0 && high - low < 0.02, "{errors:?}, {intervals:?}");
    assert!((errors[1] - error).abs() < high - low, "{errors:?}, {intervals:?}, not {error}");
}

#[test]
fn symmetric_noise_has_the_closed_form_of_the_classes_error() {
    let clean = four();
    for (rate, tau) in [(0.1, 0.8), (0.5, 1.0), (0.75, 1.3)] {
        let found = error_at(&noisy(&clean, &format!("symmetric:{rate}")), tau);
        let expected = rate + (1.0 - 4.0 * rate / 3.0) * error_at(&clean, tau).figure.value;
        assert!((found.figure.value - expected).abs() < 1e-15 && found.method != Method::Sampling, "{found:?}");
        assert!(found.bounds.0 <= expected + 1e-15 && expected <= found.bounds.1 + 1e-15);
        // The same matrix written in another way, and nearly the same one, which has no such form.
        let written = noisy(&clean, &format!("by-class:{rate},{rate},{rate},{rate}"));
        assert!((error_at(&written, tau).figure.value - expected).abs() < 1e-15);
        let nearly = error_at(&noisy(&clean, &format!("by-class:{rate},{rate},{rate},{}", rate - 1e-9)), tau);
        assert!(nearly.method == Method::Pair && near(&nearly.figure, expected), "{nearly:?}, not {expected}");
        let slope = |classes: &GaussianClasses| {
            derivative(classes, Tau::new(tau).unwrap(), &spec(), &mut silent()).unwrap().value
        };
        let scaled = (1.0 - 4.0 * rate / 3.0) * slope(&clean);
        assert!((slope(&noisy(&clean, &format!("symmetric:{rate}"))) - scaled).abs() < 1e-12);
    }
    // Beyond (K − 1)/K the least probable of more than two classes decides: no such form.
    let beyond = error_at(&noisy(&clean, "symmetric:0.9"), 1.0);
    assert!(beyond.method == Method::Pair && beyond.figure.value < 0.75, "{beyond:?}");
}

#[test]
fn noise_that_changes_nothing_leaves_every_bit() {
    let clean = four();
    for text in ["symmetric:0", "by-class:0,0,0,0"] {
        let same = noisy(&clean, text);
        let (a, b) = (error_at(&same, 1.1), error_at(&clean, 1.1));
        assert_eq!(Estimate { seconds: 0.0, ..a }, Estimate { seconds: 0.0, ..b });
        let of = |classes| information(classes, Tau::ONE, &spec(), &mut silent()).unwrap();
        assert_eq!(of(&same), of(&clean));
    }
}

#[test]
fn the_tau_of_an_error_has_that_error_and_none_lies_below_the_noise() {
    for text in ["symmetric:0.2", "pair:0.2"] {
        let classes = noisy(&four(), text);
        let found = tau_of_error(&classes, 0.35, &spec(), &mut silent()).unwrap();
        let achieved = error_at(&classes, found.tau.value);
        let open = found.achieved.figure.std_error + achieved.figure.std_error;
        assert!((achieved.figure.value - 0.35).abs() < 4.0 * open + 1e-4, "{text}: {found:?}, {achieved:?}");
        for target in [0.1, 0.2] {
            let why = tau_of_error(&classes, target, &spec(), &mut silent()).unwrap_err().to_string();
            assert!(why.contains("label noise") && why.contains(text) && why.contains("20.0000 %"), "{why}");
        }
        let why = tau_of_error(&classes, 0.8, &spec(), &mut silent()).unwrap_err().to_string();
        assert!(why.contains("strictly between 20.0000 %"), "{why}");
        assert!((reachable(&classes).0 - 0.2).abs() < 1e-15);
    }
}

#[test]
fn methods_of_clean_boundaries_refuse_other_noise() {
    let (pair, symmetric) = (noisy(&four(), "pair:0.2"), noisy(&four(), "symmetric:0.2"));
    for method in [Method::Closed, Method::Quadrature, Method::Sov, Method::Hdr] {
        let spec = Spec { method: Some(method), tolerance: 1e-2, ..spec() };
        let why = bayes_error(&pair, Tau::ONE, &spec, &mut silent()).unwrap_err().to_string();
        assert!(why.contains("not symmetric") && why.contains("mc"), "{why}");
        bayes_error(&symmetric, Tau::ONE, &spec, &mut silent()).unwrap();
        let why = bayes_error(&four().with_smoothing(at(2.0)), Tau::ONE, &spec, &mut silent()).unwrap_err();
        assert!(why.to_string().contains("T ≠ 1"), "{why}");
    }
    let mc = Spec { method: Some(Method::Mc), tolerance: 1e-2, ..spec() };
    let drawn = bayes_error(&pair, Tau::ONE, &mc, &mut silent()).unwrap();
    let asked = Spec { method: Some(Method::Pair), ..spec() };
    let found = bayes_error(&pair, Tau::ONE, &asked, &mut silent()).unwrap();
    assert_eq!((drawn.method, found.method), (Method::Sampling, Method::Pair));
    assert!((drawn.figure.value - found.figure.value).abs() < 4.0 * drawn.figure.std_error, "{drawn:?}, {found:?}");
}

#[test]
fn the_limit_at_zero_is_what_small_temperatures_near() {
    // Classes 0 and 1 coincide.
    let means = vec![vec![0.0, 0.0], vec![0.0, 0.0], vec![3.0, 1.0]];
    let clean = GaussianClasses::new(means, vec![0.3, 0.2, 0.5]).unwrap();
    let noise = noisy(&clean, "by-class:0.1,0.3,0.2");
    for classes in [noise.with_smoothing(at(2.0)), clean.with_smoothing(at(2.0)), noise] {
        let (limit, near_it) = (limit_at_zero(&classes).unwrap(), error_at(&classes, 0.05));
        assert!((limit.figure.value - near_it.figure.value).abs() < 1e-3, "{limit:?}, {near_it:?}");
        let cold = information(&classes, Tau::new(0.05).unwrap(), &spec(), &mut silent()).unwrap();
        let frozen = information_at_zero(&classes).unwrap();
        assert!((frozen.aleatoric_nats.value - cold.aleatoric_nats.value).abs() < 1e-3, "{frozen:?}, {cold:?}");
        assert!((frozen.label_entropy_nats - cold.label_entropy_nats).abs() < 1e-2, "{frozen:?}, {cold:?}");
    }
    // p_T of the classes that coincide goes by √π.
    let truth = 0.5 * 0.2f64.sqrt() / (0.3f64.sqrt() + 0.2f64.sqrt());
    assert!((limit_at_zero(&clean.with_smoothing(at(2.0))).unwrap().figure.value - truth).abs() < 1e-12);
}

#[test]
fn a_class_against_the_rest_and_pairs_are_those_of_labels() {
    // Of two labels both are the Bayes error at even odds.
    let classes = noisy(&two([0.5, 0.5]), "symmetric:0.2");
    let error = error_at(&classes, 1.0).figure.value;
    for one in one_vs_rest(&classes, Tau::ONE, &spec(), &mut silent()).unwrap() {
        assert!(near(&one.one_vs_rest, error), "{one:?}, not {error}");
    }
    let pairs = pairwise(&classes, Tau::ONE, &spec(), &mut silent()).unwrap();
    let PairErrors { errors, intervals } = pairs;
    assert!(errors[0] == 0.0 && errors[1] == errors[2], "{errors:?}");
    let (low, high) = intervals[1].unwrap();
    assert!(intervals[0].is_none() && low < errors[1] && errors[1] < high && high - low < 0.02, "{intervals:?}");
    assert!(low < error && error < high, "{errors:?}, {intervals:?}, not {error}");
    assert!(pairwise(&two([0.5, 0.5]), Tau::ONE, &spec(), &mut silent()).unwrap().intervals.is_empty());
}

#[test]
fn pairs_of_labels_are_drawn_by_the_seed_and_to_the_tolerance_of_the_caller() {
    let classes = two([0.5, 0.5]).with_smoothing(at(2.0));
    let ask = |seed: u64, tolerance: f64| {
        let spec = Spec { seed: Seed(seed), tolerance, ..Spec::default() };
        pairwise(&classes, Tau::ONE, &spec, &mut silent()).unwrap()
    };
    let (rough, other, fine) = (ask(1, 0.05), ask(2, 0.05), ask(1, 2e-3));
    let width = |pairs: &PairErrors| pairs.intervals[1].map(|(low, high)| high - low).unwrap();
    assert!(rough.errors[1] != other.errors[1] && rough == ask(1, 0.05), "{rough:?}, {other:?}");
    assert!(width(&fine) < 0.3 * width(&rough), "{rough:?}, {fine:?}");
}
