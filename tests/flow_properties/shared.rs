//! TarFlows with one map for all classes, and Glows without a logit map.

use bayescope::flow::glow::GlowFlow;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::tarflow::cpu::CpuTarFlow;
use bayescope::flow::tarflow::engine::Engine;
use bayescope::flow::tarflow::{MEANS, SharedTarFlow, TarFlowConfig};
use bayescope::flow::{Flow, Precision, SharedMap};
use bayescope::units::{Seed, Tau};
use burn::tensor::Device;
use rand_distr::{Distribution, StandardNormal};

use crate::common::fill::uniform;
use crate::common::{max_abs, tiny};
use crate::suite::{Limits, check_any};

const PIXELS: Preprocessing = Preprocessing::Gaussian { std: 0.1 };

fn config(channels: usize, side: usize, patch: usize, classes: usize) -> TarFlowConfig {
    TarFlowConfig { shared_map: true, ..tiny::tarflow_config(channels, side, patch, classes) }
}

fn flow(config: &TarFlowConfig, seed: u64, precision: Precision) -> SharedTarFlow {
    let mut weights = tiny::tarflow_weights(config, seed);
    weights.0.get_mut(MEANS).unwrap().values.iter_mut().for_each(|m| *m *= 8.0);
    SharedTarFlow::new(config, weights, PIXELS, &Device::flex(), precision).unwrap()
}

#[test]
fn shared_tarflows_have_the_properties_of_any_flow() {
    let plain = config(1, 4, 2, 3);
    for config in [plain, TarFlowConfig { volume_preserving: true, ..plain }, config(3, 4, 1, 2)] {
        for precision in [Precision::F64, Precision::F32] {
            check_any(
                &format!("{config:?} {precision:?}"),
                &flow(&config, 81, precision),
                Limits { state: 1e-4, batch: 0.0 },
            );
        }
    }
}

/// A Glow behind Gaussian noise has no logit map, and all else is the same.
#[test]
fn glows_of_noisy_images_have_the_properties_of_any_flow() {
    let config = tiny::config(2, 8, 3, 2);
    for (precision, batch) in [(Precision::F64, 1e-14), (Precision::F32, 1e-6)] {
        let flow = GlowFlow::new(&config, tiny::weights(&config, 82), PIXELS, &Device::flex(), precision).unwrap();
        assert_eq!(flow.pixels(), PIXELS);
        check_any(&format!("noisy {precision:?}"), &flow, Limits { state: 1e-5, batch });
    }
}

/// z and the log-determinant are those of the map without classes, and the likelihoods those of the written-out Gaussians.
#[test]
fn densities_are_gaussians_behind_the_map() {
    let config = config(3, 4, 2, 3);
    let flow = flow(&config, 83, Precision::F64);
    let mut weights = tiny::tarflow_weights(&config, 83);
    let means: Vec<f64> = weights.0.remove(MEANS).unwrap().values.iter().map(|&m| 8.0 * f64::from(m)).collect();
    let var: Vec<f64> = weights.0["var"].values.iter().map(|&v| f64::from(v)).collect();
    let map = CpuTarFlow::<f64>::new(&TarFlowConfig { classes: 0, shared_map: false, ..config }, weights).unwrap();
    let x: Vec<f32> = uniform("x", 83, 2 * 48).iter().map(|&u| u as f32).collect();
    let tokens = config.patchify(&x.iter().map(|&v| f64::from(v)).collect::<Vec<_>>());
    let encoded = map.encode(&tokens, &[None, None]).unwrap();
    let tau = Tau::new(1.3).unwrap();
    let scores = flow.score(&x).unwrap();
    for (i, (z, log_det)) in encoded.z.chunks(48).zip(encoded.log_det.chunks(4)).enumerate() {
        let written = means.chunks(48).map(|mean| {
            let terms = z.iter().zip(mean).zip(&var).map(|((z, m), var)| {
                let var = var * 1.69;
                -0.5 * (z - m).powi(2) / var - 0.5 * (2.0 * std::f64::consts::PI * var).ln()
            });
            terms.sum::<f64>() + log_det.iter().sum::<f64>()
        });
        assert!(max_abs(&scores.log_likelihoods(i, tau), &written.collect::<Vec<_>>()) < 1e-10);
    }
}

/// ∫p(x|y) dx = 1 in four dimensions, by importance sampling from a wider Gaussian.
#[test]
fn shared_densities_integrate_to_one() {
    const SPREAD: f64 = 2.5;
    let flow = flow(&config(1, 2, 1, 2), 84, Precision::F64);
    let (n, tau) = (60_000, Tau::new(0.9).unwrap());
    let mut rng = Seed(84).rng(0);
    let unit: Vec<f64> = (0..4 * n).map(|_| StandardNormal.sample(&mut rng)).collect();
    let x: Vec<f32> = unit.iter().map(|e| (SPREAD * e) as f32).collect();
    let scores = flow.score(&x).unwrap();
    for class in 0..2 {
        let weight = |(i, x): (usize, &[f32])| {
            let norm = 4.0 * (SPREAD * (2.0 * std::f64::consts::PI).sqrt()).ln();
            let proposal: f64 = x.iter().map(|&x| -0.5 * (f64::from(x) / SPREAD).powi(2)).sum::<f64>() - norm;
            (scores.log_likelihoods(i, tau)[class] - proposal).exp()
        };
        let weights: Vec<f64> = x.chunks(4).enumerate().map(weight).collect();
        let mean = weights.iter().sum::<f64>() / n as f64;
        let error = (weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / n as f64 / n as f64).sqrt();
        println!("∫p(x|{class}) dx = {mean:.4} ± {error:.4}");
        assert!(error < 0.03 && (mean - 1.0).abs() < 4.0 * error, "{mean} ± {error}");
    }
}

#[test]
fn evidence_of_a_shared_map_adds_up_and_the_base_goes_both_ways() {
    let config = config(3, 4, 2, 3);
    let flow = flow(&config, 85, Precision::F64);
    let x: Vec<f32> = uniform("x", 85, 48).iter().map(|&u| u as f32).collect();
    let evidence = flow.evidence(&x, 0, 2, Tau::new(0.7).unwrap()).unwrap();
    assert_eq!((evidence.rows, evidence.columns), (2, 2));
    assert!((evidence.cells.iter().sum::<f64>() - evidence.total).abs() < 1e-9 * (1.0 + evidence.total.abs()));
    let wide: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
    let there = flow.encode_base(&wide).unwrap();
    let back = flow.decode_base(there.images).unwrap();
    assert!(max_abs(&back.images, &wide) < 1e-10 && max_abs(&back.log_det, &there.log_det) < 1e-9);
}
