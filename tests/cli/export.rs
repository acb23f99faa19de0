//! `export`: what is written is the world, in every form.

use std::path::{Path, PathBuf};
use std::process::Command;

use bayescope::data::{Input, Split, open_split, read_array, read_logp, write_npy};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;
use sha2::{Digest, Sha256};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::common::tiny;
use crate::run::{SHARP_DIGITS, fail, json, text};

pub fn export(oracle: &str, out: &Path, more: &[&str]) -> Value {
    json(&[&["export", oracle, "--out", text(out), "--device", "cpu", "--json"], more].concat())
}

fn sum(path: &Path) -> String {
    Sha256::digest(std::fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every file of a folder with its bytes.
pub fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => all.push((text(path.strip_prefix(folder).unwrap()).to_owned(), std::fs::read(&path).unwrap())),
            }
        }
    }
    all.sort();
    all
}

/// Mean of 1 − max p of 10 classes; the posterior [N, 10] is that of log p(x|y), `logp` [N, 10], under equal priors.
fn doubt_of(logp: &[f64], posterior: &[f32]) -> f64 {
    let mut doubt = 0.0;
    for (logp, p) in logp.chunks(10).zip(posterior.chunks(10)) {
        let most = logp.iter().copied().fold(f64::MIN, f64::max);
        let whole: f64 = logp.iter().map(|l| (l - most).exp()).sum();
        doubt += (1.0 - 1.0 / whole) / (posterior.len() / 10) as f64;
        for (l, p) in logp.iter().zip(p) {
            assert!(((l - most).exp() / whole - f64::from(*p)).abs() < 1e-6);
        }
    }
    doubt
}

/// Asserts that pictures of digits are scored at τ = 1.2 as the values of their levels, not as photographs: `logp` [N, 10] is beside
/// them.
fn pictures_are_read_back(out: &Path, labels: &[i64], logp: &[f64]) {
    let picture = |i: usize| out.join(format!("test/{}/{i:06}.png", labels[i]));
    let mut by_class: Vec<usize> = (0..labels.len()).collect();
    by_class.sort_by_key(|&i| labels[i]);
    let more = ["--tau", "1.2", "--device", "cpu"];
    for (given, rows) in [(out.join("test"), by_class), (picture(7), vec![7])] {
        let read = json(&[&["posterior", SHARP_DIGITS, text(&given), "--json"], &more[..]].concat());
        let images = read["images"].as_array().unwrap();
        assert_eq!(images.len(), rows.len());
        for (image, row) in images.iter().zip(rows) {
            let id = image["id"].as_str().unwrap();
            assert!(id.ends_with(&format!("{row:06}.png")), "{id} is a picture of the dataset's image {row}");
            for (c, l) in image["log_likelihood"].as_array().unwrap().iter().enumerate() {
                let (l, beside) = (l.as_f64().unwrap(), logp[10 * row + c]);
                assert!((l - beside).abs() < 1e-3, "image {row}, class {c}: {l}, not {beside}");
            }
        }
    }
    let why = fail(1, &[&["posterior", SHARP_DIGITS, text(&picture(0)), text(&picture(1))], &more[..]].concat());
    assert!(why.contains("is of an exported dataset"), "{why}");
}

