//! The files of the best epoch.

use super::*;
use crate::oracle::info::BEST_INFO;
use crate::oracle::train::claim::BEST;

/// Which epoch the checkpoint calls the best, its file of weights must hold.
#[test]
fn weights_of_another_epoch_are_brought_back_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, out) = (spec(folder.path(), 1), folder.path().join("run"));
    let sitting = || train(&spec, &out, &cpu(), &mut silent()).map(|trained| trained.weights);
    let (best, checkpoint) = (out.join(BEST), out.join("checkpoint-00001"));
    // The disk takes no weights after the first epoch: its checkpoint is written all the same.
    std::fs::create_dir_all(best.join("in the way")).unwrap();
    let refused = sitting().unwrap_err().to_string();
    assert!(refused.contains(BEST) && checkpoint.is_dir(), "{refused}");
    std::fs::remove_dir_all(&best).unwrap();
    let weights = sitting().unwrap();
    let whole = std::fs::read(&best).unwrap();
    assert!(weights == checkpoint::average_after(&out, 1).unwrap().unwrap() && out.join(BEST_INFO).is_file());
    // Those of another epoch, as good to look at.
    let [current, average] = ["weights", "average"].map(|name| checkpoint.join(format!("{name}.safetensors")));
    std::fs::copy(&current, &best).unwrap();
    assert!(sitting().unwrap() == weights && std::fs::read(&best).unwrap() == whole);
    std::fs::remove_file(out.join(BEST_INFO)).unwrap();
    assert!(sitting().unwrap() == weights && oracle_so_far(&out).is_ok());
    // Where the checkpoint has them no longer, nothing is published.
    for file in [&best, &average] {
        std::fs::copy(&current, file).unwrap();
    }
    let refused = sitting().unwrap_err().to_string();
    assert!(refused.contains("does not hold the weights of epoch 1"), "{refused}");
    std::fs::remove_file(&best).unwrap();
    assert_eq!(sitting().unwrap_err().to_string(), refused);
    // A checkpoint of an older version does not say which they are.
    std::fs::copy(&current, &best).unwrap();
    let state = checkpoint.join("state.json");
    let mut older: serde_json::Value = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    assert!(older["best"].as_object_mut().unwrap().remove("weights_sha256").unwrap().is_string());
    std::fs::write(&state, older.to_string()).unwrap();
    assert!(sitting().unwrap() != weights);
}

#[test]
fn the_best_epoch_names_its_device_as_the_finished_oracle_does() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, out) = (spec(folder.path(), 1), folder.path().join("run"));
    let finished = train_oracle(&spec, &out, &cpu(), &mut silent()).unwrap();
    let (best, _) = crate::oracle::folder::read(out.join(BEST).to_str().unwrap()).unwrap();
    let devices = [best, finished].map(|info| info.training.unwrap().device);
    assert_eq!(devices, [cpu().report.used.label(), cpu().report.used.label()]);
}
