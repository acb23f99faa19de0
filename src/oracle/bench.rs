//! How fast a world answers on a device, and how far that is from what the device can do.

pub mod sampling;

use std::time::Instant;

use burn::tensor::{Tensor, TensorData};
use serde::Serialize;

use crate::device::Chosen;
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::base::latents;
use crate::oracle::folder::Oracle;
use crate::units::{Seed, Tau};

/// Images of one measured pass.
const IMAGES: usize = 64;
/// Side of the matrices whose product stands for the most a device can do.
const SIDE: usize = 1024;

/// All figures of one device.
#[derive(Debug, Serialize)]
pub struct Report {
    /// What computed.
    pub device: String,
    /// The measured peak: 32-bit arithmetic in products of large matrices, GFLOP/s.
    pub matmul_gflops: f64,
    /// The figures.
    pub benches: Vec<Bench>,
}

/// Repeated timings of one task.
#[derive(Debug, Serialize)]
pub struct Timing {
    /// What was done.
    pub name: String,
    /// Unit of the times.
    pub unit: &'static str,
    /// Median time.
    pub median: f64,
    /// Fastest run.
    pub min: f64,
    /// Slowest run.
    pub max: f64,
    /// Number of timed runs, after one that does not count.
    pub runs: usize,
}

impl Timing {
    /// Of at least one time in milliseconds.
    pub fn of(name: String, mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let (median, min, max) = (times[times.len() / 2], times[0], times[times.len() - 1]);
        Self { name, unit: "ms", median, min, max, runs: times.len() }
    }
}

/// One task of a world.
#[derive(Debug, Serialize)]
pub struct Bench {
    /// How long it took.
    #[serde(flatten)]
    pub timing: Timing,
    /// Share of the measured matrix-product peak that the median run's convolutions or products reach.
    pub roofline_share: f64,
    /// Images × classes a second.
    pub images_times_classes_per_second: f64,
}

/// Times `runs` passes of 64 images: likelihoods under every class, and images of latents.
///
/// # Errors
/// When the device fails.
pub fn run(oracle: &Oracle, chosen: &Chosen, runs: usize) -> Result<Report> {
    let flow = oracle.world.flow();
    let dims = flow.shape().dims();
    let noise = latents(Seed(0), 0, IMAGES, dims);
    let classes: Vec<usize> = (0..IMAGES).map(|i| i % flow.classes()).collect();
    let x = flow.decode(&noise, &classes, Tau::ONE, &mut silent())?.x;
    let peak = matmul_gflops(chosen, runs)?;
    let gflop = IMAGES as f64 * oracle.info.architecture.flop_per_image() / 1e9;
    // A map that depends on the class is passed once for each.
    let passes = if flow.shared_base().is_some() { 1.0 } else { flow.classes() as f64 };
    let score = time(runs, || flow.score(&x).map(drop))?;
    let decode = time(runs, || flow.decode(&noise, &classes, Tau::ONE, &mut silent()).map(drop))?;
    let bench = |what: &str, passes: f64, times: Vec<f64>| {
        let timing = Timing::of(format!("{what} {IMAGES} images of {} ({})", oracle.info.name, flow.shape()), times);
        let seconds = timing.median / 1e3;
        Bench {
            roofline_share: passes * gflop / seconds / peak,
            images_times_classes_per_second: IMAGES as f64 * flow.classes() as f64 / seconds,
            timing,
        }
    };
    let classes = flow.classes();
    let used = &chosen.report.used;
    Ok(Report {
        device: format!("{} ({})", used.name, used.driver),
        matmul_gflops: peak,
        benches: vec![
            bench(&format!("log-likelihoods under {classes} classes of"), passes, score),
            bench("sampling", 1.0, decode),
        ],
    })
}

/// Times of `runs` runs in milliseconds, sorted, after one that does not count.
fn time(runs: usize, mut work: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    work()?;
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs.max(1) {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// 32-bit matrix products on the device, GFLOP/s of the median run. The product is read back and one entry checked: a
/// device that skips the work has no peak.
///
/// # Errors
/// When the device fails or its product is wrong.
fn matmul_gflops(chosen: &Chosen, runs: usize) -> Result<f64> {
    let values = latents(Seed(1), 0, SIDE, SIDE);
    let column = values.iter().step_by(SIDE);
    let expected: f64 = values.iter().zip(column).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    let a = Tensor::<2>::from_data(TensorData::new(values.clone(), [SIDE, SIDE]), &chosen.device);
    let times = time(runs, || {
        let product = a.clone().matmul(a.clone()).try_into_vec_as::<f32>();
        let product = product.map_err(|e| Error::Device(e.to_string()))?;
        let corner = product.first().copied().map_or(f64::NAN, f64::from);
        if (corner - expected).abs() < 1e-2 {
            return Ok(());
        }
        Err(Error::Device(format!("a matrix product came out as {corner}, not {expected}: its figures mean nothing")))
    })?;
    Ok(2.0 * (SIDE as f64).powi(3) / (times[times.len() / 2] / 1e3) / 1e9)
}
