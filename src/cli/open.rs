//! An oracle opened on the device and in the precision of a command's arguments.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::args::{Compute, DeviceArg, PrecisionArg};
use super::progress::Bar;
use crate::device::{DeviceChoice, OpenDevice, choose, on_device};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::weights::Weights;
use crate::oracle::folder::{self, OracleInfo};
use crate::oracle::strategies;
use crate::oracle::world::World;

/// Whether `--reproducible` was given.
pub static REPRODUCIBLE: AtomicBool = AtomicBool::new(false);

pub fn reproducible() -> bool {
    REPRODUCIBLE.load(Ordering::Relaxed)
}

/// Whether what `--reproducible` promises holds on a device.
fn keeps_promise(chosen: &OpenDevice) -> Result<()> {
    if !reproducible() {
        return Ok(());
    }
    if chosen.report.used.choice != DeviceChoice::Cpu {
        return Err(Error::input("--reproducible needs --device cpu: other devices add in an order of their own"));
    }
    Ok(())
}

/// An oracle opened for a command.
pub struct Opened {
    /// As it was asked for: the weights are read again by this name.
    pub name: String,
    pub info: OracleInfo,
    pub world: World,
    /// What computes, in words.
    pub device: String,
}

/// Opens an oracle on the device and in the precision asked for.
pub fn open(oracle: &str, compute: &Compute) -> Result<Opened> {
    let (chosen, precision) = suited(compute)?;
    open_on(oracle, chosen, precision)
}

/// Whether it names a file with a class problem, not an oracle.
pub fn is_problem(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e.eq_ignore_ascii_case("json"))
}

/// Opens the oracle that stands where a class problem may stand, too.
pub fn open_or_problem(name: &str) -> Result<Opened> {
    let device = DeviceArg { device: DeviceChoice::Cpu };
    open(name, &Compute { device, precision: PrecisionArg::F32 }).map_err(|error| match error {
        Error::Input(_) => folder::refusal(name, Some("a class problem (PROBLEM.json)")).unwrap_or(error),
        other => other,
    })
}

/// Runs `work` with an oracle opened as asked; where that device is lost, again on the next.
pub fn with_oracle<T>(
    oracle: &str,
    compute: &Compute,
    mut work: impl FnMut(&Opened, &OpenDevice) -> Result<T>,
) -> Result<T> {
    let (chosen, precision) = suited(compute)?;
    on_device(chosen, |chosen| work(&open_on(oracle, chosen.clone(), precision)?, chosen))
}

/// The device and the arithmetic that are asked for.
fn suited(compute: &Compute) -> Result<(OpenDevice, Precision)> {
    let chosen = choose(compute.device.device)?;
    let precision = Precision::from(compute.precision);
    suits(&chosen, precision)?;
    Ok((chosen, precision))
}

pub fn suits(chosen: &OpenDevice, precision: Precision) -> Result<()> {
    if precision == Precision::F64 && chosen.report.used.choice != DeviceChoice::Cpu {
        return Err(Error::input(
            "--precision f64 needs --device cpu: adapters differ in what 64-bit arithmetic they have",
        ));
    }
    Ok(())
}

/// Opens an oracle on a device that is chosen already.
pub fn open_on(oracle: &str, chosen: OpenDevice, precision: Precision) -> Result<Opened> {
    let read = folder::read_watched(oracle, &mut Bar::new("reading"))?;
    open_read(oracle, read, &chosen, precision)
}

/// [`open_on`] without a bar, for one of several devices.
pub fn open_silently(oracle: &str, chosen: OpenDevice, precision: Precision) -> Result<Opened> {
    open_read(oracle, folder::read(oracle)?, &chosen, precision)
}

fn open_read(
    oracle: &str,
    (info, weights): (OracleInfo, Weights),
    chosen: &OpenDevice,
    precision: Precision,
) -> Result<Opened> {
    keeps_promise(chosen)?;
    let world = info.clone().build(weights, &chosen.device, precision, chosen.batch)?.world;
    let device = chosen.report.used.label();
    if !reproducible() {
        strategies::recall(world.flow(), &info.weights_sha256, &device, world.batch().next_power_of_two());
    }
    Ok(Opened { name: oracle.to_owned(), info, world, device })
}
