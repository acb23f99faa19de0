//! Which machine computes: a wgpu adapter, CUDA or the CPU. Everything is probed before it is used, and the reason for
//! the choice travels with it.

#[cfg(feature = "wgpu")]
mod adapters;
#[cfg(feature = "cuda")]
mod cuda;
pub mod memory;

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What the user asks for: `auto`, `wgpu`, `wgpu:N`, `cuda:N` or `cpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// The first GPU that works, otherwise the CPU.
    #[default]
    Auto,
    /// The N-th adapter of `bayescope doctor`, software rasterisers included; without N the first that works.
    Wgpu(Option<usize>),
    /// The N-th NVIDIA card, through CUDA.
    Cuda(usize),
    /// The processor, in Rust (burn's flex backend).
    Cpu,
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => write!(f, "auto"),
            Self::Wgpu(None) => write!(f, "wgpu"),
            Self::Wgpu(Some(n)) => write!(f, "wgpu:{n}"),
            Self::Cuda(n) => write!(f, "cuda:{n}"),
            Self::Cpu => write!(f, "cpu"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let index = |n: &str| n.parse::<usize>().ok();
        let choice = match text.split_once(':') {
            None => match text {
                "auto" => Some(Self::Auto),
                "wgpu" => Some(Self::Wgpu(None)),
                "cuda" => Some(Self::Cuda(0)),
                "cpu" => Some(Self::Cpu),
                _ => None,
            },
            Some(("wgpu", n)) => index(n).map(|n| Self::Wgpu(Some(n))),
            Some(("cuda", n)) => index(n).map(Self::Cuda),
            Some(_) => None,
        };
        choice.ok_or_else(|| Error::input(format!("'{text}' is no device; use auto, wgpu, wgpu:N, cuda:N or cpu")))
    }
}

impl TryFrom<String> for DeviceChoice {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<DeviceChoice> for String {
    fn from(choice: DeviceChoice) -> String {
        choice.to_string()
    }
}

/// One way to compute on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// What to pass to `--device` for it.
    pub choice: DeviceChoice,
    /// Name of the part.
    pub name: String,
    /// Graphics API and driver, or what computes.
    pub driver: String,
    /// Whether it is a software rasteriser: real, but slower than computing on the CPU directly.
    pub software: bool,
}

impl Candidate {
    /// Name and driver in one line, as it stands beside figures.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.driver)
    }
}

/// The device in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceReport {
    /// What was asked for.
    pub asked: DeviceChoice,
    /// What is used.
    pub used: Candidate,
    /// Why.
    pub reason: String,
}

/// A device that has been tried.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// For burn.
    pub device: Device,
    /// For people.
    pub report: DeviceReport,
    /// Images one pass should hold: enough to fill the device, few enough that a pass stays short.
    pub batch: usize,
}

/// Every way to compute, in the order `auto` tries them.
pub fn candidates() -> Vec<Candidate> {
    let mut all = Vec::new();
    #[cfg(feature = "cuda")]
    all.extend(cuda::candidates());
    #[cfg(feature = "wgpu")]
    all.extend(adapters::candidates());
    all.push(cpu());
    all
}

fn cpu() -> Candidate {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Candidate {
        choice: DeviceChoice::Cpu,
        name: format!("CPU, {cores} core{}", if cores == 1 { "" } else { "s" }),
        driver: "burn flex".into(),
        software: false,
    }
}

/// Chooses a device, trying each candidate with a small computation.
///
/// # Errors
/// When the one that was asked for is missing or fails. `auto` always ends at the CPU.
pub fn choose(asked: DeviceChoice) -> Result<Chosen> {
    if asked == DeviceChoice::Cpu {
        return Ok(chosen(asked, cpu(), connect(asked)?, &[]));
    }
    let mut refused = Vec::new();
    for used in candidates() {
        let wanted = match asked {
            DeviceChoice::Auto if used.software => {
                refused.push(format!("{} is a software rasteriser, the CPU computes faster directly", used.name));
                false
            }
            DeviceChoice::Auto => true,
            DeviceChoice::Wgpu(None) => matches!(used.choice, DeviceChoice::Wgpu(_)),
            exact => used.choice == exact,
        };
        if !wanted {
            continue;
        }
        match connect(used.choice).and_then(|device| probe(&device).map(|()| device)) {
            Ok(device) => return Ok(chosen(asked, used, device, &refused)),
            Err(error) => refused.push(format!("{} does not work ({error})", used.name)),
        }
    }
    let why = if refused.is_empty() { missing(asked).to_owned() } else { refused.join("; ") };
    Err(Error::Device(format!("{asked} cannot be used: {why}. `bayescope doctor` lists what can")))
}

fn missing(asked: DeviceChoice) -> &'static str {
    match asked {
        DeviceChoice::Cuda(_) if cfg!(not(feature = "cuda")) => "this build has no CUDA (build with --features cuda)",
        DeviceChoice::Wgpu(_) if cfg!(not(feature = "wgpu")) => "this build has no wgpu (build with --features wgpu)",
        DeviceChoice::Wgpu(_) => "no such adapter (on Linux, Vulkan drivers such as mesa-vulkan-drivers provide them)",
        _ => "no such device",
    }
}

fn chosen(asked: DeviceChoice, used: Candidate, device: Device, refused: &[String]) -> Chosen {
    let mut reason = match asked {
        DeviceChoice::Auto if used.choice == DeviceChoice::Cpu => "no GPU was found".to_owned(),
        DeviceChoice::Auto => "the first GPU that works".to_owned(),
        _ => "asked for".to_owned(),
    };
    if !refused.is_empty() {
        reason = format!("{reason}; {}", refused.join("; "));
    }
    let batch = if used.choice == DeviceChoice::Cpu || used.software { 32 } else { 256 };
    Chosen { device, report: DeviceReport { asked, used, reason }, batch }
}

/// Devices brought up so far: a runtime can be initialised only once.
static CONNECTED: Mutex<Option<HashMap<DeviceChoice, Device>>> = Mutex::new(None);

fn connect(choice: DeviceChoice) -> Result<Device> {
    let mut connected = CONNECTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let connected = connected.get_or_insert_default();
    if let Some(device) = connected.get(&choice) {
        return Ok(device.clone());
    }
    let device = match choice {
        DeviceChoice::Cpu => Device::flex(),
        #[cfg(feature = "wgpu")]
        DeviceChoice::Wgpu(Some(index)) => adapters::connect(index)?,
        #[cfg(feature = "cuda")]
        DeviceChoice::Cuda(index) => Device::cuda(index),
        other => return Err(Error::Device(missing(other).into())),
    };
    connected.insert(choice, device.clone());
    Ok(device)
}

/// Whether a small matrix product comes out right. A driver that panics inside burn counts as a refusal.
fn probe(device: &Device) -> Result<()> {
    let work = || {
        let a = Tensor::<2>::from_data(TensorData::new(vec![1f32, 2.0, 3.0, 4.0], [2, 2]), device);
        a.clone().matmul(a).try_into_vec_as::<f64>().map_err(|e| Error::Device(e.to_string()))
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(product)) if product == [7.0, 10.0, 15.0, 22.0] => Ok(()),
        Ok(Ok(product)) => Err(Error::Device(format!("a 2×2 matrix product gave {product:?}"))),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(Error::Device("its driver failed on a 2×2 matrix product".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_read_as_they_are_written() {
        for text in ["auto", "wgpu", "wgpu:2", "cuda:1", "cpu"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        for text in ["gpu", "wgpu:x", "cpu:0", ""] {
            assert!(text.parse::<DeviceChoice>().unwrap_err().to_string().contains("auto, wgpu"));
        }
    }

    #[test]
    fn auto_always_ends_somewhere_and_says_why() {
        let chosen = choose(DeviceChoice::Auto).unwrap();
        assert!(!chosen.report.reason.is_empty());
        assert!(!chosen.report.used.software);
    }

    #[test]
    fn a_missing_card_is_an_error_with_a_way_out() {
        let message = choose(DeviceChoice::Cuda(97)).unwrap_err().to_string();
        assert!(message.contains("cuda:97") && message.contains("doctor"), "{message}");
    }
}
