//! A world: a frozen flow, its preprocessing, a class prior π, a base temperature τ and a posterior smoothing T; a
//! complete joint distribution p(x, y) (theory §1).

use burn::tensor::Tensor;
use rand::distr::{Distribution, StandardUniform};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{Dataset, ImageShape, WorldBatch};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::base::latents;
use crate::flow::preprocess::Dequantisation;
use crate::flow::{Decoded, Decoding, Flow, Resident, Scores};
use crate::oracle::posterior::{Posterior, Prior, draw};
use crate::oracle::running::score_by_classes;
use crate::units::{ClassId, Seed, Smoothing, Tau};

/// The knobs of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Base temperature τ.
    pub tau: Tau,
    /// Posterior smoothing T.
    pub smoothing: Smoothing,
    /// Class prior π.
    pub prior: Prior,
}

impl Settings {
    /// τ = 1, T = 1, uniform prior.
    pub fn default_for(classes: usize) -> Self {
        Self { tau: Tau::ONE, smoothing: Smoothing::ONE, prior: Prior::uniform(classes) }
    }
}

/// Which samples: counter-based, so that sample i is the same image in every batch and for every n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleSpec {
    /// Number of images.
    pub n: usize,
    /// All from this class, or from the prior.
    pub class: Option<ClassId>,
    /// Seed of classes, latents and labels.
    pub seed: Seed,
}

/// One image of a world with everything known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Running number under its seed.
    pub index: usize,
    /// The class y₀ whose density x was drawn from.
    pub source: ClassId,
    /// The label y: y₀ at T = 1; drawn from p_T(·|x) otherwise, so that (x, y) follow the joint world. y₀ always where
    /// one class was asked for.
    pub label: ClassId,
    /// World-space image, CHW, rounded to 32 bits.
    pub x: Vec<f32>,
    /// The exact posterior: in a shared-map world of the image before that rounding, from its base sample ([`World::rounding`]
    /// tells what the rounding does to it); in a class-map world of x itself.
    pub posterior: Posterior,
}

/// What is known of a sample besides its image; fields as of [`Sample`].
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Running number under its seed.
    pub index: usize,
    /// The class y₀.
    pub source: ClassId,
    /// The label y.
    pub label: ClassId,
    /// The exact posterior.
    pub posterior: Posterior,
}

impl Figures {
    /// The sample these are the figures of.
    pub fn with_image(self, x: Vec<f32>) -> Sample {
        let Self { index, source, label, posterior } = self;
        Sample { index, source, label, x, posterior }
    }
}

/// Samples whose images stayed on the device, for the eye.
#[derive(Debug, Clone)]
pub struct ResidentSamples {
    /// In the order asked for.
    pub figures: Vec<Figures>,
    /// Their images as [`World::fetch`] takes them, [N, C, H, W].
    pub images: Tensor<4>,
    /// 8-bit levels for the eye, whole numbers in f32, [N, C, H, W].
    pub levels: Tensor<4>,
}

/// A flow with the names of its classes.
pub struct World {
    flow: Box<dyn Flow>,
    class_names: Vec<String>,
    batch: usize,
}

fn uniform(seed: Seed, index: usize) -> f64 {
    StandardUniform.sample(&mut seed.rng(index as u64))
}

/// What is known of sample `index` of class `source` besides its image.
fn figures(spec: &SampleSpec, settings: &Settings, (index, source): (usize, ClassId), posterior: Posterior) -> Figures {
    let label = if settings.smoothing == Smoothing::ONE || spec.class.is_some() {
        source
    } else {
        posterior.draw(uniform(spec.seed.split("labels"), index))
    };
    Figures { index, source, label, posterior }
}

impl World {
    /// From a flow, the names of its classes, and the number of images one pass of the device should hold.
    ///
    /// # Errors
    /// When the names do not match the flow.
    pub fn new(flow: Box<dyn Flow>, class_names: Vec<String>, batch: usize) -> Result<Self> {
        if class_names.len() != flow.classes() {
            let (names, classes) = (class_names.len(), flow.classes());
            return Err(Error::input(format!("{names} class names for {classes} classes")));
        }
        Ok(Self { flow, class_names, batch: batch.max(1) })
    }

    /// Names of the classes.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// Shape of the images.
    pub fn shape(&self) -> ImageShape {
        self.flow.shape()
    }

    /// The flow.
    pub fn flow(&self) -> &dyn Flow {
        self.flow.as_ref()
    }

    /// Images in one pass of the device.
    pub fn batch(&self) -> usize {
        self.batch
    }

    fn check(&self, settings: &Settings) -> Result<()> {
        let (given, needed) = (settings.prior.classes(), self.flow.classes());
        if given == needed {
            return Ok(());
        }
        Err(Error::input(format!("the class prior has {given} entries, this world {needed} classes")))
    }

    /// The posterior of image `i` of `scores`.
    pub fn posterior(&self, scores: &Scores, i: usize, settings: &Settings) -> Posterior {
        Posterior::new(scores.log_likelihoods(i, settings.tau), &settings.prior, settings.smoothing)
    }

