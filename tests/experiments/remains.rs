//! What a deleted run left in its folder: the run that begins there takes nothing of it.

use super::{run, spec, summary};

#[test]
fn a_run_in_the_folder_of_a_deleted_one_of_another_world_is_that_of_a_fresh_folder() {
    // Files of both worlds have the same names and shapes.
    let of = |prior: &str| {
        spec(&format!(
            "prior = {prior}\n[experiment]\nkind = 'temperature'\ntaus = [1.0, 0.5]\n[grid]\narchitectures = ['linear']\n\
             train_sizes = [40]\nseeds = [0]\n[test]\nimages = 60\nwatched = 20\n[training]\nepochs = 2\nbatch = 20\n\
             learning_rate = 1e-2\n"
        ))
    };
    let (old, new) = (of("[0.6, 0.3, 0.1]"), of("[0.2, 0.3, 0.5]"));
    let place = tempfile::tempdir().unwrap();
    let (fresh, taken) = (place.path().join("fresh"), place.path().join("taken"));
    run(&new, &fresh, usize::MAX).1.unwrap();
    run(&old, &taken, usize::MAX).1.unwrap();
    let files = ["pool/test-tau-1.npz", "pool/train-0-tau-1.npz", "worlds/tau-1.json"];
    let same = |file: &str| std::fs::read(fresh.join(file)).unwrap() == std::fs::read(taken.join(file)).unwrap();
    assert!(files.iter().all(|file| !same(file)));
    // As when it is deleted under a process that goes on writing.
    for name in ["plan.jsonl", "run.toml"] {
        std::fs::remove_file(taken.join(name)).unwrap();
    }
    run(&new, &taken, usize::MAX).1.unwrap();
    assert!(files.iter().all(|file| same(file)));
    assert!(summary(&taken) == summary(&fresh), "the summary has something of another world");
}
