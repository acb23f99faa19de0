//! How a world is sampled whose figures are no integrals: one whose map depends on the class. T of all worlds, too.

use std::path::PathBuf;

use clap::Args;

use super::{DeviceArg, count, number};
use crate::bayes::sampling::Limits;

/// How a world is sampled.
#[derive(Debug, Clone, Args)]
pub struct SamplingArgs {
    /// Draw so many images of the world at each τ (at most so many with --tolerance), also of a world that has integrals.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub samples: Option<usize>,
    /// Seconds of sampling; 56 if no limit is given, or in their place 20000 images with --reproducible. How far seconds reach
    /// depends on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = number, allow_negative_numbers = true)]
    pub budget: Option<f64>,
    /// Posterior smoothing T: p_T(y|x) ∝ (π_y p(x|y))^(1/T), by which labels are drawn.
    #[arg(long, default_value_t = 1.0, value_parser = number, allow_negative_numbers = true)]
    pub smoothing: f64,
    /// Folder that keeps the draws of a sampled world: a new one, or that of the same world, prior and seed, whose draws are then used.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArg,
}

impl SamplingArgs {
    /// Whether images were asked to be drawn.
    pub fn draws_images(&self) -> bool {
        self.samples.is_some() || self.budget.is_some() || self.keep.is_some()
    }

    /// What was asked for; by default a tolerance, and a time unless `repeatable`.
    pub fn limits(&self, tolerance: Option<f64>, repeatable: bool) -> Limits {
        Limits::asked(tolerance, self.samples, self.budget, repeatable)
    }
}
