//! Faults on purpose, and devices smaller than their adapters, for tests and drills.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::choice::DeviceChoice;
use super::registry::{self, DeviceEntry};

/// Destroys a device, as a driver reset does. Returns whether there was such a device.
pub fn lose(choice: DeviceChoice) -> bool {
    registry::each(choice, DeviceEntry::destroy) > 0
}

/// Bytes in a buffer at most, by the number of the adapter.
static CONFINED: Mutex<Option<HashMap<usize, u64>>> = Mutex::new(None);

/// Devices brought up from now on on adapter `index` take buffers of at most so many bytes, as
/// small ones do; none: as large as the adapter takes.
pub fn confine(index: usize, bytes: Option<u64>) {
    let mut confined = CONFINED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let confined = confined.get_or_insert_default();
    match bytes {
        Some(bytes) => confined.insert(index, bytes),
        None => confined.remove(&index),
    };
}

/// Whether devices are those of small cards.
static SMALL: AtomicBool = AtomicBool::new(false);

/// Graphics devices brought up from now on, on every adapter, have at most what a small card has:
/// buffers and storage bindings of 128 MiB, 256 invocations in a workgroup, no 16-bit floats, no
/// subgroups. The driver refuses any kernel that needs more. Burn still asks the adapter how many
/// invocations it takes and whether it has subgroups, so a kernel may be refused here that a small
/// card would be spared.
pub fn small_devices(small: bool) {
    SMALL.store(small, Ordering::Relaxed);
}

/// Returns whether [`small_devices`] is on.
pub fn are_small() -> bool {
    SMALL.load(Ordering::Relaxed)
}

/// Whether lenders are waited for as long as tests can wait.
static IMPATIENT: AtomicBool = AtomicBool::new(false);

/// A lender that says nothing for 3 seconds counts as gone from now on, in place of half a minute.
pub fn impatient() {
    IMPATIENT.store(true, Ordering::Relaxed);
}

/// Returns whether [`impatient`] was called.
#[cfg(feature = "remote")]
pub(super) fn are_impatient() -> bool {
    IMPATIENT.load(Ordering::Relaxed)
}

/// What is requested of adapter `index`, as confined.
#[cfg(feature = "wgpu")]
pub(super) fn confined(index: usize, wanted: wgpu::DeviceDescriptor<'static>) -> wgpu::DeviceDescriptor<'static> {
    let wanted = if are_small() { of_a_small_card(wanted) } else { wanted };
    let confined = CONFINED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match confined.as_ref().and_then(|confined| confined.get(&index)) {
        None => wanted,
        Some(&bytes) => with_buffers_of(bytes, wanted),
    }
}

#[cfg(feature = "wgpu")]
fn with_buffers_of(bytes: u64, wanted: wgpu::DeviceDescriptor<'static>) -> wgpu::DeviceDescriptor<'static> {
    let limits = wanted.required_limits;
    let required_limits = wgpu::Limits {
        max_buffer_size: limits.max_buffer_size.min(bytes),
        max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size.min(bytes),
        ..limits
    };
    wgpu::DeviceDescriptor { required_limits, ..wanted }
}

#[cfg(feature = "wgpu")]
fn of_a_small_card(wanted: wgpu::DeviceDescriptor<'static>) -> wgpu::DeviceDescriptor<'static> {
    const BYTES: u64 = 128 << 20;
    const INVOCATIONS: u32 = 256;
    const DEPTH: u32 = 64;
    let wanted = with_buffers_of(BYTES, wanted);
    let limits = wanted.required_limits;
    let required_limits = wgpu::Limits {
        max_compute_invocations_per_workgroup: limits.max_compute_invocations_per_workgroup.min(INVOCATIONS),
        max_compute_workgroup_size_x: limits.max_compute_workgroup_size_x.min(INVOCATIONS),
        max_compute_workgroup_size_y: limits.max_compute_workgroup_size_y.min(INVOCATIONS),
        max_compute_workgroup_size_z: limits.max_compute_workgroup_size_z.min(DEPTH),
        ..limits
    };
    let missing = wgpu::Features::SHADER_F16
        | wgpu::Features::SUBGROUP
        | wgpu::Features::SUBGROUP_VERTEX
        | wgpu::Features::SUBGROUP_BARRIER;
    let required_features = wanted.required_features - missing;
    wgpu::DeviceDescriptor { required_features, required_limits, ..wanted }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use super::*;

    #[test]
    fn a_small_card_has_less_of_everything_and_nothing_new() {
        let whole = wgpu::Limits {
            max_buffer_size: 1 << 40,
            max_storage_buffer_binding_size: 1 << 31,
            max_compute_invocations_per_workgroup: 128,
            max_compute_workgroup_size_x: 1024,
            ..wgpu::Limits::default()
        };
        let required_features = wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP | wgpu::Features::SHADER_F64;
        let wanted = wgpu::DeviceDescriptor { required_limits: whole.clone(), required_features, ..Default::default() };
        let small = of_a_small_card(wanted);
        let limits = &small.required_limits;
        assert_eq!((limits.max_buffer_size, limits.max_storage_buffer_binding_size), (128 << 20, 128 << 20));
        // What is less already stays.
        assert_eq!((limits.max_compute_invocations_per_workgroup, limits.max_compute_workgroup_size_x), (128, 256));
        assert!(limits.check_limits(&whole));
        assert_eq!(small.required_features, wgpu::Features::SHADER_F64);
    }
}
