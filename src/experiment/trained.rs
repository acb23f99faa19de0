//! A trained classifier: its answers, and the figures of a finished cell.

use super::blocks::TestBlocks;
use super::images::Images;
use super::progress::Measuring;
use super::tested::Tested;
use super::train::{CellEvent, CellJob};
use super::watched::Watched;
use super::worst::{Keeper, Worst};
use crate::classifier::{PASS, Scaled};
use crate::error::Result;
use crate::events::Events;
use crate::measure::{Bootstrap, Measured, PerImage};
use crate::units::Seed;

/// Looks at the figures so far, the number of a batch's first image, and its log q.
type Look<'a> = &'a mut dyn FnMut(&PerImage, usize, &[f64]) -> Result<()>;

/// A classifier with the scale of its input, and how it came to be.
pub struct Trained {
    scaled: Scaled,
    course: Vec<Watched>,
}

impl Trained {
    /// A classifier with the scale it was trained with, and what was watched meanwhile.
    pub(super) fn new(scaled: Scaled, course: Vec<Watched>) -> Self {
        Self { scaled, course }
    }

    /// The watched test images in the course of its training, all sittings together.
    pub fn course(&self) -> &[Watched] {
        &self.course
    }

    /// log q(y|x) of images `x` (NCHW, world space), [N, K].
    ///
    /// # Errors
    /// When the device fails.
    pub fn log_q(&self, x: Vec<f32>) -> Result<Vec<f64>> {
        self.scaled.log_q(x)
    }

    /// Multiply-accumulates for the answer to one image; `None` of networks that are not counted.
    pub(super) fn macs_per_image(&self) -> Option<f64> {
        self.scaled.macs_per_image()
    }

    /// Why the classifier has no features, if it has none: a linear one reads the pixels
    /// themselves.
    pub(super) fn lacks_features(&self) -> Option<String> {
        self.scaled.check_features().err().map(|why| why.to_string())
    }

    /// What the last linear map reads of images `x` (NCHW, world space), [N, d].
    ///
    /// # Errors
    /// For a linear classifier; when the device fails.
    pub(super) fn features(&self, x: Vec<f32>) -> Result<Vec<f32>> {
        self.scaled.features(x)
    }

    /// What the last linear map reads of images `x` (NCHW, world space), [N, d]; of a linear
    /// classifier, that has no features of its own, the pixels, scaled but not resized.
    ///
    /// # Errors
    /// When the device fails.
    pub(super) fn read_by_last_layer(&self, x: Vec<f32>) -> Result<Vec<f32>> {
        match self.scaled.check_features() {
            Ok(()) => self.features(x),
            Err(_) => Ok(self.scaled.scaled(x)),
        }
    }

    /// The figures of the first `count` of some images.
    ///
    /// # Errors
    /// As [`Self::log_q`], and when a posterior is none.
    pub fn per_image(&self, images: &Images, count: usize) -> Result<PerImage> {
        self.looked_at(images, count, &mut |_, _, _| Ok(()))
    }

    /// [`Self::per_image`]; `look` gets the figures so far, the number of a batch's first image,
    /// its log q. Its error ends the look.
    fn looked_at(&self, images: &Images, count: usize, look: Look<'_>) -> Result<PerImage> {
        let (dims, k) = (images.shape.dims(), images.classes);
        let mut figures = PerImage::new(k)?;
        let count = count.min(images.len());
        for first in (0..count).step_by(PASS) {
            let end = count.min(first + PASS);
            let log_q = self.log_q(images.all.x[first * dims..end * dims].to_vec())?;
            figures.extend(&images.all.posterior[first * k..end * k], &log_q, &images.all.labels[first..end])?;
            look(&figures, first, &log_q)?;
        }
        Ok(figures)
    }
}

/// Measures the finished classifier. Its worst images and its figures on each are written first: a
/// finished cell has them. The trained state is on disk by then: a stop loses no training.
pub(super) fn measure(
    job: &CellJob<'_>,
    trained: &Trained,
    events: &mut dyn Events<CellEvent>,
) -> Result<(Measured, TestBlocks)> {
    let (test, mut keeper) = (job.test, Keeper::default());
    let mut pieces = Measuring::begin(events, "the test images", test.len())?;
    let images = trained.looked_at(test, test.len(), &mut |images, first, log_q| {
        keeper.look(images, first, log_q);
        pieces.done(images.len() - first)
    })?;
    let worst = Worst { id: job.id.to_owned(), tested: images.len(), images: keeper.finish(&images, test) };
    worst.write(job.folder)?;
    Tested::of(&images, test).write(job.folder)?;
    Ok((images.measured(&measuring())?, TestBlocks::of(&images)))
}

/// The same resampled images for every cell, so that they do not blur differences between cells.
pub(super) fn measuring() -> Bootstrap {
    Bootstrap::new(Seed(0).split("measured"))
}
