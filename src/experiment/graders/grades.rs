//! What the estimators are worth: beside the Bayes error of the world, over all cells.

use serde::{Deserialize, Serialize};

use super::features::Features;
use super::spec::{FROM_SAMPLES, GradersSpec, Grading};
use crate::bayes::Figure as BayesError;
use crate::classifier::{Architecture, Labels};
use crate::experiment::bayes_reference::Truth;
use crate::experiment::cell::{Cell, CellResult};
use crate::experiment::feature_file::FeatureFile;
use crate::experiment::output::Findings;
use crate::experiment::repeats::{SHARE, SeedGain, SeedMean, distinct};
use crate::experiment::spec::ExperimentSpec;
use crate::figure::{Figure, Table};
use crate::measure::grade::{Estimator, Graded};
use crate::measure::uncertainty::{Score, Scored};
use crate::measure::{Estimate, Interval, Point, compare};
use crate::units::Seed;

/// Which classifiers of a grid are asked: those of one network that are told the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Network.
    pub architecture: Architecture,
    /// What it is told of its training images.
    pub labels: Labels,
}

impl Asked {
    /// In words; drawn labels go without saying.
    pub fn label(self) -> String {
        let network = self.architecture.label();
        if self.labels == Labels::Drawn { network.into() } else { format!("{network}, {}", self.labels.label()) }
    }

    fn is(self, cell: &Cell) -> bool {
        (cell.architecture, cell.labels) == (self.architecture, self.labels)
    }

    /// All of a grid.
    fn of(spec: &ExperimentSpec) -> Vec<Self> {
        let of =
            |&architecture: &Architecture| spec.grid.labels.iter().map(move |&labels| Self { architecture, labels });
        spec.grid.architectures.iter().flat_map(of).collect()
    }
}

/// What estimators are worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grades {
    /// Estimators of the Bayes error, for every τ and N; a classifier's belief for every classifier
    /// too.
    pub estimators: Vec<Marked>,
    /// Scores of uncertainty, for every temperature, N, network and kind of labels.
    pub scores: Vec<Rated>,
    /// The files of features that estimators saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FeatureFile>,
}

/// An estimator at one temperature and N, over seeds. Errors are fractions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marked {
    /// Who.
    pub estimator: Estimator,
    /// What it saw.
    #[serde(default, skip_serializing_if = "Features::is_pixels")]
    pub features: Features,
    /// Whose belief or features; absent for a single classifier, and where none is involved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Base temperature.
    pub tau: f64,
    /// Samples it saw.
    pub n: usize,
    /// The Bayes error of the world with its 95 % interval.
    pub truth: BayesError,
    /// What it says; interval over seeds and, where it is formed on the test images, over these.
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

/// A score of uncertainty at one temperature and N, likewise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rated {
    /// Which.
    pub score: Score,
    /// Whether it is the ensemble's, not the first member's.
    pub ensemble: bool,
    /// Whose; absent where the grid has one network told one thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Base temperature.
    pub tau: f64,
    /// Training images.
    pub n: usize,
    /// Spearman's correlation with the true H(p).
    pub aleatoric: Option<SeedMean>,
    /// Spearman's correlation with the true KL(p‖q).
    pub epistemic: Option<SeedMean>,
    /// Area under the ROC curve for finding the images of largest KL.
    pub auroc: Option<SeedMean>,
    /// Mean error as an estimate of what it is said to be, nats.
    pub signed_error: Option<SeedMean>,
}

