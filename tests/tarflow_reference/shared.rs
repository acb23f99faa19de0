//! One map for all classes against the public code run without classes, with the Gaussian base of
//! each class computed by NumPy (tests/reference/tarflow/make_shared.py).

use bayescope::device::{DeviceChoice, choose};
use bayescope::events::silent;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::tarflow::{SharedTarFlow, TarFlowConfig};
use bayescope::flow::{Flow, Precision};
use bayescope::units::Tau;
use burn::tensor::Device;
use serde_json::Value;

use crate::common::reference::numbers;
use crate::common::table::{Table, Tolerance};
use crate::common::tarflow::TarFlowReference;

fn posterior(log_p: &[f64]) -> Vec<f64> {
    let top = log_p.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = log_p.iter().map(|l| (l - top).exp()).sum();
    log_p.iter().map(|l| (l - top).exp() / sum).collect()
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

/// The temperatures of the reference, with what stands under each.
fn by_tau<'a>(table: &'a Value) -> impl Iterator<Item = (Tau, &'a Value)> {
    let tau = |key: &str| Tau::new(key.parse().unwrap()).unwrap();
    table.as_object().unwrap().iter().map(move |(key, value)| (tau(key), value))
}

/// Everything that the reference has: z, log p, posterior and inverse at three temperatures.
fn check(device: &Device, label: &str, precision: Precision) {
    let mut reference = TarFlowReference::read("shared");
    reference.config = TarFlowConfig { shared_map: true, ..reference.config };
    let config = &reference.config;
    let pixels = Preprocessing::Gaussian { std: 0.05 };
    let flow = SharedTarFlow::new(config, reference.weights(), pixels, device, precision).unwrap();
    let (log_p_limit, p_limit, x_limit) = match precision {
        // Images leave in f32.
        Precision::F64 => (Tolerance::Relative(1e-11), Tolerance::Absolute(1e-12), Tolerance::Absolute(5e-7)),
        Precision::F32 => (Tolerance::Absolute(2e-4), Tolerance::Absolute(5e-6), Tolerance::Absolute(3e-5)),
    };

    let mut table = Table::new(format!("shared {precision:?} {label}"));
    let scores = flow.score(&narrow(&reference.input())).unwrap();
    for (tau, golden) in by_tau(&reference.json["tau"]) {
        let rows: Vec<Vec<f64>> = (0..scores.len()).map(|i| scores.log_likelihoods(i, tau)).collect();
        table.compare(&format!("log p, τ = {}", tau.get()), &rows.concat(), &numbers(&golden["log_p"]), log_p_limit);
        let posteriors: Vec<f64> = rows.iter().flat_map(|row| posterior(row)).collect();
        table.compare(&format!("posterior, τ = {}", tau.get()), &posteriors, &numbers(&golden["posterior"]), p_limit);
    }

    let noise = narrow(&config.unpatchify(&reference.noise()));
    let classes: Vec<usize> = numbers(&reference.json["reverse"]["y"]).into_iter().map(|y| y as usize).collect();
    for (tau, golden) in by_tau(&reference.json["reverse"]["x"]) {
        let x = flow.decode(&noise, &classes, tau, &mut silent()).unwrap().x;
        let ours: Vec<f64> = x.iter().copied().map(f64::from).collect();
        table.compare(&format!("inverse, τ = {}", tau.get()), &ours, &numbers(golden), x_limit);
    }
    table.finish();
}

#[test]
fn one_map_for_all_classes_on_the_cpu() {
    check(&Device::flex(), "cpu", Precision::F64);
    check(&Device::flex(), "cpu", Precision::F32);
}

#[test]
fn one_map_for_all_classes_on_a_graphics_adapter() {
    match choose(DeviceChoice::Wgpu(None)) {
        Ok(chosen) => check(&chosen.device, "wgpu", Precision::F32),
        Err(error) => println!("skipped: {error}"),
    }
}
