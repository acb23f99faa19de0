//! The kinds of experiments: what each adds to a grid of classifiers.
//!
//! A kind may vary one thing beside network, N, labels and seed: its *condition* (a temperature, a shift, a strategy). It may find more
//! than a classifier's figures ([`Found`]), and it sums its cells up in its own way.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::active::{self, ActiveSpec, Bought};
use super::cell::{Cell, CellResult};
use super::graders::{self, FeatureFile, GradersSpec, Grading};
use super::shift::{self, ShiftSpec, Shifted};
use super::soft_labels::{self, Course};
use super::spec::ExperimentSpec;
use super::temperature::TemperatureSpec;
use super::train::{CellEvent, Job, run_cell};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::oracle::world::{Settings, World};
use crate::units::{Seed, Tau};

/// Which experiment of the papers, with what only it has.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Experiment {
    /// How the epistemic part falls with N (BLC §4.1).
    #[default]
    Scaling,
    /// Test error beside the Bayes error over the base temperature τ (EBO figures 3 and 4).
    Temperature(TemperatureSpec),
    /// Whether classifiers come near the Bayes accuracy at all (BLC table 1).
    SelfValidation,
    /// What exact posteriors are worth as labels (BLC §4.2, App. D).
    SoftLabels,
    /// What shifts of the training images cost (BLC §4.3, App. G).
    Shift(ShiftSpec),
    /// Which labels are worth buying (BLC §4.4, App. E).
    ActiveLearning(ActiveSpec),
    /// Estimators of the Bayes error and of uncertainty against the truth.
    Graders(GradersSpec),
}

/// What a cell finds beside its classifier's figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// How its training went.
    SoftLabels(Course),
    /// What its training images were.
    Shift(Shifted),
    /// What was bought round by round.
    ActiveLearning(Bought),
    /// What the estimators say.
    Graders(Box<Grading>),
}

impl Experiment {
    /// Whether it is the plain grid.
    pub fn is_scaling(&self) -> bool {
        *self == Self::Scaling
    }

