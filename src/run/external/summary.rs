//! What an external run says as a whole.

use serde::{Deserialize, Serialize};

use super::course::Course;
use super::record::Misnamed;
use super::refused::Refused;
use super::spec::{ExternalFolder, ExternalSpec};
use super::step::StepFigures;
use crate::error::Result;
use crate::measure::Measured;

/// An external run: its steps, and all figures of the last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExternalSummary {
    /// What it is.
    pub spec: ExternalSpec,
    /// Whether its writer has said that nothing more comes.
    pub finished: bool,
    /// Records in the folder.
    pub records: usize,
    /// Of how many records one is read, but for the last.
    pub every: usize,
    /// Records that are no predictions on the test images.
    pub refused: Vec<Refused>,
    /// Files that are no records by their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misnamed: Option<Misnamed>,
    /// Every step that was read.
    pub steps: Vec<StepFigures>,
    /// The last of them, with bootstrap intervals, as the figures of a trained cell.
    pub last: Option<Measured>,
}

impl ExternalFolder {
    /// Reads all records and says what they say; returns their course too.
    ///
    /// # Errors
    /// Names what cannot be read.
    pub fn summary(&self) -> Result<(ExternalSummary, Course)> {
        let course = self.look(None, usize::MAX)?;
        if course.count() == 0 {
            // Nothing was measured on the test images: that there are none would go unseen.
            self.truth()?;
        }
        let last = course.steps().next_back().map(|last| self.measured(last.step)).transpose()?;
        let summary = ExternalSummary {
            spec: self.spec.clone(),
            finished: course.finished,
            records: course.records,
            every: course.every,
            refused: course.refused(),
            misnamed: course.misnamed.clone(),
            steps: course.steps().collect(),
            last,
        };
        Ok((summary, course))
    }
}

impl ExternalSummary {
    /// The step with the smallest KL.
    pub fn best(&self) -> Option<&StepFigures> {
        StepFigures::best(&self.steps)
    }
}
