//! Class hardness as commands and scripts are told it: at one τ, with the order of the classes at several.

use serde::Serialize;

use super::classes::GaussianClasses;
use super::compute::Spec;
use super::estimate::{Figure, Method};
use super::hardness::{ClassHardness, HardnessNews};
use super::labels::{PairErrors, one_vs_rest, pairwise, rank_classes};
use super::ranking::{Agreement, ClassRanking, RANKED_AT, RankingsOverTau};
use super::sampling::{Ended, Limits, Pool, SampledHardness, Standing, hardness_at};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::units::{ClassId, Tau};

/// How often x is drawn from the classes of the problems that are reported, in words: of two classes of other priors than ½
/// the figures of class and pair differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Weights {
    one_vs_rest: &'static str,
    pairwise: &'static str,
}

const WEIGHTS: Weights = Weights {
    one_vs_rest: "1/2 the class, 1/2 the others in proportion to their priors",
    pairwise: "the two classes in proportion to their priors",
};

/// The order of the classes at one τ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankingAt {
    /// Base temperature τ.
    pub tau: f64,
    /// The classes, hardest first.
    pub order: Vec<ClassId>,
    /// Of each class but the last: whether its interval lies wholly above that of the next.
    pub apart: Vec<bool>,
}

/// Class hardness at one τ, and the order of the classes at several.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HardnessReport {
    /// Base temperature τ.
    pub tau: f64,
    /// How often x is drawn from which class.
    pub weights: Weights,
    /// Every class that occurs, hardest first.
    pub one_vs_rest: Vec<ClassHardness>,
    /// Bayes error of class i against class j alone, [K][K]; 0 on the diagonal, none where neither occurs.
    pub pairwise: Vec<Vec<Option<f64>>>,
    /// Their 95 % intervals, [K][K]; none on the diagonal too. Empty where the errors are exact.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairwise_intervals: Vec<Vec<Option<(f64, f64)>>>,
    /// The ranking at each of [`RANKED_AT`].
    pub over_tau: Vec<RankingAt>,
    /// Whether the order is the same at all of them.
    pub agreement: Option<Agreement>,
    /// How it was sampled; none of Gaussian classes.
    #[serde(flatten)]
    pub sampling: Option<HardnessDraws>,
}

/// What the sampling of class hardness has come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HardnessDraws {
    /// [`Method::Sampling`].
    pub method: Method,
    /// Draws at τ.
    pub samples: usize,
    /// How many times the draws plain sampling needs, in the order of classes.
    pub gains: Vec<Option<f64>>,
    /// What ended the sampling at τ.
    pub ended: Ended,
}

impl RankingAt {
    fn new(ranking: &ClassRanking) -> Self {
        Self { tau: ranking.tau, order: ranking.order().collect(), apart: ranking.apart().collect() }
    }
}

/// Class hardness of Gaussian classes: one class against the rest and pairs at τ, and the ranking over τ. Each class is
/// reported at each τ.
///
/// # Errors
/// When τ or the tolerance cannot be used, with one or too many classes, or on a stop.
pub fn class_hardness(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<HardnessNews>,
) -> Result<HardnessReport> {
    let mut ranked = one_vs_rest(classes, tau, spec, events)?;
    ranked.sort_by(|a, b| b.one_vs_rest.value.total_cmp(&a.one_vs_rest.value));
    let mut drawing = |progress: Progress| events.emit(HardnessNews::Drawing(progress));
    let PairErrors { errors, intervals } = pairwise(classes, tau, spec, &mut drawing)?;
    let mut over = RankingsOverTau::default();
    for tau in RANKED_AT {
        over.add(rank_classes(classes, Tau::new(tau)?, spec, events)?);
    }
    let known = |row: &[f64]| row.iter().map(|&error| Some(error).filter(|error| !error.is_nan())).collect();
    let count = classes.classes();
    Ok(HardnessReport {
        tau: tau.get(),
        weights: WEIGHTS,
        one_vs_rest: ranked,
        pairwise: errors.chunks(count).map(known).collect(),
        pairwise_intervals: intervals.chunks(count).map(<[_]>::to_vec).collect(),
        over_tau: over.rankings.iter().map(RankingAt::new).collect(),
        agreement: over.agreement,
        sampling: None,
    })
}

/// The same of a world by draws of it. Each temperature has its part of the time that the limits allow.
///
/// # Errors
/// When τ is 0, fewer than two classes occur, a limit cannot be used, the source fails, or the caller stops.
pub fn class_hardness_by_sampling(
    pool: &mut Pool<'_>,
    tau: Tau,
    limits: &Limits,
    events: &mut dyn Events<Standing>,
) -> Result<HardnessReport> {
    let parts = (1 + RANKED_AT.len()) as f64;
    let within = |part: usize| Limits { seconds: limits.seconds.map(|all| all * part as f64 / parts), ..*limits };
    let found = hardness_at(pool, tau, &within(1), events)?;
    let mut over = RankingsOverTau::default();
    for (i, tau) in RANKED_AT.into_iter().enumerate() {
        over.add(hardness_at(pool, Tau::new(tau)?, &within(2 + i), events)?.ranking());
    }
    let intervals = |row: &Vec<Option<Figure>>| row.iter().map(|pair| pair.map(|figure| figure.interval)).collect();
    Ok(HardnessReport {
        tau: tau.get(),
        weights: WEIGHTS,
        one_vs_rest: found.ranking().classes,
        pairwise: errors_of_pairs(&found, pool.prior.probabilities()),
        pairwise_intervals: found.pairs.iter().map(intervals).collect(),
        over_tau: over.rankings.iter().map(RankingAt::new).collect(),
        agreement: over.agreement,
        sampling: Some(HardnessDraws {
            method: Method::Sampling,
            samples: found.samples,
            gains: found.gains,
            ended: found.ended,
        }),
    })
}

/// Errors of pairs as those of Gaussian classes are told: 0 on the diagonal and against a class that does not occur, none
/// where neither does.
fn errors_of_pairs(found: &SampledHardness, priors: &[f64]) -> Vec<Vec<Option<f64>>> {
    let value = |i: usize, j: usize| match found.pairs[i][j] {
        Some(figure) => Some(figure.value),
        None => (i == j || priors[i] + priors[j] > 0.0).then_some(0.0),
    };
    (0..priors.len()).map(|i| (0..priors.len()).map(|j| value(i, j)).collect()).collect()
}
