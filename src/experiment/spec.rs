//! What an experiment is told: one TOML file, the first thing in its run folder.

mod data;
#[cfg(test)]
mod tests;
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::data::DataSpec;
pub use self::world::WorldSpec;
use super::cell::Cell;
use super::kind::Experiment;
use super::target;
use crate::classifier::{Architecture, Labels, TrainingSpec};
use crate::data::{in_folder, read_toml};
use crate::error::{Error, Result, check_name, check_words};
use crate::oracle::world::Settings;
use crate::units::{Seed, Tau};

/// Images of a list, a pool or a test: their running numbers are shuffled in memory.
const MOST_IMAGES: usize = 1_000_000_000;
/// Classifiers that all cells of a grid may train: they are listed before the first is trained.
const MOST_TRAININGS: usize = 1_000_000;
/// Steps of all cells: at a nanosecond each, thirty years; and their sum is still a number.
const MOST_STEPS: usize = 1_000_000_000_000_000_000;

/// An experiment: classifiers trained on samples of a world, a cell each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// Name of the run.
    pub name: String,
    /// What it is for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How far from Bayes, in nats of KL, is near enough: the summary predicts the N that gets
    /// there.
    #[serde(default = "near")]
    pub distance: f64,
    /// Which experiment of the papers.
    #[serde(default, skip_serializing_if = "Experiment::is_default")]
    pub experiment: Experiment,
    /// Where the images come from, and the truth about them.
    pub world: WorldSpec,
    /// A dataset in place of the world's own images; the truth about them stays the world's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSpec>,
    /// Which classifiers.
    pub grid: GridSpec,
    /// The images they are measured on.
    #[serde(default)]
    pub test: TestSpec,
    /// How they are trained.
    #[serde(default)]
    pub training: TrainingSpec,
    /// Weight files (torchvision's names; `.pth`, `.safetensors`) from which some architectures
    /// start; the head is drawn anew for other classes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pretrained: BTreeMap<Architecture, PathBuf>,
    /// What differs from `training` for some architectures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<Architecture, toml::Table>,
}

fn near() -> f64 {
    0.01
}

/// The cells of an experiment: every combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridSpec {
    /// Networks.
    pub architectures: Vec<Architecture>,
    /// Numbers N of training images.
    pub train_sizes: Vec<usize>,
    /// Seeds: of the training images drawn, the start and the order.
    #[serde(default = "three_seeds")]
    pub seeds: Vec<u64>,
    /// What the classifiers are told.
    #[serde(default = "drawn")]
    pub labels: Vec<Labels>,
}

fn three_seeds() -> Vec<u64> {
    vec![0, 1, 2]
}

fn drawn() -> Vec<Labels> {
    vec![Labels::Drawn]
}

/// The images classifiers are measured on: the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TestSpec {
    /// How many.
    pub images: usize,
    /// How many of them are looked at while training goes on.
    pub watched: usize,
}

impl Default for TestSpec {
    fn default() -> Self {
        Self { images: 2000, watched: 500 }
    }
}

impl ExperimentSpec {
    /// Reads a spec file. Relative paths start at the folder of the file.
    ///
    /// # Errors
    /// Names the file and what is wrong in it.
    pub fn read(path: &Path) -> Result<Self> {
        let spec: Self = read_toml(path)?;
        let spec = spec.relative_to(path.parent().unwrap_or(Path::new("")))?;
        spec.validate().map_err(|e| Error::file(path, e.to_string()))?;
        Ok(spec)
    }

    /// The same, the relative paths of its oracle, label noise, dataset, weights to start from and experiment taken
    /// from a folder: a run may be resumed from anywhere.
    ///
    /// # Errors
    /// When the present folder cannot be told.
    pub fn relative_to(self, folder: &Path) -> Result<Self> {
        let data = self.data.map(|data| data.relative_to(folder)).transpose()?;
        let experiment = self.experiment.relative_to(folder)?.unwrap_or(self.experiment);
        let world = self.world.relative_to(folder)?;
        let place = |(architecture, file): (Architecture, PathBuf)| Ok((architecture, in_folder(folder, &file)?));
        let pretrained = self.pretrained.into_iter().map(place).collect::<Result<_>>()?;
        Ok(Self { data, experiment, world, pretrained, ..self })
    }