    /// The class y₀ of sample `index`.
    fn source(&self, spec: &SampleSpec, settings: &Settings, index: usize) -> ClassId {
        spec.class.unwrap_or_else(|| draw(settings.prior.probabilities(), uniform(spec.seed.split("classes"), index)))
    }

    /// The samples of the given running numbers, one pass of the device.
    ///
    /// # Errors
    /// When the class or the prior does not fit, or the device fails.
    pub fn sample_indices(&self, spec: &SampleSpec, settings: &Settings, indices: &[usize]) -> Result<Vec<Sample>> {
        self.sample_watched(spec, settings, indices, &mut silent())
    }

    /// [`Self::sample_indices`], told how far the inverse pass has come.
    ///
    /// # Errors
    /// As [`Self::sample_indices`], and when the caller stops.
    pub fn sample_watched(
        &self,
        spec: &SampleSpec,
        settings: &Settings,
        indices: &[usize],
        events: &mut dyn Events<Decoding>,
    ) -> Result<Vec<Sample>> {
        self.sample_running(spec, settings, indices, events, &mut |_, _| Ok(()))
    }

    /// [`Self::sample_watched`]; `scored` gets the images and what is known of their statistics after every batch of classes.
    ///
    /// # Errors
    /// As [`Self::sample_watched`], and what `scored` returns.
    pub fn sample_running(
        &self,
        spec: &SampleSpec,
        settings: &Settings,
        indices: &[usize],
        events: &mut dyn Events<Decoding>,
        scored: &mut dyn FnMut(&[f32], &Scores) -> Result<()>,
    ) -> Result<Vec<Sample>> {
        let (classes, noise) = self.latents_of(spec, settings, indices)?;
        let images = self.decode_running(&noise, &classes, settings, events, scored)?;
        let samples = images.into_iter().zip(indices).zip(&classes).map(|(((x, posterior), &index), &source)| {
            figures(spec, settings, (index, source), posterior).with_image(x)
        });
        Ok(samples.collect())
    }

    /// [`Self::sample_watched`] that leaves the images on the device: only figures are read back. None where the flow cannot.
    ///
    /// # Errors
    /// As [`Self::sample_watched`].
    pub fn sample_resident(
        &self,
        spec: &SampleSpec,
        settings: &Settings,
        indices: &[usize],
        events: &mut dyn Events<Decoding>,
    ) -> Result<Option<ResidentSamples>> {
        let Some(flow) = self.flow.resident() else { return Ok(None) };
        let (classes, noise) = self.latents_of(spec, settings, indices)?;
        let Resident { images, levels, scores } = flow.decode_resident(&noise, &classes, settings.tau, events)?;
        let known = indices.iter().zip(&classes).enumerate().map(|(i, (&index, &source))| {
            figures(spec, settings, (index, source), self.posterior(&scores, i, settings))
        });
        Ok(Some(ResidentSamples { figures: known.collect(), images, levels }))
    }

    /// One of [`ResidentSamples`] with its image: the sample that [`Self::sample_watched`] makes.
    ///
    /// # Errors
    /// When the device fails.
    pub fn fetch(&self, samples: &ResidentSamples, i: usize) -> Result<Sample> {
        let flow = self.flow.resident().ok_or_else(|| Error::input("the images of this world are on the host"))?;
        let x = flow.fetch(samples.images.clone().narrow(0, i, 1))?;
        Ok(samples.figures[i].clone().with_image(x))
    }

