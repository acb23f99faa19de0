//! wgpu adapters, asked through an instance of our own before burn touches one.

use burn::tensor::{Device, DeviceKind};

use super::{Candidate, DeviceChoice, Error, Result};

/// Adapters with the selector burn knows them by. Only the graphics API burn itself would use is listed.
fn list() -> Vec<(wgpu::AdapterInfo, DeviceKind)> {
    let native = [wgpu::Backends::VULKAN, wgpu::Backends::METAL, wgpu::Backends::DX12];
    for backends in native {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let found = burn::tensor::read_sync(instance.enumerate_adapters(backends));
        if !found.is_empty() {
            let mut seen = [0usize; 3];
            return found.iter().filter_map(|adapter| kind(adapter.get_info(), &mut seen)).collect();
        }
    }
    Vec::new()
}

/// Every type of adapter counts from zero on its own.
fn kind(info: wgpu::AdapterInfo, seen: &mut [usize; 3]) -> Option<(wgpu::AdapterInfo, DeviceKind)> {
    let (slot, make): (usize, fn(usize) -> DeviceKind) = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => (0, DeviceKind::DiscreteGpu),
        wgpu::DeviceType::IntegratedGpu => (1, DeviceKind::IntegratedGpu),
        wgpu::DeviceType::VirtualGpu => (2, DeviceKind::VirtualGpu),
        wgpu::DeviceType::Cpu => return Some((info, DeviceKind::Cpu)),
        wgpu::DeviceType::Other => return None,
    };
    seen[slot] += 1;
    Some((info, make(seen[slot] - 1)))
}

/// Real GPUs before software, otherwise in the driver's order; the number is the driver's.
pub fn candidates() -> Vec<Candidate> {
    let mut all: Vec<Candidate> = list()
        .into_iter()
        .enumerate()
        .map(|(i, (info, _))| Candidate {
            choice: DeviceChoice::Wgpu(Some(i)),
            name: info.name,
            driver: format!("{} · {} {}", info.backend, info.driver, info.driver_info).trim_end().to_owned(),
            software: info.device_type == wgpu::DeviceType::Cpu,
        })
        .collect();
    all.sort_by_key(|candidate| candidate.software);
    all
}

/// What the engine needs of a device on this adapter: everything it can do and hold (the default storage binding of 128 MiB is
/// too small for attention over a thousand tokens), experiments apart.
pub fn descriptor(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
    let apart = wgpu::Features::all_experimental_mask() | wgpu::Features::MAPPABLE_PRIMARY_BUFFERS;
    wgpu::DeviceDescriptor {
        label: Some("bayescope"),
        required_features: adapter.features() - apart,
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..Default::default()
    }
}

/// What the driver says of an adapter.
pub fn info(index: usize) -> Option<wgpu::AdapterInfo> {
    list().into_iter().nth(index).map(|(info, _)| info)
}

pub fn connect(index: usize) -> Result<Device> {
    let mut all = list();
    if index >= all.len() {
        return Err(Error::Device(format!("there are {} adapters", all.len())));
    }
    let (_, kind) = all.swap_remove(index);
    Device::wgpu_options().device_kind(kind).init().map_err(|e| Error::Device(e.to_string()))
}
