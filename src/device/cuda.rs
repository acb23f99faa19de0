//! NVIDIA cards through CUDA. Queries without a context go to the driver; burn does the rest.

use burn::tensor::{Device, DeviceType};
use cudarc::driver::sys::{CUdevice, CUuuid};
use cudarc::driver::{DriverError, result};

use super::choice::{Candidate, DeviceChoice};
use crate::error::caught;

pub fn candidates() -> Vec<Candidate> {
    let found = caught(|| Device::enumerate(DeviceType::Cuda).into_vec().len()).unwrap_or(0);
    let driver = if found > 0 { driver() } else { String::new() };
    let card = |i| {
        let choice = DeviceChoice::Cuda(i);
        Candidate {
            choice,
            name: of_card(i, result::device::get_name).unwrap_or_else(|| format!("NVIDIA card {i}")),
            driver: driver.clone(),
            software: false,
            place: Some(of_card(i, result::device::get_uuid).map_or_else(|| choice.to_string(), |uuid| hex(&uuid))),
        }
    };
    (0..found).map(card).collect()
}

/// What the driver answers about a card, if it does.
fn of_card<T>(index: usize, ask: fn(CUdevice) -> Result<T, DriverError>) -> Option<T> {
    caught(|| {
        result::init()?;
        ask(result::device::get(index as i32)?)
    })
    .ok()?
    .ok()
}

/// A card's UUID, as 32 hexadecimal digits.
fn hex(uuid: &CUuuid) -> String {
    let bytes = uuid.bytes.iter().flat_map(|byte| byte.to_ne_bytes());
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// CUDA, with the version of the driver where the system tells it (Linux): cudarc has no safe call for it.
fn driver() -> String {
    let told = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    version(&told).map_or_else(|| "CUDA".to_owned(), |version| format!("CUDA · NVIDIA {version}"))
}

/// The version in what the kernel module says of itself, such as `NVRM version: NVIDIA UNIX x86_64 Kernel
/// Module  550.54.14  Thu Feb 22 …`.
fn version(told: &str) -> Option<&str> {
    let numbers = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    told.lines().next()?.split_whitespace().find(numbers)
}

/// Why a card is not there. Kernels are compiled by the program itself: of NVIDIA's software it
/// needs the driver alone.
pub fn missing() -> String {
    let in_words = |error: DriverError| {
        error.error_string().map_or_else(|_| error.to_string(), |words| words.to_string_lossy().into_owned())
    };
    // The first call loads the driver's library, and panics where there is none.
    match caught(|| result::init().and_then(|()| result::device::get_count()).map_err(in_words)) {
        Err(_) => {
            "NVIDIA's driver is not installed (its library, libcuda, is not found); no CUDA toolkit is needed".into()
        }
        Ok(Err(words)) => format!("NVIDIA's driver answers '{words}'"),
        Ok(Ok(0)) => "NVIDIA's driver knows of no card".into(),
        Ok(Ok(1)) => "NVIDIA's driver knows of one card, cuda:0".into(),
        Ok(Ok(cards)) => format!("NVIDIA's driver knows of {cards} cards, the last is cuda:{}", cards - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::choose;

    #[test]
    fn a_card_that_is_not_there_is_asked_for_with_a_reason() {
        let message = choose(DeviceChoice::Cuda(97)).unwrap_err().to_string();
        assert!(message.contains("cuda:97") && message.contains("NVIDIA's driver"), "{message}");
        assert_eq!(candidates().is_empty(), !missing().contains("cuda:"), "{}", missing());
    }

    #[test]
    fn the_drivers_version_is_read_of_either_kernel_module() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\nGCC version: 12.3.0";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build";
        assert_eq!((version(closed), version(open)), (Some("535.54.03"), Some("550.54.14")));
        assert_eq!(version(""), None);
    }
}
