//! Calibration, graded: calibrators fitted on n labels of the world, and estimators of the
//! calibration error from n labels, against exact posteriors.
//!
//! | file | what |
//! |---|---|
//! | `run` | one cell: a classifier trained, calibrated by every method, its error estimated |
//! | `findings` | what all cells say together |
//! | `figures` | its figures and tables |

mod figures;
mod findings;
mod run;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::bayes_reference::Truth;
use super::cell::{Cell, CellResult};
use super::form::{Field, count, text};
use super::held_out;
use super::kind::{About, CellPlace, Experiment, Kind};
use super::output::Analysis;
use super::presets::preset;
use super::spec::ExperimentSpec;
use super::train::{CellEvent, CellJob};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::measure::Penalty;

pub use findings::{CalibrationGrades, GradedCalibrator, GradedEce};
pub use run::{Calibrated, EstimatedEce, Recalibrated};

pub(super) const ABOUT: About = About {
    name: "calibration",
    label: "Calibration",
    question: "Which calibrator, and which estimate of the calibration error, can be trusted with n labels?",
    presets: &[preset!("calibration-quick"), preset!("calibration")],
};

const LABELS: &str = "Calibration labels";
const DRAWS: &str = "Draws of labels";

/// Test images from which an exact calibration error can be told, at least.
const LEAST_IMAGES: usize = 4;
/// Draws of labels, at most.
const MOST_DRAWS: usize = 10_000;

/// What is graded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationSpec {
    /// Numbers n of labels: of a calibrator, and of an estimate of the calibration error.
    pub labels: Vec<usize>,
    /// How often n test images and their labels are drawn for the estimates, 2 to 10,000.
    #[serde(default = "hundred")]
    pub draws: usize,
    /// λ of Dirichlet scaling: λ/(K(K − 1)) Σ w² off the diagonal, beside the mean loss in nats.
    #[serde(default = "hundredth")]
    pub off_diagonal: f64,
    /// μ of Dirichlet scaling: μ/K Σ b².
    #[serde(default = "hundredth")]
    pub intercept: f64,
}

fn hundred() -> usize {
    100
}

fn hundredth() -> f64 {
    0.01
}

impl CalibrationSpec {
    fn penalty(&self) -> Penalty {
        Penalty { off_diagonal: self.off_diagonal, intercept: self.intercept }
    }

    /// The largest n.
    fn most(&self) -> usize {
        self.labels.iter().copied().max().unwrap_or(0)
    }
}

impl Kind for CalibrationSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn content(&self, _spec: &ExperimentSpec, _cell: &Cell) -> Option<serde_json::Value> {
        serde_json::to_value(self).ok()
    }

    fn validate(&self, spec: &ExperimentSpec) -> Result<()> {
        held_out::check(&self.labels)?;
        let (most, images) = (self.most(), spec.test.images);
        if images < LEAST_IMAGES {
            return Err(Error::input(format!(
                "test.images must be at least {LEAST_IMAGES}: two bins of two are the fewest"
            )));
        }
        if most > images {
            let cause = format!("experiment.labels: {most} labels are drawn of test images, and there are {images}");
            return Err(Error::input(cause));
        }
        if !(2..=MOST_DRAWS).contains(&self.draws) {
            let draws = self.draws;
            return Err(Error::input(format!("experiment.draws must lie between 2 and {MOST_DRAWS}, not at {draws}")));
        }
        if [self.off_diagonal, self.intercept].iter().any(|weight| !(0.0..=1e6).contains(weight)) {
            return Err(Error::input("experiment.off_diagonal and experiment.intercept must lie between 0 and 1e6"));
        }
        Ok(())
    }

    fn run(&self, place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        run::run(self, place, job, events)
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], _truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(CalibrationGrades::of(spec, cells)))
    }

    fn fields(&self) -> Vec<Field> {
        let labels = "Numbers n of labels, apart by commas: a calibrator is fitted on n labels of images of their own, and the calibration \
                      error is estimated from n labels of test images.";
        let draws = "How often n test images and their labels are drawn, to see how far an estimate of the calibration error is off on \
                     average, and how far it scatters.";
        vec![
            Field::text(LABELS, labels, held_out::shown(&self.labels)),
            Field::count(DRAWS, draws, "", 1.0, self.draws),
        ]
    }

    fn with_fields(&self, fields: &[Field]) -> Result<Option<Experiment>, String> {
        let (labels, draws) = (held_out::typed(text(fields, LABELS))?, count(fields, DRAWS));
        Ok(Some(Experiment::new(Self { labels, draws, ..self.clone() })))
    }
}
