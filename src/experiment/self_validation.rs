//! Self-validation (BLC table 1): whether classifiers come near the Bayes accuracy at all.

use serde::{Deserialize, Serialize};

use super::cell::CellResult;
use super::spec::ExperimentSpec;
use super::truth::Truth;
use crate::figure::{Figure, Table};

/// Errors beside the Bayes error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nearness {}

impl Nearness {
    /// From the finished cells.
    pub fn of(_spec: &ExperimentSpec, _cells: &[CellResult], _truths: &[Option<Truth>]) -> Self {
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
