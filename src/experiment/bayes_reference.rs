//! The Bayes error of a world at a temperature: what every classifier's error is held against.

use serde::{Deserialize, Serialize};

use crate::bayes::sampling::{Cache, Limits, Pool, Standing, WorldDraws, figures_at};
use crate::bayes::{Badge, Figure, GaussianClasses, Spec, bayes_error, by_sampling, entropy_of, information};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::world::{Settings, World};
use crate::units::{Seed, Smoothing, Tau};

/// Samples of worlds without an integral over Gaussians: half the interval is then below 0.007.
const SAMPLES: usize = 20_000;

/// The seed of draws that tell of a world as a whole. It is that of no images, so that whoever asks
/// goes on with the same draws, and they are independent of images that are held against them.
pub const WORLD_SEED: Seed = Seed(0);

/// How a world without integrals over Gaussians is sampled for its [`Facts`].
pub struct Drawing<'a> {
    /// Draws, 2 at least.
    pub draws: usize,
    /// Where they are kept.
    pub cache: &'a Cache,
    /// The world, under which they are kept ([`World::id`]).
    pub world_id: &'a str,
    /// The device in words, likewise.
    pub device: &'a str,
}

/// The Bayes error of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Base temperature.
    pub tau: Tau,
    /// The Bayes error with its 95 % interval.
    pub bayes_error: Figure,
    /// What the interval means.
    pub badge: Badge,
    /// How it was computed, in words.
    pub how: String,
}

/// What is known of a world as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its Bayes error.
    #[serde(flatten)]
    pub truth: Truth,
    /// Aleatoric uncertainty E[H(p(y|x))], nats.
    pub aleatoric_nats: Figure,
    /// What its interval means.
    pub aleatoric_badge: Badge,
    /// H(Y) of the class prior, under label noise of π~ = Cᵀπ, nats; of a smoothed posterior (T ≠ 1) the labels have another law.
    pub label_entropy_nats: f64,
    /// I(X;Y) = H(Y) − A, bits; absent where T ≠ 1.
    pub mutual_information_bits: Option<Figure>,
}

impl Truth {
    /// Computes the Bayes error of a world: an integral over Gaussians where its classes share a
    /// map, otherwise the mean of 1 − max p over samples.
    ///
    /// # Errors
    /// When the device fails, or the caller stops.
    pub fn of(world: &World, settings: &Settings, seed: Seed, events: &mut dyn Events<Progress>) -> Result<Self> {
        match gaussian(world, settings)? {
            Some(classes) => Self::integral(&classes, settings.tau, seed, events),
            None => Self::sampled(world, settings, seed, events),
        }
    }

    fn integral(classes: &GaussianClasses, tau: Tau, seed: Seed, events: &mut dyn Events<Progress>) -> Result<Self> {
        let spec = Spec { seed, ..Spec::default() };
        let found = bayes_error(classes, tau, &spec, &mut |_| events.emit(Progress { done: 0, total: 1 }))?;
        let how = format!("{}: {}", found.method.name(), found.why);
        Ok(Self { tau, bayes_error: found.figure, badge: found.badge, how })
    }

    fn sampled(world: &World, settings: &Settings, seed: Seed, events: &mut dyn Events<Progress>) -> Result<Self> {
        let tau = settings.tau;
        let found = by_sampling(world, settings, &[tau], SAMPLES, seed, events)?;
        let sampled = found.first().ok_or_else(|| Error::Numeric("no Bayes error came of the samples".into()))?;
        let how = format!("mean of 1 − max p(y|x) over {SAMPLES} samples of the world");
        Ok(Self { tau, bayes_error: sampled.bayes_error, badge: Badge::Estimated, how })
    }
}

/// The Gaussian classes of a world whose Bayes error is an integral over them.
fn gaussian(world: &World, settings: &Settings) -> Result<Option<GaussianClasses>> {
    world.flow().shared_base().map(|base| GaussianClasses::of_world(base, settings)).transpose()
}

impl Facts {
    /// Everything, by integrals where the world has them (`seed` is that of their points), otherwise
    /// from one set of draws, of which those that the cache has are not made again.
    ///
    /// # Errors
    /// At τ = 0 where there are no integrals, when the device fails, or the caller stops.
    pub fn of(
        world: &World,
        settings: &Settings,
        seed: Seed,
        drawing: &Drawing<'_>,
        events: &mut dyn Events<Progress>,
    ) -> Result<Self> {
        let labels = settings.labels()?;
        let label = entropy_of(labels.probabilities());
        if let Some(classes) = gaussian(world, settings)? {
            let truth = Truth::integral(&classes, settings.tau, seed, events)?;
            let spec = Spec { seed, ..Spec::default() };
            let (progress, plain) = (Progress { done: 0, total: 1 }, settings.smoothing == Smoothing::ONE);
            let found = information(&classes, settings.tau, &spec, &mut |_| events.emit(progress))?;
            return Ok(Self {
                truth,
                aleatoric_nats: found.aleatoric_nats,
                aleatoric_badge: found.badge,
                label_entropy_nats: if plain { found.label_entropy_nats } else { label },
                mutual_information_bits: Some(found.mutual_information_bits).filter(|_| plain),
            });
        }
        Self::sampled(world, settings, label, drawing, events)
    }

    /// By draws; `label_entropy_nats` is known.
    fn sampled(
        world: &World,
        settings: &Settings,
        label_entropy_nats: f64,
        drawing: &Drawing<'_>,
        events: &mut dyn Events<Progress>,
    ) -> Result<Self> {
        let &Drawing { draws, cache, world_id, device } = drawing;
        let (tau, prior, seed) = (settings.tau, &settings.prior, WORLD_SEED.split("facts"));
        let mut source = WorldDraws::new(world, seed).remembered(cache, world_id, prior, device);
        let pool = Pool::new(&mut source, prior.clone(), settings.smoothing, seed)?;
        let mut pool = pool.with_label_noise(settings.label_noise.as_ref())?;
        let limits = Limits { samples: Some(draws), ..Limits::default() };
        let mut forward = |standing: Standing| events.emit(standing.progress);
        let found = figures_at(&mut pool, tau, false, &limits, &mut forward)?;
        let how = format!("mean of 1 − max p(y|x) over {draws} draws of the world: {}", found.estimate.why);
        let truth = Truth { tau, bayes_error: found.estimate.figure, badge: found.estimate.badge, how };
        let information = found.information;
        let mutual = Some(information.mutual_information_bits);
        Ok(Self {
            truth,
            aleatoric_nats: information.aleatoric_nats,
            aleatoric_badge: information.badge,
            label_entropy_nats,
            mutual_information_bits: mutual.filter(|_| settings.smoothing == Smoothing::ONE),
        })
    }
}
