//! `oracle train`: a small oracle from a folder of pictures, killed in the middle, resumed, used.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::common::pictures::pictures;
use crate::run::{bayescope, fail, json, succeed, text};

const GLOW: &str = "[model]\nhidden = 8\nlevels = 2\nsteps = 2";
const TARFLOW: &str =
    "[tarflow]\npatch = 4\nchannels = 64\nblocks = 2\nlayers = 1\npixels = { noise = 'gaussian', std = 0.1 }";

fn spec(folder: &Path, model: &str, epochs: usize) -> std::path::PathBuf {
    let path = folder.join(format!("spec{epochs}.toml"));
    let text = format!(
        "name = 'halves'\n[data]\npath = 'data'\npad_to = 8\nheld_out = 16\nmirror = false\n{model}\n\
         [training]\nepochs = {epochs}\nbatch = 16\nlearning_rate = 3e-3\nwarm_up_images = 64\nseed = 3\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn train(spec: &Path, out: &Path) -> Vec<serde_json::Value> {
    let stdout = succeed(&["oracle", "train", text(spec), "--out", text(out), "--device", "cpu", "--json"]);
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_killed_glow_goes_on_and_ends_in_the_same_oracle() {
    a_killed_run_goes_on_and_ends_in_the_same_oracle(GLOW);
}

#[test]
fn a_killed_tarflow_goes_on_and_ends_in_the_same_oracle() {
    a_killed_run_goes_on_and_ends_in_the_same_oracle(TARFLOW);
}

fn a_killed_run_goes_on_and_ends_in_the_same_oracle(model: &str) {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    let spec = spec(folder.path(), model, 6);
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let events = train(&spec, &whole);
    let nll: Vec<f64> =
        events.iter().filter(|e| e["event"] == "epoch").map(|e| e["train_nll"].as_f64().unwrap()).collect();
    assert_eq!(nll.len(), 6);
    assert!(nll[5] < nll[0], "training did not lower the NLL: {nll:?}");

    // Killed (SIGKILL) after the third epoch is reported.
    let args = ["oracle", "train", text(&spec), "--out", text(&broken), "--device", "cpu", "--json"];
    let mut child = bayescope(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    assert!(seen.any(|e| e["event"] == "epoch" && e["epoch"] == 3));
    child.kill().unwrap();
    child.wait().unwrap();
    let events = train(&spec, &broken);
    let resumed = events[0]["resumed_at"].as_u64().unwrap();
    assert!((3..6).contains(&resumed), "resumed at {resumed}");

    let weights = |run: &Path| std::fs::read(run.join("oracle/weights.safetensors")).unwrap();
    assert!(weights(&whole) == weights(&broken), "the resumed run ends in other weights");

    // Asked to stop within the second epoch.
    #[cfg(unix)]
    {
        let stopped = folder.path().join("stopped");
        let args = ["oracle", "train", text(&spec), "--out", text(&stopped), "--device", "cpu", "--json"];
        let mut child = bayescope(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("\"step\",\"epoch\":2,")));
        let id = child.id().to_string();
        assert!(std::process::Command::new("sh").args(["-c", "kill -TERM $0", &id]).status().unwrap().success());
        lines.for_each(drop);
        let ended = child.wait_with_output().unwrap();
        let message = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.code() == Some(75) && message.contains("the same command goes on from here"), "{message}");
        let begun = &train(&spec, &stopped)[0];
        assert!(begun["resumed_at"].as_u64() >= Some(1), "{begun}");
        assert!(weights(&whole) == weights(&stopped), "the run that was stopped ends in other weights");
    }

    asked_again_from_elsewhere(folder.path(), "spec6.toml", "whole");
    let oracle = whole.join("oracle");
    let info = json(&["oracle", "info", text(&oracle), "--json"]);
    assert_eq!(info["class_names"], serde_json::json!(["left", "right"]));
    assert_eq!(info["training"]["spec"]["training"]["seed"], 3);
    let image = folder.path().join("data/left/05.png");
    let report = json(&["posterior", text(&oracle), text(&image), "--json", "--device", "cpu"]);
    assert_eq!(report["images"][0]["decision"], 0);
}

/// A run that is finished, asked for from another working folder, by its spec and by the spec that it keeps, stays as it is:
/// the day and the device of its oracle are those of the training.
fn asked_again_from_elsewhere(folder: &Path, spec: &str, run: &str) {
    let place = folder.join(run).join("oracle/oracle.json");
    let mut info: serde_json::Value = serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
    (info["training"]["finished"], info["training"]["device"]) = ("2020-02-29".into(), "another one".into());
    std::fs::write(&place, info.to_string()).unwrap();
    for spec in [spec, &format!("{run}/train.toml")] {
        let ended = bayescope(&["oracle", "train", spec, "--out", run, "--device", "cpu", "--json"])
            .current_dir(folder)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && told.contains("; all 6 epochs are trained"), "{told}");
        assert_eq!(std::fs::read_to_string(&place).unwrap(), info.to_string());
    }
}

