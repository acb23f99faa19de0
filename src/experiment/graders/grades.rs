//! What the estimators are worth: beside the Bayes error of the world, over all cells.

use serde::{Deserialize, Serialize};

use super::super::cell::CellResult;
use super::super::kinds::Found;
use super::super::repeats::{SHARE, SeedGain, SeedMean};
use super::super::spec::ExperimentSpec;
use super::super::truth::Truth;
use super::{GradersSpec, Grading};
use crate::bayes::Figure as BayesError;
use crate::figure::{Figure, Table};
use crate::measure::grade::{Estimator, Graded};
use crate::measure::uncertainty::{Score, Scored};
use crate::measure::{Estimate, Interval};

/// What estimators are worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grades {
    /// Estimators of the Bayes error, for every temperature and N.
    pub estimators: Vec<Marked>,
    /// Scores of uncertainty, likewise.
    pub scores: Vec<Rated>,
}

/// An estimator at one temperature and N. Errors are fractions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marked {
    /// Who.
    pub estimator: Estimator,
    /// Base temperature.
    pub tau: f64,
    /// Samples it saw.
    pub n: usize,
    /// The Bayes error of the world with its 95 % interval.
    pub truth: BayesError,
    /// What it says; the interval is over seeds and, where it is formed on the test images, over these.
    pub estimate: SeedMean,
    /// Its lower bound, where it has one.
    pub lower: Option<SeedGain>,
    /// Its upper bound.
    pub upper: Option<SeedGain>,
    /// Of so many draws with both bounds …
    pub bounded: usize,
    /// … so many held the truth between them.
    pub enclosed: usize,
}

/// A score of uncertainty at one temperature and N.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rated {
    /// Which.
    pub score: Score,
    /// Whether it is the ensemble's, not the first member's.
    pub ensemble: bool,
    /// Base temperature.
    pub tau: f64,
    /// Training images.
    pub n: usize,
    /// Spearman's correlation with the true H(p).
    pub aleatoric: Option<SeedGain>,
    /// Spearman's correlation with the true KL(p‖q).
    pub epistemic: Option<SeedGain>,
    /// Area under the ROC curve for finding the images of largest KL.
    pub auroc: Option<SeedGain>,
    /// Mean error as an estimate of what it is said to be, nats.
    pub signed_error: Option<SeedGain>,
}

