//! Models as a user names them, on the images of a dataset.

use std::path::{Path, PathBuf};

use super::{Predictions, ReadOptions, Report, Truth, judge};
use crate::classifier::onnx::{OnnxClassifier, OnnxOptions};
use crate::data::{NpzImages, Split};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::units::Seed;

/// Images read at a time.
const PIECE: usize = 1024;

/// A model to be judged.
#[derive(Debug, Clone, PartialEq)]
pub enum Candidate {
    /// What it said of the images, in a file.
    Predictions {
        /// The file.
        path: PathBuf,
        /// What is known about it.
        options: ReadOptions,
    },
    /// A network that is run here.
    Onnx {
        /// The file.
        path: PathBuf,
        /// What is known about it.
        options: OnnxOptions,
    },
}

/// Judges models on a split of a dataset; networks are run on its images, which tells progress.
///
/// # Errors
/// When the dataset has no truth, predictions or a network do not fit it, or the caller stops; names the file.
pub fn assess(
    dataset: &Path,
    split: Split,
    candidates: &[Candidate],
    seed: Seed,
    events: &mut dyn Events<Progress>,
) -> Result<Report> {
    let truth = Truth::open(dataset, split)?;
    let predicted = candidates.iter().map(|candidate| match candidate {
        Candidate::Predictions { path, options } => Predictions::read(path, &truth, options),
        Candidate::Onnx { path, options } => run(path, options, &truth, events),
    });
    judge(&truth, &predicted.collect::<Result<Vec<_>>>()?, seed)
}

/// What a network says of the images of a truth, read piece by piece.
fn run(path: &Path, options: &OnnxOptions, truth: &Truth, events: &mut dyn Events<Progress>) -> Result<Predictions> {
    let archive = truth.archive();
    let images = NpzImages::open(&archive)?.ok_or_else(|| {
        Error::file(&archive, "has 8-bit images: a network is judged on the float images of an export")
    })?;
    let options = OnnxOptions { range: truth.pixel_range, ..options.clone() };
    let network = OnnxClassifier::open(path, Some(images.shape()), truth.classes, &options)?;
    let (total, mut log_q) = (images.len(), Vec::new());
    for first in (0..total).step_by(PIECE) {
        let range = first..total.min(first + PIECE);
        log_q.extend(network.log_probabilities(&images.read(range.clone())?, &mut silent())?);
        events.report(Progress { done: range.end, total })?;
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    Predictions::of_logits(name, &log_q, truth)
}