impl Grades {
    /// From the finished cells and the Bayes errors of their worlds.
    pub fn of(spec: &ExperimentSpec, own: &GradersSpec, cells: &[CellResult], truths: &[Option<Truth>]) -> Self {
        let (mut estimators, mut scores) = (Vec::new(), Vec::new());
        let all = Asked::of(spec);
        let mut sizes = spec.grid.train_sizes.clone();
        sizes.sort_unstable();
        for (condition, tau) in own.taus.iter().enumerate() {
            let Some(truth) = truths.get(condition).and_then(Option::as_ref) else { continue };
            let (tau, truth) = (tau.get(), truth.bayes_error);
            for &n in &sizes {
                let here = |result: &&CellResult| result.cell.condition == condition && result.cell.train_size == n;
                let here: Vec<&CellResult> = cells.iter().filter(here).collect();
                let place = Place { asked: None, tau, n };
                let alone = once_a_seed(&here);
                let without = Estimator::ALL.into_iter().filter(|one| *one != BELIEF);
                estimators.extend(without.filter_map(|one| Marked::of(one, &Features::Pixels, place, truth, &alone)));
                for given in own.features.iter().filter(|one| one.file().is_some()) {
                    let seen = |one| Marked::of(one, given, place, truth, &alone);
                    estimators.extend(FROM_SAMPLES.into_iter().filter_map(seen));
                }
                for &asked in &all {
                    let of = here.iter().filter(|result| asked.is(&result.cell));
                    let found: Vec<&Grading> = of.filter_map(|result| grading(result)).collect();
                    let place = Place { asked: (all.len() > 1).then_some(asked), ..place };
                    estimators.extend(Marked::of(BELIEF, &Features::Pixels, place, truth, &found));
                    let seen = |one| Marked::of(one, &Features::Trained, place, truth, &found);
                    estimators.extend(FROM_SAMPLES.into_iter().filter_map(seen));
                    scores.extend(rated(place, &found));
                }
            }
            for &asked in &all {
                let here = cells.iter().filter(|result| result.cell.condition == condition && asked.is(&result.cell));
                let place = Place { asked: (all.len() > 1).then_some(asked), tau, n: 0 };
                estimators.extend(Marked::of_curve(place, truth, here));
            }
        }
        estimators.sort_by(|a, b| a.tau.total_cmp(&b.tau).then(a.n.cmp(&b.n)));
        scores.sort_by(|a, b| a.tau.total_cmp(&b.tau).then(a.n.cmp(&b.n)));
        let files = cells.iter().find_map(grading).map_or_else(Vec::new, |grading| grading.files.clone());
        Self { estimators, scores, files }
    }
}

impl Grades {
    /// The most that the Bayes error of what an estimator saw can be, by neighbours that are told exact
    /// posteriors; the least is that of the world.
    pub(super) fn at_most(&self, marked: &Marked) -> Option<SeedMean> {
        let place = |one: &Marked| (one.tau.to_bits(), one.n, one.asked);
        let told = |one: &&Marked| one.estimator == Estimator::Told && one.features == marked.features;
        let mut told = self.estimators.iter().filter(told);
        let found = told.find(|one| place(one) == place(marked))?;
        FROM_SAMPLES.contains(&marked.estimator).then_some(found.estimate)
    }
}

impl Findings for Grades {
    fn figures(&self) -> Vec<Figure> {
        super::figures::figures(self)
    }

    fn tables(&self) -> Vec<Table> {
        super::figures::tables(self)
    }
}

/// The one estimator formed on a classifier's belief. The others see images and labels, which seed,
/// τ and N decide.
const BELIEF: Estimator = Estimator::PlugIn;

/// Range of a rank correlation.
const CORRELATION: [f64; 2] = [-1.0, 1.0];

/// Where and of whom something is graded.
#[derive(Clone, Copy)]
struct Place {
    asked: Option<Asked>,
    tau: f64,
    n: usize,
}

/// What was found under each seed, once: what sees no classifier says the same beside all of them.
fn once_a_seed<'a>(cells: &[&'a CellResult]) -> Vec<&'a Grading> {
    let first = |(i, result): (usize, &&'a CellResult)| {
        let before = cells[..i].iter().any(|other| other.cell.seed == result.cell.seed);
        (!before).then(|| grading(result))?
    };
    cells.iter().enumerate().filter_map(first).collect()
}

fn grading(result: &CellResult) -> Option<&Grading> {
    result.output.as_ref()?.get()
}

impl Marked {
    /// What it saw, and whose it is.
    pub(super) fn whose(&self) -> (&Features, Option<Asked>) {
        (&self.features, self.asked)
    }

