//! ONNX files of PyTorch's two exporters against ONNX Runtime's numbers (tests/reference/onnx, made by its make.py), and
//! torchvision's ResNet-18 against its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]
#![cfg(feature = "onnx")]

#[path = "../common/mod.rs"]
mod common;
mod graph;
mod refused;
mod shown;

use std::path::PathBuf;

use bayescope::classifier::onnx::{KnownBy, Normalisation, OnnxClassifier, OnnxOptions, Scores};
use bayescope::data::ImageShape;
use bayescope::events::silent;
use bayescope::measure::log_softmax;
use serde_json::Value;
use tract_onnx::pb::tensor_proto::DataType;

use common::fill::{Filled, uniform};
use common::max_abs;
use common::reference::{numbers, path};
use common::table::{Table, Tolerance};

/// Their images.
const IMAGES: usize = 5;

fn fixture(name: &str) -> PathBuf {
    path(&format!("onnx/{name}.onnx"))
}

fn scores_json() -> Value {
    serde_json::from_slice(&std::fs::read(path("onnx/scores.json")).unwrap()).unwrap()
}

fn shape(value: &Value) -> ImageShape {
    let [channels, height, width] = [0, 1, 2].map(|i| value[i].as_u64().unwrap() as usize);
    ImageShape { channels, height, width }
}

/// `n` images of the formula, in [-1, 1) or [0, 1).
fn images(n: usize, shape: ImageShape, unit: bool) -> Vec<f32> {
    let scale = |u: f64| if unit { (u + 1.0) / 2.0 } else { u };
    uniform("input", 1, n * shape.dims()).into_iter().map(|u| scale(u) as f32).collect()
}

/// Images as they are.
fn as_is() -> OnnxOptions {
    OnnxOptions { input: Some(Normalisation::AsIs), ..OnnxOptions::default() }
}

fn open(name: &str, shape: ImageShape, classes: usize, options: &OnnxOptions) -> OnnxClassifier {
    OnnxClassifier::open(&fixture(name), Some(shape), classes, options).unwrap_or_else(|e| panic!("{e}"))
}

/// What is asked of a case so that it sees what ONNX Runtime saw.
fn options(case: &Value) -> OnnxOptions {
    let bytes = case["file"] == "bytes_nhwc17.onnx";
    let output = case["outputs"].as_array().and_then(|names| names.last()?.as_str()).map(str::to_owned);
    let (input, range) = ((!bytes).then_some(Normalisation::AsIs), Some([0.0, 1.0]));
    OnnxOptions { input, range, output, ..OnnxOptions::default() }
}

#[test]
fn every_file_gives_what_onnx_runtime_gives() {
    let json = scores_json();
    let mut table = Table::new("log q".into());
    for case in json["cases"].as_array().unwrap() {
        let file = case["file"].as_str().unwrap();
        if ["sigmoid17.onnx", "vit_dynamo23.onnx"].contains(&file) {
            continue;
        }
        let (shape, classes) = (shape(&case["shape"]), case["classes"].as_u64().unwrap() as usize);
        let network = open(file.trim_end_matches(".onnx"), shape, classes, &options(case));
        let about = network.describe();
        assert_eq!(about.opset, case["opset"].as_i64().unwrap());
        let operators: Vec<_> = about.operators.keys().map(String::as_str).collect();
        let theirs: Vec<_> = case["operators"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(operators, theirs);
        let x = images(IMAGES, shape, case["unit"] == true);
        let ours = network.log_probabilities(&x, 0, &mut silent()).unwrap();
        let golden = numbers(&case["values"]);
        let golden: Vec<f64> = match case["scores"].as_str() {
            Some("probabilities") => golden.iter().map(|p| p.ln()).collect(),
            _ => log_softmax(&golden.iter().map(|&v| v as f32).collect::<Vec<_>>(), classes),
        };
        // In half precision ONNX Runtime and PyTorch differ by 2.4e-4.
        let limit = if file == "half17.onnx" { 1e-3 } else { 1e-5 };
        table.compare(file, &ours, &golden, Tolerance::Absolute(limit));
    }
    table.finish();
}

#[test]
fn double_precision_is_kept() {
    let json = scores_json();
    let case = json["cases"].as_array().unwrap().iter().find(|case| case["dtype"] == "float64").unwrap();
    let network = open("double17", shape(&case["shape"]), 5, &as_is());
    let ours = network.scores(&images(IMAGES, network.images(), false), &mut silent()).unwrap();
    let apart = max_abs(&ours, &numbers(&case["values"]));
    println!("double precision: {apart:.1e}");
    // They are printed with nine digits.
    assert!(apart < 1e-8);
}

#[test]
fn a_last_softmax_is_left_out_and_hidden_ones_are_seen() {
    let shape = ImageShape { channels: 3, height: 12, width: 12 };
    for (file, meaning, known_by, cut) in [
        ("softmax13", Scores::Logits, KnownBy::Softmax, true),
        ("softmax_dynamo18", Scores::Logits, KnownBy::Softmax, true),
        ("log_softmax17", Scores::Logits, KnownBy::Softmax, false),
        ("by_hand18", Scores::Probabilities, KnownBy::Numbers, true),
        ("convnet_legacy13", Scores::Logits, KnownBy::Numbers, false),
    ] {
        let network = open(file, shape, 5, &as_is());
        assert_eq!((network.info().scores, network.info().known_by), (meaning, known_by), "{file}");
        let x = images(IMAGES, shape, false);
        let scores = network.scores(&x, &mut silent()).unwrap();
        let sums: Vec<f64> = scores.chunks(5).map(|row| row.iter().sum()).collect();
        let add_up = sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5);
        assert_eq!(add_up, meaning == Scores::Probabilities, "{file}: {sums:?}");
        let said = OnnxOptions { scores: Some(Scores::Probabilities), ..as_is() };
        if cut {
            let (a, b) = (network, open(file, shape, 5, &said));
            // The user is not the reason where the graph is.
            let told = if known_by == KnownBy::Softmax { known_by } else { KnownBy::User };
            assert_eq!(b.info().known_by, told, "{file}");
            let [a, b] = [a, b].map(|network| network.log_probabilities(&x, 0, &mut silent()).unwrap());
            assert_eq!(a, b);
        }
    }
    // A row of logits that adds up to nothing in particular is no distribution, whatever it is called.
    let x = images(1, shape, false);
    let said = |scores| OnnxOptions { scores: Some(scores), ..as_is() };
    for (file, called) in [
        ("convnet_legacy13", Scores::Probabilities),
        ("convnet_legacy13", Scores::LogProbabilities),
        ("by_hand18", Scores::LogProbabilities),
    ] {
        let network = open(file, shape, 5, &said(called));
        let cause = network.log_probabilities(&x, 0, &mut silent()).unwrap_err().to_string();
        assert!(cause.contains("image 0") && cause.contains("add up to"), "{file}: {cause}");
    }
    // The logarithm of a last softmax is read, whichever of both it gives.
    for file in ["softmax13", "log_softmax17"] {
        let [seen, told] = [as_is(), said(Scores::LogProbabilities)].map(|options| open(file, shape, 5, &options));
        assert_eq!(told.info().known_by, KnownBy::Softmax, "{file}");
        let [seen, told] = [seen, told].map(|network| network.log_probabilities(&x, 0, &mut silent()).unwrap());
        assert_eq!(seen, told, "{file}");
    }
}

