//! Active learning (BLC §4.4, App. E): labels bought round by round, by strategies that know the
//! truth and strategies that do not.
//!
//! A cell is one strategy under one seed. All strategies under a seed share the pool, the first
//! labels, the first classifier and the test images: their differences are paired.
//!
//! | file | what |
//! |---|---|
//! | `spec`, `form` | what an experiment is told and what a cell finds; its form |
//! | `scores`, `batches` | how much a single image is wanted; strategies that weigh a whole batch |
//! | `acquire` | what strategies get of a pool |
//! | `look_ahead` | the best of many batches, each tried: what a step can gain |
//! | `rounds` | a cell: train, measure, buy, and so on up to the budget |
//! | `curves` | what learning curves are compared by |
//! | `saving`, `apart` | the queries that a strategy saves, and how sure that is |
//! | `basket`, `one_step` | what was bought, by class and ambiguity; what a single step gains |
//! | `comparison` | the finding of a run |
//! | `drawing`, `figures` | its figures and tables |

mod acquire;
mod apart;
mod basket;
mod batches;
mod comparison;
mod curves;
mod drawing;
mod figures;
mod form;
mod look_ahead;
mod one_step;
mod rounds;
mod saving;
mod scores;
mod spec;

use super::bayes_reference::Truth;
use super::cell::{Cell, CellResult};
use super::form::Field;
use super::kind::{About, CellPlace, Experiment, Kind};
use super::output::Analysis;
use super::presets::preset;
use super::spec::ExperimentSpec;
use super::train::{CellEvent, CellJob};
use crate::error::{Error, Result};
use crate::events::Events;

pub use comparison::StrategyComparison;
pub use spec::{ActiveSpec, Bought, Purchase, Round, Strategy, Tried};

pub(super) const ABOUT: About = About {
    name: "active-learning",
    label: "Active learning",
    question: "Which labels are worth buying, and what does knowing the truth add?",
    presets: &[preset!("active-learning-quick"), preset!("active-learning")],
};

impl Kind for ActiveSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn conditions(&self) -> Vec<String> {
        self.strategies.iter().map(|strategy| strategy.label().to_owned()).collect()
    }

    fn content(&self, _spec: &ExperimentSpec, cell: &Cell) -> Option<serde_json::Value> {
        let Self { pool, initial, batch, strategies, members, tries } = self;
        let strategy = strategies.get(cell.condition);
        // The ensemble counts only where there is one, and tries where some are made.
        let members = strategy.is_some_and(|strategy| strategy.asks_an_ensemble()).then_some(members);
        let mut content = serde_json::json!({ "pool": pool, "initial": initial, "batch": batch, "strategy": strategy, "members": members });
        if strategy == Some(&Strategy::LookAhead) {
            content["tries"] = serde_json::json!(tries);
        }
        Some(content)
    }

    fn trained_on(&self, cell: &Cell) -> Vec<usize> {
        self.trainings_of(cell)
    }

    /// Never fewer than [`Kind::trained_on`] lists.
    fn trainings(&self, budget: usize) -> usize {
        let rounds = budget / self.batch.max(1) + 2;
        let tries = if self.strategies.contains(&Strategy::LookAhead) { self.tries } else { 0 };
        rounds.saturating_mul(self.members.max(1).saturating_add(tries))
    }

    fn pool(&self, largest: usize) -> usize {
        self.pool.max(largest)
    }

    fn needs_posteriors(&self) -> bool {
        true
    }

    fn reads_beside_training(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ExperimentSpec) -> Result<()> {
        let budgets = &spec.grid.train_sizes;
        let (least, most) = (budgets.iter().min().copied(), budgets.iter().max().copied());
        let checks = [
            (self.initial >= 1, "experiment.initial must be at least 1: the first classifier needs a label".to_owned()),
            (self.batch >= 1, "experiment.batch must be at least 1".to_owned()),
            (!self.strategies.is_empty(), "experiment.strategies is empty".to_owned()),
            (
                self.members >= 2 || !self.strategies.iter().any(|strategy| strategy.asks_an_ensemble()),
                "experiment.members must be at least 2: BALD asks where classifiers disagree".to_owned(),
            ),
            (
                self.tries >= Strategy::ALL.len() || !self.strategies.contains(&Strategy::LookAhead),
                format!(
                    "experiment.tries must be at least {}: the look-ahead tries what every other strategy would buy, and a batch of its own",
                    Strategy::ALL.len()
                ),
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

    fn run(&self, _place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        rounds::run(self, job, events)
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], _truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(StrategyComparison::of(spec, self, cells)))
    }

    fn fields(&self) -> Vec<Field> {
        form::fields(self)
    }

    fn with_fields(&self, fields: &[Field]) -> Result<Option<Experiment>, String> {
        Ok(Some(Experiment::new(form::read(self, fields))))
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
            ("['random', 'bald']", "['batch-bald']\nmembers = 1", "experiment.members"),
            ("['random', 'bald']", "['look-ahead']\ntries = 10", "experiment.tries must be at least 11"),
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
        let own: &ActiveSpec = spec.experiment.get().unwrap();
        assert_eq!(own.rounds(30), [10, 17, 24, 30]);
        assert_eq!(own.rounds(17), [10, 17]);
        let cells = spec.cells();
        assert_eq!(own.trained_on(&cells[0]), [10, 17, 24, 30]);
        assert_eq!(own.trained_on(&cells[3]), [10, 10, 10, 17, 17, 17, 24, 24, 24, 30]);
        assert_eq!(cells[3].condition, 1);
        let own = ActiveSpec { strategies: vec![Strategy::LookAhead], tries: 2, ..own.clone() };
        let trained: Vec<usize> =
            [10, 17, 24].into_iter().zip([17, 24, 30]).flat_map(|(now, next)| [now, now, now, next, next]).collect();
        assert_eq!(own.trained_on(&cells[0]), [trained, vec![30]].concat());
        assert!(own.trainings(30) >= own.trained_on(&cells[0]).len());
    }

    #[test]
    fn strategies_keep_their_colours() {
        for (i, strategy) in Strategy::ALL.into_iter().enumerate() {
            assert_eq!(strategy as usize, i);
        }
    }
}
