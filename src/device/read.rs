//! The one door through which values come back from a device, and how many came.

use std::sync::atomic::{AtomicU64, Ordering};

use burn::tensor::Tensor;

use crate::error::{Error, Result};

static VALUES: AtomicU64 = AtomicU64::new(0);

/// The values of a tensor in f64.
///
/// # Errors
/// When the device cannot deliver them: it ran out of memory or was lost.
pub fn to_host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f64>> {
    let values = tensor.dims().iter().product::<usize>();
    VALUES.fetch_add(values as u64, Ordering::Relaxed);
    tensor.try_into_vec_as::<f64>().map_err(|e| {
        Error::Device(format!(
            "a result could not be read back, as happens when memory runs out or the device is lost: {e}"
        ))
    })
}

/// Values read back since the program began, by everybody: what a piece of work reads is the difference.
pub fn values_read() -> u64 {
    VALUES.load(Ordering::Relaxed)
}
