//! log p(x) of samples of a world, beside which that of an image says whether the world makes such
//! images (theory §2).

use super::cache::Cache;
use super::source::{Draw, Source};
use super::world::WorldDraws;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::posterior::{Posterior, Prior};
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::units::{Seed, Smoothing, Tau};

/// Samples drawn, and kept, at once: few shapes, so that a GPU compiles few kernels.
pub const REFERENCE_PIECE: usize = 32;

/// Seed of these samples: none of those that faces draw by default, so that a sample which is
/// looked at is none of those it is held against.
fn seed() -> Seed {
    Seed(0).split("typicality")
}

/// A world's samples for its reference, at one prior; kept in a cache.
pub struct ReferenceDraws<'a> {
    world: &'a World,
    prior: Prior,
    draws: WorldDraws<'a>,
}

impl<'a> ReferenceDraws<'a> {
    /// Of a world (`world_id`) on a device; what the cache has is not drawn again.
    pub fn new(world: &'a World, cache: &Cache, world_id: &str, prior: &Prior, device: &str) -> Self {
        let draws = WorldDraws::new(world, seed()).remembered(cache, world_id, prior, device);
        Self { world, prior: prior.clone(), draws }
    }

    /// Adds log p(x), nats, of further samples at τ to those that `have` holds, piece by piece, up to
    /// `to` of them. What was added stays when the caller stops, so that it can be gone on with.
    ///
    /// # Errors
    /// When τ is 0, where there is no density; when the prior does not fit, the device fails, or the
    /// caller stops.
    pub fn extend(
        &mut self,
        tau: Tau,
        have: &mut Vec<f64>,
        to: usize,
        events: &mut dyn Events<Progress>,
    ) -> Result<()> {
        if tau.get() == 0.0 {
            return Err(Error::input("at τ = 0 there is no density, and no sample to compare with"));
        }
        let settings = Settings { tau, smoothing: Smoothing::ONE, prior: self.prior.clone(), label_noise: None };
        while have.len() < to {
            let indices: Vec<usize> = (have.len()..to.min(have.len() + REFERENCE_PIECE)).collect();
            let (classes, _) = self.world.latents_of(&SampleSpec::new(to, seed()), &settings, &indices)?;
            let draws: Vec<Draw> = indices.iter().zip(&classes).map(|(&index, &class)| Draw { index, class }).collect();
            let done = have.len();
            let mut each = |piece: Progress| events.emit(Progress { done: done + piece.done, total: to });
            let rows = self.draws.log_likelihoods(&draws, tau, &mut each)?;
            let log_px = |row: &[f64]| Posterior::new(row.to_vec(), &self.prior, Smoothing::ONE).log_px;
            have.extend(rows.chunks_exact(self.draws.classes()).map(log_px));
            events.report(Progress { done: have.len(), total: to })?;
        }
        Ok(())
    }
}
