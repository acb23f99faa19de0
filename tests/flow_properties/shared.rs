//! TarFlows with one map for all classes, and Glows without a logit map.

use bayescope::events::silent;
use bayescope::flow::base::latents;
use bayescope::flow::glow::GlowFlow;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::sampling::{Guess, Strategy};
use bayescope::flow::tarflow::cpu::CpuTarFlow;
use bayescope::flow::tarflow::engine::Engine;
use bayescope::flow::tarflow::{MEANS, SharedTarFlow, TarFlowConfig};
use bayescope::flow::{BlockInversion, Flow, Precision, SharedMap};
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
    flow_on(&Device::flex(), config, seed, precision)
}

fn flow_on(device: &Device, config: &TarFlowConfig, seed: u64, precision: Precision) -> SharedTarFlow {
    let mut weights = tiny::tarflow_weights(config, seed);
    weights.0.get_mut(MEANS).unwrap().values.iter_mut().for_each(|m| *m *= 8.0);
    SharedTarFlow::new(config, weights, PIXELS, device, precision).unwrap()
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
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
    let there = flow.encode_base(&wide(&x)).unwrap();
    let back = flow.decode_base(there.images).unwrap();
    assert!(max_abs(&back.images, &wide(&x)) < 1e-10 && max_abs(&back.log_det, &there.log_det) < 1e-9);
}

/// As for a map that depends on the class (tarflow.rs): one x, whichever way every block is inverted.
#[test]
fn every_way_of_inverting_a_shared_map_ends_in_one_image() {
    for config in [config(1, 4, 2, 3), TarFlowConfig { volume_preserving: true, ..config(3, 4, 1, 2) }] {
        let flow = flow(&config, 86, Precision::F64);
        let blocks = flow.block_inversion().unwrap();
        assert_eq!(blocks.strategies(), vec![Strategy::Loop; config.blocks]);
        let (noise, classes) = (latents(Seed(86), 0, 5, config.shape.dims()), [0, 1, 1, 0, 1]);
        let decode = |strategy| {
            blocks.set_strategies(vec![strategy; config.blocks]);
            assert_eq!(blocks.strategies(), vec![strategy; config.blocks]);
            wide(&flow.decode(&noise, &classes, Tau::ONE, &mut silent()).unwrap().x)
        };
        let cached = decode(Strategy::Loop);
        let masked = Strategy::Jacobi { modules: 1, guess: Guess::Zero, tolerance: -1.0 };
        assert!(max_abs(&decode(masked), &cached) < 1e-6);
        for modules in [1, 2, config.tokens() - 1] {
            for guess in [Guess::Z, Guess::Zero] {
                let jacobi = Strategy::Jacobi { modules, guess, tolerance: 1e-6 };
                assert!(max_abs(&decode(jacobi), &cached) < 1e-5, "{jacobi:?}");
            }
        }
        // A round that stops at once is another image: the strategies are used, not only kept.
        let stopped = Strategy::Jacobi { modules: 1, guess: Guess::Zero, tolerance: f64::INFINITY };
        assert!(max_abs(&decode(stopped), &cached) > 1e-4);
        // One way too few is ignored.
        blocks.set_strategies(vec![Strategy::Loop; config.blocks - 1]);
        assert_eq!(blocks.strategies(), vec![stopped; config.blocks]);
    }
}

/// Every way that is chosen was measured on images of this world, and is as near to the loop's as it was asked to be.
#[test]
fn ways_of_a_shared_map_are_measured_on_samples_of_its_classes() {
    const TOLERANCE: f64 = 1e-7;
    let config = config(1, 4, 2, 3);
    let flow = flow(&config, 87, Precision::F64);
    let mut told = Vec::new();
    let mut report = |done| {
        told.push(done);
        Ok(())
    };
    let plans = flow.measure_strategies(3, TOLERANCE, &mut report).unwrap();
    assert_eq!((plans.len(), told), (config.blocks, (1..=config.blocks).collect()));
    // Nothing was adopted.
    assert_eq!(flow.strategies(), vec![Strategy::Loop; config.blocks]);
    let (noise, classes) = (latents(Seed(87), 0, 3, 16), [0, 1, 2]);
    let decode = || wide(&flow.decode(&noise, &classes, Tau::ONE, &mut silent()).unwrap().x);
    let cached = decode();
    let jacobis: Vec<Strategy> = plans.iter().filter_map(|plan| plan.jacobi).collect();
    assert_eq!(jacobis.len(), config.blocks, "in 64 bits a Jacobi way reaches any tolerance");
    flow.set_strategies(jacobis);
    assert!(max_abs(&decode(), &cached) < 1e-4);
    // Its first metric is that of z around the means of its classes: it depends on them.
    let elsewhere = flow_of_other_means(&config);
    let others = elsewhere.measure_strategies(3, TOLERANCE, &mut |_| Ok(())).unwrap();
    let last = config.blocks - 1;
    assert!((others[last].igm[1] / plans[last].igm[1] - 1.0).abs() > 0.1, "{:?} {:?}", others[last], plans[last]);
}

/// The same map, the means of whose classes lie thrice as far out.
fn flow_of_other_means(config: &TarFlowConfig) -> SharedTarFlow {
    let mut weights = tiny::tarflow_weights(config, 87);
    weights.0.get_mut(MEANS).unwrap().values.iter_mut().for_each(|m| *m *= 24.0);
    SharedTarFlow::new(config, weights, PIXELS, &Device::flex(), Precision::F64).unwrap()
}

#[test]
fn no_image_of_a_shared_map_stays_on_the_host_or_in_64_bits() {
    // Where images stay, on a device, tests/shared_device.rs compares them with those that are read back.
    assert!(flow(&config(1, 4, 2, 3), 88, Precision::F32).resident().is_none());
    assert!(flow_on(&Device::flex().autodiff(), &config(1, 4, 2, 3), 88, Precision::F64).resident().is_none());
}
