//! Whether images are of a world, for commands.

use serde::Serialize;

use super::args::PrecisionArg;
use super::open::Opened;
use super::progress::Bar;
use super::sampling::cache;
use crate::bayes::sampling::{Cache, ReferenceDraws};
use crate::error::{Error, Result};
use crate::measure::typicality::{Census, FEWEST, Reference};
use crate::oracle::world::Settings;

/// What images are held against, and how they stand as a whole.
#[derive(Serialize)]
pub struct Against {
    /// Least, middle and largest log p(x) of the samples, nats: density of x in world space.
    pub log_px_of_samples: [f64; 3],
    /// Images in each band.
    #[serde(flatten)]
    pub census: Census,
}

/// So many samples of a world at these knobs; none where none are wanted, and at τ = 0, where there
/// is no density.
///
/// # Errors
/// When they are too few to say anything, or the device fails.
pub fn reference(
    opened: &Opened,
    settings: &Settings,
    (samples, precision): (usize, PrecisionArg),
) -> Result<Option<Reference>> {
    if samples == 0 || settings.tau.get() == 0.0 {
        return Ok(None);
    }
    if samples < FEWEST {
        return Err(Error::input(format!(
            "--typicality {samples}: p-values need at least {FEWEST} samples; 0 leaves them out"
        )));
    }
    // Draws in 64 bits are no draws of those in 32.
    let cache = if precision == PrecisionArg::F32 { cache() } else { Cache::none() };
    let (world, id) = (&opened.world, opened.info.world_id());
    let mut draws = ReferenceDraws::new(world, &cache, &id, &settings.prior, &opened.device);
    let mut log_px = Vec::with_capacity(samples);
    match draws.extend(settings.tau, &mut log_px, samples, &mut Bar::new("samples to compare with")) {
        // Far from τ = 1 a flow may overflow; the posteriors are those of the images all the same.
        Err(why) if why.is_numeric() => {
            eprintln!("note: typicality is not known, since a sample of this world cannot be made: {why}");
            Ok(None)
        }
        drawn => drawn.map(|()| Reference::new(log_px)),
    }
}

impl Against {
    /// Images of these log p(x), nats, against a reference.
    pub fn of(reference: &Reference, log_px: &[f64]) -> Self {
        let [low, high] = reference.range();
        Self { log_px_of_samples: [low, reference.median(), high], census: reference.census(log_px) }
    }

    /// The counts by band, and the range of log p(x) of the samples, nats: two lines.
    pub fn describe(&self) -> String {
        let [low, middle, high] = self.log_px_of_samples;
        format!(
            "{}\nsamples: log p(x) from {low:.2} to {high:.2}, median {middle:.2} nats (density of x in world space; \
             bits/dim: the same of 8-bit pixels)",
            self.census.describe()
        )
    }
}
