//! One cell: which classifier, on which images.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::spec::ExperimentSpec;
use crate::classifier::{Architecture, Labels};
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::weights::sha256 as file_sha256;
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

/// Hashes of the files an experiment depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// SHA-256 of the oracle's weights.
    pub oracle: String,
    /// SHA-256 of the weights that architectures start from.
    pub pretrained: BTreeMap<Architecture, String>,
}

impl Files {
    /// Of a spec whose oracle's hash is known already.
    ///
    /// # Errors
    /// Names a file that cannot be read.
    pub fn of(spec: &ExperimentSpec, oracle: &str) -> Result<Self> {
        let hash =
            |(architecture, file): (&Architecture, &PathBuf)| Ok((*architecture, file_sha256(file, &mut silent())?));
        Ok(Self { oracle: oracle.to_owned(), pretrained: spec.pretrained.iter().map(hash).collect::<Result<_>>()? })
    }
}

impl Cell {
    /// The hash of everything the cell's numbers depend on but the device: equal in every run that asks for the same.
    ///
    /// # Errors
    /// When the spec's overrides are wrong.
    pub fn id(&self, spec: &ExperimentSpec, files: &Files) -> Result<String> {
        let world = &spec.world;
        let content = serde_json::json!({
            "format": FORMAT,
            "weights": files.oracle,
            "pretrained": files.pretrained.get(&self.architecture),
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
