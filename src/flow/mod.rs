//! Normalizing flows: an invertible map with a log-determinant over a Gaussian base (theory §1).
//!
//! A flow answers two questions about world-space images: how likely each class makes them
//! ([`Flow::score`]) and which image a base sample becomes ([`Flow::decode`]). Both return
//! [`Scores`], the sufficient statistics from which log p(x|y) follows at *every* base temperature
//! τ without another pass.
//!
//! | file | what |
//! |---|---|
//! | `architecture` | the two families behind one name |
//! | `capabilities`, `sampling` | what some flows can do besides; how a sample is drawn block after block |
//! | `base`, `preprocess` | the Gaussian base of a shared map; pixels to world space and back, with the log-determinant |
//! | `glow`, `tarflow` | the families |
//! | `weights`, `import`, `parameters` | named arrays from any checkpoint; which flow they are; a module's parameters by name |

pub mod architecture;
pub mod base;
mod capabilities;
pub mod glow;
pub mod import;
pub mod parameters;
pub mod preprocess;
pub mod sampling;
pub mod tarflow;
pub mod weights;

use std::ops::Range;

use burn::tensor::Tensor;

use crate::data::ImageShape;
use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::units::{ClassId, Tau};
use preprocess::Preprocessing;

pub use architecture::Architecture;
pub use capabilities::{BlockInversion, DifferentiableFlow, GuidedFlow, Mapped, Resident, ResidentFlow, SharedMap};

/// Floating-point format of a flow's forward and inverse pass. Sums over dimensions are f64 in
/// both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits: every device.
    #[default]
    F32,
    /// 64 bits: the CPU, and adapters that say so.
    F64,
}

impl Precision {
    /// Whether it is the one that records do not name: those of before know no other.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A class-conditional density over world-space images.
pub trait Flow: Send {
    /// Shape of one image.
    fn shape(&self) -> ImageShape;

    /// Number of classes K.
    fn classes(&self) -> usize;

    /// How 8-bit pixels enter its world space.
    fn pixels(&self) -> Preprocessing;

    /// The Gaussians of the classes in a latent space that all of them share, from which the
    /// world's Bayes error follows without sampling; `None` where the map itself depends on the
    /// class.
    fn shared_base(&self) -> Option<&base::GaussianBase> {
        self.latent_space().map(SharedMap::base)
    }

    /// The latent space all classes share, in which a line leads from any image to any other;
    /// `None` where each class has its own.
    fn latent_space(&self) -> Option<&dyn SharedMap> {
        None
    }

    /// The flow as one that is inverted block after block, in one of several ways.
    fn block_inversion(&self) -> Option<&dyn BlockInversion> {
        None
    }

    /// The flow as one whose density has a gradient with respect to the image.
    fn differentiable(&self) -> Option<&dyn DifferentiableFlow> {
        None
    }

    /// The flow as one that can draw images with guidance or without noise.
    fn guided(&self) -> Option<&dyn GuidedFlow> {
        None
    }

    /// Pairs of image and class that fill a pass, where every class is a pass of its own; `None`
    /// where one pass of an image scores it under all classes.
    fn pairs_per_pass(&self) -> Option<usize> {
        None
    }

    /// Whether every class is a pass of its own.
    fn passes_by_class(&self) -> bool {
        self.pairs_per_pass().is_some()
    }

    /// Stages of the inverse pass after each of which the images can be shown: 1 where they are
    /// made at once.
    fn stages(&self) -> usize {
        1
    }

    /// Formats of matrix products in which it can draw images on its device; 32 bits first.
    fn formats(&self) -> Vec<MatmulPrecision> {
        vec![MatmulPrecision::F32]
    }

    /// The flow with narrower matrix products, to draw images alone: its densities are not those of
    /// the world.
    ///
    /// # Errors
    /// When its device has no such arithmetic, or its images are drawn together with their
    /// densities.
    fn narrowed(&self, products: MatmulPrecision) -> Result<Box<dyn Flow>> {
        Err(Error::input(format!(
            "images of this world are drawn together with their densities, in 32 bits: not in {}",
            products.label()
        )))
    }

    /// The flow as one that can leave its images on the device that makes them; `None` where it
    /// computes on the host.
    fn resident(&self) -> Option<&dyn ResidentFlow> {
        None
    }

