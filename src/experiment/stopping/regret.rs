//! Rules of stopping, and what each gives away.

use serde::{Deserialize, Serialize};

use super::crossed::Crossed;
use super::{Stopped, StoppingSpec};
use crate::classifier::{Architecture, Labels};
use crate::experiment::bayes_gap::Who;
use crate::experiment::blocks::Difference;
use crate::experiment::cell::CellResult;
use crate::experiment::repeats::{NATS, Repeats, SeedGain, distinct, provenance, repeats};
use crate::experiment::spec::ExperimentSpec;
use crate::experiment::validated::{Seen, Validated};
use crate::units::Tau;

/// How an epoch is chosen among those that were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppingRule {
    /// The last: no label is asked.
    Last,
    /// The least −log q(label).
    Loss,
    /// The largest share of labels that is found.
    Accuracy,
    /// The least expected calibration error.
    Ece,
}

impl StoppingRule {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Last, Self::Loss, Self::Accuracy, Self::Ece];

    /// What it is called.
    pub fn label(self) -> &'static str {
        match self {
            Self::Last => "last epoch",
            Self::Loss => "validation loss",
            Self::Accuracy => "validation accuracy",
            Self::Ece => "validation ECE",
        }
    }

    /// The epoch that it chooses by n labels, of equals the first; none where there is no epoch.
    fn choose(self, epochs: &[Validated], n: usize) -> Option<&Validated> {
        let worth = |epoch: &Validated| {
            let seen = |of: fn(&Seen) -> f64| epoch.seen.iter().find(|seen| seen.n == n).map_or(f64::INFINITY, of);
            match self {
                Self::Last => -(epoch.epoch as f64),
                Self::Loss => seen(|seen| seen.loss),
                Self::Accuracy => seen(|seen| -seen.accuracy),
                Self::Ece => seen(|seen| seen.ece),
            }
        };
        epochs.iter().min_by(|a, b| worth(a).total_cmp(&worth(b)))
    }
}

/// What one rule chose under one seed, and what looks best on the test images: KL there is too low, for these images chose
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// The epoch.
    pub epoch: usize,
    /// KL there, nats.
    pub epistemic: f64,
    /// The epoch of least exact KL.
    pub best_epoch: usize,
    /// KL there, nats.
    pub best: f64,
}

impl Chosen {
    /// `None` where there is no epoch.
    pub fn of(rule: StoppingRule, epochs: &[Validated], n: usize) -> Option<Self> {
        let chosen = rule.choose(epochs, n)?;
        let best = epochs.iter().min_by(|a, b| a.epistemic.total_cmp(&b.epistemic))?;
        let (epoch, epistemic) = (chosen.epoch, chosen.epistemic);
        Some(Self { epoch, epistemic, best_epoch: best.epoch, best: best.epistemic })
    }
}

/// What a rule gives away, over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Regret {
    /// Base temperature.
    pub tau: Tau,
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub told: Labels,
    /// Training images N.
    pub train_size: usize,
    /// How the epoch is chosen.
    pub rule: StoppingRule,
    /// By so many labels; 0 where none is asked.
    pub n: usize,
    /// KL at the chosen epoch less KL at the best one, nats, measured on test images that did not choose the best one: it may
    /// be a little below 0, and is in expectation no more than the true regret. The upper end holds the most that the
    /// chosen epoch may give away to any that was looked at.
    pub regret: SeedGain,
    /// The same as a share of KL at the best one; absent where that is 0.
    pub relative: Option<SeedGain>,
    /// The chosen epoch.
    pub epoch: SeedGain,
    /// The one of least KL on all test images.
    pub best_epoch: SeedGain,
    /// KL at the best one, nats, on test images that did not choose it.
    pub best: SeedGain,
}

/// Exact KL in the course of the training, over seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KlCourse {
    /// Base temperature.
    pub tau: Tau,
    /// Network.
    pub architecture: Architecture,
    /// What it was told.
    pub told: Labels,
    /// Training images N.
    pub train_size: usize,
    /// Epoch and mean KL(p‖q), nats, its interval over seeds and test images.
    pub epochs: Vec<(usize, SeedGain)>,
}

/// What all rules give away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoppingRegrets {
    /// Where the numbers come from.
    pub provenance: Vec<(String, String)>,
    /// The networks of the plan.
    pub architectures: Vec<Architecture>,
    /// Every rule at every n, in the order of the plan.
    pub regrets: Vec<Regret>,
    /// KL over epochs, likewise.
    pub courses: Vec<KlCourse>,
}

