//! The images of an experiment with their exact posteriors, in memory or drawn when needed.

use crate::classifier::Labels;
use crate::data::ImageShape;
use crate::error::Result;
use crate::measure::argmax;
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::units::{ClassId, Seed};

/// Some images with all that is known about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// World-space values, NCHW.
    pub x: Vec<f32>,
    /// Drawn labels, or those of a dataset.
    pub labels: Vec<ClassId>,
    /// Exact posteriors, [N, K]; empty where nobody is told more than labels.
    pub posterior: Vec<f64>,
}

impl Batch {
    /// What a classifier is told, [N, K]; `smoothing` is the ε of smoothed labels.
    pub fn targets(&self, told: Labels, classes: usize, smoothing: f64) -> Vec<f32> {
        let one_hot = |class: ClassId| (0..classes).map(move |k| if k == class { 1.0 } else { 0.0 });
        let posteriors = self.posterior.chunks_exact(classes);
        match told {
            Labels::Drawn => self.labels.iter().flat_map(|&label| one_hot(label)).collect(),
            Labels::Posterior => self.posterior.iter().map(|&p| p as f32).collect(),
            Labels::Argmax => posteriors.flat_map(|p| one_hot(argmax(p))).collect(),
            Labels::Smoothed => {
                let (of_label, of_all) = (1.0 - smoothing, smoothing / classes as f64);
                let hard = self.labels.iter().flat_map(|&label| one_hot(label));
                hard.map(|t| (of_label * f64::from(t) + of_all) as f32).collect()
            }
        }
    }
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
    pub settings: Settings,
    /// Seed of the images.
    pub seed: Seed,
}

impl Source for WorldImages<'_> {
    fn take(&self, indices: &[usize]) -> Result<Batch> {
        let spec = SampleSpec::new(indices.len(), self.seed);
        let mut batch = Batch { x: Vec::new(), labels: Vec::new(), posterior: Vec::new() };
        for piece in indices.chunks(self.world.batch()) {
            for sample in self.world.sample_indices(&spec, &self.settings, piece)? {
                batch.x.extend(&sample.x);
                batch.labels.push(sample.label);
                batch.posterior.extend(&sample.posterior.probabilities);
            }
        }
        Ok(batch)
    }
}

impl Source for &Images {
    fn take(&self, indices: &[usize]) -> Result<Batch> {
        (*self).take(indices)
    }
}

/// Some images of a source in an order of their own.
pub struct View<'a> {
    /// All images.
    pub of: &'a dyn Source,
    /// The running number in the source of each image of the view.
    pub at: Vec<usize>,
}

impl Source for View<'_> {
    fn take(&self, indices: &[usize]) -> Result<Batch> {
        self.of.take(&indices.iter().map(|&i| self.at[i]).collect::<Vec<_>>())
    }
}
