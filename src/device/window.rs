//! The window's own graphics device, lent to the engine: tensors lie where they are painted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use burn::tensor::Device;
use burn::tensor::wgpu::WgpuSetup;

use super::choice::Candidate;
use super::registry::{self, Owner, takes_work};
use super::{adapters, queue_yield};
use crate::error::Result;

/// A window of this program that lent its device. wgpu distinguishes devices within an instance,
/// and every window has its own instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lender(u64);

static LENDERS: AtomicU64 = AtomicU64::new(0);

struct Lent {
    lender: Lender,
    /// The thread that lent it, from which the window paints: in the Python package it has no name.
    thread: ThreadId,
    setup: WgpuSetup,
    /// Burn's name for it, once the engine computes there.
    device: Option<Device>,
    /// Whether the user wants the window's device left alone, or it was lost before.
    apart: bool,
    /// Why the window cannot paint any more.
    lost: Option<String>,
    /// A few bytes to write to, to see whether the device still takes any.
    probe: wgpu::Buffer,
}

static LENT: Mutex<Option<Lent>> = Mutex::new(None);
/// Whether a window's device was lost, perhaps to a kernel: until the program ends, windows keep
/// theirs for themselves.
static SPARED: AtomicBool = AtomicBool::new(false);

fn lent<T>(look: impl FnOnce(&mut Option<Lent>) -> T) -> T {
    look(&mut LENT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Lends the device a window paints with, on the window's thread: from now on the engine computes
/// there if it uses that adapter. With `apart` it does not, and pictures travel over the host.
/// Returns the name under which the window can paint pictures.
pub fn lend_window(
    instance: &wgpu::Instance,
    adapter: &wgpu::Adapter,
    (device, queue): (&wgpu::Device, &wgpu::Queue),
    apart: bool,
) -> Lender {
    let setup = WgpuSetup {
        instance: instance.clone(),
        adapter: adapter.clone(),
        device: device.clone(),
        queue: queue.clone(),
        backend: adapter.get_info().backend,
    };
    // Burn puts its own watch in place of these once it computes there.
    device.set_device_lost_callback(|reason, why| painting_failed(&format!("{reason:?}: {why}, device lost")));
    device.on_uncaptured_error(std::sync::Arc::new(|error: wgpu::Error| painting_failed(&error.to_string())));
    let probe = registry::probe(device);
    let lender = Lender(LENDERS.fetch_add(1, Ordering::Relaxed));
    let thread = std::thread::current().id();
    lent(|lent| *lent = Some(Lent { lender, thread, setup, device: None, apart, lost: None, probe }));
    lender
}

/// What wgpu says where the engine's work kept it from giving a window its size, and of frames of
/// that size until it has it.
const BUSY: &str = "reconfiguring the Surface";
const WRONG_SIZE: [&str; 2] = ["Scissor Rect", "Viewport"];

/// A call of the window's own failed. Nothing is painted any more where the device is lost; other
/// errors cost a picture.
pub fn painting_failed(why: &str) {
    if why.contains(BUSY) {
        queue_yield::refused();
        tracing::debug!("painting: {why}");
    } else if queue_yield::is_taken() && WRONG_SIZE.iter().any(|what| why.contains(what)) {
        tracing::debug!("painting: {why}");
    } else {
        tracing::error!("painting: {why}");
    }
    if why.to_lowercase().contains("lost") {
        lent(|lent| lent.iter_mut().for_each(|lent| _ = lent.lost.get_or_insert_with(|| why.to_owned())));
    }
}

/// Why the window's device paints no more, if it is lost: painting on it ends in a panic of egui's.
pub fn window_lost() -> Option<String> {
    let known = |lent: &mut Option<Lent>| {
        let lent = lent.as_ref()?;
        Some((lent.device.clone(), lent.lost.clone(), lent.setup.queue.clone(), lent.probe.clone()))
    };
    let (device, lost, queue, probe) = lent(known)?;
    let told = || lost.or_else(|| registry::of(&device?)?.1.lost());
    told().or_else(|| (!takes_work(&queue, &probe)).then(|| "its driver takes no more work".into()))
}

/// Takes the window's device away, as a driver that resets does: a drill.
pub fn lose_window() {
    if let Some(device) = lent(|lent| lent.as_ref().map(|lent| lent.setup.device.clone())) {
        device.destroy();
    }
}

/// Sets whether the window's device is left alone, from the next choice of a device on.
pub fn keep_apart(apart: bool) {
    lent(|lent| lent.iter_mut().for_each(|lent| lent.apart = apart));
}

/// From now on the engine never computes on a window's device, whatever the user wants.
pub fn spare_window() {
    SPARED.store(true, Ordering::Relaxed);
}

/// Returns whether [`spare_window`] was called.
pub fn window_is_spared() -> bool {
    SPARED.load(Ordering::Relaxed)
}

/// Burn's device on the window's, if that was lent and paints on this adapter. A lost device is
/// lent no more, and [`window_lost`] reports it: the engine may be the first to notice.
///
/// # Errors
/// When burn cannot compute on it.
pub fn connect(used: &Candidate, index: usize) -> Result<Option<Device>> {
    let Some(info) = adapters::info(index) else { return Ok(None) };
    lent(|slot| {
        // An OpenGL context serves one thread at a time, and the window's has the least limits: there the engine
        // has its own.
        let shared = |lent: &Lent| lent.setup.backend != wgpu::Backend::Gl;
        let free = |lent: &&mut Lent| !lent.apart && !window_is_spared() && lent.lost.is_none() && shared(lent);
        let Some(lent) = slot.as_mut().filter(free).filter(|lent| lent.setup.adapter.get_info() == info) else {
            return Ok(None);
        };
        let Some(device) = &lent.device else {
            let setup = lent.setup.clone();
            let painting = adapters::Painting { thread: lent.thread, failed: painting_failed };
            let device = registry::replace(used, Owner::Window, adapters::register(setup, Some(painting))?);
            lent.device = Some(device.clone());
            return Ok(Some(device));
        };
        match registry::of(device).and_then(|(_, faults)| faults.lost()) {
            None => Ok(Some(device.clone())),
            Some(why) => {
                lent.lost = Some(why);
                Ok(None)
            }
        }
    })
}

/// The window that can paint what lies on `device` where it is, if one can.
pub fn painter(device: &Device) -> Option<Lender> {
    lent(|lent| lent.as_ref().filter(|lent| lent.device.as_ref() == Some(device)).map(|lent| lent.lender))
}
