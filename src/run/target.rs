//! A spec that asks for a Bayes error gets its τ before its cells are planned.

use std::path::Path;

use super::files::SPEC;
use super::folder::RunFolder;
use crate::data::read_toml;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::experiment::{ExperimentSpec, find_tau};
use crate::oracle::world::World;
use crate::units::{Seed, Tau};

/// The spec with the τ of its target: that of the run in the folder where it was planned already, otherwise
/// found now and recorded as `world.found`. A spec without a target stays as it is. `kept` names the weights
/// and the device of the world.
///
/// # Errors
/// As [`find_tau`]; when the prior does not fit, or the folder cannot be read.
pub fn with_tau(
    path: &Path,
    spec: &ExperimentSpec,
    world: &World,
    kept: (&str, &str),
    events: &mut dyn Events<Progress>,
) -> Result<ExperimentSpec> {
    let Some(target) = spec.world.target.filter(|_| spec.world.found.is_none()) else { return Ok(spec.clone()) };
    if RunFolder::is_run(path) {
        let planned = RunFolder::open(path)?.spec;
        // Another run is refused where this one is planned.
        if asked(&planned) == *spec {
            return Ok(planned);
        }
    }
    let settings = spec.world.settings(world.class_names().len())?;
    let seed = Seed(spec.world.seed).split("target");
    let (tau, found) = find_tau(target, (world, &settings), seed, kept, events)?;
    let mut settled = spec.clone();
    (settled.world.tau, settled.world.found) = (tau, Some(found));
    forget_unplanned(path, spec)?;
    Ok(settled)
}

/// What was asked for, before τ was found.
fn asked(spec: &ExperimentSpec) -> ExperimentSpec {
    let mut asked = spec.clone();
    if asked.world.found.take().is_some() {
        asked.world.tau = Tau::ONE;
    }
    asked
}

/// Removes the spec that was written into a folder before there was a plan, if it is this one: that with τ
/// takes its place.
fn forget_unplanned(path: &Path, spec: &ExperimentSpec) -> Result<()> {
    let file = path.join(SPEC);
    let written = read_toml::<ExperimentSpec>(&file).ok();
    match written.is_some_and(|written| written == *spec) && !RunFolder::is_run(path) {
        true => std::fs::remove_file(&file).map_err(|e| Error::io(&file, e)),
        false => Ok(()),
    }
}