    /// Images of one pass of a long job: a number of the architecture alone, so that the bits of a
    /// result depend on no setting; enough pixels to fill a device, few enough that what the layers
    /// leave behind fits into any.
    fn images_per_pass(&self) -> usize {
        let ImageShape { height, width, .. } = self.shape();
        ((1 << 15) / (height * width).max(1)).clamp(1, 64)
    }

    /// Statistics of N images `x` (NCHW, world space) under the classes of a range. Deterministic.
    ///
    /// # Errors
    /// When the device fails or the numbers leave the finite range.
    fn score_classes(&self, x: &[f32], classes: Range<ClassId>) -> Result<Scores>;

    /// [`Self::score_classes`] under every class.
    ///
    /// # Errors
    /// As [`Self::score_classes`].
    fn score(&self, x: &[f32]) -> Result<Scores> {
        self.score_classes(x, 0..self.classes())
    }

    /// The images that standard normal `noise` (NCHW) becomes under the given class (one per image)
    /// at temperature τ. The same noise gives the same image morphing while τ moves. Slow maps
    /// report on their way.
    ///
    /// # Errors
    /// As [`Self::score_classes`], and when the caller stops.
    fn decode(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Decoded>;

    /// The standard normal noise [N, D] that [`Self::decode`] turns into images `x` (NCHW) under
    /// the given class (one per image) at temperature τ > 0: its inverse.
    ///
    /// # Errors
    /// As [`Self::score_classes`].
    fn noise(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>>;

    /// log p(x|a) − log p(x|b) of one image at temperature τ, as a sum over places of the image.
    ///
    /// # Errors
    /// As [`Self::score_classes`].
    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence>;
}

/// Refuses numbers that are not finite, `per_image` for each image.
///
/// # Errors
/// Names the first image that has one.
fn check_finite<T: Copy + Into<f64>>(values: &[T], per_image: usize) -> Result<()> {
    match values.iter().position(|&value| !Into::<f64>::into(value).is_finite()) {
        Some(i) => Err(Error::Overflow { image: i / per_image, tau: None }),
        None => Ok(()),
    }
}

/// A word from within a slow inverse pass.
#[derive(Debug, Clone)]
pub struct Decoding {
    /// Steps of the pass.
    pub progress: Progress,
    /// The images as they are after another block was inverted: not yet in world space, for the
    /// eye. NCHW.
    pub x: Option<Unfinished>,
}

/// Images that are still being made.
#[derive(Debug, Clone)]
pub enum Unfinished {
    /// As world-space values on the host.
    Host(Vec<f32>),
    /// As 8-bit levels [N, C, H, W] (see [`Preprocessing::levels`]) on the device.
    Resident(Box<Tensor<4>>),
}

/// Images made by a flow.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// World-space images, NCHW.
    pub x: Vec<f32>,
    /// Their statistics under every class, where the inverse pass gives them by the way: those of
    /// the image before it was rounded to 32 bits. Otherwise they are those of x.
    pub scores: Option<Scores>,
}

/// Which part of an image speaks for one class and against another (theory §2).
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Rows of cells.
    pub rows: usize,
    /// Columns of cells.
    pub columns: usize,
    /// Each cell's share of log p(x|a) − log p(x|b), nats, row-major.
    pub cells: Vec<f64>,
    /// log p(x|a) − log p(x|b) as the posterior has it, nats, computed without the cells.
    pub total: f64,
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
    /// log |det ∂z/∂x|, preprocessing included, in nats: [N, M], where M is 1 for a map shared by
    /// all classes and K for one that depends on the class.
    pub log_det: Vec<f64>,
    /// ½ Σ_d log(2πσ_d²), in nats, [M].
    pub log_norm: Vec<f64>,
}

impl Scores {
    /// Number of images N.
    pub fn len(&self) -> usize {
        self.quad.len() / self.classes.max(1)
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.quad.is_empty()
    }

    /// Refuses statistics that are not finite.
    ///
    /// # Errors
    /// Names the first image that has one.
    fn check_finite(&self) -> Result<()> {
        let (classes, maps) = (self.classes, self.log_norm.len());
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        let fine = |i: usize| {
            finite(&self.quad[i * classes..(i + 1) * classes]) && finite(&self.log_det[i * maps..(i + 1) * maps])
        };
        match (0..self.len()).find(|&i| !fine(i)) {
            Some(image) => Err(Error::Overflow { image, tau: None }),
            None => Ok(()),
        }
    }

