//! A trained classifier: the scale of its input, its answers, and the figures of a finished cell.

use super::images::{Batch, Images};
use super::train::Job;
use super::watched::Watched;
use super::worst::{Keeper, Worst};
use crate::classifier::{Classifier, Normalisation};
use crate::data::ImageShape;
use crate::error::Result;
use crate::measure::{Bootstrap, Measured, PerImage, log_softmax};
use crate::units::Seed;

/// Images in one pass over the test images.
const TEST_BATCH: usize = 256;

/// A classifier with the scale of its input, and how it came to be.
pub struct Trained {
    classifier: Classifier,
    scale: Scale,
    course: Vec<Watched>,
}

impl Trained {
    /// A classifier, the scale it was trained with, and what was watched meanwhile.
    pub(super) fn new(classifier: Classifier, scale: Scale, course: Vec<Watched>) -> Self {
        Self { classifier, scale, course }
    }

    /// The watched test images in the course of its training, all sittings together.
    pub fn course(&self) -> &[Watched] {
        &self.course
    }

    /// log q(y|x) of images `x` (NCHW, world space), [N, K].
    ///
    /// # Errors
    /// When the device fails.
    pub fn log_q(&self, mut x: Vec<f32>, classes: usize) -> Result<Vec<f64>> {
        self.scale.apply(&mut x);
        let logits: Vec<f32> = self.classifier.logits(&x, TEST_BATCH)?.into_iter().map(|v| v as f32).collect();
        Ok(log_softmax(&logits, classes))
    }

    /// The figures of the first `count` of some images.
    ///
    /// # Errors
    /// As [`Self::log_q`], and when a posterior is none.
    pub fn per_image(&self, images: &Images, count: usize) -> Result<PerImage> {
        self.looked_at(images, count, &mut |_, _, _| {})
    }

    /// [`Self::per_image`]; `look` sees the figures so far, the number of the first image of a batch, and its log q.
    fn looked_at(
        &self,
        images: &Images,
        count: usize,
        look: &mut dyn FnMut(&PerImage, usize, &[f64]),
    ) -> Result<PerImage> {
        let (dims, k) = (images.shape.dims(), images.classes);
        let mut figures = PerImage::new(k)?;
        let count = count.min(images.len());
        for first in (0..count).step_by(TEST_BATCH) {
            let end = count.min(first + TEST_BATCH);
            let log_q = self.log_q(images.all.x[first * dims..end * dims].to_vec(), k)?;
            figures.extend(&images.all.posterior[first * k..end * k], &log_q, &images.all.labels[first..end])?;
            look(&figures, first, &log_q);
        }
        Ok(figures)
    }
}

/// The figures of the finished classifier. Its worst images are written first: a finished cell always has them.
pub(super) fn measure(job: &Job<'_>, trained: &Trained) -> Result<Measured> {
    let (test, mut keeper) = (job.test, Keeper::default());
    let images = trained.looked_at(test, test.len(), &mut |images, first, log_q| keeper.look(images, first, log_q))?;
    let worst = Worst { id: job.id.to_owned(), tested: images.len(), images: keeper.finish(&images, test) };
    worst.write(job.folder)?;
    images.measured(&measuring())
}

/// The same resampled images for every cell, so that differences between cells are not blurred by it.
pub(super) fn measuring() -> Bootstrap {
    Bootstrap::new(Seed(0).split("measured"))
}

/// x ↦ (x − shift_c)·factor_c for each channel.
#[derive(Debug, Clone)]
pub(super) struct Scale {
    channels: Vec<(f32, f32)>,
    /// Pixels of a channel.
    pixels: usize,
}

/// ImageNet's means and standard deviations of red, green and blue between 0 and 1.
const IMAGENET: [(f32, f32); 3] = [(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)];

impl Scale {
    /// The scale of a normalisation; the images that set it are asked for only where they are needed.
    /// `range` holds the ends of the range of pixels, which ImageNet's figures take to be 0 and 1.
    pub(super) fn of(
        how: Normalisation,
        shape: ImageShape,
        [low, high]: [f32; 2],
        images: impl FnOnce() -> Result<Batch>,
    ) -> Result<Self> {
        let pixels = shape.height * shape.width;
        let channels = match how {
            Normalisation::AsIs => vec![(0.0, 1.0); shape.channels],
            Normalisation::Imagenet => {
                let width = high - low;
                let scaled = |(mean, std): (f32, f32)| (low + mean * width, (std * width).recip());
                (0..shape.channels).map(|c| scaled(IMAGENET[c % 3])).collect()
            }
            Normalisation::Standard => {
                let x = images()?.x;
                let of = |c: usize| x.chunks_exact(pixels).skip(c).step_by(shape.channels).flatten().copied();
                (0..shape.channels).map(|c| standard(of(c))).collect()
            }
        };
        Ok(Self { channels, pixels })
    }

    /// Scales images in place.
    pub(super) fn apply(&self, x: &mut [f32]) {
        for (plane, (shift, factor)) in x.chunks_exact_mut(self.pixels).zip(self.channels.iter().cycle()) {
            plane.iter_mut().for_each(|v| *v = (*v - shift) * factor);
        }
    }
}

/// Mean and reciprocal of the standard deviation; 1 where nothing varies.
fn standard(values: impl Iterator<Item = f32> + Clone) -> (f32, f32) {
    let n = values.clone().count().max(1) as f64;
    let mean = values.clone().map(f64::from).sum::<f64>() / n;
    let variance = values.map(|v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
    (mean as f32, if variance > 0.0 { variance.sqrt().recip() as f32 } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ImageShape = ImageShape { channels: 2, height: 2, width: 3 };

    #[test]
    fn imagenets_scale_sees_values_between_0_and_1_whatever_the_worlds_range() {
        let shape = ImageShape { channels: 3, height: 1, width: 2 };
        let unit = [0.0f32, 1.0, 0.3, 0.6, 0.485, 0.9];
        let written = |c: usize, v: f32| (v - IMAGENET[c].0) / IMAGENET[c].1;
        let scaled = |range: [f32; 2]| {
            let mut x = unit.map(|v| range[0] + v * (range[1] - range[0])).to_vec();
            Scale::of(Normalisation::Imagenet, shape, range, || unreachable!()).unwrap().apply(&mut x);
            x
        };
        for range in [[0.0, 1.0], [-1.0, 1.0]] {
            for (i, v) in scaled(range).into_iter().enumerate() {
                assert!((v - written(i / 2, unit[i])).abs() < 1e-5, "{range:?} {i}: {v}");
            }
        }
    }

    #[test]
    fn a_standard_scale_gives_mean_0_and_variance_1_by_channel() {
        let x: Vec<f32> = (0..48).map(|i| if (i / 6) % 2 == 0 { i as f32 } else { 5.0 }).collect();
        let batch = Batch { x: x.clone(), labels: vec![], posterior: vec![] };
        let scale = Scale::of(Normalisation::Standard, SHAPE, [0.0, 1.0], || Ok(batch)).unwrap();
        let mut x = x;
        scale.apply(&mut x);
        let first: Vec<f32> = x.chunks(12).flat_map(|image| image[..6].to_vec()).collect();
        let (mean, factor) = standard(first.into_iter());
        assert!(mean.abs() < 1e-6 && (factor - 1.0).abs() < 1e-6);
        // A channel that does not vary is only moved.
        assert!(x.chunks(12).all(|image| image[6..].iter().all(|v| *v == 0.0)));
    }
}
