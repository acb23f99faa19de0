//! The form of active learning: its strategies and how much they buy.

use super::{ActiveSpec, Strategy};
use crate::experiment::form::{Choices, Field, chosen, count};

const STRATEGIES: &str = "Strategies";
const POOL: &str = "Pool";
const INITIAL: &str = "At the start";
const BATCH: &str = "A round";
const MEMBERS: &str = "Members";
const TRIES: &str = "Tries";

/// The fields of a spec.
pub(super) fn fields(spec: &ActiveSpec) -> Vec<Field> {
    let all = Strategy::ALL.map(|strategy| (strategy.label(), spec.strategies.contains(&strategy)));
    let start = "Chosen at random, the same ones for every strategy.";
    vec![
        Field::Choices(Choices {
            label: STRATEGIES,
            meaning: "Who chooses the images whose labels are bought.",
            each: "Strategy",
            all: all.into(),
        }),
        Field::count(POOL, "Images of the world whose labels can be bought.", " images", 10.0, spec.pool),
        Field::count(INITIAL, start, " labels", 1.0, spec.initial),
        Field::count(BATCH, "Bought before the classifier is trained anew.", " labels", 1.0, spec.batch),
        Field::count(MEMBERS, "Of the ensemble that BALD and BatchBALD ask.", " classifiers", 0.1, spec.members),
        Field::count(TRIES, "Batches on which the look-ahead trains before it buys one.", " batches", 0.1, spec.tries),
        Field::Hint("Training images N is the budget: how many labels are bought in all."),
    ]
}

/// The spec that the fields describe.
pub(super) fn read(spec: &ActiveSpec, fields: &[Field]) -> ActiveSpec {
    ActiveSpec {
        pool: count(fields, POOL),
        initial: count(fields, INITIAL),
        batch: count(fields, BATCH),
        strategies: chosen(fields, STRATEGIES, &Strategy::ALL, &spec.strategies),
        members: count(fields, MEMBERS),
        tries: count(fields, TRIES),
    }
}
