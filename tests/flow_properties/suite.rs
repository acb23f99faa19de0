//! The property suite of any flow, through the trait alone, and its application to Glows of several shapes.

use bayescope::device::{DeviceChoice, choose};
use bayescope::events::silent;
use bayescope::flow::base::latents;
use bayescope::flow::glow::GlowFlow;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::{Flow, Mapped, Precision, Scores, SharedMap};
use bayescope::units::{Seed, Tau};
use burn::tensor::Device;

use crate::common::reference::{GlowReference, read_glow};
use crate::common::{max_abs, tiny};

/// Agreement the suite demands.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Of Mahalanobis distances and log-determinants between the inverse pass and the forward pass of its images, relative to
    /// the number of dimensions. World space is f32, so this is its rounding even for an f64 flow.
    pub state: f64,
    /// Of the same numbers between batches of different sizes, relative to the number of dimensions.
    pub batch: f64,
}

const IMAGES: usize = 7;

fn tau(value: f64) -> Tau {
    Tau::new(value).unwrap()
}

/// Classes 0, 1, …, 0, 1, … and the images they become at τ = 0.8.
fn decoded(flow: &dyn Flow) -> bayescope::flow::Decoded {
    let classes: Vec<usize> = (0..IMAGES).map(|i| i % flow.classes()).collect();
    flow.decode(&latents(Seed(11), 0, IMAGES, flow.shape().dims()), &classes, tau(0.8), &mut silent()).unwrap()
}

/// Their statistics: by the inverse pass where it hands them out, otherwise by the forward pass.
fn statistics(flow: &dyn Flow) -> Scores {
    let decoded = decoded(flow);
    decoded.scores.unwrap_or_else(|| flow.score(&decoded.x).unwrap())
}

/// Largest difference of two sets of statistics, per dimension.
fn difference(a: &Scores, b: &Scores) -> f64 {
    max_abs(&a.quad, &b.quad).max(max_abs(&a.log_det, &b.log_det)) / a.dims as f64
}

pub fn check_any(what: &str, flow: &dyn Flow, limits: Limits) {
    round_trip(what, flow, limits);
    determinism_and_batches(what, flow, limits);
    temperature(flow);
}

/// x → z → x: the statistics that the inverse pass hands out are those of the image it made.
fn round_trip(what: &str, flow: &dyn Flow, limits: Limits) {
    let decoded = decoded(flow);
    let scores = flow.score(&decoded.x).unwrap();
    let own_scores = statistics(flow);
    let found = difference(&scores, &own_scores);
    println!("{what}: inverse against forward {found:.1e} per dimension");
    assert!(found <= limits.state, "{what}: {found:e}");
    assert_eq!(scores.len(), IMAGES);
    assert_eq!((scores.classes, scores.dims), (flow.classes(), flow.shape().dims()));
    assert_eq!(scores.quad.len(), IMAGES * flow.classes());
    // The source's own distance is that of its noise, τ² ‖e‖².
    let dims = flow.shape().dims();
    for (i, noise) in latents(Seed(11), 0, IMAGES, dims).chunks(dims).enumerate() {
        let length: f64 = noise.iter().map(|&e| f64::from(e).powi(2)).sum();
        let own = own_scores.quad[i * flow.classes() + i % flow.classes()];
        let limit = if decoded.scores.is_some() { 1e-9 } else { limits.state };
        assert!((own / (0.64 * length) - 1.0).abs() < limit, "{what}: {own} is not τ² of {length}");
    }
}

fn determinism_and_batches(what: &str, flow: &dyn Flow, limits: Limits) {
    let dims = flow.shape().dims();
    let x = decoded(flow).x;
    assert_eq!(decoded(flow).x, x, "{what}: same noise, same bits");
    let whole = flow.score(&x).unwrap();
    assert_eq!(flow.score(&x).unwrap(), whole, "{what}: same images, same bits");
    let mut parts = flow.score(&x[..dims]).unwrap();
    parts.append(flow.score(&x[dims..3 * dims]).unwrap());
    parts.append(flow.score(&x[3 * dims..]).unwrap());
    let found = difference(&whole, &parts);
    println!("{what}: other batches {found:.1e} per dimension");
    assert!(found <= limits.batch, "{what}: {found:e}");
    // Permuted images have permuted statistics.
    let reversed: Vec<f32> = x.chunks(dims).rev().flatten().copied().collect();
    let reversed = flow.score(&reversed).unwrap();
    let back = Scores {
        quad: reversed.quad.chunks(flow.classes()).rev().flatten().copied().collect(),
        log_det: reversed.log_det.chunks(reversed.log_norm.len()).rev().flatten().copied().collect(),
        ..reversed
    };
    let found = difference(&whole, &back);
    assert!(found <= limits.batch, "{what}: images influence each other: {found:e}");
}

