//! The specs that come with the program, and the one a run folder was started with.

use std::path::{Path, PathBuf};

use super::TrainSpec;
use crate::data::read_text;
use crate::error::{Error, Result};

/// Name of the spec inside a run folder.
pub const SPEC: &str = "train.toml";

/// A spec that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    text: &'static str,
}

/// All presets, in the order in which they are offered.
pub const PRESETS: &[Preset] = &[
    Preset { name: "mnist (Glow)", text: include_str!("../../../assets/specs/oracle-mnist.toml") },
    Preset {
        name: "cells (TarFlow, one map for all classes)",
        text: include_str!("../../../assets/specs/oracle-cells.toml"),
    },
    Preset { name: "fashion (Glow)", text: include_str!("../../../assets/specs/oracle-fashion.toml") },
    Preset { name: "animals (TarFlow)", text: include_str!("../../../assets/specs/oracle-animals.toml") },
    Preset {
        name: "AFHQ 256×256, BLC Table 5 (TarFlow)",
        text: include_str!("../../../assets/specs/oracle-afhq256.toml"),
    },
    Preset {
        name: "ImageNet 64×64, BLC Table 5 (TarFlow)",
        text: include_str!("../../../assets/specs/oracle-imagenet64.toml"),
    },
    Preset {
        name: "ImageNet 128×128, BLC Table 5 (TarFlow)",
        text: include_str!("../../../assets/specs/oracle-imagenet128.toml"),
    },
];

impl Preset {
    /// The spec, without a place for the data: every machine has its own.
    ///
    /// # Errors
    /// When the program was built with a broken one.
    pub fn spec(&self) -> Result<TrainSpec> {
        let mut spec: TrainSpec =
            toml::from_str(self.text).map_err(|e| Error::input(format!("preset {}: {e}", self.name)))?;
        spec.data.path = PathBuf::new();
        Ok(spec)
    }
}

impl TrainSpec {
    /// The spec that the run in `folder` was started with; the run resumes with it.
    ///
    /// # Errors
    /// Names the file.
    pub fn of_run(folder: &Path) -> Result<Self> {
        let path = folder.join(SPEC);
        let text = read_text(&path).map_err(|e| Error::io(&path, e))?;
        toml::from_str(&text).map_err(|e| Error::file(&path, e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_whole_and_a_run_finds_its_spec_again() {
        for preset in PRESETS {
            let mut spec = preset.spec().unwrap();
            spec.validate().unwrap();
            assert_eq!(spec.tarflow.is_some(), preset.name.contains("TarFlow"));
            // A relative path is not joined again to the folder of the run.
            spec.data.path = "data/of/mine".into();
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(SPEC), toml::to_string_pretty(&spec).unwrap()).unwrap();
            assert_eq!(TrainSpec::of_run(folder.path()).unwrap(), spec);
        }
        let missing = TrainSpec::of_run(Path::new("/nowhere")).unwrap_err();
        assert!(missing.to_string().contains("/nowhere/train.toml"));
    }
}
