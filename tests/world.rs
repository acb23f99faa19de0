//! Worlds: what they draw is what they say, and what they say is exact.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod common;

use std::ops::ControlFlow;

use bayescope::device::MatmulPrecision;
use bayescope::error::Error;
use bayescope::events::{Progress, silent};
use bayescope::flow::base::latents;
use bayescope::flow::glow::GlowFlow;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::{Flow, Precision};
use bayescope::oracle::posterior::{Posterior, Prior};
use bayescope::oracle::walk::grid::{GridSpec, grid};
use bayescope::oracle::walk::{Goal, Subject, TOLERANCE, WalkPoint, WalkSpec, Way, walk};
use bayescope::oracle::what_if::UnderClass;
use bayescope::oracle::world::{Sample, SampleSpec, Settings, World};
use bayescope::oracle::{folder, library};
use bayescope::units::{Seed, Smoothing, Tau};
use burn::tensor::Device;
use common::reference::GlowReference;
use common::{max_abs, tiny};
use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};

fn reference_flow(name: &'static str, precision: Precision) -> GlowFlow {
    let (config, weights) =
        common::reference::read_glow(&GlowReference::read(name).checkpoint(".safetensors")).unwrap();
    GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), precision).unwrap()
}

/// The world of config1: 1×8×8, 4 classes that overlap.
fn world(batch: usize) -> World {
    let names = (0..4).map(|c| format!("class {c}")).collect();
    World::new(Box::new(reference_flow("config1", Precision::F32)), names, batch).unwrap()
}

fn settings(tau: f64, smoothing: f64, prior: &[f64]) -> Settings {
    let (tau, smoothing) = (Tau::new(tau).unwrap(), Smoothing::new(smoothing).unwrap());
    Settings { tau, smoothing, prior: Prior::new(prior).unwrap(), label_noise: None }
}

const UNIFORM: [f64; 4] = [0.25; 4];

/// All samples of `spec`, in the world's batches.
fn samples(world: &World, spec: SampleSpec, settings: &Settings) -> Vec<Sample> {
    let indices: Vec<usize> = (0..spec.n).collect();
    indices.chunks(world.batch()).flat_map(|some| world.sample_indices(&spec, settings, some).unwrap()).collect()
}

fn spec(n: usize, seed: u64) -> SampleSpec {
    SampleSpec::new(n, Seed(seed))
}

fn p_value(statistic: f64, freedom: f64) -> f64 {
    1.0 - ChiSquared::new(freedom).unwrap().cdf(statistic)
}

/// Whether events happen as often as was said: sorted by their probability into ten bins of equal count, Σ (hits −
/// Σp)²/Σp(1−p) is chi-square with ten degrees of freedom, nothing having been fitted. Returns the p-value.
fn calibration(mut events: Vec<(f64, bool)>) -> f64 {
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    let bin = |events: &[(f64, bool)]| {
        let hits = events.iter().filter(|e| e.1).count() as f64;
        let expected: f64 = events.iter().map(|e| e.0).sum();
        let variance: f64 = events.iter().map(|e| e.0 * (1.0 - e.0)).sum();
        assert!(variance > 1.0, "a bin of certain events tests nothing");
        (hits - expected).powi(2) / variance
    };
    let size = events.len().div_ceil(10);
    p_value(events.chunks(size).map(bin).sum(), 10.0)
}

/// p-values of the most probable class and of every class by itself.
fn calibrations(samples: &[Sample], outcome: fn(&Sample) -> usize) -> Vec<f64> {
    let of = |event: &dyn Fn(&Sample) -> usize| {
        calibration(samples.iter().map(|s| (s.posterior.probabilities[event(s)], outcome(s) == event(s))).collect())
    };
    let mut all = vec![of(&|s| s.posterior.decision)];
    all.extend((0..4).map(|class| of(&|_| class)));
    all
}