/// Asserts that the rows of the test split's parquet file hold these labels and pictures, in order.
fn rows_hold(out: &Path, labels: &[i64], picture: &dyn Fn(usize) -> PathBuf) {
    let file = std::fs::File::open(out.join("parquet/test.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        assert_eq!((row.get_long(1).unwrap(), row.get_long(2).unwrap()), (labels[i], i as i64));
        let png = row.get_group(0).unwrap().get_bytes(0).unwrap().data().to_vec();
        assert_eq!(png, std::fs::read(picture(i)).unwrap());
    }
}

#[test]
fn digits_in_every_form_say_the_same() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("digits");
    let asked = ["--train", "60", "--test", "40", "--tau", "1.2", "--seed", "3", "--format", "npz,png,parquet"];
    let manifest = export(SHARP_DIGITS, &out, &asked);
    assert_eq!(manifest, serde_json::from_slice::<Value>(&std::fs::read(out.join("dataset.json")).unwrap()).unwrap());
    for (name, hash) in manifest["files"].as_object().unwrap() {
        assert_eq!(sum(&out.join(name)), hash.as_str().unwrap(), "{name}");
    }
    let named: Vec<&String> = manifest["files"].as_object().unwrap().keys().collect();
    assert_eq!(named.len(), 8, "{named:?}");
    assert!(!out.join(".parts").exists());
    let direct = json(&["bayes-error", SHARP_DIGITS, "--tau", "1.2", "--json"]);
    let near = |a: &Value, b: &Value, by: f64| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < by;
    assert!(near(&manifest["world"]["bayes_error"]["value"], &direct["value"], 1e-4));

    let Input::World(test) = open_split(&out, Split::Test, None).unwrap() else { panic!("pixels") };
    let (logp, k) = read_logp(&out.join("test.npz")).unwrap();
    let (labels, posterior) = (test.y.clone().unwrap(), test.posterior.clone().unwrap());
    assert_eq!((test.len(), k, logp.len()), (40, 10, 400));
    let doubt = doubt_of(&logp, &posterior);
    assert!((manifest["splits"]["test"]["bayes_error"]["value"].as_f64().unwrap() - doubt).abs() < 1e-12);

    // Pictures: the posterior beside them is that of the levels' values, computed here from the files alone.
    let (eight, drift) = (out.join("test.8bit.npz"), read_array(&out.join("test.8bit.npz"), "drift").unwrap());
    assert_eq!(read_array(&eight, "y").unwrap(), labels.iter().map(|&y| y as f64).collect::<Vec<_>>());
    assert_eq!(read_array(&eight, "id").unwrap(), (0..40).map(f64::from).collect::<Vec<_>>());
    // Digits of a Glow world lose their truth in 8 bits: the columns say so.
    assert!(read_array(&eight, "posterior").is_err() && read_array(&eight, "aleatoric").is_err());
    let (rounded, after) =
        (read_array(&eight, "midpoint_posterior").unwrap(), read_array(&eight, "midpoint_logp").unwrap());
    let picture = |i: usize| out.join(format!("test/{}/{i:06}.png", labels[i]));
    let levels = &manifest["splits"]["test"]["pictures"]["8"]["levels"];
    let x = values_of(&picture(7), levels);
    assert!(x.iter().zip(&test.x[7 * 1024..8 * 1024]).all(|(a, b)| (a - b).abs() <= 0.51 * step(levels)));
    let again = scored(place.path(), &x, "1.2");
    for (c, l) in again.iter().enumerate() {
        assert!((l - after[70 + c]).abs() < 1e-3, "{l} {}", after[70 + c]);
    }
    pictures_are_read_back(&out, &labels, &after);
    let kl: f64 =
        (0..10).map(|c| f64::from(posterior[70 + c])).zip(&rounded[70..80]).map(|(p, q)| p * (p / q).ln()).sum();
    assert!((kl - drift[7]).abs() < 1e-4 + 1e-3 * kl, "{kl} {}", drift[7]);
    let cost = &manifest["splits"]["test"]["pictures"]["8"];
    let mean = drift.iter().sum::<f64>() / 40.0;
    assert!((cost["kl_nats"]["value"].as_f64().unwrap() - mean).abs() < 1e-12 && mean > 0.1);
    let error = (0..40).map(|i| {
        let best = (0..10).max_by(|a, b| rounded[10 * i + a].total_cmp(&rounded[10 * i + b])).unwrap();
        1.0 - f64::from(posterior[10 * i + best])
    });
    assert!((cost["decision_error"]["value"].as_f64().unwrap() - error.sum::<f64>() / 40.0).abs() < 1e-6);
    let card = std::fs::read_to_string(out.join("README.md")).unwrap();
    assert!(card.contains("Bayes error of these 8-bit pictures: unknown, larger than"), "{card}");
    for command in ["load_dataset(\"parquet\", data_dir=\"parquet\")", "evaluate THIS_FOLDER --predictions FILE"] {
        assert!(card.contains(command), "{command}: {card}");
    }
    let listed = std::fs::read_to_string(out.join("test.sha256")).unwrap();
    assert_eq!(listed.lines().count(), 40);
    assert!(listed.contains(&format!("{}  test/{}/000007.png", sum(&picture(7)), labels[7])));

    rows_hold(&out, &labels, &picture);
    // A finished one is not made again; another one does not go on in its folder.
    let before = files(&out);
    assert_eq!(export(SHARP_DIGITS, &out, &asked), manifest);
    assert_eq!(files(&out), before);
    let other = fail(1, &["export", SHARP_DIGITS, "--out", text(&out), "--train", "5", "--device", "cpu"]);
    assert!(other.contains("holds another export"), "{other}");
}

