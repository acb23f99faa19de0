//! What verification found of the devices of this machine, kept from one start to the next: `auto`
//! avoids those that compute wrongly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checks::{Row, Verdict};
use super::report::Report;
use crate::data::{read_json, write_json};
use crate::device::{DeviceChoice, avoid, fault_injection};
use crate::error::{Error, Result};

/// A device that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Failed {
    /// Version of this program: another may have other kernels.
    version: String,
    /// The first check that failed.
    check: String,
}

/// By name, driver and place ([`Candidate::key`](crate::device::Candidate::key)): another version of the
/// driver is another device, and so is a second card of the same name. Entries without a place are of an
/// older program and hold for every card of that name and driver.
type Devices = BTreeMap<String, Failed>;

fn file() -> Option<PathBuf> {
    let dirs = directories::ProjectDirs::from("", "", "bayescope")?;
    Some(dirs.data_dir().join("devices-that-failed.json"))
}

/// Tells `auto` which devices failed before. What cannot be read is logged: the program works
/// without.
pub fn recall() {
    let Some(path) = file() else { return };
    match known(&path) {
        Ok(devices) => avoid(reasons(&devices)),
        Err(error) => tracing::warn!("which devices failed verification is not known: {error}"),
    }
}

/// Remembers what a report says of a graphics device of this machine. Nothing is remembered of one
/// whose limits were lowered on purpose.
pub fn remember(report: &Report, all_cases: bool) {
    let Some(path) = file().filter(|_| !fault_injection::are_small()) else { return };
    match noted(&path, report, all_cases) {
        Ok(Some(devices)) => avoid(reasons(&devices)),
        Ok(None) => {}
        Err(error) => tracing::warn!("the verdict on this device is not kept: {error}"),
    }
}

fn reasons(devices: &Devices) -> BTreeMap<String, String> {
    devices.iter().map(|(device, failed)| (device.clone(), failed.check.clone())).collect()
}

/// Devices that failed with this version of the program. A file that says nothing is moved aside, so that
/// the next verdict can be kept.
fn known(path: &Path) -> Result<Devices> {
    let read = read_json(path).or_else(|error| match error {
        Error::File { .. } => set_aside(path, &error).map(|()| None),
        error => Err(error),
    });
    let mut devices: Devices = read?.unwrap_or_default();
    devices.retain(|_, failed| failed.version == env!("CARGO_PKG_VERSION"));
    Ok(devices)
}

/// Renames a file that cannot be read; an older one of that kind makes room for it.
fn set_aside(path: &Path, error: &Error) -> Result<()> {
    let aside = path.with_extension("json.broken");
    std::fs::rename(path, &aside).map_err(|e| Error::io(path, e))?;
    tracing::warn!("{error}. It was moved to {}; verify the graphics devices again", aside.display());
    Ok(())
}

/// Whether a row says that the device computes wrongly. Where tensor cores round factors, how far that
/// takes a classifier has not been measured on a card: a number beyond the bound is told, and no more.
fn is_wrong(row: &Row) -> bool {
    row.verdict == Verdict::Failed && !(row.rounded && row.error.is_some_and(f64::is_finite))
}

/// Notes a report in the file, and returns what it says then; `None` where nothing changes. Any
/// failure counts ([`is_wrong`]), and only all cases together clear a device.
fn noted(path: &Path, report: &Report, all_cases: bool) -> Result<Option<Devices>> {
    let Some(used) = &report.used else { return Ok(None) };
    if !matches!(used.used.choice, DeviceChoice::Wgpu(_) | DeviceChoice::Cuda(_)) {
        return Ok(None);
    }
    let (key, mut devices) = (used.used.key(), known(path)?);
    let before = devices.clone();
    match report.rows.iter().find(|row| is_wrong(row)) {
        Some(row) => {
            let check = format!("{}, {}", row.case, row.check);
            devices.insert(key, Failed { version: env!("CARGO_PKG_VERSION").into(), check });
        }
        None if all_cases && report.passed => {
            devices.retain(|device, _| *device != key && *device != used.used.label())
        }
        None => {}
    }
    if devices == before {
        return Ok(None);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    }
    write_json(path, &devices)?;
    Ok(Some(devices))
}

#[cfg(test)]
mod tests {
    use super::super::checks::Checks;
    use super::*;
    use crate::device::{Candidate, DeviceReport};

