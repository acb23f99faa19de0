//! What a world says of given images.

use bayescope::bayes::sampling::{Cache, ReferenceDraws};
use bayescope::data::{Input, WorldBatch};
use bayescope::error::{Error, Result};
use bayescope::flow::Precision;
use bayescope::flow::preprocess::Dequantisation;
use bayescope::measure::typicality::{FEWEST, Reference, Typicality};
use bayescope::oracle::world::Settings;
use serde::Serialize;

use crate::engine::{Open, Stop};
use crate::json;

/// How images stand to samples, by the names of `bayescope posterior --json`.
#[derive(Serialize)]
struct Placed {
    /// Least, middle and largest log p(x) of the samples, nats.
    log_px_of_samples: [f64; 3],
    images: Vec<Typicality>,
}

/// Posteriors [n, K], log-likelihoods [n, K], entropies [n] and log p(x) [n], all in nats but the first, as `bayescope posterior`
/// computes them.
///
/// # Errors
/// At τ = 0; when an image has no posterior, the device fails, or nobody waits any more.
pub fn score(open: &Open, stop: &Stop, settings: &Settings, x: Vec<f32>) -> Result<[Vec<f64>; 4]> {
    if settings.tau.get() == 0.0 {
        return Err(Error::input(
            "at τ = 0 every image of a class is the same, no image from outside has a density, and there is no posterior: \
             choose a τ above 0",
        ));
    }
    let world = &open.world;
    let batch = WorldBatch {
        shape: world.shape(),
        x,
        classes: world.class_names().len(),
        y: None,
        posterior: None,
        logp: None,
        aleatoric: None,
    };
    let images = world.classify(Input::World(batch), Dequantisation::default(), &mut stop.sink())?;
    let mut found: [Vec<f64>; 4] = Default::default();
    for (i, id) in images.ids.iter().enumerate() {
        let posterior = images.posterior(world, i, settings)?.0.defined(id)?;
        found[0].extend(&posterior.probabilities);
        found[1].extend(&posterior.log_likelihood);
        found[2].push(posterior.entropy_nats);
        found[3].push(posterior.log_px);
    }
    Ok(found)
}

/// How images of these log p(x), nats, stand to the samples that `bayescope posterior --typicality` draws, as JSON.
///
/// # Errors
/// At τ = 0; when the samples are too few to say anything or leave the finite numbers, an image has no log p(x), the device
/// fails, or nobody waits any more.
pub fn typicality(open: &Open, stop: &Stop, settings: &Settings, log_px: &[f64], samples: usize) -> Result<String> {
    if samples < FEWEST {
        return Err(Error::input(format!("samples={samples}: p-values need at least {FEWEST} samples")));
    }
    // Draws in 64 bits are no draws of those in 32.
    let cache = if open.precision == Precision::F32 { Cache::of_user() } else { Cache::none() };
    let mut draws = ReferenceDraws::new(&open.world, &cache, &open.info.world_id(), &settings.prior, &open.device);
    let mut of_samples = Vec::new();
    draws.extend(settings.tau, &mut of_samples, samples, &mut stop.sink())?;
    let unknown = || Error::Numeric("log p(x) of too many samples of this world is no number".into());
    let reference = Reference::new(of_samples).ok_or_else(unknown)?;
    let place = |(i, &log_px): (usize, &f64)| {
        reference.place(log_px).ok_or_else(|| Error::Numeric(format!("log p(x) of image {i} is no number")))
    };
    let images = log_px.iter().enumerate().map(place).collect::<Result<_>>()?;
    let [low, high] = reference.range();
    json(&Placed { log_px_of_samples: [low, reference.median(), high], images })
}
