//! The specs that come with the program.

use serde::de::DeserializeOwned;

use super::spec::ExperimentSpec;
use crate::error::{Error, Result};

/// A spec that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name. Those that end in `quick` take a few minutes on two cores.
    pub name: &'static str,
    pub(super) text: &'static str,
}

/// The spec of this name in `assets/specs`.
macro_rules! preset {
    ($name:literal) => {
        $crate::experiment::Preset {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/specs/", $name, ".toml")),
        }
    };
}
pub(super) use preset;

impl Preset {
    /// The spec.
    ///
    /// # Errors
    /// When the program was built with a broken one.
    pub fn spec(&self) -> Result<ExperimentSpec> {
        self.read(ExperimentSpec::validate)
    }

    pub(super) fn read<T: DeserializeOwned>(&self, validate: impl Fn(&T) -> Result<()>) -> Result<T> {
        let broken = |e: String| Error::input(format!("spec {}: {e}", self.name));
        let spec: T = toml::from_str(self.text).map_err(|e| broken(e.to_string()))?;
        validate(&spec).map_err(|e| broken(e.to_string()))?;
        Ok(spec)
    }
}
