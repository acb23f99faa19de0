//! NVIDIA cards through CUDA.

use burn::tensor::{Device, DeviceType};

use super::{Candidate, DeviceChoice};
use crate::error::caught;

pub fn candidates() -> Vec<Candidate> {
    let found = caught(|| Device::enumerate(DeviceType::Cuda).into_vec().len()).unwrap_or(0);
    let card = |i| Candidate {
        choice: DeviceChoice::Cuda(i),
        name: format!("NVIDIA card {i}"),
        driver: "CUDA".into(),
        software: false,
    };
    (0..found).map(card).collect()
}
