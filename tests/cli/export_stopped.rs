//! `export` that is killed, stopped or begun again: nothing that happens on the way changes a byte.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bayescope::bayes::sampling::Cache;
use bayescope::data::Split;
use bayescope::error::Error;
use bayescope::export::{ExportEvent, ExportSpec, Format, KeptDraws, Stage};
use bayescope::flow::Precision;
use bayescope::oracle::folder::open;
use bayescope::oracle::posterior::Prior;
use bayescope::oracle::world::Settings;
use bayescope::units::{Seed, Smoothing, Tau};
use burn::tensor::Device;

use crate::common::{fill, tiny};
use crate::export::{export, files};
use crate::run::{bayescope, fail, succeed, text};

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
fn a_dataset_that_lost_a_file_or_has_another_one_is_not_complete() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let out = place.path().join("data");
    let asked = ["--train", "10", "--test", "20"];
    let manifest = export(text(&oracle), &out, &asked);
    let bytes = std::fs::read(out.join("test.npz")).unwrap();
    std::fs::remove_file(out.join("test.npz")).unwrap();
    let again = [&["export", text(&oracle), "--out", text(&out), "--device", "cpu"], &asked[..]].concat();
    let refused = fail(1, &again);
    assert!(refused.contains("test.npz is listed") && refused.contains("delete dataset.json"), "{refused}");
    std::fs::remove_file(out.join("dataset.json")).unwrap();
    assert_eq!(export(text(&oracle), &out, &asked), manifest);
    assert!(std::fs::read(out.join("test.npz")).unwrap() == bytes);
    // Nor is one of which a file was changed or cut.
    let other = [&bytes[..60], &[bytes[60] ^ 1], &bytes[61..]].concat();
    for other in [&other[..], &bytes[..bytes.len() / 2], &[]] {
        std::fs::write(out.join("test.npz"), other).unwrap();
        let refused = fail(1, &again);
        assert!(
            refused.contains("test.npz has another SHA-256") && refused.contains("delete test.npz and dataset.json"),
            "{refused}"
        );
    }
    // Both at once: the changed one would be kept and listed as exported, were it not named.
    std::fs::remove_file(out.join("train.npz")).unwrap();
    let refused = fail(1, &again);
    for words in ["train.npz is listed", "test.npz has another SHA-256", "delete test.npz and dataset.json"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    std::fs::remove_file(out.join("test.npz")).unwrap();
    std::fs::remove_file(out.join("dataset.json")).unwrap();
    assert_eq!(export(text(&oracle), &out, &asked), manifest);
}

#[test]
fn another_arithmetic_is_another_export() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let out = place.path().join("data");
    let exact = ["--train", "0", "--test", "20", "--precision", "f64"];
    assert_eq!(export(text(&oracle), &out, &exact)["precision"], "f64");
    let again = ["export", text(&oracle), "--out", text(&out), "--device", "cpu", "--train", "0", "--test", "20"];
    let refused = fail(1, &again);
    assert!(refused.contains("another export") && refused.contains("precision"), "{refused}");
    let usual = export(text(&oracle), &place.path().join("usual"), &exact[..4]);
    assert!(usual["precision"].is_null());
    let ticket = std::fs::read_to_string(place.path().join("usual/export.json")).unwrap();
    assert!(!ticket.contains("precision"), "{ticket}");
}

#[test]
fn kills_change_no_byte() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let (whole, killed) = (place.path().join("whole"), place.path().join("killed"));
    let asked = ["--train", "5000", "--test", "300", "--format", "npz,png,parquet"];
    let begun = Instant::now();
    export(text(&oracle), &whole, &asked);
    let took = begun.elapsed();
    let args = [&["export", text(&oracle), "--out", text(&killed), "--device", "cpu"], &asked[..]].concat();
    let mut hit = 0;
    for (i, wait) in fill::uniform("exports", 5, 5).into_iter().enumerate() {
        let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The first ones early: the machine may be faster now than it was for the whole one.
        std::thread::sleep(took.mul_f64((i as f64 + 0.5 + 0.5 * wait) / 6.0));
        // Beside other tests it may not have begun.
        let begun = Instant::now();
        while !killed.join("export.json").exists() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(10));
        }
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

#[test]
fn a_stop_in_the_middle_of_a_piece_is_heard_and_changes_no_byte() {
    const TRAIN: usize = 1000;
    const BATCH: usize = 50;
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let opened = open(text(&oracle), &Device::flex(), Precision::F32, BATCH).unwrap();
    let settings = Settings { tau: Tau::ONE, smoothing: Smoothing::ONE, prior: Prior::uniform(2), label_noise: None };
    let formats = vec![Format::Npz, Format::Png];
    let (oracle, precision) = ("gaussian".into(), Precision::F32);
    let spec = ExportSpec { oracle, train: TRAIN, test: 20, settings, precision, seed: Seed(4), formats };
    let kept = KeptDraws { cache: &Cache::none(), device: "flex" };
    let run = |folder: &Path, stop: usize, told: &mut Vec<ExportEvent>| {
        let mut sink = |event: ExportEvent| {
            told.push(event);
            if told.len() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        bayescope::export::export(&opened.world, &opened.info, &spec, &place.path().join(folder), &kept, &mut sink)
    };
    let mut told = Vec::new();
    let manifest = run(Path::new("whole"), usize::MAX, &mut told).unwrap();
    // One piece of 20 batches: it is told from its start on, batch after batch, and never goes back.
    for stage in [Stage::Drawing(Split::Train), Stage::Rounding(Split::Train, 8)] {
        let of: Vec<&ExportEvent> = told.iter().filter(|event| event.stage == stage).collect();
        let done: Vec<usize> = of.iter().map(|event| event.progress.done).collect();
        assert!(*done.last().unwrap() == TRAIN && done.is_sorted(), "{done:?}");
        assert!((1..=TRAIN / BATCH).all(|batch| done.contains(&(batch * BATCH))), "{stage:?} {done:?}");
    }
    // In the first batch, while drawing, and while 8-bit pictures are scored.
    let drawn = told.iter().filter(|event| event.stage == Stage::Drawing(Split::Train)).count();
    let scored = told.iter().position(|event| event.stage == Stage::Rounding(Split::Train, 8)).unwrap() + 3;
    for (stop, missing) in [(0, "npz"), (1, "npz"), (drawn / 2, "npz"), (scored, "8bit.npz")] {
        let mut told = Vec::new();
        let stopped = run(Path::new("stopped"), stop, &mut told);
        assert!(matches!(stopped, Err(Error::Cancelled)) && told.len() == stop + 1, "{stop}: {stopped:?}");
        assert!(!place.path().join("stopped/.parts").join(format!("train-000000000.{missing}")).exists());
    }
    assert_eq!(run(Path::new("stopped"), usize::MAX, &mut Vec::new()).unwrap(), manifest);
    assert!(files(&place.path().join("stopped")) == files(&place.path().join("whole")));
}
