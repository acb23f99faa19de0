//! Soft labels (BLC §4.2, App. D, figure 7): what exact posteriors are worth as labels.
//!
//! The paper's two kinds are the exact posterior ("soft") and the one-hot class of largest
//! posterior ("hard"). Beside them stand the drawn label, which a real dataset has, and the
//! smoothed one. The paper's figure 7 has two numbers, in the text: an ECE of 0.018 and a gain of
//! "up to ∼1 %". The figures repeat both.
//!
//! Training curves are part of a cell's result, not read from its metrics.jsonl. A summary so
//! depends on spec and results alone, and a cell killed between two epochs resumes with the course
//! in its checkpoint.

mod figures;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::bayes_reference::Truth;
use super::cell::CellResult;
use super::kind::{About, CellPlace, Kind};
use super::output::{Analysis, CellOutput};
use super::presets::preset;
use super::repeats::{NATS, Repeats, SHARE, SeedGain, SeedMean, distinct, provenance, repeats};
use super::spec::ExperimentSpec;
use super::train::{CellEvent, CellJob, train_cell};
use super::watched::Watched;
use crate::classifier::{Architecture, Labels};
use crate::error::Result;
use crate::events::Events;
use crate::measure::{Estimate, Interval};

pub(super) const ABOUT: About = About {
    name: "soft-labels",
    label: "Soft labels",
    question: "What is the whole exact posterior worth as a label, beside one class?",
    presets: &[preset!("soft-labels-quick"), preset!("soft-labels")],
};

/// Soft labels vary nothing but the labels of the grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoftLabelsSpec {}

impl Kind for SoftLabelsSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn takes_data(&self) -> bool {
        true
    }

    /// Trains and measures a cell, and keeps the course of its training.
    fn run(&self, _place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        let (result, trained) = train_cell(job, events)?;
        let watched = trained.course().to_vec();
        Ok(CellResult { output: Some(CellOutput::new(Course { watched })), ..result })
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], _truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(Gains::of(spec, cells)))
    }
}

/// How a cell's training went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// The watched test images after the first epochs, then ever more rarely, and after the last.
    pub watched: Vec<Watched>,
}

/// What exact labels gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gains {
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// Bayes accuracy of the test images, mean max p(y|x); absent until a cell is finished.
    pub test_bayes_accuracy: Option<Estimate>,
    /// Every kind of labels at every N, in the order of the plan.
    pub told: Vec<LabelFigures>,
    /// Exact posteriors over every other kind, likewise.
    pub gains: Vec<Gain>,
    /// Training curves, likewise.
    pub courses: Vec<Curve>,
}

/// A classifier that was told one kind of labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelFigures {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub labels: Labels,
    /// Number N of training images.
    pub train_size: usize,
    /// Share of test images whose drawn label it finds.
    pub accuracy: SeedMean,
    /// Its mean over all labels that could have been drawn.
    pub expected_accuracy: SeedMean,
    /// Expected calibration error against drawn labels.
    pub ece: SeedMean,
    /// The same bins against exact posteriors.
    pub exact_calibration_error: SeedMean,
    /// mean KL(p‖q), nats.
    pub epistemic: SeedMean,
}

/// What exact posteriors gain over another kind of labels on the same images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Network.
    pub architecture: Architecture,
    /// Number N of training images.
    pub train_size: usize,
    /// The other kind.
    pub over: Labels,
    /// Of expected accuracy, as a share.
    pub expected_accuracy: SeedGain,
    /// Of accuracy against drawn labels, as a share.
    pub accuracy: SeedGain,
}

/// A training curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub labels: Labels,
    /// Number N of training images.
    pub train_size: usize,
    /// After some epochs, in their order.
    pub points: Vec<CurvePoint>,
}

/// The watched test images after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Epochs done.
    pub epoch: usize,
    /// Expected accuracy on the watched images, as a share.
    pub expected_accuracy: SeedMean,
}

