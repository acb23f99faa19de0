//! What is tried: a device, and how weights reach it.

use burn::tensor::Device;

use crate::device::OpenDevice;
use crate::device::full_precision_matmul::rounds;
use crate::error::Result;
use crate::flow::preprocess::Preprocessing;
use crate::flow::weights::Weights;
use crate::flow::{Architecture, Flow, Precision};
use crate::oracle::folder::{Oracle, OracleInfo};

/// Seed of everything that the cases draw.
pub const SEED: u64 = 31;

/// A device, and how weights reach it.
pub struct Subject {
    /// The device.
    pub chosen: OpenDevice,
    /// Weights on their way to the device: as they are. Tests put a mistake in here.
    pub weights: fn(Weights) -> Weights,
}

impl Subject {
    /// Whether other rounding than that of our own kernels is to be expected.
    pub fn is_adapter(&self) -> bool {
        self.chosen.device != Device::flex()
    }

    /// Whether tensor cores round what burn's own choice of kernels multiplies there (TF32): classifiers and
    /// training.
    pub fn rounds(&self) -> bool {
        rounds(&self.chosen.device)
    }

    /// A flow on the device, in 32 bits.
    pub fn flow(&self, architecture: &Architecture, weights: Weights, pixels: Preprocessing) -> Result<Box<dyn Flow>> {
        architecture.build((self.weights)(weights), pixels, &self.chosen.device, Precision::F32)
    }

    /// A world on the device, in 32 bits.
    pub fn world(&self, info: &OracleInfo, weights: Weights) -> Result<Oracle> {
        let weights = (self.weights)(weights);
        info.clone().build(weights, &self.chosen.device, Precision::F32, self.chosen.batch)
    }
}
