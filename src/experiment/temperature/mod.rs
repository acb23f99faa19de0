//! The temperature sweep (EBO figures 3 and 4): worlds from easy to hard, made of one oracle, and
//! how far classifiers stay above the Bayes error of each.
//!
//! EBO prints its figures 3 and 4 without numbers: there are none to lay over ours. The
//! temperatures that §4.2 names are marked for the paper's datasets.

mod figures;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::bayes_gap::BayesGap;
use super::bayes_reference::Truth;
use super::cell::CellResult;
use super::form::Field;
use super::kind::{About, Experiment, Kind};
use super::output::Analysis;
use super::presets::preset;
use super::repeats::{provenance, repeats};
use super::spec::ExperimentSpec;
use super::taus;
use crate::classifier::Architecture;
use crate::error::Result;
use crate::measure::Estimate;
use crate::units::Tau;

pub(super) const ABOUT: About = About {
    name: "temperature",
    label: "Temperature",
    question: "How far above the Bayes error do classifiers stay as the world gets harder?",
    presets: &[preset!("temperature-quick"), preset!("temperature")],
};

/// What a temperature sweep varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemperatureSpec {
    /// Base temperatures τ; they stand in place of `world.tau`.
    pub taus: Vec<Tau>,
}

impl Kind for TemperatureSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn taus(&self) -> &[Tau] {
        &self.taus
    }

    fn wants_bayes_error(&self) -> bool {
        true
    }

    fn validate(&self, _spec: &ExperimentSpec) -> Result<()> {
        taus::check(&self.taus)
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(Sweep::of(spec, self, cells, truths)))
    }

    fn fields(&self) -> Vec<Field> {
        vec![taus::field(&self.taus)]
    }

    fn with_fields(&self, fields: &[Field]) -> Result<Option<Experiment>, String> {
        Ok(Some(Experiment::new(Self { taus: taus::of_fields(fields)? })))
    }
}

/// Errors over the temperature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// Name of the oracle.
    pub oracle: String,
    /// The networks of the plan.
    pub architectures: Vec<Architecture>,
    /// What is known at each τ, the lowest first.
    pub worlds: Vec<Swept>,
}

/// The world at one temperature, and classifiers in it. Errors are shares of 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// Base temperature τ.
    pub tau: Tau,
    /// The Bayes error of the world, once it is computed.
    pub truth: Option<Truth>,
    /// Bayes error of the test images, mean 1 − max p(y|x); absent until a cell is finished.
    pub test_bayes_error: Option<Estimate>,
    /// The classifiers that are finished, in the order of the plan.
    pub classifiers: Vec<BayesGap>,
}

impl Sweep {
    /// From the finished cells, and the Bayes error at each temperature of the spec where it is
    /// known.
    pub fn of(spec: &ExperimentSpec, own: &TemperatureSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Self {
        let groups = repeats(cells);
        let world = |(condition, &tau): (usize, &Tau)| {
            let truth = truths.get(condition).cloned().flatten();
            let here = || groups.iter().filter(|group| group.cell.condition == condition);
            let first = here().find_map(|group| group.results.first());
            let test_bayes_error = first.map(|result| result.measured.bayes_accuracy.complement());
            let classifiers = here().filter_map(|group| BayesGap::of(group, truth.as_ref())).collect();
            Swept { tau, truth, test_bayes_error, classifiers }
        };
        let mut worlds: Vec<Swept> = own.taus.iter().enumerate().map(world).collect();
        worlds.sort_by(|a, b| a.tau.get().total_cmp(&b.tau.get()));
        Self {
            provenance: provenance(spec, cells.len()),
            oracle: spec.world.oracle.clone(),
            architectures: spec.grid.architectures.clone(),
            worlds,
        }
    }
}
