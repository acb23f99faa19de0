//! A world: a frozen flow, its preprocessing, a class prior π, a base temperature τ, a posterior
//! smoothing T and label noise C; a complete joint distribution p(x, y) (theory §1).

mod identity;
mod samples;

use std::cell::{OnceCell, RefCell};

use crate::data::{Dataset, Ground, ImageShape};
use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::base::latents;
use crate::flow::preprocess::Dequantisation;
use crate::flow::{Decoded, Decoding, Flow, Resident, Scores};
use crate::oracle::numbering::{of_sample, renumber};
use crate::oracle::posterior::{Posterior, draw};
use crate::oracle::running::{CLASS_BATCH, score_by_classes};
use crate::parallel;
use crate::units::{ClassId, Tau};

pub use samples::{Figures, LabelLaw, ResidentSamples, Sample, SampleSpec, Settings, to_world_batch};
use samples::{figures, uniform};

/// A flow with the names of its classes.
pub struct World {
    flow: Box<dyn Flow>,
    class_names: Vec<String>,
    /// SHA-256 of the weights; empty where unknown.
    weights_sha256: String,
    /// How pixels enter, in a word, where no record of a training says so of the weights.
    assumed_pixels: Option<String>,
    batch: usize,
    /// What draws images with narrow products, once it was asked for.
    narrow: RefCell<Option<(MatmulPrecision, Box<dyn Flow>)>>,
    /// What pictures are made to look like, once it was asked for.
    ground: OnceCell<Ground>,
}

impl World {
    /// From a flow, the names of its classes, and the number of images one pass of the device
    /// should hold.
    ///
    /// # Errors
    /// When the names do not match the flow.
    pub fn new(flow: Box<dyn Flow>, class_names: Vec<String>, batch: usize) -> Result<Self> {
        if class_names.len() != flow.classes() {
            let (names, classes) = (class_names.len(), flow.classes());
            return Err(Error::input(format!("{names} class names for {classes} classes")));
        }
        let (weights_sha256, assumed_pixels, batch) = (String::new(), None, batch.max(1));
        let (narrow, ground) = (RefCell::default(), OnceCell::new());
        Ok(Self { flow, class_names, weights_sha256, assumed_pixels, batch, narrow, ground })
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

    /// Where [`World::ground`] keeps what it found.
    pub(super) fn known_ground(&self) -> &OnceCell<Ground> {
        &self.ground
    }

    /// Images in one pass of the device.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Checks that prior and label noise are of the classes of this world.
    ///
    /// # Errors
    /// Says how many classes they have.
    pub fn check(&self, settings: &Settings) -> Result<()> {
        let (given, needed) = (settings.prior.classes(), self.flow.classes());
        if given != needed {
            return Err(Error::input(format!("the class prior has {given} entries, this world {needed} classes")));
        }
        settings.label_noise.as_ref().map_or(Ok(()), |noise| noise.check(needed))
    }

    /// Checks that a class is one of this world.
    ///
    /// # Errors
    /// Says how many there are.
    pub(super) fn check_class(&self, class: ClassId) -> Result<()> {
        match self.flow.classes() {
            classes if class < classes => Ok(()),
            classes => Err(Error::input(format!("class {class} is not among the {classes} of this world"))),
        }
    }

    /// The posterior of image `i` of `scores`.
    pub fn posterior(&self, scores: &Scores, i: usize, settings: &Settings) -> Posterior {
        settings.posterior(scores.log_likelihoods(i, settings.tau))
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

    /// [`Self::sample_indices`] that reports the progress of the inverse pass.
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

    /// [`Self::sample_watched`]; `scored` gets the images and what is known of their statistics
    /// after every batch of classes.
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
        let images = self
            .decode_running(&noise, &classes, settings, spec.products, events, scored)
            .map_err(|error| of_sample(error, indices, settings.tau))?;
        let samples = images.into_iter().zip(indices).zip(&classes).map(|(((x, posterior), &index), &source)| {
            figures(spec, settings, (index, source), posterior).with_image(x)
        });
        Ok(samples.collect())
    }

    /// The pictures of samples without any figure of theirs, 8-bit levels, CHW.
    ///
    /// # Errors
    /// As [`Self::sample_watched`].
    pub fn pictures(
        &self,
        spec: &SampleSpec,
        settings: &Settings,
        indices: &[usize],
        events: &mut dyn Events<Decoding>,
    ) -> Result<Vec<Vec<u8>>> {
        let (classes, noise) = self.latents_of(spec, settings, indices)?;
        let drawn = self.decode_flow(&noise, &classes, settings.tau, spec.products, events);
        let x = drawn.map_err(|error| of_sample(error, indices, settings.tau))?.x;
        Ok(x.chunks(self.shape().dims()).map(|x| self.flow.pixels().picture(x)).collect())
    }

    /// [`Self::sample_watched`] that leaves the images on the device: only figures are read back.
    /// None where the flow cannot, or draws them with narrow products.
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
        let Some(flow) = self.flow.resident().filter(|_| spec.products.is_wide()) else { return Ok(None) };
        let (classes, noise) = self.latents_of(spec, settings, indices)?;
        let Resident { images, levels, scores } = flow
            .decode_resident(&noise, &classes, settings.tau, events)
            .map_err(|error| of_sample(error, indices, settings.tau))?;
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

    /// The images that standard normal `noise` (NCHW) becomes under the given classes, with their
    /// exact posteriors.
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
        classes.iter().try_for_each(|class| self.check_class(*class))?;
        self.decode_running(noise, classes, settings, MatmulPrecision::F32, events, &mut |_, _| Ok(()))
            .map_err(|error| of_sample(error, &[], settings.tau))
    }

