//! The specs that come with the program.

use serde::de::DeserializeOwned;

use super::hardness::HardnessSpec;
use super::spec::ExperimentSpec;
use crate::error::{Error, Result};

/// A spec that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    pub(super) text: &'static str,
}

/// All of them: those whose names end in `quick` are for a few minutes on two cores.
pub const PRESETS: &[Preset] = &[
    Preset { name: "scaling-quick", text: include_str!("../../assets/specs/scaling-quick.toml") },
    Preset { name: "scaling", text: include_str!("../../assets/specs/scaling.toml") },
    Preset { name: "self-validation-quick", text: include_str!("../../assets/specs/self-validation-quick.toml") },
    Preset { name: "self-validation", text: include_str!("../../assets/specs/self-validation.toml") },
    Preset { name: "temperature-quick", text: include_str!("../../assets/specs/temperature-quick.toml") },
    Preset { name: "temperature", text: include_str!("../../assets/specs/temperature.toml") },
    Preset { name: "soft-labels-quick", text: include_str!("../../assets/specs/soft-labels-quick.toml") },
    Preset { name: "soft-labels", text: include_str!("../../assets/specs/soft-labels.toml") },
    Preset { name: "shift-quick", text: include_str!("../../assets/specs/shift-quick.toml") },
    Preset { name: "shift", text: include_str!("../../assets/specs/shift.toml") },
    Preset { name: "active-learning-quick", text: include_str!("../../assets/specs/active-learning-quick.toml") },
    Preset { name: "active-learning", text: include_str!("../../assets/specs/active-learning.toml") },
    Preset { name: "graders-quick", text: include_str!("../../assets/specs/graders-quick.toml") },
    Preset { name: "graders", text: include_str!("../../assets/specs/graders.toml") },
];

impl Preset {
    /// The spec.
    ///
    /// # Errors
    /// When the program was built with a broken one.
    pub fn spec(&self) -> Result<ExperimentSpec> {
        self.read(ExperimentSpec::validate)
    }

    /// The spec, if it is one of [`super::HARDNESS_PRESETS`]; its paths are relative.
    ///
    /// # Errors
    /// When the program was built with a broken one.
    pub fn hardness(&self) -> Result<HardnessSpec> {
        self.read(HardnessSpec::validate)
    }

    fn read<T: DeserializeOwned>(&self, validate: impl Fn(&T) -> Result<()>) -> Result<T> {
        let broken = |e: String| Error::input(format!("spec {}: {e}", self.name));
        let spec: T = toml::from_str(self.text).map_err(|e| broken(e.to_string()))?;
        validate(&spec).map_err(|e| broken(e.to_string()))?;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_the_program_can_be_run() {
        for preset in PRESETS {
            let spec = preset.spec().unwrap();
            assert_eq!(spec.name, preset.name);
            assert!(spec.description.is_some());
        }
    }
}
