//! The devices brought up so far, by their names on the command line, each with its faults. A
//! runtime is registered once and used by all.
#![cfg_attr(not(feature = "wgpu"), allow(dead_code, reason = "without adapters nobody reports a fault"))]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Device;

use super::choice::{Candidate, DeviceChoice};
use super::faults::Faults;
use crate::error::Result;

/// A device that was brought up.
pub struct DeviceEntry {
    /// For burn.
    pub device: Device,
    /// Its faults.
    pub faults: Arc<Faults>,
    /// Whether it is a software rasteriser: the processor computes what a GPU would.
    pub software: bool,
    /// Its wgpu handles, if it is an adapter.
    #[cfg(feature = "wgpu")]
    pub wgpu: Option<burn::tensor::wgpu::WgpuSetup>,
    /// A few bytes to write to, to test whether it still takes work.
    #[cfg(feature = "wgpu")]
    pub probe: Option<wgpu::Buffer>,
}

impl From<Device> for DeviceEntry {
    fn from(device: Device) -> Self {
        Self {
            device,
            faults: Arc::default(),
            software: false,
            #[cfg(feature = "wgpu")]
            wgpu: None,
            #[cfg(feature = "wgpu")]
            probe: None,
        }
    }
}

impl DeviceEntry {
    /// Returns whether the driver still takes work, where that can be asked.
    #[cfg(feature = "wgpu")]
    pub fn takes_work(&self) -> bool {
        let beneath = self.wgpu.as_ref().zip(self.probe.as_ref());
        beneath.is_none_or(|(setup, probe)| takes_work(&setup.queue, probe))
    }

    /// Destroys the device and frees the driver's resources. Work on it fails.
    pub fn destroy(&self) {
        #[cfg(feature = "wgpu")]
        if let Some(setup) = &self.wgpu {
            setup.device.destroy();
        }
    }
}

/// A few bytes to write to.
#[cfg(feature = "wgpu")]
pub fn probe(device: &wgpu::Device) -> wgpu::Buffer {
    let (label, usage) = (Some("probe"), wgpu::BufferUsages::COPY_DST);
    device.create_buffer(&wgpu::BufferDescriptor { label, size: 16, usage, mapped_at_creation: false })
}

/// Returns whether a device still takes work: a lost one takes no bytes.
#[cfg(feature = "wgpu")]
pub fn takes_work(queue: &wgpu::Queue, probe: &wgpu::Buffer) -> bool {
    wgpu::BufferSize::new(probe.size()).is_none_or(|size| queue.write_buffer_with(probe, 0, size).is_some())
}

/// Whose device it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Opened here.
    Engine,
    /// Lent by the window.
    Window,
}

struct Named {
    name: String,
    entry: DeviceEntry,
}

/// The devices in use, and those that were replaced: work still running there must hear of the
/// loss.
#[derive(Default)]
struct Table {
    used: HashMap<(DeviceChoice, Owner), Named>,
    replaced: Vec<Replaced>,
}

/// A device that was replaced.
struct Replaced {
    device: Device,
    name: String,
    faults: Arc<Faults>,
}

static CONNECTED: Mutex<Option<Table>> = Mutex::new(None);

fn connected<T>(with: impl FnOnce(&mut Table) -> T) -> T {
    let mut connected = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
    with(connected.get_or_insert_default())
}

/// The device of that name, or a new one where there is none or it was lost.
pub fn connect(used: &Candidate, new: impl FnOnce() -> Result<DeviceEntry>) -> Result<Device> {
    connected(|connected| {
        if let Some(Named { entry, .. }) = connected.used.get(&(used.choice, Owner::Engine)) {
            if entry.faults.lost().is_none() {
                return Ok(entry.device.clone());
            }
            entry.destroy();
        }
        Ok(put(connected, used, Owner::Engine, new()?))
    })
}

/// Enters a new device, in place of another of that name if there is one.
pub fn replace(used: &Candidate, owner: Owner, entry: DeviceEntry) -> Device {
    connected(|connected| put(connected, used, owner, entry))
}

fn put(connected: &mut Table, used: &Candidate, owner: Owner, entry: DeviceEntry) -> Device {
    let device = entry.device.clone();
    let before = connected.used.insert((used.choice, owner), Named { name: used.name.clone(), entry });
    if let Some(Named { name, entry: DeviceEntry { device, faults, .. } }) = before {
        connected.replaced.push(Replaced { device, name, faults });
    }
    device
}

/// The name and the faults of a device that was brought up here, replaced or not.
pub fn of(device: &Device) -> Option<(String, Arc<Faults>)> {
    connected(|connected| {
        let used = connected.used.values().map(|named| (&named.entry.device, &named.name, &named.entry.faults));
        let replaced = connected.replaced.iter().map(|before| (&before.device, &before.name, &before.faults));
        let (_, name, faults) = used.chain(replaced).find(|(known, ..)| *known == device)?;
        Some((name.clone(), Arc::clone(faults)))
    })
}

/// Applies `question` to every device of that name. Returns how many there are.
pub fn each(choice: DeviceChoice, question: impl Fn(&DeviceEntry)) -> usize {
    connected(|connected| {
        let entries = connected.used.iter().filter(|((of, _), _)| *of == choice);
        entries.inspect(|(_, named)| question(&named.entry)).count()
    })
}

/// Whether it is a graphics adapter's, opened here.
#[cfg(feature = "wgpu")]
pub fn is_adapter(device: &Device) -> bool {
    ask_of(device, |entry| entry.wgpu.is_some()).unwrap_or(false)
}

/// Whether it is a GPU of this machine.
pub fn is_gpu(device: &Device) -> bool {
    *device != Device::flex() && ask_of(device, |entry| !entry.software).unwrap_or(false)
}

/// Applies `question` to the entry of a device.
pub fn ask_of<T>(device: &Device, question: impl FnOnce(&DeviceEntry) -> T) -> Option<T> {
    connected(|connected| {
        connected.used.values().find(|named| named.entry.device == *device).map(|named| question(&named.entry))
    })
}

/// Bytes that a device takes in one buffer, where it has a limit.
pub fn largest_buffer(device: &Device) -> Option<u64> {
    #[cfg(feature = "wgpu")]
    return ask_of(device, |entry| {
        let limits = entry.wgpu.as_ref()?.device.limits();
        Some(limits.max_buffer_size.min(limits.max_storage_buffer_binding_size))
    })
    .flatten();
    #[cfg(not(feature = "wgpu"))]
    {
        let _ = device;
        None
    }
}
