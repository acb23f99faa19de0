//! `bayes-error`, `tau`, `hardness` and `export --target` of worlds whose figures come from draws: a class-map world with a
//! closed form, and a shared map that is sampled although it has integrals.

use std::path::Path;

use serde_json::Value;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::common::tiny;
use crate::run::{bayescope, fail, json, text};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Whether the truth lies within twice the 95 % interval, widened around its own ends.
fn holds(figure: &Value, truth: f64) -> bool {
    let (low, high) = (number(&figure["interval"][0]), number(&figure["interval"][1]));
    let half = 0.5 * (high - low);
    (low - half..=high + half).contains(&truth) && high > low
}

/// Φ(−d/2τ): the Bayes error of the two classes of [`tiny::gaussian_file`].
fn error_at(tau: f64) -> f64 {
    Normal::standard().cdf(-tiny::GAUSSIAN_DISTANCE / (2.0 * tau))
}

fn ask(command: &str, oracle: &str, more: &[&str]) -> Value {
    json(&[&[command, oracle, "--device", "cpu", "--json"], more].concat())
}

/// The number of pieces in a folder of draws.
fn pieces(folder: &Path) -> usize {
    let all = std::fs::read_dir(folder.join(".parts")).unwrap();
    all.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("tau-")).count()
}

#[test]
fn a_class_map_world_has_the_figures_of_its_closed_form() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let oracle = text(&oracle);
    let found = ask("bayes-error", oracle, &["--tau", "1.2", "--information", "--samples", "1500"]);
    assert_eq!((found["method"].as_str(), found["badge"].as_str()), (Some("sampling"), Some("estimated")));
    assert_eq!((number(&found["samples"]), found["ended"].as_str()), (1500.0, Some("samples")));
    assert!(holds(&found, error_at(1.2)), "{found}");
    // dE/dlog τ = φ(u) u with u = d/2τ.
    let u: f64 = tiny::GAUSSIAN_DISTANCE / 2.4;
    let slope = u * (-0.5 * u * u).exp() / (2.0 * std::f64::consts::PI).sqrt();
    assert!(holds(&found["slope"], slope) && number(&found["slope"]["value"]) > 0.0, "{found}");
    let information = &found["information"];
    let (a, bits) = (number(&information["aleatoric_nats"]["value"]), &information["mutual_information_bits"]);
    assert!((a / std::f64::consts::LN_2 + number(&bits["value"]) - 1.0).abs() < 1e-9, "{information}");
    assert!(number(&found["gain"]) > 0.9 && number(&found["slope_gain"]) > 1.5, "{found}");
    let rows = ask("bayes-error", oracle, &["--curve", "0.8:1.6:3", "--samples", "800"]);
    for (row, tau) in rows["curve"].as_array().unwrap().iter().zip([0.8, 1.2, 1.6]) {
        assert!((number(&row["tau"]) - tau).abs() < 1e-12 && holds(&row["bayes_error"], error_at(tau)), "{row}");
    }
    // Two classes: each against the rest, and the one pair, are the world.
    let hardness = ask("hardness", oracle, &["--tau", "1.2", "--samples", "800"]);
    for class in 0..2 {
        assert!(holds(&hardness["one_vs_rest"][class]["one_vs_rest"], error_at(1.2)), "{hardness}");
    }
    let pair = &hardness["pairwise_intervals"][0][1];
    assert!(holds(&serde_json::json!({ "interval": pair }), error_at(1.2)), "{hardness}");
    assert_eq!((number(&hardness["pairwise"][0][0]), &hardness["pairwise_intervals"][0][0]), (0.0, &Value::Null));
    assert_eq!(hardness["over_tau"].as_array().unwrap().len(), 3);
}