impl StoppingRegrets {
    /// From the finished cells.
    pub fn of(spec: &ExperimentSpec, own: &StoppingSpec, cells: &[CellResult]) -> Self {
        let groups = repeats(cells);
        let asked = |rule: StoppingRule| if rule == StoppingRule::Last { vec![0] } else { own.labels.clone() };
        let of = |group: &Repeats<'_>| {
            let tau = own.taus.get(group.cell.condition).copied();
            let each = StoppingRule::ALL.into_iter().flat_map(|rule| asked(rule).into_iter().map(move |n| (rule, n)));
            each.filter_map(|(rule, n)| Regret::of(group, tau?, rule, n)).collect::<Vec<_>>()
        };
        let course = |group: &Repeats<'_>| KlCourse::of(group, *own.taus.get(group.cell.condition)?);
        Self {
            provenance: provenance(spec, cells.len()),
            architectures: spec.grid.architectures.clone(),
            regrets: groups.iter().flat_map(of).collect(),
            courses: groups.iter().filter_map(course).collect(),
        }
    }
}

/// What the cells of a group found, a seed each.
fn found<'a>(group: &Repeats<'a>) -> Vec<&'a [Validated]> {
    let of = |result: &&'a CellResult| Some(&result.output.as_ref()?.get::<Stopped>()?.epochs[..]);
    group.results.iter().filter_map(of).collect()
}

impl Regret {
    fn of(group: &Repeats<'_>, tau: Tau, rule: StoppingRule, n: usize) -> Option<Self> {
        let seeds = found(group);
        let chosen: Vec<Chosen> = seeds.iter().filter_map(|epochs| Chosen::of(rule, epochs, n)).collect();
        let crossed = seeds.iter().filter_map(|epochs| Crossed::of(epochs, rule.choose(epochs, n)?));
        let crossed: Vec<Crossed> = crossed.collect();
        let last = seeds.iter().filter_map(|epochs| epochs.last()).map(|one| one.epoch).max()?;
        let epoch = |of: fn(&Chosen) -> usize| {
            let each: Vec<f64> = chosen.iter().map(|one| of(one) as f64).collect();
            SeedGain::of(&each).map(|epoch| epoch.cut([1.0, last as f64]))
        };
        let mean = |of: fn(&Crossed) -> f64| crossed.iter().map(of).sum::<f64>() / crossed.len().max(1) as f64;
        let differences = |of: fn(&Crossed) -> Option<Difference>| crossed.iter().map(of).collect::<Option<Vec<_>>>();
        let above_share = mean(|one| one.above / one.best.value);
        Some(Self {
            tau,
            architecture: group.cell.architecture,
            told: group.cell.labels,
            train_size: group.cell.train_size,
            rule,
            n,
            regret: SeedGain::paired_up_to(&differences(|one| Some(one.regret.clone()))?, mean(|one| one.above))?,
            relative: differences(|one| one.relative.clone())
                .and_then(|shares| SeedGain::paired_up_to(&shares, above_share)),
            epoch: epoch(|one| one.epoch)?,
            best_epoch: epoch(|one| one.best_epoch)?,
            best: SeedGain::paired(&differences(|one| Some(one.best.clone()))?)?.cut(NATS),
        })
    }

    /// Whose it is.
    pub(super) fn who(&self) -> Who {
        Who { architecture: self.architecture, labels: self.told }
    }
}

impl KlCourse {
    fn of(group: &Repeats<'_>, tau: Tau) -> Option<Self> {
        let seeds = found(group);
        let epochs = distinct(seeds.iter().flat_map(|epochs| epochs.iter().map(|one| one.epoch)));
        let at = |epoch: usize| {
            let there = seeds.iter().flat_map(|epochs| epochs.iter().filter(move |one| one.epoch == epoch));
            let kl: Vec<Difference> = there.map(|one| Difference::to_nothing(one.kl())).collect();
            Some((epoch, SeedGain::paired(&kl)?.cut(NATS)))
        };
        let epochs: Vec<(usize, SeedGain)> = epochs.into_iter().filter_map(at).collect();
        let (architecture, told, train_size) = (group.cell.architecture, group.cell.labels, group.cell.train_size);
        (!epochs.is_empty()).then_some(Self { tau, architecture, told, train_size, epochs })
    }

    /// Whose it is.
    pub(super) fn who(&self) -> Who {
        Who { architecture: self.architecture, labels: self.told }
    }
}
