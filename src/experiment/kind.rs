//! What an experiment adds to a grid of classifiers: conditions, the run of a cell, the analysis.
//!
//! The grid (spec, cells, run folder, summary) knows an experiment by this trait alone. The
//! experiments are in [`super::registry`], a line each.

use std::any::Any;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use super::bayes_reference::Truth;
use super::cell::{Cell, CellResult};
use super::feature_file::FeatureFile;
use super::form::Field;
use super::images::View;
use super::output::{Analysis, Value};
use super::presets::Preset;
use super::spec::ExperimentSpec;
use super::train::{CellEvent, CellJob, run_cell};
use crate::classifier::TrainingSpec;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::oracle::world::{Settings, World};
use crate::units::{Seed, Tau};

/// What an experiment is called.
#[derive(Debug)]
pub struct About {
    /// Its name in specs.
    pub name: &'static str,
    /// Its name in titles, as in the papers.
    pub label: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// The specs that come with the program, the quick one first.
    pub presets: &'static [Preset],
}

/// An experiment of the papers, with what only it has: the table `[experiment]` of a spec.
///
/// It may vary one thing beside network, N, labels and seed: its *condition* (a temperature, a
/// shift, a strategy). A method that is not overridden is that of the plain grid.
pub trait Kind: Value {
    /// What it is called.
    fn about(&self) -> &'static About;

    /// The base temperatures τ that are its conditions; none where others are.
    fn taus(&self) -> &[Tau] {
        &[]
    }

    /// Names of its conditions; none where it has none.
    fn conditions(&self) -> Vec<String> {
        self.taus().iter().map(|tau| format!("τ = {}", tau.get())).collect()
    }

    /// Base temperature τ of a condition, where it sets one.
    fn tau(&self, condition: usize) -> Option<Tau> {
        self.taus().get(condition).copied()
    }

    /// Whether the Bayes error of the world is computed for the analysis.
    fn wants_bayes_error(&self) -> bool {
        false
    }

    /// What a cell's numbers depend on beside τ and the grid.
    fn content(&self, _spec: &ExperimentSpec, _cell: &Cell) -> Option<serde_json::Value> {
        None
    }

    /// Files that its cells read beside those of the grid, in order. Their hashes belong to what a
    /// cell's numbers depend on.
    fn files(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// The same experiment, the relative paths of [`Self::files`] taken from a folder: a run may be
    /// resumed from anywhere. `None` where there are no files.
    ///
    /// # Errors
    /// When the present folder is not known.
    fn relative_to(&self, _folder: &Path) -> Result<Option<Experiment>> {
        Ok(None)
    }

    /// How a cell of a condition is trained, where a condition may change the training: `training` is
    /// what the spec says for the cell's architecture.
    ///
    /// # Errors
    /// When the condition and the spec contradict each other.
    fn training(&self, _condition: usize, training: TrainingSpec) -> Result<TrainingSpec> {
        Ok(training)
    }

    /// Whether the cells of a condition start at random, also where the spec names weights to start
    /// from.
    fn starts_from_scratch(&self, _condition: usize) -> bool {
        false
    }

    /// Numbers of training images of a cell's trainings, one after another.
    fn trained_on(&self, cell: &Cell) -> Vec<usize> {
        vec![cell.train_size]
    }

    /// Trainings of a cell of at most so many training images, counted before they are planned.
    fn trainings(&self, _largest: usize) -> usize {
        1
    }

    /// Training images drawn from the world for cells of up to `largest`.
    fn pool(&self, largest: usize) -> usize {
        largest
    }

    /// Whether images of a dataset can replace the world's own.
    fn takes_data(&self) -> bool {
        false
    }

    /// Whether the cells of a condition are trained on samples of the world, also where the spec names
    /// a dataset.
    fn learns_the_world(&self, _condition: usize) -> bool {
        false
    }

    /// Whether cells are measured on samples of the world, also where the spec names a dataset, whose
    /// test images they get beside them ([`CellPlace::real`]).
    fn tests_on_both(&self) -> bool {
        false
    }

    /// Whether the training images need exact posteriors whatever the classifiers are told.
    fn needs_posteriors(&self) -> bool {
        false
    }

    /// Whether a cell reads its training images beside its training, too: to choose among them, or to measure on them. They
    /// are then kept, also where the training sees each of them once.
    fn reads_beside_training(&self) -> bool {
        false
    }

    /// Whether the summary fits power laws over N: only where cells differ in nothing else.
    fn has_laws(&self) -> bool {
        false
    }

    /// Checks its own part of a spec.
    ///
    /// # Errors
    /// Says what is wrong.
    fn validate(&self, _spec: &ExperimentSpec) -> Result<()> {
        Ok(())
    }

    /// Runs one cell, from its last checkpoint if there is one.
    ///
    /// # Errors
    /// As [`run_cell`].
    fn run(&self, _place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        run_cell(job, events)
    }

    /// What the finished cells say together, with the Bayes error under each condition where it is
    /// known. `None` where the laws of the summary say it.
    fn analyse(&self, _spec: &ExperimentSpec, _cells: &[CellResult], _truths: &[Option<Truth>]) -> Option<Analysis> {
        None
    }

    /// The fields that only its form has.
    fn fields(&self) -> Vec<Field> {
        Vec::new()
    }

    /// The experiment that its edited fields describe; `None` where it has no field.
    ///
    /// # Errors
    /// Says which field cannot be read.
    fn with_fields(&self, _fields: &[Field]) -> Result<Option<Experiment>, String> {
        Ok(None)
    }
}

/// An experiment of any kind; clones share it.
#[derive(Debug, Clone)]
pub struct Experiment(Arc<dyn Kind>);

impl Experiment {
    /// An experiment of the given kind.
    pub fn new(kind: impl Kind) -> Self {
        Self(Arc::new(kind))
    }

    /// What only a kind of type `T` has.
    pub fn get<T: Kind>(&self) -> Option<&T> {
        let own: &dyn Any = &*self.0;
        own.downcast_ref()
    }

    /// Whether specs need not name it.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the experiment of a spec.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self, spec: &ExperimentSpec) -> Result<()> {
        self.validate(spec)?;
        let label = self.about().label;
        if spec.data.is_some() && !self.takes_data() {
            return Err(Error::input(format!("{label}: draws its images from the world itself; leave [data] out")));
        }
        let names = self.conditions();
        match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            Some((_, twice)) => Err(Error::input(format!("{label}: {twice} is named twice"))),
            None => Ok(()),
        }
    }

    /// Numbers of its conditions; one where it has none.
    pub fn condition_numbers(&self) -> std::ops::Range<usize> {
        0..self.conditions().len().max(1)
    }
}

impl Deref for Experiment {
    type Target = dyn Kind;

    fn deref(&self) -> &dyn Kind {
        &*self.0
    }
}

impl PartialEq for Experiment {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

/// Where a cell is run.
pub struct CellPlace<'a> {
    /// The world.
    pub world: &'a World,
    /// Its knobs under the cell's condition.
    pub settings: &'a Settings,
    /// Seed of the cell's training images: image i of the world under it is image i of
    /// [`CellJob::train`].
    pub train_seed: Seed,
    /// Name of the pool of these images, and how many it holds.
    pub pool: (String, usize),
    /// Features of these images from files, as the run was planned.
    pub features: &'a [FeatureFile],
    /// Test images of the dataset, with their labels alone, where [`Kind::tests_on_both`].
    pub real: Option<View<'a>>,
}
