//! The devices brought up so far, by what they are called on the command line: a runtime is registered once and used by all. Beside
//! each stands what has befallen it.
#![cfg_attr(not(feature = "wgpu"), allow(dead_code, reason = "without adapters nobody reports a fault"))]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::tensor::Device;

use super::{Candidate, DeviceChoice, Result};

/// What the driver has reported and nobody has heard yet, and what it means for the runtime.
#[derive(Debug, Default)]
pub struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Why there is no device any more.
    lost: Option<String>,
    refused: Option<Refusal>,
    /// Whether the driver has refused memory before: what was to be written then is missing, whoever reads it.
    spoilt: bool,
}

/// A call that the driver did not carry out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// For want of memory.
    Memory(String),
    /// For another reason.
    Other(String),
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The driver had no memory.
    pub fn out_of_memory(&self, why: String) {
        let mut state = self.state();
        state.refused = Some(Refusal::Memory(why));
        state.spoilt = true;
    }

    /// Something was asked for that has no memory: what was to be written there is missing, and nothing else.
    pub fn too_large(&self, why: String) {
        self.state().refused = Some(Refusal::Memory(why));
    }

    /// The driver refused a call. Of several refusals a want of memory is the cause of the others.
    pub fn broke(&self, why: String) {
        self.state().refused.get_or_insert(Refusal::Other(why));
    }

    /// The device is gone; the first reason stays.
    pub fn lose(&self, why: &str) {
        self.state().lost.get_or_insert_with(|| why.to_owned());
    }

    /// Why there is no device any more.
    pub fn lost(&self) -> Option<String> {
        self.state().lost.clone()
    }

    /// What was refused since the last question.
    pub fn take_refusal(&self) -> Option<Refusal> {
        self.state().refused.take()
    }

    /// Whether something may be missing that was to be written.
    pub fn spoilt(&self) -> bool {
        self.state().spoilt
    }
}

/// A device that was brought up.
pub struct Line {
    /// For burn.
    pub device: Device,
    /// What has befallen it.
    pub faults: Arc<Faults>,
    /// Whether it is a software rasteriser: the processor computes what a GPU would.
    pub software: bool,
    /// The handles beneath, where there are any.
    #[cfg(feature = "wgpu")]
    pub wgpu: Option<burn::tensor::wgpu::WgpuSetup>,
    /// A few bytes to write to, to see whether it still takes work.
    #[cfg(feature = "wgpu")]
    pub probe: Option<wgpu::Buffer>,
}

impl From<Device> for Line {
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

impl Line {
    /// Whether the driver still carries out what it is told, where that can be asked.
    #[cfg(feature = "wgpu")]
    pub fn takes_work(&self) -> bool {
        let beneath = self.wgpu.as_ref().zip(self.probe.as_ref());
        beneath.is_none_or(|(setup, probe)| super::adapters::takes_work(&setup.queue, probe))
    }

    /// Takes the device away from whoever computes on it, and gives back what its driver holds for it.
    pub fn destroy(&self) {
        #[cfg(feature = "wgpu")]
        if let Some(setup) = &self.wgpu {
            setup.device.destroy();
        }
    }
}

/// Whose device it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Opened here.
    Own,
    /// Lent by the window.
    Window,
}

struct Named {
    name: String,
    line: Line,
}

/// The devices in use, and those that others have taken the place of: whoever still computes on one of them has to hear what it is.
#[derive(Default)]
struct Table {
    used: HashMap<(DeviceChoice, Place), Named>,
    replaced: Vec<Replaced>,
}

/// A device that another one has taken the place of.
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

/// The device of that name: the one there is, or a new one of our own where there is none or it was lost.
pub fn connect(used: &Candidate, new: impl FnOnce() -> Result<Line>) -> Result<Device> {
    connected(|connected| {
        if let Some(Named { line, .. }) = connected.used.get(&(used.choice, Place::Own)) {
            if line.faults.lost().is_none() {
                return Ok(line.device.clone());
            }
            line.destroy();
        }
        Ok(put(connected, used, Place::Own, new()?))
    })
}

/// A new device takes the place of another of that name, if there is one.
pub fn replace(used: &Candidate, place: Place, line: Line) -> Device {
    connected(|connected| put(connected, used, place, line))
}

fn put(connected: &mut Table, used: &Candidate, place: Place, line: Line) -> Device {
    let device = line.device.clone();
    let before = connected.used.insert((used.choice, place), Named { name: used.name.clone(), line });
    if let Some(Named { name, line: Line { device, faults, .. } }) = before {
        connected.replaced.push(Replaced { device, name, faults });
    }
    device
}

/// The name of a device that was brought up here and what has befallen it, whether or not it was replaced since.
pub fn of(device: &Device) -> Option<(String, Arc<Faults>)> {
    connected(|connected| {
        let used = connected.used.values().map(|named| (&named.line.device, &named.name, &named.line.faults));
        let replaced = connected.replaced.iter().map(|before| (&before.device, &before.name, &before.faults));
        let (_, name, faults) = used.chain(replaced).find(|(known, ..)| *known == device)?;
        Some((name.clone(), Arc::clone(faults)))
    })
}

/// Asks something of every device of that name; how many there are.
pub fn each(choice: DeviceChoice, question: impl Fn(&Line)) -> usize {
    connected(|connected| {
        let lines = connected.used.iter().filter(|((of, _), _)| *of == choice);
        lines.inspect(|(_, named)| question(&named.line)).count()
    })
}

/// Whether it is a graphics adapter's, opened here.
#[cfg(feature = "wgpu")]
pub fn is_adapter(device: &Device) -> bool {
    ask_of(device, |line| line.wgpu.is_some()).unwrap_or(false)
}

/// Whether it is a GPU of this machine.
pub fn is_gpu(device: &Device) -> bool {
    *device != Device::flex() && ask_of(device, |line| !line.software).unwrap_or(false)
}

/// Whether a processor both computes there and paints the window: a frame waits until the kernels before it are done.
pub fn paints_in_software(device: &Device) -> bool {
    super::paints(device) && !is_gpu(device)
}

/// Asks something of the device that burn knows.
pub fn ask_of<T>(device: &Device, question: impl FnOnce(&Line) -> T) -> Option<T> {
    connected(|connected| {
        connected.used.values().find(|named| named.line.device == *device).map(|named| question(&named.line))
    })
}
