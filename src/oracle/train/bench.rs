//! How fast a world's flow trains.

use burn::tensor::Device;
use serde::Serialize;

use super::batch::Draw;
use super::learner::learner;
use super::spec::{DataSpec, ModelSpec, OptimSpec, TarFlowSpec, TrainSpec};
use super::step::{Saved, adam};
use crate::data::Dataset;
use crate::device::{MatmulPrecision, OpenDevice};
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::base::latents;
use crate::flow::weights::{Storage, Weights};
use crate::flow::{Architecture, Precision};
use crate::oracle::bench::{Peak, Timing};
use crate::oracle::folder;
use crate::oracle::info::OracleInfo;
use crate::units::{Seed, Tau};

/// Learning rate of the steps: too small to lead the weights away.
const RATE: f64 = 1e-5;
/// Decay of the average of the weights.
const DECAY: f64 = 0.998;

/// Training steps of a world's flow on 8-bit pictures that it drew itself.
#[derive(Debug, Serialize)]
pub struct StepBench {
    /// How long a step took: noise of the pixels, forward, backward, AdamW and the average of the
    /// weights.
    #[serde(flatten)]
    pub timing: Timing,
    /// Share of the measured peak that its products reach: three times those of the forward pass.
    pub roofline_share: f64,
    /// What the share is of.
    pub roofline: &'static str,
    /// Images in a step.
    pub batch: usize,
    /// Trained numbers.
    pub parameters: usize,
    /// Images a second, by the median.
    pub images_per_second: f64,
}

/// Times `runs` steps of `batch` images on a device, after two that do not count. A world that was
/// put together from several flows has none to train.
///
/// # Errors
/// When the world cannot be read, or the device fails.
pub fn bench_steps(oracle: &str, batch: usize, chosen: &OpenDevice, peak: Peak, runs: usize) -> Result<StepBench> {
    let (info, weights) = folder::read(oracle)?;
    if !info.flows.is_empty() {
        return Err(Error::input(format!("{} has a flow for each class: train each by itself", info.name)));
    }
    let cpu = chosen.device == Device::flex();
    let spec = spec(&info, if cpu { rayon::current_num_threads() } else { 1 });
    let what = format!("training {} ({}), batch {batch}", info.name, info.architecture.shape());
    let gflop = 3.0 * batch as f64 * info.architecture.flop_per_image() / 1e9;
    let saved = Saved { weights: weights.clone(), average: weights.clone(), optimizer: adam(&spec.training) };
    let images = drawn(info, weights, batch, chosen)?;
    let mut learner = learner(&spec, &images, Some(saved), &chosen.device)?;
    let (labels, all): (Vec<usize>, Vec<usize>) = (images.labels.clone().unwrap_or_default(), (0..batch).collect());
    let mut epoch = 0;
    let timing = Timing::measure(what, 2, runs, || {
        epoch += 1;
        let (train, seed) = (&images, spec.training.seed);
        let draw = Draw { train, labels: &labels, chosen: &all, epoch, seed, shift: 0, mirror: false, turn: false };
        let loss = learner.step(&draw, RATE, DECAY)?;
        let finite = loss.grad_norm.is_finite();
        if finite { Ok(()) } else { Err(Error::Numeric("a step was not finite: it moved nothing".into())) }
    })?;
    let seconds = timing.median / 1e3;
    Ok(StepBench {
        timing,
        roofline_share: gflop / seconds / peak.roofline_gflops(),
        roofline: peak.roofline(),
        batch,
        parameters: learner.parameters(),
        images_per_second: batch as f64 / seconds,
    })
}

/// A spec that trains the world's flow, in so many pieces side by side: every image has its label.
fn spec(info: &OracleInfo, shards: usize) -> TrainSpec {
    let mut model = ModelSpec { pixels: info.pixels, ..ModelSpec::default() };
    let mut tarflow = None;
    match info.architecture {
        Architecture::Glow(c) => model = ModelSpec { hidden: c.hidden, levels: c.levels, steps: c.steps, ..model },
        Architecture::TarFlow(c) => {
            tarflow = Some(TarFlowSpec {
                patch: c.patch,
                channels: c.channels,
                blocks: c.blocks,
                layers: c.layers,
                volume_preserving: c.volume_preserving,
                shared_map: c.shared_map,
                pixels: info.pixels,
                label_dropout: 0.0,
                products: MatmulPrecision::F32,
            });
        }
    }
    let data = DataSpec::at("");
    let training = OptimSpec { shards, ..OptimSpec::default() };
    TrainSpec { name: info.name.clone(), storage: Storage::F32, data, model, tarflow, training }
}

/// So many 8-bit pictures of the world, class after class.
fn drawn(info: OracleInfo, weights: Weights, images: usize, chosen: &OpenDevice) -> Result<Dataset> {
    let pixels = info.pixels;
    let oracle = info.build(weights, &chosen.device, Precision::F32, chosen.batch)?;
    let flow = oracle.world.flow();
    let labels: Vec<usize> = (0..images).map(|i| i % flow.classes()).collect();
    let noise = latents(Seed(0), 0, images, flow.shape().dims());
    let x = flow.decode(&noise, &labels, Tau::ONE, &mut silent())?.x;
    Ok(Dataset {
        name: oracle.info.name,
        shape: flow.shape(),
        pixels: pixels.picture(&x),
        labels: Some(labels),
        class_names: oracle.info.class_names,
        ids: (0..images).map(|i| i.to_string()).collect(),
        noises: Default::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceChoice, choose};

    #[test]
    fn bundled_worlds_of_both_families_train() {
        let chosen = choose(DeviceChoice::Cpu).unwrap();
        let peak = Peak { matmul_gflops: 1e6, multiply_add_gflops: None, copied_gb_per_second: None };
        for oracle in ["mnist@9b44f254", "cells"] {
            let bench = bench_steps(oracle, 2, &chosen, peak, 1).unwrap();
            let (_, weights) = folder::read(oracle).unwrap();
            let given = ["running_mean", "running_var", "bounds", "linproj.weight", "linproj.bias", "var"];
            let trained = weights.0.iter().filter(|(name, _)| !given.iter().any(|given| name.ends_with(given)));
            assert_eq!(bench.parameters, trained.map(|(_, array)| array.values.len()).sum::<usize>(), "{oracle}");
            assert!(bench.roofline_share > 0.0 && bench.roofline_share < 1.0, "{bench:?}");
        }
    }
}
