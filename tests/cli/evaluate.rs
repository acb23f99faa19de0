//! `evaluate`: an exported world, and classifiers that come back as predictions and as networks.

use std::path::Path;

use bayescope::data::{Column, Input, Split, Stored, open_split, read_logp, write_atomically, write_table};
use serde_json::Value;
use tract_onnx::pb::tensor_proto::DataType;

use crate::common::tiny;
use crate::graph::{array, model, node, save, say, value};
use crate::run::{fail, json, succeed, text};

/// A world of two Gaussian classes, its test images, and the log-odds of each.
struct World {
    place: tempfile::TempDir,
    x: Vec<f32>,
    odds: Vec<f64>,
    labels: Vec<i64>,
}

impl World {
    fn new(images: usize) -> Self {
        let place = tempfile::tempdir().unwrap();
        let oracle = tiny::gaussian_file(place.path());
        let out = place.path().join("data");
        let n = images.to_string();
        succeed(&["export", text(&oracle), "--train", "0", "--test", &n, "--out", text(&out), "--device", "cpu"]);
        let Input::World(test) = open_split(&out, Split::Test, None).unwrap() else { panic!("pixels") };
        let (logp, _) = read_logp(&out.join("test.npz")).unwrap();
        let odds = logp.chunks(2).map(|logp| logp[0] - logp[1]).collect();
        Self { place, x: test.x, odds, labels: test.y.unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join(name)
    }

    /// Logits [n, 2] whose log-odds are `share` of the truth.
    fn logits(&self, share: f64) -> Vec<f64> {
        self.odds.iter().flat_map(|odds| [share * odds, 0.0]).collect()
    }

    fn save(&self, name: &str, logits: &[f64]) -> std::path::PathBuf {
        let path = self.path(name);
        let column = [Column { name: "logits", stored: Stored::F64, shape: vec![2] }];
        write_table(&path, logits.len() / 2, &column, &mut |_, rows| Ok(logits[2 * rows.start..2 * rows.end].to_vec()))
            .unwrap();
        path
    }

    fn judge(&self, more: &[&str]) -> Value {
        json(&[&["evaluate", text(&self.path("data")), "--json"], more].concat())
    }
}

fn sigmoid(t: f64) -> f64 {
    1.0 / (1.0 + (-t).exp())
}

/// Mean H(p) and KL(p‖q) of log-odds t and `share`·t, nats.
fn parts(odds: &[f64], share: f64) -> (f64, f64) {
    let log = |t: f64| -(-t).exp().ln_1p();
    let of = |t: &f64| {
        let p = [sigmoid(*t), sigmoid(-t)];
        let (h, c) = (p[0] * log(*t) + p[1] * log(-t), p[0] * log(share * t) + p[1] * log(-share * t));
        (-h, h - c)
    };
    let n = odds.len() as f64;
    odds.iter().map(of).fold((0.0, 0.0), |a, b| (a.0 + b.0 / n, a.1 + b.1 / n))
}

#[test]
fn predictions_of_a_tempered_classifier_cost_what_the_formula_says() {
    let world = World::new(3000);
    let file = world.save("tempered.npz", &world.logits(0.7));
    let report = world.path("report");
    let found = world.judge(&["--predictions", text(&file), "--report", text(&report)]);
    let number = |key: &str| found[key].as_f64().unwrap();
    let (aleatoric, epistemic) = parts(&world.odds, 0.7);
    assert!(
        (number("aleatoric") - aleatoric).abs() < 1e-9 && (number("epistemic") - epistemic).abs() < 1e-9,
        "{found}"
    );
    assert!((number("cross_entropy") - aleatoric - epistemic).abs() < 1e-9);
    // Its decisions are the Bayes decisions: nothing is lost but confidence.
    assert!(number("gap").abs() < 1e-12 && (number("expected_error") - number("bayes_error")).abs() < 1e-12);
    let wrong = world.odds.iter().zip(&world.labels).filter(|(odds, label)| (**odds < 0.0) != (**label == 1)).count();
    assert!((number("error") - wrong as f64 / 3000.0).abs() < 1e-12);
    assert_eq!((found["n"].as_u64(), found["alarms"].as_array().unwrap().len()), (Some(3000), 0), "{found}");
    let said = std::fs::read_to_string(report.join("report.md")).unwrap();
    assert!(said.contains("tempered"), "{said}");
    let drawn = std::fs::read_dir(&report)
        .unwrap()
        .filter(|f| f.as_ref().unwrap().path().extension().is_some_and(|e| e == "svg"));
    assert!(drawn.count() >= 3);
    // Two models, side by side.
    let other = world.save("guess.npz", &world.logits(0.1));
    let both = world.judge(&["--predictions", text(&file), text(&other)]);
    assert_eq!(both.as_array().unwrap().len(), 2);
    let told = succeed(&["evaluate", text(&world.path("data")), "--predictions", text(&file), text(&other)]);
    assert!(told.contains("tempered") && told.contains("guess"), "{told}");
    // Five of the worst by KL and by gap, and the figures of both models below each other.
    let worst = told.lines().filter(|line| line.starts_with("  tempered") && line.contains(" test/")).count();
    assert!(worst == 10 && told.lines().any(|line| line.starts_with("  gap (pp) ")), "{told}");
}

#[test]
fn a_network_is_run_on_the_float_images() {
    let world = World::new(1500);
    // The log-odds of this world are a sum of pixels: a linear network can say 0.7 of them.
    let rows: Vec<(&[f32], f64)> = world.x.chunks(16).zip(world.odds.iter().copied()).collect();
    let inside = |d: usize| d / 4 >= 2 || d % 4 >= 2;
    let sum = |x: &[f32]| (0..16).filter(|&d| inside(d)).map(|d| f64::from(x[d])).sum::<f64>();
    let (x, odds) = rows.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).unwrap();
    let slope = odds / sum(x);
    let weights: Vec<f32> = (0..16).flat_map(|d| [if inside(d) { (0.7 * slope) as f32 } else { 0.0 }, 0.0]).collect();
    let nodes = vec![node("Flatten", &["image"], "flat", vec![]), node("MatMul", &["flat", "w"], "scores", vec![])];
    let image = value("image", DataType::Float, &[-1, 1, 4, 4]);
    let mut network = model(image, nodes, &["scores"], vec![array("w", &[16, 2], &weights)]);
    let file = world.path("mine.onnx");
    save(&network, &file);
    let refused = fail(1, &["evaluate", text(&world.path("data")), "--onnx", text(&file)]);
    assert!(refused.contains("mine.onnx") && refused.contains("give --normalisation"), "{refused}");
    let asked = world.judge(&["--onnx", text(&file), "--normalisation", "as-is"]);
    let (_, epistemic) = parts(&world.odds, 0.7);
    assert!((asked["epistemic"].as_f64().unwrap() - epistemic).abs() < 1e-5, "{asked} {epistemic}");
    say(&mut network, "bayescope.normalisation", "as-is");
    save(&network, &file);
    assert_eq!(world.judge(&["--onnx", text(&file)])["epistemic"], asked["epistemic"]);
    let told = succeed(&["evaluate", text(&world.path("data")), "--onnx", text(&file)]);
    for fact in ["A network of 32 parameters", "[N, C, H, W], scaled by 'as-is'", "taken as logits, by looking at them"]
    {
        assert!(told.contains(fact), "{fact}: {told}");
    }
    let said = succeed(&["evaluate", text(&world.path("data")), "--onnx", text(&file), "--kind", "logits"]);
    assert!(said.contains("taken as logits") && !said.contains("by looking at them"), "{said}");
    // An archive without its manifest does not say the range of its pixels, and [0, 1] is not guessed.
    let bare = world.path("bare.npz");
    std::fs::copy(world.path("data").join("test.npz"), &bare).unwrap();
    let refused = fail(1, &["evaluate", text(&bare), "--onnx", text(&file), "--normalisation", "zero-to-one"]);
    assert!(refused.contains("'zero-to-one' needs the range") && refused.contains("dataset.json"), "{refused}");
    succeed(&["evaluate", text(&bare), "--onnx", text(&file), "--normalisation", "as-is"]);
}

