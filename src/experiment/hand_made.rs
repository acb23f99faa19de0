//! Results with known numbers, for the tests of summaries.

use super::bayes_reference::Truth;
use super::cell::{Cell, CellResult};
use super::output::Analysis;
use super::registry::PRESETS;
use super::spec::ExperimentSpec;
use crate::bayes::{Badge, Figure};
use crate::measure::{Bootstrap, Estimate, Interval, Measured, measure};
use crate::units::{Seed, Tau};

/// A spec from its text after the name.
pub fn spec(rest: &str) -> ExperimentSpec {
    let spec: ExperimentSpec = toml::from_str(&format!("name = 'hand made'\n{rest}")).unwrap();
    spec.validate().unwrap();
    spec
}

/// The spec of a preset.
pub fn preset(name: &str) -> ExperimentSpec {
    PRESETS.iter().find(|preset| preset.name == name).unwrap().spec().unwrap()
}

/// Asserts that findings come back from JSON (a number that is none would not), that figures have
/// finite numbers, and tables whole rows.
pub fn whole(found: Analysis) {
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Analysis>(&text).unwrap(), found);
    for figure in found.figures() {
        let points = figure.series.iter().flat_map(|series| &series.points);
        let mut numbers = points.flat_map(|p| [Some(p.x), Some(p.y), p.low, p.high].into_iter().flatten());
        assert!(numbers.all(f64::is_finite), "{}", figure.id);
    }
    for table in found.tables() {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()) && !table.text().contains("NaN"));
    }
}

/// Asserts that a run has findings that are [`whole`], however many of its cells are finished.
pub fn whole_at_any_time(spec: &ExperimentSpec, all: &[CellResult]) {
    for finished in 0..=all.len() {
        whole(spec.experiment.analyse(spec, &all[..finished], &[]).unwrap());
    }
}

/// A number within ± a half width.
pub fn around(value: f64, half: f64) -> Estimate {
    Estimate { value, interval: Interval { low: value - half, high: value + half } }
}

/// A classifier with an error, an expected error and a Bayes error of its test images, each ± 0.01.
pub fn measured(error: f64, expected_error: f64, bayes_error: f64) -> Measured {
    let (p, labels) = ([0.9, 0.1, 0.3, 0.7], [0, 1]);
    let log_q = p.map(|p: f64| (0.5 * p + 0.25).ln());
    let base = measure(&p, &log_q, &labels, 2, &Bootstrap::new(Seed(0))).unwrap();
    Measured {
        error: around(error, 0.01),
        accuracy: around(1.0 - error, 0.01),
        expected_accuracy: around(1.0 - expected_error, 0.01),
        bayes_accuracy: around(1.0 - bayes_error, 0.01),
        gap: around(expected_error - bayes_error, 0.01),
        ..base
    }
}

/// A finished cell.
pub fn result(cell: Cell, measured: Measured) -> CellResult {
    CellResult {
        id: format!("{cell:?}"),
        cell,
        parameters: 1,
        steps: 1,
        train_loss: 0.5,
        measured,
        blocks: None,
        output: None,
    }
}

/// A Bayes error ± 0.002.
pub fn truth(tau: f64, bayes_error: f64) -> Option<Truth> {
    let bayes_error = Figure::new(bayes_error, 0.002, 1.0);
    Some(Truth { tau: Tau::new(tau).unwrap(), bayes_error, badge: Badge::Bounded, how: "by hand".into() })
}

/// Whether two numbers are the same but for rounding.
pub fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}
