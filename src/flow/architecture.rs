//! Which flow: the two families behind one name.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::glow::{GlowConfig, GlowFlow};
use super::preprocess::Preprocessing;
use super::tarflow::{SharedTarFlow, TarFlowConfig, TarFlowOracle};
use super::weights::Weights;
use super::{Flow, Precision};
use crate::data::ImageShape;
use crate::error::Result;

/// Architecture of a flow. The families have no field name in common but the shape, by which files
/// tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Architecture {
    /// One invertible map for all classes (EBO).
    Glow(GlowConfig),
    /// A map that depends on the class (BLC), or one for all classes.
    TarFlow(TarFlowConfig),
}

impl Architecture {
    /// Shape of the images.
    pub fn shape(&self) -> ImageShape {
        match self {
            Self::Glow(config) => config.shape,
            Self::TarFlow(config) => config.shape,
        }
    }

    /// `glow` or `tarflow`.
    pub fn family(&self) -> &'static str {
        match self {
            Self::Glow(_) => "glow",
            Self::TarFlow(_) => "tarflow",
        }
    }

    /// Whether one map serves all classes, so that figures of the world are integrals over Gaussians.
    pub fn has_shared_map(&self) -> bool {
        match self {
            Self::Glow(_) => true,
            Self::TarFlow(config) => config.shared_map,
        }
    }

    /// Number of layers and their sizes, in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Glow(c) => format!("Glow, {} levels of {} steps, {} hidden channels", c.levels, c.steps, c.hidden),
            Self::TarFlow(c) => format!(
                "TarFlow{}, {} blocks of {} layers, patches of {}×{}, {} channels{}",
                if c.shared_map { " with one map for all classes" } else { "" },
                c.blocks,
                c.layers,
                c.patch,
                c.patch,
                c.channels,
                if c.volume_preserving { ", volume-preserving" } else { "" }
            ),
        }
    }

    /// Floating-point operations of the products of one pass over one image (a TarFlow: under one
    /// class).
    pub fn flop_per_image(&self) -> f64 {
        match self {
            Self::Glow(config) => config.flop_per_image(),
            Self::TarFlow(config) => config.flop_per_image(),
        }
    }

    /// The frozen flow of these weights.
    ///
    /// # Errors
    /// When the weights do not fit, or the device fails.
    pub fn build(
        &self,
        weights: Weights,
        pixels: Preprocessing,
        device: &Device,
        precision: Precision,
    ) -> Result<Box<dyn Flow>> {
        Ok(match self {
            Self::Glow(config) => Box::new(GlowFlow::new(config, weights, pixels, device, precision)?),
            Self::TarFlow(config) if config.shared_map => {
                Box::new(SharedTarFlow::new(config, weights, pixels, device, precision)?)
            }
            Self::TarFlow(config) => Box::new(TarFlowOracle::new(config, weights, pixels, device, precision)?),
        })
    }
}
