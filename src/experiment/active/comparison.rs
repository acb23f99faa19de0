//! What strategies gain: their learning curves, and what knowing the truth is worth.

use serde::{Deserialize, Serialize};

use super::basket::Basket;
use super::curves::{Spread, Stated};
use super::one_step::OneStep;
use super::saving::Saving;
use super::{ActiveSpec, Bought, Purchase, Round, Strategy};
use crate::classifier::{Architecture, Labels};
use crate::experiment::blocks::{Difference, PairedFigure};
use crate::experiment::cell::CellResult;
use crate::experiment::repeats::{NATS, SHARE, classifiers};
use crate::experiment::spec::ExperimentSpec;
use crate::measure::{Estimate, Measured};

/// What strategies gain. Accuracies are expected ones, Σ p(argmax q)/n: means over all labels that
/// could have been drawn. Intervals of what is measured on the test images are 95 % intervals over seeds
/// (Student) and over these images, in quadrature; others are Student's over seeds, unless stated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StrategyComparison {
    /// Name of the run.
    pub run: String,
    /// The oracle.
    pub oracle: String,
    /// Base temperature τ.
    pub tau: f64,
    /// Images in the pool.
    pub pool: usize,
    /// Labels at the start.
    pub initial: usize,
    /// Labels bought in a round.
    pub batch: usize,
    /// Classifiers that BALD and BatchBALD ask.
    pub members: usize,
    /// Test images.
    pub test_images: usize,
    /// A comparison for every network, budget and kind of labels of which a cell is finished.
    #[serde(rename = "contests")]
    pub groups: Vec<Group>,
}

/// The strategies with one network, budget and kind of labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Network.
    pub architecture: Architecture,
    /// Labels at the end.
    pub budget: usize,
    /// What classifiers are told of an image whose label is bought.
    pub labels: Labels,
    /// Mean largest posterior of the test images, the bound of expected accuracy. Interval over
    /// test images.
    pub bayes_accuracy: Estimate,
    /// Those of which a seed is finished, in the order of the spec.
    pub curves: Vec<Curve>,
    /// Max epistemic beside each of the others.
    #[serde(rename = "duels")]
    pub pairs: Vec<Pair>,
    /// What a single step gains, where the look-ahead is among the strategies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_step: Vec<OneStep>,
}

/// A strategy's course, mean over its finished seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The strategy.
    pub strategy: Strategy,
    /// Finished seeds.
    pub seeds: Vec<u64>,
    /// The rounds.
    pub stages: Vec<Stage>,
    /// Accuracy at the budget less that at the start.
    pub gain: Spread,
    /// Epistemic KL at the start less that at the budget, nats.
    pub reduction: Spread,
    /// The same as a share of that at the start, its interval over seeds alone; absent where nothing was to
    /// be learned.
    pub reduction_share: Option<Spread>,
    /// Share of all labels bought after the start that are not the Bayes decision.
    pub noise: Option<Spread>,
    /// What was bought after the start, by class and ambiguity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basket: Option<Basket>,
}

/// A strategy after a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Labels bought so far.
    pub labels: usize,
    /// Expected accuracy on the test images.
    pub accuracy: Spread,
    /// Epistemic part mean KL(p‖q) on the test images, nats.
    pub epistemic: Spread,
    /// Difference to random under the same seeds; absent where no seed has both, and for random
    /// itself.
    pub lead: Option<Lead>,
    /// Mean H(p) of the images bought in this round, nats.
    pub bought_aleatoric: Spread,
    /// Their mean KL(p‖q) when they were bought, nats; absent at the start.
    pub bought_epistemic: Option<Spread>,
    /// Their mean H(q) then, nats; absent at the start.
    pub bought_entropy: Option<Spread>,
    /// Share of their drawn labels that are not the Bayes decision.
    pub bought_noise: Spread,
}

/// A strategy's distance from another, paired by seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lead {
    /// In expected accuracy.
    pub accuracy: Spread,
    /// In epistemic KL, nats: below 0 where the strategy is nearer to the truth.
    pub epistemic: Spread,
}

/// Max epistemic beside another strategy, over the seeds that both have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The other.
    pub against: Strategy,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Mean accuracy gain of max epistemic over that of the other, from start to budget (BLC §4.4:
    /// 1.6× against max entropy). Fieller's interval, paired by seed, over seeds and test images.
    pub gain_ratio: Stated,
    /// Queries saved in the middle regime (BLC §4.4: 47.8 %).
    pub saving: Option<Saving>,
    /// Distance at the budget.
    pub lead: Lead,
}

/// A strategy's finished cells: seeds and rounds.
type Runs<'a> = Vec<(u64, &'a [Round])>;

