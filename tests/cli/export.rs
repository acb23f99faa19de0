//! `export`: what is written is the world, in every form, and nothing that happens on the way changes a byte.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bayescope::data::{Input, Split, open_split, read_array, read_logp};
use bayescope::error::Error;
use bayescope::export::{ExportEvent, ExportSpec, Format, Stage};
use bayescope::flow::Precision;
use bayescope::oracle::folder::open;
use bayescope::oracle::posterior::Prior;
use bayescope::oracle::world::Settings;
use bayescope::units::{Seed, Smoothing, Tau};
use burn::tensor::Device;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;
use sha2::{Digest, Sha256};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::common::{fill, tiny};
use crate::run::{bayescope, fail, json, succeed, text};

fn export(oracle: &str, out: &Path, more: &[&str]) -> Value {
    json(&[&["export", oracle, "--out", text(out), "--device", "cpu", "--json"], more].concat())
}

fn sum(path: &Path) -> String {
    Sha256::digest(std::fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every file of a folder with its bytes.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
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

#[test]
fn digits_in_every_form_say_the_same() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("digits");
    let asked = ["--train", "60", "--test", "40", "--tau", "1.2", "--seed", "3", "--format", "npz,png,parquet"];
    let manifest = export("mnist", &out, &asked);
    assert_eq!(manifest, serde_json::from_slice::<Value>(&std::fs::read(out.join("dataset.json")).unwrap()).unwrap());
    for (name, hash) in manifest["files"].as_object().unwrap() {
        assert_eq!(sum(&out.join(name)), hash.as_str().unwrap(), "{name}");
    }
    let named: Vec<&String> = manifest["files"].as_object().unwrap().keys().collect();
    assert_eq!(named.len(), 8, "{named:?}");
    assert!(!out.join(".parts").exists());
    let direct = json(&["bayes-error", "mnist", "--tau", "1.2", "--json"]);
    let near = |a: &Value, b: &Value, by: f64| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < by;
    assert!(near(&manifest["world"]["bayes_error"]["value"], &direct["value"], 1e-4));

    let Input::World(test) = open_split(&out, Split::Test).unwrap() else { panic!("pixels") };
    let (logp, k) = read_logp(&out.join("test.npz")).unwrap();
    let (labels, posterior) = (test.y.clone().unwrap(), test.posterior.clone().unwrap());
    assert_eq!((test.len(), k, logp.len()), (40, 10, 400));
    let mut doubt = 0.0;
    for (logp, p) in logp.chunks(10).zip(posterior.chunks(10)) {
        let most = logp.iter().copied().fold(f64::MIN, f64::max);
        let whole: f64 = logp.iter().map(|l| (l - most).exp()).sum();
        doubt += (1.0 - 1.0 / whole) / 40.0;
        for (l, p) in logp.iter().zip(p) {
            assert!(((l - most).exp() / whole - f64::from(*p)).abs() < 1e-6);
        }
    }
    assert!((manifest["splits"]["test"]["bayes_error"]["value"].as_f64().unwrap() - doubt).abs() < 1e-12);

    // Pictures: their posteriors are what `posterior` says of them.
    let (eight, drift) = (out.join("test.8bit.npz"), read_array(&out.join("test.8bit.npz"), "drift").unwrap());
    let (rounded, after) = (read_array(&eight, "posterior").unwrap(), read_array(&eight, "logp").unwrap());
    assert_eq!(read_array(&eight, "y").unwrap(), labels.iter().map(|&y| y as f64).collect::<Vec<_>>());
    assert_eq!(read_array(&eight, "id").unwrap(), (0..40).map(f64::from).collect::<Vec<_>>());
    let picture = |i: usize| out.join(format!("test/{}/{i:06}.png", labels[i]));
    let said = json(&["posterior", "mnist", text(&picture(7)), "--tau", "1.2", "--json", "--device", "cpu"]);
    for (c, l) in said["images"][0]["log_likelihood"].as_array().unwrap().iter().enumerate() {
        assert!((l.as_f64().unwrap() - after[70 + c]).abs() < 1e-3, "{l} {}", after[70 + c]);
    }
    let kl: f64 =
        (0..10).map(|c| f64::from(posterior[70 + c])).zip(&rounded[70..80]).map(|(p, q)| p * (p / q).ln()).sum();
    assert!((kl - drift[7]).abs() < 1e-4 + 1e-3 * kl, "{kl} {}", drift[7]);
    let mean = drift.iter().sum::<f64>() / 40.0;
    assert!((manifest["splits"]["test"]["eight_bit"]["kl_nats"]["value"].as_f64().unwrap() - mean).abs() < 1e-12);
    let listed = std::fs::read_to_string(out.join("test.sha256")).unwrap();
    assert_eq!(listed.lines().count(), 40);
    assert!(listed.contains(&format!("{}  test/{}/000007.png", sum(&picture(7)), labels[7])));

    let file = std::fs::File::open(out.join("parquet/test.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    for (i, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        assert_eq!((row.get_long(1).unwrap(), row.get_long(2).unwrap()), (labels[i], i as i64));
        let png = row.get_group(0).unwrap().get_bytes(0).unwrap().data().to_vec();
        assert_eq!(png, std::fs::read(picture(i)).unwrap());
    }
    // A finished one is not made again; another one does not go on in its folder.
    let before = files(&out);
    assert_eq!(export("mnist", &out, &asked), manifest);
    assert_eq!(files(&out), before);
    let other = fail(1, &["export", "mnist", "--out", text(&out), "--train", "5", "--device", "cpu"]);
    assert!(other.contains("holds another export"), "{other}");
}

#[test]
fn a_world_of_two_gaussians_has_the_bayes_error_of_the_formula() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let out = place.path().join("data");
    let manifest = export(text(&oracle), &out, &["--train", "0", "--test", "20000"]);
    let truth = Normal::standard().cdf(-tiny::GAUSSIAN_DISTANCE / 2.0);
    for interval in [
        &manifest["world"]["bayes_error"]["interval"],
        &serde_json::json!([
            manifest["splits"]["test"]["bayes_error"]["interval"]["low"],
            manifest["splits"]["test"]["bayes_error"]["interval"]["high"]
        ]),
    ] {
        let end = |i: usize| interval[i].as_f64().unwrap();
        let half = 0.5 * (end(1) - end(0));
        assert!((0.5 * (end(0) + end(1)) - truth).abs() < 2.0 * half && half < 0.01, "{interval} {truth}");
    }
    // Two classes alike: no more than a bit is known, and no less than nothing.
    let bits = manifest["world"]["mutual_information_bits"]["value"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&bits));
    let refused = fail(1, &["export", text(&oracle), "--target", "0.1", "--out", text(&place.path().join("b"))]);
    assert!(refused.contains("--target needs an oracle whose classes share a map"), "{refused}");
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
    let nothing = fail(1, &["export", "mnist", "--train", "0", "--test", "0", "--out", text(&place.path().join("c"))]);
    assert!(nothing.contains("nothing to export"), "{nothing}");
    let points = place.path().join("points");
    for oracle in ["mnist", text(&tiny::gaussian_file(place.path()))] {
        let refused = fail(1, &["export", oracle, "--tau", "0", "--out", text(&points), "--device", "cpu"]);
        assert!(refused.contains("choose a τ above 0") && !points.exists(), "{refused}");
    }
}