    /// Its name, as in the titles of the papers' figures.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Scaling => "Scaling",
            Self::Temperature(_) => "Temperature",
            Self::SelfValidation => "Self-validation",
            Self::SoftLabels => "Soft labels",
            Self::Shift(_) => "Distribution shift",
            Self::ActiveLearning(_) => "Active learning",
            Self::Graders(_) => "Grade the graders",
        }
    }

    /// Its name in specs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Scaling => "scaling",
            Self::Temperature(_) => "temperature",
            Self::SelfValidation => "self-validation",
            Self::SoftLabels => "soft-labels",
            Self::Shift(_) => "shift",
            Self::ActiveLearning(_) => "active-learning",
            Self::Graders(_) => "graders",
        }
    }

    /// What it asks.
    pub fn question(&self) -> &'static str {
        match self {
            Self::Scaling => "How does what is left to learn shrink with more data, and how much data would be enough?",
            Self::Temperature(_) => "How far above the Bayes error do classifiers stay as the world gets harder?",
            Self::SelfValidation => "Do classifiers trained on samples of this world come near its Bayes accuracy?",
            Self::SoftLabels => "What is the whole exact posterior worth as a label, beside one class?",
            Self::Shift(_) => "Which shift of the training images costs how much, at equal KL?",
            Self::ActiveLearning(_) => "Which labels are worth buying, and what does knowing the truth add?",
            Self::Graders(_) => "Which estimators of the Bayes error and of uncertainty can be trusted?",
        }
    }

    /// Names of its conditions; none where it has none.
    pub fn conditions(&self) -> Vec<String> {
        let temperature = |tau: &Tau| format!("τ = {}", tau.get());
        match self {
            Self::Scaling | Self::SelfValidation | Self::SoftLabels => Vec::new(),
            Self::Temperature(spec) => spec.taus.iter().map(temperature).collect(),
            Self::Shift(spec) => spec.settings.iter().map(|setting| setting.name.clone()).collect(),
            Self::ActiveLearning(spec) => spec.strategies.iter().map(|strategy| strategy.label().to_owned()).collect(),
            Self::Graders(spec) => spec.taus.iter().map(temperature).collect(),
        }
    }

    /// Base temperature τ of a condition, where it sets one.
    pub fn tau(&self, condition: usize) -> Option<Tau> {
        match self {
            Self::Temperature(TemperatureSpec { taus }) | Self::Graders(GradersSpec { taus, .. }) => {
                taus.get(condition).copied()
            }
            _ => None,
        }
    }

    /// Whether the Bayes error of the world is wanted beside the cells.
    pub fn wants_bayes_error(&self) -> bool {
        matches!(self, Self::Temperature(_) | Self::SelfValidation | Self::Graders(_))
    }

    /// What of it a cell's numbers depend on, beside τ.
    pub fn content(&self, condition: usize) -> Option<serde_json::Value> {
        match self {
            Self::Scaling | Self::SelfValidation | Self::SoftLabels | Self::Temperature(_) => None,
            Self::Shift(spec) => Some(spec.content(condition)),
            Self::ActiveLearning(spec) => Some(spec.content(condition)),
            Self::Graders(spec) => Some(spec.content()),
        }
    }

    /// Files that its cells read beside what every kind reads, in order: their hashes belong to what a cell's numbers depend on.
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Self::Graders(spec) => spec.files().collect(),
            _ => Vec::new(),
        }
    }

    /// Takes the relative paths of [`Self::files`] from a folder: a run may be resumed from anywhere.
    ///
    /// # Errors
    /// When the present folder cannot be told.
    pub(super) fn put_beside(&mut self, folder: &Path) -> Result<()> {
        match self {
            Self::Graders(spec) => spec.put_beside(folder),
            _ => Ok(()),
        }
    }

    /// Numbers of training images of a cell's trainings, one after another.
    pub fn trained_on(&self, cell: &Cell) -> Vec<usize> {
        match self {
            Self::Scaling | Self::Temperature(_) | Self::SelfValidation | Self::SoftLabels => vec![cell.train_size],
            Self::Shift(spec) => vec![spec.kept(cell.train_size)],
            Self::ActiveLearning(spec) => spec.trained_on(cell),
            Self::Graders(spec) => vec![cell.train_size; spec.members],
        }
    }

    /// Trainings of a cell of at most so many training images: what its members or rounds ask for, before any of it is planned.
    pub fn trainings(&self, largest: usize) -> usize {
        match self {
            Self::Scaling | Self::Temperature(_) | Self::SelfValidation | Self::SoftLabels | Self::Shift(_) => 1,
            Self::ActiveLearning(spec) => spec.trainings(largest),
            Self::Graders(spec) => spec.members,
        }
    }

    /// Training images drawn from the world for cells of up to `largest`.
    pub fn pool(&self, largest: usize) -> usize {
        match self {
            Self::Shift(spec) => spec.pool,
            Self::ActiveLearning(spec) => spec.pool.max(largest),
            _ => largest,
        }
    }

    /// Whether images of a dataset can take the place of the world's own.
    pub fn takes_data(&self) -> bool {
        matches!(self, Self::Scaling | Self::SelfValidation | Self::SoftLabels)
    }

    /// Whether its training images' exact posteriors are needed whatever the classifiers are told.
    pub fn needs_posteriors(&self) -> bool {
        matches!(self, Self::ActiveLearning(_))
    }

    /// Whether it can be planned.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self, spec: &ExperimentSpec) -> Result<()> {
        match self {
            Self::Scaling | Self::SelfValidation | Self::SoftLabels => return Ok(()),
            Self::Temperature(own) => own.validate(),
            Self::Shift(own) => own.validate(spec),
            Self::ActiveLearning(own) => own.validate(spec),
            Self::Graders(own) => own.validate(),
        }?;
        if spec.data.is_some() {
            let label = self.label();
            return Err(Error::input(format!("{label}: draws its images from the world itself; leave [data] out")));
        }
        let names = self.conditions();
        match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            Some((_, twice)) => Err(Error::input(format!("{}: {twice} is named twice", self.label()))),
            None => Ok(()),
        }
    }
}

/// Where a cell is carried out.
pub struct Place<'a> {
    /// The world.
    pub world: &'a World,
    /// Its knobs under the cell's condition.
    pub settings: &'a Settings,
    /// Seed of the cell's training images: image i of the world under it is image i of [`Job::train`].
    pub train_seed: Seed,
    /// Name of the pool of these images, and how many it holds.
    pub pool: (String, usize),
    /// Features of these images from files, as the run was planned.
    pub features: &'a [FeatureFile],
}

/// Carries out one cell of an experiment, going on from its last checkpoint if there is one.
///
/// # Errors
/// As [`run_cell`].
pub fn carry_out(
    experiment: &Experiment,
    place: &Place<'_>,
    job: &Job<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<CellResult> {
    match experiment {
        Experiment::SoftLabels => soft_labels::run(job, events),
        Experiment::Shift(spec) => shift::run(spec, place, job, events),
        Experiment::ActiveLearning(spec) => active::run(spec, job, events),
        Experiment::Graders(spec) => graders::run(spec, place, job, events),
        Experiment::Scaling | Experiment::Temperature(_) | Experiment::SelfValidation => run_cell(job, events),
    }
}

/// Temperatures of a list, checked.
///
/// # Errors
/// When there are none or one is 0.
pub(super) fn check_taus(taus: &[Tau]) -> Result<()> {
    if taus.is_empty() {
        return Err(Error::input("experiment.taus is empty"));
    }
    if taus.iter().any(|tau| tau.get() <= 0.0) {
        return Err(Error::input(
            "experiment.taus must be above 0: nothing can be learned where every sample is the same",
        ));
    }
    Ok(())
}
