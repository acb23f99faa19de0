//! Rules of stopping, and what each gives away.

use serde::{Deserialize, Serialize};

use super::{Stopped, StoppingSpec};
use crate::classifier::{Architecture, Labels};
use crate::experiment::bayes_gap::Who;
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

    /// The chosen epoch and the one of least exact KL.
    fn beside_best(self, epochs: &[Validated], n: usize) -> Option<(&Validated, &Validated)> {
        Some((self.choose(epochs, n)?, epochs.iter().min_by(|a, b| a.epistemic.total_cmp(&b.epistemic))?))
    }
}

/// What one rule chose under one seed.
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
        let (chosen, best) = rule.beside_best(epochs, n)?;
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
    /// KL at the chosen epoch less KL at the best one, nats, ≥ 0.
    pub regret: SeedGain,
    /// The same as a share of KL at the best one; absent where that is 0.
    pub relative: Option<SeedGain>,
    /// The chosen epoch.
    pub epoch: SeedGain,
    /// The best one.
    pub best_epoch: SeedGain,
    /// KL there, nats.
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
    /// Epoch and mean KL(p‖q), nats.
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
        let chosen: Vec<Chosen> = found(group).into_iter().filter_map(|epochs| Chosen::of(rule, epochs, n)).collect();
        let each = |of: fn(&Chosen) -> f64| SeedGain::of(&chosen.iter().map(of).collect::<Vec<f64>>());
        let apart = chosen.iter().all(|one| one.best > 0.0);
        let pairs = found(group).into_iter().filter_map(|epochs| rule.beside_best(epochs, n));
        let regrets = pairs.map(|(chosen, best)| chosen.kl().less(best.kl()));
        Some(Self {
            tau,
            architecture: group.cell.architecture,
            told: group.cell.labels,
            train_size: group.cell.train_size,
            rule,
            n,
            regret: SeedGain::paired(&regrets.collect::<Vec<_>>())?.cut(NATS),
            relative: each(|one| one.epistemic / one.best - 1.0).filter(|_| apart).map(|one| one.cut(NATS)),
            epoch: each(|one| one.epoch as f64)?,
            best_epoch: each(|one| one.best_epoch as f64)?,
            best: each(|one| one.best)?.cut(NATS),
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
            Some((epoch, SeedGain::of(&there.map(|one| one.epistemic).collect::<Vec<_>>())?.cut(NATS)))
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
