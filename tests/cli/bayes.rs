//! `bayes-error`, `tau`, `hardness`, `check` and `bench bayes-error`.

use serde_json::Value;

use super::run::{fail, json, output, succeed, text};

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// Two classes three apart with a variance of 4 and unequal priors, as a file.
fn two_classes(folder: &tempfile::TempDir) -> std::path::PathBuf {
    let path = folder.path().join("two.json");
    std::fs::write(&path, r#"{"means":[[0,1],[3,1]],"cov_diag":[4,9],"priors":[0.3,0.7]}"#).unwrap();
    path
}

#[test]
fn a_problem_file_needs_no_flow() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_classes(&folder);
    let report = json(&["bayes-error", text(&path), "--tau", "1.5", "--information", "--json"]);
    // d = 3/2/1.5 = 1: E = 0.3 Q(½ + ln(3/7)) + 0.7 Q(½ − ln(3/7)); values from mpmath, 20 digits.
    assert!((number(&report, "value") / EXACT - 1.0).abs() < 1e-14, "{report}");
    assert_eq!((report["method"].as_str(), report["badge"].as_str()), (Some("closed"), Some("exact")));
    assert_eq!((number(&report, "classes"), number(&report, "dim"), number(&report, "tau")), (2.0, 2.0, 1.5));
    for key in ["std_error", "samples", "seconds", "log_value", "rank"] {
        assert!(number(&report, key).is_finite());
    }
    assert!(number(&report["slope"], "value") > 0.0);
    let information = &report["information"];
    let nats = number(&information["aleatoric_nats"], "value");
    let bits = number(&information["mutual_information_bits"], "value");
    assert!((nats + bits * std::f64::consts::LN_2 - number(information, "label_entropy_nats")).abs() < 1e-12);
    let found = json(&["tau", text(&path), "--target", &number(&report, "value").to_string(), "--json"]);
    assert!((number(&found, "tau") - 1.5).abs() < 1e-12, "{found}");
    assert_eq!(found["value"], found["tau"]);
}

/// E of labels that follow p_T, of the two classes at a distance, by the trapezoidal rule.
fn error_at_t(distance: f64, smoothing: f64) -> f64 {
    const STEP: f64 = 1e-4;
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let at = |x: f64| {
        let joint = [0.3 * density(x), 0.7 * density(x - distance)];
        let [a, b] = joint.map(|joint| joint.powf(1.0 / smoothing));
        STEP * (joint[0] + joint[1]) * a.min(b) / (a + b)
    };
    (0..200_000).map(|i| at(-9.0 + STEP * f64::from(i))).sum()
}

#[test]
fn figures_of_a_problem_are_those_of_labels_at_t() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_classes(&folder);
    // The means are 3/2 standard deviations apart at τ = 1.
    let of = |more: &[&str]| json(&[&["bayes-error", text(&path), "--tau", "1.5", "--json"], more].concat());
    for (smoothing, t) in [("2", 2.0), ("0.5", 0.5)] {
        let truth = error_at_t(1.0, t);
        let report = of(&["--smoothing", smoothing, "--tolerance", "0.003", "--information"]);
        assert!((number(&report, "value") / truth - 1.0).abs() < 0.006, "T = {t}: {report}, not {truth}");
        assert_eq!((report["method"].as_str(), number(&report, "smoothing")), (Some("pair"), t));
        let slope = (error_at_t(1.0 / 1.01, t) - error_at_t(1.01, t)) / (2.0 * 1.01f64.ln());
        assert!((number(&report["slope"], "value") / slope - 1.0).abs() < 0.02, "T = {t}: {report}, not {slope}");
        // Noise comes after T: of two labels p~ = 0.2 + 0.6 p_T.
        let noisy = of(&["--smoothing", smoothing, "--label-noise", "symmetric:0.2"]);
        let expected = 0.2 + 0.6 * truth;
        assert!((number(&noisy, "value") / expected - 1.0).abs() < 3e-4, "T = {t}: {noisy}, not {expected}");
    }
    let plain = of(&[]);
    assert!(plain.get("smoothing").is_none() && number(&plain, "value") < error_at_t(1.0, 2.0), "{plain}");
    assert_eq!(number(&of(&["--smoothing", "1"]), "value"), number(&plain, "value"));
    let at_two = ["--smoothing", "2", "--json"];
    let target = error_at_t(1.0, 2.0).to_string();
    let found = json(&[&["tau", text(&path), "--target", &target], &at_two[..]].concat());
    assert!((number(&found, "tau") - 1.5).abs() < 1e-3 && number(&found, "smoothing") == 2.0, "{found}");
    let curve = ["bayes-error", text(&path), "--curve", "1:1.5:2", "--tolerance", "0.003"];
    let rows = json(&[&curve[..], &at_two].concat());
    let last = number(&rows["curve"][1]["bayes_error"], "value");
    assert!((last / error_at_t(1.0, 2.0) - 1.0).abs() < 0.006, "{rows}");
    let hardness = json(&[&["hardness", text(&path), "--tolerance", "0.02"], &at_two[..]].concat());
    assert!(number(&hardness, "smoothing") == 2.0 && hardness["one_vs_rest"].as_array().unwrap().len() == 2);
    assert!(succeed(&["bayes-error", text(&path), "--smoothing", "2"]).contains("labels at T = 2"));
    for (more, word) in [
        (&["--smoothing", "0"][..], "T must be a number > 0"),
        (&["--smoothing", "2", "--method", "sov"], "choose pair"),
        (&["--smoothing", "2", "--samples", "9"], "draw images of an oracle"),
    ] {
        let said = fail(1, &[&["bayes-error", text(&path)], more].concat());
        assert!(said.contains(word), "{said}");
    }
}