#[test]
fn what_no_honest_model_has_is_told() {
    let world = World::new(2000);
    // It saw the labels of every fifth test image.
    let mut leaked = world.logits(0.7);
    for (i, label) in world.labels.iter().enumerate().filter(|(i, _)| i % 5 == 0) {
        leaked[2 * i] = if *label == 0 { 9.0 } else { -9.0 };
    }
    let alarms = |logits: &[f64], name: &str| {
        let found = world.judge(&["--predictions", text(&world.save(name, logits))]);
        found["alarms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|alarm| alarm["message"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(!alarms(&leaked, "leaked.npz").is_empty());
    assert!(!alarms(&world.logits(1.0), "copied.npz").is_empty(), "it knows the posteriors themselves");
    let mut shifted = world.logits(0.9);
    shifted.rotate_right(2);
    assert!(!alarms(&shifted, "shifted.npz").is_empty(), "rows are off by one");
    assert!(alarms(&world.logits(0.8), "honest.npz").is_empty());
}

#[test]
fn what_cannot_be_judged_is_refused_with_the_row() {
    let world = World::new(60);
    let refused = |path: &Path| fail(1, &["evaluate", text(&world.path("data")), "--predictions", text(path)]);
    let short = refused(&world.save("short.npz", &world.logits(0.7)[..100]));
    assert!(short.contains("short.npz") && short.contains("50") && short.contains("60"), "{short}");
    let mut broken = world.logits(0.7);
    broken[41] = f64::NAN;
    assert!(refused(&world.save("nan.npz", &broken)).contains("20"));
    assert!(refused(&world.path("nowhere.npz")).contains("nowhere.npz"));
    let csv = world.path("words.csv");
    write_atomically(&csv, |out| out.write_all(b"id,cat,dog\n0,0.5,0.5\n")).unwrap();
    assert!(refused(&csv).contains("words.csv"));
    // Images that were changed after the export are those of no known world.
    let archive = world.path("data").join("test.npz");
    let mut bytes = std::fs::read(&archive).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&archive, bytes).unwrap();
    let file = world.save("fine.npz", &world.logits(0.7));
    assert!(refused(&file).contains("SHA-256"));
}
