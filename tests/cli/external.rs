//! `external start`, and `summary` and `watch` of what another program logs.

use bayescope::data::write_npy;
use serde_json::Value;

use crate::common::tiny;
use crate::run::{fail, json, succeed, text};

/// Files of somebody else are not written over, and a start that was killed goes on.
#[test]
fn a_run_begins_in_a_folder_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let mine = place.path().join("mine");
    std::fs::create_dir_all(mine.join("test")).unwrap();
    std::fs::write(mine.join("test/x.npy"), "mine").unwrap();
    std::fs::write(mine.join("summary.json"), "mine").unwrap();
    let start = ["external", "start", text(&oracle), "--test", "4", "--device", "cpu", "--out"];
    let begin = |command: &[&str]| fail(1, &[command, &[text(&mine)]].concat());
    for command in [
        &start[..],
        &["run", "scaling-quick", "--device", "cpu", "--out"],
        &["plan", "scaling-quick", "--device", "cpu", "--out"],
    ] {
        let said = begin(command);
        assert!(said.contains("is not empty") && said.contains("choose a new folder"), "{said}");
        assert_eq!(std::fs::read_dir(&mine).unwrap().count(), 2);
        assert_eq!(std::fs::read_to_string(mine.join("test/x.npy")).unwrap(), "mine");
    }
    // Killed while it drew: what it had made is made again.
    let run = place.path().join("killed");
    std::fs::create_dir_all(run.join("test")).unwrap();
    std::fs::create_dir_all(run.join("predictions")).unwrap();
    std::fs::write(run.join("test/x.npy"), "half").unwrap();
    std::fs::write(run.join(".external-start"), "").unwrap();
    let again = [&start[..], &[text(&run)]].concat();
    succeed(&again);
    assert!(run.join("run.toml").is_file() && !run.join(".external-start").exists());
    succeed(&again);
}

#[test]
fn a_world_without_density_is_refused_in_the_words_of_an_export() {
    let place = tempfile::tempdir().unwrap();
    let (oracle, out) = (tiny::gaussian_file(place.path()), place.path().join("out"));
    let of = |command: &[&str]| {
        let more = [text(&oracle), "--tau", "0", "--test", "4", "--device", "cpu", "--out", text(&out)];
        let said = fail(1, &[command, &more].concat());
        assert!(!out.exists(), "{said}");
        said.lines().find(|line| line.contains("τ = 0")).map(str::to_owned)
    };
    let started = of(&["external", "start"]);
    assert!(started.as_ref().is_some_and(|why| why.contains("choose a τ above 0")), "{started:?}");
    assert_eq!(started, of(&["export"]));
}

/// A file that is not called by a step is counted by every command that reads the run.
fn misnamed_files_are_told(run: &std::path::Path) {
    std::fs::write(run.join("predictions/best.pred"), "").unwrap();
    for command in [&["summary", text(run)][..], &["watch", text(run), "--once"]] {
        let told = succeed(command);
        assert!(
            told.contains("0 records") && told.contains("Not read: 1 file") && told.contains("best.pred"),
            "{told}"
        );
    }
    assert_eq!(json(&["summary", text(run), "--json"])["misnamed"]["count"], 1);
    std::fs::remove_file(run.join("predictions/best.pred")).unwrap();
}

#[test]
fn another_program_takes_part_from_the_command_line() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let run = place.path().join("theirs");
    let start = |more: &[&str]| -> Vec<String> {
        let all = ["external", "start", text(&oracle), "--out", text(&run), "--test", "40", "--device", "cpu"];
        all.iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    let words = |owned: &[String]| -> Value { json(&owned.iter().map(String::as_str).collect::<Vec<_>>()) };
    let spec = words(&start(&["--json"]));
    assert_eq!((&spec["name"], &spec["test"]["images"]), (&"theirs".into(), &40.into()));
    let empty = succeed(&["summary", text(&run)]);
    assert!(empty.contains("no record of predictions yet"), "{empty}");

    misnamed_files_are_told(&run);

    // The world's own posteriors, as logits: nothing is left to learn.
    let logits = |file: &std::path::Path| -> Vec<f64> {
        let p: Vec<f64> = npyz::NpyFile::new(std::fs::File::open(file).unwrap()).unwrap().into_vec().unwrap();
        p.iter().map(|p| p.ln().max(-700.0)).collect()
    };
    let values = logits(&run.join("test/posterior.npy"));
    let array = place.path().join("array.npy");
    write_npy::<f64>(&array, &[40, 2], |put| put(&values)).unwrap();
    let record = [b"{\"epoch\": 2}\n".as_slice(), &std::fs::read(array).unwrap()].concat();
    std::fs::write(run.join("predictions/7.pred"), record).unwrap();
    let found = json(&["summary", text(&run), "--json"]);
    let step = &found["steps"][0];
    assert_eq!((&step["step"], &step["epoch"]), (&7.into(), &2.0.into()));
    assert!(step["epistemic"]["value"].as_f64().unwrap() < 1e-12, "{step}");
    let number = |value: &Value| value.as_f64().unwrap();
    let same = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a}, {b}");
    same(number(&step["expected_error"]["value"]), number(&step["bayes_error"]["value"]));
    // A step and the last figures have one interval of the Bayes error.
    let (error, right) = (&step["bayes_error"]["interval"], &found["last"]["bayes_accuracy"]["interval"]);
    same(number(&error[0]), 1.0 - number(&right[1]));
    same(number(&error[1]), 1.0 - number(&right[0]));
    assert!(found["last"]["ece"]["interval"][1].as_f64().is_some());
    let table = succeed(&["summary", text(&run), "--csv"]);
    assert_eq!(table.lines().count(), 2, "{table}");
    let seen = json(&["watch", text(&run), "--once", "--json"]);
    assert_eq!((&seen["records"], &seen["finished"], &seen["last"]), (&1.into(), &false.into(), step));
    std::fs::write(run.join("finished"), "").unwrap();
    // It ends by itself.
    let last = succeed(&["watch", text(&run)]);
    assert!(last.contains("step 7: L"), "{last}");
    let figures = place.path().join("figures");
    json(&["summary", text(&run), "--json", "--figures", text(&figures)]);
    for name in ["external-loss.svg", "external-error.png", "external-calibration.csv", "figures.md"] {
        assert!(figures.join(name).is_file(), "{name}");
    }
    assert!(fail(1, &["resume", text(&run)]).contains("is an external run"));
    assert!(fail(1, &["plan", text(&run)]).contains("is an external run"));
    for way in ["--predictions", "--uncertainty"] {
        let said = fail(1, &["evaluate", text(&run), way, "mine.npz"]);
        assert!(said.contains("is an external run") && said.contains("bayescope summary"), "{said}");
    }
    let other = start(&["--seed", "1"]);
    let said = fail(1, &other.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(said.contains("other test images"), "{said}");
}