#[test]
fn a_target_is_found_and_gone_on_with() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let keep = place.path().join("draws");
    let tau = |more: &[&str]| {
        let mut found = ask("tau", text(&oracle), &[&["--target", "10%", "--seed", "3"], more].concat());
        // These depend on the clock.
        found.as_object_mut().unwrap().remove("seconds");
        found["achieved"].as_object_mut().unwrap().remove("seconds");
        found
    };
    let alone = tau(&["--tolerance", "0.05"]);
    let truth = tiny::GAUSSIAN_DISTANCE / 2.0 / -Normal::standard().inverse_cdf(0.1);
    assert!(holds(&alone, truth) && alone["ended"] == "tolerance", "{alone} {truth}");
    assert!((number(&alone["achieved"]["value"]) - 0.1).abs() < 1e-6);
    let half = 0.5 * (number(&alone["interval"][1]) - number(&alone["interval"][0]));
    assert!(half <= 0.05 * number(&alone["value"]) * 1.001, "{alone}");
    // Fewer draws first, as if stopped; then the rest, and all of them read: the same answer.
    tau(&["--samples", "128", "--keep", text(&keep)]);
    let some = pieces(&keep);
    let first = tau(&["--tolerance", "0.05", "--keep", text(&keep)]);
    let all = pieces(&keep);
    let again = tau(&["--tolerance", "0.05", "--keep", text(&keep)]);
    assert!(0 < some && some < all && pieces(&keep) == all);
    assert_eq!((&first, &again), (&alone, &alone));
    // A piece that is no piece is drawn anew.
    let piece = std::fs::read_dir(keep.join(".parts")).unwrap().map(|entry| entry.unwrap().path());
    let piece = piece.filter(|path| path.extension().is_some_and(|e| e == "json")).min().unwrap();
    std::fs::write(&piece, "{").unwrap();
    assert_eq!(tau(&["--tolerance", "0.05", "--keep", text(&keep)]), alone);
    let refused = fail(1, &["tau", text(&oracle), "--target", "10%", "--seed", "4", "--keep", text(&keep)]);
    assert!(refused.contains("seed"), "{refused}");
    assert!(fail(1, &["tau", text(&oracle), "--target", "60%"]).contains("between 0 and 50.0000 %"));
    // A dataset of that Bayes error.
    let out = place.path().join("data");
    let more = ["--target", "0.1", "--train", "0", "--test", "4000", "--seed", "3", "--out", text(&out)];
    let manifest = ask("export", text(&oracle), &[&more[..], &["--tolerance", "0.05"]].concat());
    let exported = number(&manifest["tau"]);
    assert!((exported / truth - 1.0).abs() < 0.1, "{exported} {truth}");
    let split = &manifest["splits"]["test"]["bayes_error"]["interval"];
    let (low, high) = (number(&split[0]), number(&split[1]));
    assert!(low < error_at(exported) + 0.01 && high > error_at(exported) - 0.01, "{split}");
}

#[test]
fn a_shared_map_that_is_sampled_agrees_with_its_integrals() {
    let (tau, samples) = (["--tau", "1.4"], ["--samples", "800"]);
    let exact = ask("bayes-error", "mnist", &[&tau[..], &["--information"]].concat());
    let sampled = ask("bayes-error", "mnist", &[&tau[..], &samples, &["--information"]].concat());
    assert_eq!(sampled["method"], "sampling");
    assert!(holds(&sampled, number(&exact["value"])), "{sampled}");
    assert!(holds(&sampled["slope"], number(&exact["slope"]["value"])), "{sampled}");
    for name in ["aleatoric_nats", "mutual_information_bits", "normalised"] {
        assert!(
            holds(&sampled["information"][name], number(&exact["information"][name]["value"])),
            "{name}: {sampled}"
        );
    }
    let rest = |value: &Value| -> Vec<Value> {
        let mut all = value["one_vs_rest"].as_array().unwrap().clone();
        all.sort_by_key(|one| one["class"].as_u64());
        all
    };
    let error = number(&exact["value"]);
    let exact = ask("hardness", "mnist", &[&tau[..], &["--tolerance", "1e-2"]].concat());
    let sampled = ask("hardness", "mnist", &[&tau[..], &samples].concat());
    for (exact, sampled) in rest(&exact).iter().zip(rest(&sampled)) {
        let truth = number(&exact["one_vs_rest"]["value"]);
        assert!(exact["class"] == sampled["class"] && holds(&sampled["one_vs_rest"], truth), "{exact} {sampled}");
    }
    for i in 0..10 {
        for j in (0..10).filter(|&j| j != i) {
            let figure = serde_json::json!({ "interval": sampled["pairwise_intervals"][i][j] });
            assert!(holds(&figure, number(&exact["pairwise"][i][j])), "{i} {j}: {figure}");
        }
    }
    // Smoothing has no integral: asked for, it samples.
    let smoothed = ask("bayes-error", "mnist", &[&tau[..], &["--samples", "300", "--smoothing", "3"]].concat());
    assert!(smoothed["method"] == "sampling" && number(&smoothed["value"]) > error, "{smoothed}");
}