/// Single precision has probabilities down to e^-103, and these go down to e^-300.
#[test]
fn nodes_that_reshape_after_a_softmax_cost_no_small_probability() {
    const CLASSES: usize = 3 * 12 * 12;
    let shape = ImageShape { channels: 3, height: 12, width: 12 };
    let (folder, x) = (tempfile::tempdir().unwrap(), images(IMAGES, shape, false));
    let file = folder.path().join("reshaped.onnx");
    let expected = log_softmax(&x.iter().map(|v| 200.0 * v).collect::<Vec<_>>(), CLASSES);
    assert!(expected.iter().any(|&log_q| log_q < -300.0));
    for (operator, before, axis, after) in [
        ("Softmax", &[-1, 432, 1, 1][..], 1, "Flatten"),
        ("Softmax", &[-1, 1, 1, 432], -1, "Reshape"),
        ("LogSoftmax", &[-1, 432, 1, 1], 1, "Squeeze"),
        // Taken as logits, as ever: nothing reshapes them.
        ("LogSoftmax", &[-1, 432], 1, "Identity"),
    ] {
        let after_inputs: &[&str] = match after {
            "Reshape" => &["p", "rows"],
            "Squeeze" => &["p", "axes"],
            _ => &["p"],
        };
        let nodes = vec![
            graph::node("Mul", &["image", "factor"], "steep", vec![]),
            graph::node("Reshape", &["steep", "before"], "logits", vec![]),
            graph::node(operator, &["logits"], "p", vec![graph::int("axis", axis)]),
            graph::node(after, after_inputs, "r", vec![]),
            graph::node("Cast", &["r"], "scores", vec![graph::int("to", DataType::Float as i64)]),
        ];
        let mut arrays = vec![graph::array("factor", &[1], &[200.0])];
        let axes = [("before", before), ("rows", &[-1, 432]), ("axes", &[2, 3])];
        arrays.extend(axes.map(|(name, values)| graph::sizes(name, values)));
        let image = graph::value("image", DataType::Float, &[-1, 3, 12, 12]);
        graph::save(&graph::model(image, nodes, &["scores"], arrays), &file);
        let network = OnnxClassifier::open(&file, Some(shape), CLASSES, &as_is()).unwrap();
        assert_eq!(network.info().scores, Scores::Logits);
        let ours = network.log_probabilities(&x, 0, &mut silent()).unwrap();
        let off = max_abs(&ours, &expected);
        assert!(off < 1e-3, "{operator}, {after}: {off}");
    }
}

#[test]
fn resnet_18_gives_torchvisions_logits() {
    let reference: Value = serde_json::from_slice(&std::fs::read(path("classifiers/resnet18.json")).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("resnet18.onnx");
    graph::save(&graph::resnet18(&reference), &file);
    let network = OnnxClassifier::open(&file, None, 3, &as_is()).unwrap();
    assert_eq!(network.images(), ImageShape { channels: 3, height: 64, width: 64 });
    // Running means and variances are kept in this file: two numbers for each of 4,800 channels.
    let parameters = reference["trainable_params"].as_u64().unwrap();
    assert_eq!(network.describe().parameters, parameters + 2 * 4800);
    let input = Filled::described(&reference["input"], reference["seed"].as_u64().unwrap()).unwrap();
    let ours = network.scores(&input.values, &mut silent()).unwrap();
    let mut table = Table::new("logits".into());
    table.compare("resnet18, ONNX", &ours, &numbers(&reference["logits"]), Tolerance::Absolute(1e-5));
    table.finish();
}
