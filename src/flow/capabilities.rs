//! What some flows can do besides [`Flow`]. A caller asks a flow for the capability, never for its
//! family.

use burn::tensor::Tensor;

use super::base::GaussianBase;
use super::sampling::{BlockPlan, SamplerOptions, Strategy};
use super::{Decoding, Evidence, Flow, Scores};
use crate::error::Result;
use crate::events::Events;
use crate::units::{ClassId, Tau};

/// Images on the other side of a shared map: z of images x, or x of base-space images z.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// The images, NCHW, [N, D].
    pub images: Vec<f64>,
    /// log |det ∂z/∂x|, preprocessing included, [N], nats.
    pub log_det: Vec<f64>,
}

/// A flow whose map all classes share: z = f(x), p(x|y) = N(z; μ_y, τ²Σ) |det ∂z/∂x|.
pub trait SharedMap: Flow {
    /// The base distribution.
    fn base(&self) -> &GaussianBase;

    /// z of world-space images x (NCHW), and log |det ∂z/∂x|.
    ///
    /// # Errors
    /// As [`Flow::score_classes`].
    fn encode_base(&self, x: &[f64]) -> Result<Mapped>;

    /// World-space images at base-space positions z [N, D], and log |det ∂z/∂x| there: the inverse
    /// of [`Self::encode_base`].
    ///
    /// # Errors
    /// When the numbers leave the finite range, or the device fails.
    fn decode_base(&self, z: Vec<f64>) -> Result<Mapped>;

    /// World-space images as they are stored: rounded to 32 bits, within the support of the
    /// density.
    fn round(&self, x: &[f64]) -> Vec<f32>;

    /// Statistics under every class of images at base-space positions `z` [N, D] with
    /// log-determinants `log_det` [N].
    fn scores(&self, z: &[f64], log_det: Vec<f64>) -> Scores {
        let base = self.base();
        let (classes, dims) = (base.classes(), base.dims());
        Scores { classes, dims, quad: base.distances(z), log_det, log_norm: vec![base.log_norm()] }
    }
}

/// A flow that can leave its images on the device that makes them, for the eye.
pub trait ResidentFlow {
    /// Images that the device takes at once: more must not be asked for.
    fn at_once(&self) -> usize;

    /// [`Flow::decode`] of which only statistics are read back.
    ///
    /// # Errors
    /// As [`Flow::decode`].
    fn decode_resident(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Resident>;

    /// Whether what it computes can be painted by the window where it is.
    fn is_painted(&self) -> bool;

    /// [`Flow::evidence`], and for the eye the cells once more where the map computed them: nats,
    /// [rows, columns], f32.
    ///
    /// # Errors
    /// As [`Flow::evidence`].
    fn evidence_resident(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<(Evidence, Tensor<2>)>;

    /// World-space images (NCHW) of [`Resident::images`]: the same bits as those of
    /// [`Flow::decode`].
    ///
    /// # Errors
    /// When the device fails.
    fn fetch(&self, images: Tensor<4>) -> Result<Vec<f32>>;
}

/// Images that stayed on the device that made them.
#[derive(Debug, Clone)]
pub struct Resident {
    /// What [`ResidentFlow::fetch`] makes world-space images of, [N, C, H, W].
    pub images: Tensor<4>,
    /// The images for the eye: 8-bit levels, whole numbers in f32, [N, C, H, W].
    pub levels: Tensor<4>,
    /// Their statistics under every class: sums over an image's dimensions begin on the device in
    /// short runs (a row, a token) and end here in f64.
    pub scores: Scores,
}

/// A flow that is inverted block after block, each in one of several ways that end in the same
/// image.
pub trait BlockInversion: Flow {
    /// How each block is inverted.
    fn strategies(&self) -> Vec<Strategy>;

    /// How each block is inverted from now on; ignored unless there is one way for each.
    fn set_strategies(&self, strategies: Vec<Strategy>);

    /// Measures every way of inverting each block on `images` samples, without adopting any. A way
    /// counts only if its images are within `tolerance` of the others' everywhere.
    ///
    /// # Errors
    /// When the device fails, or what `report` returns: it is told after every block.
    fn measure_strategies(
        &self,
        images: usize,
        tolerance: f64,
        report: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<BlockPlan>>;
}

/// A flow whose density has a gradient with respect to the image.
pub trait DifferentiableFlow: Flow {
    /// ∇_x log p(x|y) of each image under its class, NCHW, nats per unit of x.
    ///
    /// # Errors
    /// As [`Flow::score_classes`].
    fn log_likelihood_gradient(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>>;
}

/// A flow that can also draw images that are no samples of its world. For the eye only: these have
/// no posterior.
pub trait GuidedFlow: Flow {
    /// Whether it knows passes without a class, which classifier-free guidance needs.
    fn guides(&self) -> bool;

    /// [`Flow::decode`] with options that leave the world: guided, denoised.
    ///
    /// # Errors
    /// As [`Flow::decode`].
    fn decode_with(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        options: &SamplerOptions,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Vec<f32>>;

    /// Tweedie's estimate of the image under the noise, x + σ² ∇_x log p(x|y) at τ = 1; x itself
    /// where the noise is not Gaussian.
    ///
    /// # Errors
    /// As [`Flow::score_classes`].
    fn denoise(&self, x: &[f32], classes: &[ClassId]) -> Result<Vec<f32>>;
}