impl StrategyComparison {
    /// From the finished cells.
    pub fn of(spec: &ExperimentSpec, own: &ActiveSpec, cells: &[CellResult]) -> Self {
        Self {
            run: spec.name.clone(),
            oracle: spec.world.oracle.clone(),
            tau: spec.world.tau.get(),
            pool: own.pool,
            initial: own.initial,
            batch: own.batch,
            members: own.members,
            test_images: spec.test.images,
            groups: classifiers(spec, cells, true)
                .iter()
                .filter_map(|(group, finished)| Group::of(own, *group, finished))
                .collect(),
        }
    }
}

impl Group {
    /// None where no cell is finished.
    fn of(
        own: &ActiveSpec,
        (architecture, budget, labels): (Architecture, usize, Labels),
        cells: &[&CellResult],
    ) -> Option<Self> {
        let bayes_accuracy = cells.first()?.measured.bayes_accuracy;
        let length = own.rounds(budget).len();
        let runs = |strategy: Strategy| -> Runs<'_> {
            let of = |result: &&CellResult| own.strategies.get(result.cell.condition) == Some(&strategy);
            cells
                .iter()
                .copied()
                .filter(of)
                .filter_map(|result| Some((result.cell.seed, rounds(result, length)?)))
                .collect()
        };
        let random = runs(Strategy::Random);
        let curves =
            own.strategies.iter().filter_map(|&strategy| Curve::of(strategy, &runs(strategy), &random)).collect();
        let best = runs(Strategy::MaxEpistemic);
        let others = own.strategies.iter().filter(|strategy| **strategy != Strategy::MaxEpistemic);
        let pairs = others.filter_map(|&other| Pair::of(other, &best, &runs(other))).collect();
        let ahead: Vec<&[Round]> = runs(Strategy::LookAhead).into_iter().map(|(_, rounds)| rounds).collect();
        Some(Self { architecture, budget, labels, bayes_accuracy, curves, pairs, one_step: OneStep::of(&ahead) })
    }
}

/// A cell's rounds, where it has as many as it should.
fn rounds(result: &CellResult, length: usize) -> Option<&[Round]> {
    let bought: &Bought = result.output.as_ref()?.get()?;
    (bought.rounds.len() == length).then_some(&bought.rounds)
}

/// A figure of a round's classifier on the test images.
type OnTestImages = for<'a> fn(&'a Round) -> PairedFigure<'a>;

fn accuracy(round: &Round) -> PairedFigure<'_> {
    let blocks = round.blocks.as_ref().map(|blocks| &blocks.expected_accuracy);
    PairedFigure { value: round.measured.expected_accuracy.value, blocks, images: Some(round.measured.n) }
}

fn epistemic(round: &Round) -> PairedFigure<'_> {
    PairedFigure {
        value: round.measured.epistemic.value,
        blocks: round.blocks.as_ref().map(|blocks| &blocks.epistemic),
        images: None,
    }
}

/// A figure after all purchases less that at the start.
fn change(rounds: &[Round], of: OnTestImages) -> Option<Difference> {
    Some(of(rounds.last()?).less(of(rounds.first()?)))
}

/// Rounds of two strategies under the seeds that both have.
fn paired<'a>(one: &Runs<'a>, other: &Runs<'a>) -> Vec<(u64, &'a [Round], &'a [Round])> {
    let with = |&(seed, rounds): &(u64, &'a [Round])| {
        let (_, others) = other.iter().find(|(other, _)| *other == seed)?;
        Some((seed, rounds, *others))
    };
    one.iter().filter_map(with).collect()
}

impl Lead {
    fn of(pairs: &[(u64, &[Round], &[Round])], round: usize) -> Option<Self> {
        let difference = |of: OnTestImages| {
            let each = pairs.iter().map(|(_, one, other)| of(&one[round]).less(of(&other[round])));
            Spread::paired(&each.collect::<Vec<_>>())
        };
        Some(Self { accuracy: difference(accuracy)?, epistemic: difference(epistemic)? })
    }
}

