//! Small Glows with weights that do something: every array random, none at its neutral start.

use bayescope::data::ImageShape;
use bayescope::flow::Precision;
use bayescope::flow::glow::{GlowConfig, GlowFlow};
use bayescope::flow::tarflow::TarFlowConfig;
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

/// A TarFlow of `classes` classes over grey 8×8 images: 16 tokens, two blocks of one layer.
pub fn tarflow_config(classes: usize) -> TarFlowConfig {
    let shape = ImageShape { channels: 1, height: 8, width: 8 };
    TarFlowConfig { shape, classes, patch: 2, channels: 64, blocks: 2, layers: 1, volume_preserving: false }
}

/// Its weights, every part of the map away from its neutral start and the classes apart.
pub fn tarflow_weights(config: &TarFlowConfig, seed: u64) -> Weights {
    let mut weights = config.initial_weights(bayescope::units::Seed(seed));
    for (name, array) in &mut weights.0 {
        let spread = match name.rsplit('.').next().unwrap() {
            "var" => 0.0,
            "class_embed" => 0.5,
            _ if name.contains("proj_out") => 0.06,
            _ => 0.05,
        };
        let noise = uniform(name, seed, array.values.len());
        array.values.iter_mut().zip(noise).for_each(|(v, u)| *v += (spread * u) as f32);
    }
    weights
}

/// Such a TarFlow as a public checkpoint file.
pub fn tarflow_file(folder: &std::path::Path, classes: usize, seed: u64) -> std::path::PathBuf {
    let path = folder.join(format!("tiny{seed}_model_2_64_2_1_0.05.safetensors"));
    let bytes = tarflow_weights(&tarflow_config(classes), seed).to_safetensors(Storage::F32).unwrap();
    bayescope::data::write_atomically(&path, |file| file.write_all(&bytes)).unwrap();
    path
}
