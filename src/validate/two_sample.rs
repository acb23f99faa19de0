//! A classifier two-sample test (Lopez-Paz & Oquab 2017): a small network learns to tell samples of
//! the world from real images, and is tested on images it has not seen. Where both have one
//! distribution it is right half of the time, and the null beside it, real images against other
//! real images, always is. What it finds is there; what it does not find may be there for a larger
//! network or more images.

use burn::tensor::Device;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::embedded::{BATCH, right};
use super::generated::Generated;
use super::real::{Real, name_of};
use super::spec::{TwoSampleSpec, Work};
use super::spot::{OnTheSpot, fit, unit};
use crate::classifier::ClassifierConfig;
use crate::classifier::features::FeatureNet;
use crate::data::{Dataset, ImageShape};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::measure::Estimate;
use crate::measure::fidelity::Compared;
use crate::units::Seed;

/// Fewest images of each side.
const LEAST: usize = 20;

/// What a network tells apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TwoSample {
    /// How it was asked for.
    pub spec: TwoSampleSpec,
    /// Images of each side, of which half are to train on.
    pub images: usize,
    /// Held-out images of both sides whose side was told.
    pub tested: usize,
    /// Share of them that was told rightly, with its Wilson interval: samples against real images,
    /// and real images against other real images. ½ where nothing can be told.
    pub right: Compared<Estimate>,
}

impl TwoSample {
    /// A sentence for captions.
    pub fn describe(&self) -> String {
        let TwoSampleSpec { architecture, epochs, .. } = self.spec;
        let (n, train) = (self.images, self.images / 2);
        format!(
            "Two-sample test (Lopez-Paz & Oquab 2017): a {}, trained for {epochs} epochs on {train} images of each side, tells the \
             sides of {} others; {n} samples against {n} held-out images, and beside it these against {n} other held-out images.",
            architecture.label(),
            self.tested
        )
    }
}

/// Tests, where there are images enough and the network can take them.
///
/// # Errors
/// When the device or the disk fails, or the caller stops.
pub fn test(
    work: &Work<'_>,
    real: &Real,
    made: &Generated,
    events: &mut dyn Events<Progress>,
) -> Result<Option<TwoSample>> {
    let (spec, shape) = (work.spec.two_sample, work.world.shape());
    let n = spec.images.min(made.labels.len()).min(real.held_out.len() / 2);
    if n < LEAST || config(spec, shape).validate().is_err() {
        return Ok(None);
    }
    let seed = work.spec.seed.split("two-sample test");
    work.store.value(&format!("two-sample-{}.json", name_of(&real.held_out)), || {
        let size = n * shape.dims();
        let images = shuffled(&real.held_out.pixels, shape, seed.split("real images"));
        let drawn = shuffled(&made.pixels, shape, seed.split("samples"));
        let (one, other) = (&images[..size], &images[size..2 * size]);
        let tell = Tell { spec, shape, device: work.device };
        let generated = tell.apart([one, &drawn[..size]], seed.split("against samples"), events)?;
        let held_out = tell.apart([one, other], seed.split("against real images"), events)?;
        Ok(Some(TwoSample { spec, images: n, tested: 2 * (n - n / 2), right: Compared { generated, held_out } }))
    })
}

fn config(spec: TwoSampleSpec, shape: ImageShape) -> ClassifierConfig {
    ClassifierConfig { architecture: spec.architecture, shape, classes: 2, resize: None }
}

/// The images in a random order: a corpus may be sorted by class.
fn shuffled(pixels: &[u8], shape: ImageShape, seed: Seed) -> Vec<u8> {
    let mut images: Vec<&[u8]> = pixels.chunks(shape.dims()).collect();
    images.shuffle(&mut seed.rng(0));
    images.concat()
}

/// How sides are told apart.
struct Tell<'a> {
    spec: TwoSampleSpec,
    shape: ImageShape,
    device: &'a Device,
}

