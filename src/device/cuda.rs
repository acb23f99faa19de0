//! NVIDIA cards through CUDA. Queries without a context go to the driver; burn does the rest.

use burn::tensor::{Device, DeviceType};
use cudarc::driver::{DriverError, result};

use super::choice::{Candidate, DeviceChoice};
use crate::error::caught;

pub fn candidates() -> Vec<Candidate> {
    let found = caught(|| Device::enumerate(DeviceType::Cuda).into_vec().len()).unwrap_or(0);
    let card = |i| Candidate {
        choice: DeviceChoice::Cuda(i),
        name: name(i).unwrap_or_else(|| format!("NVIDIA card {i}")),
        driver: "CUDA".into(),
        software: false,
    };
    (0..found).map(card).collect()
}

fn name(index: usize) -> Option<String> {
    caught(|| {
        result::init()?;
        result::device::get_name(result::device::get(index as i32)?)
    })
    .ok()?
    .ok()
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
}
