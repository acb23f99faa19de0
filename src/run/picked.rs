//! Some images of a run's pool, with their exact posteriors: of the pool only these are read.

use std::path::PathBuf;

use super::folder::{Planned, RunFolder};
use crate::data::{ImageShape, NpzImages, read_logp};
use crate::error::{Error, Result};
use crate::oracle::posterior::Posterior;
use crate::oracle::world::Settings;

/// Difference allowed between a pool and what a cell kept of it: exp and log of machines differ by
/// rounding.
pub(super) const SAME: f64 = 1e-9;

/// Some images of a cell, and what is found of them.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPictures<T> {
    /// The cell.
    pub planned: Planned,
    /// What is found of the images, in their order.
    pub found: T,
    /// Shape of each image.
    pub shape: ImageShape,
    /// World-space values, NCHW.
    pub x: Vec<f32>,
    /// The knobs they were drawn at.
    pub settings: Settings,
    /// Their exact posteriors at those knobs, as in the pool.
    pub posteriors: Vec<Posterior>,
}

impl<T> CellPictures<T> {
    /// Images `x` of a pool with their posteriors.
    pub(super) fn of(planned: &Planned, found: T, pool: PoolReader, x: Vec<f32>, posteriors: Vec<Posterior>) -> Self {
        let (planned, shape) = (planned.clone(), pool.shape());
        Self { planned, found, shape, x, settings: pool.settings, posteriors }
    }
}

/// An open pool.
pub(super) struct PoolReader {
    file: PathBuf,
    images: NpzImages,
    /// log p(x|y), nats, [N, K].
    logp: Vec<f64>,
    /// Number of classes K.
    pub classes: usize,
    /// The knobs the images were drawn at.
    pub settings: Settings,
}

impl PoolReader {
    /// The pool of a name under a condition.
    ///
    /// # Errors
    /// Names a pool that is missing or damaged.
    pub fn open(folder: &RunFolder, name: &str, condition: usize) -> Result<Self> {
        let file = folder.pool(name)?;
        if !file.exists() {
            let why =
                "is missing: without the run's images there is nothing to show; run the spec again in another folder";
            return Err(Error::file(&file, why));
        }
        let images = NpzImages::open(&file)?.ok_or_else(|| Error::file(&file, "holds no world-space images"))?;
        let (logp, classes) = read_logp(&file)?;
        let settings = folder.spec.settings(condition, classes)?;
        Ok(Self { file, images, logp, classes, settings })
    }

    /// Shape of every image.
    pub fn shape(&self) -> ImageShape {
        self.images.shape()
    }

    /// Exact posterior of an image.
    ///
    /// # Errors
    /// When there is no such image.
    pub fn posterior(&self, image: usize) -> Result<Posterior> {
        let logp = self.logp.chunks_exact(self.classes.max(1)).nth(image).filter(|_| image < self.images.len());
        let logp = logp.ok_or_else(|| self.other(image))?.to_vec();
        Ok(self.settings.posterior(logp))
    }

    /// World-space values of an image that has a posterior.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn x(&self, image: usize) -> Result<Vec<f32>> {
        self.images.read(image..image + 1)
    }

    /// That an image is not the one a cell has seen.
    pub fn other(&self, image: usize) -> Error {
        Error::file(&self.file, format!("is not the pool this cell was measured on: image {image} is another"))
    }
}
