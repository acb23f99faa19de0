//! What the cells of an experiment say together, and its figures and tables.

use serde::{Deserialize, Serialize};

use super::active::Bargains;
use super::cell::CellResult;
use super::graders::Grades;
use super::kinds::Experiment;
use super::self_validation::Nearness;
use super::shift::Damage;
use super::soft_labels::Gains;
use super::spec::ExperimentSpec;
use super::temperature::Sweep;
use super::truth::Truth;
use crate::figure::{Figure, Table};

/// What the finished cells of an experiment say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Finding {
    /// Errors over the temperature.
    Temperature(Sweep),
    /// Errors beside the Bayes error.
    SelfValidation(Nearness),
    /// What exact labels gain.
    SoftLabels(Gains),
    /// What shifts cost.
    Shift(Damage),
    /// What strategies gain.
    ActiveLearning(Bargains),
    /// What estimators are worth.
    Graders(Grades),
}

impl Finding {
    /// From the finished cells, and the Bayes error under each condition where it is known; none for the plain grid, whose laws are the
    /// summary's own.
    pub fn of(spec: &ExperimentSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Option<Self> {
        match &spec.experiment {
            Experiment::Scaling => None,
            Experiment::Temperature(own) => Some(Self::Temperature(Sweep::of(spec, own, cells, truths))),
            Experiment::SelfValidation => Some(Self::SelfValidation(Nearness::of(spec, cells, truths))),
            Experiment::SoftLabels => Some(Self::SoftLabels(Gains::of(spec, cells))),
            Experiment::Shift(own) => Some(Self::Shift(Damage::of(spec, own, cells))),
            Experiment::ActiveLearning(own) => Some(Self::ActiveLearning(Bargains::of(spec, own, cells))),
            Experiment::Graders(own) => Some(Self::Graders(Grades::of(spec, own, cells, truths))),
        }
    }

    /// Its figures, those first that answer the question; those only in which there is something of its own.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = match self {
            Self::Temperature(found) => found.figures(),
            Self::SelfValidation(found) => found.figures(),
            Self::SoftLabels(found) => found.figures(),
            Self::Shift(found) => found.figures(),
            Self::ActiveLearning(found) => found.figures(),
            Self::Graders(found) => found.figures(),
        };
        figures.retain(|figure| figure.series.iter().any(|series| !series.faint && !series.points.is_empty()));
        figures
    }

    /// Leaves out how far classifiers are from the Bayes error of the world: their test images are not of it.
    pub fn forget_gaps_to_the_world(&mut self) {
        let beside = match self {
            Self::SelfValidation(found) => found.classifiers.iter_mut().collect(),
            Self::Temperature(found) => found.worlds.iter_mut().flat_map(|world| &mut world.classifiers).collect(),
            _ => Vec::new(),
        };
        beside.into_iter().for_each(|beside| beside.gap = None);
    }

    /// Its tables.
    pub fn tables(&self) -> Vec<Table> {
        match self {
            Self::Temperature(found) => found.tables(),
            Self::SelfValidation(found) => found.tables(),
            Self::SoftLabels(found) => found.tables(),
            Self::Shift(found) => found.tables(),
            Self::ActiveLearning(found) => found.tables(),
            Self::Graders(found) => found.tables(),
        }
    }
}
