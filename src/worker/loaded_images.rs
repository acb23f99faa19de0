//! Images from outside on their way from a thread that reads.

use super::protocol::JobId;
use crate::data::ImageShape;
use crate::experiment::WorstImage;
use crate::oracle::classify::ExternalImages;
use crate::oracle::world::Settings;

/// Images on their way from a thread that reads, and the job they are the answer of.
pub struct LoadedImages {
    pub id: JobId,
    /// Their world (`OracleInfo::world_id`).
    pub world: String,
    pub shape: ImageShape,
    /// The knobs they are to be shown at.
    pub settings: Settings,
    pub images: ExternalImages,
    /// What a classifier says of each; empty where none was asked.
    pub verdicts: Vec<WorstImage>,
}
