//! wgpu adapters, and devices of our own on them. Burn gets a device that is made here, so that one
//! that is lost can be replaced: every registration is a runtime of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use burn::tensor::Device;
use burn::tensor::wgpu::WgpuSetup;

use super::choice::{Candidate, DeviceChoice};
use super::fault_injection;
use super::faults::Faults;
use super::registry::{DeviceEntry, probe};
use crate::error::{Error, Result};

/// Why an adapter that was asked for is missing.
pub fn none() -> String {
    match wgpu::Backends::from_env() {
        Some(named) => format!("no such adapter over {named:?}, to which WGPU_BACKEND restricts the search"),
        None => "no such adapter (on Linux, Vulkan drivers such as mesa-vulkan-drivers provide them)".into(),
    }
}

/// One instance, kept: Vulkan's loader does not like them to come and go on several threads.
static INSTANCE: Mutex<Option<(wgpu::Backends, wgpu::Instance)>> = Mutex::new(None);

/// Adapters of the first graphics API that has any, in the driver's order. `WGPU_BACKEND` (wgpu's own
/// variable: vulkan, metal, dx12, gl) names another API, or several. Nothing is looked for over OpenGL
/// unless it is named there.
fn list() -> Option<(wgpu::Instance, Vec<wgpu::Adapter>)> {
    let mut kept = INSTANCE.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = |backends, instance: &wgpu::Instance| burn::tensor::read_sync(instance.enumerate_adapters(backends));
    if let Some((backends, instance)) = &*kept {
        return Some((instance.clone(), ask(*backends, instance)));
    }
    let usual = || vec![wgpu::Backends::VULKAN, wgpu::Backends::METAL, wgpu::Backends::DX12];
    for backends in wgpu::Backends::from_env().map_or_else(usual, |named| vec![named]) {
        let without_display = wgpu::InstanceDescriptor::new_without_display_handle();
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor { backends, ..without_display });
        let found = ask(backends, &instance);
        if !found.is_empty() {
            *kept = Some((backends, instance.clone()));
            return Some((instance, found));
        }
    }
    None
}

/// Cards before graphics units of the processor, software last, otherwise in the driver's order;
/// the number is the driver's.
pub fn candidates() -> Vec<Candidate> {
    let found = list().map_or_else(Vec::new, |(_, found)| found);
    let candidate = |(i, adapter): (usize, &wgpu::Adapter)| {
        let info = adapter.get_info();
        let choice = DeviceChoice::Wgpu(Some(i));
        // Metal, OpenGL and software know no bus.
        let bus = Some(info.device_pci_bus_id).filter(|bus| !bus.is_empty());
        Candidate {
            choice,
            name: info.name,
            driver: format!("{} · {} {}", info.backend, info.driver, info.driver_info).trim_end().to_owned(),
            software: info.device_type == wgpu::DeviceType::Cpu,
            place: Some(bus.unwrap_or_else(|| choice.to_string())),
        }
    };
    let mut all: Vec<(u8, Candidate)> =
        found.iter().enumerate().map(|one| (rank(one.1.get_info().device_type), candidate(one))).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The window takes the fastest adapter there is, and the engine should be on the same.
fn rank(kind: wgpu::DeviceType) -> u8 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

/// What the engine needs of a device on this adapter: all features but experimental ones, all
/// limits (the default storage binding of 128 MiB is too small for attention over a thousand
/// tokens).
pub fn descriptor(adapter: &wgpu::Adapter) -> wgpu::DeviceDescriptor<'static> {
    let apart = wgpu::Features::all_experimental_mask() | wgpu::Features::MAPPABLE_PRIMARY_BUFFERS;
    wgpu::DeviceDescriptor {
        label: Some("bayescope"),
        required_features: adapter.features() - apart,
        required_limits: adapter.limits(),
        // Burn allocates large blocks itself.
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..Default::default()
    }
}

/// What the driver says of an adapter.
pub fn info(index: usize) -> Option<wgpu::AdapterInfo> {
    list().and_then(|(_, found)| found.get(index).map(wgpu::Adapter::get_info))
}

/// A device apart on the adapter asked for, or on the first there is.
///
/// # Errors
/// When there is no such adapter, or it gives no device.
pub fn open_adapter(asked: DeviceChoice) -> Result<WgpuSetup> {
    let first = || candidates().first().map(|candidate| candidate.choice);
    let chosen = if let DeviceChoice::Wgpu(Some(_)) = asked { Some(asked) } else { first() };
    let Some(DeviceChoice::Wgpu(Some(index))) = chosen else {
        return Err(Error::Device(none()));
    };
    let (instance, mut all) = list().ok_or_else(|| Error::Device("there is no adapter".into()))?;
    if index >= all.len() {
        return Err(Error::Device(format!("{asked}: there are {} adapters", all.len())));
    }
    open(instance, all.swap_remove(index), index)
}

/// A new device on the adapter of that number.
pub fn connect(index: usize) -> Result<DeviceEntry> {
    register(open_adapter(DeviceChoice::Wgpu(Some(index)))?, None)
}

