//! Images from outside: their posteriors at any knobs.

use std::sync::Arc;

use super::protocol::{JobId, Tile};
use crate::data::ImageShape;
use crate::error::Result;
use crate::events::{Events, Progress, silent};
use crate::experiment::WorstImage;
use crate::flow::Scores;
use crate::oracle::classify::Classified;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{Settings, World};

/// Images from outside.
#[derive(Clone)]
pub struct ExternalImages {
    /// Where they came from.
    pub name: String,
    /// A name for each.
    pub ids: Vec<String>,
    /// Labels, where the source has them.
    pub labels: Option<Vec<usize>>,
    /// World-space images, NCHW.
    pub x: Vec<f32>,
    /// Posteriors that came with them, at the knobs they were drawn at.
    pub known: Option<(Settings, Vec<Posterior>)>,
    /// Their statistics, once somebody needed them.
    pub scores: Option<Scores>,
    /// What a classifier says of each; empty where none was asked.
    pub verdicts: Vec<WorstImage>,
}

impl From<Classified> for ExternalImages {
    fn from(Classified { name, ids, labels, x, scores, .. }: Classified) -> Self {
        Self { name, ids, labels, x, known: None, scores: Some(scores), verdicts: Vec::new() }
    }
}

/// Images on their way from a thread that reads, and the job they are the answer of.
pub struct LoadedImages {
    pub id: JobId,
    /// SHA-256 of the weights of their world.
    pub world: String,
    pub shape: ImageShape,
    /// The knobs they are to be shown at.
    pub settings: Settings,
    pub images: ExternalImages,
}

impl ExternalImages {
    fn known(&self, settings: &Settings) -> Option<&[Posterior]> {
        self.known.as_ref().filter(|(at, _)| at == settings).map(|(_, posteriors)| posteriors.as_slice())
    }

    /// Sees to it that posteriors at these knobs cost no further pass of the flow.
    ///
    /// # Errors
    /// When the device fails, or the caller stops.
    pub fn prepare(&mut self, world: &World, settings: &Settings, events: &mut dyn Events<Progress>) -> Result<()> {
        if self.scores.is_none() && self.known(settings).is_none() {
            self.scores = Some(world.score(&self.x, events)?);
        }
        Ok(())
    }

    /// The posterior of image `i`: as it came with the image, or from the statistics, of this image alone where there are none
    /// yet.
    fn posterior(&self, world: &World, i: usize, settings: &Settings) -> Result<Posterior> {
        if let Some(known) = self.known(settings).and_then(|known| known.get(i)) {
            return Ok(known.clone());
        }
        match &self.scores {
            Some(scores) => Ok(world.posterior(scores, i, settings)),
            None => Ok(world.posterior(&world.flow().score(self.image(world, i))?, 0, settings)),
        }
    }

    /// How far the posterior that came with image `i` moves when it is computed again from its 32-bit x; none where it did not come
    /// with the image but from x.
    ///
    /// # Errors
    /// When the device fails.
    pub fn rounding(&self, world: &World, i: usize, settings: &Settings) -> Result<Option<f64>> {
        let Some(posterior) = self.known(settings).and_then(|known| known.get(i)) else { return Ok(None) };
        let moved = world.rounded(self.image(world, i), &posterior.probabilities, settings, &mut silent())?;
        Ok(Some(moved.max_drift))
    }

    fn image(&self, world: &World, i: usize) -> &[f32] {
        let dims = world.shape().dims();
        &self.x[i * dims..(i + 1) * dims]
    }

    /// Image `i` under the given knobs.
    ///
    /// # Errors
    /// When its posterior is not known and the device fails.
    pub fn tile(&self, world: &World, i: usize, settings: &Settings) -> Result<Tile> {
        let posterior = self.posterior(world, i, settings)?;
        let label = self.labels.as_ref().map_or(posterior.decision, |labels| labels[i]);
        let pixels = world.flow().pixels().picture(self.image(world, i)).into();
        Ok(Tile { index: i, source: label, label, pixels, posterior: Arc::new(posterior), look: None })
    }
}
