//! Forward pass, densities, posteriors and inverse pass.

use bayescope::device::{DeviceChoice, choose};
use bayescope::events::silent;
use bayescope::flow::glow::{Glow, GlowFlow};
use bayescope::flow::preprocess::{BoundedLogit, Preprocessing};
use bayescope::flow::{Flow, Mapped, Precision, Scores, SharedMap};
use bayescope::oracle::posterior::{Posterior, Prior};
use bayescope::units::{Smoothing, Tau};
use burn::tensor::{Device, Tensor, TensorData};

use crate::common::fill::uniform;
use crate::common::reference::{GlowReference, read_glow};
use crate::common::table::{Table, Tolerance};

const TAUS: [&str; 3] = ["1.0", "0.7", "1.5"];

/// Tolerances, as suggested in the reference's README: above float32 noise, far below the smallest mistake.
struct Limits {
    z: Tolerance,
    log_p: Tolerance,
    posterior: Tolerance,
    image: Tolerance,
}

fn limits(precision: Precision, dims: usize, graphics: bool) -> Limits {
    let exact = Tolerance::Relative(1e-9);
    // exp of a graphics adapter may err by some units in the last place, all to one side: z stays within the same limit, but
    // log p adds the errors of all dimensions up.
    let device = if graphics { 2.0 } else { 1.0 };
    match precision {
        Precision::F64 => Limits { z: exact, log_p: exact, posterior: exact, image: exact },
        Precision::F32 => Limits {
            z: Tolerance::Absolute(2e-5),
            log_p: Tolerance::Absolute(device * if dims <= 64 { 2e-4 } else { 1e-3 }),
            posterior: Tolerance::Absolute(1e-5),
            image: Tolerance::Absolute(2e-6),
        },
    }
}

fn open(reference: &GlowReference, device: &Device, precision: Precision) -> GlowFlow {
    let (config, weights) = read_glow(&reference.checkpoint(".safetensors")).unwrap();
    assert_eq!(config, reference.config);
    GlowFlow::new(&config, weights, Preprocessing::Uniform, device, precision).unwrap()
}

/// Statistics of the reference images: from f64 input in f64, through the world's f32 in f32.
fn statistics(flow: &GlowFlow, input: &[f64], precision: Precision) -> Scores {
    match precision {
        Precision::F64 => {
            let encoded = flow.encode(input).unwrap();
            flow.scores(&encoded.images, encoded.log_det)
        }
        Precision::F32 => flow.score(&input.iter().map(|&v| v as f32).collect::<Vec<_>>()).unwrap(),
    }
}

fn forward(table: &mut Table, reference: &GlowReference, flow: &GlowFlow, precision: Precision, limits: &Limits) {
    let input = reference.input();
    let z = flow.encode(&input).unwrap().images;
    table.compare("z", &z, &reference.golden("z"), limits.z);
    let scores = statistics(flow, &input, precision);
    table.compare("sldj", &scores.log_det, &reference.golden("sldj"), limits.log_p);
    let prior = Prior::uniform(reference.config.classes);
    for name in TAUS {
        let tau = Tau::new(name.parse().unwrap()).unwrap();
        let posteriors: Vec<Posterior> =
            (0..scores.len()).map(|i| Posterior::new(scores.log_likelihoods(i, tau), &prior, Smoothing::ONE)).collect();
        let gather = |part: fn(&Posterior) -> &[f64]| posteriors.iter().flat_map(part).copied().collect::<Vec<_>>();
        let golden = |what: &str| reference.golden(&format!("tau/{name}/{what}"));
        table.compare(&format!("logp τ={name}"), &gather(|p| &p.log_likelihood), &golden("logp"), limits.log_p);
        table.compare(
            &format!("posterior τ={name}"),
            &gather(|p| &p.probabilities),
            &golden("posterior"),
            limits.posterior,
        );
        let log_px: Vec<f64> = posteriors.iter().map(|p| p.log_px).collect();
        table.compare(&format!("log_marginal τ={name}"), &log_px, &golden("log_marginal"), limits.log_p);
    }
}

/// Σ log |dy/dv| of logit-space images, written out on its own: log b + softplus(y) + softplus(−y).
fn logit_log_det(y: &[f64], bounds: f64) -> f64 {
    y.iter().map(|y| bounds.ln() + y.exp().ln_1p() + (-y).exp().ln_1p()).sum()
}

