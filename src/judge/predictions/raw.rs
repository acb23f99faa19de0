//! A file of predictions as read, before it is brought into the order of the images.

use super::Note;
use crate::data::TEXT;
use crate::judge::Truth;

/// Names of arrays and list columns with predictions, the finest first.
pub(super) const NAMES: [&str; 9] =
    ["logits", "logit", "log_probs", "logprobs", "log_probabilities", "probs", "probabilities", "predictions", "preds"];
/// Names of ids, the most telling first; the last three are how pandas writes the index of a frame.
pub(super) const ID_NAMES: [&str; 14] = [
    "id",
    "ids",
    "image_id",
    "index",
    "filename",
    "filenames",
    "file_name",
    "path",
    "paths",
    "file",
    "image",
    "__index_level_0__",
    "unnamed: 0",
    "",
];

/// Said of a class for each image in place of its numbers.
pub(super) const DECISIONS: &str =
    "these are decisions. Loss and calibration need what the model gives each class: logits or probabilities";

/// Most bytes of a number with what separates it from the next.
const NUMBER: u64 = 64;

/// Most bytes that are read of a table or an array: 64 MiB, and 64 bytes more for each probability and for each value
/// of two further columns.
pub(super) fn most_bytes(truth: &Truth) -> u64 {
    let numbers = (truth.len() as u64).saturating_mul(truth.classes as u64 + 2);
    TEXT.saturating_add(numbers.saturating_mul(NUMBER))
}

/// A file as read: columns in the order of the classes, rows as they came.
#[derive(Debug, Default)]
pub(super) struct Raw {
    /// [rows, K].
    pub values: Vec<f64>,
    /// What the array or the columns are called, e.g. `probs`.
    pub called: Option<String>,
    /// One id a row.
    pub ids: Option<Vec<String>>,
    pub weights_sha256: Option<String>,
    pub dataset_sha256: Option<String>,
    pub notes: Vec<Note>,
}

impl Raw {
    /// Returns whether the file says it is of this world and dataset, where it says anything.
    pub fn check_world(&self, truth: &Truth) -> Result<(), String> {
        let origin = &truth.origin;
        let pairs = [
            ("weights_sha256", "world", &self.weights_sha256, origin.weights_sha256.as_ref()),
            ("dataset_sha256", "dataset", &self.dataset_sha256, Some(&origin.dataset_sha256)),
        ];
        for (name, what, theirs, ours) in pairs {
            if let (Some(theirs), Some(ours)) = (theirs, ours)
                && !theirs.trim().eq_ignore_ascii_case(ours)
            {
                return Err(format!(
                    "these are predictions for another {what}: {name} is {theirs}, that of {} is {ours}. Predict the images of this \
                     {what}, or judge them against their own",
                    origin.path
                ));
            }
        }
        Ok(())
    }
}

/// Names in a message: the first five.
pub(super) fn listed<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<T> = names.into_iter().collect();
    let first: Vec<&str> = names.iter().take(5).map(AsRef::as_ref).collect();
    first.join(", ") + if names.len() > 5 { ", …" } else { "" }
}
