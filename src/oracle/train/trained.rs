//! What a training ends with.

use crate::flow::Architecture;
use crate::flow::preprocess::Preprocessing;
use crate::flow::weights::Weights;
use crate::oracle::evaluate::Evaluation;

/// A finished run.
#[derive(Debug)]
pub struct Trained {
    /// Architecture.
    pub architecture: Architecture,
    /// How pixels entered.
    pub pixels: Preprocessing,
    /// Averaged weights of the best epoch.
    pub weights: Weights,
    /// That epoch, from 1.
    pub epoch: usize,
    /// Its figures on the held-out part of the training images.
    pub held_out: Evaluation,
    /// The full test part of the data, evaluated once, if there is one.
    pub test: Option<Evaluation>,
    /// Images trained on.
    pub images: usize,
    /// SHA-256 of the pixels of the whole training part, as padded: identifies the data.
    pub pixels_sha256: String,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// Seconds of training, all sittings.
    pub seconds: f64,
}
