//! Reading values back from a device: the one place that does so counts them and reports the
//! device's faults.

use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "wgpu")]
use std::time::Duration;

use burn::tensor::{Device, Tensor, TensorData};
#[cfg(feature = "wgpu")]
use burn_cubecl::cubecl::server::CopyDescriptor;
#[cfg(feature = "wgpu")]
use burn_cubecl::{Cube, kernel::into_contiguous_aligned, tensor::CubeTensor};

#[cfg(feature = "wgpu")]
use super::faults::POISONED;
use super::faults::{Refusal, cause, is_loss, is_memory};
#[cfg(feature = "wgpu")]
use super::{queue_yield, wait::while_there, window};
use super::{registry, remote};
use crate::error::{Error, Result, caught};

static VALUES: AtomicU64 = AtomicU64::new(0);

/// The values of a tensor in f64.
///
/// # Errors
/// [`OutOfMemory`](crate::error::Error::OutOfMemory) and
/// [`DeviceLost`](crate::error::Error::DeviceLost), also when this is the first to hear of them;
/// [`Device`](crate::error::Error::Device) otherwise.
pub fn to_host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f64>> {
    let values = tensor.dims().iter().product::<usize>();
    VALUES.fetch_add(values as u64, Ordering::Relaxed);
    let device = tensor.device();
    let read = values_of(tensor, &device);
    yield_to_window(&device);
    match read {
        Ok(values) => whole(&device).map(|()| values),
        Err(said) => Err(failure(&device, &said)),
    }
}

fn values_of<const D: usize>(tensor: Tensor<D>, device: &Device) -> Result<Vec<f64>, String> {
    #[cfg(feature = "wgpu")]
    if registry::is_adapter(device)
        && let Ok(beneath) = tensor.clone().try_into_primitive::<Cube>()
    {
        return answered(device, bytes_of(beneath))?.and_then(in_f64);
    }
    if let Some(lent) = remote::lent(device) {
        return lent.answered(tensor.into_data_async())?.map_err(|error| error.to_string()).and_then(in_f64);
    }
    tensor.try_into_vec_as::<f64>().map_err(|error| error.to_string())
}

fn in_f64(data: TensorData) -> Result<Vec<f64>, String> {
    let data = data.try_cast_as::<f64>().map_err(|error| error.to_string())?;
    data.try_into_vec::<f64>().map_err(|error| error.to_string())
}

/// Lets a window that shares `device` go first where it has to
/// ([`queue_yield`](super::queue_yield)): finishes what was begun and waits. To be called between
/// two pieces of work.
pub fn yield_to_window(device: &Device) {
    #[cfg(feature = "wgpu")]
    if queue_yield::is_taken() && window::painter(device).is_some() {
        // The next reading reports what fails here.
        _ = settled(device);
        queue_yield::wait();
    }
    #[cfg(not(feature = "wgpu"))]
    let _ = device;
}

/// Waits until the device has finished its queue.
///
/// # Errors
/// What burn says of it.
pub fn settled(device: &Device) -> Result<(), String> {
    #[cfg(feature = "wgpu")]
    if registry::is_adapter(device) {
        // A read comes after all work queued before it.
        return caught(|| values_of(Tensor::<1>::from_floats([0.0], device), device)).flatten().map(drop);
    }
    caught(|| device.sync())?.map_err(|error| error.to_string())
}

/// The bytes of a tensor. Burn's own read returns a promise, and waiting for that has no time
/// limit.
#[cfg(feature = "wgpu")]
async fn bytes_of(tensor: CubeTensor) -> Result<TensorData, String> {
    let tensor = into_contiguous_aligned(tensor);
    let (shape, dtype, size) = (tensor.meta.shape().clone(), tensor.dtype, tensor.elem_size());
    let strides = tensor.meta.strides().clone();
    let from = CopyDescriptor { handle: tensor.handle.binding(), shape: shape.clone(), strides, elem_size: size };
    let bytes = tensor.client.read_one_tensor_async(from).await.map_err(|error| error.to_string())?;
    TensorData::try_from_bytes(bytes, shape, dtype).map_err(|error| error.to_string())
}

/// Time between two checks whether an adapter is still there.
#[cfg(feature = "wgpu")]
const PAUSE: Duration = Duration::from_millis(500);

/// The answer of an adapter. After a reset, or a kernel that took too long, none ever comes, and
/// burn itself would wait for ever.
#[cfg(feature = "wgpu")]
fn answered<T>(device: &Device, answer: impl Future<Output = T>) -> Result<T, String> {
    // A replaced device was lost.
    let there = || registry::ask_of(device, |line| line.takes_work()).unwrap_or(false);
    while_there(PAUSE, answer, there).ok_or_else(|| format!("{POISONED}: its driver takes no more work"))
}

/// Values read back since the program began.
pub fn values_read() -> u64 {
    VALUES.load(Ordering::Relaxed)
}

/// Checks whether the device has failed since the last call.
///
/// # Errors
/// [`Error::OutOfMemory`] and [`Error::DeviceLost`].
pub fn whole(device: &Device) -> Result<()> {
    if *device == Device::flex() {
        return Ok(());
    }
    let Some((name, faults)) = registry::of(device) else { return Ok(()) };
    match faults.take_refusal() {
        None => Ok(()),
        Some(Refusal::Memory(why)) => Err(Error::OutOfMemory { device: name, why }),
        Some(Refusal::Other(why)) => {
            faults.lose(&why);
            Err(Error::DeviceLost { device: name, why })
        }
    }
}

/// An error of burn's about a device, as what it is.
pub fn failure(device: &Device, said: &str) -> Error {
    // The CPU is never lost, and another machine's device is its connection's to judge.
    let known = registry::of(device).filter(|_| *device != Device::flex());
    let Some((name, faults)) = known else {
        return Error::Device(format!("a result could not be read back: {}", cause(said)));
    };
    let lose = |why: String| {
        faults.lose(&why);
        Error::DeviceLost { device: name.clone(), why }
    };
    match faults.take_refusal() {
        _ if is_loss(said) => lose(cause(said)),
        Some(Refusal::Memory(why)) => Error::OutOfMemory { device: name, why },
        _ if is_memory(said) => Error::OutOfMemory { device: name, why: cause(said) },
        Some(Refusal::Other(why)) => lose(why),
        // What was missing then is missing for good.
        None if faults.spoilt() => lose(format!("it had run out of memory before: {}", cause(said))),
        // What fails first on a device that is going need not say that it goes; and what gives no
        // results is of no use.
        None => lose(lost(device).unwrap_or_else(|| cause(said))),
    }
}

/// Why a device is lost, if it is. Waits for what it has to do.
pub fn lost(device: &Device) -> Option<String> {
    let (_, faults) = registry::of(device)?;
    if let Some(why) = faults.lost() {
        return Some(why);
    }
    let said = settled(device).err()?;
    is_loss(&said).then(|| {
        faults.lose(&cause(&said));
        cause(&said)
    })
}
