//! Images drawn from the world, and its exactness: round trips and perturbed posteriors.

use burn::tensor::Device;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::Work;
use super::pieces::table;
use super::real::{Real, name_of_values};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Precision;
use crate::flow::preprocess::Preprocessing;
use crate::measure::fidelity::{Stability, posterior_stability};
use crate::measure::{Bootstrap, Estimate, NATS};
use crate::oracle::folder;
use crate::oracle::numbering::of_sample;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::{ClassId, Seed, Smoothing};

/// Images of a kept piece.
const PIECE: usize = 256;
/// Held-out images that are sent through the world and back, and whose posteriors are perturbed.
const CHECKED: usize = 64;
/// Most FLOP in 64 bits on a CPU for one figure: some minutes. Limits the images perturbed.
const MOST_FLOP: f64 = 2e12;
/// Standard deviation of the perturbation in 8-bit levels. The paper does not give its own.
pub const DELTA_LEVELS: f64 = 0.01;

/// Drawn images as 8-bit pictures, as the real ones are.
pub struct Generated {
    /// Pixels, NCHW.
    pub pixels: Vec<u8>,
    /// The class each was drawn from.
    pub labels: Vec<ClassId>,
}

/// Image → noise → image.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Held-out images sent.
    pub images: usize,
    /// Largest difference of a value, in 8-bit levels.
    pub largest_levels: f64,
    /// Mean absolute difference, in 8-bit levels; BCa bootstrap over images.
    pub mean_levels: Estimate,
}

/// Posteriors under a tiny perturbation (BLC table 3), in 64 bits, since 32 would hide it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Perturbed {
    /// Mean KL(p(y|x) ‖ p(y|x + δ)) and related figures.
    #[serde(flatten)]
    pub stability: Stability,
    /// Standard deviation of δ, every value its own, in 8-bit levels.
    pub delta_levels: f64,
}

/// Draws the images of a validation, rounded to 8 bits.
///
/// # Errors
/// When the device or the disk fails, or the caller stops.
pub fn draw(work: &Work<'_>, events: &mut dyn Events<Progress>) -> Result<Generated> {
    let (world, spec) = (work.world, work.spec);
    let total = spec.images;
    let sample = SampleSpec::new(total, spec.seed.split("drawn images"));
    let (pixels, dims) = (world.flow().pixels(), world.shape().dims());
    let mut made = Generated { pixels: Vec::new(), labels: Vec::new() };
    for first in (0..total).step_by(PIECE) {
        let range = first..total.min(first + PIECE);
        let (levels, labels) = table(&work.store, &format!("drawn-{first:07}.npz"), (range.len(), [dims, 1]), || {
            let (mut levels, mut labels) = (Vec::new(), Vec::new());
            let indices: Vec<usize> = range.clone().collect();
            for batch in indices.chunks(world.batch()) {
                let (classes, noise) = world.latents_of(&sample, &spec.settings, batch)?;
                // Posteriors are not asked for: in a world of one map per class they cost K passes.
                let mut forward = |_| events.emit(Progress { done: first + labels.len(), total });
                let made = world.flow().decode(&noise, &classes, spec.settings.tau, &mut forward);
                let x = made.map_err(|error| of_sample(error, batch, spec.settings.tau))?.x;
                levels.extend(pixels.picture(&x).into_iter().map(f32::from));
                labels.extend(classes.into_iter().map(|class| class as f64));
            }
            Ok((levels, labels))
        })?;
        made.pixels.extend(levels.into_iter().map(|level| level as u8));
        made.labels.extend(labels.into_iter().map(|class| class as ClassId));
        events.report(Progress { done: range.end, total })?;
    }
    Ok(made)
}

/// Round trips and stability on some of the held-out images, evenly spread.
///
/// # Errors
/// When the oracle cannot be opened in 64 bits, the device fails, or the caller stops.
pub fn exactness(
    work: &Work<'_>,
    real: &Real,
    events: &mut dyn Events<Progress>,
) -> Result<(RoundTrip, Option<Perturbed>)> {
    let flow = work.world.flow();
    let dims = work.world.shape().dims();
    let n = CHECKED.min(real.held_out.len());
    let some = real.held_out.spread(n)?;
    let how = real.held_out_how;
    let x = flow.pixels().map_in(&some.pixels, dims, 0, how);
    let classes = some.labels.clone().unwrap_or_else(|| vec![0; n]);
    events.report(Progress { done: 0, total: 2 })?;
    let found = work.store.value(&format!("exactness-{}.json", name_of_values(&some, how)), || {
        let round_trip = round_trip(work, &x, &classes, events)?;
        events.report(Progress { done: 1, total: 2 })?;
        // Before and after, every class.
        let each = 2.0 * work.info.architecture.flop_per_image() * work.world.class_names().len() as f64;
        let affordable = n.min((MOST_FLOP / each) as usize);
        let few = thinned(&x, dims, affordable);
        let perturbed = (affordable >= 2).then(|| perturbed(work, &few, events)).transpose()?;
        Ok((round_trip, perturbed))
    })?;
    events.report(Progress { done: 2, total: 2 })?;
    Ok(found)
}

