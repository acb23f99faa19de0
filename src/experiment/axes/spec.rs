//! Trainings by name, and the compute of a cell.

use serde::{Deserialize, Serialize};

/// Operations of training on an image for each multiply-accumulate of its answer: a multiplication
/// and an addition, once forward and twice backward (gradients of maps, gradients of weights).
const OPERATIONS: f64 = 6.0;

/// The trainings that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AxesSpec {
    /// Each under a name of its own.
    pub trainings: Vec<NamedTraining>,
}

/// What differs from `[training]`, under a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedTraining {
    /// Its name in figures and tables.
    pub name: String,
    /// Other values for keys of `[training]`, after the overrides of a network.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub change: toml::Table,
    /// Whether networks start at random, also those for which `[pretrained]` names weights.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_scratch: bool,
}

/// What the training of a cell computes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Compute {
    /// Multiply-accumulates for the answer to one image; absent of networks that are not counted.
    pub macs_per_image: Option<f64>,
    /// Images seen in training, each as often as it is seen.
    pub images_seen: usize,
}

impl Compute {
    /// Floating-point operations of the training: 2 · 3 · multiply-accumulates · images seen.
    /// Normalisation, activation and the optimiser are not counted.
    pub fn flops(&self) -> Option<f64> {
        Some(OPERATIONS * self.macs_per_image? * self.images_seen as f64)
    }
}
