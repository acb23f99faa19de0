//! The test images of which a step of an external run knows least.

use serde::Serialize;

use super::spec::{ExternalFolder, FILES};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::experiment::WorstImage;
use crate::measure::argmax;
use crate::oracle::world::Settings;
use crate::units::ClassId;

/// The worst test images of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepWorst {
    /// Steps done.
    pub step: u64,
    /// Test images there were.
    pub tested: usize,
    /// Names of the classes, in the order of p and q.
    pub classes: Vec<String>,
    /// The worst of them, largest KL first.
    pub images: Vec<StepImage>,
}

/// One of them, and what is decided on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepImage {
    /// The image, p and q.
    #[serde(flatten)]
    pub worst: WorstImage,
    /// H(p), nats: the uncertainty of the image itself.
    pub entropy: f64,
    /// argmax q; of equals the first class.
    pub decision: ClassId,
    /// Its exact probability.
    pub p_decision: f64,
    /// What the classifier gives it.
    pub q_decision: f64,
}

/// The worst test images of a step with their pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct StepPictures {
    /// What is found of them.
    pub found: StepWorst,
    /// Shape of each image.
    pub shape: ImageShape,
    /// World-space values, NCHW.
    pub x: Vec<f32>,
    /// The knobs they were drawn at.
    pub settings: Settings,
}

impl ExternalFolder {
    /// The `count` test images with the largest KL(p‖q) at a step, the last one if `None`.
    ///
    /// # Errors
    /// When no such step was logged; names a record or file of test images that is wrong.
    pub fn worst(&self, step: Option<u64>, count: usize) -> Result<StepWorst> {
        let last = || self.last_step()?.ok_or_else(|| Error::file(&self.path, "has no record of predictions yet"));
        let step = step.map_or_else(last, Ok)?;
        self.check_images(None)?;
        let truth = self.truth()?;
        let (log_q, images) = self.images_at(step, &truth)?;
        let k = self.spec.test.classes.len();
        let of = |image: usize| {
            let row = image * k..(image + 1) * k;
            let q: Vec<f64> = log_q[row.clone()].iter().map(|log_q| log_q.exp()).collect();
            let p = truth.posterior[row].to_vec();
            let decision = argmax(&q);
            let (p_decision, q_decision) = (p[decision], q[decision]);
            let worst = WorstImage { image, kl: images.kl[image].max(0.0), label: images.label[image], p, q };
            StepImage { worst, entropy: images.entropy[image], decision, p_decision, q_decision }
        };
        Ok(StepWorst {
            step,
            tested: images.len(),
            classes: self.spec.test.classes.clone(),
            images: images.worst(count).into_iter().map(of).collect(),
        })
    }

    /// [`Self::worst`] with the images themselves.
    ///
    /// # Errors
    /// As [`Self::worst`]; names the file of images that was changed.
    pub fn worst_pictures(&self, step: u64, count: usize) -> Result<StepPictures> {
        let found = self.worst(Some(step), count)?;
        let (shape, n) = (self.spec.test.shape, self.spec.test.images);
        let all = self.array(FILES[0], &[n, shape.channels, shape.height, shape.width])?.floats();
        let all = all.ok_or_else(|| Error::file(&self.path, format!("{} has no floating-point numbers", FILES[0])))?;
        let dims = shape.channels * shape.height * shape.width;
        let of = |one: &StepImage| &all[one.worst.image * dims..(one.worst.image + 1) * dims];
        let x = found.images.iter().flat_map(of).map(|&v| v as f32).collect();
        let world = self.spec.world.clone();
        let (tau, smoothing, prior, label_noise) = (world.tau, world.smoothing, world.prior, world.label_noise);
        Ok(StepPictures { found, shape, x, settings: Settings { tau, smoothing, prior, label_noise } })
    }
}
