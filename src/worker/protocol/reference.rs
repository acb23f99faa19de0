//! What images are held against.

use crate::oracle::posterior::Prior;
use crate::oracle::world::Settings;
use crate::units::Tau;

/// Samples of the open world at one τ and π, so many as are drawn by now.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceNews {
    /// Base temperature τ.
    pub tau: Tau,
    /// Class prior π.
    pub prior: Prior,
    /// log p(x) of each, nats; or why there is none.
    pub outcome: Result<Vec<f64>, String>,
    /// No more will come.
    pub complete: bool,
}

impl ReferenceNews {
    /// Whether it is of these knobs. Smoothing changes no density.
    pub fn is_of(&self, settings: &Settings) -> bool {
        (self.tau, &self.prior) == (settings.tau, &settings.prior)
    }
}
