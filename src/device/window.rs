//! The window's own graphics device, lent to the engine: tensors lie where they are painted.

use std::sync::Mutex;
use std::sync::PoisonError;

use burn::tensor::Device;
use burn::tensor::wgpu::WgpuSetup;

use super::{Error, Result};

/// Kernels gathered into one submission: few, so that the window's next frame need not wait behind many.
const TASKS: usize = 8;

struct Lent {
    setup: WgpuSetup,
    /// Burn's name for it, once somebody computes there.
    device: Option<Device>,
    /// Whether the user wants the window's device left alone.
    apart: bool,
}

static LENT: Mutex<Option<Lent>> = Mutex::new(None);

fn lent<T>(look: impl FnOnce(&mut Option<Lent>) -> T) -> T {
    look(&mut LENT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Lends the device a window paints with: from now on whoever computes on its adapter computes there. With `apart` nobody
/// does, and pictures travel over the host.
pub fn lend(
    instance: &wgpu::Instance,
    adapter: &wgpu::Adapter,
    (device, queue): (&wgpu::Device, &wgpu::Queue),
    apart: bool,
) {
    let setup = WgpuSetup {
        instance: instance.clone(),
        adapter: adapter.clone(),
        device: device.clone(),
        queue: queue.clone(),
        backend: adapter.get_info().backend,
    };
    lent(|lent| *lent = Some(Lent { setup, device: None, apart }));
}

/// Whether the window's device is left alone from now on. Takes effect with the next choice of a device.
pub fn keep_apart(apart: bool) {
    lent(|lent| lent.iter_mut().for_each(|lent| lent.apart = apart));
}

/// Burn's device on the window's, if that was lent and paints on this adapter.
///
/// # Errors
/// When burn cannot compute on it.
pub fn on_adapter(info: &wgpu::AdapterInfo) -> Result<Option<Device>> {
    lent(|lent| {
        let Some(lent) = lent.as_mut().filter(|lent| !lent.apart && lent.setup.adapter.get_info() == *info) else {
            return Ok(None);
        };
        if lent.device.is_none() {
            let options = Device::wgpu_options().tasks_max(TASKS).setup(lent.setup.clone());
            lent.device = Some(options.init().map_err(|e| Error::Device(e.to_string()))?);
        }
        Ok(lent.device.clone())
    })
}

/// Whether what lies on `device` can be painted where it is.
pub fn paints(device: &Device) -> bool {
    lent(|lent| lent.as_ref().is_some_and(|lent| lent.device.as_ref() == Some(device)))
}
