//! Four cells of train and test: the same network trained on samples of the world or on real images,
//! each tested on samples of the world and on real images.
//!
//! Real test images have labels and no exact posterior: accuracy, NLL and expected calibration error
//! alone, against labels on both kinds of images, so that all four cells compare. KL is exact, on
//! samples of the world.

mod figures;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::bayes_reference::Truth;
use super::blocks::{PairedFigure, TestBlocks};
use super::cell::{Cell, CellResult};
use super::images::{Source, View};
use super::kind::{About, CellPlace, Kind};
use super::output::{Analysis, CellOutput};
use super::presets::preset;
use super::progress::Measuring;
use super::repeats::{NATS, Repeats, SHARE, SeedGain, SeedMean, provenance, repeats};
use super::spec::ExperimentSpec;
use super::train::{CellEvent, CellJob, train_cell};
use super::trained::{Trained, measuring};
use crate::classifier::{Architecture, Labels, PASS};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::measure::{Estimate, Measured, PerImage};

pub(super) const ABOUT: About = About {
    name: "transfer",
    label: "World or real images",
    question: "Does what is learned on the world hold on real images, and the other way round?",
    presets: &[preset!("transfer-quick"), preset!("transfer")],
};

/// Where images come from. Cells count by it which images they learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Samples of the world.
    World,
    /// The dataset of the spec.
    Real,
}

impl Origin {
    /// Both, as conditions count them.
    const ALL: [Self; 2] = [Self::World, Self::Real];

    /// The label in figures and tables: "world images" or "real images".
    pub fn label(self) -> &'static str {
        match self {
            Self::World => "world images",
            Self::Real => "real images",
        }
    }
}

/// The four cells vary nothing but where images come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransferSpec {}

impl Kind for TransferSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn conditions(&self) -> Vec<String> {
        Origin::ALL.map(|learned| format!("trained on {}", learned.label())).into()
    }

    fn content(&self, _spec: &ExperimentSpec, cell: &Cell) -> Option<serde_json::Value> {
        Some(serde_json::json!({ "learned": Origin::ALL.get(cell.condition), "tested": Origin::ALL }))
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn learns_the_world(&self, condition: usize) -> bool {
        Origin::ALL.get(condition) == Some(&Origin::World)
    }

    fn tests_on_both(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ExperimentSpec) -> Result<()> {
        if spec.data.is_none() {
            return Err(Error::input("real images are missing: name them under [data]"));
        }
        match spec.grid.labels.iter().find(|labels| labels.ask_the_world()) {
            Some(labels) => Err(Error::input(format!(
                "grid.labels: real images have no {}; take drawn or smoothed labels",
                labels.label()
            ))),
            None => Ok(()),
        }
    }

    /// Trains a cell, measures it on samples of the world, and on real images.
    fn run(&self, place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        let real = place.real.as_ref().ok_or_else(|| Error::input("the run has no real test images"))?;
        let (result, trained) = train_cell(job, events)?;
        let output = OnReal::of(&trained, real, job.test.classes, events)?;
        Ok(CellResult { output: Some(CellOutput::new(output)), ..result })
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], _truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(FourCells::of(spec, cells)))
    }
}

/// A classifier on the real test images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnReal {
    /// Images.
    pub images: usize,
    /// Share of images whose label it finds.
    pub accuracy: Estimate,
    /// mean −log q(label), nats.
    pub nll: Estimate,
    /// Expected calibration error, 15 bins of equal width.
    pub ece: Estimate,
    /// The figures over blocks of the images; absent in cells of a version before 2026-11-26.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<TestBlocks>,
}

impl OnReal {
    fn of(trained: &Trained, real: &View<'_>, classes: usize, events: &mut dyn Events<CellEvent>) -> Result<Self> {
        let mut figures = PerImage::new(classes)?;
        let mut pieces = Measuring::begin(events, "the real test images", real.at.len())?;
        for first in (0..real.at.len()).step_by(PASS) {
            let batch = real.take(&(first..real.at.len().min(first + PASS)).collect::<Vec<_>>())?;
            // A label is all that is known: it stands in the place of a posterior, and of the figures
            // only those are kept that do not ask for one.
            let known = batch.targets(Labels::Drawn, classes, 0.0);
            figures.extend(&known, &trained.log_q(batch.x)?, &batch.labels)?;
            pieces.done(batch.labels.len())?;
        }
        let Measured { n: images, accuracy, nll, ece, .. } = figures.measured(&measuring())?;
        Ok(Self { images, accuracy, nll, ece, blocks: Some(TestBlocks::of(&figures)) })
    }
}

/// What the four cells say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FourCells {
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// Bayes accuracy of the test images of the world, mean max p(y|x); absent until a cell is finished.
    pub bayes_accuracy: Option<Estimate>,
    /// Every classifier on both kinds of test images, in the order of the plan.
    pub cells: Vec<FourCell>,
    /// Classifiers that learned real images less those that learned the world, on the same test images.
    pub gains: Vec<OriginGain>,
}

