//! Small flows with weights that do something: every array random, none at its neutral start.

use bayescope::data::ImageShape;
use bayescope::flow::Precision;
use bayescope::flow::glow::{GlowConfig, GlowFlow};
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::tarflow::{TarFlowConfig, TarFlowOracle};
use bayescope::flow::weights::{Storage, Weights};
use burn::tensor::Device;

use super::fill::uniform;

/// An architecture of given sides, levels and steps; 3 classes, 4 hidden channels.
pub fn config(channels: usize, side: usize, levels: usize, steps: usize) -> GlowConfig {
    GlowConfig { shape: ImageShape { channels, height: side, width: side }, classes: 3, hidden: 4, levels, steps }
}

/// Weights around the neutral values, at a distance at which every part of the map matters.
pub fn weights(config: &GlowConfig, seed: u64) -> Weights {
    let mut weights = config.initial_weights(bayescope::units::Seed(seed), 0.5);
    for (name, array) in &mut weights.0 {
        let spread = match name.rsplit('.').next().unwrap() {
            "bounds" => 0.0,
            "cov_diag" | "running_var" => 0.4,
            _ if name.contains("coup.nn") && name.ends_with("conv.weight") => 0.4,
            _ => 0.15,
        };
        let noise = uniform(name, seed, array.values.len());
        array.values.iter_mut().zip(noise).for_each(|(v, u)| *v += (spread * u) as f32);
    }
    // Public checkpoints hold negative entries: the absolute value counts.
    weights.0.get_mut("cov_diag").unwrap().values[0] *= -1.0;
    weights
}

/// The flow of [`weights`] on the CPU.
pub fn flow(config: &GlowConfig, seed: u64, precision: Precision) -> GlowFlow {
    GlowFlow::new(config, weights(config, seed), &Device::flex(), precision).unwrap()
}

/// A TarFlow of one attention head, two blocks and two layers on images of given channels and side.
pub fn tarflow_config(channels: usize, side: usize, patch: usize, classes: usize) -> TarFlowConfig {
    TarFlowConfig {
        shape: ImageShape { channels, height: side, width: side },
        classes,
        patch,
        channels: 64,
        blocks: 2,
        layers: 2,
        volume_preserving: false,
    }
}

/// Weights at a distance from the random start at which every part of the map matters, the variance of the base included.
pub fn tarflow_weights(config: &TarFlowConfig, seed: u64) -> Weights {
    let mut weights = config.initial_weights(bayescope::units::Seed(seed));
    for (name, array) in &mut weights.0 {
        let spread = match name.as_str() {
            "var" => 0.4,
            _ if name.ends_with("_embed") => 0.5,
            // What comes out is not normalised: larger weights make e^a overflow within a few tokens.
            _ if name.contains("proj_out") => 0.03,
            _ if name.contains("norm.") || name.ends_with(".bias") => 0.2,
            _ => 0.1,
        };
        let noise = uniform(name, seed, array.values.len());
        array.values.iter_mut().zip(noise).for_each(|(v, u)| *v += (spread * u) as f32);
    }
    weights
}

/// The world's flow of [`tarflow_weights`] on the CPU.
pub fn tarflow(config: &TarFlowConfig, seed: u64, precision: Precision) -> TarFlowOracle {
    let pixels = Preprocessing::Gaussian { std: 0.1 };
    TarFlowOracle::new(config, tarflow_weights(config, seed), pixels, &Device::flex(), precision).unwrap()
}

/// A TarFlow of [`tarflow_weights`] over grey 8×8 images of 16 tokens, as a public checkpoint file.
pub fn tarflow_file(folder: &std::path::Path, classes: usize, seed: u64) -> std::path::PathBuf {
    let path = folder.join(format!("tiny{seed}_model_2_64_2_2_0.05.safetensors"));
    let weights = tarflow_weights(&tarflow_config(1, 8, 2, classes), seed);
    let bytes = weights.to_safetensors(Storage::F32).unwrap();
    bayescope::data::write_atomically(&path, |file| file.write_all(&bytes)).unwrap();
    path
}
