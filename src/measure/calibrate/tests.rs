use rand::RngExt;

use super::*;
use crate::measure::argmax;
use crate::units::Seed;

const K: usize = 3;
const FREE: Penalty = Penalty { off_diagonal: 0.0, intercept: 0.0 };

/// log q and labels of 60 made-up images, which SciPy and scikit-learn got too.
fn made_up() -> (Vec<f64>, Vec<ClassId>) {
    let at = |i: usize, a: f64, b: f64| [0.0, 1.0, 2.0].map(|c| (a * i as f64 + b * c).sin());
    let logits: Vec<f64> = (0..60).flat_map(|i| at(i, 1.3, 2.1).map(|x| 3.0 * x)).collect();
    let of = |i| {
        let (one, other) = (at(i, 1.3, 2.1), at(i, 7.7, 1.9));
        argmax(&[0, 1, 2].map(|k| one[k] + 0.8 * other[k]))
    };
    (log_softmax(&logits, K), (0..60).map(of).collect())
}

fn nll(log_q: &[f64], labels: &[ClassId]) -> f64 {
    log_q.chunks(K).zip(labels).map(|(row, &label)| -row[label]).sum::<f64>() / labels.len() as f64
}

#[test]
fn scalings_are_those_of_scipy_and_scikit_learn() {
    let (log_q, labels) = made_up();
    assert!((nll(&log_q, &labels) - 0.547_879_008_465_306_1).abs() < 1e-12, "other images");
    let odir = Penalty { off_diagonal: 0.1, intercept: 0.05 };
    // Least loss found by scipy.optimize.minimize (BFGS) and, of all free weights, by
    // sklearn.linear_model.LogisticRegression(C=inf).
    let told = [
        (Calibration::Temperature, FREE, 0.514_480_622_646_972_7, None),
        (Calibration::Vector, FREE, 0.498_231_036_598_544_2, Some([0.100_203_087, 0.856_937_912, 0.042_859_001])),
        (Calibration::Dirichlet, odir, 0.496_929_892_784_546_7, Some([0.125_330_457, 0.830_933_827, 0.043_735_715])),
        (Calibration::Dirichlet, FREE, 0.480_186_375_547_627_3, Some([0.155_392_643, 0.807_194_697, 0.037_412_661])),
    ];
    for (calibration, penalty, loss, first) in told {
        let fitted = calibration.fit(&log_q, &labels, K, penalty).unwrap();
        let found = fitted.apply(&log_q, K);
        let reached = nll(&found, &labels);
        assert!((reached - loss).abs() < 2e-6, "{calibration:?}: {reached}, not {loss}");
        for (found, told) in found.iter().zip(first.into_iter().flatten()) {
            assert!((found.exp() - told).abs() < 2e-4, "{calibration:?}: {} not {told}", found.exp());
        }
        if let (Calibration::Temperature, Calibrator::Scaling(scaling)) = (calibration, fitted) {
            assert!((scaling.beta() - 0.713_862_530_514).abs() < 1e-5);
        }
    }
}

/// Labels of the least probable class: the best factor of log q would be negative, and turn every
/// decision round.
#[test]
fn a_temperature_is_positive_and_keeps_every_decision_of_a_classifier_worse_than_chance() {
    let (log_q, _) = made_up();
    let least = |row: &[f64]| argmax(&row.iter().map(|x| -x).collect::<Vec<f64>>());
    let labels: Vec<ClassId> = log_q.chunks(K).map(least).collect();
    let fitted = Calibration::Temperature.fit(&log_q, &labels, K, FREE).unwrap();
    let found = fitted.apply(&log_q, K);
    assert!(found.chunks(K).zip(log_q.chunks(K)).all(|(a, b)| argmax(a) == argmax(b)));
    assert!(nll(&found, &labels) < nll(&log_q, &labels) && nll(&found, &labels) >= (K as f64).ln());
}

#[test]
fn isotonic_regression_is_scikit_learns() {
    let (log_q, labels) = made_up();
    let fitted = Calibration::Isotonic.fit(&log_q, &labels, K, FREE).unwrap();
    let others: Vec<f64> =
        (0..5).flat_map(|i| [0.0, 1.0, 2.0].map(|c| 3.0 * (0.7 * f64::from(i) + 2.1 * c).sin())).collect();
    let found: Vec<f64> = fitted.apply(&log_softmax(&others, K), K).iter().map(|log_q| log_q.exp()).collect();
    let told = [
        [0.156_626_506_024, 0.843_373_493_976, 0.0],
        [0.521_731_474_625, 0.478_268_525_375, 0.0],
        [1.0, 0.0, 0.0],
        [0.652_173_913_043, 0.0, 0.347_826_086_957],
        [0.5, 0.0, 0.5],
    ];
    for (found, told) in found.iter().zip(told.iter().flatten()) {
        assert!((found - told).abs() < 1e-9, "{found} {told}");
    }
}

