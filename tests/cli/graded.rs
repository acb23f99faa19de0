//! Calibration and stopping from the command line: what they say of a classifier agrees with its cell, and comes again bit by bit.

use serde_json::Value;

use crate::experiments::{Grid, summary};

const GRID: &str = "[grid]\narchitectures = ['linear']\ntrain_sizes = [60]\nseeds = [0, 1]\n[test]\nimages = 100\nwatched = 20\n\
                    [training]\nepochs = 3\n";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Runs a spec twice, into two folders.
fn twice(experiment: &str) -> Value {
    let grid = Grid::new(&format!("[experiment]\n{experiment}\n{GRID}"));
    let found = grid.run(&grid.path("first"));
    grid.run(&grid.path("second"));
    assert_eq!(summary(&grid.path("first")), summary(&grid.path("second")));
    found
}

#[test]
fn a_classifier_that_is_not_calibrated_is_the_cells_and_every_method_is_graded_at_every_n() {
    let found = twice("kind = 'calibration'\nlabels = [20, 100]\ndraws = 5");
    for cell in found["cells"].as_array().unwrap() {
        let methods = cell["found"]["calibration"]["methods"].as_array().unwrap();
        assert_eq!(methods.len(), 1 + 5 * 2);
        assert_eq!(methods[0]["method"], "none");
        for figure in ["epistemic", "exact_calibration_error", "expected_accuracy"] {
            assert_eq!(methods[0][figure], cell["measured"][figure]);
        }
        // A temperature keeps every decision.
        let kept = methods.iter().filter(|one| one["method"] == "temperature");
        assert!(kept.clone().all(|one| one["expected_accuracy"]["value"] == methods[0]["expected_accuracy"]["value"]));
        assert_eq!(kept.count(), 2);
        let estimates = cell["found"]["calibration"]["estimates"].as_array().unwrap();
        assert!(!estimates.is_empty());
        for one in estimates {
            // Five draws are not all alike, and lie about what they estimate.
            let [exact, mean, deviation] = ["exact", "mean", "deviation"].map(|key| number(&one[key]));
            assert!(deviation > 0.0 && (0.0..=1.0).contains(&exact) && (mean - exact).abs() < 0.5, "{one}");
        }
    }
    assert_eq!(found["finding"]["kind"], "calibration");
}

#[test]
fn the_last_epoch_is_the_cells_and_no_rule_beats_the_best_one() {
    let found = twice("kind = 'stopping'\ntaus = [0.8, 1.2]\nlabels = [10, 40]");
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 2);
    for cell in cells {
        let epochs = cell["found"]["stopping"]["epochs"].as_array().unwrap();
        assert_eq!(epochs.len(), 3);
        let (last, measured) = (number(&epochs[2]["epistemic"]), number(&cell["measured"]["epistemic"]["value"]));
        assert!((last - measured).abs() <= 1e-9 * measured.max(1e-3), "{last} {measured}");
    }
    let regrets = found["finding"]["regrets"].as_array().unwrap();
    assert_eq!(regrets.len(), 2 * 7);
    assert!(regrets.iter().all(|one| number(&one["regret"]["value"]) >= 0.0));
}
