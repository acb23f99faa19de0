//! What a run folder holds: told by the kind of experiment in its run.toml.

use std::path::Path;

use super::folder::RunFolder;
use super::hardness::HardnessFolder;
use crate::error::Result;

/// A run folder of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// A grid of classifiers.
    Grid(Box<RunFolder>),
    /// A ranking of corpora.
    Hardness(Box<HardnessFolder>),
}

impl Held {
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