    /// The images that standard normal `noise` (NCHW) becomes under the given classes, with their exact posteriors.
    ///
    /// # Errors
    /// When a class does not exist, the prior does not fit, the device fails, or the caller stops.
    pub fn decode(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        settings: &Settings,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Vec<(Vec<f32>, Posterior)>> {
        self.check(settings)?;
        if let Some(class) = classes.iter().find(|&&class| class >= self.flow.classes()) {
            return Err(Error::input(format!("class {class} is not among the {} of this world", self.flow.classes())));
        }
        self.decode_running(noise, classes, settings, events, &mut |_, _| Ok(()))
    }

    fn decode_running(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        settings: &Settings,
        events: &mut dyn Events<Decoding>,
        scored: &mut dyn FnMut(&[f32], &Scores) -> Result<()>,
    ) -> Result<Vec<(Vec<f32>, Posterior)>> {
        let Decoded { x, scores } = self.flow.decode(noise, classes, settings.tau, events)?;
        let scores = match scores {
            Some(scores) => scores,
            None => score_by_classes(self.flow(), &x, &mut |scores| {
                scored(&x, scores)?;
                let progress = Progress { done: scores.classes, total: self.flow.classes() };
                events.report(Decoding { progress, x: None })
            })?,
        };
        let images = x.chunks(self.shape().dims()).enumerate();
        Ok(images.map(|(i, x)| (x.to_vec(), self.posterior(&scores, i, settings))).collect())
    }

    /// Passes that a device compiles at their first use: of one image both ways, in a class-map world forward under one class
    /// only (its inverse takes hundreds of steps, and tells how far it is).
    ///
    /// # Errors
    /// When the device fails.
    pub fn prepare(&self) -> Result<()> {
        let noise = vec![0f32; self.shape().dims()];
        let x = match (self.flow.class_map(), self.flow.resident()) {
            (Some(_), _) => noise,
            (None, Some(flow)) => {
                let made = flow.decode_resident(&noise, &[0], Tau::ONE, &mut silent())?;
                flow.fetch(made.images)?
            }
            (None, None) => self.flow.decode(&noise, &[0], Tau::ONE, &mut silent())?.x,
        };
        self.flow.score_classes(&x, 0..1).map(drop)
    }

    /// Classes y₀ and standard normal latents (NCHW) of samples.
    ///
    /// # Errors
    /// When the class or the prior does not fit.
    pub fn latents_of(
        &self,
        spec: &SampleSpec,
        settings: &Settings,
        indices: &[usize],
    ) -> Result<(Vec<ClassId>, Vec<f32>)> {
        self.check(settings)?;
        if let Some(class) = spec.class.filter(|&class| class >= self.flow.classes()) {
            return Err(Error::input(format!("class {class} is not among the {} of this world", self.flow.classes())));
        }
        let dims = self.shape().dims();
        let classes = indices.iter().map(|&i| self.source(spec, settings, i)).collect();
        let seed = spec.seed.split("latents");
        let noise = indices.par_iter().flat_map_iter(|&i| latents(seed, i, 1, dims)).collect();
        Ok((classes, noise))
    }

    /// Statistics of world-space images `x` (NCHW), batch after batch.
    ///
    /// # Errors
    /// When an image has no density in this world, the device fails, or the caller stops.
    pub fn score(&self, x: &[f32], events: &mut dyn Events<Progress>) -> Result<Scores> {
        let dims = self.shape().dims();
        let total = x.len() / dims;
        // Where every class is a pass of its own, the caller may stop between them.
        let slow = self.flow.class_map().is_some();
        let images = if slow { self.batch.min(self.flow.images_per_pass()) } else { self.batch };
        let mut all: Option<Scores> = None;
        let mut done = 0;
        for chunk in x.chunks(images * dims) {
            let mut each = |_: &Scores| if slow { events.report(Progress { done, total }) } else { Ok(()) };
            let scores = score_by_classes(self.flow(), chunk, &mut each).map_err(|error| renumber(error, done))?;
            done += scores.len();
            match &mut all {
                Some(all) => all.append(scores),
                None => all = Some(scores),
            }
            events.report(Progress { done, total })?;
        }
        all.ok_or_else(|| Error::input("no images"))
    }

    /// 8-bit images as this world sees them: grey or RGB and zero-padded to its shape, dequantised (as is usual in this world
    /// where nothing is said).
    ///
    /// # Errors
    /// When they are larger than the world's images.
    pub fn map_in(&self, images: Dataset, dequantisation: Option<Dequantisation>) -> Result<Vec<f32>> {
        let how = dequantisation.unwrap_or_else(|| self.flow.pixels().default_dequantisation());
        let images = self.fit(images)?;
        Ok(self.flow.pixels().map_in(&images.pixels, self.shape().dims(), 0, how))
    }

    /// 8-bit images in the shape of this world: grey or RGB, zero-padded.
    ///
    /// # Errors
    /// When they are larger than the world's images.
    pub fn fit(&self, images: Dataset) -> Result<Dataset> {
        let shape = self.shape();
        let images = images.to_channels(shape.channels)?;
        let images = if images.shape == shape { images } else { images.pad_to(shape.width)? };
        if images.shape != shape {
            return Err(Error::input(format!(
                "{}: {} images do not fit this world of {shape}",
                images.name, images.shape
            )));
        }
        Ok(images)
    }
}

/// An error about image i of a batch, told as image i of the whole.
pub(super) fn renumber(error: Error, first: usize) -> Error {
    match error {
        Error::Input(text) => {
            Error::Input(if first == 0 { text } else { format!("{text} (counted from image {first})") })
        }
        other => other,
    }
}

/// Samples as arrays for a file.
pub fn to_world_batch(shape: ImageShape, classes: usize, samples: &[Sample]) -> WorldBatch {
    let posteriors = || samples.iter().map(|s| &s.posterior);
    WorldBatch {
        shape,
        x: samples.iter().flat_map(|s| s.x.iter().copied()).collect(),
        classes,
        y: Some(samples.iter().map(|s| s.label as i64).collect()),
        posterior: Some(posteriors().flat_map(|p| p.probabilities.iter().map(|&p| p as f32)).collect()),
        logp: Some(posteriors().flat_map(|p| p.log_likelihood.iter().copied()).collect()),
        aleatoric: Some(posteriors().map(|p| p.entropy_nats).collect()),
    }
}
