//! What the training loop asks of a flow in training, whatever its family.

use burn::tensor::Device;

use super::batch::Draw;
use super::glow::{GlowLearner, glow_config};
use super::spec::TrainSpec;
use super::step::{Saved, StepLoss};
use super::tarflow::{TarFlowLearner, tarflow_config};
use crate::data::Dataset;
use crate::error::Result;
use crate::flow::preprocess::Preprocessing;
use crate::flow::weights::Weights;
use crate::flow::{Architecture, Flow};

/// A flow in training, with its optimizer and the moving average of its weights.
pub trait Learner {
    /// Trained numbers.
    fn parameters(&self) -> usize;

    /// Moves the weights by one step at a learning rate, and their average with a decay. A loss or
    /// gradient that is not finite leaves everything as it was: the caller sees it in `grad_norm`
    /// and decides.
    ///
    /// # Errors
    /// When the device fails or the parameters became unusable.
    fn step(&mut self, draw: &Draw<'_>, rate: f64, decay: f64) -> Result<StepLoss>;

    /// Everything the run needs to go on.
    ///
    /// # Errors
    /// When the device cannot deliver it.
    fn saved(&self) -> Result<Saved>;

    /// The averaged weights.
    ///
    /// # Errors
    /// When the device cannot deliver them.
    fn average(&self) -> Result<Weights>;

    /// The flow of the averaged weights.
    ///
    /// # Errors
    /// When they are unusable.
    fn frozen(&self) -> Result<Box<dyn Flow>>;
}

/// The flow that a spec trains on such images.
pub fn architecture(spec: &TrainSpec, data: &Dataset) -> (Architecture, Preprocessing) {
    match &spec.tarflow {
        None => (Architecture::Glow(glow_config(spec, data)), spec.model.pixels),
        Some(tarflow) => (Architecture::TarFlow(tarflow_config(tarflow, data)), tarflow.pixels),
    }
}

/// The flow of a spec, from a checkpoint or fresh.
///
/// # Errors
/// When the checkpoint does not fit the spec, or the device fails.
pub fn learner(spec: &TrainSpec, train: &Dataset, saved: Option<Saved>, device: &Device) -> Result<Box<dyn Learner>> {
    Ok(match &spec.tarflow {
        None => Box::new(GlowLearner::new(spec, train, saved, device)?),
        Some(tarflow) => Box::new(TarFlowLearner::new(spec, tarflow, train, saved, device)?),
    })
}