impl Grades {
    /// From the finished cells and the Bayes errors of their worlds.
    pub fn of(spec: &ExperimentSpec, own: &GradersSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Self {
        let (mut estimators, mut scores) = (Vec::new(), Vec::new());
        let mut sizes = spec.grid.train_sizes.clone();
        sizes.sort_unstable();
        for (condition, tau) in own.taus.iter().enumerate() {
            let Some(truth) = truths.get(condition).and_then(Option::as_ref) else { continue };
            let (tau, truth) = (tau.get(), truth.bayes_error);
            for &n in &sizes {
                let here = |result: &&CellResult| result.cell.condition == condition && result.cell.train_size == n;
                let found: Vec<&Grading> = cells.iter().filter(here).filter_map(grading).collect();
                estimators.extend(Estimator::ALL.iter().filter_map(|&one| Marked::of(one, tau, n, truth, &found)));
                scores.extend(rated(tau, n, &found));
            }
        }
        estimators.sort_by(|a, b| a.tau.total_cmp(&b.tau).then(a.n.cmp(&b.n)));
        scores.sort_by(|a, b| a.tau.total_cmp(&b.tau).then(a.n.cmp(&b.n)));
        Self { estimators, scores }
    }

    /// Its figures.
    pub fn figures(&self) -> Vec<Figure> {
        super::drawn::figures(self)
    }

    /// Its tables.
    pub fn tables(&self) -> Vec<Table> {
        super::drawn::tables(self)
    }
}

fn grading(result: &CellResult) -> Option<&Grading> {
    match &result.found {
        Some(Found::Graders(grading)) => Some(grading.as_ref()),
        _ => None,
    }
}

impl Marked {
    fn of(estimator: Estimator, tau: f64, n: usize, truth: BayesError, found: &[&Grading]) -> Option<Self> {
        let all = found.iter().flat_map(|grading| &grading.estimates).filter(|one| one.estimator == estimator);
        let made: Vec<&Graded> = all.filter_map(|one| one.graded.as_ref()).collect();
        let over = |part: fn(&Graded) -> Option<f64>| {
            SeedGain::of(&made.iter().filter_map(|graded| part(graded)).collect::<Vec<_>>())
        };
        let both = made.iter().filter_map(|graded| Some((graded.lower?, graded.upper?)));
        let (bounded, enclosed) = both.fold((0, 0), |(all, held), (low, high)| {
            (all + 1, held + usize::from((low..=high).contains(&truth.value)))
        });
        let point = |at: f64| Interval { low: at, high: at };
        let figure = |graded: &&Graded| {
            let value = graded.estimate;
            Estimate { value, interval: graded.interval.unwrap_or_else(|| point(value)) }
        };
        let estimate = SeedMean::of(&made.iter().map(figure).collect::<Vec<_>>(), SHARE)?;
        let (lower, upper) = (over(|graded| graded.lower), over(|graded| graded.upper));
        Some(Self { estimator, tau, n, truth, estimate, lower, upper, bounded, enclosed })
    }
}

/// Every score, in the order in which cells have them: those of one classifier first.
fn rated(tau: f64, n: usize, found: &[&Grading]) -> Vec<Rated> {
    let Some(first) = found.first() else { return Vec::new() };
    let one = |i: usize| {
        let of: Vec<&Scored> = found.iter().filter_map(|grading| grading.scores.get(i)).collect();
        let over = |part: fn(&Scored) -> Option<f64>| {
            SeedGain::of(&of.iter().filter_map(|scored| part(scored)).collect::<Vec<_>>())
        };
        Rated {
            score: first.scores[i].score,
            ensemble: i >= Grading::SINGLE,
            tau,
            n,
            aleatoric: over(|scored| Some(scored.aleatoric.spearman?.value)),
            epistemic: over(|scored| Some(scored.epistemic.spearman?.value)),
            auroc: over(|scored| Some(scored.auroc?.value)),
            signed_error: over(|scored| Some(scored.signed_error?.value)),
        }
    };
    (0..first.scores.len()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::Badge;
    use crate::experiment::{Cell, PRESETS};
    use crate::measure::{Bootstrap, measure};
    use crate::units::Seed;

    fn cell(spec: &ExperimentSpec, seed: u64, condition: usize, estimate: f64) -> CellResult {
        let cell = Cell { seed, condition, ..spec.cells()[0] };
        let measured = measure(&[0.7, 0.3, 0.4, 0.6], &[0.5f64.ln(); 4], &[0, 1], 2, &Bootstrap::new(Seed(0))).unwrap();
        let graded = Graded {
            estimator: Estimator::OneNn,
            estimate,
            interval: None,
            lower: Some(estimate / 2.0),
            upper: Some(estimate),
            n: cell.train_size,
            chosen: None,
        };
        let one = super::super::Estimated { estimator: Estimator::OneNn, graded: Some(graded), why_not: None };
        let found = Grading { estimates: vec![one], scores: Vec::new(), ensemble: measured.clone() };
        let found = Some(Found::Graders(Box::new(found)));
        CellResult { id: String::new(), cell, parameters: 1, steps: 1, train_loss: 0.1, measured, found }
    }

    #[test]
    fn estimates_are_held_against_the_truth_of_their_own_world() {
        let preset = PRESETS.iter().find(|preset| preset.name == "graders-quick").unwrap();
        let spec = preset.spec().unwrap();
        let crate::experiment::Experiment::Graders(own) = &spec.experiment else { panic!("another kind") };
        let truth = |condition: usize, value: f64| {
            let bayes_error = BayesError::new(value, 0.0, 1.0);
            Some(Truth { tau: own.taus[condition], bayes_error, badge: Badge::Exact, how: "known".into() })
        };
        let mut truths = vec![None; own.taus.len()];
        (truths[0], truths[1]) = (truth(0, 0.10), truth(1, 0.30));
        // At the first world 0.12 and 0.16 lie above, and 0.16/2 … 0.16 holds the truth as 0.12/2 … 0.12 does; at the second 0.2 does not.
        let cells = [cell(&spec, 0, 0, 0.12), cell(&spec, 1, 0, 0.16), cell(&spec, 0, 1, 0.2)];
        let grades = Grades::of(&spec, own, &cells, &truths);
        let [easy, hard] = &grades.estimators[..] else { panic!("{:?}", grades.estimators) };
        assert!((easy.estimate.value - 0.14).abs() < 1e-15 && easy.estimate.interval.is_some());
        assert_eq!((easy.bounded, easy.enclosed, hard.bounded, hard.enclosed), (2, 2, 1, 0));
        assert_eq!((hard.truth.value, hard.estimate.interval), (0.30, None));
        let figures = grades.figures();
        assert!(figures.iter().any(|figure| figure.id == "graders-bounds"));
        assert!(grades.tables().iter().all(|table| table.rows.iter().all(|row| row.len() == table.columns.len())));
        // Nothing is finished, or the truth is not known: nothing is said, and nothing fails.
        let nothing = Grades::of(&spec, own, &[], &truths);
        assert!(nothing.figures().is_empty() && nothing.estimators.is_empty());
        assert!(Grades::of(&spec, own, &cells, &[]).estimators.is_empty());
    }
}
