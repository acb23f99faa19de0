//! How labels are bought, and what a cell finds of it.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::experiment::blocks::TestBlocks;
use crate::experiment::cell::Cell;
use crate::measure::Measured;
use crate::units::ClassId;

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
    /// Where members of an ensemble disagree: largest H(mean q) − mean H(q) (Houlsby et al. 2011,
    /// Gal et al. 2017).
    Bald,
    /// Where the truth itself is undecided: largest H(p). A control: such labels teach least.
    MaxAleatoric,
    /// Whose labels together tell most about which member of an ensemble is right (Kirsch et al.
    /// 2019).
    BatchBald,
    /// What lies farthest from all that is labelled, as the last layer reads it (Sener & Savarese
    /// 2018).
    CoreSet,
    /// Whose gradients of the last layer are large and differ (Ash et al. 2020).
    Badge,
    /// The most typical of the largest clusters without a label (Hacohen et al. 2022).
    #[serde(rename = "typiclust")]
    TypiClust,
    /// The batch after which the exact KL of the test images is smallest, of those tried: what a
    /// step can gain.
    LookAhead,
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
    /// Classifiers in the ensemble of [`Strategy::Bald`], [`Strategy::BatchBald`] and
    /// [`Strategy::LookAhead`], which tries what both would buy.
    #[serde(default = "five")]
    pub members: usize,
    /// Batches on which [`Strategy::LookAhead`] trains before it buys one.
    #[serde(default = "sixteen")]
    pub tries: usize,
}

fn five() -> usize {
    5
}

fn sixteen() -> usize {
    16
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
    /// What this round bought.
    pub bought: Purchase,
    /// The classifier trained on all of them on the test images.
    pub measured: Measured,
    /// The same over blocks of these images, for differences; absent in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<TestBlocks>,
}

/// Images whose labels were bought at once. Means are over these images: facts, not estimates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Purchase {
    /// Their running numbers in the pool, those most wanted first.
    pub images: Vec<usize>,
    /// The labels that were drawn for them, in the same order.
    pub drawn: Vec<ClassId>,
    /// Mean H(p), nats.
    pub aleatoric: f64,
    /// Mean KL(p‖q), nats, of the classifier of the round before; absent at the start.
    pub epistemic: Option<f64>,
    /// Mean H(q), nats, of the same classifier.
    pub entropy: Option<f64>,
    /// Share of them whose drawn label is not the Bayes decision argmax p: the label noise bought.
    pub noise: f64,
    /// The largest p(y|x) of each, in the same order: 1 less it is the image's own Bayes error.
    /// Empty in files of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certainty: Vec<f64>,
    /// What the look-ahead tried for this purchase, in order; of others nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
}

/// A batch on which the look-ahead trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// Who would have bought it; absent where it is a proposal of the look-ahead's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Mean KL(p‖q) on the test images after training with its labels, nats.
    pub epistemic: f64,
}

impl Purchase {
    /// How many of the drawn labels are of each class, [K].
    pub fn counts(&self, classes: usize) -> Vec<usize> {
        (0..classes).map(|class| self.drawn.iter().filter(|drawn| **drawn == class).count()).collect()
    }
}

impl ActiveSpec {
    /// Numbers of labels after each round, up to the budget; the last round may buy less.
    pub fn rounds(&self, budget: usize) -> Vec<usize> {
        let later = (self.initial..budget).step_by(self.batch.max(1)).skip(1);
        let mut rounds = vec![self.initial.min(budget)];
        rounds.extend(later);
        if self.initial < budget {
            rounds.push(budget);
        }
        rounds
    }

    /// The strategy of a cell.
    ///
    /// # Errors
    /// When the cell is not one of this spec.
    pub(super) fn strategy(&self, cell: &Cell) -> Result<Strategy> {
        let unknown = || Error::input(format!("{} is under a strategy that the spec does not have", cell.label()));
        self.strategies.get(cell.condition).copied().ok_or_else(unknown)
    }

    /// Classifiers that a strategy asks before it buys.
    pub(super) fn asked(&self, strategy: Strategy) -> usize {
        if strategy.asks_an_ensemble() { self.members } else { 1 }
    }

    /// Batches that a strategy trains on before it buys one of them.
    pub(super) fn tried(&self, strategy: Strategy) -> usize {
        if strategy == Strategy::LookAhead { self.tries } else { 0 }
    }

    /// Numbers of training images of a cell's trainings, in order. The last round asks no ensemble
    /// and tries nothing: nothing is bought after it.
    pub(super) fn trainings_of(&self, cell: &Cell) -> Vec<usize> {
        let strategy = self.strategies.get(cell.condition).copied().unwrap_or(Strategy::Random);
        let rounds = self.rounds(cell.train_size);
        let before = rounds.windows(2).flat_map(|pair| {
            let asked = std::iter::repeat_n(pair[0], self.asked(strategy));
            asked.chain(std::iter::repeat_n(pair[1], self.tried(strategy)))
        });
        before.chain(rounds.last().copied()).collect()
    }
}

impl Strategy {
    /// All of them: their places here are their colours in every figure.
    pub const ALL: [Self; 11] = [
        Self::Random,
        Self::MaxEntropy,
        Self::MaxEpistemic,
        Self::Margin,
        Self::Bald,
        Self::MaxAleatoric,
        Self::BatchBald,
        Self::CoreSet,
        Self::Badge,
        Self::TypiClust,
        Self::LookAhead,
    ];

    /// Those whose batches the look-ahead tries.
    pub(super) fn others() -> Vec<Self> {
        Self::ALL.into_iter().filter(|one| *one != Self::LookAhead).collect()
    }

    /// Whether it asks an ensemble.
    pub(super) fn asks_an_ensemble(self) -> bool {
        matches!(self, Self::Bald | Self::BatchBald | Self::LookAhead)
    }

    /// The label of this strategy in figures, tables and forms.
    pub fn label(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::MaxEntropy => "max entropy",
            Self::MaxEpistemic => "max epistemic",
            Self::Margin => "margin",
            Self::Bald => "BALD",
            Self::MaxAleatoric => "max aleatoric",
            Self::BatchBald => "BatchBALD",
            Self::CoreSet => "core-set",
            Self::Badge => "BADGE",
            Self::TypiClust => "TypiClust",
            Self::LookAhead => "look-ahead",
        }
    }
}
