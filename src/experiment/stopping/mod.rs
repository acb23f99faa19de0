//! When to stop: the epoch that n held-out labels choose, by loss, accuracy or ECE, beside the one of
//! least exact KL.
//!
//! | file | what |
//! |---|---|
//! | `crossed` | what an epoch gives away under one seed, on images that did not choose the best one |
//! | `regret` | rules, and what each gives away, over seeds |
//! | `figures` | its figures and tables |

mod crossed;
mod figures;
mod regret;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::bayes_reference::Truth;
use super::cell::{Cell, CellResult};
use super::form::{Field, text};
use super::held_out::{self, held_out};
use super::kind::{About, CellPlace, Experiment, Kind};
use super::output::{Analysis, CellOutput};
use super::presets::preset;
use super::spec::ExperimentSpec;
use super::taus;
use super::train::{CellEvent, CellJob, validate_cell};
use super::validated::{Validated, Validation};
use crate::error::Result;
use crate::events::Events;
use crate::units::Tau;

pub use regret::{Chosen, KlCourse, Regret, StoppingRegrets, StoppingRule};

pub(super) const ABOUT: About = About {
    name: "stopping",
    label: "When to stop",
    question: "Which epoch do n held-out labels choose, and how far is it from the best one?",
    presets: &[preset!("stopping-quick"), preset!("stopping")],
};

const LABELS: &str = "Held-out labels";

/// What is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoppingSpec {
    /// Base temperatures τ; they stand in place of `world.tau`.
    pub taus: Vec<Tau>,
    /// Numbers n of held-out labels, each the first of the largest.
    pub labels: Vec<usize>,
}

/// What a cell finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// After the first epochs, then ever more rarely, and after the last.
    pub epochs: Vec<Validated>,
}

impl Kind for StoppingSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn taus(&self) -> &[Tau] {
        &self.taus
    }

    fn content(&self, _spec: &ExperimentSpec, _cell: &Cell) -> Option<serde_json::Value> {
        Some(serde_json::json!({ "labels": self.labels }))
    }

    fn validate(&self, _spec: &ExperimentSpec) -> Result<()> {
        taus::check(&self.taus)?;
        held_out::check(&self.labels)
    }

    fn run(&self, place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        let most = self.labels.iter().copied().max().unwrap_or(0);
        let images = held_out("stopping", most, place, job, events)?;
        let validation = Validation { images: &images, labels: &self.labels };
        let (result, _, epochs) = validate_cell(job, Some(validation), events)?;
        Ok(CellResult { output: Some(CellOutput::new(Stopped { epochs })), ..result })
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], _truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(StoppingRegrets::of(spec, self, cells)))
    }

    fn fields(&self) -> Vec<Field> {
        let labels = "Numbers n of held-out labels, apart by commas: the epoch is chosen by what the first n say.";
        vec![taus::field(&self.taus), Field::text(LABELS, labels, held_out::shown(&self.labels))]
    }

    fn with_fields(&self, fields: &[Field]) -> Result<Option<Experiment>, String> {
        let (taus, labels) = (taus::of_fields(fields)?, held_out::typed(text(fields, LABELS))?);
        Ok(Some(Experiment::new(Self { taus, labels })))
    }
}