impl Curve {
    fn of(strategy: Strategy, runs: &Runs<'_>, random: &Runs<'_>) -> Option<Self> {
        let pairs = if strategy == Strategy::Random { Vec::new() } else { paired(runs, random) };
        let length = runs.first()?.1.len();
        let stages: Option<Vec<Stage>> = (0..length).map(|round| Stage::of(runs, &pairs, round)).collect();
        let changes = |of: OnTestImages| -> Option<Vec<Difference>> {
            runs.iter().map(|(_, rounds)| change(rounds, of)).collect()
        };
        let fallen = |rounds: &[Round]| {
            let [first, last] = [rounds.first()?, rounds.last()?].map(|round| epistemic(round).value);
            (first > 0.0).then(|| 1.0 - last / first)
        };
        let shares: Option<Vec<f64>> = runs.iter().map(|(_, rounds)| fallen(rounds)).collect();
        let noise: Option<Vec<_>> = runs.iter().map(|(_, rounds)| noise_after_start(rounds)).collect();
        Some(Self {
            strategy,
            seeds: runs.iter().map(|(seed, _)| *seed).collect(),
            stages: stages?,
            gain: Spread::paired(&changes(accuracy)?)?,
            reduction: Spread::paired(&changes(epistemic)?)?.negated(),
            reduction_share: shares
                .and_then(|shares| Spread::of(&shares))
                .map(|share| share.within([f64::NEG_INFINITY, 1.0])),
            noise: noise.and_then(|noise| Spread::counted(&noise)),
            basket: Basket::of(runs.iter().map(|(_, rounds)| *rounds), runs.first()?.1.first()?.measured.classes),
        })
    }
}

/// Labels bought after the start that are not the Bayes decision, and all that were; `None` without any.
fn noise_after_start(rounds: &[Round]) -> Option<(usize, usize)> {
    let later = rounds.iter().skip(1).map(|round| noisy(&round.bought));
    let (noisy, labels) = later.fold((0, 0), |(noisy, labels), one| (noisy + one.0, labels + one.1));
    (labels > 0).then_some((noisy, labels))
}

/// Labels of a purchase that are not the Bayes decision, and all of it.
fn noisy(bought: &Purchase) -> (usize, usize) {
    let labels = bought.images.len();
    ((bought.noise * labels as f64).round() as usize, labels)
}

impl Stage {
    fn of(runs: &Runs<'_>, pairs: &[(u64, &[Round], &[Round])], round: usize) -> Option<Self> {
        let over = |of: &dyn Fn(&Round) -> Option<f64>| {
            let each: Option<Vec<f64>> = runs.iter().map(|(_, rounds)| of(rounds.get(round)?)).collect();
            Spread::of(&each?)
        };
        let measured = |of: fn(&Measured) -> Estimate, range| {
            let each = runs.iter().map(|(_, rounds)| Some(of(&rounds.get(round)?.measured)));
            Spread::measured(&each.collect::<Option<Vec<_>>>()?, range)
        };
        let bought = |of: fn(&Purchase) -> Option<f64>| over(&|round| of(&round.bought));
        let noise: Option<Vec<_>> = runs.iter().map(|(_, rounds)| Some(noisy(&rounds.get(round)?.bought))).collect();
        Some(Self {
            labels: runs.first()?.1.get(round)?.labels,
            accuracy: measured(|m| m.expected_accuracy, SHARE)?,
            epistemic: measured(|m| m.epistemic, NATS)?,
            lead: Lead::of(pairs, round),
            bought_aleatoric: bought(|bought| Some(bought.aleatoric))?.within([0.0, f64::INFINITY]),
            bought_epistemic: bought(|bought| bought.epistemic).map(|kl| kl.within([0.0, f64::INFINITY])),
            bought_entropy: bought(|bought| bought.entropy).map(|entropy| entropy.within([0.0, f64::INFINITY])),
            bought_noise: Spread::counted(&noise?)?,
        })
    }
}

impl Pair {
    fn of(against: Strategy, best: &Runs<'_>, other: &Runs<'_>) -> Option<Self> {
        let pairs = paired(best, other);
        let rounds = pairs.first()?.1;
        let gain = |rounds| change(rounds, accuracy);
        let gains: Option<Vec<_>> = pairs.iter().map(|(_, a, b)| Some((gain(a)?, gain(b)?))).collect();
        let (a, b): (Vec<Difference>, Vec<Difference>) = gains?.into_iter().unzip();
        let labels: Vec<f64> = rounds.iter().map(|round| round.labels as f64).collect();
        let curve = |rounds: &[Round]| rounds.iter().map(|round| accuracy(round).value).collect::<Vec<_>>();
        let (ours, theirs): (Vec<_>, Vec<_>) = pairs.iter().map(|(_, a, b)| (curve(a), curve(b))).unzip();
        let less = |seed: usize, [one, other]: [usize; 2]| {
            let (_, own, theirs) = pairs[seed];
            accuracy(&own[one]).less(accuracy(&theirs[other]))
        };
        Some(Self {
            against,
            seeds: pairs.iter().map(|(seed, ..)| *seed).collect(),
            gain_ratio: Stated::ratio(&a, &b),
            saving: Saving::of(&labels, &ours, &theirs, &less),
            lead: Lead::of(&pairs, rounds.len() - 1)?,
        })
    }
}

#[cfg(test)]
mod tests;
