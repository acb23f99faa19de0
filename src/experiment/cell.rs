//! One cell: which classifier, on which images.

use serde::{Deserialize, Serialize};

use super::spec::ExperimentSpec;
use crate::classifier::{Architecture, Labels};
use crate::error::{Error, Result};
use crate::measure::Measured;
use crate::oracle::folder::sha256;

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
}

/// Changes when the same spec would give other numbers than before.
const FORMAT: u32 = 1;

impl Cell {
    /// The hash of everything the cell's numbers depend on but the device: equal in every run that asks for the same.
    ///
    /// # Errors
    /// When the spec's overrides are wrong.
    pub fn id(&self, spec: &ExperimentSpec, weights_sha256: &str) -> Result<String> {
        let world = &spec.world;
        let content = serde_json::json!({
            "format": FORMAT,
            "weights": weights_sha256,
            "tau": world.tau,
            "smoothing": world.smoothing,
            "prior": world.prior,
            "world_seed": world.seed,
            "cell": self,
            "test": spec.test,
            "training": spec.training_of(self.architecture)?,
        });
        let text = serde_json::to_vec(&content).map_err(|e| Error::input(e.to_string()))?;
        Ok(sha256(&text)[..16].to_owned())
    }

    /// In words.
    pub fn label(&self) -> String {
        let Self { architecture, train_size, labels, seed } = self;
        let told = if *labels == Labels::Drawn { String::new() } else { format!(", {}", labels.label()) };
        format!("{} on {train_size} images{told}, seed {seed}", architecture.label())
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
}
