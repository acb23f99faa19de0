//! What is written down about the images of a dataset, and said of them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::classes::Mapped;
use crate::experiment::cell::Cell;
use crate::flow::preprocess::Dequantisation;

/// Share of a dataset up to which what two seeds have in common is not worth a word.
const SHARED: f64 = 0.1;

/// What is written down about the images of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataRecord {
    /// Those to train on.
    pub train: PartRecord,
    /// Those to measure on; absent where they are samples of the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PartRecord>,
    /// Whether cells are measured on samples of the world, and on `test` beside them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub both: bool,
}

/// What is written down about one part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartRecord {
    /// File or folder.
    pub path: String,
    /// Images there are.
    pub images: usize,
    /// SHA-256 of all that is taken from it: kind, shape and stored values of the images (padded,
    /// if pixels), labels, and log-likelihoods where they are used.
    pub sha256: String,
    /// How 8-bit pixels become world-space x; absent where x is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dequantisation: Option<Dequantisation>,
    /// Number of the first image in the noise: 0 of training images, and of test images as older versions took them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub noise_from: usize,
    /// What is to be said of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How its classes became those of the world.
    pub classes: Mapped,
    /// Whether `dataset.json` proves that these are samples of this world at this τ, π and T.
    pub of_this_world: bool,
}

fn is_zero(first: &usize) -> bool {
    *first == 0
}

impl PartRecord {
    fn describe(&self) -> String {
        let Self { path, images, dequantisation, of_this_world, .. } = self;
        let kind = match (dequantisation, of_this_world) {
            (Some(how), _) => format!("8-bit images {}", how.describe()),
            (None, true) => "images of this world at this τ, class prior and T, by their dataset.json".into(),
            (None, false) => "world-space images".into(),
        };
        format!("{path} ({images} {kind})")
    }
}

impl DataRecord {
    /// What has to be said beside figures of cells on these images.
    pub fn sentences<'a>(&self, cells: impl IntoIterator<Item = &'a Cell>) -> Vec<String> {
        let from = format!("training images: a random part of {}", self.train.describe());
        let from = if self.both { format!("real {from}") } else { from };
        let of = |what: &str, part: &PartRecord| part.note.as_ref().map(|note| format!("{what} images: {note}"));
        let of_train = of("training", &self.train);
        let of_test = self.test.as_ref().and_then(|test| of("test", test));
        [Some(from), of_train, self.shared(cells), Some(self.tested()), of_test].into_iter().flatten().collect()
    }

    /// The same without what is to be said: no number depends on it, and a record beside the images may have gone since.
    #[must_use]
    pub fn without_notes(&self) -> Self {
        let bare = |part: &PartRecord| PartRecord { note: None, ..part.clone() };
        Self { train: bare(&self.train), test: self.test.as_ref().map(bare), both: self.both }
    }

    /// What seeds have in common, each of which takes its images from one finite dataset.
    fn shared<'a>(&self, cells: impl IntoIterator<Item = &'a Cell>) -> Option<String> {
        let (mut seeds, mut n) = (BTreeSet::new(), 0);
        for cell in cells {
            seeds.insert(cell.seed);
            n = n.max(cell.train_size);
        }
        let share = n as f64 / self.train.images as f64;
        if seeds.len() < 2 || share <= SHARED {
            return None;
        }
        Some(if n >= self.train.images {
            format!(
                "at N = {n} all seeds have the same training images, so that intervals over seeds are of start and order alone \
                 there"
            )
        } else {
            format!(
                "seeds share training images, at N = {n} about {:.0} % of them, so that intervals over seeds are too narrow for \
                 other images",
                100.0 * share
            )
        })
    }

    fn tested(&self) -> String {
        match &self.test {
            Some(test) if self.both => format!(
                "real test images: {}. They have labels and no exact posterior: accuracy, NLL and expected calibration error alone. \
                 All other figures are of samples of the world",
                test.describe()
            ),
            None => "test images: samples of the world, so that the figures are exact for it; a classifier that is trained on \
                     other images need not come near its posterior"
                .into(),
            Some(test) if test.of_this_world => format!("test images: {}", test.describe()),
            Some(test) => format!(
                "test images: {}. Their posteriors are this world's opinion of them: aleatoric part, floor and gap are those \
                 of the world at these images, not of nature",
                test.describe()
            ),
        }
    }
}