    /// The floor of a learning curve; its interval is over seeds, sizes and the test images.
    fn of_curve<'a>(place: Place, truth: BayesError, cells: impl Iterator<Item = &'a CellResult>) -> Option<Self> {
        let (floor, seeds, n) = floor(cells)?;
        let Estimate { value, interval: over_images } = floor;
        // The law of a single seed knows nothing of what its runs have in common.
        let interval = (seeds > 1).then_some(over_images);
        let estimate = SeedMean { value, seeds, over_images, over_seeds: None, interval };
        let (features, Place { asked, tau, .. }) = (Features::Pixels, place);
        let (estimator, lower, upper, bounded, enclosed) = (Estimator::LearningCurve, None, None, 0, 0);
        Some(Self { estimator, features, asked, tau, n, truth, estimate, lower, upper, bounded, enclosed })
    }

    fn of(
        estimator: Estimator,
        features: &Features,
        place: Place,
        truth: BayesError,
        found: &[&Grading],
    ) -> Option<Self> {
        let Place { asked, tau, n } = place;
        let all = found.iter().flat_map(|grading| &grading.estimates);
        let all = all.filter(|one| (one.estimator, &one.features) == (estimator, features));
        let made: Vec<&Graded> = all.filter_map(|one| one.graded.as_ref()).collect();
        let over = |part: fn(&Graded) -> Option<f64>| {
            let bounds = SeedGain::of(&made.iter().filter_map(|graded| part(graded)).collect::<Vec<_>>());
            bounds.map(|bound| bound.cut(SHARE))
        };
        let both = made.iter().filter_map(|graded| Some((graded.lower?, graded.upper?)));
        let (bounded, enclosed) = both.fold((0, 0), |(all, held), (low, high)| {
            (all + 1, held + usize::from((low..=high).contains(&truth.value)))
        });
        let point = |at: f64| Interval { low: at, high: at };
        // What is told the posteriors of images that every seed draws anew differs between seeds already.
        let shared = estimator != Estimator::Told || *features == Features::Trained;
        let figure = |graded: &&Graded| {
            let value = graded.estimate;
            Estimate { value, interval: graded.interval.filter(|_| shared).unwrap_or_else(|| point(value)) }
        };
        let estimate = SeedMean::of(&made.iter().map(figure).collect::<Vec<_>>(), SHARE)?;
        let (lower, upper) = (over(|graded| graded.lower), over(|graded| graded.upper));
        let features = features.clone();
        Some(Self { estimator, features, asked, tau, n, truth, estimate, lower, upper, bounded, enclosed })
    }
}

/// The floor of the test error of a network's cells over N, E of E + a·N^(−α): the estimate of who sees drawn labels
/// and learning curves alone. `None` below four different N, and where there is no law.
fn floor<'a>(cells: impl Iterator<Item = &'a CellResult>) -> Option<(Estimate, usize, usize)> {
    let point = |result: &CellResult| {
        let Estimate { value, interval } = result.measured.error;
        Point { n: result.cell.train_size as f64, seed: result.cell.seed, value, error: interval.log_error(value) }
    };
    let cells: Vec<&CellResult> = cells.collect();
    let points: Vec<Point> = cells.iter().map(|result| point(result)).collect();
    let fits = compare(&points, None, Seed(0).split("learning curves")).ok()?;
    let seeds = distinct(cells.iter().map(|result| result.cell.seed)).len();
    let most = cells.iter().map(|result| result.cell.train_size).max()?;
    Some((fits.floor?.floor?, seeds, most))
}

/// Every score, in the order in which cells have them: those of one classifier first.
fn rated(Place { asked, tau, n }: Place, found: &[&Grading]) -> Vec<Rated> {
    let Some(first) = found.first() else { return Vec::new() };
    let one = |i: usize| {
        let of: Vec<&Scored> = found.iter().filter_map(|grading| grading.scores.get(i)).collect();
        let over = |part: fn(&Scored) -> Option<Estimate>, range| {
            SeedMean::of(&of.iter().filter_map(|scored| part(scored)).collect::<Vec<_>>(), range)
        };
        Rated {
            score: first.scores[i].score,
            ensemble: i >= Grading::SINGLE,
            asked,
            tau,
            n,
            aleatoric: over(|scored| scored.aleatoric.spearman, CORRELATION),
            epistemic: over(|scored| scored.epistemic.spearman, CORRELATION),
            auroc: over(|scored| scored.auroc, SHARE),
            signed_error: over(|scored| scored.signed_error, [f64::NEG_INFINITY, f64::INFINITY]),
        }
    };
    (0..first.scores.len()).map(one).collect()
}

#[cfg(test)]
mod tests;
