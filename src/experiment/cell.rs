//! One cell: which classifier, on which images.

use serde::{Deserialize, Serialize};

use super::blocks::{Blocks, PairedFigure, TestBlocks};
use super::output::CellOutput;
use crate::classifier::{Architecture, Labels};
use crate::measure::{Estimate, Measured};

/// One classifier of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Network.
    pub architecture: Architecture,
    /// Number N of training images.
    pub train_size: usize,
    /// What it is told.
    pub labels: Labels,
    /// Of the training images drawn, the start and the order.
    pub seed: u64,
    /// Number of its condition (temperature, shift, strategy), from 0; 0 where the experiment has
    /// none.
    #[serde(default, skip_serializing_if = "is_first")]
    pub condition: usize,
}

fn is_first(condition: &usize) -> bool {
    *condition == 0
}

impl Cell {
    /// In words, without its condition.
    pub fn label(&self) -> String {
        format!("{}, seed {}", self.without_seed(), self.seed)
    }

    /// The same without its seed: what repeated trainings have in common.
    pub fn without_seed(&self) -> String {
        let Self { architecture, train_size, labels, .. } = self;
        let told = if *labels == Labels::Drawn { String::new() } else { format!(", {}", labels.label()) };
        format!("{} on {train_size} images{told}", architecture.label())
    }
}

/// What a cell gave. The same for the same cell and device, whenever and in whatever order it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Hash of the cell's content.
    pub id: String,
    /// The cell.
    pub cell: Cell,
    /// Trained numbers.
    pub parameters: usize,
    /// Optimisation steps.
    pub steps: usize,
    /// Mean training cross-entropy over the last epoch, nats, against what it was told.
    pub train_loss: f64,
    /// The finished classifier on the test images.
    pub measured: Measured,
    /// The same over blocks of these images, for differences; absent in cells of a version before 2026-11-26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<TestBlocks>,
    /// What only this kind of experiment finds.
    #[serde(default, rename = "found", skip_serializing_if = "Option::is_none")]
    pub output: Option<CellOutput>,
}

impl CellResult {
    /// A figure of the finished classifier on the test images, and on their blocks.
    pub(super) fn paired(
        &self,
        figure: impl Fn(&Measured) -> Estimate,
        blocks: impl Fn(&TestBlocks) -> &Blocks,
    ) -> PairedFigure<'_> {
        PairedFigure { value: figure(&self.measured).value, blocks: self.blocks.as_ref().map(blocks), images: None }
    }

    /// The same of a figure that lies in [0, 1] on every image.
    pub(super) fn paired_share(
        &self,
        figure: impl Fn(&Measured) -> Estimate,
        blocks: impl Fn(&TestBlocks) -> &Blocks,
    ) -> PairedFigure<'_> {
        PairedFigure { images: Some(self.measured.n), ..self.paired(figure, blocks) }
    }
}
