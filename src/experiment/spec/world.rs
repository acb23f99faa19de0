//! The world of an experiment.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::in_folder;
use crate::error::{Error, Result};
use crate::experiment::target::FoundTau;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::library;
use crate::oracle::posterior::Prior;
use crate::oracle::world::Settings;
use crate::units::{Smoothing, Tau};

/// A world and its knobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldSpec {
    /// Name of a bundled oracle, an oracle folder or a checkpoint.
    pub oracle: String,
    /// Base temperature τ.
    #[serde(default = "one")]
    pub tau: Tau,
    /// Posterior smoothing T.
    #[serde(default = "unsmoothed")]
    pub smoothing: Smoothing,
    /// Weights of the class prior π; uniform where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior: Vec<f64>,
    /// What labels are drawn by: `symmetric:0.2`, `pair:0.2`, `by-class:…`, a file, or a matrix; absent, they are the classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_noise: Option<LabelNoise>,
    /// Seed of the images.
    #[serde(default)]
    pub seed: u64,
    /// The Bayes error the world is to have, in place of `tau`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// How `tau` was found from it; a run writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FoundTau>,
}

fn one() -> Tau {
    Tau::ONE
}

fn unsmoothed() -> Smoothing {
    Smoothing::ONE
}

impl WorldSpec {
    /// Its knobs, for a world of so many classes.
    ///
    /// # Errors
    /// When the prior or the label noise does not fit.
    pub fn settings(&self, classes: usize) -> Result<Settings> {
        let prior = if self.prior.is_empty() { Prior::uniform(classes) } else { Prior::new(&self.prior)? };
        if prior.classes() != classes {
            let given = prior.classes();
            return Err(Error::input(format!("world.prior has {given} entries, the world {classes} classes")));
        }
        let label_noise = self.label_noise.clone();
        label_noise.as_ref().map_or(Ok(()), |noise| noise.check(classes))?;
        Ok(Settings { tau: self.tau, smoothing: self.smoothing, prior, label_noise })
    }

    /// The same, the relative paths of its oracle and its label noise taken from a folder.
    ///
    /// # Errors
    /// When the present folder cannot be told, or the label noise cannot be read.
    pub(super) fn relative_to(self, folder: &Path) -> Result<Self> {
        let oracle = oracle_in(folder, self.oracle)?;
        let label_noise = self.label_noise.map(|noise| noise.relative_to(folder)).transpose()?;
        Ok(Self { oracle, label_noise, ..self })
    }
}

/// The path of an oracle that does not come with the program, where it lies in a folder, or in the present one: there
/// all commands look for a name. Any other name stays, to be refused when it is opened.
fn oracle_in(folder: &Path, named: String) -> Result<String> {
    if named.is_empty() || library::find(&named).is_some() || Path::new(&named).is_absolute() {
        return Ok(named);
    }
    for place in [folder, Path::new("")] {
        let path = in_folder(place, Path::new(&named))?;
        if path.exists() {
            return Ok(path.display().to_string());
        }
    }
    Ok(named)
}