/// That of `tau` and `export`, found again where the run goes on.
#[test]
fn a_target_sets_the_temperature_of_a_run() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("theirs");
    let start = ["external", "start", "mnist", "--test", "8", "--device", "cpu", "--out", text(&run)];
    let with = |more: &[&'static str]| [&start[..], more].concat();
    assert!(fail(2, &with(&["--target", "5%", "--tau", "1.1"])).contains("cannot be used with"));
    assert!(fail(1, &with(&["--samples", "9"])).contains("search for --target; --test is the number of images"));
    assert!(fail(1, &with(&["--target", "5%", "--samples", "9"])).contains("leave them out"));
    assert!(!run.exists());
    let (spec, found) =
        (json(&with(&["--target", "5%", "--json"])), json(&["tau", "mnist", "--target", "5%", "--json"]));
    assert!(found["tau"].is_f64() && spec["world"]["tau"] == found["tau"], "{spec}");
    let again = succeed(&with(&["--target", "0.05"]));
    assert!(again.contains(&format!("τ = {}, for a Bayes error of 5.0000 %", found["tau"])), "{again}");
}

/// As the panel *Monitor* warns of them.
#[test]
fn labels_that_leaked_and_probabilities_of_0_are_told_in_words() {
    const IMAGES: usize = 400;
    let place = tempfile::tempdir().unwrap();
    let (oracle, run) = (tiny::gaussian_file(place.path()), place.path().join("theirs"));
    let images = IMAGES.to_string();
    succeed(&["external", "start", text(&oracle), "--out", text(&run), "--test", &images, "--device", "cpu"]);
    let labels = std::fs::File::open(run.join("test/y.npy")).unwrap();
    let labels: Vec<i64> = npyz::NpyFile::new(labels).unwrap().into_vec().unwrap();
    let record = |step: usize, values: &[f64]| {
        let array = place.path().join("array.npy");
        write_npy::<f64>(&array, &[IMAGES, 2], |put| put(values)).unwrap();
        let record = [b"{}\n".as_slice(), &std::fs::read(array).unwrap()].concat();
        std::fs::write(run.join(format!("predictions/{step}.pred")), record).unwrap();
    };
    // Who copies the labels knows more than can be known: the Bayes error is 10.6 %.
    let mut copied: Vec<f64> = labels.iter().flat_map(|&y| if y == 0 { [8.0, -8.0] } else { [-8.0, 8.0] }).collect();
    record(1, &copied);
    copied.iter_mut().take(6).filter(|logit| **logit < 0.0).for_each(|logit| *logit = f64::NEG_INFINITY);
    record(2, &copied);
    let (summary, watched) = (succeed(&["summary", text(&run)]), succeed(&["watch", text(&run), "--once"]));
    for words in
        ["At step 1 the ", "test labels may have leaked into its training.", "Probabilities of 0 at step 2: 3. "]
    {
        assert!(summary.contains(words) && watched.contains(words), "{words}\n{summary}\n{watched}");
    }
    let warning = |text: &str| text.lines().find(|line| line.contains("leaked")).map(|line| line.trim().to_owned());
    assert_eq!(warning(&summary), warning(&watched));
    assert!(summary.contains("  3 times q = 0\n") && summary.matches("q = 0").count() == 1, "{summary}");
    let found = json(&["summary", text(&run), "--json"]);
    let table = succeed(&["summary", text(&run), "--csv"]);
    let mut rows = table.lines();
    assert!(rows.next().unwrap().ends_with(",zeros,label_chance"), "{table}");
    for (row, step) in rows.zip(found["steps"].as_array().unwrap()) {
        let chance: f64 = row.rsplit(',').next().unwrap().parse().unwrap();
        let told = step["label_chance"].as_f64().unwrap();
        assert!(chance < 1e-10 && (chance - told).abs() <= 1e-9 * told, "{row}");
    }
}