/// Values of a grey 8- or 16-bit picture by the manifest's levels.
fn values_of(picture: &Path, levels: &Value) -> Vec<f32> {
    let [low, high] = ["low", "high"].map(|end| levels[end].as_f64().unwrap());
    let pixels: Vec<f64> = match image::open(picture).unwrap() {
        image::DynamicImage::ImageLuma8(picture) => picture.into_raw().into_iter().map(f64::from).collect(),
        image::DynamicImage::ImageLuma16(picture) => picture.into_raw().into_iter().map(f64::from).collect(),
        other => panic!("{:?}", other.color()),
    };
    let most = 2f64.powi(levels["bits"].as_i64().unwrap() as i32) - 1.0;
    let step = (high - low) / most;
    pixels.into_iter().map(|level| if level == most { high as f32 } else { (low + step * level) as f32 }).collect()
}

/// Distance of two levels.
fn step(levels: &Value) -> f32 {
    let [low, high] = ["low", "high"].map(|end| levels[end].as_f64().unwrap());
    ((high - low) / (2f64.powi(levels["bits"].as_i64().unwrap() as i32) - 1.0)) as f32
}

/// log p(x|y) of one digit under every class at a temperature, by the command line.
fn scored(place: &Path, x: &[f32], tau: &str) -> Vec<f64> {
    let file = place.join("x.npz");
    let shape = bayescope::data::ImageShape { channels: 1, height: 32, width: 32 };
    let batch = bayescope::data::WorldBatch {
        shape,
        x: x.to_vec(),
        classes: 10,
        y: None,
        posterior: None,
        logp: None,
        aleatoric: None,
    };
    bayescope::data::write_npz(&file, &batch).unwrap();
    let said = json(&["posterior", SHARP_DIGITS, text(&file), "--tau", tau, "--json", "--device", "cpu"]);
    said["images"][0]["log_likelihood"].as_array().unwrap().iter().map(|l| l.as_f64().unwrap()).collect()
}

#[test]
fn sixteen_bits_keep_the_posteriors_of_digits() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("digits");
    let manifest = export(SHARP_DIGITS, &out, &["--train", "60", "--test", "0", "--format", "png,png16,parquet"]);
    let kl = |bits: &str| manifest["splits"]["train"]["pictures"][bits]["kl_nats"]["value"].as_f64().unwrap();
    println!("{} nats with 16 bits, {} with 8", kl("16"), kl("8"));
    assert!(kl("16") < 1e-4 && kl("8") > 0.1);
    let posterior = read_array(&out.join("train.16bit.npz"), "posterior").unwrap();
    assert!(read_array(&out.join("train.8bit.npz"), "midpoint_posterior").is_ok());
    assert_eq!(std::fs::read_to_string(out.join("train.16bit.sha256")).unwrap().lines().count(), 60);
    let file = std::fs::File::open(out.join("parquet/train.parquet")).unwrap();
    let row = SerializedFileReader::new(file).unwrap().get_row_iter(None).unwrap().next().unwrap().unwrap();
    let png = row.get_group(0).unwrap().get_bytes(0).unwrap().data().to_vec();
    assert_eq!(image::load_from_memory(&png).unwrap().color(), image::ColorType::L16);
    // The picture alone, by the levels of the manifest, gives the posterior beside it.
    let label = row.get_long(1).unwrap();
    let levels = &manifest["splits"]["train"]["pictures"]["16"]["levels"];
    let logp = scored(place.path(), &values_of(&out.join(format!("png16/train/{label}/000000.png")), levels), "1");
    let most = logp.iter().copied().fold(f64::MIN, f64::max);
    let whole: f64 = logp.iter().map(|l| (l - most).exp()).sum();
    assert!(logp.iter().zip(&posterior).all(|(l, p)| ((l - most).exp() / whole - p).abs() < 1e-4));
}

/// Its export once added the world's noise a second time: 1.06 nats.
#[test]
fn a_world_of_noisy_images_keeps_its_posteriors_in_eight_bits() {
    for world in ["tests/worlds/animals", "cells", "mnist", "fashion"] {
        let found = json(&["oracle", "depth", world, "--samples", "16", "--device", "cpu", "--json"]);
        let kl = |bits: usize| found["depths"][bits - 4]["kl_nats"]["value"].as_f64().unwrap();
        println!("{world}: {} nats with 8 bits, {} with 16", kl(8), kl(16));
        assert!(kl(8) < 0.01 && kl(16) < 1e-4);
    }
}

