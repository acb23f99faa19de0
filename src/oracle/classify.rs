//! Images from outside in a world: read, mapped in, scored.

use std::sync::OnceLock;

use crate::data::{Dataset, Input, WorldBatch};
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::Scores;
use crate::flow::preprocess::Dequantisation;
use crate::oracle::cells::{CellEstimate, estimate};
use crate::oracle::pictures::{Picture, Reading};
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{Settings, World};

/// Images from outside as a world sees them. Posteriors at any τ, T and π follow from their
/// statistics without another pass.
#[derive(Debug, Clone)]
pub struct ExternalImages {
    /// Where they came from.
    pub name: String,
    /// A name for each.
    pub ids: Vec<String>,
    /// Labels, where the source has them.
    pub labels: Option<Vec<usize>>,
    /// World-space images, NCHW.
    pub x: Vec<f32>,
    /// How pixels were dequantised; nothing where x was given.
    pub dequantisation: Option<Dequantisation>,
    /// How each picture got the world's shape; empty where they are no single pictures.
    pub pictures: Vec<Picture>,
    /// Posteriors that came with them, at the knobs they were drawn at.
    pub known: Option<(Settings, Vec<Posterior>)>,
    /// Their statistics, once computed.
    pub scores: OnceLock<Scores>,
    /// Statistics of the further draws of `mean:R`.
    pub further: Vec<Scores>,
}

impl ExternalImages {
    /// Images of which nothing else is known.
    pub fn new(name: String, ids: Vec<String>, labels: Option<Vec<usize>>, x: Vec<f32>) -> Self {
        Self {
            name,
            ids,
            labels,
            x,
            dequantisation: None,
            pictures: Vec::new(),
            known: None,
            scores: OnceLock::new(),
            further: Vec::new(),
        }
    }

    /// World-space image `i`, CHW.
    pub fn image(&self, world: &World, i: usize) -> &[f32] {
        let dims = world.shape().dims();
        &self.x[i * dims..(i + 1) * dims]
    }

    /// The posteriors that came with the images, where they are at these knobs.
    fn known(&self, settings: &Settings) -> Option<&[Posterior]> {
        self.known.as_ref().filter(|(at, _)| at == settings).map(|(_, posteriors)| posteriors.as_slice())
    }

    /// The statistics, computed where they are not known.
    ///
    /// # Errors
    /// When the device fails, or the caller stops.
    pub fn scores(&self, world: &World, events: &mut dyn Events<Progress>) -> Result<&Scores> {
        if let Some(scores) = self.scores.get() {
            return Ok(scores);
        }
        let scores = world.score(&self.x, events)?;
        Ok(self.scores.get_or_init(|| scores))
    }

    /// Makes posteriors at these knobs cost no further pass of the flow.
    ///
    /// # Errors
    /// As [`Self::scores`].
    pub fn prepare(&self, world: &World, settings: &Settings, events: &mut dyn Events<Progress>) -> Result<()> {
        if self.known(settings).is_some() { Ok(()) } else { self.scores(world, events).map(drop) }
    }

    /// The posterior of image `i`: as it came with the image, or from the statistics, of this image
    /// alone where there are none. Over several draws the estimate for its pixels, and how far that
    /// holds.
    ///
    /// # Errors
    /// When the device fails.
    pub fn posterior(&self, world: &World, i: usize, settings: &Settings) -> Result<(Posterior, Option<CellEstimate>)> {
        if let Some(known) = self.known(settings).and_then(|known| known.get(i)) {
            return Ok((known.clone(), None));
        }
        let Some(scores) = self.scores.get() else {
            return Ok((world.posterior(&world.flow().score(self.image(world, i))?, 0, settings), None));
        };
        if self.further.is_empty() {
            return Ok((world.posterior(scores, i, settings), None));
        }
        let of = |scores: &Scores| scores.log_likelihoods(i, settings.tau);
        let draws: Vec<Vec<f64>> = std::iter::once(scores).chain(&self.further).map(of).collect();
        let (posterior, cell) = estimate(&draws, settings);
        Ok((posterior, Some(cell)))
    }

    /// log p(x), nats, of image `i` itself: over several draws that of the first, which is a point as
    /// samples are.
    ///
    /// # Errors
    /// When the device fails.
    pub fn log_px(&self, world: &World, i: usize, settings: &Settings) -> Result<f64> {
        match self.scores.get().filter(|_| !self.further.is_empty()) {
            Some(scores) => Ok(world.posterior(scores, i, settings).log_px),
            None => self.posterior(world, i, settings).map(|(posterior, _)| posterior.log_px),
        }
    }

    /// How far the posterior that came with image `i` moves when it is computed again from its
    /// 32-bit x; none where it was computed from x.
    ///
    /// # Errors
    /// When the device fails.
    pub fn rounding(&self, world: &World, i: usize, settings: &Settings) -> Result<Option<f64>> {
        let Some(posterior) = self.known(settings).and_then(|known| known.get(i)) else { return Ok(None) };
        let moved = world.rounded(self.image(world, i), &posterior.probabilities, settings, &mut silent())?;
        Ok(Some(moved.max_drift))
    }
}

impl World {
    /// Maps what was read into this world.
    ///
    /// # Errors
    /// When the images do not fit.
    pub fn read(&self, reading: impl Into<Reading>, how: Dequantisation) -> Result<ExternalImages> {
        let Reading { input, pictures } = reading.into();
        match input {
            Input::Pixels(dataset) => {
                let Dataset { name, ids, labels, .. } = dataset.clone();
                let images = ExternalImages::new(name, ids, labels, self.map_in(dataset, how)?);
                Ok(ExternalImages { dequantisation: Some(how), pictures, ..images })
            }
            Input::World(batch) => {
                self.fits(&batch)?;
                let ids = (0..batch.len()).map(|i| i.to_string()).collect();
                let label = |&y: &i64| usize::try_from(y).ok();
                let labels = batch.y.as_ref().and_then(|y| y.iter().map(label).collect());
                Ok(ExternalImages::new("world-space images".into(), ids, labels, batch.x))
            }
        }
    }

    /// Maps what was read into this world and scores it, batch after batch; pixels as often as `how` has
    /// draws.
    ///
    /// # Errors
    /// When the images do not fit, the device fails, or the caller stops.
    pub fn classify(
        &self,
        reading: impl Into<Reading>,
        how: Dequantisation,
        events: &mut dyn Events<Progress>,
    ) -> Result<ExternalImages> {
        let reading = reading.into();
        let pixels = match &reading.input {
            Input::Pixels(dataset) if how.further().next().is_some() => Some(dataset.clone()),
            _ => None,
        };
        let mut images = self.read(reading, how)?;
        images.scores(self, events)?;
        if let Some(pixels) = pixels {
            for draw in how.further() {
                images.further.push(self.score(&self.map_in(pixels.clone(), draw)?, events)?);
            }
        }
        Ok(images)
    }

    fn fits(&self, batch: &WorldBatch) -> Result<()> {
        if batch.shape == self.shape() {
            return Ok(());
        }
        Err(Error::input(format!("the images are {}, this world's are {}", batch.shape, self.shape())))
    }
}
