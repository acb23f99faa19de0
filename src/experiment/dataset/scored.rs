//! The world's posteriors of a dataset's images.

use super::{Part, Values};
use crate::data::WorldBatch;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::experiment::images::Source;
use crate::oracle::cells::log_means;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{Sample, Settings, World, to_world_batch};
use crate::units::ClassId;

impl Part {
    /// Images of given running numbers with this world's posteriors of them.
    ///
    /// # Errors
    /// When an image has no density in this world, the device fails, or the caller stops.
    pub fn scored(
        &self,
        world: &World,
        settings: &Settings,
        indices: &[usize],
        events: &mut dyn Events<Progress>,
    ) -> Result<WorldBatch> {
        let images = self.take(indices)?;
        let posteriors: Vec<Posterior> = match &self.logp {
            Some(logp) => {
                let of = |&i: &usize| logp[i * self.classes..(i + 1) * self.classes].to_vec();
                indices.iter().map(|i| settings.posterior(of(i))).collect()
            }
            None => {
                let draws = self.draws(world, settings, indices, &images.x, events)?;
                let of = |i: usize| log_means(&draws.iter().map(|draw| draw[i].clone()).collect::<Vec<_>>());
                (0..indices.len()).map(|i| settings.posterior(of(i))).collect()
            }
        };
        let samples = images.x.chunks_exact(self.shape.dims()).zip(&images.labels).zip(indices).zip(posteriors);
        let sample = |(((x, &label), &index), posterior): (((&[f32], &ClassId), &usize), Posterior)| Sample {
            index,
            source: label,
            label,
            x: x.to_vec(),
            posterior,
        };
        Ok(to_world_batch(self.shape, self.classes, &samples.map(sample).collect::<Vec<_>>()))
    }

    /// An image without a density is the dataset's fault, not the cell's: names the image and the
    /// file.
    fn named(&self, error: Error, world: &World, indices: &[usize]) -> Error {
        let cause = match error {
            Error::Input(cause) => cause,
            Error::Overflow { image, tau } => {
                let error = Error::Overflow { image: indices.get(image).copied().unwrap_or(image), tau };
                return Error::file(&self.record.path, error.to_string());
            }
            other => return other,
        };
        let alone = |&i: &usize| world.score(&self.x(i), &mut silent()).err().map(|error| (i, error.to_string()));
        let cause = match indices.iter().find_map(alone) {
            Some((i, why)) => format!("image {i} {}", why.strip_prefix("image 0 ").unwrap_or(&why)),
            None => cause,
        };
        Error::file(&self.record.path, cause)
    }

    /// log p(x|y) of images whose first draw is `x`, for every draw of their pixels' cells.
    fn draws(
        &self,
        world: &World,
        settings: &Settings,
        indices: &[usize],
        x: &[f32],
        events: &mut dyn Events<Progress>,
    ) -> Result<Vec<Vec<Vec<f64>>>> {
        let mut scored = |x: &[f32]| -> Result<Vec<Vec<f64>>> {
            let scores = world.score(x, events).map_err(|error| self.named(error, world, indices))?;
            Ok((0..indices.len()).map(|i| scores.log_likelihoods(i, settings.tau)).collect())
        };
        let mut draws = vec![scored(x)?];
        if let Values::Pixels(_, _, how) = &self.values {
            for other in how.further() {
                let x: Vec<f32> = indices.iter().flat_map(|&i| self.drawn(i, Some(other))).collect();
                draws.push(scored(&x)?);
            }
        }
        Ok(draws)
    }
}
