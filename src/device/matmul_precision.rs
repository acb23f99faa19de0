//! The number format of the matrix products of training, and of drawing images.

use burn::tensor::{DType, Device};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Format in which matrix products are computed, of training or of drawing images; sums, norms and
/// the weights that are kept are 32-bit, and so is every density.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatmulPrecision {
    /// 32 bits.
    #[default]
    F32,
    /// bfloat16, as the paper's code trains.
    Bf16,
    /// IEEE half precision.
    F16,
}

/// Half precision loses gradients below 6e-8: they are computed this much larger.
const HALF_SCALE: f64 = 4096.0;

impl MatmulPrecision {
    /// The narrow format, where there is one.
    pub fn narrow(self) -> Option<DType> {
        match self {
            Self::F32 => None,
            Self::Bf16 => Some(DType::BF16),
            Self::F16 => Some(DType::F16),
        }
    }

    /// Whether they are those that densities are computed with.
    pub fn is_wide(&self) -> bool {
        *self == Self::F32
    }

    /// The name of the format for people, such as "bfloat16".
    pub fn label(self) -> &'static str {
        match self {
            Self::F32 => "32 bits",
            Self::Bf16 => "bfloat16",
            Self::F16 => "half precision",
        }
    }

    /// As specs and options write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// What the loss is multiplied by, and the gradients divided by.
    pub fn loss_scale(self) -> f64 {
        if self == Self::F16 { HALF_SCALE } else { 1.0 }
    }

    /// Whether the device computes products in that format.
    ///
    /// # Errors
    /// Names the format.
    pub fn check(self, device: &Device) -> Result<()> {
        match self.narrow() {
            Some(dtype) if !device.supports_dtype(dtype) => {
                Err(Error::Device(format!("this device has no {dtype:?} arithmetic: take products f32")))
            }
            _ => Ok(()),
        }
    }
}
