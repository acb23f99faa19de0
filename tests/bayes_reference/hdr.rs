//! Holmes-Diaconis-Ross against the recorded runs of LinConGauss, and the problems they ran on against everything else.

use bayescope::bayes::{HdrSpec, Method, Problem, Spec};
use bayescope::units::Tau;
use serde_json::Value;

use crate::hdr_rules::problem;
use crate::values::solve;

#[test]
fn hdr_agrees_with_the_recorded_runs() {
    let path = crate::path("hdr/hdr.json");
    let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases = json["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 9);
    for case in cases {
        let name = case["problem"].as_str().unwrap();
        let (means, cov_diag, exact, recorded) = problem(case);
        let problem = Problem { means, cov_diag: Some(cov_diag), cov: None, priors: None, class_names: None };
        let classes = problem.classes().unwrap();
        // The hard one nests, which costs; as many draws as LinConGauss had.
        let samples = if name.ends_with("hard") { 20_000 } else { 60_000 };
        let hdr = HdrSpec { samples, ..HdrSpec::default() };
        let ours = solve(&classes, Tau::ONE, &Spec { method: Some(Method::Hdr), hdr, ..Spec::default() }).figure;
        assert!((ours.value - exact).abs() < 3.5 * ours.std_error, "{name}: {ours:?}, exact {exact}");
        // Two repeats say nothing about their own spread.
        for (formulation, mean, std, repeats) in recorded.into_iter().filter(|run| run.3 >= 10) {
            let theirs = std / (repeats as f64).sqrt();
            let error = (theirs * theirs + ours.std_error * ours.std_error).sqrt();
            assert!(
                (ours.value - mean).abs() < 3.5 * error,
                "{name}, {formulation}: {ours:?}, recorded {mean} ± {theirs}"
            );
        }
        let auto = solve(&classes, Tau::ONE, &Spec::default()).figure;
        let open = 3.0 * auto.std_error + 4.0 * case["exact"]["std_err"].as_f64().unwrap() + 1e-9 * exact;
        assert!((auto.value - exact).abs() < open, "{name}: {auto:?}, exact {exact}");
    }
}