#[test]
fn labels_are_calibrated_against_the_posterior() {
    let world = world(64);
    for (tau, smoothing, prior, seed) in [
        (1.0, 1.0, UNIFORM, 1),
        (1.0, 3.0, UNIFORM, 2),
        (1.6, 1.0, [0.1, 0.2, 0.3, 0.4], 3),
        (0.8, 2.0, [0.4, 0.3, 0.2, 0.1], 4),
    ] {
        let drawn = samples(&world, spec(4000, seed), &settings(tau, smoothing, &prior));
        let found = calibrations(&drawn, |s| s.label);
        println!("τ = {tau}, T = {smoothing}: p-values {found:.3?}");
        assert!(found.iter().all(|p| *p > 1e-4), "labels do not follow the posterior: {found:?}");
        if smoothing == 1.0 {
            assert!(drawn.iter().all(|s| s.label == s.source));
        } else {
            // The test can fail: the classes the images were drawn from do not follow the smoothed posterior.
            let wrong = calibrations(&drawn, |s| s.source);
            assert!(wrong[0] < 1e-9, "{wrong:?}");
            assert!(drawn.iter().any(|s| s.label != s.source));
        }
    }
}

#[test]
fn sources_follow_the_prior_and_a_class_of_prior_0_never_comes() {
    let world = world(64);
    let prior = [0.5, 0.0, 0.2, 0.3];
    for smoothing in [1.0, 3.0] {
        let drawn = samples(&world, spec(3000, 5), &settings(1.0, smoothing, &prior));
        let mut statistic = 0.0;
        for (class, share) in prior.into_iter().enumerate().filter(|(_, share)| *share > 0.0) {
            let count = drawn.iter().filter(|s| s.source == class).count() as f64;
            statistic += (count - 3000.0 * share).powi(2) / (3000.0 * share);
        }
        assert!(p_value(statistic, 2.0) > 1e-4, "{statistic}");
        assert!(drawn.iter().all(|s| s.source != 1 && s.label != 1 && s.posterior.probabilities[1] == 0.0));
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_seed_others() {
    let settings = settings(1.2, 2.0, &UNIFORM);
    let first = samples(&world(16), spec(40, 6), &settings);
    assert_eq!(first, samples(&world(16), spec(40, 6), &settings));
    let other = samples(&world(16), spec(40, 7), &settings);
    assert!(first.iter().zip(&other).all(|(a, b)| a.x != b.x));
}

/// Sample i is the same image in every batch and for every n: the random numbers bit for bit, the flow's output to f32.
#[test]
fn a_sample_depends_on_its_number_alone() {
    let settings = settings(1.0, 3.0, &UNIFORM);
    let whole = samples(&world(64), spec(50, 8), &settings);
    assert!(whole.iter().enumerate().all(|(i, s)| s.index == i));
    let mut same_bits = true;
    let mut check = |some: &[Sample]| {
        for sample in some {
            let expected = &whole[sample.index];
            assert_eq!((sample.source, sample.label), (expected.source, expected.label), "sample {}", sample.index);
            let distance = expected.x.iter().zip(&sample.x).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(distance <= 1e-6, "sample {}: {distance}", sample.index);
            assert!(max_abs(&expected.posterior.probabilities, &sample.posterior.probabilities) <= 1e-6);
            same_bits &= expected == sample;
        }
    };
    check(&samples(&world(7), spec(23, 8), &settings));
    check(&samples(&world(1), spec(5, 8), &settings));
    check(&world(64).sample_indices(&spec(50, 8), &settings, &(30..39).collect::<Vec<_>>()).unwrap());
    check(&world(64).sample_indices(&spec(50, 8), &settings, &[41, 3, 3, 17]).unwrap());
    println!("samples in other batches have the same bits: {same_bits}");
    assert_eq!(latents(Seed(9), 4, 2, 10)[10..], latents(Seed(9), 5, 1, 10)[..]);
}

#[test]
fn samples_of_one_class() {
    let world = world(64);
    let settings = settings(1.0, 1.0, &UNIFORM);
    let of = |class| SampleSpec { class: Some(class), ..SampleSpec::new(200, Seed(10)) };
    for class in 0..4 {
        let drawn = samples(&world, of(class), &settings);
        assert!(drawn.iter().all(|s| s.source == class && s.label == class));
        // Their own class is the likeliest on average: by the distance of its mean, never by chance in 200 images.
        let mean = |y: usize| drawn.iter().map(|s| s.posterior.log_likelihood[y]).sum::<f64>();
        assert!((0..4).all(|other| other == class || mean(other) < mean(class)));
    }
    let message = world.sample_indices(&of(4), &settings, &[0]).unwrap_err().to_string();
    assert!(message.contains("class 4"), "{message}");
    let short = Settings { prior: Prior::uniform(3), ..settings };
    assert!(world.sample_indices(&spec(1, 0), &short, &[0]).unwrap_err().to_string().contains("3 entries"));
}

/// A sample's posterior comes from its base-space position; scoring its f32 image comes to the same.
#[test]
fn the_posterior_of_a_sample_is_that_of_its_image() {
    for precision in [Precision::F32, Precision::F64] {
        let names = (0..4).map(|c| c.to_string()).collect();
        let world = World::new(Box::new(reference_flow("config1", precision)), names, 32).unwrap();
        let settings = settings(1.3, 2.0, &[0.1, 0.2, 0.3, 0.4]);
        let drawn = samples(&world, spec(200, 11), &settings);
        let x: Vec<f32> = drawn.iter().flat_map(|s| s.x.iter().copied()).collect();
        let scores = world.score(&x, &mut |_: Progress| ControlFlow::Continue(())).unwrap();
        let [mut probability, mut density] = [0f64; 2];
        for (i, sample) in drawn.iter().enumerate() {
            let scored = world.posterior(&scores, i, &settings);
            probability = probability.max(max_abs(&scored.probabilities, &sample.posterior.probabilities));
            density = density.max((scored.log_px - sample.posterior.log_px).abs());
        }
        println!("{precision:?}: sample against its image: posterior {probability:.1e}, log p(x) {density:.1e} nats");
        assert!(probability < 1e-5 && density < 1e-3);
    }
}

#[test]
fn f32_drifts_little_from_f64() {
    for (name, classes) in [("config1", 4), ("config2", 5)] {
        let [single, double] = [Precision::F32, Precision::F64].map(|p| reference_flow(name, p));
        let noise = latents(Seed(12), 0, 200, single.shape().dims());
        let sources: Vec<usize> = (0..200).map(|i| i % classes).collect();
        let x = single.decode(&noise, &sources, Tau::ONE, &mut bayescope::events::silent()).unwrap().x;
        let prior = Prior::uniform(classes);
        let posteriors = |flow: &GlowFlow| {
            let scores = flow.score(&x).unwrap();
            (0..200)
                .map(|i| Posterior::new(scores.log_likelihoods(i, Tau::ONE), &prior, Smoothing::ONE))
                .collect::<Vec<_>>()
        };
        let [mut probability, mut density, mut decisions] = [0f64; 3];
        for (a, b) in posteriors(&single).iter().zip(posteriors(&double)) {
            probability = probability.max(max_abs(&a.probabilities, &b.probabilities));
            density = density.max((a.log_px - b.log_px).abs());
            decisions += f64::from(u8::from(a.decision != b.decision));
        }
        println!(
            "{name}: f32 against f64 on 200 samples: posterior {probability:.1e}, log p(x) {density:.1e} nats, {decisions} decisions"
        );
        assert!(probability < 1e-5 && density < 1e-3);
        assert!(probability > 0.0, "two precisions cannot agree to the last bit");
    }
}

/// Two Gaussian classes at distance δ (in standard deviations at τ = 1): Bayes error Φ(−δ/2τ), whatever the map.
#[test]
fn the_bayes_error_of_two_classes_is_the_closed_form() {
    let config = bayescope::flow::glow::GlowConfig { classes: 2, ..tiny::config(1, 4, 2, 2) };
    let mut weights = tiny::weights(&config, 61);
    let std = weights.0["cov_diag"].values.iter().map(|c| c.abs().sqrt()).collect::<Vec<f32>>();
    let means = &mut weights.0.get_mut("means").unwrap().values;
    for d in 0..16 {
        means[16 + d] = means[d] + if d % 3 == 0 { 0.9 } else { -0.2 } * std[d];
    }
    let delta = (0..16).map(|d| f64::from((means[16 + d] - means[d]) / std[d]).powi(2)).sum::<f64>().sqrt();
    let flow = GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), Precision::F32).unwrap();
    let world = World::new(Box::new(flow), vec!["a".into(), "b".into()], 1000).unwrap();
    for tau in [0.5, 1.0, 2.0] {
        let drawn = samples(&world, spec(20_000, 62), &settings(tau, 1.0, &[0.5, 0.5]));
        let losses: Vec<f64> =
            drawn.iter().map(|s| 1.0 - s.posterior.probabilities.iter().copied().fold(0.0, f64::max)).collect();
        let n = losses.len() as f64;
        let mean = losses.iter().sum::<f64>() / n;
        let std_error = (losses.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt();
        let exact = Normal::new(0.0, 1.0).unwrap().cdf(-delta / (2.0 * tau));
        println!("δ = {delta:.3}, τ = {tau}: E[1 − max p] = {mean:.5} ± {std_error:.5}, closed form {exact:.5}");
        assert!((mean - exact).abs() < 4.0 * std_error, "{mean} ± {std_error} is not {exact}");
        assert!(std_error < 0.003, "too uncertain to tell");
        let wrong = drawn.iter().filter(|s| s.posterior.decision != s.label).count() as f64 / n;
        assert!(
            (wrong - exact).abs() < 4.0 * (exact * (1.0 - exact) / n).sqrt(),
            "Bayes decisions err {wrong}, not {exact}"
        );
    }
}

#[test]
fn bundled_worlds_know_their_own_samples() {
    library::names().into_iter().for_each(knows_its_own_samples);
    knows_its_own_samples("mnist@9b44f254");
}

fn knows_its_own_samples(name: &str) {
    let oracle = folder::open(name, &Device::flex(), Precision::F32, 4).unwrap();
    let settings = Settings::default_for(oracle.info.class_names.len());
    let drawn = samples(&oracle.world, spec(4, 13), &settings);
    let x: Vec<f32> = drawn.iter().flat_map(|s| s.x.iter().copied()).collect();
    let scores = oracle.world.score(&x, &mut |_: Progress| ControlFlow::Continue(())).unwrap();
    for (i, sample) in drawn.iter().enumerate() {
        let scored = oracle.world.posterior(&scores, i, &settings);
        assert!(max_abs(&scored.probabilities, &sample.posterior.probabilities) < 1e-3, "{name}");
        assert!(
            (scored.log_px / sample.posterior.log_px - 1.0).abs() < 1e-4,
            "{} {}",
            scored.log_px,
            sample.posterior.log_px
        );
    }
}

#[test]
fn scoring_tells_the_number_of_a_bad_image_and_stops_when_asked() {
    let world = world(4);
    let mut x = vec![0.5f32; 10 * 64];
    x[6 * 64] = 7.0;
    let message = world.score(&x, &mut |_: Progress| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(message.contains("image 2") && message.contains("from image 4"), "{message}");
    let mut seen = Vec::new();
    let mut stop = |progress: Progress| {
        seen.push((progress.done, progress.total));
        if progress.done >= 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    x[6 * 64] = 0.5;
    assert!(matches!(world.score(&x, &mut stop), Err(Error::Cancelled)));
    assert_eq!(seen, [(4, 10)]);
    assert!(world.score(&[], &mut |_: Progress| ControlFlow::Continue(())).is_err());
}

/// z of one image.
fn latent(world: &World, x: &[f32]) -> Vec<f64> {
    let x: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
    world.flow().latent_space().unwrap().encode_base(&x).unwrap().images
}

/// Largest |difference|.
fn apart<T: Copy + Into<f64>>(a: &[T], b: &[T]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| ((*a).into() - (*b).into()).abs()).fold(0.0, f64::max)
}

#[test]
fn a_grid_is_bilinear_in_the_latent_space_of_a_shared_map_and_its_edges_are_walks() {
    let (world, settings) = (world(8), settings(1.0, 1.0, &UNIFORM));
    let corners: Vec<Vec<f32>> = samples(&world, spec(4, 5), &settings).into_iter().map(|sample| sample.x).collect();
    let (columns, rows) = (6, 3);
    let made = |corners: &[Vec<f32>]| {
        let spec = GridSpec { corners: corners.to_vec(), columns, rows };
        grid(&world, &spec, &settings, &mut silent()).unwrap()
    };
    let walked = |from: &[f32], to: &[f32]| -> Vec<WalkPoint> {
        let (from, to) = (Subject::Image(from.to_vec()), Goal::Subject(Subject::Image(to.to_vec())));
        let (seed, products, tolerance) = (Seed(0), MatmulPrecision::F32, TOLERANCE);
        let spec = WalkSpec { from, to, steps: columns - 1, class: None, seed, products, tolerance };
        walk(&world, &spec, &settings, &mut silent()).unwrap().points
    };
    let four = made(&corners);
    assert_eq!((four.way, four.points.len()), (Way::Latent, columns * rows));
    let ends = [0, columns - 1, columns * (rows - 1), columns * rows - 1];
    assert!(ends.iter().zip(&corners).all(|(&i, corner)| four.points[i].x == *corner), "corners are the images");
    let z: Vec<Vec<f64>> = corners.iter().map(|x| latent(&world, x)).collect();
    for (i, point) in four.points.iter().enumerate() {
        let (s, t) = ((i % columns) as f64 / (columns - 1) as f64, (i / columns) as f64 / (rows - 1) as f64);
        let weights = [(1.0 - s) * (1.0 - t), s * (1.0 - t), (1.0 - s) * t, s * t];
        let mixed: Vec<f64> = (0..z[0].len()).map(|d| (0..4).map(|c| weights[c] * z[c][d]).sum()).collect();
        let off = apart(&latent(&world, &point.x), &mixed);
        assert!(off < 1e-2, "image {i} lies {off} beside its place");
    }
    assert!(apart(&z[0], &z[1]) > 1.0, "the corners are far apart");
    let (upper, lower) = (walked(&corners[0], &corners[1]), walked(&corners[2], &corners[3]));
    for (edge, walk) in [(&four.points[..columns], upper), (&four.points[columns * (rows - 1)..], lower)] {
        assert!(edge.iter().zip(&walk).all(|(a, b)| apart(&a.x, &b.x) < 1e-5));
    }
    assert_eq!(made(&corners[..2]).points, walked(&corners[0], &corners[1]), "a grid between two images is the walk");
}

#[test]
fn under_every_class_of_a_shared_map_the_latent_moves_by_the_difference_of_the_means() {
    let (world, settings) = (world(8), settings(0.8, 1.0, &UNIFORM));
    let sample = samples(&world, spec(1, 5), &settings).swap_remove(0);
    let mut all: Vec<UnderClass> = Vec::new();
    let mut tell = |one: UnderClass| {
        all.push(one);
        ControlFlow::Continue(())
    };
    world.under_every_class(&sample.x, sample.source, &settings, &mut tell).unwrap();
    assert!(all.iter().map(|one| one.class).eq(0..4) && all[sample.source].x == sample.x);
    let (base, z) = (world.flow().shared_base().unwrap(), latent(&world, &sample.x));
    for one in &all {
        let means = base.mean(one.class).iter().zip(base.mean(sample.source));
        let moved: Vec<f64> = z.iter().zip(means).map(|(z, (to, from))| z + to - from).collect();
        let off = apart(&latent(&world, &one.x), &moved);
        assert!(off < 1e-2, "class {}: {off}", one.class);
    }
}