#[test]
fn curves_of_integrals_and_wrong_limits() {
    let rows = json(&["bayes-error", "mnist", "--curve", "0.9:1.1:2", "--tolerance", "1e-3", "--json"]);
    let one = json(&["bayes-error", "mnist", "--tau", "1.1", "--tolerance", "1e-3", "--json"]);
    assert_eq!(rows["curve"][1]["bayes_error"]["value"], one["value"]);
    assert!(number(&rows["curve"][0]["slope"]["value"]) > 0.0 && rows["curve"].as_array().unwrap().len() == 2);
    for wrong in ["1:2", "2:1:5", "0:1:5", "1:2:1", "a:2:3"] {
        assert!(fail(2, &["bayes-error", "mnist", "--curve", wrong]).contains("0.5:1.5:11"), "{wrong}");
    }
    assert!(fail(1, &["bayes-error", "tests/worlds/animals", "--samples", "1"]).contains("two samples"));
    assert!(fail(1, &["tau", "tests/worlds/animals", "--target", "20%", "--budget", "0"]).contains("budget"));
    let place = tempfile::tempdir().unwrap();
    let problem = place.path().join("problem.json");
    std::fs::write(&problem, r#"{"means":[[0],[1]],"cov_diag":[1]}"#).unwrap();
    assert!(fail(1, &["hardness", text(&problem), "--samples", "9"]).contains("draw images of an oracle"));
    let out = place.path().join("data");
    assert!(fail(1, &["export", "mnist", "--samples", "9", "--out", text(&out)]).contains("--target"));
    // Where τ is computed, nothing limits a search for it.
    for (limit, value) in [("--tolerance", "0.1"), ("--samples", "9"), ("--budget", "5")] {
        let export = ["export", "mnist", "--target", "5%", limit, value, "--device", "cpu", "--out", text(&out)];
        assert!(fail(1, &export).contains("leave them out") && !out.exists());
    }
}

#[test]
fn an_experiment_takes_a_target_and_keeps_how_tau_was_found() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let spec = place.path().join("spec.toml");
    let world = |more: &str| {
        let grid = "[grid]\narchitectures = ['linear']\ntrain_sizes = [100]\nseeds = [0]\n";
        std::fs::write(&spec, format!("name = 'aimed'\n[world]\noracle = '{}'\n{more}\n{grid}", text(&oracle)))
            .unwrap();
    };
    let run = place.path().join("run");
    let plan = ["plan", text(&spec), "--out", text(&run), "--device", "cpu", "--json"];
    world("target = 0.2\ntau = 0.9");
    assert!(fail(1, &plan).contains("give one of them"));
    world("target = 0.2");
    json(&plan);
    let record = || std::fs::read_to_string(run.join("run.toml")).unwrap();
    let first = record();
    let found: toml::Table = toml::from_str(&first).unwrap();
    let world = &found["world"];
    let (tau, target) = (world["tau"].as_float().unwrap(), world["target"].as_float().unwrap());
    let interval: Vec<f64> =
        world["found"]["interval"].as_array().unwrap().iter().map(|end| end.as_float().unwrap()).collect();
    let truth = -tiny::GAUSSIAN_DISTANCE / (2.0 * Normal::standard().inverse_cdf(0.2));
    let half = 0.5 * (interval[1] - interval[0]);
    assert!(target == 0.2 && interval[0] < tau && tau < interval[1], "{first}");
    assert!((interval[0] - half..=interval[1] + half).contains(&truth) && half < 0.05 * tau, "{truth}: {first}");
    assert_eq!(world["found"]["method"].as_str(), Some("sampling"));
    // The same spec again is the same run.
    json(&plan);
    assert_eq!(record(), first);
}

