//! How fast a class-map world is sampled: without a cache, token by token, and by GS-Jacobi.

use std::time::Instant;

use serde::Serialize;

use super::{Peak, Timing};
use crate::device::OpenDevice;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::BlockInversion;
use crate::flow::base::latents;
use crate::flow::sampling::{BlockPlan, Guess, Strategy};
use crate::oracle::folder::Oracle;
use crate::oracle::strategies::{Measured, TOLERANCE, measure};
use crate::units::{Seed, Tau};

/// The figures of one world on one device.
#[derive(Debug, Serialize)]
pub struct Sampling {
    /// What computed.
    pub device: String,
    /// Images sampled together.
    pub images: usize,
    /// Every token by a masked pass over it and all that follow: T − 1 passes a block. ms of one
    /// run.
    pub sequential_ms: f64,
    /// Token by token with cached keys and values.
    pub cached_ms: f64,
    /// GS-Jacobi in every block, each with its fastest modules and guess.
    pub jacobi_ms: f64,
    /// What `auto` chose block by block.
    pub auto_ms: f64,
    /// `cached_ms` / `jacobi_ms`: against the loop of the paper's code, which caches too.
    pub jacobi_speedup: f64,
    /// Largest difference of any value of x between any two of the four.
    pub max_abs_difference: f64,
    /// Images a second by `auto`.
    pub images_per_second: f64,
    /// The measured peak of the device.
    #[serde(flatten)]
    pub peak: Peak,
    /// Share of it that the cached loop reaches.
    pub cached_roofline_share: f64,
    /// What was measured of each block.
    pub blocks: Vec<BlockPlan>,
}

/// Times all ways on `images` samples at τ = 1; the fastest ones `runs` times, in turns.
///
/// # Errors
/// When the world's map does not depend on the class, the device fails, or the caller stops.
pub fn run(
    oracle: &Oracle,
    chosen: &OpenDevice,
    images: usize,
    runs: usize,
    events: &mut dyn Events<Progress>,
) -> Result<Sampling> {
    let Some(flow) = oracle.world.flow().block_inversion() else {
        let name = &oracle.info.name;
        return Err(Error::input(format!("{name} is no TarFlow: `bayescope bench {name}` times its samples")));
    };
    let device = chosen.report.used.label();
    let plan = measure(flow, &oracle.info.weights_sha256, &device, images, events)?;
    let peak = Peak::measure(chosen, runs)?;
    let masked = Strategy::Jacobi { modules: 1, guess: Guess::Z, tolerance: -1.0 };
    let (sequential_ms, sequential) = time(flow, &vec![masked; plan.blocks.len()], images, 1)?;
    let ways = [vec![Strategy::Loop; plan.blocks.len()], jacobi(&plan), plan.strategies()];
    let mut times = [const { Vec::new() }; 3];
    let mut made = vec![sequential];
    for run in 0..runs.max(1) {
        // In turns, so that a slow moment of the machine hits all.
        for (times, strategies) in times.iter_mut().zip(&ways) {
            let (ms, x) = time(flow, strategies, images, usize::from(run == 0))?;
            times.push(ms);
            made.push(x);
        }
    }
    flow.set_strategies(plan.strategies());
    let [cached_ms, jacobi_ms, auto_ms] = times.map(|times| Timing::of(String::new(), times).median);
    let gflop = images as f64 * oracle.info.architecture.flop_per_image() / 1e9;
    Ok(Sampling {
        device,
        images,
        sequential_ms,
        cached_ms,
        jacobi_ms,
        auto_ms,
        jacobi_speedup: cached_ms / jacobi_ms,
        max_abs_difference: spread(&made),
        images_per_second: images as f64 / (auto_ms / 1e3),
        peak,
        cached_roofline_share: gflop / (cached_ms / 1e3) / peak.roofline_gflops(),
        blocks: plan.blocks,
    })
}

/// GS-Jacobi everywhere: the fastest found, or plain Jacobi where none reached the tolerance.
fn jacobi(plan: &Measured) -> Vec<Strategy> {
    let way = |block: &BlockPlan| {
        block.jacobi.unwrap_or(Strategy::Jacobi { modules: 1, guess: Guess::Z, tolerance: TOLERANCE })
    };
    plan.blocks.iter().map(way).collect()
}

/// Milliseconds of the last of `1 + warm` runs, and its images.
fn time(flow: &dyn BlockInversion, strategies: &[Strategy], images: usize, warm: usize) -> Result<(f64, Vec<f32>)> {
    flow.set_strategies(strategies.to_vec());
    let noise = latents(Seed(0), 0, images, flow.shape().dims());
    let classes: Vec<usize> = (0..images).map(|i| i % flow.classes()).collect();
    let once = || -> Result<(f64, Vec<f32>)> {
        let started = Instant::now();
        let x = flow.decode(&noise, &classes, Tau::ONE, &mut silent())?.x;
        Ok((started.elapsed().as_secs_f64() * 1e3, x))
    };
    for _ in 0..warm {
        once()?;
    }
    once()
}

/// Largest difference of any value between any two; infinite where one is no number.
fn spread(made: &[Vec<f32>]) -> f64 {
    let Some(first) = made.first() else { return 0.0 };
    let range = |i: usize| {
        let values = made.iter().map(|x| f64::from(x[i]));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            if v.is_nan() { (f64::NEG_INFINITY, f64::INFINITY) } else { (low.min(v), high.max(v)) }
        });
        high - low
    };
    (0..first.len()).map(range).fold(0.0, f64::max)
}
