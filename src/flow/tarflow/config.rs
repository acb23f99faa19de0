//! The architecture of a TarFlow, in numbers.

use serde::{Deserialize, Serialize};

use super::HEAD;
use crate::data::ImageShape;
use crate::error::{Error, Result};

/// Architecture of a TarFlow, in the paper's notation P-C-(blocks)-(layers). BLC Table 5: 8 blocks
/// of 8 layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TarFlowConfig {
    /// Shape of the images: square, sides a multiple of the patch.
    pub shape: ImageShape,
    /// Number of classes; 0 for an unconditional flow.
    pub classes: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Width C of the Transformers, a multiple of 64.
    pub channels: usize,
    /// Number of autoregressive blocks.
    pub blocks: usize,
    /// Attention layers in each block.
    pub layers: usize,
    /// Whether blocks only shift (VP); otherwise they scale too (NVP).
    #[serde(default)]
    pub volume_preserving: bool,
    /// Whether one map serves all classes. The blocks then have no class embeddings, and the
    /// classes are the means of the base distribution, N(μ_y, τ²·diag(var)).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_map: bool,
}

impl TarFlowConfig {
    /// Number of class embeddings in each block: none where one map serves all classes.
    pub fn embeddings(&self) -> usize {
        if self.shared_map { 0 } else { self.classes }
    }

    /// Whether a pass can be conditioned on a class or on none, which guidance needs.
    pub fn guides(&self) -> bool {
        self.embeddings() > 1
    }

    /// Tokens T of an image.
    pub fn tokens(&self) -> usize {
        (self.shape.height / self.patch) * (self.shape.width / self.patch)
    }

    /// Dimensions P of a token.
    pub fn token_dims(&self) -> usize {
        self.shape.channels * self.patch * self.patch
    }

    /// Attention heads.
    pub fn heads(&self) -> usize {
        self.channels / HEAD
    }

    /// Outputs of a block for one token: log-scale and shift, or the shift alone.
    pub fn outputs(&self) -> usize {
        if self.volume_preserving { self.token_dims() } else { 2 * self.token_dims() }
    }

    /// Whether block `b` reads the tokens in reverse order.
    pub fn flipped(&self, block: usize) -> bool {
        block % 2 == 1
    }

    /// Whether such a flow can exist.
    ///
    /// # Errors
    /// Says which number is wrong.
    pub fn validate(&self) -> Result<()> {
        let ImageShape { channels, height, width } = self.shape;
        if channels == 0 || height == 0 || height != width {
            return Err(Error::input(format!("a TarFlow needs square images, not {}", self.shape)));
        }
        if self.patch == 0 || height % self.patch != 0 {
            return Err(Error::input(format!("patches of side {} do not tile images of {}", self.patch, self.shape)));
        }
        if self.tokens() < 2 {
            return Err(Error::input(format!(
                "a patch of side {} is the whole image of side {height}: a TarFlow needs at least two patches, or it changes \
                 nothing; choose a smaller patch",
                self.patch
            )));
        }
        if self.channels == 0 || !self.channels.is_multiple_of(HEAD) {
            return Err(Error::input(format!(
                "the width of a TarFlow is a multiple of {HEAD} (one attention head), not {}",
                self.channels
            )));
        }
        if self.blocks == 0 || self.layers == 0 {
            return Err(Error::input("a TarFlow needs at least one block of one layer"));
        }
        if self.shared_map && self.classes == 0 {
            return Err(Error::input("a TarFlow with one map for all classes needs at least one class"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_of_one_patch_is_refused_by_patch_and_side() {
        let config = TarFlowConfig {
            shape: ImageShape { channels: 1, height: 6, width: 6 },
            classes: 3,
            patch: 3,
            channels: 64,
            blocks: 1,
            layers: 1,
            volume_preserving: false,
            shared_map: false,
        };
        config.validate().unwrap();
        let why = TarFlowConfig { patch: 6, ..config }.validate().unwrap_err().to_string();
        assert!(why.contains("a patch of side 6 is the whole image of side 6"), "{why}");
    }
}
