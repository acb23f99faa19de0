use super::*;
use crate::experiment::Cell;
use crate::experiment::hand_made::{around, measured, near, result, spec, whole_at_any_time};
use crate::experiment::output::CellOutput;
use crate::experiment::output::Findings;
use crate::measure::{Calibration, EceEstimator};

const SPEC: &str = "[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'convnet']\ntrain_sizes = [400, 100]\n\
                    seeds = [0, 1]\n[test]\nimages = 500\n[experiment]\nkind = 'calibration'\nlabels = [100, 50]\n";

/// Temperature saves 0.01 and 0.03 nats under the two seeds, whatever the classifier; 15 bins are
/// off by 2 pp on average and scatter by 1.
fn results(spec: &ExperimentSpec) -> Vec<CellResult> {
    let of = |cell: &Cell| {
        let before = 0.3 + 0.1 * cell.seed as f64;
        let method = |method, n, kl| Recalibrated {
            method,
            n,
            epistemic: around(kl, 0.01),
            exact_calibration_error: around(0.1, 0.01),
            expected_accuracy: around(0.8, 0.01),
            impossible: 0.0,
            blocks: None,
        };
        let after = before - 0.01 - 0.02 * cell.seed as f64;
        let mut methods = vec![method(Calibration::None, 0, before)];
        methods.extend([100, 50].map(|n| method(Calibration::Temperature, n, after)));
        let estimate = |n| EstimatedEce {
            estimator: EceEstimator::Width(15),
            n,
            exact: 0.04,
            noiseless: Some(0.03),
            mean: 0.06,
            deviation: 0.01,
        };
        let found = Calibrated { methods, estimates: [100, 50].map(estimate).into() };
        CellResult { output: Some(CellOutput::new(found)), ..result(*cell, measured(0.2, 0.2, 0.1)) }
    };
    spec.cells().iter().map(of).collect()
}

#[test]
fn gains_are_those_of_each_seed_and_curves_rise_with_n() {
    let spec = spec(SPEC);
    let found = CalibrationGrades::of(&spec, &results(&spec));
    assert_eq!((found.calibrators.len(), found.estimators.len()), (4 * 3, 4 * 2));
    for one in found.calibrators.iter().filter(|one| one.method == Calibration::Temperature) {
        // Student's t of one degree of freedom, 12.7062, times 0.01.
        let interval = one.gain.interval.unwrap();
        assert!(near(one.gain.value, 0.02) && (interval.high - 0.02 - 0.127_062).abs() < 1e-6, "{interval:?}");
    }
    for one in &found.estimators {
        assert!(near(one.bias.value, 0.02) && near(one.hidden.unwrap().value, -0.01));
        assert!(near(one.rms.value, 0.02f64.hypot(0.01)));
    }
    let figures = found.figures();
    assert_eq!(figures.len(), 2 * 4);
    let gains = &figures[0].series.iter().find(|series| series.name == "temperature").unwrap().points;
    assert!(gains.iter().map(|point| point.x).eq([50.0, 100.0]) && near(gains[0].y, 0.02));
    let ids: std::collections::BTreeSet<_> = figures.iter().map(|figure| figure.id.clone()).collect();
    assert_eq!(ids.len(), figures.len());
}

#[test]
fn what_is_missing_is_left_out() {
    let spec = spec(SPEC);
    let all = results(&spec);
    whole_at_any_time(&spec, &all);
}

#[test]
fn wrong_numbers_of_labels_are_refused_by_name() {
    let refused = |from: &str, to: &str| {
        let text = format!("name = 'x'\n{}", SPEC.replace(from, to));
        toml::from_str::<ExperimentSpec>(&text).unwrap().validate().unwrap_err().to_string()
    };
    assert!(refused("[100, 50]", "[]").contains("experiment.labels"));
    assert!(refused("[100, 50]", "[50, 50]").contains("each once"));
    assert!(refused("[100, 50]", "[1000]").contains("1000 labels"));
    assert!(refused("labels = [100", "draws = 1\nlabels = [100").contains("experiment.draws"));
    assert!(refused("labels = [100", "intercept = -1.0\nlabels = [100").contains("experiment.intercept"));
}
