//! Active learning (BLC §4.4, App. E): labels bought round by round, by strategies that know the truth and strategies that do not.

use serde::{Deserialize, Serialize};

use super::cell::{Cell, CellResult};
use super::kinds::Place;
use super::spec::ExperimentSpec;
use super::train::{CellEvent, Job};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::figure::{Figure, Table};
use crate::measure::Measured;

/// Which labels are bought next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Any.
    Random,
    /// Where the classifier is least sure: largest H(q).
    MaxEntropy,
    /// Where it is farthest from the truth: largest exact KL(p‖q).
    MaxEpistemic,
    /// Where the two most probable classes are closest: smallest q₁ − q₂.
    Margin,
    /// Where the members of an ensemble disagree: largest H(mean q) − mean H(q) (Houlsby et al. 2011, Gal et al. 2017).
    Bald,
    /// Where the truth itself is undecided: largest H(p). A control: such labels teach least.
    MaxAleatoric,
}

/// How labels are bought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActiveSpec {
    /// Images of the world whose labels can be bought.
    pub pool: usize,
    /// Labels at the start, chosen at random: the same ones for every strategy under a seed.
    pub initial: usize,
    /// Labels bought in a round.
    pub batch: usize,
    /// Who chooses.
    pub strategies: Vec<Strategy>,
    /// Classifiers in the ensemble of [`Strategy::Bald`].
    #[serde(default = "five")]
    pub members: usize,
}

fn five() -> usize {
    5
}

/// What a strategy bought and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bought {
    /// The rounds, the random start first.
    pub rounds: Vec<Round>,
}

/// A round: labels, then a classifier trained on all labels bought so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Labels bought so far, those of this round included.
    pub labels: usize,
    /// Running numbers in the pool of the images whose labels this round bought.
    pub images: Vec<usize>,
    /// The classifier trained on them on the test images.
    pub measured: Measured,
}

impl ActiveSpec {
    /// Numbers of labels after each round, up to the budget: the start, then a batch more each time; the last may be smaller.
    pub fn rounds(&self, budget: usize) -> Vec<usize> {
        let later = (self.initial..budget).step_by(self.batch.max(1)).skip(1);
        let mut rounds = vec![self.initial.min(budget)];
        rounds.extend(later);
        if self.initial < budget {
            rounds.push(budget);
        }
        rounds
    }

    /// Numbers of training images of a cell's trainings, one after another.
    pub(super) fn trained_on(&self, cell: &Cell) -> Vec<usize> {
        let members = match self.strategies.get(cell.condition) {
            Some(Strategy::Bald) => self.members,
            _ => 1,
        };
        self.rounds(cell.train_size).into_iter().flat_map(|labels| std::iter::repeat_n(labels, members)).collect()
    }

    /// What a cell's numbers depend on.
    pub(super) fn content(&self, condition: usize) -> serde_json::Value {
        let Self { pool, initial, batch, strategies, members } = self;
        let strategy = strategies.get(condition);
        // The ensemble counts only where there is one.
        let members = matches!(strategy, Some(Strategy::Bald)).then_some(members);
        serde_json::json!({ "pool": pool, "initial": initial, "batch": batch, "strategy": strategy, "members": members })
    }

    /// Whether it can be planned.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self, spec: &ExperimentSpec) -> Result<()> {
        todo!()
    }
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Random, Self::MaxEntropy, Self::MaxEpistemic, Self::Margin, Self::Bald, Self::MaxAleatoric];

    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::MaxEntropy => "max entropy",
            Self::MaxEpistemic => "max epistemic",
            Self::Margin => "margin",
            Self::Bald => "BALD",
            Self::MaxAleatoric => "max aleatoric",
        }
    }
}

/// Buys labels round by round, and trains and measures a classifier on them after each.
///
/// # Errors
/// As [`super::train::run_cell`].
pub fn run(
    spec: &ActiveSpec,
    place: &Place<'_>,
    job: &Job<'_>,
    events: &mut dyn Events<CellEvent>,
) -> Result<CellResult> {
    todo!()
}

/// What strategies gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bargains {}

impl Bargains {
    /// From the finished cells.
    pub fn of(_spec: &ExperimentSpec, _own: &ActiveSpec, _cells: &[CellResult]) -> Self {
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
