//! What a world says of given images.

use bayescope::bayes::sampling::{Cache, ReferenceDraws};
use bayescope::data::{Input, WorldBatch};
use bayescope::error::{Error, Result};
use bayescope::flow::Precision;
use bayescope::flow::preprocess::Dequantisation;
use bayescope::measure::typicality::{FEWEST, Reference, Typicality};
use bayescope::oracle::evidence::leaders;
use bayescope::oracle::numbering::renumber;
use bayescope::oracle::world::Settings;
use bayescope::units::ClassId;
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

/// Where in images the evidence for one class and against another lies.
#[derive(Default)]
pub struct Maps {
    /// Rows and columns of a map.
    pub size: [usize; 2],
    /// The maps, [n, rows, columns], nats.
    pub cells: Vec<f64>,
    /// Sum of the cells of each image, nats.
    pub sum: Vec<f64>,
    /// log p(x|for) − log p(x|against) of each image, nats.
    pub total: Vec<f64>,
    /// The classes that are spoken for.
    pub speaks_for: Vec<i64>,
    /// The classes that are spoken against.
    pub against: Vec<i64>,
}

/// Maps of the evidence in world-space images `x`, as `bayescope evidence` computes them: between two classes, or in each image
/// between the two under which it is likeliest.
///
/// # Errors
/// At τ = 0; where there is one class alone; when an image has no density, the device fails, or nobody waits any more.
pub fn evidence(
    open: &Open,
    stop: &Stop,
    settings: &Settings,
    x: &[f32],
    between: Option<(ClassId, ClassId)>,
) -> Result<Maps> {
    let (world, dims) = (&open.world, open.world.shape().dims());
    let pairs = match between {
        Some(pair) => vec![pair; x.len() / dims],
        None => likeliest(open, stop, settings, x)?,
    };
    let mut maps = Maps::default();
    for (i, (x, (a, b))) in x.chunks(dims).zip(pairs).enumerate() {
        stop.check()?;
        let map = world.evidence(x, a, b, settings.tau).map_err(|error| renumber(error, i))?;
        maps.size = [map.rows, map.columns];
        maps.sum.push(map.sum());
        maps.total.push(map.total);
        maps.cells.extend(map.cells);
        maps.speaks_for.push(a as i64);
        maps.against.push(b as i64);
    }
    Ok(maps)
}

/// The two classes under which each image is likeliest, the first of them first.
fn likeliest(open: &Open, stop: &Stop, settings: &Settings, x: &[f32]) -> Result<Vec<(ClassId, ClassId)>> {
    let world = &open.world;
    // Likelihoods know of no prior, T smooths posteriors, and label noise mixes them.
    let settings = Settings { tau: settings.tau, ..Settings::default_for(world.class_names().len()) };
    let scores = world.score(x, &mut stop.sink())?;
    let one_class = || Error::input("a world of one class has no evidence between classes");
    let pair = |i: usize| leaders(&world.posterior(&scores, i, &settings)).ok_or_else(one_class);
    (0..x.len() / world.shape().dims()).map(pair).collect()
}