    /// Whether its names can stand in lines and tables.
    ///
    /// # Errors
    /// Says how the one begins that cannot.
    pub fn check_names(&self) -> Result<(), String> {
        check_name(&self.name)?;
        check_words(&self.world.oracle)?;
        self.experiment.files().iter().try_for_each(|file| check_words(&file.to_string_lossy()))?;
        self.experiment.conditions().iter().try_for_each(|name| check_name(name))
    }

    /// Whether it can be planned.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        self.check_names().map_err(Error::input)?;
        let GridSpec { architectures, train_sizes, seeds, labels } = &self.grid;
        let checks = [
            (!architectures.is_empty(), "grid.architectures is empty"),
            (!train_sizes.is_empty(), "grid.train_sizes is empty"),
            (!seeds.is_empty(), "grid.seeds is empty"),
            (!labels.is_empty(), "grid.labels is empty"),
            (train_sizes.iter().all(|n| *n > 0), "grid.train_sizes must all be at least 1"),
            (distinct(architectures), "grid.architectures names one twice"),
            (distinct(train_sizes), "grid.train_sizes names one twice"),
            (distinct(seeds), "grid.seeds names one twice"),
            (distinct(labels), "grid.labels names one twice"),
            (self.test.images >= 2, "test.images must be at least 2"),
            (self.distance > 0.0 && self.distance.is_finite(), "distance must be a number of nats > 0"),
            (self.test.watched >= 1, "test.watched must be at least 1"),
            (
                self.data.as_ref().is_none_or(|data| !data.train.as_os_str().is_empty()),
                "data.train is empty: name a dataset, or leave [data] out",
            ),
            (
                self.world.tau.get() > 0.0,
                "world.tau must be above 0: nothing can be learned where every sample is the same",
            ),
        ];
        if let Some((_, complaint)) = checks.iter().find(|(fine, _)| !fine) {
            return Err(Error::input(*complaint));
        }
        let WorldSpec { target, found, tau, .. } = &self.world;
        target::check(*target, found.as_ref(), *tau, self.experiment.tau(0).is_some())?;
        self.training.validate()?;
        self.experiment.check(self)?;
        for architecture in self.overrides.keys().chain(self.pretrained.keys()) {
            if !architectures.contains(architecture) {
                let label = architecture.label();
                return Err(Error::input(format!(
                    "overrides or pretrained weights for {label}, which is not in grid.architectures"
                )));
            }
        }
        self.check_extent()
    }

    /// Whether its cells and their trainings can be listed, and their steps counted.
    fn check_extent(&self) -> Result<()> {
        let GridSpec { architectures, train_sizes, seeds, labels } = &self.grid;
        let conditions = self.experiment.condition_numbers().len();
        let axes = [architectures.len(), train_sizes.len(), seeds.len(), labels.len(), conditions];
        let cells = axes.into_iter().fold(1, usize::saturating_mul);
        let largest = train_sizes.iter().copied().max().unwrap_or(0);
        let trainings = self.experiment.trainings(largest);
        let mut steps = 0;
        for architecture in architectures {
            for condition in self.experiment.condition_numbers() {
                let training = self.training_of(*architecture, condition)?;
                steps = steps.max(training.total_steps(largest));
            }
        }
        let trainings = cells.saturating_mul(trainings);
        let steps = steps.saturating_mul(trainings);
        let images = "ask for fewer images";
        let fewer = "shorten the lists of the grid, or take fewer experiment.members or larger batches";
        let bounds = [
            (largest, MOST_IMAGES, "images in grid.train_sizes", images),
            (self.largest(), MOST_IMAGES, "images in experiment.pool", images),
            (self.test.images, MOST_IMAGES, "images in test.images", images),
            (trainings, MOST_TRAININGS, "classifiers to train", fewer),
            (
                steps,
                MOST_STEPS,
                "optimisation steps in all",
                "fewer training.epochs or steps, or smaller grid.train_sizes",
            ),
        ];
        match bounds.into_iter().find(|(count, most, ..)| count > most) {
            Some((count, most, what, way_out)) => {
                Err(Error::input(format!("{count} {what}, and {most} is the most that is planned: {way_out}")))
            }
            None => Ok(()),
        }
    }

    /// How an architecture is trained under a condition.
    ///
    /// # Errors
    /// Names the override that is wrong.
    pub fn training_of(&self, architecture: Architecture, condition: usize) -> Result<TrainingSpec> {
        let wrong = |e: Error| Error::input(format!("overrides for {}: {e}", architecture.label()));
        let training = match self.overrides.get(&architecture) {
            None => self.training,
            Some(changes) => self.training.changed(changes).map_err(wrong)?,
        };
        self.experiment.training(condition, training)
    }

    /// All cells, those of few images first.
    pub fn cells(&self) -> Vec<Cell> {
        let GridSpec { architectures, train_sizes, seeds, labels } = &self.grid;
        let mut sizes = train_sizes.clone();
        sizes.sort_unstable();
        let mut cells = Vec::new();
        for &train_size in &sizes {
            for condition in self.experiment.condition_numbers() {
                for &architecture in architectures {
                    for &labels in labels {
                        let cell = |&seed: &u64| Cell { architecture, train_size, labels, seed, condition };
                        cells.extend(seeds.iter().map(cell));
                    }
                }
            }
        }
        cells
    }

    /// Optimisation steps of a cell, all its trainings together.
    ///
    /// # Errors
    /// Names the override that is wrong.
    pub fn steps(&self, cell: &Cell) -> Result<usize> {
        let training = self.training_of(cell.architecture, cell.condition)?;
        Ok(self.experiment.trained_on(cell).into_iter().map(|images| training.total_steps(images)).sum())
    }

    /// The training of a cell and the images it is on; `None` where a cell is several trainings, or its overrides are wrong.
    pub fn only_training(&self, cell: &Cell) -> Option<(TrainingSpec, usize)> {
        let training = self.training_of(cell.architecture, cell.condition).ok()?;
        match self.experiment.trained_on(cell)[..] {
            [images] => Some((training, images)),
            _ => None,
        }
    }

    /// The knobs of the world under a condition.
    ///
    /// # Errors
    /// When the prior does not fit.
    pub fn settings(&self, condition: usize, classes: usize) -> Result<Settings> {
        let settings = self.world.settings(classes)?;
        Ok(Settings { tau: self.tau(condition), ..settings })
    }

    /// Base temperature τ under a condition.
    pub fn tau(&self, condition: usize) -> Tau {
        self.experiment.tau(condition).unwrap_or(self.world.tau)
    }

    /// Training images drawn under one of the grid's seeds: what the largest cell needs.
    pub fn largest(&self) -> usize {
        self.experiment.pool(self.grid.train_sizes.iter().copied().max().unwrap_or(0))
    }

    /// Seed of the training images under one of the grid's seeds.
    pub fn train_seed(&self, seed: u64) -> Seed {
        Seed(self.world.seed).split("train").split(&seed.to_string())
    }

    /// Whether some classifiers are told more of their training images than a label.
    pub fn needs_posteriors(&self) -> bool {
        self.experiment.needs_posteriors() || self.grid.labels.iter().any(|labels| labels.ask_the_world())
    }

    /// Seed of the test images.
    pub fn test_seed(&self) -> Seed {
        Seed(self.world.seed).split("test")
    }
}

fn distinct<T: PartialEq>(values: &[T]) -> bool {
    values.iter().enumerate().all(|(i, value)| !values[..i].contains(value))
}