fn open(instance: wgpu::Instance, adapter: wgpu::Adapter, index: usize) -> Result<WgpuSetup> {
    let wanted = fault_injection::confined(index, descriptor(&adapter));
    has_what_is_needed(&wanted.required_limits, adapter.get_downlevel_capabilities().flags)?;
    let opened = burn::tensor::read_sync(adapter.request_device(&wanted));
    let (device, queue) = opened.map_err(|e| Error::Device(format!("its driver gives no device: {e}")))?;
    let backend = adapter.get_info().backend;
    Ok(WgpuSetup { instance, adapter, device, queue, backend })
}

/// The least that burn's kernels and the smallest flow need. A driver of Vulkan, Metal or DX12 that
/// offers less is broken; OpenGL has it from ES 3.1 or 4.3 on.
fn has_what_is_needed(limits: &wgpu::Limits, flags: wgpu::DownlevelFlags) -> Result<()> {
    const KIB: u64 = 1 << 10;
    if !flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS) {
        return Err(Error::Device("its driver has no compute shaders (OpenGL has them from ES 3.1 or 4.3 on)".into()));
    }
    let buffers = limits.max_buffer_size.min(limits.max_storage_buffer_binding_size);
    let least = [
        ("bytes in a buffer", buffers, 8 * KIB * KIB),
        ("invocations in a workgroup", u64::from(limits.max_compute_invocations_per_workgroup), 64),
        ("workgroups in a row", u64::from(limits.max_compute_workgroups_per_dimension), 256),
        ("storage buffers in a kernel", u64::from(limits.max_storage_buffers_per_shader_stage), 4),
        ("bytes shared in a workgroup", u64::from(limits.max_compute_workgroup_storage_size), 8 * KIB),
    ];
    match least.iter().find(|(_, found, least)| found < least) {
        Some((what, found, least)) => {
            Err(Error::Device(format!("its driver takes at most {found} {what}, and at least {least} are needed")))
        }
        None => Ok(()),
    }
}

/// Kernels that burn gathers into one submission to the window's queue: few, so that the next frame
/// does not wait behind many.
const WINDOW_TASKS: usize = 8;

/// The window whose own device it is: its thread, and who is told the errors of its calls.
#[derive(Clone, Copy)]
pub struct Painting {
    /// The thread that lent the device and paints with it.
    pub thread: ThreadId,
    /// Is told what the driver said.
    pub failed: fn(&str),
}

/// Burn on this device; `painting` where it is a window's own.
pub fn register(setup: WgpuSetup, painting: Option<Painting>) -> Result<DeviceEntry> {
    let options = Device::wgpu_options();
    let options = if painting.is_some() { options.tasks_max(WINDOW_TASKS) } else { options };
    let device = options.setup(setup.clone()).init().map_err(|e| Error::Device(e.to_string()))?;
    let faults = Arc::new(Faults::default());
    watch(&setup.device, &faults, painting);
    let software = setup.adapter.get_info().device_type == wgpu::DeviceType::Cpu;
    let probe = Some(probe(&setup.device));
    Ok(DeviceEntry { device, faults, software, wgpu: Some(setup), probe })
}

/// Records what the driver refuses. Burn has just installed its own callbacks. The one for a lost
/// device stays: burn's reads fail by it, and a device has only one. The one for errors is replaced
/// by one that records them.
fn watch(device: &wgpu::Device, faults: &Arc<Faults>, painting: Option<Painting>) {
    let faults = Arc::clone(faults);
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        let text = error.to_string();
        // Burn calls the driver from its own threads: a call on the window's thread was the window's.
        if let Some(painting) = painting.filter(|painting| painting.thread == std::thread::current().id()) {
            return (painting.failed)(&text);
        }
        match error {
            wgpu::Error::OutOfMemory { .. } => faults.out_of_memory(text.clone()),
            wgpu::Error::Validation { .. } | wgpu::Error::Internal { .. } => faults.broke(text.clone()),
        }
        // A panic is the only way to tell burn that the call failed: its thread drops the task, and
        // reading the task's results fails.
        std::panic::resume_unwind(Box::new(text));
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_lacks_is_named() {
        let all = wgpu::DownlevelFlags::all();
        assert!(has_what_is_needed(&wgpu::Limits::default(), all).is_ok());
        let without = all - wgpu::DownlevelFlags::COMPUTE_SHADERS;
        let why = has_what_is_needed(&wgpu::Limits::default(), without).unwrap_err().to_string();
        assert!(why.contains("no compute shaders"), "{why}");
        let told = |limits: wgpu::Limits| has_what_is_needed(&limits, all).unwrap_err().to_string();
        let none = told(wgpu::Limits { max_compute_invocations_per_workgroup: 0, ..Default::default() });
        assert!(none.contains("0 invocations in a workgroup") && none.contains("64 are needed"), "{none}");
        let small = told(wgpu::Limits { max_storage_buffer_binding_size: 4096, ..Default::default() });
        assert!(small.contains("4096 bytes in a buffer"), "{small}");
    }
}