impl Tell<'_> {
    /// Trains on the first half of two sets of equally many images, and returns how often the
    /// network is right on the second.
    fn apart(&self, sides: [&[u8]; 2], seed: Seed, events: &mut dyn Events<Progress>) -> Result<Estimate> {
        let Self { spec, shape, device } = *self;
        let half = sides[0].len() / shape.dims() / 2 * shape.dims();
        let (train, test) = (self.set(sides.map(|side| &side[..half])), self.set(sides.map(|side| &side[half..])));
        let spot = OnTheSpot { architecture: spec.architecture, epochs: spec.epochs, images: train.0.len() };
        let classifier = fit((&train.0, &train.1), spot, &config(spec, shape), seed, device, events)?;
        let net = FeatureNet::of_classifier("two-sample test".into(), classifier)?;
        let x: Vec<f32> = unit(&test.0.pixels).collect();
        let said = net.embed(&x, shape, BATCH, events)?;
        right(&said.log_p, 2, Some(&test.1)).ok_or_else(|| Error::Numeric("no side was told".into()))
    }

    /// Both sides together, with the number of the side as label.
    fn set(&self, sides: [&[u8]; 2]) -> (Dataset, Vec<usize>) {
        let dims = self.shape.dims();
        let labels: Vec<usize> = (0..2).flat_map(|side| vec![side; sides[side].len() / dims]).collect();
        let images = Dataset {
            name: "two sides".into(),
            shape: self.shape,
            pixels: sides.concat(),
            labels: None,
            class_names: Vec::new(),
            ids: (0..labels.len()).map(|i| i.to_string()).collect(),
            noises: Default::default(),
        };
        (images, labels)
    }
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, Normal};

    use super::*;
    use crate::events::silent;

    const SHAPE: ImageShape = ImageShape { channels: 1, height: 8, width: 8 };

    /// Grey noise on `n` images whose left half is `brighter` than their right half.
    fn images(n: usize, brighter: f64, seed: u64) -> Vec<u8> {
        let (mut rng, noise) = (Seed(seed).split("pictures").rng(0), Normal::new(0.0, 30.0).unwrap());
        let mean = |i: usize| 128.0 + if i % SHAPE.width < SHAPE.width / 2 { brighter } else { 0.0 };
        (0..n * SHAPE.dims()).map(|i| (mean(i) + noise.sample(&mut rng)).clamp(0.0, 255.0) as u8).collect()
    }

    fn told(sides: [&[u8]; 2], seed: u64) -> Estimate {
        let tell = Tell { spec: TwoSampleSpec::default(), shape: SHAPE, device: &Device::flex() };
        tell.apart(sides, Seed(seed), &mut silent()).unwrap()
    }

    #[test]
    fn equal_distributions_are_not_told_apart_and_different_ones_are() {
        let (real, n) = (images(400, 0.0, 1), 400.0);
        // One interval of 95 % may miss ½, hardly two of three; a test on training images misses it in all.
        let held = (0..3).filter(|&i| told([&real, &images(400, 0.0, 2 + i)], i).interval.contains(0.5)).count();
        assert!(held >= 2, "{held} of 3");
        let same = told([&real, &images(400, 0.0, 5)], 5);
        assert!((same.value - 0.5).abs() < 4.0 * (0.25_f64 / n).sqrt(), "{same:?}");
        let other = images(400, 40.0, 6);
        let different = told([&real, &other], 6);
        assert!(different.interval.low > 0.9, "{different:?}");
        assert_eq!(told([&real, &other], 6), different, "the same seed tells the same");
    }

    #[test]
    fn a_network_that_says_nothing_is_right_half_of_the_time() {
        assert_eq!(right(&[-0.7; 8], 2, Some(&[0, 1, 0, 1])).unwrap().value, 0.5);
        assert_eq!(right(&[f64::NAN; 4], 2, Some(&[0, 1])).unwrap().value, 0.0);
    }

    #[test]
    fn images_are_shuffled_whole() {
        let pixels: Vec<u8> = (0..40).flat_map(|i| vec![i; SHAPE.dims()]).collect();
        let mixed = shuffled(&pixels, SHAPE, Seed(1));
        assert_ne!(mixed, pixels);
        let mut found: Vec<&[u8]> = mixed.chunks(SHAPE.dims()).collect();
        found.sort_unstable();
        assert_eq!(found.concat(), pixels);
    }
}
