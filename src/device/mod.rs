//! Which machine computes: a wgpu adapter, CUDA or the CPU. Everything is probed before it is used, and the reason for
//! the choice travels with it.
//!
//! | file | what |
//! |---|---|
//! | `probe`, `adapters`, `cuda` | whether a device computes; those of wgpu and of CUDA |
//! | `table`, `window`, `turns` | the devices brought up so far; the window's own, and whose turn it is there |
//! | `faults`, `persevere`, `batches` | what a failing device looks like; work begun again on the next; halving where memory is short |
//! | `many` | several devices of one machine |
//! | `address`, `remote`, `latency`, `lend` | devices of other machines, and lending ours |
//! | `products` | the number format of matrix products, in training and in drawing images |
//! | `wide` | products whose factors keep their 32 bits, whatever a card's tensor cores would do |
//! | `read`, `wait`, `picture` | the one door through which values come back, and waiting for them; pictures that need not |
//! | `memory` | memory of the host, given back |
//! | `drill` | faults on purpose, for tests |

#[cfg(feature = "wgpu")]
mod adapters;
mod address;
mod batches;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod drill;
mod faults;
mod latency;
#[cfg_attr(not(feature = "remote"), path = "lend_nothing.rs")]
pub mod lend;
mod many;
pub mod memory;
mod persevere;
mod picture;
mod probe;
mod products;
mod read;
#[cfg_attr(not(feature = "remote"), path = "remote_none.rs")]
pub mod remote;
mod table;
#[cfg(feature = "wgpu")]
pub mod turns;
#[cfg(any(feature = "wgpu", feature = "remote"))]
mod wait;
pub mod wide;
#[cfg(feature = "wgpu")]
mod window;

use std::fmt;
use std::str::FromStr;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, caught};
#[cfg(feature = "wgpu")]
pub use adapters::{descriptor, open_adapter};
pub use address::{Address, PORT};
pub use batches::{at_most, bounded, fitting, halving, in_batches, is_for_memory};
pub use faults::{guarded, lost, note, notes};
pub use latency::Latency;
pub use many::{Devices, Hand, spread};
pub use persevere::{Losses, Moved, on_device, persevere};
#[cfg(feature = "wgpu")]
pub use picture::DevicePicture;
pub use picture::{ImageSource, in_place, paints, pictures};
pub use products::Products;
pub use read::{to_host, values_read};
pub use table::{is_gpu, paints_in_software};
#[cfg(feature = "wgpu")]
pub use window::{Lender, keep_apart, lend_window, lose_window, spare_window, window_is_spared, window_lost};

/// For whoever computes on `device`, between two pieces of work: lets a window that shares it go first while that has to
/// (`turns`).
pub fn stand_aside(device: &Device) {
    #[cfg(feature = "wgpu")]
    turns::stand_aside(device);
    #[cfg(not(feature = "wgpu"))]
    let _ = device;
}

/// What the user asks for: `auto`, `wgpu`, `wgpu:N`, `cuda:N`, `cpu`, or another machine's device at `ws://host:port/N`.
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
    /// A device that another machine lends (`bayescope serve`).
    Remote(Address),
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => write!(f, "auto"),
            Self::Wgpu(None) => write!(f, "wgpu"),
            Self::Wgpu(Some(n)) => write!(f, "wgpu:{n}"),
            Self::Cuda(n) => write!(f, "cuda:{n}"),
            Self::Cpu => write!(f, "cpu"),
            Self::Remote(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.contains("://") {
            return text.parse().map(Self::Remote);
        }
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
        choice.ok_or_else(|| {
            Error::input(format!("'{text}' is no device; use auto, wgpu, wgpu:N, cuda:N, cpu or ws://host:port/N"))
        })
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
        return Ok(chosen(asked, cpu(), connect(&cpu())?, &[]));
    }
    if let DeviceChoice::Remote(address) = asked {
        return lent(address);
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
        match tried(&used) {
            Ok(device) => return Ok(chosen(asked, used, device, &refused)),
            Err(error) => refused.push(format!("{} does not work ({error})", used.name)),
        }
    }
    let why = if refused.is_empty() { missing(asked) } else { refused.join("; ") };
    Err(Error::Device(format!("{asked} cannot be used: {why}. `bayescope doctor` lists what can")))
}

/// A device of another machine. It takes as many images a pass as a GPU: every pass costs a few round trips.
fn lent(address: Address) -> Result<Chosen> {
    let asked = DeviceChoice::Remote(address);
    let device = remote::connect(address)?;
    let tried = wide::learn(&device).and_then(|()| probe::probe(&device));
    tried.map_err(|error| Error::Device(format!("{asked} cannot be used: {error}")))?;
    Ok(chosen(asked, remote::candidate(address), device, &[]))
}

