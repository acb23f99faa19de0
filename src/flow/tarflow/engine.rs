//! What computes the passes of a TarFlow: burn on any device, or our own kernels on the CPU. One
//! contract, so that both answer the same tests.
//!
//! Arrays are row-major tokens [N, T, P] on the host in f64, whatever the precision of the
//! arithmetic: one transfer a pass is nothing beside the pass.

use burn::tensor::Tensor;

use super::Condition;
use super::solve::Solved;
use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::flow::sampling::{Guidance, Strategy};

/// Base-space tokens and the log-determinant of the map that led there.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// z, [N, T, P].
    pub z: Vec<f64>,
    /// −Σ_blocks Σ_d a_td, [N, T], nats, each at the place of its patch in the image; sums over T
    /// are log |det ∂z/∂x|.
    pub log_det: Vec<f64>,
}

/// A block's x, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Inverted {
    /// x, [N, T, P].
    pub x: Vec<f64>,
    /// Rounds, summed over modules: T − 1 for the loop.
    pub rounds: usize,
    /// Largest last change of any value over the modules that stopped before they were exact; 0
    /// where all are.
    pub residual: f64,
}

/// Told after every few tokens (loop; after every one where they are slow) or module (Jacobi): tokens finished
/// of T. An error stops the inversion.
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

    /// The same flow with its matrix products in another format, where the engine and its device
    /// have it.
    ///
    /// # Errors
    /// Says what has no such arithmetic.
    fn narrowed(&self, products: MatmulPrecision) -> Result<Box<dyn Engine>> {
        Err(Error::Device(format!(
            "our kernels on the CPU compute in 32 bits, not in {}: choose another device, or products f32",
            products.label()
        )))
    }

    /// Formats of matrix products that the engine and its device have; 32 bits first.
    fn formats(&self) -> Vec<MatmulPrecision> {
        vec![MatmulPrecision::F32]
    }

    /// Whether it computes on a GPU that paints nothing: no frame waits there until a pass is over.
    fn is_headless_gpu(&self) -> bool {
        false
    }

    /// The engine as one whose arrays can stay on its device, in 32 bits; `None` where they are on
    /// the host.
    fn resident(&self) -> Option<&dyn ResidentEngine> {
        None
    }

    /// Log-scales a_t of block `block` for every token of its input `x` [N, T, P], 0 for the
    /// block's first token and everywhere in VP: [N, T, P], at the places of the patches.
    ///
    /// # Errors
    /// When the device fails.
    fn log_scales(&self, block: usize, x: &[f64], conditions: &[Condition]) -> Result<Vec<f64>>;

    /// ∇_x Σ_t log_det_t − ½ Σ_td weight_td z_td² of each image, [N, T, P], and that forward pass.
    /// With weight = 1/(τ²var) [T, P] this is ∇_x log p(x|y).
    ///
    /// # Errors
    /// When the device fails.
    fn gradient(&self, x: &[f64], conditions: &[Condition], weight: &[f64]) -> Result<(Vec<f64>, Encoded)>;
}

/// The passes of a TarFlow whose arrays stay on the device that computes them, in 32 bits.
pub trait ResidentEngine {
    /// Whether what it computes can be painted where it is.
    fn is_painted(&self) -> bool;

    /// Images whose largest array fits into a buffer of the device.
    fn at_once(&self) -> usize;

    /// Images that pass together: as many as fit, but few where the window's next frame waits
    /// behind the kernels of the pass.
    fn together(&self) -> usize;

    /// Tokens [N, T, P] from the host.
    fn tokens(&self, tokens: &[f64]) -> Tensor<3>;

    /// Tokens [N, T, P] as images [N, C, H, W]:
    /// [`TarFlowConfig::unpatchify`](super::TarFlowConfig::unpatchify).
    fn images(&self, tokens: Tensor<3>) -> Tensor<4>;

    /// [`Engine::invert`] whose tokens stay on the device.
    ///
    /// # Errors
    /// As [`Engine::invert`].
    fn solve(
        &self,
        block: usize,
        z: Tensor<3>,
        conditions: &[Condition],
        strategy: Strategy,
        guidance: Option<&Guidance>,
        tick: Tick<'_>,
    ) -> Result<Solved>;

    /// Σ_p (z − mean)²/var of every token of tokens `x` [N, T, P] for each mean of the base
    /// distribution, [N, M, T], and the log-determinants, [N, T]; under one condition per image, as
    /// many at once as the device takes. Of a token the device sums P terms; blocks are added in f64.
    ///
    /// # Errors
    /// When the device fails.
    fn terms(&self, x: &Tensor<3>, conditions: &[Condition], base: BaseTokens<'_>) -> Result<(Vec<f64>, Vec<f64>)>;

    /// [`Engine::encode`] of one image's tokens `x` [T, P], and the same where it was computed.
    ///
    /// # Errors
    /// When the device fails.
    fn encode_kept(&self, x: &[f64], condition: Condition) -> Result<(Encoded, Kept)>;
}

/// The base distribution, token by token.
#[derive(Debug, Clone, Copy)]
pub struct BaseTokens<'a> {
    /// Means, [M, T, P]; where empty, a single one at 0.
    pub means: &'a [f64],
    /// Variance at τ = 1, [T, P].
    pub var: &'a [f64],
}

/// One image in base space, on the device that computed it.
#[derive(Debug, Clone)]
pub struct Kept {
    /// z, [1, T, P].
    pub z: Tensor<3>,
    /// Log-determinants, [T].
    pub log_det: Tensor<1>,
}