#[test]
fn what_was_left_of_a_complete_dataset_goes_and_spoils_nothing() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let out = place.path().join("data");
    let make = || export(text(&oracle), &out, &["--train", "0", "--test", "20"]);
    let manifest = make();
    // By a process killed while it removed its pieces.
    let parts = out.join(".parts");
    std::fs::create_dir(&parts).unwrap();
    std::fs::write(parts.join("test-000000000.npz"), "a piece").unwrap();
    assert_eq!(make(), manifest);
    assert!(!parts.exists());
    // In a place where nothing can be locked or removed, it is still the complete dataset.
    std::fs::write(&parts, "no folder").unwrap();
    let again =
        bayescope(&["export", text(&oracle), "--out", text(&out), "--train", "0", "--test", "20"]).output().unwrap();
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success() && told.contains(".parts"), "{told}");
    // Pieces that no file tells of are nobody's to go on with.
    std::fs::remove_file(&parts).unwrap();
    let strange = place.path().join("strange");
    std::fs::create_dir_all(strange.join(".parts")).unwrap();
    let refused = fail(1, &["export", text(&oracle), "--out", text(&strange), "--device", "cpu"]);
    assert!(refused.contains("is not empty"), "{refused}");
}

#[test]
fn few_certain_images_do_not_promise_too_much() {
    let place = tempfile::tempdir().unwrap();
    let inside = |manifest: &Value| {
        let truth = manifest["world"]["bayes_error"]["value"].as_f64().unwrap();
        let interval = &manifest["splits"]["test"]["bayes_error"]["interval"];
        let [low, high] = ["low", "high"].map(|end| interval[end].as_f64().unwrap());
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

#[test]
fn kills_change_no_byte() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let (whole, killed) = (place.path().join("whole"), place.path().join("killed"));
    let asked = ["--train", "5000", "--test", "300", "--format", "npz,png,parquet"];
    export(text(&oracle), &whole, &asked);
    let args = [&["export", text(&oracle), "--out", text(&killed), "--device", "cpu"], &asked[..]].concat();
    let mut hit = 0;
    for wait in fill::uniform("exports", 5, 5) {
        let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(0.7 + 0.5 * wait));
        child.kill().unwrap();
        child.wait().unwrap();
        hit += usize::from(killed.join("export.json").exists() && !killed.join("dataset.json").exists());
    }
    assert!(hit > 0, "no kill hit an export on its way");
    succeed(&args);
    let visible = |folder: &Path| {
        let mut files = files(folder);
        // What a kill leaves behind is hidden and swept with the next write; it is no part of the dataset.
        files.retain(|(name, _)| !name.split('/').any(|part| part.starts_with('.')));
        files
    };
    let (a, b) = (visible(&whole), visible(&killed));
    assert_eq!(a.iter().map(|(name, _)| name).collect::<Vec<_>>(), b.iter().map(|(name, _)| name).collect::<Vec<_>>());
    for ((name, a), (_, b)) in a.iter().zip(&b) {
        assert!(a == b, "{name} differs");
    }
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
             assert t[0]['image'].size == (32, 32) and abs(np.array(t['posterior']) - np.load('test.8bit.npz')['posterior']).max() == 0",
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

#[test]
fn a_stop_in_the_middle_of_a_piece_is_heard_and_changes_no_byte() {
    const TRAIN: usize = 1000;
    const BATCH: usize = 50;
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let opened = open(text(&oracle), &Device::flex(), Precision::F32, BATCH).unwrap();
    let settings = Settings { tau: Tau::ONE, smoothing: Smoothing::ONE, prior: Prior::uniform(2) };
    let formats = vec![Format::Npz, Format::Png];
    let spec = ExportSpec { oracle: "gaussian".into(), train: TRAIN, test: 20, settings, seed: Seed(4), formats };
    let run = |folder: &Path, stop: usize, told: &mut Vec<ExportEvent>| {
        let mut sink = |event: ExportEvent| {
            told.push(event);
            if told.len() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        bayescope::export::export(&opened.world, "weights", &spec, &place.path().join(folder), &mut sink)
    };
    let mut told = Vec::new();
    let manifest = run(Path::new("whole"), usize::MAX, &mut told).unwrap();
    // One piece of 20 batches: it is told from its start on, batch after batch, and never goes back.
    let drawn: Vec<usize> = told
        .iter()
        .filter(|event| event.stage == Stage::Drawing(Split::Train))
        .map(|event| event.progress.done)
        .collect();
    assert!(drawn[0] == 0 && *drawn.last().unwrap() == TRAIN && drawn.is_sorted(), "{drawn:?}");
    for batch in 0..=TRAIN / BATCH {
        assert!(drawn.contains(&(batch * BATCH / 2)), "{batch} {drawn:?}");
        assert!(drawn.contains(&((TRAIN + batch * BATCH) / 2)), "{batch} {drawn:?}");
    }
    // In the first batch, while drawing, and while 8-bit copies are rated.
    let rated = told.iter().position(|event| event.progress.done > 3 * TRAIN / 4).unwrap();
    for stop in [0, 1, drawn.len() / 4, rated] {
        let mut told = Vec::new();
        let stopped = run(Path::new("stopped"), stop, &mut told);
        assert!(matches!(stopped, Err(Error::Cancelled)) && told.len() == stop + 1, "{stop}: {stopped:?}");
        assert!(!place.path().join("stopped/.parts/train-000000000.npz").exists());
    }
    assert_eq!(run(Path::new("stopped"), usize::MAX, &mut Vec::new()).unwrap(), manifest);
    assert!(files(&place.path().join("stopped")) == files(&place.path().join("whole")));
}
