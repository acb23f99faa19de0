//! Small flows with weights that do something: every array random, none at its neutral start.

use super::filled::uniform;
use crate::data::ImageShape;
use crate::flow::glow::GlowConfig;
use crate::flow::tarflow::TarFlowConfig;
use crate::flow::weights::Weights;
use crate::units::Seed;

/// Weights of a Glow so far from the neutral values that every part of the map matters.
pub fn glow_weights(config: &GlowConfig, seed: u64) -> Weights {
    let mut weights = config.initial_weights(Seed(seed), 0.5);
    for (name, array) in &mut weights.0 {
        let spread = match name.rsplit('.').next().unwrap_or_default() {
            "bounds" => 0.0,
            "cov_diag" | "running_var" => 0.4,
            _ if name.contains("coup.nn") && name.ends_with("conv.weight") => 0.4,
            _ => 0.15,
        };
        let noise = uniform(name, seed, array.values.len());
        array.values.iter_mut().zip(noise).for_each(|(v, u)| *v += (spread * u) as f32);
        // Public checkpoints hold negative entries: the absolute value counts.
        if name == "cov_diag" {
            array.values.iter_mut().take(1).for_each(|first| *first *= -1.0);
        }
    }
    weights
}

/// A TarFlow of one attention head, two blocks and two layers on square images of given channels
/// and side; `classes` may be 0.
pub fn tarflow_config(channels: usize, side: usize, patch: usize, classes: usize) -> TarFlowConfig {
    TarFlowConfig {
        shape: ImageShape { channels, height: side, width: side },
        classes,
        patch,
        channels: 64,
        blocks: 2,
        layers: 2,
        volume_preserving: false,
        shared_map: false,
    }
}

/// Weights of a TarFlow at a distance from the random start at which every part of the map matters,
/// the variance of the base included.
pub fn tarflow_weights(config: &TarFlowConfig, seed: u64) -> Weights {
    let mut weights = config.initial_weights(Seed(seed));
    for (name, array) in &mut weights.0 {
        let spread = match name.as_str() {
            "var" => 0.4,
            _ if name.ends_with("_embed") => 0.5,
            // The output is not normalised: with larger weights e^a overflows within a few tokens.
            _ if name.contains("proj_out") => 0.03,
            _ if name.contains("norm.") || name.ends_with(".bias") => 0.2,
            _ => 0.1,
        };
        let noise = uniform(name, seed, array.values.len());
        array.values.iter_mut().zip(noise).for_each(|(v, u)| *v += (spread * u) as f32);
    }
    weights
}
