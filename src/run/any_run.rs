//! A run folder of any kind: the kind of experiment in its run.toml says which.

use std::path::Path;

use super::external::{ExternalFolder, ExternalSpec};
use super::files::SPEC;
use super::folder::RunFolder;
use super::hardness::HardnessFolder;
use crate::data::read_text;
use crate::error::{Error, Result};
use crate::experiment::HardnessSpec;

/// A run folder of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyRun {
    /// A grid of classifiers.
    Grid(Box<RunFolder>),
    /// A ranking of corpora.
    Hardness(Box<HardnessFolder>),
    /// A training by another program.
    External(Box<ExternalFolder>),
}

impl AnyRun {
    /// Whether a folder looks like a run.
    pub fn is(path: &Path) -> bool {
        RunFolder::is_run(path) || HardnessFolder::is(path) || ExternalFolder::is(path)
    }

    /// Opens a run folder.
    ///
    /// # Errors
    /// Names the file that is missing or wrong.
    pub fn open(path: &Path) -> Result<Self> {
        let text = read_text(path.join(SPEC)).unwrap_or_default();
        if ExternalSpec::is(&text) {
            return ExternalFolder::open(path).map(Box::new).map(Self::External);
        }
        match HardnessSpec::is(&text) {
            true => HardnessFolder::open(path).map(Box::new).map(Self::Hardness),
            // Says what is wrong with a folder that is no run.
            false => RunFolder::open(path).map(Box::new).map(Self::Grid),
        }
    }

    /// What commands say that carry out a run: an external one is carried out by its own program.
    pub fn external_refusal(folder: &ExternalFolder) -> Error {
        let why = "is an external run: the program that logs its predictions carries it out; `bayescope summary` and `bayescope \
                   watch` read it";
        Error::file(&folder.path, why)
    }
}
