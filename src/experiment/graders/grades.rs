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
use crate::experiment::repeats::{SHARE, SeedGain, SeedMean};
use crate::experiment::spec::ExperimentSpec;
use crate::figure::{Figure, Table};
use crate::measure::grade::{Estimator, Graded};
use crate::measure::uncertainty::{Score, Scored};
use crate::measure::{Estimate, Interval};

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
        }
        estimators.sort_by(|a, b| a.tau.total_cmp(&b.tau).then(a.n.cmp(&b.n)));
        scores.sort_by(|a, b| a.tau.total_cmp(&b.tau).then(a.n.cmp(&b.n)));
        let files = cells.iter().find_map(grading).map_or_else(Vec::new, |grading| grading.files.clone());
        Self { estimators, scores, files }
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
        let features = features.clone();
        Some(Self { estimator, features, asked, tau, n, truth, estimate, lower, upper, bounded, enclosed })
    }
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
mod tests {
    use super::*;
    use crate::bayes::Badge;
    use crate::experiment::Cell;
    use crate::experiment::hand_made::{preset, result, whole};
    use crate::experiment::output::{Analysis, CellOutput};
    use crate::measure::uncertainty::Agreement;
    use crate::measure::{Bootstrap, measure};
    use crate::units::Seed;

    fn cell(spec: &ExperimentSpec, seed: u64, condition: usize, estimate: f64) -> CellResult {
        let cell = Cell { seed, condition, ..spec.cells()[0] };
        let measured = measure(&[0.7, 0.3, 0.4, 0.6], &[0.5f64.ln(); 4], &[0, 1], 2, &Bootstrap::new(Seed(0))).unwrap();
        let one = estimated(Estimator::OneNn, estimate, cell);
        let found = Grading { estimates: vec![one], scores: Vec::new(), files: Vec::new(), ensemble: measured.clone() };
        let output = Some(CellOutput::new(found));
        CellResult { output, ..result(cell, measured) }
    }

    fn estimated(estimator: Estimator, estimate: f64, cell: Cell) -> super::super::spec::Estimated {
        let bounded = estimator != BELIEF;
        let graded = Graded {
            estimator,
            estimate,
            interval: None,
            lower: bounded.then_some(estimate / 2.0),
            upper: bounded.then_some(estimate),
            n: cell.train_size,
            chosen: None,
        };
        super::super::spec::Estimated { estimator, features: Features::Pixels, graded: Some(graded), why_not: None }
    }

