//! Whose a training folder is.

use super::*;
use crate::oracle::info::{BEST_INFO, DESCRIPTION, WEIGHTS};
use crate::oracle::train::claim::BEST;

#[test]
fn a_folder_belongs_to_the_spec_of_its_first_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let good = spec(folder.path(), 2);
    let run = |spec: &TrainSpec, stop: bool| {
        let mut events = |event: TrainEvent| match event {
            TrainEvent::Step { .. } if stop => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        train(spec, &out, &cpu(), &mut events).map_err(|error| error.to_string())
    };
    // What cannot start claims nothing, nor does the spec that a version before left of such a start.
    let mut bad = good.clone();
    bad.data.path = folder.path().join("dta");
    assert!(run(&bad, false).unwrap_err().contains("dta") && !out.exists());
    std::fs::create_dir(&out).unwrap();
    bad = good.clone();
    bad.data.held_out = 500;
    // A folder that was there stays.
    assert!(run(&bad, false).unwrap_err().contains("500") && out.exists() && !out.join(SPEC).exists());
    std::fs::write(out.join(SPEC), toml::to_string_pretty(&bad).unwrap()).unwrap();
    bad = good.clone();
    bad.training.batch = 5;
    bad.tarflow = Some(TarFlowSpec { channels: 64, blocks: 1, layers: 1, ..TarFlowSpec::default() });
    assert!(run(&bad, false).unwrap_err().starts_with("model.hidden, model.levels, model.steps: "));
    assert!(run(&good, true).is_err());
    assert_eq!(TrainSpec::of_run(&out).unwrap(), good);
    // Its images may lie elsewhere. What differs is named.
    bad = good.clone();
    bad.training.batch = 5;
    assert!(run(&bad, false).unwrap_err().contains("training.batch is 4 there, 5 here"));
    let moved = folder.path().join("moved");
    std::fs::rename(folder.path().join("data"), &moved).unwrap();
    let mut moved_spec = good.clone();
    moved_spec.data.path = moved;
    run(&moved_spec, false).unwrap();
    assert_eq!(TrainSpec::of_run(&out).unwrap(), moved_spec);
}

/// The checkpoint knows them: the spec beside it may be edited or removed.
#[test]
fn a_training_goes_on_with_no_other_settings() {
    let folder = tempfile::tempdir().unwrap();
    let (good, out) = (spec(folder.path(), 2), folder.path().join("run"));
    let sitting = |spec: &TrainSpec| {
        let mut stop = |event: TrainEvent| match event {
            TrainEvent::Step { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        train(spec, &out, &cpu(), &mut stop).unwrap_err().to_string()
    };
    let begun = sitting(&good);
    assert_eq!(begun, Error::Cancelled.to_string());
    let place = out.join(SPEC);
    let refused = |training: &str, why: &str| {
        let text = toml::to_string_pretty(&good).unwrap();
        let (name, _) = training.split_once(' ').unwrap();
        let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
        std::fs::write(&place, text.replace(line, training)).unwrap();
        let edited = TrainSpec::read(&place).unwrap();
        let told = sitting(&edited);
        assert!(told.contains("checkpoint-00000-000001: ") && told.contains(why), "{told}");
        std::fs::remove_file(&place).unwrap();
        assert_eq!(sitting(&edited), told);
        edited
    };
    refused("lambda = 1.0", "(training.lambda is 10.0 there, 1.0 here)");
    refused("epochs = 3", "(training.epochs is 2 there, 3 here)");
    let faster = refused("learning_rate = 0.05", "(training.learning_rate is 0.001 there, 0.05 here)");
    // What the checkpoint says holds, and is written down again.
    std::fs::write(&place, toml::to_string_pretty(&faster).unwrap()).unwrap();
    assert_eq!(sitting(&good), begun);
    assert_eq!(TrainSpec::of_run(&out).unwrap(), good);
    // That of an older version says nothing: then the spec beside it counts, and is in the next checkpoint.
    let state = out.join("checkpoint-00000-000002/state.json");
    let mut older: serde_json::Value = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    assert!(older.as_object_mut().unwrap().remove("spec").unwrap().is_object());
    std::fs::write(&state, older.to_string()).unwrap();
    assert!(sitting(&faster).contains("train.toml: "));
    assert_eq!(sitting(&good), begun);
    std::fs::remove_file(&place).unwrap();
    let told = sitting(&faster);
    assert!(told.contains("checkpoint-00000-000003: "), "{told}");
}

/// Removes the checkpoints of a run.
fn without_checkpoints(run: &Path) {
    let entries = std::fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    let checkpoints = entries.filter(|path| path.to_str().unwrap().contains("checkpoint-"));
    checkpoints.for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
}

/// The finished oracle and the best epoch, without the checkpoints that would tell whose they are.
#[test]
fn an_oracle_of_another_training_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (good, out) = (spec(folder.path(), 1), folder.path().join("run"));
    let train = |spec: &TrainSpec| train_oracle(spec, &out, &cpu(), &mut silent()).map_err(|error| error.to_string());
    let (oracle, best) = (out.join(ORACLE), out.join(BEST_INFO));
    train(&good).unwrap();
    without_checkpoints(&out);
    let files = [oracle.join(DESCRIPTION), oracle.join(WEIGHTS), out.join(BEST)];
    let bytes = || files.each_ref().map(|file| std::fs::read(file).unwrap());
    let before = bytes();
    // Of its images, a pixel differs in the second.
    let mut batch = good.clone();
    batch.training.batch = 5;
    let picture = folder.path().join("data/dark/0.png");
    let (shape, pixels) = (ImageShape { channels: 1, height: 8, width: 8 }, std::fs::read(&picture).unwrap());
    let refused = |spec: &TrainSpec, file: &Path, why: &str| {
        let said = train(spec).unwrap_err();
        assert!(said.starts_with(file.to_str().unwrap()) && said.contains(why), "{said}");
        assert!(said.contains("choose another folder") && said.contains("; or remove "), "{said}");
    };
    for file in [&best, &oracle.join(DESCRIPTION)] {
        refused(&batch, file, "training.batch is 4 there, 5 here");
        write_png(&picture, shape, &[9; 64]).unwrap();
        refused(&good, file, "other images");
        std::fs::write(&picture, &pixels).unwrap();
        assert!(bytes() == before);
        let _ = std::fs::remove_file(&best);
    }
    // One from elsewhere, one that nothing describes, and one that came while the training ran.
    let text = String::from_utf8(before[0].clone()).unwrap();
    let mut info: serde_json::Value = serde_json::from_str(&text).unwrap();
    info["training"] = serde_json::Value::Null;
    std::fs::write(&files[0], info.to_string()).unwrap();
    refused(&good, &files[0], "without a record of its training");
    std::fs::remove_file(&files[0]).unwrap();
    refused(&good, &oracle, "unknown training");
    std::fs::write(&files[0], text.replace("\"batch\": 4", "\"batch\": 5")).unwrap();
    let moved = folder.path().join("oracle");
    std::fs::rename(&oracle, &moved).unwrap();
    let mut events = |event: TrainEvent| {
        if matches!(event, TrainEvent::Epoch { .. }) {
            std::fs::rename(&moved, &oracle).unwrap();
        }
        ControlFlow::Continue(())
    };
    let said = train_oracle(&good, &out, &cpu(), &mut events).unwrap_err().to_string();
    assert!(said.contains("training.batch is 5 there, 4 here"), "{said}");
    // Its own is in nobody's way.
    std::fs::write(&files[0], text).unwrap();
    without_checkpoints(&out);
    train(&good).unwrap();
    assert!(bytes()[1..] == before[1..]);
}
