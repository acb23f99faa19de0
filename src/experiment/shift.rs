//! Distribution shift (BLC §4.3, App. G): training images whose classes, pixels or base samples are shifted by a known amount, and what that
//! costs on test images that are not.

use serde::{Deserialize, Serialize};

use super::cell::CellResult;
use super::images::Images;
use super::kinds::Place;
use super::spec::ExperimentSpec;
use super::train::{CellEvent, Job};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::figure::{Figure, Table};
use crate::measure::Estimate;
use crate::oracle::posterior::Prior;
use crate::oracle::world::{Settings, World};

/// Shifts of the training images; validation and test stay as SCIENCE §5 has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftSpec {
    /// Images of the world from which training images are chosen, with replacement where a class runs out.
    pub pool: usize,
    /// Share of the training images that is kept for validation.
    #[serde(default = "fifth")]
    pub validation: f64,
    /// The shifts; the first one is the baseline to which drops are counted.
    pub settings: Vec<ShiftSetting>,
}

fn fifth() -> f64 {
    0.2
}

/// One shift.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShiftSetting {
    /// Its name.
    pub name: String,
    /// Weights of the class prior π of the training images; that of the world where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior: Vec<f64>,
    /// Standard deviation σ of the Gaussian noise added to pixels, which are then clipped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub noise: f64,
    /// A shift of the base samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseShift>,
}

fn is_zero(noise: &f64) -> bool {
    *noise == 0.0
}

/// A shift of the base distribution of every class, given by what it amounts to: KL(p′(x|y)‖p(x|y)), which no invertible map changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BaseShift {
    /// All means move by one vector of a random direction: KL = ½‖δ‖², δ in standard deviations of the base.
    Mean {
        /// Nats.
        kl: f64,
    },
    /// The means move along the line from the mean of class `from` to that of class `to`; only where classes share one map.
    Towards {
        /// Nats.
        kl: f64,
        /// A class.
        from: usize,
        /// Another class.
        to: usize,
    },
    /// The base temperature rises: KL = ½D(r² − 1 − ln r²), r = τ′/τ.
    Wider {
        /// Nats.
        kl: f64,
    },
    /// It falls.
    Narrower {
        /// Nats.
        kl: f64,
    },
}

impl BaseShift {
    /// What it amounts to, nats.
    pub fn kl(self) -> f64 {
        let (Self::Mean { kl } | Self::Towards { kl, .. } | Self::Wider { kl } | Self::Narrower { kl }) = self;
        kl
    }
}

/// What the training images of a cell were.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shifted {
    /// Training images of each class, validation included.
    pub counts: Vec<usize>,
    /// KL of these frequencies from the world's class prior, nats (BLC eq. 8).
    pub kl_y: f64,
    /// Accuracy on the images kept for validation, which are shifted as the training images are.
    pub validation: Estimate,
}

impl ShiftSpec {
    /// Training images that are not kept for validation, of `n`.
    pub fn kept(&self, n: usize) -> usize {
        n - (n as f64 * self.validation).round() as usize
    }

    /// What a cell's numbers depend on.
    pub(super) fn content(&self, condition: usize) -> serde_json::Value {
        let Self { pool, validation, settings } = self;
        // A shift counts by what it does, not by its name.
        let setting = settings.get(condition).map(|s| serde_json::json!([s.prior, s.noise, s.base]));
        serde_json::json!({ "pool": pool, "validation": validation, "shift": setting })
    }

    /// Whether it can be planned.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        todo!()
    }
}

/// Trains and measures a cell on shifted images.
///
/// # Errors
/// As [`super::train::run_cell`], and when the shift does not fit the world.
pub fn run(
    spec: &ShiftSpec,
    place: &Place<'_>,
    job: &Job<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<CellResult> {
    todo!()
}

/// What shifts cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Damage {}

impl Damage {
    /// From the finished cells.
    pub fn of(_spec: &ExperimentSpec, _own: &ShiftSpec, _cells: &[CellResult]) -> Self {
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
