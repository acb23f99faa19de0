//! TarFlow: "Normalizing Flows are Capable Generative Models" (Zhai et al. 2025), the oracle of "Beyond the Loss Curve"
//! (BLC, App. B).
//!
//! ```text
//! x ─patchify→ [N, T, P] ─block 0→ ─block 1 (tokens flipped)→ ─block 2→ … ─→ z ~ N(0, τ²·diag(var))
//! ```
//!
//! A block is a causal Transformer over the T patches of an image. From patches 0 … t − 1 (and the class) it predicts a
//! log-scale a_t and a shift b_t for patch t, and maps
//!
//! ```text
//! z_0 = x_0,   z_t = (x_t − b_t) e^{−a_t},   log |det| = −Σ_t Σ_d a_td
//! ```
//!
//! Odd blocks read the patches in reverse order. Volume-preserving blocks (VP) have a = 0; then `var`, the variance of
//! the base distribution, is learned as a moving average. A dropped label stands for the mean of all class embeddings.
//!
//! Deviations from the paper's code: log-determinants and losses are sums over dimensions in nats, not means; `var`
//! enters the density as it enters sampling; class −1 is not an index but `None`.

pub mod cpu;
pub mod engine;

use serde::{Deserialize, Serialize};

use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::units::ClassId;

/// Channels of one attention head; fixed in the paper's code.
pub const HEAD: usize = 64;
/// Width of an MLP's hidden layer over that of its input.
pub const EXPANSION: usize = 4;
/// Variance floor of the layer normalisations (PyTorch's default).
pub const NORM_EPS: f64 = 1e-5;

/// The class a pass is conditioned on: its embedding, or with `None` ("no class", a dropped label) the mean of all.
pub type Condition = Option<ClassId>;

/// Architecture of a TarFlow, in the paper's notation P-C-(blocks)-(layers). BLC Table 5: 8 blocks of 8 layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TarFlowConfig {
    /// Shape of the images: square, sides a multiple of the patch.
    pub shape: ImageShape,
    /// Number of class embeddings; 0 for an unconditional flow.
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
}

impl TarFlowConfig {
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
        if self.channels == 0 || self.channels % HEAD != 0 {
            return Err(Error::input(format!(
                "the width of a TarFlow is a multiple of {HEAD} (one attention head), not {}",
                self.channels
            )));
        }
        if self.blocks == 0 || self.layers == 0 {
            return Err(Error::input("a TarFlow needs at least one block of one layer"));
        }
        Ok(())
    }

    /// Floating-point operations of the matrix products of one pass of one image under one class (2 per multiply-add);
    /// attention counts its causal half.
    pub fn flop_per_image(&self) -> f64 {
        let (t, c) = (self.tokens() as f64, self.channels as f64);
        let layer = (4.0 + 2.0 * EXPANSION as f64) * c * c + (t + 1.0) * c;
        let ends = self.token_dims() as f64 * c + c * self.outputs() as f64;
        2.0 * self.blocks as f64 * t * (self.layers as f64 * layer + ends)
    }

    /// Image values [N, C, H, W] as tokens [N, T, P]: patches row by row, inside a patch channel, then row, then column.
    pub fn patchify<V: Copy + Default>(&self, x: &[V]) -> Vec<V> {
        self.rearrange(x, |out, token, pixel, x| out[token] = x[pixel])
    }

    /// Inverse of [`Self::patchify`].
    pub fn unpatchify<V: Copy + Default>(&self, tokens: &[V]) -> Vec<V> {
        self.rearrange(tokens, |out, token, pixel, tokens| out[pixel] = tokens[token])
    }

    fn rearrange<V: Copy + Default>(&self, from: &[V], put: impl Fn(&mut [V], usize, usize, &[V])) -> Vec<V> {
        let ImageShape { channels, height, width } = self.shape;
        let (dims, side) = (self.shape.dims(), self.patch);
        let mut out = vec![V::default(); from.len()];
        for (out, from) in out.chunks_mut(dims).zip(from.chunks(dims)) {
            for c in 0..channels {
                for (row, column) in (0..height).flat_map(|row| (0..width).map(move |column| (row, column))) {
                    let token = (row / side) * (width / side) + column / side;
                    let inside = (c * side + row % side) * side + column % side;
                    put(out, token * self.token_dims() + inside, (c * height + row) * width + column, from);
                }
            }
        }
        out
    }
}
