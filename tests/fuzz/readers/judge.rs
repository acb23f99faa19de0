//! A dataset folder's truth, and predictions of other programs.

use std::path::Path;

use bayescope::data::Split;
use bayescope::error::Result;
use bayescope::events::silent;
use bayescope::export::Manifest;
use bayescope::judge::{Predictions, ReadOptions, Truth};

use super::{folder, reference};
use crate::forms::Form;
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