    fn report(choice: DeviceChoice, error: f64) -> Report {
        report_of(choice, "0000:01:00.0", error)
    }

    fn report_of(choice: DeviceChoice, place: &str, error: f64) -> Report {
        report_with(choice, place, error, false)
    }

    fn report_with(choice: DeviceChoice, place: &str, error: f64, rounded: bool) -> Report {
        let mut checks = Checks::of("glow");
        checks.rounded(rounded);
        checks.at_most("log p(x|y)", error, 1e-3);
        let (name, driver, place) = ("a card".into(), "vulkan · 1.0".into(), Some(place.into()));
        let used = Candidate { choice, name, driver, software: false, place };
        let used = Some(DeviceReport { asked: choice, used, reason: "asked for".into() });
        let report = Report {
            format: super::super::report::FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            system: String::new(),
            instructions: "avx2",
            asked: choice,
            used,
            rows: checks.rows(),
            notes: Vec::new(),
            seconds: 0.0,
            passed: false,
            sentence: String::new(),
        };
        report.judged()
    }

    #[test]
    fn a_device_that_failed_is_kept_until_it_passes_all_cases() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not yet/devices.json");
        let card = DeviceChoice::Wgpu(Some(0));
        assert_eq!(noted(&path, &report(card, 1e-4), true).unwrap(), None);
        assert!(!path.exists());
        let found = noted(&path, &report(card, 1.0), false).unwrap().unwrap();
        let told =
            BTreeMap::from([("a card (vulkan · 1.0) at 0000:01:00.0".to_owned(), "glow, log p(x|y)".to_owned())]);
        assert_eq!(reasons(&found), told);
        // It is there at the next start; some cases clear nobody, and the processor is nobody's concern.
        assert_eq!(known(&path).unwrap(), found);
        assert_eq!(noted(&path, &report(card, 1e-4), false).unwrap(), None);
        assert_eq!(noted(&path, &report(DeviceChoice::Cpu, 1.0), true).unwrap(), None);
        assert!(noted(&path, &report(card, 1e-4), true).unwrap().unwrap().is_empty());
        assert!(known(&path).unwrap().is_empty());
    }

    #[test]
    fn a_card_that_passes_does_not_clear_its_twin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("devices.json");
        let [bad, good] = [0, 1].map(|i| DeviceChoice::Wgpu(Some(i)));
        let found = noted(&path, &report(bad, 1.0), true).unwrap().unwrap();
        assert_eq!(noted(&path, &report_of(good, "0000:02:00.0", 1e-4), true).unwrap(), None);
        assert_eq!(known(&path).unwrap(), found);
        // What is known of any card of that name is known of none once one of them passes.
        let old = found.into_values().map(|failed| ("a card (vulkan · 1.0)".to_owned(), failed)).collect::<Devices>();
        write_json(&path, &old).unwrap();
        assert!(noted(&path, &report(bad, 1e-4), true).unwrap().unwrap().is_empty());
    }

    #[test]
    fn what_tensor_cores_round_is_no_verdict_but_a_missing_number_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("devices.json");
        let rounded = |error| report_with(DeviceChoice::Cuda(0), "a UUID", error, true);
        assert!(!rounded(1.0).passed);
        assert_eq!(noted(&path, &rounded(1.0), true).unwrap(), None);
        assert_eq!(noted(&path, &rounded(f64::NAN), true).unwrap().unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_says_nothing_is_moved_aside_and_the_next_verdict_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("devices.json");
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), b"{torn").unwrap();
        assert_eq!(noted(&path, &report(DeviceChoice::Wgpu(Some(0)), 1.0), true).unwrap().unwrap().len(), 1);
        assert_eq!(known(&path).unwrap().len(), 1);
        assert_eq!(std::fs::read(path.with_extension("json.broken")).unwrap(), b"{torn");
    }

    #[test]
    fn what_another_version_found_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("devices.json");
        let failed = |version: &str| Failed { version: version.into(), check: "glow, z".into() };
        let both = [("old", "0.0.1"), ("new", env!("CARGO_PKG_VERSION"))];
        let devices: Devices = both.into_iter().map(|(name, version)| (name.into(), failed(version))).collect();
        write_json(&path, &devices).unwrap();
        assert_eq!(known(&path).unwrap().into_keys().collect::<Vec<_>>(), ["new"]);
    }
}
