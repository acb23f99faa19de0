//! The temperature sweep (EBO figures 3 and 4): worlds from easy to hard, made of one oracle, and how far classifiers stay above the Bayes
//! error of each.

use serde::{Deserialize, Serialize};

use super::cell::CellResult;
use super::kinds::check_taus;
use super::spec::ExperimentSpec;
use super::truth::Truth;
use crate::error::Result;
use crate::figure::{Figure, Table};
use crate::units::Tau;

/// What a temperature sweep varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemperatureSpec {
    /// Base temperatures τ; they stand in place of `world.tau`.
    pub taus: Vec<Tau>,
}

impl TemperatureSpec {
    /// Whether it can be planned.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        check_taus(&self.taus)
    }
}

/// Errors over the temperature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {}

impl Sweep {
    /// From the finished cells.
    pub fn of(
        _spec: &ExperimentSpec,
        _own: &TemperatureSpec,
        _cells: &[CellResult],
        _truths: &[Option<Truth>],
    ) -> Self {
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