/// All files below a folder whose names begin so.
fn files(folder: &Path, begin: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap()) {
        if entry.path().is_dir() {
            found.extend(files(&entry.path(), begin));
        } else if entry.file_name().to_string_lossy().starts_with(begin) {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[test]
fn draws_are_kept_in_the_cache_and_torn_ones_are_made_again() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let cache = place.path().join("cache");
    let curve = ["bayes-error", text(&oracle), "--curve", "0.8:1.6:3", "--samples", "300", "--device", "cpu", "--json"];
    let run = |arguments: &[&str]| {
        let output = bayescope(arguments).env("XDG_CACHE_HOME", &cache).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        (serde_json::from_slice::<Value>(&output.stdout).unwrap()["curve"].clone(), said)
    };
    let (first, _) = run(&curve);
    let pieces = files(&cache, "tau-");
    let written = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
    let before: Vec<_> = pieces.iter().map(|path| written(path)).collect();
    assert!(!pieces.is_empty());
    assert_eq!(run(&curve).0, first);
    assert!(pieces.iter().zip(&before).all(|(path, before)| written(path) == *before), "they were read");
    let whole = std::fs::read(&pieces[0]).unwrap();
    std::fs::write(&pieces[0], &whole[..whole.len() / 2]).unwrap();
    let (again, said) = run(&curve);
    assert!(again == first && said.contains("torn"), "{said}");
    assert_eq!(std::fs::read(&pieces[0]).unwrap(), whole);
    // Another world's ticket: nothing of this folder is used, and the answer is the same.
    let ticket = files(&cache, "draws.json").remove(0);
    std::fs::write(&ticket, "{}").unwrap();
    let (without, said) = run(&curve);
    assert!(without == first && said.contains("not kept"), "{said}");
    let fresh = place.path().join("fresh");
    let alone = bayescope(&[&curve[..], &["--reproducible"]].concat()).env("XDG_CACHE_HOME", &fresh).output().unwrap();
    assert!(alone.status.success() && files(&fresh, "tau-").is_empty());
}

#[test]
fn a_second_export_of_a_world_draws_images_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let (cache, none) = (place.path().join("cache"), place.path().join("none"));
    let export = |name: &str, more: &[&str], cache: &Path| -> Value {
        let out = place.path().join(name);
        let words = ["export", text(&oracle), "--train", "0", "--test", "40", "--device", "cpu", "--json", "--out"];
        let output =
            bayescope(&[&words[..], &[text(&out)], more].concat()).env("XDG_CACHE_HOME", cache).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let written = || -> Vec<_> {
        let of = |path: std::path::PathBuf| (std::fs::metadata(&path).unwrap().modified().unwrap(), path);
        files(&cache, "tau-").into_iter().map(of).collect()
    };
    let first = export("first", &["--tau", "1.3", "--seed", "1"], &cache);
    let kept = written();
    // 1,024 draws in rounds of 64, each kept once.
    assert_eq!(kept.len(), 16, "{kept:?}");
    assert!(holds(&first["world"]["bayes_error"], error_at(1.3)), "{}", first["world"]);
    // Other images, and labels of another posterior, of the same draws.
    let second = export("second", &["--tau", "1.3", "--seed", "2"], &cache);
    assert_eq!(second["world"], first["world"]);
    assert_ne!(second["splits"], first["splits"]);
    let smoothed = export("smoothed", &["--tau", "1.3", "--smoothing", "2"], &cache);
    assert!(number(&smoothed["world"]["bayes_error"]["value"]) > number(&first["world"]["bayes_error"]["value"]));
    assert_eq!(written(), kept, "nothing was drawn");
    // Nothing is kept where only arguments count, and 64 bits take nothing of what 32 have left.
    for (name, more, cache) in [("alone", &["--reproducible"][..], &none), ("wide", &["--precision", "f64"], &cache)] {
        let manifest = export(name, &[&["--tau", "1.3", "--seed", "1"], more].concat(), cache);
        let of = |manifest: &Value| number(&manifest["world"]["bayes_error"]["value"]);
        assert!((of(&manifest) - of(&first)).abs() < 1e-4, "{name}: {manifest}");
    }
    assert!(written() == kept && files(&none, "tau-").is_empty());
    // τ of a target is the world's, too: another seed of the images finds it again.
    let aimed = ["1", "2"].map(|seed| {
        let manifest =
            export(&format!("aimed{seed}"), &["--target", "0.15", "--tolerance", "0.1", "--seed", seed], &cache);
        (manifest["tau"].clone(), manifest["world"].clone(), written())
    });
    assert!(aimed[0] == aimed[1] && aimed[0].2.len() > kept.len());
}