/// The distances of all pairs of a million classes take 22 TiB: said before any is taken.
#[test]
fn what_memory_cannot_hold_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("million.json");
    let means: Vec<String> = (0..1_000_000).map(|k| format!("[{k}]")).collect();
    std::fs::write(&path, format!(r#"{{"means":[{}],"cov_diag":[1]}}"#, means.join(","))).unwrap();
    let said = fail(1, &["bayes-error", text(&path)]);
    assert!(said.contains("1000000 classes need 22351.8 GiB of memory"), "{said}");
    assert!(said.contains("available") && said.contains("fewer classes"), "{said}");
}

/// Chains of Holmes-Diaconis-Ross through 2,500 classes would take four hours: said before any is begun.
#[test]
fn what_would_take_hours_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.json");
    let means: Vec<String> = (0..2500).map(|k| format!("[{},{},{}]", k % 13, k % 17, k % 19)).collect();
    std::fs::write(&path, format!(r#"{{"means":[{}],"cov_diag":[1,1,1]}}"#, means.join(","))).unwrap();
    let said = fail(1, &["bayes-error", text(&path), "--method", "hdr"]);
    assert!(said.contains("2500 classes in 3 dimensions") && said.contains("4 hours"), "{said}");
    assert!(said.contains("choose the method pair"), "{said}");
}

/// 0.3 Q(½ + ln(3/7)) + 0.7 Q(½ − ln(3/7)).
const EXACT: f64 = 0.2530043786236346;

#[test]
fn methods_agree_on_the_bundled_world() {
    let solve = |extra: &[&str]| json(&[&["bayes-error", "mnist", "--json"], extra].concat());
    let best = solve(&["--tolerance", "1e-5"]);
    assert_eq!(best["method"], "sov");
    let truth = number(&best, "value");
    assert!((0.01..0.03).contains(&truth), "{best}");
    for extra in [
        vec!["--method", "pair", "--tolerance", "1e-3"],
        vec!["--method", "mc", "--tolerance", "1e-2"],
        vec!["--method", "hdr"],
        vec!["--seed", "7"],
        // The world itself, image by image: nothing of the reduction is shared with the integrals.
        vec!["--samples", "1000", "--device", "cpu"],
    ] {
        let other = solve(&extra);
        let off = (number(&other, "value") - truth).abs();
        assert!(off < 4.0 * number(&other, "std_error") + 1e-5 * truth, "{extra:?}: {other}");
    }
    let tau = json(&["tau", "mnist", "--target", "5%", "--json"]);
    let value = number(&tau, "tau");
    let again = solve(&["--tau", &value.to_string()]);
    assert!((number(&again, "value") - 0.05).abs() < 1e-4 * 0.05 * 8.0, "{tau} {again}");
}

#[test]
fn a_prior_changes_the_error_and_is_checked() {
    let skewed = json(&["bayes-error", "mnist", "--prior", "0,0,0,0,1,0,0,0,0,1", "--json"]);
    assert_eq!(skewed["method"], "closed");
    let report = json(&["hardness", "mnist", "--tolerance", "1e-2", "--json"]);
    let pair = report["pairwise"][4][9].as_f64().unwrap();
    assert!((number(&skewed, "value") / pair - 1.0).abs() < 1e-12, "{skewed} {pair}");
    // With other priors than ½ the one pair of two classes has another error than either class against the rest.
    let weights = |of: &str| report["weights"][of].as_str().unwrap_or_default();
    assert!(weights("one_vs_rest").contains("1/2 the others") && weights("pairwise").contains("in proportion"));
    let ranked = report["one_vs_rest"].as_array().unwrap();
    assert_eq!(ranked.len(), 10);
    let values: Vec<f64> = ranked.iter().map(|class| number(&class["one_vs_rest"], "value")).collect();
    assert!(values.windows(2).all(|pair| pair[0] >= pair[1]) && values[9] > 0.0);
    // EBO §4.3 has the order of classes unchanged by τ; here it is not.
    let order = |at: usize| report["over_tau"][at]["order"].as_array().unwrap().clone();
    assert!(order(0).len() == 10 && order(0) != order(1) && order(1) != order(2), "{}", report["over_tau"]);
    assert!(fail(1, &["bayes-error", "mnist", "--prior", "1,1"]).contains("--prior has 2 entries"));
}

#[test]
fn wrong_problems_and_targets_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_classes(&folder);
    let two = text(&path);
    let message = fail(1, &["tau", two, "--target", "40 %"]);
    assert!(message.contains("between 0.0000 % and 30.0000 %"), "{message}");
    assert!(fail(1, &["bayes-error", two, "--tau", "0"]).contains("above 0"));
    assert!(fail(1, &["bayes-error", two, "--tau", "-1"]).contains('τ'));
    assert!(fail(1, &["bayes-error", two, "--tolerance", "0"]).contains("tolerance"));
    assert!(fail(2, &["tau", two, "--target", "five"]).contains("5 %"));
    assert!(fail(1, &["bayes-error", "mnist", "--method", "closed"]).contains("no closed form"));
    let said = fail(1, &["bayes-error", "tests/worlds/animals", "--method", "hdr"]);
    assert!(said.contains("Holmes-Diaconis-Ross") && said.contains("leave --method out"), "{said}");
    assert!(fail(1, &["bayes-error", "missing.json"]).contains("missing.json"));
    for (content, field) in [
        (r#"{"means":[[0],[1]],"cov_diag":[-1]}"#, "cov_diag[0]"),
        (r#"{"means":[[0],[1]],"cov_diag":[1],"priors":[0.5,0.4]}"#, "priors"),
        (r#"{"means":[[0,1],[1]],"cov_diag":[1,1]}"#, "means[1]"),
        (r#"{"means":[],"cov_diag":[1]}"#, "means"),
        (r#"{"means":[[NaN]],"cov_diag":[1]}"#, "not a class problem"),
        (r#"{"mean":[[0]],"cov_diag":[1]}"#, "mean"),
    ] {
        let bad = folder.path().join("bad.json");
        std::fs::write(&bad, content).unwrap();
        let message = fail(1, &["bayes-error", text(&bad)]);
        assert!(message.contains("bad.json") && message.contains(field), "{content}: {message}");
    }
}

#[test]
fn impossible_figures_are_flagged() {
    let blc = ["check", "--classes", "3", "--aleatoric", "0.012", "--mutual-information", "1.577", "--json"];
    // The report is printed all the same, and scripts see it by the exit code.
    let impossible = |args: &[&str]| -> Value {
        let output = output(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("cannot all be true"), "{args:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let report = impossible(&blc);
    assert_eq!(report["possible"], false);
    assert!(report["contradictions"][0].as_str().unwrap().contains("1.5677"), "{report}");
    let papers = json(&["check", "--papers", "--json"]);
    assert_eq!((papers["possible"].as_bool(), papers["contradictions"].as_array().unwrap().len()), (Some(false), 4));
    let fine = succeed(&["check", "--classes", "10", "--aleatoric", "0.15", "--bayes-error", "0.05"]);
    assert!(fine.starts_with("possible"), "{fine}");
    // Fano: ten classes of 0.15 nats are mistaken 2.1 % of the time or more. Percents are fractions.
    let published = |error| ["check", "--classes", "10", "--aleatoric", "0.15", "--bayes-error", error, "--json"];
    assert_eq!(json(&published("5%"))["possible"], true);
    assert_eq!(impossible(&published("0.5 %"))["possible"], false);
    assert_eq!(impossible(&published("0.5 %")), impossible(&published("0.005")));
}

#[test]
fn the_bench_measures_time_to_a_given_error() {
    let report = json(&["bench", "bayes-error", "--runs", "1", "--json"]);
    assert!(number(&report, "variables_per_second") > 1e6);
    let benches = report["benches"].as_array().unwrap();
    assert_eq!(benches.len(), 9);
    for bench in benches {
        assert!(number(bench, "median") > 0.0 && number(bench, "claimed") < 0.013, "{bench}");
        // Six standard errors, and six of the reference's own.
        assert!(number(bench, "off") <= 12.0 * number(bench, "claimed") + 1e-13, "{bench}");
    }
}
