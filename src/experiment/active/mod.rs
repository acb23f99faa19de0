//! Active learning (BLC §4.4, App. E): labels bought round by round, by strategies that know the truth and strategies that do not.
//!
//! A cell is one strategy under one seed. All strategies under a seed choose from the same pool, begin with the same labels and the same
//! classifier, and are measured on the same test images: their differences are paired.
//!
//! | file | what |
//! |---|---|
//! | `acquire` | what strategies want, and what they get |
//! | `rounds` | a cell: train, measure, buy, and so on up to the budget |
//! | `curves` | what learning curves are compared by |
//! | `bargains` | the finding of a run |
//! | `present` | its figures and tables |

mod acquire;
mod bargains;
mod curves;
mod present;
mod rounds;

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::spec::ExperimentSpec;
use crate::error::{Error, Result};
use crate::measure::Measured;
use crate::units::ClassId;

pub use bargains::Bargains;
pub use rounds::run;

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
    /// What this round bought.
    pub bought: Purchase,
    /// The classifier trained on all of them on the test images.
    pub measured: Measured,
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
    /// Mean KL(p‖q), nats, of the classifier of the round before; absent at the start, before which there is none.
    pub epistemic: Option<f64>,
    /// Mean H(q), nats, of the same classifier.
    pub entropy: Option<f64>,
    /// Share of them whose drawn label is not the Bayes decision argmax p: the label noise that was bought.
    pub noise: f64,
}

impl Purchase {
    /// How many of the drawn labels are of each class, [K].
    pub fn counts(&self, classes: usize) -> Vec<usize> {
        (0..classes).map(|class| self.drawn.iter().filter(|drawn| **drawn == class).count()).collect()
    }
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

    /// The strategy of a cell.
    ///
    /// # Errors
    /// When the cell is not one of this spec.
    fn strategy(&self, cell: &Cell) -> Result<Strategy> {
        let unknown = || Error::input(format!("{} is under a strategy that the spec does not have", cell.label()));
        self.strategies.get(cell.condition).copied().ok_or_else(unknown)
    }

    /// Classifiers that a strategy asks before it buys.
    fn asked(&self, strategy: Strategy) -> usize {
        if strategy == Strategy::Bald { self.members } else { 1 }
    }

    /// Trainings of a cell of at most so many labels, counted without planning them: never fewer than [`Self::trained_on`] names.
    pub(super) fn trainings(&self, budget: usize) -> usize {
        let rounds = budget / self.batch.max(1) + 2;
        rounds.saturating_mul(self.members.max(1))
    }

    /// Numbers of training images of a cell's trainings, one after another. Nothing is bought after the last round: no ensemble is asked.
    pub(super) fn trained_on(&self, cell: &Cell) -> Vec<usize> {
        let members = self.strategies.get(cell.condition).map_or(1, |&strategy| self.asked(strategy));
        let rounds = self.rounds(cell.train_size);
        let (last, before) = (rounds.len() - 1, &rounds[..rounds.len() - 1]);
        let asked = before.iter().flat_map(|&labels| std::iter::repeat_n(labels, members));
        asked.chain([rounds[last]]).collect()
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
        let budgets = &spec.grid.train_sizes;
        let (least, most) = (budgets.iter().min().copied(), budgets.iter().max().copied());
        let checks = [
            (self.initial >= 1, "experiment.initial must be at least 1: the first classifier needs a label".to_owned()),
            (self.batch >= 1, "experiment.batch must be at least 1".to_owned()),
            (!self.strategies.is_empty(), "experiment.strategies is empty".to_owned()),
            (
                self.members >= 2 || !self.strategies.contains(&Strategy::Bald),
                "experiment.members must be at least 2: BALD asks where classifiers disagree".to_owned(),
            ),
            (
                least.is_some_and(|least| least > self.initial),
                format!(
                    "grid.train_sizes are the budgets: all must be above experiment.initial = {}, or nothing is bought",
                    self.initial
                ),
            ),
            (
                most.is_some_and(|most| most <= self.pool),
                format!("grid.train_sizes asks for more labels than experiment.pool = {} has images", self.pool),
            ),
        ];
        match checks.into_iter().find(|(fine, _)| !fine) {
            Some((_, complaint)) => Err(Error::input(complaint)),
            None => Ok(()),
        }
    }
}

impl Strategy {
    /// All of them: their places here are their colours in every figure.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(experiment: &str, sizes: &str) -> Result<ExperimentSpec> {
        let text = format!(
            "name = 'x'\n[experiment]\nkind = 'active-learning'\n{experiment}\n[world]\noracle = 'mnist'\n[grid]\n\
             architectures = ['linear']\ntrain_sizes = {sizes}\n"
        );
        let spec: ExperimentSpec = toml::from_str(&text).unwrap();
        spec.validate().map(|()| spec)
    }

    #[test]
    fn what_cannot_be_bought_is_named() {
        let told = |experiment: &str, sizes: &str| spec(experiment, sizes).unwrap_err().to_string();
        let fine = "pool = 100\ninitial = 10\nbatch = 7\nstrategies = ['random', 'bald']";
        spec(fine, "[60, 100]").unwrap();
        assert!(told(fine, "[10, 60]").contains("above experiment.initial = 10"));
        assert!(told(fine, "[101]").contains("experiment.pool = 100"));
        for (from, to, why) in [
            ("initial = 10", "initial = 0", "experiment.initial"),
            ("batch = 7", "batch = 0", "experiment.batch"),
            ("['random', 'bald']", "[]", "strategies is empty"),
            ("['random', 'bald']", "['bald', 'bald']", "BALD is named twice"),
            ("['random', 'bald']", "['bald']\nmembers = 1", "experiment.members"),
        ] {
            assert!(told(&fine.replace(from, to), "[60]").contains(why), "{to}");
        }
        // One member is enough where nobody asks an ensemble.
        spec(&fine.replace("['random', 'bald']", "['margin']\nmembers = 1"), "[60]").unwrap();
    }

    #[test]
    fn rounds_end_at_the_budget_and_the_last_asks_no_ensemble() {
        let spec =
            spec("pool = 100\ninitial = 10\nbatch = 7\nstrategies = ['random', 'bald']\nmembers = 3", "[30]").unwrap();
        let crate::experiment::Experiment::ActiveLearning(own) = &spec.experiment else { unreachable!() };
        assert_eq!(own.rounds(30), [10, 17, 24, 30]);
        assert_eq!(own.rounds(17), [10, 17]);
        let cells = spec.cells();
        assert_eq!(own.trained_on(&cells[0]), [10, 17, 24, 30]);
        assert_eq!(own.trained_on(&cells[3]), [10, 10, 10, 17, 17, 17, 24, 24, 24, 30]);
        assert_eq!(cells[3].condition, 1);
    }

    #[test]
    fn strategies_keep_their_colours() {
        for (i, strategy) in Strategy::ALL.into_iter().enumerate() {
            assert_eq!(strategy as usize, i);
        }
    }
}
