//! What is said about rankings of corpora.

use std::path::PathBuf;

use crate::experiment::HardnessSpec;

/// Asks for a ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct RankRequest {
    /// Of what; where absent, the folder says.
    pub spec: Option<Box<HardnessSpec>>,
    /// The run folder; what is finished in it stays.
    pub folder: PathBuf,
}

impl RankRequest {
    /// A short name for the list of jobs.
    pub fn title(&self) -> String {
        self.spec
            .as_ref()
            .map_or_else(|| format!("Resume {}", self.folder.display()), |spec| format!("Hardness {}", spec.name))
    }
}
