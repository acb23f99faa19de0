//! ONNX files, in a build that cannot run them.

use std::path::Path;

use super::options::{NetworkInfo, OnnxOptions};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};

/// A classifier from an ONNX file. There is none in this build.
pub enum OnnxClassifier {}

impl OnnxClassifier {
    /// Opens nothing.
    ///
    /// # Errors
    /// Always: says how to get a program that runs ONNX files.
    pub fn open(path: &Path, _: Option<ImageShape>, _: usize, _: &OnnxOptions) -> Result<Self> {
        Err(Error::file(
            path,
            "this build runs no ONNX files: take a release bundle, or build with `cargo build --release --features onnx`; \
             or store the network's predictions in a file and judge that",
        ))
    }

    /// Answers of a network that cannot exist.
    ///
    /// # Errors
    /// Never.
    pub fn log_probabilities(&self, _: &[f32], _: usize, _: &mut dyn Events<Progress>) -> Result<Vec<f64>> {
        match *self {}
    }

    /// What is known about a network that cannot exist.
    pub fn info(&self) -> NetworkInfo {
        match *self {}
    }
}