/// `n` images of a classifier that is too sure: its logits are 1/β times those of the posterior it
/// was drawn from.
fn too_sure(n: usize, beta: f64, seed: u64) -> (Vec<f64>, Vec<ClassId>) {
    let mut rng = Seed(seed).rng(0);
    let logits: Vec<f64> = (0..n * K).map(|_| 6.0 * rng.random::<f64>()).collect();
    let p = log_softmax(&logits, K);
    let draw = |row: &[f64]| {
        let mut left: f64 = rng.random();
        row.iter().position(|log_p| {
            left -= log_p.exp();
            left < 0.0
        })
    };
    let labels = p.chunks(K).map(draw).map(|label| label.unwrap_or(K - 1)).collect();
    (log_softmax(&logits.iter().map(|x| x / beta).collect::<Vec<_>>(), K), labels)
}

#[test]
fn a_temperature_is_found_and_every_method_makes_a_classifier_that_is_too_sure_better() {
    let ((log_q, labels), (other, other_labels)) = (too_sure(4000, 0.4, 1), too_sure(4000, 0.4, 2));
    let before = nll(&other, &other_labels);
    for calibration in Calibration::ALL.into_iter().skip(1) {
        let fitted = calibration.fit(&log_q, &labels, K, FREE).unwrap();
        let after = nll(&mixed(&fitted.apply(&other, K), K, 1.0 / 4001.0), &other_labels);
        assert!(after < before - 0.1, "{calibration:?}: {before} {after}");
        if let Calibrator::Scaling(scaling) = &fitted {
            assert!(calibration != Calibration::Temperature || (scaling.beta() - 0.4).abs() < 0.02);
        }
    }
}

#[test]
fn a_histogram_has_the_share_of_hits_of_each_bin() {
    let pairs: Vec<(f64, f64)> =
        [0.1, 0.2, 0.2, 0.2, 0.6, 0.9].into_iter().zip([0.0, 0.0, 1.0, 1.0, 0.0, 1.0]).collect();
    let steps = Steps::histogram(&pairs, 3);
    // Two images a bin; the three at 0.2 stay together, and leave nothing of the second bin.
    for (q, rate) in [(0.0, 0.5), (0.2, 0.5), (0.4, 0.5), (0.41, 0.5), (0.7, 0.5), (1.0, 0.5)] {
        assert_eq!(steps.value(q), rate, "{q}");
    }
    let fine = Steps::histogram(&pairs, 100);
    for (q, rate) in
        [(0.0, 0.0), (0.15, 0.0), (0.16, 2.0 / 3.0), (0.4, 2.0 / 3.0), (0.41, 0.0), (0.75, 0.0), (0.76, 1.0)]
    {
        assert_eq!(fine.value(q), rate, "{q}");
    }
}

#[test]
fn labels_that_are_told_without_error_leave_all_numbers_finite() {
    let log_q = log_softmax(&[9.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 9.0, 8.0, 0.0, 1.0], K);
    let labels = [0, 1, 2, 0];
    for calibration in Calibration::ALL {
        let found = calibration.fit(&log_q, &labels, K, FREE).unwrap().apply(&log_q, K);
        assert!(found.iter().all(|x| x.exp().is_finite()), "{calibration:?} {found:?}");
        for row in found.chunks(K) {
            assert!((row.iter().map(|x| x.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
        }
        assert!(mixed(&found, K, 0.1).iter().all(|x| x.is_finite()));
    }
}

#[test]
fn what_cannot_be_fitted_is_refused_by_name() {
    let refused = |log_q: &[f64], labels: &[ClassId]| {
        Calibration::Vector.fit(log_q, labels, K, FREE).map(drop).unwrap_err().to_string()
    };
    assert!(refused(&[], &[]).contains("needs images"));
    assert!(refused(&[0.0; 3], &[3]).contains("label 3"));
    assert!(refused(&[0.0, 0.0, 0.0, f64::NEG_INFINITY, 0.0, 0.0], &[0, 1]).contains("image 1"));
}
