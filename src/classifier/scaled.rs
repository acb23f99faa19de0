//! A classifier with the scale of its input: what a trained one needs to answer about images of the
//! world.

use serde::{Deserialize, Serialize};

use super::spec::IMAGENET;
use super::{Classifier, ClassifierConfig, Normalisation, onnx};
use crate::data::ImageShape;
use crate::error::Result;
use crate::measure::log_softmax;

/// Images in one pass.
pub const PASS: usize = 256;

/// A classifier that takes images as they are in the world.
#[derive(Debug, Clone)]
pub struct Scaled {
    classifier: Classifier,
    scale: InputScale,
}

impl Scaled {
    /// A classifier and the scale it was trained with.
    pub fn new(classifier: Classifier, scale: InputScale) -> Self {
        Self { classifier, scale }
    }

    /// Which network it is, and for which images.
    pub fn config(&self) -> &ClassifierConfig {
        &self.classifier.config
    }

    /// log q(y|x) in nats of images `x` (NCHW, world space), [N, K].
    ///
    /// # Errors
    /// When the device fails.
    pub fn log_q(&self, mut x: Vec<f32>) -> Result<Vec<f64>> {
        let ClassifierConfig { shape, classes, .. } = *self.config();
        self.scale.apply(&mut x, shape);
        let logits: Vec<f32> = self.classifier.logits(&x, PASS)?.into_iter().map(|v| v as f32).collect();
        Ok(log_softmax(&logits, classes))
    }

    /// What the last linear map reads of images `x` (NCHW, world space), [N, d].
    ///
    /// # Errors
    /// For a linear classifier; when the device fails.
    pub fn features(&self, mut x: Vec<f32>) -> Result<Vec<f32>> {
        self.scale.apply(&mut x, self.config().shape);
        Ok(self.classifier.features(&x, PASS)?.0)
    }

    /// Images `x` (NCHW, world space) as the network gets them, before it resizes them.
    pub fn scaled(&self, mut x: Vec<f32>) -> Vec<f32> {
        self.scale.apply(&mut x, self.config().shape);
        x
    }

    /// Multiply-accumulates for the answer to one image; `None` of networks that are not counted.
    pub fn macs_per_image(&self) -> Option<f64> {
        self.classifier.macs_per_image()
    }

    /// Whether the classifier has features of its own.
    ///
    /// # Errors
    /// For a linear classifier.
    pub fn check_features(&self) -> Result<()> {
        self.classifier.check_features()
    }
}

/// x ↦ (x − shift_c)·factor_c for each channel c, in 32 bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputScale(Vec<(f32, f32)>);

impl InputScale {
    /// The scale of a normalisation; the values of images (NCHW) that set it are asked for only
    /// where they are needed. `range` holds the ends of the range of pixels, which ImageNet's
    /// figures take to be 0 and 1.
    ///
    /// # Errors
    /// Those of `images`.
    pub fn of(
        how: Normalisation,
        shape: ImageShape,
        [low, high]: [f32; 2],
        images: impl FnOnce() -> Result<Vec<f32>>,
    ) -> Result<Self> {
        let channels = match how {
            Normalisation::AsIs => vec![(0.0, 1.0); shape.channels],
            Normalisation::Imagenet => {
                let width = high - low;
                let [mean, std] = IMAGENET.map(|figures| figures.map(|figure| figure as f32));
                let scaled = |c: usize| (low + mean[c] * width, (std[c] * width).recip());
                (0..shape.channels).map(|c| scaled(c % 3)).collect()
            }
            Normalisation::Standard => {
                let (x, pixels) = (images()?, shape.height * shape.width);
                let of = |c: usize| x.chunks_exact(pixels).skip(c).step_by(shape.channels).flatten().copied();
                (0..shape.channels).map(|c| standard(of(c))).collect()
            }
        };
        Ok(Self(channels))
    }

    /// The scale of a normalisation as a user names it, for worlds whose pixels lie in `range`.
    ///
    /// # Errors
    /// When it has figures for another number of channels, or needs a range that is not known.
    pub fn named(how: &onnx::Normalisation, channels: usize, range: Option<[f32; 2]>) -> Result<Self> {
        Ok(Self(how.shifts_and_factors(channels, range)?))
    }

    /// Number of channels it is for.
    pub fn channels(&self) -> usize {
        self.0.len()
    }

    /// Scales images (NCHW) of a shape in place.
    pub fn apply(&self, x: &mut [f32], shape: ImageShape) {
        for (plane, (shift, factor)) in x.chunks_exact_mut(shape.height * shape.width).zip(self.0.iter().cycle()) {
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

    #[test]
    fn imagenets_scale_sees_values_between_0_and_1_whatever_the_worlds_range() {
        let shape = ImageShape { channels: 3, height: 1, width: 2 };
        let unit = [0.0f32, 1.0, 0.3, 0.6, 0.485, 0.9];
        let written = |c: usize, v: f32| (v - IMAGENET[0][c] as f32) / IMAGENET[1][c] as f32;
        let named: onnx::Normalisation = "imagenet".parse().unwrap();
        for range in [[0.0f32, 1.0], [-1.0, 1.0]] {
            let scales = [
                InputScale::of(Normalisation::Imagenet, shape, range, || unreachable!()).unwrap(),
                InputScale::named(&named, 3, Some(range)).unwrap(),
            ];
            for scale in scales {
                let mut x = unit.map(|v| range[0] + v * (range[1] - range[0])).to_vec();
                scale.apply(&mut x, shape);
                for (i, v) in x.into_iter().enumerate() {
                    assert!((v - written(i / 2, unit[i])).abs() < 1e-5, "{range:?} {i}: {v}");
                }
            }
        }
    }

    #[test]
    fn a_standard_scale_gives_mean_0_and_variance_1_by_channel() {
        let shape = ImageShape { channels: 2, height: 2, width: 3 };
        let mut x: Vec<f32> = (0..48).map(|i| if (i / 6) % 2 == 0 { i as f32 } else { 5.0 }).collect();
        let images = x.clone();
        let scale = InputScale::of(Normalisation::Standard, shape, [0.0, 1.0], || Ok(images)).unwrap();
        scale.apply(&mut x, shape);
        let first: Vec<f32> = x.chunks(12).flat_map(|image| image[..6].to_vec()).collect();
        let (mean, factor) = standard(first.into_iter());
        assert!(mean.abs() < 1e-6 && (factor - 1.0).abs() < 1e-6);
        // A channel that does not vary is only moved.
        assert!(x.chunks(12).all(|image| image[6..].iter().all(|v| *v == 0.0)));
    }

    #[test]
    fn a_scale_comes_back_to_the_bit() {
        let scale = InputScale(vec![(0.1 + 0.2, 1.0 / 3.0), (-f32::MIN_POSITIVE, 1e30)]);
        let text = serde_json::to_string(&scale).unwrap();
        assert_eq!(serde_json::from_str::<InputScale>(&text).unwrap(), scale);
    }
}
