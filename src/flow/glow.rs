//! Conditional Glow, as "Evaluating State-of-the-Art Classification Models Against Bayes
//! Optimality" (EBO) uses it: Kingma & Dhariwal 2018 with class means and one shared diagonal
//! covariance in the base distribution.
//!
//! ```text
//! v ─logit→ y ─squeeze→ [ActNorm, 1×1, coupling]×K ─squeeze, keep half→ … (L levels) … ─unsqueeze→ z ~ N(μ_y, τ²Σ)
//! ```
//!
//! Every step is h ↦ W(h + b)e^l (ActNorm then invertible 1×1 convolution), then the affine
//! coupling a ↦ (a + t)e^s of the first half of the channels with (s, t) = NN(second half), s =
//! scale·tanh(·).
//!
//! Deviation from EBO's code: the batch normalisations inside the coupling networks use fixed
//! statistics, measured once when a flow is initialised (as Glow's own data-dependent
//! initialisation does), so that log p(x) means the same thing in training and afterwards. At
//! evaluation the two are one, and EBO's checkpoints give EBO's numbers.

mod cpu;
mod frozen;
mod host_fold;
mod init;
mod layout;
mod matrix;
mod parameters;
mod step;

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use crate::data::ImageShape;
use crate::device::to_host;
use crate::error::{Error, Result};
use step::{Affine, halves};

pub use cpu::TrainedGlow;
pub use frozen::GlowFlow;
pub use host_fold::HostFold;
pub use step::Step;

/// Variance floor of the normalisations (PyTorch's BatchNorm2d default).
const NORM_EPS: f64 = 1e-5;

/// Architecture of a conditional Glow. EBO §4.1: levels 3, steps 16, hidden 512.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlowConfig {
    /// Shape of the images; height and width are multiples of 2^levels.
    pub shape: ImageShape,
    /// Number of classes K.
    pub classes: usize,
    /// Channels C of the hidden layers of the coupling networks.
    pub hidden: usize,
    /// Number of levels L.
    pub levels: usize,
    /// Steps of flow in each level.
    pub steps: usize,
}

impl GlowConfig {
    /// Whether such a flow can exist.
    ///
    /// # Errors
    /// Says which number is wrong.
    pub fn validate(&self) -> Result<()> {
        let unit = 1usize.checked_shl(self.levels as u32).filter(|_| (1..=12).contains(&self.levels));
        let unit = unit.ok_or_else(|| Error::input(format!("a Glow has 1 to 12 levels, not {}", self.levels)))?;
        let ImageShape { channels, height, width } = self.shape;
        if channels == 0 || height == 0 || width == 0 || height % unit != 0 || width % unit != 0 {
            let levels = self.levels;
            return Err(Error::input(format!(
                "{levels} levels need images whose sides are multiples of {unit}, not {} (pad them, or use fewer levels)",
                self.shape
            )));
        }
        if self.classes == 0 || self.hidden == 0 || self.steps == 0 {
            return Err(Error::input("a Glow needs at least one class, one hidden channel and one step"));
        }
        Ok(())
    }

    /// Floating-point operations of the convolutions of one pass over one image (2 per
    /// multiply-add).
    pub fn flop_per_image(&self) -> f64 {
        let level = |l: usize| {
            let ImageShape { channels, height, width } = self.level_shape(l);
            let (c, h) = (channels as f64, self.hidden as f64);
            let per_position = c * c + 9.0 * (c / 2.0) * h + h * h + 9.0 * c * h;
            2.0 * (height * width * self.steps) as f64 * per_position
        };
        (0..self.levels).map(level).sum()
    }

    /// Bytes of the largest array that a pass over one image leaves on a device, in 32 bits: the
    /// hidden layer of a coupling, or its input or output with the nine neighbours of every
    /// position side by side.
    pub fn bytes_per_image(&self) -> u64 {
        let level = |l: usize| {
            let ImageShape { channels, height, width } = self.level_shape(l);
            4 * self.hidden.max(9 * channels) * height * width
        };
        (0..self.levels).map(level).max().unwrap_or(0) as u64
    }

