//! The number format of training's matrix products.

use burn::tensor::{DType, Device};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Format in which the matrix products of training are computed; sums, norms and the weights themselves are 32-bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Products {
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

impl Products {
    /// The narrow format, where there is one.
    pub fn narrow(self) -> Option<DType> {
        match self {
            Self::F32 => None,
            Self::Bf16 => Some(DType::BF16),
            Self::F16 => Some(DType::F16),
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
                Err(Error::Device(format!("this device has no {dtype:?} arithmetic: set products = \"f32\"")))
            }
            _ => Ok(()),
        }
    }
}