/// `n` of the images `x` of so many numbers each, evenly spread: the first ones may be of one class.
fn thinned(x: &[f32], dims: usize, n: usize) -> Vec<f32> {
    let all = x.len() / dims;
    (0..n).flat_map(|i| x.iter().skip(i * all / n * dims).take(dims)).copied().collect()
}

fn round_trip(work: &Work<'_>, x: &[f32], classes: &[ClassId], events: &mut dyn Events<Progress>) -> Result<RoundTrip> {
    let (world, tau) = (work.world, work.spec.settings.tau);
    let (flow, dims, batch) = (world.flow(), world.shape().dims(), world.batch());
    let mut differences = Vec::with_capacity(x.len());
    for (x, classes) in x.chunks(batch * dims).zip(classes.chunks(batch)) {
        let noise: Vec<f32> = flow.noise(x, classes, tau)?.into_iter().map(|e| e as f32).collect();
        let mut alive = |_| events.emit(Progress { done: 0, total: 2 });
        let back = flow.decode(&noise, classes, tau, &mut alive)?.x;
        differences.extend(x.iter().zip(back).map(|(a, b)| (f64::from(*a) - f64::from(b)).abs()));
    }
    let levels = flow.pixels().levels_per_unit();
    let means: Vec<f64> =
        differences.chunks(dims).map(|image| levels * image.iter().sum::<f64>() / dims as f64).collect();
    Ok(RoundTrip {
        images: classes.len(),
        largest_levels: levels * differences.iter().copied().fold(0.0, f64::max),
        mean_levels: Bootstrap::new(work.spec.seed).mean(&means, NATS),
    })
}

fn perturbed(work: &Work<'_>, x: &[f32], events: &mut dyn Events<Progress>) -> Result<Perturbed> {
    let spec = work.spec;
    let weights = folder::read_again(&spec.oracle, work.info)?;
    let exact = work.info.clone().build(weights, &Device::flex(), Precision::F64, work.world.batch())?.world;
    let dims = exact.shape().dims();
    let std = DELTA_LEVELS / exact.flow().pixels().levels_per_unit();
    let [low, high] = exact.flow().pixels().range();
    let noisy = matches!(exact.flow().pixels(), Preprocessing::Gaussian { .. });
    let seed: Seed = spec.seed.split("perturbation");
    let moved: Vec<f32> = x
        .chunks(dims)
        .enumerate()
        .flat_map(|(i, image)| {
            let mut rng = seed.rng(i as u64);
            let shift = move |&v: &f32| {
                let e: f64 = StandardNormal.sample(&mut rng);
                let v = (f64::from(v) + std * e) as f32;
                // Beyond its range a world of noisy images has density, another none.
                if noisy { v } else { v.clamp(low, high) }
            };
            image.iter().map(shift).collect::<Vec<_>>()
        })
        .collect();
    // T = 1: smoothing would hide what moves.
    let settings = Settings { smoothing: Smoothing::ONE, ..spec.settings.clone() };
    let mut log_posteriors = |x: &[f32]| -> Result<Vec<f64>> {
        let scores = exact.score(x, &mut |_: Progress| events.emit(Progress { done: 1, total: 2 }))?;
        let each = (0..scores.len()).flat_map(|i| exact.posterior(&scores, i, &settings).log_probabilities);
        Ok(each.collect())
    };
    let (before, after) = (log_posteriors(x)?, log_posteriors(&moved)?);
    let classes = exact.class_names().len();
    if before.iter().chain(&after).any(|p| p.is_nan()) {
        return Err(Error::Numeric("a posterior of a held-out image is no number".into()));
    }
    let stability = posterior_stability(&before, &after, classes, &Bootstrap::new(spec.seed))?;
    Ok(Perturbed { stability, delta_levels: DELTA_LEVELS })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_images_of_a_corpus_in_order_of_classes_are_of_every_class() {
        // 64 images of two numbers, eight of each class.
        let x: Vec<f32> = (0..128).map(|i| (i / 16) as f32).collect();
        assert_eq!(thinned(&x, 2, 8), (0..16).map(|i| (i / 2) as f32).collect::<Vec<_>>());
        let images: Vec<f32> = (0..12).map(|i| i as f32).collect();
        assert_eq!(thinned(&images, 3, 4), images);
        assert_eq!(thinned(&images, 3, 2), [0.0, 1.0, 2.0, 6.0, 7.0, 8.0]);
        assert!(thinned(&images, 3, 0).is_empty());
    }
}
