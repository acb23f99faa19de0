//! The window's own graphics device, lent to the engine: tensors lie where they are painted.

use std::sync::Mutex;
use std::sync::PoisonError;

use burn::tensor::Device;
use burn::tensor::wgpu::WgpuSetup;

use super::table::{self, Place};
use super::{Candidate, Result, adapters};

/// Kernels gathered into one submission: few, so that the window's next frame need not wait behind many.
pub const TASKS: usize = 8;

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

/// Burn's device on the window's, if that was lent and paints on this adapter. One that was lost is lent no more.
///
/// # Errors
/// When burn cannot compute on it.
pub fn connect(used: &Candidate, index: usize) -> Result<Option<Device>> {
    let Some(info) = adapters::info(index) else { return Ok(None) };
    lent(|slot| {
        let Some(lent) = slot.as_mut().filter(|lent| !lent.apart && lent.setup.adapter.get_info() == info) else {
            return Ok(None);
        };
        let Some(device) = &lent.device else {
            let setup = lent.setup.clone();
            let device = table::replace(used, Place::Window, adapters::register(setup, Place::Window)?);
            lent.device = Some(device.clone());
            return Ok(Some(device));
        };
        match table::of(device).and_then(|(_, faults)| faults.lost()) {
            None => Ok(Some(device.clone())),
            Some(_) => {
                *slot = None;
                Ok(None)
            }
        }
    })
}

/// Whether what lies on `device` can be painted where it is.
pub fn paints(device: &Device) -> bool {
    lent(|lent| lent.as_ref().is_some_and(|lent| lent.device.as_ref() == Some(device)))
}
