//! Soft labels (BLC §4.2, App. D): what exact posteriors are worth as labels.

use serde::{Deserialize, Serialize};

use super::cell::CellResult;
use super::spec::ExperimentSpec;
use crate::figure::{Figure, Table};

/// What exact labels gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gains {}

impl Gains {
    /// From the finished cells.
    pub fn of(_spec: &ExperimentSpec, _cells: &[CellResult]) -> Self {
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
