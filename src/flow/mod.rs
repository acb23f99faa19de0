//! Normalizing flows: an invertible map with a log-determinant over a Gaussian base (SCIENCE §1).
//!
//! A flow answers two questions about world-space images: how likely each class makes them ([`Flow::score`]) and which
//! image a base sample becomes ([`Flow::decode`]). Both return [`Scores`], the sufficient statistics from which
//! log p(x|y) follows at *every* base temperature τ without another pass.

pub mod base;
pub mod glow;
pub mod import;
pub mod parameters;
pub mod preprocess;
pub mod tarflow;
pub mod weights;

use crate::data::ImageShape;
use crate::error::Result;
use crate::units::{ClassId, Tau};

/// Floating-point format of a flow's forward and inverse pass. Sums over dimensions are f64 in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits: every device.
    #[default]
    F32,
    /// 64 bits: the CPU, and adapters that say so.
    F64,
}

/// A class-conditional density over world-space images.
pub trait Flow: Send {
    /// Shape of one image.
    fn shape(&self) -> ImageShape;

    /// Number of classes K.
    fn classes(&self) -> usize;

    /// The Gaussians of a shared-map world, from which its Bayes error follows without sampling; `None` where the map
    /// itself depends on the class.
    fn shared_base(&self) -> Option<&base::GaussianBase> {
        None
    }

    /// Statistics of N images `x` (NCHW, world space) under every class. Deterministic.
    ///
    /// # Errors
    /// When the device fails or the numbers leave the finite range.
    fn score(&self, x: &[f32]) -> Result<Scores>;

    /// The images that standard normal `noise` (NCHW) becomes under the given class (one per image) at temperature τ:
    /// x = f⁻¹(μ_y + τ Σ^½ noise). The same noise gives the same image morphing while τ moves.
    ///
    /// # Errors
    /// As [`Self::score`].
    fn decode(&self, noise: &[f32], classes: &[ClassId], tau: Tau) -> Result<Decoded>;
}

/// Images made by a flow, and their statistics.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// World-space images, NCHW.
    pub x: Vec<f32>,
    /// Their statistics, from the base sample and the inverse pass's log-determinant.
    pub scores: Scores,
}

/// Sufficient statistics of N images under K classes for log p(x|y) at any τ:
/// log p(x|y) = log_det − ½ quad/τ² − D log τ − ½ Σ_d log(2πσ_d²).
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Number of classes K.
    pub classes: usize,
    /// Dimensions D of one image.
    pub dims: usize,
    /// Mahalanobis distances Σ_d (z_d − μ_yd)²/σ_d² at τ = 1, row-major [N, K].
    pub quad: Vec<f64>,
    /// log |det ∂z/∂x|, preprocessing included, [N], in nats.
    pub log_det: Vec<f64>,
    /// ½ Σ_d log(2πσ_d²), in nats.
    pub log_norm: f64,
}

impl Scores {
    /// Number of images N.
    pub fn len(&self) -> usize {
        self.log_det.len()
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.log_det.is_empty()
    }

    /// log p(x_i|y) for every class y, in nats, total over dimensions. At τ = 0 there is no density: the class whose
    /// mean is nearest has +∞ and the others −∞.
    pub fn log_likelihoods(&self, i: usize, tau: Tau) -> Vec<f64> {
        let quad = &self.quad[i * self.classes..(i + 1) * self.classes];
        let tau = tau.get();
        if tau == 0.0 {
            let nearest = quad.iter().copied().fold(f64::INFINITY, f64::min);
            return quad.iter().map(|&q| if q == nearest { f64::INFINITY } else { f64::NEG_INFINITY }).collect();
        }
        let constant = self.log_det[i] - self.log_norm - self.dims as f64 * tau.ln();
        quad.iter().map(|q| constant - 0.5 * q / (tau * tau)).collect()
    }

    /// Appends the images of `other`, which must come from the same flow.
    pub fn append(&mut self, mut other: Scores) {
        debug_assert_eq!((self.classes, self.dims), (other.classes, other.dims));
        self.quad.append(&mut other.quad);
        self.log_det.append(&mut other.log_det);
    }
}
