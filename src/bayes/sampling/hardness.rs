//! Class hardness (EBO 4.4) by draws: each class against the rest, and each pair, all from the same
//! draws.

use serde::{Deserialize, Serialize};

use super::figures::relative;
use super::limits::{Ended, Limits, Step};
use super::pool::Pool;
use super::snapshot::{Reading, Snapshot};
use super::source::Standing;
use crate::bayes::compute::positive;
use crate::bayes::estimate::Figure;
use crate::bayes::hardness::ClassHardness;
use crate::bayes::ranking::ClassRanking;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::parallel;
use crate::units::{ClassId, Tau};

/// Class hardness at one τ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledHardness {
    /// The temperature.
    pub tau: Tau,
    /// Of every class that occurs, in the order of classes.
    pub one_vs_rest: Vec<ClassHardness>,
    /// How many times the draws plain sampling needs for it, in the same order.
    pub gains: Vec<Option<f64>>,
    /// Bayes error of class i against j alone, [K][K]; none on the diagonal and of classes that do
    /// not occur.
    pub pairs: Vec<Vec<Option<Figure>>>,
    /// Draws.
    pub samples: usize,
    /// What ended the sampling.
    pub ended: Ended,
}

impl SampledHardness {
    /// What n draws say at τ.
    pub(super) fn of(snapshot: &Snapshot, pool: &Pool<'_>, tau: Tau, n: usize, ended: Ended) -> Self {
        let present = snapshot.present();
        // One class alone has no rest to be told from.
        let present = if present.len() < 2 { Vec::new() } else { present };
        let readings = readings(snapshot, &present);
        let one = |(&class, reading): (&ClassId, &Reading)| ClassHardness { class, one_vs_rest: reading.figure };
        Self {
            tau,
            one_vs_rest: present.iter().zip(&readings).map(one).collect(),
            gains: readings.iter().map(|reading| reading.gain).collect(),
            pairs: pairs(snapshot, &present, pool.prior.classes()),
            samples: n,
            ended,
        }
    }

    /// The classes, hardest first.
    pub fn ranking(&self) -> ClassRanking {
        let mut classes = self.one_vs_rest.clone();
        classes.sort_by(|a, b| b.one_vs_rest.value.total_cmp(&a.one_vs_rest.value));
        ClassRanking { tau: self.tau.get(), classes }
    }
}

/// Each class against the rest and against each other one, refined until the hardest class meets a
/// limit.
///
/// # Errors
/// When τ is 0, fewer than two classes occur, a limit cannot be used, the source fails, or the
/// caller stops.
pub fn hardness_at(
    pool: &mut Pool<'_>,
    tau: Tau,
    limits: &Limits,
    events: &mut dyn Events<Standing>,
) -> Result<SampledHardness> {
    limits.check()?;
    positive(tau)?;
    if pool.prior.probabilities().iter().filter(|p| **p > 0.0).count() < 2 {
        return Err(Error::input("class hardness needs two classes of positive prior"));
    }
    let mut n = limits.start();
    pool.plan(n, None);
    loop {
        let snapshot = Snapshot::of(pool, tau, n, events)?;
        let present = snapshot.present();
        if present.len() < 2 {
            return Err(Error::input("class hardness needs labels of two classes: the label noise leaves one"));
        }
        let readings = readings(&snapshot, &present);
        let hardest = readings.iter().max_by(|a, b| a.figure.value.total_cmp(&b.figure.value)).map(|r| r.figure);
        let step = Step {
            draws: n,
            relative: hardest.as_ref().map_or(0.0, relative),
            spent: pool.seconds(),
            per_draw: pool.per_image(),
            bytes: pool.bytes_per_draw(),
        };
        match limits.next(step) {
            Ok(next) => {
                pool.plan(next - n, hardest);
                n = next;
            }
            Err(ended) => return Ok(SampledHardness::of(&snapshot, pool, tau, n, ended)),
        }
    }
}

/// Each of these classes against the rest.
fn readings(snapshot: &Snapshot, present: &[ClassId]) -> Vec<Reading> {
    parallel::map(present.len(), |at| snapshot.against_rest(present[at]))
}

/// Every pair of classes that occur, [K][K], symmetric.
fn pairs(snapshot: &Snapshot, present: &[ClassId], classes: usize) -> Vec<Vec<Option<Figure>>> {
    let of = |at: usize| -> Vec<Figure> {
        present[at + 1..].iter().map(|&j| snapshot.pair(present[at], j).figure).collect()
    };
    let above = parallel::map(present.len(), of);
    let mut all = vec![vec![None; classes]; classes];
    for (at, row) in above.into_iter().enumerate() {
        for (&j, figure) in present[at + 1..].iter().zip(row) {
            let i = present[at];
            (all[i][j], all[j][i]) = (Some(figure), Some(figure));
        }
    }
    all
}