#[test]
fn a_depth_curve_falls_with_the_bits() {
    let found = json(&["oracle", "depth", SHARP_DIGITS, "--samples", "60", "--device", "cpu", "--json"]);
    let depths = found["depths"].as_array().unwrap();
    assert_eq!(depths.iter().map(|d| d["bits"].as_u64().unwrap()).collect::<Vec<_>>(), (4..=16).collect::<Vec<_>>());
    let kl: Vec<f64> = depths.iter().map(|d| d["kl_nats"]["value"].as_f64().unwrap()).collect();
    println!("{kl:?}");
    assert!(kl[4] > 0.2 && kl[6] < kl[4] && kl[8] < 0.02 && kl[12] < 1e-4);
    for depth in depths {
        let of = |name: &str| depth[name]["value"].as_f64().unwrap();
        // Deciding by a rounded image is never better than the Bayes decision.
        assert!(of("decision_error") >= found["bayes_error"]["value"].as_f64().unwrap() - 1e-12);
        assert!((0.0..=1.0).contains(&of("decisions_changed")) && of("bayes_error") >= 0.0);
    }
    let refused = fail(1, &["oracle", "depth", SHARP_DIGITS, "--tau", "0", "--device", "cpu"]);
    assert!(refused.contains("τ above 0"), "{refused}");
}

#[test]
fn a_world_of_two_gaussians_has_the_bayes_error_of_the_formula() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let out = place.path().join("data");
    let manifest = export(text(&oracle), &out, &["--train", "0", "--test", "20000"]);
    let truth = Normal::standard().cdf(-tiny::GAUSSIAN_DISTANCE / 2.0);
    for interval in
        [&manifest["world"]["bayes_error"]["interval"], &manifest["splits"]["test"]["bayes_error"]["interval"]]
    {
        let end = |i: usize| interval[i].as_f64().unwrap();
        let half = 0.5 * (end(1) - end(0));
        assert!((0.5 * (end(0) + end(1)) - truth).abs() < 2.0 * half && half < 0.01, "{interval} {truth}");
    }
    // Two classes alike: no more than a bit is known, and no less than nothing.
    let bits = manifest["world"]["mutual_information_bits"]["value"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&bits));
}

/// The card once named a folder of which `evaluate` had nothing to read.
#[test]
fn without_exact_images_the_card_says_how_a_classifier_is_judged() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let at = |name: &str| place.path().join(name);
    let card = |name: &str, more: &[&str]| {
        export(text(&oracle), &at(name), more);
        std::fs::read_to_string(at(name).join("README.md")).unwrap()
    };
    let pictures = card("pictures", &["--train", "0", "--test", "20", "--format", "png16"]);
    assert!(pictures.contains("`bayescope evaluate THIS_FOLDER/test.16bit.npz --predictions FILE`"), "{pictures}");
    // What knows the truth of these pictures has nothing to learn.
    let (truth, file) = (at("pictures").join("test.16bit.npz"), at("known.npy"));
    write_npy::<f64>(&file, &[20, 2], |put| put(&read_array(&truth, "logp").unwrap())).unwrap();
    let found = json(&["evaluate", text(&truth), "--predictions", text(&file), "--json"]);
    assert!(found["epistemic"].as_f64().unwrap() < 1e-9, "{found}");
    let refused = |name: &str| fail(1, &["evaluate", text(&at(name)), "--predictions", text(&file)]);
    // Of 16 bits pixels keep 8: neither the dataset nor its pictures are taken for photographs.
    for folder in [at("pictures"), at("pictures").join("png16/test")] {
        let said = fail(1, &["posterior", text(&oracle), text(&folder), "--device", "cpu"]);
        assert!(said.contains("16 bits, which are not read back"), "{said}");
    }
    let said = refused("pictures");
    assert!(said.contains("test.npz") && said.contains("exported without npz"), "{said}");
    assert!(said.contains("a classifier of its pictures is judged on test.16bit.npz"), "{said}");
    let train = card("train", &["--train", "20", "--test", "0"]);
    assert!(train.contains("needs `test.npz`, which is not here") && !train.contains("THIS_FOLDER"), "{train}");
    assert!(refused("train").contains("exported without test images (--split train judges on the others)"));
}

