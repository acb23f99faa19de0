//! The one door through which values come back from a device, and how many came.

use std::sync::atomic::{AtomicU64, Ordering};

use burn::tensor::Tensor;

use super::faults::{failure, whole};
use super::stand_aside;
use crate::error::Result;

static VALUES: AtomicU64 = AtomicU64::new(0);

/// The values of a tensor in f64.
///
/// # Errors
/// [`OutOfMemory`](crate::error::Error::OutOfMemory) and [`DeviceLost`](crate::error::Error::DeviceLost), also when this is the
/// first to hear of them; [`Device`](crate::error::Error::Device) otherwise.
pub fn to_host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f64>> {
    let values = tensor.dims().iter().product::<usize>();
    VALUES.fetch_add(values as u64, Ordering::Relaxed);
    let device = tensor.device();
    let read = tensor.try_into_vec_as::<f64>();
    stand_aside(&device);
    match read {
        Ok(values) => whole(&device).map(|()| values),
        Err(error) => Err(failure(&device, &error.to_string())),
    }
}

/// Values read back since the program began, by everybody: what a piece of work reads is the difference.
pub fn values_read() -> u64 {
    VALUES.load(Ordering::Relaxed)
}
