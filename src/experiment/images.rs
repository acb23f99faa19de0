//! The images of an experiment: samples of a world with their exact posteriors, held in memory or drawn as they are needed.

use std::path::Path;

use crate::classifier::Labels;
use crate::data::{ImageShape, Input, add_npz_in_pieces, read_npz};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{SampleSpec, Settings, World, to_world_batch};
use crate::units::{ClassId, Seed};

/// Some images with all that is known about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// World-space values, NCHW.
    pub x: Vec<f32>,
    /// Drawn labels.
    pub labels: Vec<ClassId>,
    /// Exact posteriors, [N, K].
    pub posterior: Vec<f64>,
}

impl Batch {
    /// What a classifier is told, [N, K].
    pub fn targets(&self, told: Labels, classes: usize) -> Vec<f32> {
        let one_hot = |class: ClassId| (0..classes).map(move |k| if k == class { 1.0 } else { 0.0 });
        let posteriors = self.posterior.chunks_exact(classes);
        match told {
            Labels::Drawn => self.labels.iter().flat_map(|&label| one_hot(label)).collect(),
            Labels::Posterior => self.posterior.iter().map(|&p| p as f32).collect(),
            Labels::Argmax => posteriors.flat_map(|p| one_hot(largest(p))).collect(),
        }
    }
}

fn largest(p: &[f64]) -> usize {
    (0..p.len()).fold(0, |best, k| if p[k] > p[best] { k } else { best })
}

/// Where a cell's images come from.
pub trait Source {
    /// Images of the given running numbers.
    ///
    /// # Errors
    /// When they cannot be drawn or read.
    fn take(&self, indices: &[usize]) -> Result<Batch>;
}

/// Images in memory.
#[derive(Debug, Clone)]
pub struct Images {
    /// Shape of each.
    pub shape: ImageShape,
    /// Number of classes K.
    pub classes: usize,
    /// All of them.
    pub all: Batch,
}

impl Images {
    /// How many.
    pub fn len(&self) -> usize {
        self.all.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.labels.is_empty()
    }
}

impl Source for Images {
    fn take(&self, indices: &[usize]) -> Result<Batch> {
        let (dims, k) = (self.shape.dims(), self.classes);
        let part = |i: usize, each: usize| i * each..(i + 1) * each;
        Ok(Batch {
            x: indices.iter().flat_map(|&i| &self.all.x[part(i, dims)]).copied().collect(),
            labels: indices.iter().map(|&i| self.all.labels[i]).collect(),
            posterior: indices.iter().flat_map(|&i| &self.all.posterior[part(i, k)]).copied().collect(),
        })
    }
}

/// Samples drawn from the world when they are asked for: for training that sees each once.
pub struct WorldImages<'a> {
    /// The world.
    pub world: &'a World,
    /// Its knobs.
    pub settings: &'a Settings,
    /// Seed of the images.
    pub seed: Seed,
}

impl Source for WorldImages<'_> {
    fn take(&self, indices: &[usize]) -> Result<Batch> {
        let spec = SampleSpec { n: indices.len(), class: None, seed: self.seed };
        let mut batch = Batch { x: Vec::new(), labels: Vec::new(), posterior: Vec::new() };
        for piece in indices.chunks(self.world.batch()) {
            for sample in self.world.sample_indices(&spec, self.settings, piece)? {
                batch.x.extend(&sample.x);
                batch.labels.push(sample.label);
                batch.posterior.extend(&sample.posterior.probabilities);
            }
        }
        Ok(batch)
    }
}

/// Draws the first `n` images of a world under a seed into `file`, unless they lie there already. Several processes may do so
/// at once: all of them then read what the first of them has drawn.
///
/// # Errors
/// When the file cannot be written, or the caller stops.
pub fn draw_pool(
    world: &World,
    settings: &Settings,
    seed: Seed,
    n: usize,
    file: &Path,
    events: &mut dyn Events<Progress>,
) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    let spec = SampleSpec { n, class: None, seed };
    let (shape, classes) = (world.shape(), world.class_names().len());
    add_npz_in_pieces(file, shape, n, |sink| {
        for first in (0..n).step_by(world.batch()) {
            let indices: Vec<usize> = (first..n.min(first + world.batch())).collect();
            sink(&to_world_batch(shape, classes, &world.sample_indices(&spec, settings, &indices)?))?;
            events.report(Progress { done: first + indices.len(), total: n })?;
        }
        Ok(())
    })
}

/// Reads what [`draw_pool`] wrote. Posteriors are computed again from the stored log-likelihoods in f64, so that whoever draws and
/// whoever reads has the same images to the bit.
///
/// # Errors
/// When the file holds other images than `n` of `shape`, or cannot be read.
pub fn read_pool(file: &Path, settings: &Settings, n: usize, shape: ImageShape) -> Result<Images> {
    let other = |what: &str| Error::file(file, format!("{what}; remove it and it is drawn again"));
    let Input::World(batch) = read_npz(file)? else { return Err(other("holds no world-space images")) };
    let (true, Some(labels), Some(logp)) = (batch.shape == shape && batch.len() == n, &batch.y, &batch.logp) else {
        return Err(other("holds other images than this run needs"));
    };
    let posterior = logp
        .chunks_exact(batch.classes)
        .flat_map(|logp| Posterior::new(logp.to_vec(), &settings.prior, settings.smoothing).probabilities);
    let all =
        Batch { labels: labels.iter().map(|&y| y as ClassId).collect(), posterior: posterior.collect(), x: batch.x };
    Ok(Images { shape, classes: batch.classes, all })
}