/// The same failure, said so that it helps where the cause is that the connection to another machine's device is gone; `on` this
/// one, or on any that was opened.
pub fn explain(error: Error, on: Option<DeviceChoice>) -> Error {
    let on = match on {
        Some(DeviceChoice::Remote(address)) => Some(address),
        Some(_) => return error,
        None => None,
    };
    match error {
        Error::Device(_) => remote::gone(on).unwrap_or(error),
        other => other,
    }
}

fn missing(asked: DeviceChoice) -> String {
    match asked {
        #[cfg(feature = "cuda")]
        DeviceChoice::Cuda(_) => cuda::missing(),
        #[cfg(not(feature = "cuda"))]
        DeviceChoice::Cuda(_) => "this build has no CUDA (build with --features cuda)".into(),
        DeviceChoice::Wgpu(_) if cfg!(not(feature = "wgpu")) => {
            "this build has no wgpu (build with --features wgpu)".into()
        }
        DeviceChoice::Wgpu(_) => {
            "no such adapter (on Linux, Vulkan drivers such as mesa-vulkan-drivers provide them)".into()
        }
        _ => "no such device".into(),
    }
}

fn chosen(asked: DeviceChoice, used: Candidate, device: Device, refused: &[String]) -> Chosen {
    let mut reason = match asked {
        DeviceChoice::Auto if used.choice == DeviceChoice::Cpu => "no GPU was found".to_owned(),
        DeviceChoice::Auto => "the first GPU that works".to_owned(),
        _ => "asked for".to_owned(),
    };
    if paints(&device) {
        reason += "; shared with the window, which paints its pictures where they are made";
    }
    if !refused.is_empty() {
        reason = format!("{reason}; {}", refused.join("; "));
    }
    let batch = if used.choice == DeviceChoice::Cpu || used.software { 32 } else { 256 };
    Chosen { device, report: DeviceReport { asked, used, reason }, batch }
}

/// Has compiled kernels and what was measured of them kept between starts, in the user's cache folder: by default they would be
/// kept where a program is built.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn keep_kernels() {
    use burn_cubecl::cubecl::config::cache::CacheConfig;
    use burn_cubecl::cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    let Some(dirs) = directories::ProjectDirs::from("", "", "bayescope") else { return };
    let mut config = CubeClRuntimeConfig::default().override_from_env();
    config.environment.path = CacheConfig::Directory(dirs.cache_dir().join("kernels"));
    // Once: what is set already stays.
    CubeClRuntimeConfig::try_set(config);
}

/// A device that computes. One that was lost while nobody used it is replaced. A driver may be anything: whatever burn makes of it
/// while it is tried is its failure.
fn tried(used: &Candidate) -> Result<Device> {
    let once = || {
        let device = connect(used)?;
        probe::probe(&device).map(|()| device)
    };
    let tried = caught(|| match once() {
        Err(Error::DeviceLost { .. }) => once(),
        other => other,
    });
    tried.unwrap_or_else(|said| Err(Error::Device(format!("its driver fails: {}", faults::cause(&said)))))
}

fn connect(used: &Candidate) -> Result<Device> {
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    keep_kernels();
    #[cfg(feature = "wgpu")]
    if let DeviceChoice::Wgpu(Some(index)) = used.choice
        && let Some(device) = window::connect(used, index)?
    {
        return Ok(device);
    }
    table::connect(used, || {
        Ok(match used.choice {
            DeviceChoice::Cpu => Device::flex().into(),
            #[cfg(feature = "wgpu")]
            DeviceChoice::Wgpu(Some(index)) => adapters::connect(index)?,
            #[cfg(feature = "cuda")]
            DeviceChoice::Cuda(index) => Device::cuda(index).into(),
            other => return Err(Error::Device(missing(other))),
        })
    })
}

/// Bytes that a device takes in one buffer, where it has a limit.
pub fn largest_buffer(device: &Device) -> Option<u64> {
    #[cfg(feature = "wgpu")]
    return table::ask_of(device, |line| {
        let limits = line.wgpu.as_ref()?.device.limits();
        Some(limits.max_buffer_size.min(limits.max_storage_buffer_binding_size))
    })
    .flatten();
    #[cfg(not(feature = "wgpu"))]
    {
        let _ = device;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_read_as_they_are_written() {
        for text in ["auto", "wgpu", "wgpu:2", "cuda:1", "cpu", "ws://gpu-box:3000", "ws://10.0.0.7:81/3"] {
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
