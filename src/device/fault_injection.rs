//! Faults on purpose, for tests and drills.

use std::collections::HashMap;
use std::sync::Mutex;

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

/// The limits of adapter `index`, as confined.
#[cfg(feature = "wgpu")]
pub(super) fn confined(index: usize, limits: wgpu::Limits) -> wgpu::Limits {
    let confined = CONFINED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match confined.as_ref().and_then(|confined| confined.get(&index)) {
        None => limits,
        Some(&bytes) => wgpu::Limits {
            max_buffer_size: limits.max_buffer_size.min(bytes),
            max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size.min(bytes),
            ..limits
        },
    }
}
