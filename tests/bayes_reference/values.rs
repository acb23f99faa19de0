//! Every row of the table: Bayes error, derivative, entropy, τ.

use std::ops::ControlFlow;

use bayescope::bayes::{
    Badge, Estimate, GaussianClasses, Problem, Spec, bayes_error, derivative, information, tau_of_error,
};
use bayescope::units::Tau;
use serde_json::Value;

use crate::rules::{Covariance, rebuild, table};

/// The classes and τ of a row.
pub fn problem(row: &Value) -> (GaussianClasses, Tau) {
    let rebuilt = rebuild(row);
    let (cov_diag, cov) = match rebuilt.covariance {
        Covariance::Diagonal(diagonal) => (Some(diagonal), None),
        Covariance::Full(matrix) => (None, Some(matrix)),
    };
    let problem = Problem { means: rebuilt.means, cov_diag, cov, priors: Some(rebuilt.priors), class_names: None };
    (problem.classes().unwrap(), Tau::new(rebuilt.tau).unwrap())
}

/// The Bayes error under a spec.
pub fn solve(classes: &GaussianClasses, tau: Tau, spec: &Spec) -> Estimate {
    bayes_error(classes, tau, spec, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// A number of a row; 0 where there is none.
fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or(0.0)
}

/// What a reference value leaves open: its digits, and four of its standard errors.
fn open(row: &Value, value: &str, digits: &str, std_error: &str) -> f64 {
    10f64.powf(-number(row, digits)) * number(row, value) + 4.0 * number(row, std_error)
}

fn rows(table: &Value) -> &Vec<Value> {
    table["rows"].as_array().unwrap()
}

#[test]
fn every_bayes_error_is_met_within_its_claim() {
    let (table, mut exact) = (table(), 0);
    assert_eq!(rows(&table).len(), 206);
    for row in rows(&table) {
        let id = row["id"].as_str().unwrap();
        let (classes, tau) = problem(row);
        let estimate = solve(&classes, tau, &Spec::default());
        let (truth, figure) = (number(row, "bayes_error"), estimate.figure);
        let off = (figure.value - truth).abs();
        let allowed = 3.0 * figure.std_error + open(row, "bayes_error", "digits", "stderr");
        assert!(off <= allowed, "{id}: {} instead of {truth}, claimed {:.1e}", figure.value, figure.std_error);
        assert!(figure.std_error <= 1e-4 * truth, "{id}: claims {:.1e} only", figure.std_error / truth);
        assert!(figure.interval.0 <= figure.value && figure.value <= figure.interval.1, "{id}");
        let (low, high) = estimate.bounds;
        assert!(low <= truth * (1.0 + 1e-9) && truth <= high * (1.0 + 1e-9), "{id}: bounds {low} … {high}");
        if truth > 0.0 {
            assert!((estimate.log_value - truth.ln()).abs() <= 2.0 * allowed / truth + 1e-12, "{id}");
        }
        if estimate.badge != Badge::Estimated {
            assert!(off <= 1e-9 * truth, "{id}: {} instead of {truth}", figure.value);
            exact += 1;
        }
    }
    // All that the table knows exactly is exact here too; only the random rows of rank above 2 are estimated.
    assert_eq!(exact, rows(&table).iter().filter(|row| row["stderr"].is_null()).count());
}

#[test]
fn every_derivative_is_met_within_its_claim() {
    let table = table();
    let known: Vec<&Value> = rows(&table).iter().filter(|row| row["dE_dlogtau"].is_number()).collect();
    assert_eq!(known.len(), 157);
    for row in known {
        let (classes, tau) = problem(row);
        let (figure, truth) = (
            derivative(&classes, tau, &Spec::default(), &mut bayescope::events::silent()).unwrap(),
            number(row, "dE_dlogtau"),
        );
        let allowed = 3.0 * figure.std_error + open(row, "dE_dlogtau", "digits", "dE_stderr") + 1e-9 * truth;
        assert!((figure.value - truth).abs() <= allowed, "{}: {figure:?}, not {truth}", row["id"]);
        assert!(figure.std_error <= 1e-4 * truth, "{}: claims {:.1e}", row["id"], figure.std_error / truth);
    }
}

#[test]
fn every_entropy_is_met_within_its_claim() {
    // A tolerance at which two cores need seconds for the rows that are sampled.
    let (table, spec) = (table(), Spec { tolerance: 5e-4, ..Spec::default() });
    let known: Vec<&Value> = rows(&table).iter().filter(|row| row["entropy_nats"].is_number()).collect();
    assert_eq!(known.len(), 114);
    for row in known {
        let (classes, tau) = problem(row);
        let (found, truth) = (
            information(&classes, tau, &spec, &mut |_| ControlFlow::Continue(())).unwrap(),
            number(row, "entropy_nats"),
        );
        let figure = found.aleatoric_nats;
        let allowed = 3.0 * figure.std_error + open(row, "entropy_nats", "entropy_digits", "entropy_stderr");
        assert!((figure.value - truth).abs() <= allowed, "{}: {figure:?}, not {truth}", row["id"]);
        assert!(figure.std_error <= 5e-4 * truth, "{}: claims {:.1e}", row["id"], figure.std_error / truth);
        let total = figure.value + found.mutual_information_bits.value * std::f64::consts::LN_2;
        assert!((total - found.label_entropy_nats).abs() < 1e-12, "{}", row["id"]);
    }
}

#[test]
fn every_inverse_is_met_within_its_claim() {
    let table = table();
    let inverse = table["inverse"].as_array().unwrap();
    assert_eq!(inverse.len(), 15);
    for row in inverse {
        let (classes, _) = problem(row);
        for tolerance in [1e-4, 1e-6] {
            let spec = Spec { tolerance, ..Spec::default() };
            let target = number(row, "target_error");
            let found = tau_of_error(&classes, target, &spec, &mut |_| ControlFlow::Continue(())).unwrap();
            let (tau, truth) = (found.tau, number(row, "tau"));
            let allowed = 3.0 * tau.std_error + open(row, "tau", "digits", "stderr");
            assert!((tau.value - truth).abs() <= allowed, "{}: {tau:?}, not {truth}", row["id"]);
            assert!(tau.std_error <= tolerance * truth, "{}: claims {:.1e}", row["id"], tau.std_error / truth);
        }
    }
}
