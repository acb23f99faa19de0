//! `notes`: what people say of runs, and the commands that repeat it.

use crate::experiments::Grid;
use crate::run::{fail, json, output, succeed, text};

#[test]
fn what_is_said_of_a_run_is_written_told_and_taken_back_piece_by_piece() {
    let grid = Grid::new(
        "[grid]\narchitectures = ['linear']\ntrain_sizes = [20]\nseeds = [0]\n[test]\nimages = 40\nwatched = 20\n",
    );
    let [one, two] = ["one", "two"].map(|name| grid.path(name));
    for run in [&one, &two] {
        succeed(&["plan", text(&grid.spec), "--out", text(run), "--device", "cpu"]);
    }
    let both = [text(&one), text(&two)];
    assert!(succeed(&["notes", both[0]]).contains("nothing is said of it"));
    // Tags of both, then a name and notes of one: what is not given stays.
    succeed(&["notes", both[0], both[1], "--tags", "paper, small,paper"]);
    succeed(&["notes", both[0], "--name", "Baseline", "--notes", "seed 3 diverged"]);
    let said = json(&["notes", both[0], both[1], "--json"]);
    let of = |i: usize, what: &str| said[i][what].clone();
    assert_eq!((of(0, "name"), of(0, "tags")), ("Baseline".into(), serde_json::json!(["paper", "small"])));
    assert_eq!((of(1, "name"), of(1, "tags"), of(0, "notes")), ("".into(), of(0, "tags"), "seed 3 diverged".into()));
    let heading = "Baseline [paper, small] seed 3 diverged\n";
    assert!(succeed(&["watch", both[0], "--once"]).starts_with(heading));
    assert!(succeed(&["summary", both[0]]).starts_with(heading));
    assert!(!succeed(&["summary", both[0], "--csv"]).contains("Baseline"), "a table for programs");
    succeed(&["notes", both[0], "--name", "", "--tags", "", "--notes", ""]);
    assert!(succeed(&["watch", both[0], "--once"]).starts_with("0 of 1 cells finished"));
    // One name for two runs tells none from the other; a folder without a run gets no file.
    assert!(fail(1, &["notes", both[0], both[1], "--name", "x"]).contains("--name names one run"));
    let nowhere = tempfile::tempdir().unwrap();
    assert!(fail(1, &["notes", text(nowhere.path()), "--name", "x"]).contains("run.toml"));
    assert!(!nowhere.path().join("notes.toml").exists());
    // What cannot be read is named, and keeps nobody from the figures.
    std::fs::write(one.join("notes.toml"), "name = [3]").unwrap();
    assert!(fail(1, &["notes", both[0]]).contains("notes.toml"));
    let seen = output(&["watch", both[0], "--once"]);
    assert!(seen.status.success() && String::from_utf8_lossy(&seen.stderr).contains("notes.toml"));
}
