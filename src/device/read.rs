//! The one door through which values come back from a device, and how many came.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "wgpu")]
use std::time::Duration;

#[cfg(feature = "wgpu")]
use burn::tensor::TensorData;
use burn::tensor::{Device, Tensor};
#[cfg(feature = "wgpu")]
use burn_cubecl::cubecl::server::CopyDescriptor;
#[cfg(feature = "wgpu")]
use burn_cubecl::{Cube, kernel::into_contiguous_aligned, tensor::CubeTensor};

#[cfg(feature = "wgpu")]
use super::faults::POISONED;
use super::faults::{failure, whole};
use super::stand_aside;
#[cfg(feature = "wgpu")]
use super::{table, wait::while_there};
use crate::error::{Result, caught};

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
    let read = values_of(tensor, &device);
    stand_aside(&device);
    match read {
        Ok(values) => whole(&device).map(|()| values),
        Err(said) => Err(failure(&device, &said)),
    }
}

fn values_of<const D: usize>(tensor: Tensor<D>, device: &Device) -> Result<Vec<f64>, String> {
    #[cfg(feature = "wgpu")]
    if table::is_adapter(device)
        && let Ok(beneath) = tensor.clone().try_into_primitive::<Cube>()
    {
        return answered(device, bytes_of(beneath))?
            .and_then(|data| data.try_cast_as::<f64>().map_err(|error| error.to_string()))
            .and_then(|data| data.try_into_vec::<f64>().map_err(|error| error.to_string()));
    }
    let _ = device;
    tensor.try_into_vec_as::<f64>().map_err(|error| error.to_string())
}

/// Waits until the device has done all it was told.
///
/// # Errors
/// What burn says of it.
pub fn settled(device: &Device) -> Result<(), String> {
    #[cfg(feature = "wgpu")]
    if table::is_adapter(device) {
        // What is read comes after all that was told before.
        return caught(|| values_of(Tensor::<1>::from_floats([0.0], device), device)).flatten().map(drop);
    }
    caught(|| device.sync())?.map_err(|error| error.to_string())
}

/// What lies in a tensor. Burn's own way gives a promise at once, and whoever looks at it waits without end.
#[cfg(feature = "wgpu")]
async fn bytes_of(tensor: CubeTensor) -> Result<TensorData, String> {
    let tensor = into_contiguous_aligned(tensor);
    let (shape, dtype, size) = (tensor.meta.shape().clone(), tensor.dtype, tensor.elem_size());
    let strides = tensor.meta.strides().clone();
    let from = CopyDescriptor { handle: tensor.handle.binding(), shape: shape.clone(), strides, elem_size: size };
    let bytes = tensor.client.read_one_tensor_async(from).await.map_err(|error| error.to_string())?;
    TensorData::try_from_bytes(bytes, shape, dtype).map_err(|error| error.to_string())
}

/// An adapter is asked so often whether it is still there.
#[cfg(feature = "wgpu")]
const PAUSE: Duration = Duration::from_millis(500);

/// What an adapter answers. Where its driver has given it up (a reset, a kernel that took too long) no answer comes any more, and burn's
/// own waiting has no end.
#[cfg(feature = "wgpu")]
fn answered<T>(device: &Device, answer: impl Future<Output = T>) -> Result<T, String> {
    // One that another has taken the place of was lost.
    let there = || table::ask_of(device, |line| line.takes_work()).unwrap_or(false);
    while_there(PAUSE, answer, there).ok_or_else(|| format!("{POISONED}: its driver takes no more work"))
}

/// Values read back since the program began, by everybody: what a piece of work reads is the difference.
pub fn values_read() -> u64 {
    VALUES.load(Ordering::Relaxed)
}