    #[test]
    fn networks_and_kinds_of_labels_are_no_repeats() {
        let mut spec = preset("graders-quick");
        spec.grid.architectures = vec![Architecture::Linear, Architecture::Mlp500];
        spec.grid.labels = vec![Labels::Drawn, Labels::Posterior];
        let own: &GradersSpec = spec.experiment.get().unwrap();
        let n = spec.grid.train_sizes[0];
        let place = |cell: &Cell| cell.condition == 0 && cell.train_size == n && cell.seed < 2;
        // Estimators on images say 0.2 and 0.3 under seeds 0 and 1; beliefs differ by 0.01, by 0.1
        // between seeds.
        let belief = |cell: &Cell| {
            let at = Asked::of(&spec).iter().position(|asked| asked.is(cell)).unwrap();
            0.01 * at as f64 + 0.1 * cell.seed as f64
        };
        let result = |at: Cell| {
            let result = cell(&spec, at.seed, 0, 0.0);
            let estimates = [(Estimator::OneNn, 0.2 + 0.1 * at.seed as f64), (BELIEF, belief(&at))];
            let estimates = estimates.map(|(estimator, value)| estimated(estimator, value, at)).into();
            let scores = vec![scored(belief(&at))];
            let grading = Grading { estimates, scores, ..grading(&result).unwrap().clone() };
            CellResult { cell: at, output: Some(CellOutput::new(grading)), ..result }
        };
        let cells: Vec<CellResult> = spec.cells().into_iter().filter(place).map(result).collect();
        assert_eq!(cells.len(), 8);
        let bayes_error = BayesError::new(0.25, 0.0, 1.0);
        let truth = Truth { tau: own.taus[0], bayes_error, badge: Badge::Exact, how: "known".into() };
        let grades = Grades::of(&spec, own, &cells, &[Some(truth)]);
        let [neighbours, beliefs @ ..] = &grades.estimators[..] else { panic!("{grades:?}") };
        assert_eq!(
            (neighbours.estimate.seeds, neighbours.bounded, neighbours.enclosed, neighbours.asked),
            (2, 2, 1, None)
        );
        assert!((neighbours.estimate.value - 0.25).abs() < 1e-15);
        // Of two values 0.1 apart: t of one degree times half of that.
        let half = neighbours.estimate.over_seeds.unwrap().high - 0.25;
        assert!((half - 12.706_204_736 * 0.05).abs() < 1e-6, "{half}");
        let asked = Asked::of(&spec);
        assert_eq!(beliefs.iter().map(|one| one.asked.unwrap()).collect::<Vec<_>>(), asked);
        for (i, (belief, score)) in beliefs.iter().zip(&grades.scores).enumerate() {
            let mean = 0.05 + 0.01 * i as f64;
            assert!((belief.estimate.value - mean).abs() < 1e-15 && belief.estimate.seeds == 2, "{belief:?}");
            let found = score.auroc.unwrap();
            assert!(
                (found.value - mean).abs() < 1e-15 && found.seeds == 2 && score.asked == Some(asked[i]),
                "{score:?}"
            );
            // The test images are the same under every seed: their uncertainty stays beside that of
            // the seeds.
            assert!((found.over_images.high - mean - 0.02).abs() < 1e-12, "{score:?}");
            let (both, seeds) = (found.interval.unwrap().high - mean, found.over_seeds.unwrap().high - mean);
            assert!((both - seeds.hypot(0.02)).abs() < 1e-12, "{score:?}");
        }
        assert_eq!((beliefs.len(), grades.scores.len()), (4, 4));
        let truth = grades.figures().into_iter().find(|figure| figure.id == "graders-truth").unwrap();
        let names: Vec<&str> = truth.series.iter().map(|series| series.name.as_str()).collect();
        assert!(names.contains(&"Classifier's belief (MLP-500, exact posteriors)") && names.len() == 6, "{names:?}");
    }

    fn scored(auroc: f64) -> Scored {
        let at = Interval { low: auroc - 0.02, high: auroc + 0.02 };
        let none = Agreement { spearman: None, kendall: None };
        Scored {
            score: Score::SoftmaxEntropy,
            n: 2,
            aleatoric: none,
            epistemic: none,
            auroc: Some(Estimate { value: auroc, interval: at }),
            signed_error: None,
        }
    }

    #[test]
    fn estimates_are_held_against_the_truth_of_their_own_world() {
        let spec = preset("graders-quick");
        let own: &GradersSpec = spec.experiment.get().unwrap();
        let truth = |condition: usize, value: f64| {
            let bayes_error = BayesError::new(value, 0.0, 1.0);
            Some(Truth { tau: own.taus[condition], bayes_error, badge: Badge::Exact, how: "known".into() })
        };
        let mut truths = vec![None; own.taus.len()];
        (truths[0], truths[1]) = (truth(0, 0.10), truth(1, 0.30));
        // In the first world both brackets hold the truth; in the second the bracket of 0.2 does
        // not.
        let cells = [cell(&spec, 0, 0, 0.12), cell(&spec, 1, 0, 0.16), cell(&spec, 0, 1, 0.2)];
        let grades = Grades::of(&spec, own, &cells, &truths);
        let [easy, hard] = &grades.estimators[..] else { panic!("{:?}", grades.estimators) };
        assert!((easy.estimate.value - 0.14).abs() < 1e-15 && easy.estimate.interval.is_some());
        assert_eq!((easy.bounded, easy.enclosed, hard.bounded, hard.enclosed), (2, 2, 1, 0));
        assert_eq!((hard.truth.value, hard.estimate.interval), (0.30, None));
        let figures = grades.figures();
        assert!(figures.iter().any(|figure| figure.id == "graders-bounds"));
        whole(Analysis::new(grades));
        // Nothing is finished, or the truth is not known: nothing is said, and nothing fails.
        let nothing = Grades::of(&spec, own, &[], &truths);
        assert!(nothing.figures().is_empty() && nothing.estimators.is_empty());
        assert!(Grades::of(&spec, own, &cells, &[]).estimators.is_empty());
    }
}
