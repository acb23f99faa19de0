//! Grades from estimates made by hand, whose truth is known.

use super::*;
use crate::bayes::Badge;
use crate::experiment::Cell;
use crate::experiment::hand_made::around;
use crate::experiment::hand_made::{preset, result, whole};
use crate::experiment::output::{Analysis, CellOutput};
use crate::measure::uncertainty::Agreement;
use crate::measure::{Bootstrap, measure};

fn cell(spec: &ExperimentSpec, seed: u64, condition: usize, estimate: f64) -> CellResult {
    let cell = Cell { seed, condition, ..spec.cells()[0] };
    let measured = measure(&[0.7, 0.3, 0.4, 0.6], &[0.5f64.ln(); 4], &[0, 1], 2, &Bootstrap::new(Seed(0))).unwrap();
    let one = estimated(Estimator::OneNn, estimate, cell);
    let found = Grading { estimates: vec![one], scores: Vec::new(), files: Vec::new(), ensemble: measured.clone() };
    let output = Some(CellOutput::new(found));
    CellResult { output, ..result(cell, measured) }
}

fn estimated(estimator: Estimator, estimate: f64, cell: Cell) -> crate::experiment::graders::spec::Estimated {
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
    crate::experiment::graders::spec::Estimated {
        estimator,
        features: Features::Pixels,
        graded: Some(graded),
        why_not: None,
    }
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
    assert_eq!((neighbours.estimate.seeds, neighbours.bounded, neighbours.enclosed, neighbours.asked), (2, 2, 1, None));
    assert!((neighbours.estimate.value - 0.25).abs() < 1e-15);
    // Of two values 0.1 apart: t of one degree times half of that.
    let half = neighbours.estimate.over_seeds.unwrap().high - 0.25;
    assert!((half - 12.706_204_736 * 0.05).abs() < 1e-6, "{half}");
    // Bounds stay shares: 0.125 and 0.25 with half widths of 0.32 and 0.64.
    let low = |bound: Option<SeedGain>| bound.unwrap().interval.unwrap().low;
    assert_eq!((low(neighbours.lower), low(neighbours.upper)), (0.0, 0.0));
    let asked = Asked::of(&spec);
    assert_eq!(beliefs.iter().map(|one| one.asked.unwrap()).collect::<Vec<_>>(), asked);
    for (i, (belief, score)) in beliefs.iter().zip(&grades.scores).enumerate() {
        let mean = 0.05 + 0.01 * i as f64;
        assert!((belief.estimate.value - mean).abs() < 1e-15 && belief.estimate.seeds == 2, "{belief:?}");
        let found = score.auroc.unwrap();
        assert!((found.value - mean).abs() < 1e-15 && found.seeds == 2 && score.asked == Some(asked[i]), "{score:?}");
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

#[test]
fn a_learning_curve_is_extrapolated_to_its_floor_and_features_have_a_bound_of_their_own() {
    let mut spec = preset("graders-quick");
    spec.grid.train_sizes = vec![100, 200, 400, 800, 1600];
    let own: &GradersSpec = spec.experiment.get().unwrap();
    // Errors fall as 0.1 + 2 N^(−½); the features permit 0.15, of which their 1-NN says 0.2.
    let result = |at: Cell| {
        let error = 0.1 + 2.0 / (at.train_size as f64).sqrt();
        let mut found = cell(&spec, at.seed, 0, 0.2);
        found.measured.error = around(error, 1e-3);
        let mut grading = grading(&found).unwrap().clone();
        grading.estimates.push(estimated(Estimator::Told, 0.15, at));
        CellResult { cell: at, output: Some(CellOutput::new(grading)), ..found }
    };
    let cells: Vec<CellResult> = spec.cells().into_iter().filter(|cell| cell.condition == 0).map(result).collect();
    let bayes_error = BayesError::new(0.12, 0.0, 1.0);
    let truth = Truth { tau: own.taus[0], bayes_error, badge: Badge::Exact, how: "known".into() };
    let grades = Grades::of(&spec, own, &cells, &[Some(truth)]);
    let curve: Vec<&Marked> = grades.estimators.iter().filter(|m| m.estimator == Estimator::LearningCurve).collect();
    let [curve] = &curve[..] else { panic!("one network, one world") };
    assert!((curve.estimate.value - 0.1).abs() < 1e-3 && curve.n == 1600, "{curve:?}");
    assert!(curve.estimate.interval.unwrap().contains(0.1) && curve.estimate.seeds == spec.grid.seeds.len());
    assert_eq!(grades.at_most(curve), None);
    let neighbours = grades.estimators.iter().find(|m| m.estimator == Estimator::OneNn && m.n == 400).unwrap();
    assert!((grades.at_most(neighbours).unwrap().value - 0.15).abs() < 1e-12);
    whole(Analysis::new(grades));
    // Three sizes have no floor.
    let few: Vec<CellResult> = cells.into_iter().filter(|result| result.cell.train_size < 800).collect();
    assert!(floor(few.iter()).is_none());
}