/// The second of three classes is missing in the test part: its images must not be taken for those of the second.
#[test]
fn a_test_part_that_lacks_a_class_is_scored_by_names() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for (class, level) in
        [("train/cat", 20), ("train/dog", 110), ("train/wild", 200), ("test/cat", 20), ("test/wild", 200)]
    {
        let class = data.join(class);
        std::fs::create_dir_all(&class).unwrap();
        for i in 0..30u32 {
            let noisy = |x: u32, y: u32| image::Luma([level + ((i * 37 + x * 11 + y * 23 + x * y * 5) % 40) as u8]);
            image::GrayImage::from_fn(8, 8, noisy).save(class.join(format!("{i:02}.png"))).unwrap();
        }
    }
    let run = folder.path().join("run");
    train(&spec(folder.path(), GLOW, 6), &run);
    let oracle = run.join("oracle");
    let tested = &json(&["oracle", "info", text(&oracle), "--json"])["training"]["test"];
    assert_eq!(tested["images"], 60);
    assert!(tested["accuracy"].as_f64().unwrap() > 0.95, "{tested}");
    let asked = ["oracle", "validate", text(&oracle), "--data", text(&data), "--device", "cpu", "--json"];
    let validated = json(&asked);
    assert!(validated["accuracy"].as_f64().unwrap() > 0.95, "{validated}");
    let notes = validated["corpus"]["notes"].to_string();
    assert!(notes.contains("no image: dog") && !notes.contains("by number"), "{notes}");
}

#[test]
fn a_run_goes_on_with_no_other_images() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    let (spec, out) = (spec(folder.path(), GLOW, 4), folder.path().join("run"));
    let args = ["oracle", "train", text(&spec), "--out", text(&out), "--device", "cpu", "--json"];
    let mut child = bayescope(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("\"epoch\",\"epoch\":1,")));
    child.kill().unwrap();
    child.wait().unwrap();
    let [left, right, more] =
        ["left/05.png", "right/05.png", "right/99.png"].map(|name| folder.path().join("data").join(name));
    let (old, new) = (std::fs::read(&left).unwrap(), std::fs::read(&right).unwrap());
    let refused = || {
        let message = fail(1, &args);
        assert!(message.contains("not what this training was begun with") && message.contains("data"), "{message}");
    };
    std::fs::write(&left, &new).unwrap();
    refused();
    std::fs::write(&left, &old).unwrap();
    std::fs::write(&more, &new).unwrap();
    refused();
    std::fs::remove_file(&more).unwrap();
    assert!(train(&spec, &out)[0]["resumed_at"].as_u64().unwrap() >= 1);
    // Nor is a finished run told to be of images that came later.
    std::fs::write(&left, &new).unwrap();
    refused();
}

/// bfloat16 products, half-precision ones (whose gradients are scaled), and a batch in pieces one after the other follow the
/// 32-bit run closely.
#[test]
fn narrow_products_and_pieces_train_alike() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    let nll = |name: &str, model: &str, pieces: &str| {
        let spec = spec(folder.path(), model, 3);
        let text = std::fs::read_to_string(&spec).unwrap().replace("batch = 16", &format!("batch = 16\n{pieces}"));
        std::fs::write(&spec, text).unwrap();
        let events = train(&spec, &folder.path().join(name));
        let epochs = events.iter().filter(|e| e["event"] == "epoch");
        epochs.map(|e| e["train_nll"].as_f64().unwrap()).collect::<Vec<f64>>()
    };
    let exact = nll("f32", TARFLOW, "");
    assert!(exact[2] < exact[0] - 5.0, "{exact:?}");
    for (name, products, pieces) in [("bf16", "bf16", ""), ("f16", "f16", ""), ("pieces", "f32", "accumulate = 4")] {
        let close = nll(name, &format!("{TARFLOW}\nproducts = '{products}'"), pieces);
        let worst = exact.iter().zip(&close).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1.0, "{name}: {close:?} is not {exact:?}");
    }
}

#[test]
fn a_diverging_run_halves_its_rate_and_in_the_end_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    let spec = spec(folder.path(), GLOW, 2);
    let wild = std::fs::read_to_string(&spec).unwrap().replace("learning_rate = 3e-3", "learning_rate = 1e12");
    std::fs::write(&spec, wild).unwrap();
    let out = folder.path().join("wild");
    let message = fail(1, &["oracle", "train", text(&spec), "--out", text(&out), "--device", "cpu"]);
    assert!(message.contains("diverged") && message.contains("training.learning_rate"), "{message}");
}

#[test]
fn bad_specs_and_data_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("runs/run");
    let run = |name: &str, spec: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, spec).unwrap();
        fail(1, &["oracle", "train", text(&path), "--out", text(&out), "--device", "cpu"])
    };
    assert!(run("a.toml", "name = 'x'\n[data]\npath = 'nothing'").contains("nothing"));
    assert!(
        run("e.toml", "name = 'x'\ndata.path = '.'\ntarflow.blocks = 2\ntraining.lambda = 5.0")
            .contains("training.lambda")
    );
    assert!(run("b.toml", "name = 'x'\n[data]\npath = '.'\n[training]\nlearnig_rate = 1").contains("learnig_rate"));
    assert!(run("c.toml", "name = 'x'\n[data]\npath = '.'\n[training]\nepochs = 0").contains("epochs"));
    pictures(folder.path());
    let levels = "name = 'x'\n[data]\npath = 'data'\npad_to = 8\nheld_out = 8\n[model]\nlevels = 5";
    let other = folder.path().join("d.toml");
    std::fs::write(&other, levels).unwrap();
    let fresh = folder.path().join("fresh");
    let message = fail(1, &["oracle", "train", text(&other), "--out", text(&fresh), "--device", "cpu"]);
    assert!(message.contains("multiples of 32"), "{message}");
    // What cannot start leaves no folder.
    assert!(!folder.path().join("runs").exists() && !fresh.exists());
}
