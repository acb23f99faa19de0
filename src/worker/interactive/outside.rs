//! Images from outside, kept for the inspector, the evidence map and walks: their posteriors at any knobs.

use std::sync::Arc;

use super::super::desk::Line;
use super::super::protocol::{Event, JobId, Outcome, Tile};
use super::Interactive;
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::experiment::WorstImage;
use crate::flow::Scores;
use crate::oracle::classify::Classified;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{Settings, World};

/// Images from outside.
#[derive(Clone)]
pub struct Outside {
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

impl From<Classified> for Outside {
    fn from(Classified { name, ids, labels, x, scores, .. }: Classified) -> Self {
        Self { name, ids, labels, x, known: None, scores: Some(scores), verdicts: Vec::new() }
    }
}

/// Images on their way from a thread that reads, and the job they are the answer of.
pub struct Handed {
    pub id: JobId,
    /// SHA-256 of the weights of their world.
    pub world: String,
    pub shape: ImageShape,
    /// The knobs they are to be shown at.
    pub settings: Settings,
    pub images: Outside,
}

impl Outside {
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

impl Interactive {
    /// Sends images from outside to the window and keeps them for its inspector; a sentence about them. The window takes over
    /// their knobs where these are their `own`.
    ///
    /// # Errors
    /// When a posterior is not known and the device fails; then those before stay.
    pub fn tell(&self, line: &Line, world: &World, images: Outside, settings: &Settings, own: bool) -> Result<String> {
        let n = images.ids.len();
        let tiles = (0..n).map(|i| images.tile(world, i, settings)).collect::<Result<Vec<Tile>>>()?;
        line.send(Event::External {
            name: images.name.clone(),
            shape: world.shape(),
            ids: images.ids.clone(),
            tiles,
            labelled: images.labels.is_some(),
            settings: settings.clone(),
            own_knobs: own,
            verdicts: images.verdicts.clone(),
        });
        let sentence = format!("posteriors of {n} image{} from {}", if n == 1 { "" } else { "s" }, images.name);
        *self.external.borrow_mut() = Some(images);
        Ok(sentence)
    }

    /// Takes over images that another thread has read, if they are of the world that is open now.
    pub(super) fn receive(&self, line: &Line, world: Option<&World>) {
        let Some(Handed { id, world: of, shape, settings, images }) = line.shared.handed.take() else { return };
        let here = world.filter(|world| *self.world.borrow() == of && world.shape() == shape);
        let outcome = match here.map(|world| self.tell(line, world, images, &settings, true)) {
            Some(Ok(sentence)) => Outcome::Done(sentence),
            Some(Err(Error::Cancelled)) => Outcome::Cancelled,
            Some(Err(error)) => Outcome::Failed(error.to_string()),
            None => Outcome::Failed("another oracle was opened meanwhile: ask for these images again".into()),
        };
        line.shared.forget(id);
        line.send(Event::JobEnded { id, outcome });
    }

    /// The images from outside.
    pub fn external(&self) -> Option<Outside> {
        self.external.borrow().clone()
    }

    /// Whether these are the images from outside.
    pub fn holds(&self, images: &Outside) -> bool {
        self.external.borrow().as_ref().is_some_and(|held| held.name == images.name && held.ids == images.ids)
    }

    /// One of them, world space.
    pub fn external_image(&self, index: usize, dims: usize) -> Option<Vec<f32>> {
        let external = self.external.borrow();
        external.as_ref()?.x.chunks_exact(dims).nth(index).map(<[f32]>::to_vec)
    }
}
