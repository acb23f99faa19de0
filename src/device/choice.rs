//! Names of devices, and a device in use.

use std::fmt;
use std::str::FromStr;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::address::Address;
use crate::error::{Error, Result};

/// What the user asks for: `auto`, `wgpu`, `wgpu:N`, `cuda:N`, `cpu`, or another machine's device
/// at `ws://host:port/N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// The first GPU that works, otherwise the CPU.
    #[default]
    Auto,
    /// The N-th adapter of `bayescope doctor`, software ones included; without N the first that
    /// works.
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
    /// What tells a card of this machine from another of the same name: its address on the PCI bus, its
    /// UUID, or its number where the driver knows neither. None of the processor and of what others lend.
    #[serde(skip)]
    pub place: Option<String>,
}

impl Candidate {
    /// Another machine's device, as far as the protocol tells: it has no place for a name.
    pub fn lent(address: Address) -> Self {
        Self {
            choice: DeviceChoice::Remote(address),
            name: format!("device {} of {}", address.device(), address.host()),
            driver: "another machine, over WebSocket".into(),
            software: false,
            place: None,
        }
    }

    /// Name and driver in one line.
    pub fn label(&self) -> String {
        format!("{} ({})", self.name, self.driver)
    }

    /// What a verdict on it is remembered by: the label, and the place where there is one.
    pub fn key(&self) -> String {
        match &self.place {
            Some(place) => format!("{} at {place}", self.label()),
            None => self.label(),
        }
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
pub struct OpenDevice {
    /// For burn.
    pub device: Device,
    /// For people.
    pub report: DeviceReport,
    /// Images one pass should hold: enough to fill the device, few enough that a pass stays short.
    pub batch: usize,
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
}