    /// log |det ∂z/∂x| of image `i` under class `class`, less ½ Σ_d log(2πσ_d²): the part of log
    /// p(x|y) that does not depend on τ.
    fn constant(&self, i: usize, class: ClassId) -> f64 {
        let maps = self.log_norm.len();
        let map = if maps == 1 { 0 } else { class };
        self.log_det[i * maps + map] - self.log_norm[map]
    }

    /// log p(x_i|y) for every class y, in nats, total over dimensions. At τ = 0 there is no
    /// density: the class whose mean is nearest has +∞ and the others −∞.
    pub fn log_likelihoods(&self, i: usize, tau: Tau) -> Vec<f64> {
        let quad = &self.quad[i * self.classes..(i + 1) * self.classes];
        let tau = tau.get();
        if tau == 0.0 {
            let nearest = quad.iter().copied().fold(f64::INFINITY, f64::min);
            return quad.iter().map(|&q| if q == nearest { f64::INFINITY } else { f64::NEG_INFINITY }).collect();
        }
        let volume = self.dims as f64 * tau.ln();
        let density = |(class, q): (usize, &f64)| self.constant(i, class) - volume - 0.5 * q / (tau * tau);
        quad.iter().enumerate().map(density).collect()
    }

    /// Appends the images of `other`, which must come from the same flow.
    pub fn append(&mut self, mut other: Scores) {
        debug_assert_eq!((self.classes, self.dims), (other.classes, other.dims));
        self.quad.append(&mut other.quad);
        self.log_det.append(&mut other.log_det);
    }

    /// Appends further classes of the same images, scored by a map that depends on the class.
    #[must_use]
    pub fn with_classes(self, other: &Scores) -> Scores {
        debug_assert_eq!((self.len(), self.dims), (other.len(), other.dims));
        let side_by_side = |a: &[f64], b: &[f64], wide: usize, more: usize| -> Vec<f64> {
            a.chunks(wide).zip(b.chunks(more)).flat_map(|(a, b)| a.iter().chain(b).copied()).collect()
        };
        Scores {
            classes: self.classes + other.classes,
            dims: self.dims,
            quad: side_by_side(&self.quad, &other.quad, self.classes, other.classes),
            log_det: side_by_side(&self.log_det, &other.log_det, self.log_norm.len(), other.log_norm.len()),
            log_norm: [self.log_norm, other.log_norm.clone()].concat(),
        }
    }

    /// The columns of some of the classes.
    #[must_use]
    pub fn select(&self, classes: Range<ClassId>) -> Scores {
        let (wide, maps) = (self.classes, self.log_norm.len());
        let cut = |values: &[f64], wide: usize| -> Vec<f64> {
            values.chunks(wide).flat_map(|row| row[classes.clone()].iter().copied()).collect()
        };
        let shared = maps == 1;
        Scores {
            classes: classes.len(),
            dims: self.dims,
            quad: cut(&self.quad, wide),
            log_det: if shared { self.log_det.clone() } else { cut(&self.log_det, maps) },
            log_norm: if shared { self.log_norm.clone() } else { self.log_norm[classes.clone()].to_vec() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_image_that_is_not_finite_is_named_in_either_layout() {
        // Three images, two classes; one map for all, and one each.
        for maps in [1, 2] {
            let fine = Scores {
                classes: 2,
                dims: 4,
                quad: vec![1.0; 6],
                log_det: vec![0.5; 3 * maps],
                log_norm: vec![0.0; maps],
            };
            fine.check_finite().unwrap();
            let refused = |scores: Scores, of: usize| {
                let error = scores.check_finite().unwrap_err();
                assert!(matches!(error, Error::Overflow { image, tau: None } if image == of), "{error}");
            };
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let mut scores = fine.clone();
                scores.quad[5] = bad;
                refused(scores, 2);
                let mut scores = fine.clone();
                scores.log_det[2 * maps - 1] = bad;
                refused(scores, 1);
            }
        }
    }
}