/// A classifier that learned one kind of images, on test images of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FourCell {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub labels: Labels,
    /// Number N of training images.
    pub train_size: usize,
    /// What it learned.
    pub learned: Origin,
    /// What it is tested on.
    pub tested: Origin,
    /// Share of test images whose label it finds.
    pub accuracy: SeedMean,
    /// mean −log q(label), nats.
    pub nll: SeedMean,
    /// Expected calibration error against labels.
    pub ece: SeedMean,
    /// mean KL(p‖q), nats; absent of real test images, which have no exact posterior.
    pub epistemic: Option<SeedMean>,
}

/// What learning real images changes, paired by seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OriginGain {
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub labels: Labels,
    /// Number N of training images.
    pub train_size: usize,
    /// What both are tested on.
    pub tested: Origin,
    /// Of accuracy, as a share.
    pub accuracy: SeedGain,
    /// Of the negative log-likelihood, nats.
    pub nll: SeedGain,
    /// Of the expected calibration error.
    pub ece: SeedGain,
}

/// Accuracy, NLL and ECE of a result on test images of one kind; `None` of results that lack them.
fn scores(result: &CellResult, tested: Origin) -> Option<[Estimate; 3]> {
    let measured = &result.measured;
    match tested {
        Origin::World => Some([measured.accuracy, measured.nll, measured.ece]),
        Origin::Real => result.output.as_ref()?.get::<OnReal>().map(|real| [real.accuracy, real.nll, real.ece]),
    }
}

/// How many test images those are.
fn images(result: &CellResult, tested: Origin) -> Option<usize> {
    match tested {
        Origin::World => Some(result.measured.n),
        Origin::Real => result.output.as_ref()?.get::<OnReal>().map(|real| real.images),
    }
}

/// The blocks of the same test images, where they are known.
fn blocks(result: &CellResult, tested: Origin) -> Option<&TestBlocks> {
    match tested {
        Origin::World => result.blocks.as_ref(),
        Origin::Real => result.output.as_ref()?.get::<OnReal>()?.blocks.as_ref(),
    }
}

impl FourCells {
    /// From the finished cells.
    pub fn of(spec: &ExperimentSpec, cells: &[CellResult]) -> Self {
        let groups = repeats(cells);
        let both = |group| Origin::ALL.into_iter().filter_map(move |tested| FourCell::of(group, tested));
        let learned = |which: Origin| {
            let of = move |group: &&Repeats<'_>| Origin::ALL.get(group.cell.condition) == Some(&which);
            groups.iter().filter(of)
        };
        let gain = |real| {
            let other = learned(Origin::World).find(|world| same(world, real));
            Origin::ALL.into_iter().filter_map(move |tested| OriginGain::of(real, other?, tested))
        };
        Self {
            provenance: provenance(spec, cells.len()),
            bayes_accuracy: cells.first().map(|result| result.measured.bayes_accuracy),
            cells: groups.iter().flat_map(both).collect(),
            gains: learned(Origin::Real).flat_map(gain).collect(),
        }
    }
}

/// Whether two groups differ in what they learned alone.
fn same(a: &Repeats<'_>, b: &Repeats<'_>) -> bool {
    let (a, b) = (a.cell, b.cell);
    (a.architecture, a.labels, a.train_size) == (b.architecture, b.labels, b.train_size)
}

impl FourCell {
    fn of(group: &Repeats<'_>, tested: Origin) -> Option<Self> {
        let all: Vec<[Estimate; 3]> = group.results.iter().filter_map(|result| scores(result, tested)).collect();
        let mean =
            |which: usize, range| SeedMean::of(&all.iter().map(|scores| scores[which]).collect::<Vec<_>>(), range);
        let exact = group.mean(|result| result.measured.epistemic, NATS);
        Some(Self {
            architecture: group.cell.architecture,
            labels: group.cell.labels,
            train_size: group.cell.train_size,
            learned: *Origin::ALL.get(group.cell.condition)?,
            tested,
            accuracy: mean(0, SHARE)?,
            nll: mean(1, NATS)?,
            ece: mean(2, SHARE)?,
            epistemic: exact.filter(|_| tested == Origin::World),
        })
    }
}

impl OriginGain {
    /// `None` where the two share no seed.
    fn of(real: &Repeats<'_>, world: &Repeats<'_>, tested: Origin) -> Option<Self> {
        let of = |which: usize| {
            real.gain(world, |result| {
                let (blocks, images) = (blocks(result, tested), (which == 0).then(|| images(result, tested)).flatten());
                // A calibration error is no mean over images.
                let blocks = [blocks.map(|b| &b.accuracy), blocks.map(|b| &b.nll), None][which];
                Some(PairedFigure { value: scores(result, tested)?[which].value, blocks, images })
            })
        };
        Some(Self {
            architecture: real.cell.architecture,
            labels: real.cell.labels,
            train_size: real.cell.train_size,
            tested,
            accuracy: of(0)?,
            nll: of(1)?,
            ece: of(2)?,
        })
    }
}
