//! The spec that a command names: a file, or one that comes with the program.

use std::path::Path;

use crate::data::read_text;
use crate::error::{Error, Result, did_you_mean};
use crate::experiment::{ExperimentSpec, HARDNESS_PRESETS, HardnessSpec, PRESETS, Preset};

/// What a spec asks for.
pub enum Spec {
    /// A grid of classifiers.
    Grid(Box<ExperimentSpec>),
    /// A ranking of corpora.
    Hardness(Box<HardnessSpec>),
}

/// Whether this is the name of a spec that comes with the program.
pub fn is_preset(spec: &Path) -> bool {
    PRESETS.iter().chain(HARDNESS_PRESETS).any(|preset| Path::new(preset.name) == spec)
}

/// Reads a spec. Relative paths start at the folder of its file, else at the present one.
pub fn read_spec(spec: &Path) -> Result<Spec> {
    let shipped = |presets: &'static [Preset]| {
        presets.iter().find(|preset| Path::new(preset.name) == spec).filter(|_| !spec.is_file())
    };
    if let Some(preset) = shipped(&PRESETS) {
        return Ok(Spec::Grid(Box::new(preset.spec()?.relative_to(Path::new(""))?)));
    }
    if let Some(preset) = shipped(HARDNESS_PRESETS) {
        return Ok(Spec::Hardness(Box::new(preset.hardness()?.relative_to(Path::new(""))?)));
    }
    if !spec.exists() {
        let names = PRESETS.iter().chain(HARDNESS_PRESETS).map(|preset| preset.name);
        let meant = did_you_mean(&spec.to_string_lossy(), names);
        let cause = format!(
            "there is no such file, and no spec of that name comes with the program{meant}; `bayescope plan` lists them"
        );
        return Err(Error::file(spec, cause));
    }
    let text = read_text(spec).map_err(|e| Error::io(spec, e))?;
    Ok(match HardnessSpec::is(&text) {
        true => Spec::Hardness(Box::new(HardnessSpec::read(spec)?)),
        false => Spec::Grid(Box::new(ExperimentSpec::read(spec)?)),
    })
}