    /// Channels, height and width inside level `l`.
    fn level_shape(&self, l: usize) -> ImageShape {
        ImageShape {
            channels: (4 * self.shape.channels) << l,
            height: self.shape.height >> (l + 1),
            width: self.shape.width >> (l + 1),
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Layers, in the order of the paper. Field names are those of EBO's checkpoints.

/// ActNorm (Glow §3.1): (x + bias) e^logs, per channel.
#[derive(Module, Debug)]
pub struct ActNorm {
    /// [1, C, 1, 1]
    bias: Param<Tensor<4>>,
    /// [1, C, 1, 1]
    logs: Param<Tensor<4>>,
}

/// Invertible 1×1 convolution (Glow §3.2): W x at every position.
#[derive(Module, Debug)]
pub struct InvConv {
    /// [C, C]
    weight: Param<Tensor<2>>,
}

/// Batch normalisation with fixed statistics: weight (x − mean)/√(var + ε) + bias, per channel.
#[derive(Module, Debug)]
pub struct FixedNorm {
    /// [C]
    weight: Param<Tensor<1>>,
    /// [C]
    bias: Param<Tensor<1>>,
    /// [C], never trained
    running_mean: Param<Tensor<1>>,
    /// [C], never trained
    running_var: Param<Tensor<1>>,
}

impl FixedNorm {
    /// The affine map x·a + c this is, (a [C], c [C]).
    fn affine(&self) -> (Tensor<1>, Tensor<1>) {
        let scale = self.weight.val() / (self.running_var.val() + NORM_EPS).sqrt();
        let shift = self.bias.val() - self.running_mean.val() * scale.clone();
        (scale, shift)
    }
}

/// A convolution without bias: the normalisation after it has one.
#[derive(Module, Debug)]
pub struct Conv {
    /// [out, in, k, k]
    weight: Param<Tensor<4>>,
}

/// A convolution with bias.
#[derive(Module, Debug)]
pub struct BiasConv {
    /// [out, in, k, k]
    weight: Param<Tensor<4>>,
    /// [out]
    bias: Param<Tensor<1>>,
}

/// The network NN of a coupling: norm, relu, 3×3, norm, relu, 1×1, norm, relu, 3×3.
#[derive(Module, Debug)]
pub struct CouplingNet {
    in_norm: FixedNorm,
    in_conv: Conv,
    mid_norm: FixedNorm,
    mid_conv: Conv,
    out_norm: FixedNorm,
    out_conv: BiasConv,
}

/// Affine coupling (Glow §3.3; Real NVP): the first half of the channels changes, the second
/// conditions.
#[derive(Module, Debug)]
pub struct Coupling {
    /// [C/2, 1, 1], the bound of |s|
    scale: Param<Tensor<3>>,
    nn: CouplingNet,
}

/// One step of flow.
#[derive(Module, Debug)]
pub struct FlowStep {
    norm: ActNorm,
    conv: InvConv,
    coup: Coupling,
}

/// One level: K steps at one resolution.
#[derive(Module, Debug)]
pub struct Level {
    /// In the order of the encoder.
    pub steps: Vec<FlowStep>,
}

/// The auxiliary linear classifier on z that EBO trains beside the likelihood.
#[derive(Module, Debug)]
pub struct LinearHead {
    /// [K, D]
    weight: Param<Tensor<2>>,
    /// [K]
    bias: Param<Tensor<1>>,
}

impl LinearHead {
    /// Logits [N, K] of z [N, C, H, W].
    pub fn forward(&self, z: Tensor<4>) -> Tensor<2> {
        z.flatten::<2>(1, 3).matmul(self.weight.val().transpose()) + self.bias.val().unsqueeze()
    }

    /// Weight [K, D] and bias [K] on the host.
    ///
    /// # Errors
    /// When the device fails.
    pub fn numbers(&self) -> Result<[Vec<f64>; 2]> {
        Ok([to_host(self.weight.val())?, to_host(self.bias.val())?])
    }
}

/// All parameters of a conditional Glow.
#[derive(Module, Debug)]
pub struct Glow {
    /// Class means of the base distribution, [K, C, H, W].
    pub means: Param<Tensor<4>>,
    /// Shared diagonal covariance, [C, H, W]; its absolute value counts.
    pub cov_diag: Param<Tensor<3>>,
    /// b of the bounded logit map, [1], never trained.
    pub bounds: Param<Tensor<1>>,
    /// From the finest to the coarsest.
    pub levels: Vec<Level>,
    /// EBO's auxiliary classifier.
    pub linproj: LinearHead,
}

// ---------------------------------------------------------------------------------------------------------------------
// The whole map.

/// 1×2×2 volumes become 4×1×1: channel c·4 + dy·2 + dx. [C, N, H, W] → [4C, N, H/2, W/2].
fn squeeze(x: Tensor<4>) -> Tensor<4> {
    let [c, n, h, w] = x.dims();
    let x = x.reshape([c, n, h / 2, 2, w / 2, 2]).permute([0, 3, 5, 1, 2, 4]);
    x.reshape([4 * c, n, h / 2, w / 2])
}

/// Inverse of [`squeeze`].
fn unsqueeze(x: Tensor<4>) -> Tensor<4> {
    let [c, n, h, w] = x.dims();
    let x = x.reshape([c / 4, 2, 2, n, h, w]).permute([0, 3, 4, 1, 5, 2]);
    x.reshape([c / 4, n, 2 * h, 2 * w])
}

impl Glow {
    /// Every step of every level, ready to run.
    pub fn fold(&self) -> Vec<Vec<Step>> {
        self.levels.iter().map(|level| level.steps.iter().map(FlowStep::fold).collect()).collect()
    }

    /// W [C, C] of the 1×1 convolution of every step, the first level's first.
    ///
    /// # Errors
    /// When the device fails.
    pub fn mixing_matrices(&self) -> Result<Vec<DMatrix<f64>>> {
        let steps = self.levels.iter().flat_map(|level| &level.steps);
        matrix::to_matrices(&steps.map(|step| step.conv.weight.val()).collect::<Vec<_>>())
    }
}

/// y [N, C, H, W] → (z of the same shape, Σ_c s at every position of every step [N, P]).
pub fn encode(levels: &[Vec<Step>], y: Tensor<4>) -> (Tensor<4>, Tensor<2>) {
    let mut x = squeeze(y.swap_dims(0, 1));
    let mut kept = Vec::new();
    let mut log_dets = Vec::new();
    for (l, steps) in levels.iter().enumerate() {
        if l > 0 {
            let half;
            (x, half) = halves(squeeze(x));
            kept.push(half);
        }
        for step in steps {
            let log_det;
            (x, log_det) = step.encode(x);
            log_dets.push(log_det);
        }
    }
    while let Some(half) = kept.pop() {
        x = unsqueeze(Tensor::cat(vec![x, half], 0));
    }
    (unsqueeze(x).swap_dims(0, 1), Tensor::cat(log_dets, 1))
}

/// Inverse of [`encode`]: z → (y, Σ_c s as [`encode`] would return it, in another order of
/// positions).
fn decode(levels: &[Vec<Step>], unmix: &[Vec<Affine>], z: Tensor<4>) -> (Tensor<4>, Tensor<2>) {
    let mut x = squeeze(z.swap_dims(0, 1));
    let mut kept = Vec::new();
    for _ in 1..levels.len() {
        let half;
        (x, half) = halves(squeeze(x));
        kept.push(half);
    }
    let mut log_dets = Vec::new();
    for (steps, unmix) in levels.iter().zip(unmix).rev() {
        for (step, unmix) in steps.iter().zip(unmix).rev() {
            let log_det;
            (x, log_det) = step.decode(x, unmix);
            log_dets.push(log_det);
        }
        if let Some(half) = kept.pop() {
            x = unsqueeze(Tensor::cat(vec![x, half], 0));
        }
    }
    (unsqueeze(x).swap_dims(0, 1), Tensor::cat(log_dets, 1))
}