impl Gains {
    /// From the finished cells.
    pub fn of(spec: &ExperimentSpec, cells: &[CellResult]) -> Self {
        let groups = repeats(cells);
        let mut provenance = provenance(spec, cells.len());
        if spec.grid.labels.contains(&Labels::Smoothed) {
            let of = |architecture: &Architecture| spec.training_of(*architecture, 0).ok();
            let found = spec.grid.architectures.iter().filter_map(of).map(|training| training.label_smoothing);
            let each: Vec<String> = distinct(found).iter().map(f64::to_string).collect();
            provenance.push(("ε of smoothed labels".into(), each.join(", ")));
        }
        let soft = |group: &&Repeats<'_>| group.cell.labels == Labels::Posterior;
        let gain = |soft| groups.iter().filter_map(move |other| Gain::of(soft, other));
        Self {
            provenance,
            test_bayes_accuracy: cells.first().map(|result| result.measured.bayes_accuracy),
            told: groups.iter().filter_map(LabelFigures::of).collect(),
            gains: groups.iter().filter(soft).flat_map(gain).collect(),
            courses: groups.iter().map(Curve::of).filter(|curve| !curve.points.is_empty()).collect(),
        }
    }
}

impl LabelFigures {
    fn of(group: &Repeats<'_>) -> Option<Self> {
        Some(Self {
            architecture: group.cell.architecture,
            labels: group.cell.labels,
            train_size: group.cell.train_size,
            accuracy: group.mean(|result| result.measured.accuracy, SHARE)?,
            expected_accuracy: group.mean(|result| result.measured.expected_accuracy, SHARE)?,
            ece: group.mean(|result| result.measured.ece, SHARE)?,
            exact_calibration_error: group.mean(|result| result.measured.exact_calibration_error, SHARE)?,
            epistemic: group.mean(|result| result.measured.epistemic, NATS)?,
        })
    }
}

impl Gain {
    /// `None` where the two are not one classifier told two kinds of labels, or share no seed.
    fn of(soft: &Repeats<'_>, other: &Repeats<'_>) -> Option<Self> {
        let (cell, over) = (&soft.cell, other.cell.labels);
        let same = (cell.architecture, cell.train_size) == (other.cell.architecture, other.cell.train_size);
        if !same || cell.labels == over {
            return None;
        }
        Some(Self {
            architecture: cell.architecture,
            train_size: cell.train_size,
            over,
            expected_accuracy: soft
                .gain(other, |result| Some(result.paired_share(|m| m.expected_accuracy, |b| &b.expected_accuracy)))?,
            accuracy: soft.gain(other, |result| Some(result.paired_share(|m| m.accuracy, |b| &b.accuracy)))?,
        })
    }
}

impl Curve {
    fn of(group: &Repeats<'_>) -> Self {
        let courses = group.results.iter().filter_map(|result| result.output.as_ref()?.get::<Course>());
        let watched: Vec<Watched> = courses.flat_map(|course| &course.watched).copied().collect();
        let point = |epoch: usize| {
            let there: Vec<Estimate> =
                watched.iter().filter(|watched| watched.epoch == epoch).map(expected_accuracy).collect();
            Some(CurvePoint { epoch, expected_accuracy: SeedMean::of(&there, SHARE)? })
        };
        let mut epochs = distinct(watched.iter().map(|watched| watched.epoch));
        epochs.sort_unstable();
        Self {
            architecture: group.cell.architecture,
            labels: group.cell.labels,
            train_size: group.cell.train_size,
            points: epochs.into_iter().filter_map(point).collect(),
        }
    }
}

/// With its interval over the watched images; [0, 1] where a single one is watched.
fn expected_accuracy(watched: &Watched) -> Estimate {
    let [low, high] = SHARE;
    let interval = watched.intervals.map_or(Interval { low, high }, |of| of.expected_accuracy);
    Estimate { value: watched.expected_accuracy, interval }
}
