//! Our kernels against the same steps as tensors.

use burn::tensor::Device;
use rand_distr::{Distribution, StandardNormal};

use super::super::{Glow, GlowConfig, GlowFlow};
use crate::data::ImageShape;
use crate::error::Error;
use crate::events::silent;
use crate::flow::preprocess::Preprocessing;
use crate::flow::{Precision, ResidentFlow, SharedMap};
use crate::units::{Seed, Tau};

/// Sides and channels that differ, hidden layers smaller and larger than a tile, one level and
/// several.
const CONFIGS: [GlowConfig; 3] = [
    GlowConfig { shape: ImageShape { channels: 3, height: 8, width: 16 }, classes: 2, hidden: 5, levels: 3, steps: 2 },
    GlowConfig { shape: ImageShape { channels: 1, height: 4, width: 2 }, classes: 3, hidden: 70, levels: 1, steps: 3 },
    GlowConfig {
        shape: ImageShape { channels: 1, height: 32, width: 32 },
        classes: 2,
        hidden: 33,
        levels: 2,
        steps: 1,
    },
];

fn normal(of: &str, count: usize) -> Vec<f64> {
    let mut rng = Seed(5).split(of).rng(0);
    (0..count).map(|_| StandardNormal.sample(&mut rng)).collect()
}

/// A Glow none of whose layers is the identity.
fn glow(config: &GlowConfig, precision: Precision) -> Glow {
    let mut weights = config.initial_weights(Seed(1), 0.1);
    for (name, array) in &mut weights.0 {
        let changes = normal(name, array.values.len());
        let (size, positive) = match name.as_str() {
            "bounds" => continue,
            name if name.ends_with("running_var") || name == "cov_diag" => (0.2, true),
            name if name.ends_with("conv.weight") && !name.contains("nn") => (0.02, false),
            name if name.ends_with("weight") => (0.3 / (config.hidden as f64).sqrt(), false),
            _ => (0.2, false),
        };
        for (value, change) in array.values.iter_mut().zip(changes) {
            *value += (size * if positive { change.abs() } else { change }) as f32;
        }
    }
    Glow::from_weights(config, weights, &Device::flex(), precision).unwrap()
}

/// The largest difference of numbers of size 1.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs() / a.abs().max(1.0)).fold(0.0, f64::max)
}

#[test]
fn kernels_and_tensors_agree_both_ways() {
    for (precision, bound) in [(Precision::F64, 1e-12), (Precision::F32, 2e-5)] {
        for config in &CONFIGS {
            let glow = glow(config, precision);
            let host = GlowFlow::freeze(config, &glow, Preprocessing::Uniform).unwrap();
            let tensors = GlowFlow::freeze_tensors(config, &glow, Preprocessing::Uniform).unwrap();
            let images = 19;
            let z = normal("latents", images * config.shape.dims());
            let (ours, theirs) = (host.decode_base(z.clone()).unwrap(), tensors.decode_base(z.clone()).unwrap());
            assert!(apart(&ours.images, &theirs.images) < bound && apart(&ours.log_det, &theirs.log_det) < bound);
            let (back, theirs) = (host.encode_base(&ours.images).unwrap(), tensors.encode_base(&ours.images).unwrap());
            let found = [apart(&back.images, &theirs.images), apart(&back.log_det, &theirs.log_det)];
            println!("{config:?} {precision:?}: {found:?}");
            assert!(found.iter().all(|found| *found < bound), "{found:?}");
            if precision == Precision::F64 {
                assert!(apart(&back.images, &z) < 1e-9 && apart(&back.log_det, &ours.log_det) < 1e-9);
            }
        }
    }
}

#[test]
fn an_image_comes_out_the_same_beside_whatever_others() {
    for config in &CONFIGS {
        let flow = GlowFlow::freeze(config, &glow(config, Precision::F32), Preprocessing::Uniform).unwrap();
        let dims = config.shape.dims();
        let z = normal("latents", 37 * dims);
        let all = flow.decode_base(z.clone()).unwrap();
        for (range, threads) in [(0..1, 1), (3..4, 2), (5..37, 1), (1..24, 3)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let few = pool.install(|| flow.decode_base(z[range.start * dims..range.end * dims].to_vec())).unwrap();
            assert_eq!(few.images, all.images[range.start * dims..range.end * dims]);
            assert_eq!(few.log_det, all.log_det[range]);
        }
    }
}

/// Images that stay on a device are not read back, and yet they are numbers, or refused.
#[test]
fn images_that_stay_where_they_are_leave_no_finite_number_unseen() {
    let config = CONFIGS[1];
    let noise = vec![0.5; 2 * config.shape.dims()];
    let drawn = |logs: f32, mean: f32| {
        let mut weights = config.initial_weights(Seed(1), 0.0);
        for (name, array) in &mut weights.0 {
            match name.as_str() {
                "flows.steps.0.norm.logs" => array.values.fill(logs),
                // Of the second class alone.
                "means" => array.values[config.shape.dims()..2 * config.shape.dims()].fill(mean),
                _ => {}
            }
        }
        let glow = Glow::from_weights(&config, weights, &Device::flex(), Precision::F32).unwrap();
        let pixels = Preprocessing::Gaussian { std: 0.1 };
        let flow = GlowFlow::freeze_tensors(&config, &glow, pixels).unwrap();
        flow.decode_resident(&noise, &[0, 1], Tau::ONE, &mut silent()).map(|made| made.scores)
    };
    assert!(drawn(0.0, 1.0).is_ok());
    // y = z e^80 beyond 32 bits, whose log-determinant is Σ 80.
    let error = drawn(-80.0, 1e6).unwrap_err();
    assert!(matches!(error, Error::Overflow { image: 1, tau: None }), "{error}");
}
