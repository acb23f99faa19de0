//! Grade the graders: estimators of the Bayes error that see samples alone, and measures of a classifier's uncertainty, against the truth of
//! the world.

use serde::{Deserialize, Serialize};

use super::cell::CellResult;
use super::kinds::{Place, check_taus};
use super::spec::ExperimentSpec;
use super::train::{CellEvent, Job};
use super::truth::Truth;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::figure::{Figure, Table};
use crate::measure::Measured;
use crate::units::Tau;

/// What is graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradersSpec {
    /// Base temperatures τ: worlds of different Bayes error; they stand in place of `world.tau`.
    pub taus: Vec<Tau>,
    /// Classifiers in an ensemble.
    #[serde(default = "five")]
    pub members: usize,
}

fn five() -> usize {
    5
}

/// What estimators say of a world, from the training images of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graded {
    /// Measured members of the ensemble.
    pub members: Vec<Measured>,
}

impl GradersSpec {
    /// What a cell's numbers depend on.
    pub(super) fn content(&self) -> serde_json::Value {
        serde_json::json!({ "members": self.members })
    }

    /// Whether it can be planned.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        check_taus(&self.taus)?;
        todo!()
    }
}

/// Trains an ensemble, and asks every estimator.
///
/// # Errors
/// As [`super::train::run_cell`].
pub fn run(
    spec: &GradersSpec,
    place: &Place<'_>,
    job: &Job<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<CellResult> {
    todo!()
}

/// What estimators are worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grades {}

impl Grades {
    /// From the finished cells.
    pub fn of(_spec: &ExperimentSpec, _own: &GradersSpec, _cells: &[CellResult], _truths: &[Option<Truth>]) -> Self {
        todo!()
    }

    /// Its figures.
    pub fn figures(&self) -> Vec<Figure> {
        todo!()
    }

    /// Its tables.
    pub fn tables(&self) -> Vec<Table> {
        todo!()
    }
}
