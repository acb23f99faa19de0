//! `--label-noise`: figures of a problem, samples, an export and its judgement, an external run.

use std::path::Path;

use bayescope::data::{Column, Stored, read_array, read_logp, write_table};
use serde_json::Value;

use crate::common::tiny;
use crate::run::{fail, json, succeed, text};

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} of {value}"))
}

fn problem(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("three.json");
    std::fs::write(&path, r#"{"means":[[0,0],[2,0],[0,2]],"cov_diag":[1,1],"priors":[0.5,0.3,0.2]}"#).unwrap();
    path
}

#[test]
fn figures_of_a_problem_are_those_of_the_noisy_label() {
    let place = tempfile::tempdir().unwrap();
    let path = problem(place.path());
    let of = |more: &[&str]| json(&[&["bayes-error", text(&path), "--information", "--json"], more].concat());
    let clean = of(&[]);
    let noisy = of(&["--label-noise", "symmetric:0.2"]);
    let expected = 0.2 + 0.7 * number(&clean, "value");
    assert!((number(&noisy, "value") - expected).abs() < 1e-12 && noisy["label_noise"] == "symmetric:0.2", "{noisy}");
    assert!(clean.get("label_noise").is_none());
    let slope = 0.7 * number(&clean["slope"], "value");
    assert!((number(&noisy["slope"], "value") - slope).abs() < 1e-12, "{noisy}");
    // π~ = 0.1 + 0.7 π.
    let h: f64 = [0.45f64, 0.31, 0.24].iter().map(|p| -p * p.ln()).sum();
    assert!((number(&noisy["information"], "label_entropy_nats") - h).abs() < 1e-12, "{noisy}");
    let entropy = |report: &Value| number(&report["information"]["aleatoric_nats"], "value");
    assert!(entropy(&noisy) > entropy(&clean) + 0.1);
    let pair = of(&["--label-noise", "pair:0.2", "--tolerance", "0.01"]);
    assert_eq!(pair["method"], "pair");
    // As a file, and each way of writing gives the same points.
    let file = place.path().join("pair.json");
    std::fs::write(&file, "[[0.8, 0.2, 0], [0, 0.8, 0.2], [0.2, 0, 0.8]]").unwrap();
    let read = of(&["--label-noise", text(&file), "--tolerance", "0.01"]);
    assert!((number(&read, "value") - number(&pair, "value")).abs() < 1e-12, "{read}, {pair}");
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let path = problem(place.path());
    let noise = ["--label-noise", "symmetric:0.3"];
    let said = fail(1, &[&["tau", text(&path), "--target", "0.25"], &noise[..]].concat());
    assert!(said.contains("label noise symmetric:0.3 alone makes one of 30.0000 %"), "{said}");
    let said = fail(1, &["bayes-error", text(&path), "--label-noise", "pair:0.1", "--method", "sov"]);
    assert!(said.contains("not symmetric") && said.contains("mc"), "{said}");
    let said = fail(1, &["bayes-error", text(&path), "--label-noise", "by-class:0.1,0.1"]);
    assert!(said.contains("of 2 classes"), "{said}");
    let file = place.path().join("wrong.csv");
    std::fs::write(&file, "0.5,0.4,0\n0,1,0\n0,0,1\n").unwrap();
    for (given, word) in [(text(&file), "row 0"), ("symmetric:2", "no probability"), ("often", "symmetric:0.2")] {
        let said = fail(2, &["bayes-error", text(&path), "--label-noise", given]);
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn an_export_has_noisy_labels_and_is_judged_by_their_posteriors() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let export = |name: &str, more: &[&str]| -> (std::path::PathBuf, Value) {
        let folder = place.path().join(name);
        let words = ["export", text(&oracle), "--train", "200", "--test", "400", "--device", "cpu", "--json", "--out"];
        let manifest = json(&[&words[..], &[text(&folder)], more].concat());
        (folder, manifest)
    };
    let (clean, plain) = export("clean", &[]);
    let (noisy, manifest) = export("noisy", &["--label-noise", "by-class:0.1,0.4"]);
    assert!(plain.get("label_noise").is_none() && manifest["label_noise"] == "by-class:0.1,0.4", "{manifest}");
    assert!(manifest["labels"].as_str().unwrap().contains("label noise"), "{manifest}");
    let files = [&clean, &noisy].map(|folder| folder.join("test.npz"));
    let of = |name: &str| files.each_ref().map(|file| read_array(file, name).unwrap());
    let [x, same] = of("x");
    assert_eq!(x, same);
    let [logp, same] = files.each_ref().map(|file| read_logp(file).unwrap());
    assert_eq!(logp, same);
    let ([p, noisy_p], [y, noisy_y]) = (of("posterior"), of("y"));
    for (p, noisy) in p.chunks(2).zip(noisy_p.chunks(2)) {
        assert!((noisy[0] - 0.9 * p[0] - 0.4 * p[1]).abs() < 1e-6 && (noisy[0] + noisy[1] - 1.0).abs() < 1e-6);
    }
    for (class, rate) in [(0.0, 0.1), (1.0, 0.4)] {
        let labels: Vec<f64> = y.iter().zip(&noisy_y).filter(|(y, _)| **y == class).map(|(_, noisy)| *noisy).collect();
        let flipped = labels.iter().filter(|label| **label != class).count() as f64 / labels.len() as f64;
        assert!((flipped - rate).abs() < 4.5 * (rate * (1.0 - rate) / labels.len() as f64).sqrt(), "{flipped}");
    }
    // The exact noisy posterior as a prediction: nothing is left to learn.
    let predictions = place.path().join("p.npz");
    let column = [Column { name: "probabilities", stored: Stored::F64, shape: vec![2] }];
    write_table(&predictions, noisy_p.len() / 2, &column, &mut |_, rows| {
        Ok(noisy_p[2 * rows.start..2 * rows.end].to_vec())
    })
    .unwrap();
    let found =
        json(&["evaluate", text(&noisy), "--predictions", text(&predictions), "--kind", "probabilities", "--json"]);
    // The judge knows the same posteriors: it says that nobody learns them to so many digits.
    assert!(number(&found, "epistemic").abs() < 1e-5 && !found["alarms"].as_array().unwrap().is_empty(), "{found}");
    // An experiment in that world takes the noisy images, and refuses those whose labels are clean.
    let spec = place.path().join("spec.toml");
    let run = |data: &Path| {
        let words = format!(
            "name = 'x'\n[world]\noracle = '{}'\nlabel_noise = 'by-class:0.1,0.4'\n[data]\ntrain = '{}'\n[grid]\narchitectures = \
             ['linear']\ntrain_sizes = [50]\nseeds = [0]\n[test]\nimages = 100\nwatched = 50\n[training]\nepochs = 1\n",
            oracle.display(),
            data.display()
        );
        std::fs::write(&spec, words).unwrap();
        ["run", text(&spec), "--device", "cpu", "--out"]
    };
    let said = fail(1, &[&run(&clean)[..], &[text(&place.path().join("refused"))]].concat());
    assert!(said.contains("world.label_noise") && said.contains("--label-noise"), "{said}");
    succeed(&[&run(&noisy)[..], &[text(&place.path().join("taken"))]].concat());
}

/// Classes that no image leaves in doubt: an export and a judge that count the noise as doubt that was seen would add nothing for
/// images that were not.
#[test]
fn an_export_and_its_judge_count_the_same_images_in_doubt() {
    let place = tempfile::tempdir().unwrap();
    let (oracle, folder) = (tiny::gaussian_file(place.path()), place.path().join("sure"));
    let words = ["export", text(&oracle), "--train", "2", "--test", "100", "--tau", "0.2", "--device", "cpu", "--json"];
    let exported = json(&[&words[..], &["--label-noise", "by-class:0,0.3", "--out", text(&folder)]].concat());
    let p = read_array(&folder.join("test.npz"), "posterior").unwrap();
    let predictions = place.path().join("q.npz");
    let column = [Column { name: "probabilities", stored: Stored::F64, shape: vec![2] }];
    let q: Vec<f64> = p.iter().map(|p| 0.05 + 0.9 * p).collect();
    write_table(&predictions, 100, &column, &mut |_, rows| Ok(q[2 * rows.start..2 * rows.end].to_vec())).unwrap();
    let words = ["evaluate", text(&folder), "--predictions", text(&predictions), "--kind", "probabilities", "--json"];
    let judged = json(&words);
    let (of_export, value) = (&exported["splits"]["test"]["bayes_error"], number(&judged, "bayes_error"));
    let ends = |interval: &Value| [0, 1].map(|end| interval[end].as_f64().unwrap());
    let export = ends(&of_export["interval"]);
    for (name, expected) in [("bayes_error", export), ("expected_error", export)] {
        let judge = ends(&judged["intervals"][name]);
        // One is BCa's, the other normal: 0.15 · 1.96/√100 = 0.029. The rule of three adds 0.03 · 0.85 above.
        assert!(judge.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.008), "{name} {judge:?} {expected:?}");
        assert!(judge[1] - value > 0.045, "{judge:?}");
    }
}

#[test]
fn an_external_run_records_the_noise_of_its_labels() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let run = place.path().join("theirs");
    let start = ["external", "start", text(&oracle), "--out", text(&run), "--test", "50", "--device", "cpu"];
    succeed(&[&start[..], &["--label-noise", "pair:0.25"]].concat());
    let spec = std::fs::read_to_string(run.join("run.toml")).unwrap();
    assert!(spec.contains("label_noise = \"pair:0.25\""), "{spec}");
    succeed(&["summary", text(&run)]);
    assert!(fail(1, &start).contains("another world"), "a world without noise is another one");
}