    fn decode_running(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        settings: &Settings,
        products: MatmulPrecision,
        events: &mut dyn Events<Decoding>,
        scored: &mut dyn FnMut(&[f32], &Scores) -> Result<()>,
    ) -> Result<Vec<(Vec<f32>, Posterior)>> {
        let Decoded { x, scores } = self.decode_flow(noise, classes, settings.tau, products, events)?;
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

    /// Images by the flow, or by its narrow twin.
    fn decode_flow(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        products: MatmulPrecision,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Decoded> {
        match products {
            MatmulPrecision::F32 => self.flow.decode(noise, classes, tau, events),
            narrow => self.draw_narrow(narrow, noise, classes, tau, events),
        }
    }

    /// Images by the flow's narrow twin; what they are scored by is the flow itself.
    fn draw_narrow(
        &self,
        products: MatmulPrecision,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Decoded> {
        let mut narrow = self.narrow.borrow_mut();
        let flow = match narrow.take() {
            Some((of, flow)) if of == products => flow,
            _ => self.flow.narrowed(products)?,
        };
        let (_, flow) = narrow.insert((products, flow));
        if let (Some(flow), Some(wide)) = (flow.block_inversion(), self.flow.block_inversion()) {
            flow.set_strategies(wide.strategies());
        }
        Ok(Decoded { scores: None, ..flow.decode(noise, classes, tau, events)? })
    }

    /// Passes that a device compiles at their first use: of one image both ways, where the inverse
    /// has stages forward under one class only (it takes hundreds of steps and reports them).
    ///
    /// # Errors
    /// When the device fails.
    pub fn prepare(&self) -> Result<()> {
        let noise = vec![0f32; self.shape().dims()];
        let x = match (self.flow.stages(), self.flow.resident()) {
            (2.., _) => noise,
            (_, Some(flow)) => {
                let made = flow.decode_resident(&noise, &[0], Tau::ONE, &mut silent())?;
                flow.fetch(made.images)?
            }
            (_, None) => self.flow.decode(&noise, &[0], Tau::ONE, &mut silent())?.x,
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
        spec.class.map_or(Ok(()), |class| self.check_class(class))?;
        let dims = self.shape().dims();
        let classes = indices.iter().map(|&i| self.source(spec, settings, i)).collect();
        let seed = spec.seed.split("latents");
        let noise = parallel::flat_map(indices.len(), |at| latents(seed, indices[at], 1, dims));
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
        let slow = self.flow.passes_by_class();
        let images = self.flow.pairs_per_pass().map_or(self.batch, |pairs| {
            let filling = pairs / CLASS_BATCH.min(self.flow.classes());
            self.batch.min(filling.max(self.flow.images_per_pass()))
        });
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

    /// 8-bit images as this world sees them: grey or RGB and zero-padded to its shape, dequantised:
    /// of several draws the first.
    ///
    /// # Errors
    /// When they are larger than the world's images.
    pub fn map_in(&self, images: Dataset, how: Dequantisation) -> Result<Vec<f32>> {
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