#[test]
fn a_target_sets_the_temperature() {
    let place = tempfile::tempdir().unwrap();
    let manifest = export("mnist", &place.path().join("a"), &["--train", "0", "--test", "8", "--target", "0.1"]);
    assert!((manifest["world"]["bayes_error"]["value"].as_f64().unwrap() - 0.1).abs() < 1e-4);
    let taken = place.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("mine.txt"), "mine").unwrap();
    let refused = fail(1, &["export", "mnist", "--out", text(&taken), "--device", "cpu"]);
    assert!(refused.contains("is not empty"), "{refused}");
    let file = place.path().join("mine.npz");
    std::fs::write(&file, "mine").unwrap();
    let refused = fail(1, &["export", "mnist", "--train", "1", "--test", "1", "--out", text(&file), "--device", "cpu"]);
    assert!(refused.contains("mine.npz") && refused.contains("is a file; a dataset is a folder"), "{refused}");
    let nothing = fail(1, &["export", "mnist", "--train", "0", "--test", "0", "--out", text(&place.path().join("c"))]);
    assert!(nothing.contains("nothing to export"), "{nothing}");
    let points = place.path().join("points");
    for oracle in ["mnist", text(&tiny::gaussian_file(place.path()))] {
        let refused = fail(1, &["export", oracle, "--tau", "0", "--out", text(&points), "--device", "cpu"]);
        assert!(refused.contains("choose a τ above 0") && !points.exists(), "{refused}");
    }
}

#[test]
fn few_certain_images_do_not_promise_too_much() {
    let place = tempfile::tempdir().unwrap();
    let inside = |manifest: &Value| {
        let truth = manifest["world"]["bayes_error"]["value"].as_f64().unwrap();
        let interval = &manifest["splits"]["test"]["bayes_error"]["interval"];
        let [low, high] = [0, 1].map(|end| interval[end].as_f64().unwrap());
        assert!(low <= truth && truth <= high, "{interval} {truth}");
        (low, high)
    };
    // None of 50 images is in doubt: that the world has hardly any is all they say.
    let certain = export("mnist", &place.path().join("certain"), &["--train", "0", "--test", "50", "--tau", "0.5"]);
    assert!(inside(&certain).1 > 0.01);
    let asked = ["--train", "0", "--test", "1", "--format", "npz,png"];
    let one = export("mnist", &place.path().join("one"), &asked);
    assert_eq!(inside(&one), (0.0, 1.0));
    assert_eq!(export("mnist", &place.path().join("one"), &asked), one, "it can be read again");
}

/// Skipped, and said so, where Python or one of these packages is missing.
#[test]
fn numpy_torchvision_and_datasets_read_it() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("digits");
    export("mnist", &out, &["--train", "30", "--test", "20", "--format", "npz,png,parquet"]);
    let python = |script: &str| Command::new("python3").arg("-c").arg(script).current_dir(&out).output();
    let scripts = [
        (
            "numpy",
            "import numpy as np\na = np.load('test.npz')\np = np.exp(a['logp'] - a['logp'].max(1, keepdims=True))\n\
             p /= p.sum(1, keepdims=True)\nassert abs(p - a['posterior']).max() < 1e-6 and a['x'].shape == (20, 1, 32, 32)\n\
             h = -(p * np.log(np.maximum(p, 1e-300))).sum(1)\nassert abs(h - a['aleatoric']).max() < 1e-12\n\
             assert a['y'].dtype == np.int64 and np.load('test.8bit.npz')['id'].tolist() == list(range(20))",
        ),
        (
            "torchvision",
            "import numpy as np\nfrom torchvision.datasets import ImageFolder\nd = ImageFolder('test', allow_empty=True)\n\
             y = np.load('test.npz')['y']\nassert len(d) == 20 and d.classes == [str(k) for k in range(10)]\n\
             assert all(y[int(f[-10:-4])] == k for f, k in d.samples)",
        ),
        (
            "datasets",
            "import numpy as np\nfrom datasets import load_dataset\nd = load_dataset('parquet', data_dir='parquet')\n\
             y = np.load('test.npz')['y']\nt = d['test']\nassert t['label'] == y.tolist() and t.features['label'].names[3] == '3'\n\
             assert t[0]['image'].size == (32, 32) and abs(np.array(t['midpoint_posterior']) - np.load('test.8bit.npz')['midpoint_posterior']).max() == 0",
        ),
    ];
    for (package, script) in scripts {
        if !python(&format!("import {package}")).is_ok_and(|done| done.status.success()) {
            println!("skipped: no python3 with {package}");
            continue;
        }
        let done = python(script).unwrap();
        assert!(done.status.success(), "{package}: {}", String::from_utf8_lossy(&done.stderr));
    }
}
