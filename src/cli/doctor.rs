//! `bayescope doctor`.

use serde::Serialize;

use super::print_json;
use crate::device::{Candidate, DeviceChoice, DeviceReport, candidates, choose};
use crate::error::Result;
use crate::oracle::library;

#[derive(Serialize)]
struct Report {
    version: &'static str,
    features: Vec<&'static str>,
    devices: Vec<Candidate>,
    #[serde(rename = "use")]
    used: Option<DeviceReport>,
    problem: Option<String>,
    display: Option<String>,
    settings_folder: Option<String>,
    bundled_oracles: Vec<&'static str>,
}

/// Prints what this machine offers and what will be used.
pub fn run(asked: DeviceChoice, json: bool) -> Result<()> {
    let (used, problem) = match choose(asked) {
        Ok(chosen) => (Some(chosen.report), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let features = [("gui", cfg!(feature = "gui")), ("wgpu", cfg!(feature = "wgpu")), ("cuda", cfg!(feature = "cuda"))];
    let display = ["WAYLAND_DISPLAY", "DISPLAY"].into_iter().find_map(|name| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(format!("{name}={value}"))
    });
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        features: features.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect(),
        devices: candidates(),
        used,
        problem,
        display,
        settings_folder: directories::ProjectDirs::from("", "", "bayescope")
            .map(|dirs| dirs.data_dir().display().to_string()),
        bundled_oracles: library::names(),
    };
    if json { print_json(&report) } else { print(&report) }
}

fn print(report: &Report) -> Result<()> {
    println!("bayescope {} (features: {})", report.version, report.features.join(", "));
    println!("\ndevices, in the order `auto` tries them:");
    for candidate in &report.devices {
        let software = if candidate.software { " [software rasteriser]" } else { "" };
        println!("  {:8} {}{software} — {}", candidate.choice.to_string(), candidate.name, candidate.driver);
    }
    if !report.devices.iter().any(|candidate| matches!(candidate.choice, DeviceChoice::Wgpu(_))) {
        println!("  no graphics adapter: the window needs one (on Debian: apt install mesa-vulkan-drivers)");
    }
    match (&report.used, &report.problem) {
        (Some(used), _) => println!("\nwill use {}: {} ({})", used.used.choice, used.used.name, used.reason),
        (None, problem) => println!("\nwill use nothing: {}", problem.as_deref().unwrap_or("unknown problem")),
    }
    println!(
        "display: {}",
        report.display.as_deref().unwrap_or("none (the window needs one; every command works without)")
    );
    println!("settings: {}", report.settings_folder.as_deref().unwrap_or("no home folder"));
    println!("bundled oracles: {}", report.bundled_oracles.join(", "));
    Ok(())
}
