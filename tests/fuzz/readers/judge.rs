//! A dataset folder's truth, and predictions of other programs.

use std::path::Path;

use bayescope::data::{Split, write_npy};
use bayescope::error::Result;
use bayescope::events::silent;
use bayescope::export::Manifest;
use bayescope::judge::{Predictions, ReadOptions, Truth, judge_uncertainty};
use bayescope::units::Seed;
use zip::CompressionMethod;

use super::{folder, reference, written};
use crate::forms::{Form, packed};
use crate::watch::{Reader, Whole};

fn truth() -> Truth {
    Truth::open(Path::new("tests/reference/judge/dataset"), Split::Test, &mut silent()).unwrap()
}

fn whole(name: &str, form: Form) -> Whole {
    Whole::new(name, form, reference(&format!("judge/{name}")))
}

fn predictions(name: &'static str, wholes: Vec<Whole>, few: u64) {
    let truth = truth();
    let read = |path: &Path| -> Result<()> { Predictions::read(path, &truth, &ReadOptions::default()).map(drop) };
    Reader { name, wholes, few, read: &read }.run();
}

#[test]
fn fuzz_predictions_csv() {
    let names = ["names.csv", "pandas_index.csv", "plain.csv"];
    predictions("predictions-csv", names.map(|name| whole(name, Form::Text)).into(), 400);
}

#[test]
fn fuzz_predictions_npz() {
    let wholes = vec![whole("half.npz", Form::Zip), whole("logits.npz", Form::Zip), whole("probs.npy", Form::Npy)];
    predictions("predictions-npz", wholes, 1500);
}

#[test]
fn fuzz_predictions_parquet() {
    let names = ["columns.parquet", "frame_index.parquet", "list.parquet"];
    predictions("predictions-parquet", names.map(|name| whole(name, Form::Bytes)).into(), 800);
}

#[test]
fn fuzz_uncertainty() {
    let truth = truth();
    let (n, classes) = (truth.len(), truth.classes);
    let array = |shape: &[usize], at: fn(usize) -> f64| {
        let values: Vec<f64> = (0..shape.iter().product()).map(at).collect();
        written("a.npy", |path| write_npy(path, shape, |put| put(&values)).unwrap())
    };
    let sets: Vec<i64> = (0..n * classes).map(|i| i64::from(i % 3 > 0)).collect();
    let arrays = [
        ("members.npy", array(&[2, n, classes], |i| (i % 7) as f64 - 3.0)),
        ("logits.npy", array(&[n, classes], |i| (i % 5) as f64)),
        ("doubt.npy", array(&[n], |i| (i % 11) as f64)),
        ("sets.npy", written("s.npy", |path| write_npy(path, &[n, classes], |put| put(&sets)).unwrap())),
    ];
    let arrays = arrays.map(|(name, bytes)| (name.to_owned(), bytes));
    let wholes = [CompressionMethod::Stored, CompressionMethod::Deflated]
        .map(|method| Whole::new("mine.npz", Form::Zip, packed(&arrays, method)));
    Reader {
        name: "uncertainty",
        wholes: wholes.into(),
        few: 300,
        read: &|path| judge_uncertainty(path, &truth, None, Seed(0), &mut silent()).map(drop),
    }
    .run();
}

#[test]
fn fuzz_dataset() {
    let (manifest, archive) = (reference("judge/dataset/dataset.json"), reference("judge/dataset/test.npz"));
    // Past the hash: as when somebody packed the archive anew.
    let mut free: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    if let Some(object) = free.as_object_mut() {
        object.remove("files");
    }
    Reader {
        name: "dataset",
        wholes: vec![
            Whole::new("dataset.json", Form::Text, manifest).beside("test.npz", archive.clone()),
            Whole::new("test.npz", Form::Zip, archive.clone()).beside("dataset.json", free.to_string()),
            Whole::new("test.npz", Form::Zip, archive),
        ],
        few: 1000,
        read: &|path| {
            let _ = Manifest::read(&folder(path));
            Truth::open(&folder(path), Split::Test, &mut silent()).map(drop)
        },
    }
    .run();
}
