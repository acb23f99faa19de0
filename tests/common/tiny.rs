//! Small flows with weights that do something: every array random, none at its neutral start.

use bayescope::data::{ImageShape, WorldBatch};
use bayescope::flow::Precision;
use bayescope::flow::glow::{GlowConfig, GlowFlow};
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::tarflow::{TarFlowConfig, TarFlowOracle};
use bayescope::flow::weights::Storage;
use burn::tensor::Device;

pub use bayescope::verify::small::{glow_weights as weights, tarflow_config, tarflow_weights};

/// An architecture of given sides, levels and steps; 3 classes, 4 hidden channels.
pub fn config(channels: usize, side: usize, levels: usize, steps: usize) -> GlowConfig {
    GlowConfig { shape: ImageShape { channels, height: side, width: side }, classes: 3, hidden: 4, levels, steps }
}

/// The flow of [`weights`] on the CPU.
pub fn flow(config: &GlowConfig, seed: u64, precision: Precision) -> GlowFlow {
    GlowFlow::new(config, weights(config, seed), Preprocessing::Uniform, &Device::flex(), precision).unwrap()
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

/// Distance of the class means of [`gaussian_file`], in standard deviations.
pub const GAUSSIAN_DISTANCE: f64 = 2.5;

/// A checkpoint whose world is two Gaussian classes over grey 4×4 images, N(±m, 1) with |2m| = [`GAUSSIAN_DISTANCE`]: a TarFlow of
/// one block that shifts every token but the first by ±w and does nothing else.
pub fn gaussian_file(folder: &std::path::Path) -> std::path::PathBuf {
    let config = TarFlowConfig { blocks: 1, layers: 1, ..tarflow_config(1, 4, 2, 2) };
    let (dims, width) = (config.token_dims(), config.channels);
    let mut weights = config.initial_weights(bayescope::units::Seed(0));
    for (name, array) in &mut weights.0 {
        if name != "var" && !name.ends_with("norm.weight") {
            array.values.fill(0.0);
        }
    }
    // The class reaches the output through one channel: a = 0 and b = ±w for each of the dimensions of three tokens.
    let embed = &mut weights.0.get_mut("blocks.0.class_embed").unwrap().values;
    (embed[0], embed[width]) = (1.0, -1.0);
    let w = GAUSSIAN_DISTANCE / 2.0 / ((3 * dims) as f64).sqrt();
    let out = &mut weights.0.get_mut("blocks.0.proj_out.weight").unwrap().values;
    (dims..2 * dims).for_each(|row| out[row * width] = w as f32);
    let path = folder.join("gaussian_model_2_64_1_1_0.05.safetensors");
    let bytes = weights.to_safetensors(Storage::F32).unwrap();
    bayescope::data::write_atomically(&path, |file| file.write_all(&bytes)).unwrap();
    path
}

/// Two images of 1 × 2 × 2 with all that a world says of them, zeros of both signs and an impossible density among it.
pub fn labelled() -> WorldBatch {
    WorldBatch {
        shape: ImageShape { channels: 1, height: 2, width: 2 },
        x: vec![-1.5, 0.25, 1e-30, 3.0, 0.0, -0.0, 1.0, 2.0],
        classes: 3,
        y: Some(vec![2, 0]),
        posterior: Some(vec![0.0, 0.25, 0.75, 1.0, 0.0, 0.0]),
        logp: Some(vec![f64::NEG_INFINITY, -1e5, -2.5, 0.1, 0.2, 0.3]),
        aleatoric: Some(vec![0.562, 0.0]),
    }
}
