//! `bayescope doctor`.

use std::time::Duration;

use serde::Serialize;

use super::output::Output;
use super::version::features;
use crate::device::remote::{Answer, round_trip};
use crate::device::{Address, Candidate, DeviceChoice, DeviceReport, Latency, PORT, candidates, choose};
use crate::error::Result;
use crate::oracle::library;

/// Round trips that are measured, and the longest wait for one.
const TRIPS: usize = 20;
const LONGEST: Duration = Duration::from_secs(5);

#[derive(Serialize)]
struct Report {
    version: &'static str,
    features: Vec<&'static str>,
    devices: Vec<Candidate>,
    #[serde(rename = "use")]
    used: Option<DeviceReport>,
    problem: Option<String>,
    /// Small round trips to the machine whose device was asked for: median and longest, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_ms: Option<[f64; 2]>,
    display: Option<String>,
    settings_folder: Option<String>,
    bundled_oracles: Vec<&'static str>,
}

/// Prints what this machine offers and what will be used.
pub fn run(asked: DeviceChoice, output: Output) -> Result<()> {
    let (used, problem) = match choose(asked) {
        Ok(chosen) => (Some(chosen.report), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let latency = match asked {
        DeviceChoice::Remote(address) if used.is_some() => Some(latency(address)),
        _ => None,
    };
    let display = ["WAYLAND_DISPLAY", "DISPLAY"].into_iter().find_map(|name| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(format!("{name}={value}"))
    });
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        features: features(),
        devices: candidates(),
        used,
        problem,
        round_trip_ms: latency.as_ref().and_then(Latency::median_and_worst_ms),
        display,
        settings_folder: directories::ProjectDirs::from("", "", "bayescope")
            .map(|dirs| dirs.data_dir().display().to_string()),
        bundled_oracles: library::names(),
    };
    output.print(&report, |report| print(report, latency.as_ref()))
}

/// Small round trips, one after the other.
fn latency(address: Address) -> Latency {
    let mut latency = Latency::default();
    for _ in 0..TRIPS {
        match round_trip(address, LONGEST) {
            Answer::Came(trip) => latency.add(trip),
            Answer::Open | Answer::Gone(_) => break,
        }
    }
    latency
}

fn print(report: &Report, latency: Option<&Latency>) -> Result<()> {
    println!("bayescope {} (features: {})", report.version, report.features.join(", "));
    println!("\ndevices, in the order `auto` tries them:");
    for candidate in &report.devices {
        let software = if candidate.software { " [software rasteriser]" } else { "" };
        println!("  {:8} {}{software} — {}", candidate.choice.to_string(), candidate.name, candidate.driver);
    }
    let adapters = report.devices.iter().any(|candidate| matches!(candidate.choice, DeviceChoice::Wgpu(_)));
    if cfg!(feature = "gui") && !adapters {
        println!("  no graphics adapter: the window needs one (on Debian: apt install mesa-vulkan-drivers)");
    }
    #[cfg(feature = "cuda")]
    if !report.devices.iter().any(|candidate| matches!(candidate.choice, DeviceChoice::Cuda(_))) {
        println!("  no card through CUDA: {}", crate::device::cuda::missing());
    }
    match (&report.used, &report.problem) {
        (Some(used), _) => println!("\nwill use {}: {} ({})", used.used.choice, used.used.name, used.reason),
        (None, problem) => println!("\nwill use nothing: {}", problem.as_deref().unwrap_or("unknown problem")),
    }
    match latency {
        Some(latency) => println!("round trips there and back: {latency}"),
        None if cfg!(feature = "remote") => println!(
            "another machine's device: --device ws://HOST:{PORT}, once `bayescope serve` lends it there (docs/remote.md)"
        ),
        None => println!("another machine's device: not with this build (build with --features remote)"),
    }
    println!(
        "display: {}",
        report.display.as_deref().unwrap_or("none (the window needs one; every command works without)")
    );
    println!("settings: {}", report.settings_folder.as_deref().unwrap_or("no home folder"));
    println!("bundled oracles: {}", report.bundled_oracles.join(", "));
    Ok(())
}
