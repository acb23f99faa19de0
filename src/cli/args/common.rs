//! Arguments that several commands share.

use clap::{Args, ValueEnum};

use super::super::output::Output;
use super::numbers::{count, number};
use crate::device::{DeviceChoice, Devices};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::Prior;
use crate::oracle::world::Settings;
use crate::units::{Smoothing, Tau};

/// Which machine computes.
#[derive(Debug, Clone, Args)]
pub struct DeviceArg {
    /// Device that computes: auto, wgpu, wgpu:N, cuda:N or cpu (see `bayescope doctor`), or another machine's: ws://HOST:PORT/N, where
    /// `bayescope serve` lends it.
    #[arg(long, default_value_t = DeviceChoice::Auto)]
    pub device: DeviceChoice,
}

/// Which machines share the work.
#[derive(Debug, Clone, Args)]
pub struct DevicesArg {
    /// Device that computes: auto, wgpu, wgpu:N, cuda:N or cpu (see `bayescope doctor`). Several, separated by commas, share the
    /// work, as does every GPU with `all`.
    #[arg(long = "device", value_name = "DEVICE", default_value_t)]
    pub devices: Devices,
}

/// How often, and how to tell.
#[derive(Debug, Clone, Copy, Args)]
pub struct Runs {
    /// Timed runs of each task.
    #[arg(long, default_value_t = 15, value_parser = count, allow_negative_numbers = true)]
    pub runs: usize,
    #[command(flatten)]
    pub output: Output,
}

/// Where and how exactly to compute.
#[derive(Debug, Clone, Args)]
pub struct Compute {
    #[command(flatten)]
    pub device: DeviceArg,
    /// Arithmetic of the flow; sums over dimensions are 64-bit in both.
    #[arg(long, value_enum, default_value = "f32")]
    pub precision: PrecisionArg,
}

/// [`Precision`] for clap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrecisionArg {
    /// 32 bits, on every device.
    F32,
    /// 64 bits, on the CPU.
    F64,
}

impl From<PrecisionArg> for Precision {
    fn from(precision: PrecisionArg) -> Self {
        match precision {
            PrecisionArg::F32 => Self::F32,
            PrecisionArg::F64 => Self::F64,
        }
    }
}

/// The knobs of a world.
#[derive(Debug, Args)]
pub struct WorldArgs {
    /// Base temperature τ: the base covariance is multiplied by τ².
    #[arg(long, default_value_t = 1.0, value_parser = number, allow_negative_numbers = true, alias = "temperature")]
    pub tau: f64,
    /// Posterior smoothing T: p_T(y|x) ∝ (π_y p(x|y))^(1/T).
    #[arg(long, default_value_t = 1.0, value_parser = number, allow_negative_numbers = true)]
    pub smoothing: f64,
    /// Class prior π, one weight per class, normalised; uniform if not given.
    #[arg(long, value_delimiter = ',', value_name = "P,P,…")]
    pub prior: Option<Vec<f64>>,
    /// Label noise: labels drawn by a matrix, row y for class y, with exact posteriors of the noisy label. symmetric:0.2 (any
    /// other label), pair:0.2 (that of the next class), by-class:0.1,0.2,…, or a file of K rows of K numbers, .csv or .json.
    #[arg(long, value_name = "NOISE", value_parser = label_noise)]
    pub label_noise: Option<LabelNoise>,
}

/// What `--label-noise` says; a file is read.
pub(super) fn label_noise(text: &str) -> std::result::Result<LabelNoise, String> {
    LabelNoise::parse(text).map_err(|error| error.to_string())
}

impl WorldArgs {
    /// The settings for a world of `classes` classes.
    ///
    /// # Errors
    /// When a number cannot be used.
    pub fn settings(&self, classes: usize) -> Result<Settings> {
        let prior = prior(self.prior.as_deref(), classes)?;
        let label_noise = self.label_noise.clone();
        label_noise.as_ref().map_or(Ok(()), |noise| noise.check(classes))?;
        Ok(Settings { tau: Tau::new(self.tau)?, smoothing: Smoothing::new(self.smoothing)?, prior, label_noise })
    }
}

/// What `--prior` says of `classes` classes.
///
/// # Errors
/// When it cannot be used.
pub fn prior(weights: Option<&[f64]>, classes: usize) -> Result<Prior> {
    match weights {
        None => Ok(Prior::uniform(classes)),
        Some(weights) if weights.len() == classes => Prior::new(weights),
        Some(weights) => {
            let given = weights.len();
            Err(Error::input(format!("--prior has {given} entries, this world {classes} classes")))
        }
    }
}
