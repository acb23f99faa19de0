//! Choosing a device: each candidate is tried before it is used.

use burn::tensor::Device;

use super::address::Address;
use super::avoid::{found_wrong, passed_over, warn_of};
use super::choice::{Candidate, DeviceChoice, DeviceReport, OpenDevice};
#[cfg(feature = "cuda")]
use super::cuda;
use super::picture::paints;
#[cfg(feature = "wgpu")]
use super::{adapters, window};
use super::{fault_injection, faults, full_precision_matmul, probe, registry, remote};
use crate::error::{Error, Result, caught};

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
        place: None,
    }
}

/// Chooses a device, trying each candidate with a small computation.
///
/// # Errors
/// When the one that was asked for is missing or fails. `auto` always ends at the CPU.
pub fn choose(asked: DeviceChoice) -> Result<OpenDevice> {
    if asked == DeviceChoice::Cpu {
        return Ok(chosen(asked, cpu(), connect(&cpu())?, &[]));
    }
    if let DeviceChoice::Remote(address) = asked {
        return open_remote(address);
    }
    let mut refused = Vec::new();
    for used in candidates() {
        let wanted = match asked {
            DeviceChoice::Auto => match passed_over(&used) {
                Some(why) => {
                    refused.push(why);
                    false
                }
                None => true,
            },
            DeviceChoice::Wgpu(None) => matches!(used.choice, DeviceChoice::Wgpu(_)),
            exact => used.choice == exact,
        };
        if !wanted {
            continue;
        }
        match try_candidate(&used) {
            Ok(device) => {
                warn_of(&used);
                refused.extend(found_wrong(&used));
                return Ok(chosen(asked, used, device, &refused));
            }
            Err(error) => refused.push(format!("{} does not work ({error})", used.name)),
        }
    }
    let why = if refused.is_empty() { missing(asked) } else { refused.join("; ") };
    Err(Error::Device(format!("{asked} cannot be used: {why}. `bayescope doctor` lists what can")))
}

/// A device of another machine. A pass costs a few round trips, so it holds as many images as a
/// GPU's.
fn open_remote(address: Address) -> Result<OpenDevice> {
    let asked = DeviceChoice::Remote(address);
    let device = remote::connect(address)?;
    let tried = full_precision_matmul::learn(&device).and_then(|()| probe::probe(&device));
    tried.map_err(|error| Error::Device(format!("{asked} cannot be used: {error}")))?;
    Ok(chosen(asked, Candidate::lent(address), device, &[]))
}

fn missing(asked: DeviceChoice) -> String {
    match asked {
        #[cfg(feature = "cuda")]
        DeviceChoice::Cuda(_) => cuda::missing(),
        #[cfg(not(feature = "cuda"))]
        DeviceChoice::Cuda(_) => "this build has no CUDA (build with --features cuda)".into(),
        #[cfg(not(feature = "wgpu"))]
        DeviceChoice::Wgpu(_) => "this build has no wgpu (build with --features wgpu)".into(),
        #[cfg(feature = "wgpu")]
        DeviceChoice::Wgpu(_) => adapters::none(),
        _ => "no such device".into(),
    }
}

fn chosen(asked: DeviceChoice, used: Candidate, device: Device, refused: &[String]) -> OpenDevice {
    let mut reason = match asked {
        DeviceChoice::Auto if used.choice == DeviceChoice::Cpu && refused.is_empty() => "no GPU was found".to_owned(),
        DeviceChoice::Auto if used.choice == DeviceChoice::Cpu => "no GPU that can be used".to_owned(),
        DeviceChoice::Auto => "the first GPU that works".to_owned(),
        _ => "asked for".to_owned(),
    };
    if fault_injection::are_small() && matches!(used.choice, DeviceChoice::Wgpu(_)) {
        reason += ", with the limits of a small card";
    }
    if paints(&device) {
        reason += "; shared with the window, which paints its pictures where they are made";
    }
    if !refused.is_empty() {
        reason = format!("{reason}; {}", refused.join("; "));
    }
    let batch = if used.choice == DeviceChoice::Cpu || used.software { 32 } else { 256 };
    OpenDevice { device, report: DeviceReport { asked, used, reason }, batch }
}

/// Keeps compiled kernels and their measurements between starts in the user's cache folder. The
/// default is the folder in which a program is built.
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

/// A device that computes. A device that was lost while idle is replaced. A panic of burn or of the
/// driver counts as a failure of the driver.
fn try_candidate(used: &Candidate) -> Result<Device> {
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
    registry::connect(used, || {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_always_ends_somewhere_and_says_why() {
        let chosen = choose(DeviceChoice::Auto).unwrap();
        assert!(!chosen.report.reason.is_empty());
        assert!(!chosen.report.used.software);
    }

    #[test]
    fn a_gpu_that_was_refused_counts_as_found() {
        let reason =
            |refused: &[String]| chosen(DeviceChoice::Auto, cpu(), connect(&cpu()).unwrap(), refused).report.reason;
        assert_eq!(reason(&[]), "no GPU was found");
        assert_eq!(reason(&["it does not work".to_owned()]), "no GPU that can be used; it does not work");
    }

    #[test]
    fn a_missing_card_is_an_error_with_a_way_out() {
        let message = choose(DeviceChoice::Cuda(97)).unwrap_err().to_string();
        assert!(message.contains("cuda:97") && message.contains("doctor"), "{message}");
    }
}