/// log p(x|y) at any τ from one pass: written out as Σ_d log N(z_d; μ_yd, τ²σ_d²) it is log_det − quad/2τ² − D log τ − norm.
fn temperature(flow: &dyn Flow) {
    let scores = statistics(flow);
    let at_one = scores.log_likelihoods(2, Tau::ONE);
    for t in [0.3, 1.7] {
        let k = flow.classes();
        for (y, log_p) in scores.log_likelihoods(2, tau(t)).into_iter().enumerate() {
            let quad = scores.quad[2 * k + y];
            let moved = at_one[y] + 0.5 * quad - 0.5 * quad / (t * t) - scores.dims as f64 * t.ln();
            assert!((log_p - moved).abs() < 1e-9 * log_p.abs().max(1.0));
        }
    }
    let nearest = scores.log_likelihoods(2, tau(0.0));
    assert_eq!(nearest.iter().filter(|l| **l == f64::INFINITY).count(), 1);
}

#[test]
fn glows_of_several_shapes() {
    let shapes = [(1, 2, 1, 1), (1, 4, 2, 2), (2, 8, 3, 2), (3, 8, 1, 3)];
    for (channels, side, levels, steps) in shapes {
        let config = tiny::config(channels, side, levels, steps);
        for (precision, state, batch) in [(Precision::F64, 1e-5, 1e-14), (Precision::F32, 1e-5, 1e-6)] {
            let what = format!("{channels}×{side}×{side}, {levels} levels, {precision:?}");
            check_any(&what, &tiny::flow(&config, 21, precision), Limits { state, batch });
        }
    }
}

/// The same suite where a graphics adapter computes: same bits for the same input there too.
#[test]
fn a_glow_on_a_graphics_adapter() {
    match choose(DeviceChoice::Wgpu(None)) {
        Ok(chosen) => {
            let config = tiny::config(1, 4, 2, 2);
            let weights = tiny::weights(&config, 21);
            let flow = GlowFlow::new(&config, weights, Preprocessing::Uniform, &chosen.device, Precision::F32).unwrap();
            check_any(&chosen.report.used.name, &flow, Limits { state: 1e-5, batch: 1e-5 });
        }
        Err(error) => println!("skipped: {error}"),
    }
}

/// Renaming the classes renames their statistics and nothing else.
#[test]
fn permuted_classes_have_permuted_statistics() {
    let config = tiny::config(2, 4, 1, 1);
    let flow = tiny::flow(&config, 24, Precision::F32);
    let mut weights = tiny::weights(&config, 24);
    weights.0.get_mut("means").unwrap().values.rotate_left(32);
    let rotated = GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), Precision::F32).unwrap();
    let x = decoded(&flow).x;
    let mut expected = flow.score(&x).unwrap();
    expected.quad.chunks_mut(3).for_each(|quad| quad.rotate_left(1));
    assert_eq!(rotated.score(&x).unwrap(), expected);
}

/// The parts of log p recomputed from z: independent of [`Scores`].
#[test]
fn densities_are_those_of_the_written_out_gaussian() {
    let config = tiny::config(1, 4, 2, 2);
    let flow = tiny::flow(&config, 22, Precision::F64);
    let weights = tiny::weights(&config, 22);
    let x = decoded(&flow).x;
    let encoded = flow.encode(&x).unwrap();
    let scores = flow.score(&x).unwrap();
    for t in [0.5, 1.0, 2.0] {
        for (i, z) in encoded.images.chunks(16).enumerate() {
            for (y, log_p) in scores.log_likelihoods(i, tau(t)).into_iter().enumerate() {
                let mut written = encoded.log_det[i];
                for (d, z) in z.iter().enumerate() {
                    let mean = f64::from(weights.0["means"].values[y * 16 + d]);
                    let var = f64::from(weights.0["cov_diag"].values[d]).abs() * t * t;
                    written -= 0.5 * ((2.0 * std::f64::consts::PI * var).ln() + (z - mean).powi(2) / var);
                }
                assert!((log_p - written).abs() < 1e-10 * written.abs().max(1.0), "{log_p} is not {written}");
            }
        }
    }
}

/// Round trips in the flow's own precision, without the world's f32 between the passes, and both log-determinants.
#[test]
fn glow_inverts_itself() {
    for name in ["config1", "config2"] {
        let reference = GlowReference::read(name);
        let x = reference.input();
        for (precision, limit, log_det_limit) in [(Precision::F64, 1e-12, 1e-10), (Precision::F32, 1e-5, 1e-3)] {
            let (config, weights) = read_glow(&reference.checkpoint(".safetensors")).unwrap();
            let flow = GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), precision).unwrap();
            let encoded = flow.encode(&x).unwrap();
            let Mapped { images: back, log_det } = flow.decode_base(encoded.images.clone()).unwrap();
            let (image, volume) = (max_abs(&x, &back), max_abs(&encoded.log_det, &log_det));
            println!("{name} {precision:?}: x→z→x {image:.1e}, log-det {volume:.1e} nats");
            assert!(image <= limit && volume <= log_det_limit);
            let again = flow.encode(&back).unwrap();
            assert!(max_abs(&encoded.images, &again.images) <= 100.0 * limit, "{name} {precision:?}: z→x→z");
        }
    }
}

#[test]
fn images_without_a_density_are_refused_by_number() {
    let config = tiny::config(1, 4, 1, 1);
    let flow = tiny::flow(&config, 23, Precision::F32);
    for bad in [1.2, -0.2, f32::NAN, f32::INFINITY] {
        let mut x = vec![0.5; 3 * 16];
        x[20] = bad;
        let message = flow.score(&x).unwrap_err().to_string();
        assert!(message.contains("image 1 "), "{message}");
    }
}
