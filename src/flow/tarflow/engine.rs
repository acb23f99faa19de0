//! What computes the passes of a TarFlow: burn on any device, or our own kernels on the CPU. One contract, so that both
//! answer the same tests.
//!
//! Arrays are row-major tokens [N, T, P] on the host in f64, whatever the precision of the arithmetic: one transfer a
//! pass is nothing beside the pass.

use serde::{Deserialize, Serialize};

use super::{Condition, TensorTarFlow};
use crate::device::Products;
use crate::error::{Error, Result};

/// Base-space tokens and the log-determinant of the map that led there.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// z, [N, T, P].
    pub z: Vec<f64>,
    /// −Σ_blocks Σ_d a_td, [N, T], nats, each at the place of its patch in the image; sums over T are log |det ∂z/∂x|.
    pub log_det: Vec<f64>,
}

/// The x a Jacobi iteration starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guess {
    /// The block's own input z.
    Z,
    /// Zero, but for the first token, which is z's.
    Zero,
}

/// How a block is inverted. Both ways end in the same x.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Token after token, keys and values cached: T − 1 steps.
    Loop,
    /// GS-Jacobi (Liu & Qin 2025): modules of consecutive tokens one after the other (our CPU kernels) or one that slides on as
    /// its first tokens are solved (tensors), all tokens of a module at once, again and again until x moves by no more than
    /// `tolerance` anywhere. The first r tokens are exact after r rounds, where they stop in any case.
    Jacobi {
        /// Number of modules, 1 … T − 1: T − 1 over their length.
        modules: usize,
        /// Where each module starts.
        guess: Guess,
        /// Largest change of any value in the round after which a module counts as solved.
        tolerance: f64,
    },
}

/// Which of a block's two outputs guidance moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guided {
    /// The log-scale a.
    A,
    /// The shift b.
    B,
    /// Both.
    #[default]
    Ab,
}

impl Guided {
    /// Whether the log-scale moves.
    pub fn scale(self) -> bool {
        self != Self::B
    }

    /// Whether the shift moves.
    pub fn shift(self) -> bool {
        self != Self::A
    }
}

/// Classifier-free guidance: a + g(a − a_none), b + g(b − b_none), where "none" is the pass under the mean embedding.
/// What it makes is not a sample of the world: for the eye only.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Guidance {
    /// g > 0.
    pub scale: f64,
    /// What it moves.
    pub what: Guided,
    /// Whether g grows along the block: g_t = (t + 1)/(T − 1)·g for the outputs of token t, in the block's own order.
    pub annealed: bool,
    /// Softmax temperature of the attention in the pass without class (the paper's code has it nowhere else).
    pub attention_temperature: f64,
}

/// A block's x, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Inverted {
    /// x, [N, T, P].
    pub x: Vec<f64>,
    /// Rounds, summed over modules: T − 1 for the loop.
    pub rounds: usize,
    /// Largest last change of any value over the modules that stopped before they were exact; 0 where all are.
    pub residual: f64,
}

/// Told after every token (loop) or module (Jacobi): tokens finished of T. An error stops the inversion.
pub type Tick<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// The passes of one TarFlow. Every image's result is the same in whatever batch it comes.
pub trait Engine: Send {
    /// All blocks forward: tokens `x` [N, T, P] under one condition per image.
    ///
    /// # Errors
    /// When the device fails.
    fn encode(&self, x: &[f64], conditions: &[Condition]) -> Result<Encoded>;

    /// Tokens `x` [N, T, P] of block `block` whose output is `z`, under one condition per image.
    ///
    /// # Errors
    /// When the device fails, or what `tick` returns.
    fn invert(
        &self,
        block: usize,
        z: &[f64],
        conditions: &[Condition],
        strategy: Strategy,
        guidance: Option<&Guidance>,
        tick: Tick<'_>,
    ) -> Result<Inverted>;

    /// The same flow with its matrix products in another format, where the engine and its device have it.
    ///
    /// # Errors
    /// Says what has no such arithmetic.
    fn narrowed(&self, products: Products) -> Result<Box<dyn Engine>> {
        Err(Error::Device(format!(
            "our kernels on the CPU compute in 32 bits, not in {}: choose another device, or products f32",
            products.label()
        )))
    }

    /// The engine as one whose tensors stay on a device, where it is one.
    fn tensors(&self) -> Option<&TensorTarFlow> {
        None
    }

    /// Log-scales a_t of block `block` for every token of its input `x` [N, T, P], 0 for the block's first token and
    /// everywhere in VP: [N, T, P], at the places of the patches.
    ///
    /// # Errors
    /// When the device fails.
    fn log_scales(&self, block: usize, x: &[f64], conditions: &[Condition]) -> Result<Vec<f64>>;

    /// ∇_x Σ_t log_det_t − ½ Σ_td weight_td z_td² of each image, [N, T, P], and that forward pass. With weight = 1/(τ²var)
    /// [T, P] this is ∇_x log p(x|y).
    ///
    /// # Errors
    /// When the device fails.
    fn gradient(&self, x: &[f64], conditions: &[Condition], weight: &[f64]) -> Result<(Vec<f64>, Encoded)>;
}
