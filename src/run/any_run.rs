//! A run folder of any kind: the kind of experiment in its run.toml says which.

use std::path::Path;

use super::folder::RunFolder;
use super::hardness::HardnessFolder;
use crate::error::Result;

/// A run folder of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyRun {
    /// A grid of classifiers.
    Grid(Box<RunFolder>),
    /// A ranking of corpora.
    Hardness(Box<HardnessFolder>),
}

impl AnyRun {
    /// Whether a folder looks like a run.
    pub fn is(path: &Path) -> bool {
        RunFolder::is_run(path) || HardnessFolder::is(path)
    }

    /// Opens a run folder.
    ///
    /// # Errors
    /// Names the file that is missing or wrong.
    pub fn open(path: &Path) -> Result<Self> {
        match HardnessFolder::is(path) {
            true => HardnessFolder::open(path).map(Box::new).map(Self::Hardness),
            false => RunFolder::open(path).map(Box::new).map(Self::Grid),
        }
    }
}
