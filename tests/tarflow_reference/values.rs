//! Forward pass, densities, and inverse passes of the three reference configurations.

use bayescope::device::{DeviceChoice, choose};
use bayescope::flow::Precision;
use bayescope::flow::sampling::{Guess, Strategy};
use bayescope::flow::tarflow::TensorTarFlow;
use bayescope::flow::tarflow::cpu::{CpuTarFlow, Real};
use bayescope::flow::tarflow::engine::Engine;
use burn::tensor::Device;

use crate::common::table::{Table, Tolerance};
use crate::common::tarflow::TarFlowReference;

/// Tolerances, as suggested in the reference's README: above float32 noise, below the smallest mistake.
struct Limits {
    z: Tolerance,
    log_p: Tolerance,
    x: Tolerance,
}

fn limits(precision: Precision, name: &str, graphics: bool) -> Limits {
    let exact = Tolerance::Relative(1e-9);
    match precision {
        Precision::F64 => Limits { z: exact, log_p: exact, x: exact },
        Precision::F32 => Limits {
            z: Tolerance::Absolute(1e-5),
            // exp and erf of a graphics adapter may err by some units in the last place, all to one side: z stays within the same
            // limit, but log p adds the errors of all dimensions up.
            log_p: Tolerance::Absolute(if graphics { 2.0 } else { 1.0 } * if name == "config1" { 1e-4 } else { 2e-4 }),
            x: Tolerance::Absolute(3e-5),
        },
    }
}

/// log N(z; 0, diag(var)) + Σ log_det of each image.
fn log_p(z: &[f64], log_det: &[f64], var: &[f64], tokens: usize) -> Vec<f64> {
    let density = |z: &[f64]| -> f64 {
        z.iter().zip(var).map(|(z, var)| -0.5 * (z * z / var + (2.0 * std::f64::consts::PI * var).ln())).sum()
    };
    z.chunks(var.len())
        .zip(log_det.chunks(tokens))
        .map(|(z, log_det)| density(z) + log_det.iter().sum::<f64>())
        .collect()
}

fn forward(table: &mut Table, reference: &TarFlowReference, engine: &dyn Engine, limits: &Limits) {
    let config = &reference.config;
    let x = config.patchify(&reference.input());
    let var: Vec<f64> = reference.weights().0["var"].values.iter().map(|&v| f64::from(v)).collect();
    for (key, condition) in reference.forward_keys() {
        let n = x.len() / config.shape.dims();
        let encoded = engine.encode(&x, &vec![condition; n]).unwrap();
        let golden = |what: &str| reference.golden(&format!("forward/{key}/{what}"));
        table.compare(&format!("z y={key}"), &encoded.z, &golden("z"), limits.z);
        let ones = vec![1.0; var.len()];
        for (what, var) in [("logp", &ones), ("logp_var", &var)] {
            let ours = log_p(&encoded.z, &encoded.log_det, var, config.tokens());
            table.compare(&format!("{what} y={key}"), &ours, &golden(what), limits.log_p);
        }
    }
}

fn inverse(table: &mut Table, reference: &TarFlowReference, engine: &dyn Engine, limits: &Limits, strategy: Strategy) {
    let config = &reference.config;
    let var = reference.weights().0["var"].values.clone();
    let spread = var.iter().cycle().map(|v| f64::from(*v).sqrt());
    let start: Vec<f64> = reference.noise().iter().zip(spread).map(|(z, s)| z * s).collect();
    for case in reference.reverses() {
        let mut x = start.clone();
        for block in (0..config.blocks).rev() {
            let mut last = 0;
            let mut tick = |done| {
                last = done;
                Ok(())
            };
            let solved =
                engine.invert(block, &x, &case.conditions, strategy, case.guidance.as_ref(), &mut tick).unwrap();
            assert_eq!(last, config.tokens());
            assert!(solved.residual <= 1e-7, "{}", solved.residual);
            x = solved.x;
        }
        table.compare(&format!("{} {}", case.name, name(strategy)), &config.unpatchify(&x), &case.x, limits.x);
    }
}

fn name(strategy: Strategy) -> String {
    match strategy {
        Strategy::Loop => "loop".into(),
        Strategy::Jacobi { modules, guess, .. } => format!("jacobi {modules} {guess:?}"),
    }
}

/// Pure Jacobi, modules, and modules of one token each, from both guesses.
fn strategies(tokens: usize, precision: Precision) -> Vec<Strategy> {
    let tolerance = if precision == Precision::F64 { 1e-13 } else { 1e-7 };
    let jacobi = |modules, guess| Strategy::Jacobi { modules, guess, tolerance };
    vec![Strategy::Loop, jacobi(1, Guess::Z), jacobi(4, Guess::Zero), jacobi(tokens - 1, Guess::Z)]
}

fn check(
    reference: &TarFlowReference,
    engine: &dyn Engine,
    label: &str,
    precision: Precision,
    strategies: &[Strategy],
) {
    let mut table = Table::new(format!("{} {precision:?} {label}", reference.name));
    let limits = limits(precision, reference.name, !label.starts_with("cpu"));
    forward(&mut table, reference, engine, &limits);
    strategies.iter().for_each(|strategy| inverse(&mut table, reference, engine, &limits, *strategy));
    table.finish();
}

fn on_cpu<T: Real>(precision: Precision) {
    for name in CONFIGS {
        let reference = TarFlowReference::read(name);
        let engine = CpuTarFlow::<T>::new(&reference.config, reference.weights()).unwrap();
        let strategies = strategies(reference.config.tokens(), precision);
        check(&reference, &engine, "cpu kernels", precision, &strategies);
    }
}

const CONFIGS: [&str; 3] = ["config1", "config2", "config3"];

/// All strategies.
const ALL: usize = usize::MAX;

/// With the first `inverses` of the strategies.
fn on_tensors(names: &[&'static str], device: &Device, label: &str, precision: Precision, inverses: usize) {
    for name in names {
        let reference = TarFlowReference::read(name);
        let engine = TensorTarFlow::new(&reference.config, reference.weights(), device, precision).unwrap();
        let all = strategies(reference.config.tokens(), precision);
        check(&reference, &engine, label, precision, &all[..inverses.min(all.len())]);
    }
}

#[test]
fn f64_kernels_on_the_cpu() {
    on_cpu::<f64>(Precision::F64);
}

#[test]
fn f32_kernels_on_the_cpu() {
    on_cpu::<f32>(Precision::F32);
}

#[test]
fn f64_tensors_on_the_cpu() {
    on_tensors(&CONFIGS, &Device::flex(), "cpu tensors", Precision::F64, ALL);
}

#[test]
fn f32_tensors_on_the_cpu() {
    on_tensors(&CONFIGS, &Device::flex(), "cpu tensors", Precision::F32, ALL);
}

/// The kernels are the same for every configuration but for the number of attention heads, of which the third alone has two. The
/// inverse with two heads takes minutes on a software adapter; `bayescope verify` has it (the case `cells`).
#[test]
fn f32_on_a_graphics_adapter() {
    match choose(DeviceChoice::Wgpu(None)) {
        Ok(chosen) => {
            let label = chosen.report.used.name.split(' ').next().unwrap_or("wgpu").to_owned();
            on_tensors(&["config1"], &chosen.device, &label, Precision::F32, 2);
            on_tensors(&["config3"], &chosen.device, &label, Precision::F32, 0);
        }
        Err(error) => println!("skipped: {error}"),
    }
}