fn inverse(table: &mut Table, reference: &GlowReference, flow: &GlowFlow, limits: &Limits) {
    let (noise, classes) = (reference.noise(), reference.classes());
    let bounds = f64::from(0.9f32);
    for name in TAUS {
        let tau = Tau::new(name.parse().unwrap()).unwrap();
        let golden = |what: &str| reference.golden(&format!("reverse/{name}/{what}"));
        let Mapped { images: v, log_det } = flow.decode_base(flow.base().place(&noise, &classes, tau)).unwrap();
        // The reference stores p = σ(y) and calls it the image; ours undoes the bounds too.
        let p: Vec<f64> = v.iter().map(|v| ((2.0 * v - 1.0) * bounds + 1.0) / 2.0).collect();
        let y: Vec<f64> = p.iter().map(|p| p.ln() - (-p).ln_1p()).collect();
        table.compare(&format!("y_logit τ={name}"), &y, &golden("y_logit"), limits.z);
        table.compare(&format!("image τ={name}"), &p, &golden("image"), limits.image);
        let pixels: Vec<f64> = p.iter().map(|p| (255.999 * p).trunc()).collect();
        assert_eq!(pixels, golden("u8"), "8-bit images at τ = {name}");
        // sldj_reverse is that of the steps alone, negative of forward.
        let steps = log_det.iter().zip(y.chunks(reference.dims()));
        let steps: Vec<f64> = steps.map(|(total, y)| logit_log_det(y, bounds) - total).collect();
        table.compare(&format!("sldj_reverse τ={name}"), &steps, &golden("sldj_reverse"), limits.log_p);
        let decoded = flow.decode(&noise, &classes, tau, &mut silent()).unwrap();
        assert!(decoded.x.iter().zip(&v).all(|(x, v)| *x == *v as f32), "decode is decode_base rounded to f32");
        assert_eq!(decoded.scores.unwrap().log_det, log_det);
    }
}

fn check(name: &'static str, device: &Device, label: &str, precision: Precision) {
    let reference = GlowReference::read(name);
    let flow = open(&reference, device, precision);
    let mut table = Table::new(format!("{name} {precision:?} {label}"));
    let limits = limits(precision, reference.dims(), label != "cpu");
    forward(&mut table, &reference, &flow, precision, &limits);
    inverse(&mut table, &reference, &flow, &limits);
    table.finish();
}

#[test]
fn the_fill_formula_gives_its_test_vectors() {
    let vectors = [
        ("input", [-0.5589770078659058, 0.8368268013000488, 0.44405341148376465, -0.1346958875656128]),
        ("fc.weight", [0.5642118453979492, 0.9741042852401733, 0.9926745891571045, -0.4244704246520996]),
        ("z", [-0.6587097644805908, 0.6839123964309692, 0.7375320196151733, -0.8529514074325562]),
    ];
    for (name, expected) in vectors {
        assert_eq!(uniform(name, 1, 4), expected, "{name}");
    }
}

#[test]
fn preprocessing() {
    for name in ["config1", "config2"] {
        let reference = GlowReference::read(name);
        let mut table = Table::new(format!("{name} f64 host"));
        let (y, log_det) = BoundedLogit { bounds: 0.9f32.into() }.forward(&reference.input(), reference.dims());
        table.compare("preprocessed", &y, &reference.golden("preprocessed"), Tolerance::Relative(1e-9));
        table.compare("ldj_pre", &log_det, &reference.golden("ldj_pre"), Tolerance::Relative(1e-9));
        table.finish();
    }
}

#[test]
fn f64_on_the_cpu() {
    check("config1", &Device::flex(), "cpu", Precision::F64);
    check("config2", &Device::flex(), "cpu", Precision::F64);
}

#[test]
fn f32_on_the_cpu() {
    check("config1", &Device::flex(), "cpu", Precision::F32);
    check("config2", &Device::flex(), "cpu", Precision::F32);
}

#[test]
fn f32_on_a_graphics_adapter() {
    match choose(DeviceChoice::Wgpu(None)) {
        Ok(chosen) => {
            let label = chosen.report.used.name.split(' ').next().unwrap_or("wgpu").to_owned();
            check("config1", &chosen.device, &label, Precision::F32);
            check("config2", &chosen.device, &label, Precision::F32);
        }
        Err(error) => println!("skipped: {error}"),
    }
}

#[test]
fn the_auxiliary_classifier() {
    for name in ["config1", "config2"] {
        let reference = GlowReference::read(name);
        let (config, weights) = read_glow(&reference.checkpoint(".safetensors")).unwrap();
        let glow = Glow::from_weights(&config, weights, &Device::flex(), Precision::F64).unwrap();
        let z = reference.golden("z");
        let [c, h, w] = [config.shape.channels, config.shape.height, config.shape.width];
        let data = TensorData::new(z.clone(), [z.len() / config.shape.dims(), c, h, w]);
        let z = Tensor::<4>::from_data(data, (&Device::flex(), burn::tensor::DType::F64));
        let logits = glow.linproj.forward(z).try_into_vec_as::<f64>().unwrap();
        let mut table = Table::new(format!("{name} F64 cpu"));
        table.compare("linproj", &logits, &reference.golden("linproj"), Tolerance::Relative(1e-8));
        table.finish();
    }
}
