//! What the engine asks of a world, and what it tells meanwhile.

use serde::Serialize;

use crate::bayes::estimate::Figure;
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::units::{ClassId, Tau};

/// One draw: the same image at every τ, but for the scale of its latent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Running number, which names its standard normal latent ε.
    pub index: usize,
    /// The class whose density it is drawn from.
    pub class: ClassId,
}

/// A world as a source of draws.
pub trait Source {
    /// Number of classes K.
    fn classes(&self) -> usize;

    /// log p_τ(x|y) of the images x = f_class(τ·ε_index) under every class y, [N, K], nats. A draw
    /// has the same row in whatever company it is asked for.
    ///
    /// # Errors
    /// When the device fails, a number is not finite, or the caller stops.
    fn log_likelihoods(&mut self, draws: &[Draw], tau: Tau, events: &mut dyn Events<Progress>) -> Result<Vec<f64>>;
}

/// How far an estimate has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Standing {
    /// Images classified, and as many as will be needed by what is known now.
    pub progress: Progress,
    /// Time left by the same knowledge.
    pub seconds_left: Option<f64>,
    /// The figure asked for, which narrows; none before the first.
    pub figure: Option<Figure>,
}
