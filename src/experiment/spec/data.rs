//! Which dataset an experiment takes its images from.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::in_folder;
use crate::error::Result;
use crate::flow::preprocess::Dequantisation;

/// Images in place of the world's own: whatever [`crate::data::open_split`] reads, with labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// A dataset folder, an npz archive, or labelled 8-bit images.
    pub train: PathBuf,
    /// The test images; otherwise the test split of `train`, else samples of the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// How 8-bit images become real numbers: `seed:N`, `midpoint`, `levels` or `mean:R`. A classifier
    /// sees the first draw. Where nothing is said `seed:0`, and `levels` for pictures that hold the world's noise.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "Dequantisation::serialize_text",
        deserialize_with = "Dequantisation::deserialize_text"
    )]
    pub dequantise: Option<Dequantisation>,
}

impl DataSpec {
    /// The same, its relative paths taken from a folder: a run may be resumed from anywhere.
    ///
    /// # Errors
    /// When the present folder cannot be told.
    pub fn relative_to(&self, folder: &Path) -> Result<Self> {
        let place = |path: &PathBuf| in_folder(folder, path);
        Ok(Self {
            train: place(&self.train)?,
            test: self.test.as_ref().map(place).transpose()?,
            dequantise: self.dequantise,
        })
    }
}
