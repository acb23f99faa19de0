//! The list of runs: names of one's own, tags and notes, the filter and the order, and what comparing needs.

use std::path::Path;
use std::time::{Duration, Instant};

use bayescope::gui::App;
use bayescope::run::RunNotes;
use eframe::egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::experiments::{click, glance, open, panel, rewrite, run};
use super::{external, labels, shows};

/// Where a run stands in the list, if it does.
fn top(harness: &Harness<'_, App>, path: &Path) -> Option<f32> {
    let place = path.display().to_string();
    let of_run = |label: &str| label.starts_with("Show run ") && label.ends_with(&place);
    let mut nodes = harness.root().children_recursive();
    nodes.find(|node| node.accesskit_node().label().is_some_and(|label| of_run(&label))).map(|node| node.rect().top())
}

#[test]
fn a_run_gets_a_name_tags_and_notes_that_stay_in_its_folder() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    // Runs of other programs are named in the same way.
    let [ours, theirs] = ["ours", "theirs"].map(|name| place.path().join(name));
    run(&ours, "ours", 2);
    external::make(&theirs);
    for path in [&ours, &theirs] {
        open(&mut harness, &fake, path);
        click(&mut harness, "Name, tags and notes");
        let save = "Save name, tags and notes";
        assert!(harness.get_by_label(save).accesskit_node().is_disabled(), "nothing has changed");
        rewrite(&mut harness, "Own name", "Baseline");
        rewrite(&mut harness, "Tags", "paper, small");
        harness.get_by_role_and_label(Role::MultilineTextInput, "Notes").scroll_to_me();
        harness.run_steps(6);
        harness.get_by_role_and_label(Role::MultilineTextInput, "Notes").focus();
        harness.run_steps(2);
        harness.get_by_role_and_label(Role::MultilineTextInput, "Notes").type_text("seed 3 diverged");
        harness.run_steps(3);
        assert!(!path.join("notes.toml").exists());
        click(&mut harness, save);
        // A thread writes; the window goes on painting.
        let patience = Instant::now() + Duration::from_secs(60);
        while !shows(&harness, "Baseline") {
            assert!(Instant::now() < patience, "the name is not shown: {:?}", labels(&harness));
            harness.step();
        }
        let notes = RunNotes::read(path).unwrap();
        assert_eq!(notes, RunNotes::typed("Baseline", "paper,small", "seed 3 diverged"));
        harness.check_accessibility();
        // Another program says something else: the fields follow, as nothing is being typed.
        RunNotes::typed("Renamed", "", "").write(path).unwrap();
        glance(&mut harness, &fake, path);
        assert!(shows(&harness, "Renamed") && !shows(&harness, "Baseline"), "{:?}", labels(&harness));
        click(&mut harness, "Name, tags and notes");
    }
}

#[test]
fn notes_that_cannot_be_read_are_named_and_hide_nothing() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mine");
    run(&path, "mine", 3);
    std::fs::write(path.join("notes.toml"), "name = [3]").unwrap();
    open(&mut harness, &fake, &path);
    assert!(shows(&harness, "notes.toml") && shows(&harness, "3 of 16") && top(&harness, &path).is_some());
    RunNotes::default().write(&path).unwrap();
    glance(&mut harness, &fake, &path);
    assert!(!shows(&harness, "notes.toml"), "{:?}", labels(&harness));
}

#[test]
fn the_list_is_filtered_and_sorted_and_says_what_comparing_needs() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let paths = ["first", "second", "third"].map(|name| place.path().join(name));
    let compare = |path: &Path| format!("Compare with run {}", path.display());
    for (i, (path, label)) in paths.iter().zip([("m", "old"), ("a", "paper"), ("z", "paper")]).enumerate() {
        run(path, "mine", 3 - i);
        RunNotes::typed(label.0, label.1, "").write(path).unwrap();
        open(&mut harness, &fake, path);
        if i == 0 {
            let label = compare(path);
            let check = harness.get_by_label(&label);
            assert!(check.accesskit_node().is_disabled());
            assert!(shows(&harness, "To compare, a second run is needed"));
        }
    }
    assert!(!shows(&harness, "To compare"));
    assert!(!harness.get_by_label(&compare(&paths[0])).accesskit_node().is_disabled());
    let order = |harness: &Harness<'_, App>| {
        let mut shown: Vec<(f32, usize)> = (0..3).filter_map(|i| Some((top(harness, &paths[i])?, i))).collect();
        shown.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        shown.into_iter().map(|(_, i)| i).collect::<Vec<_>>()
    };
    assert_eq!(order(&harness), [0, 1, 2]);
    for (title, expected) in [
        ("Sort the runs by run", [1, 0, 2]),
        ("Sort the runs by run", [2, 0, 1]),
        ("Sort the runs by run", [0, 1, 2]),
        ("Sort the runs by cells finished", [2, 1, 0]),
    ] {
        click(&mut harness, title);
        assert_eq!(order(&harness), expected, "after {title}");
    }
    rewrite(&mut harness, "Filter the runs", "PAPER");
    assert_eq!(order(&harness), [2, 1]);
    assert!(shows(&harness, "2 of 3 runs"));
    rewrite(&mut harness, "Filter the runs", "paper a");
    assert_eq!(order(&harness), [2, 1], "the words stand in the tag");
    rewrite(&mut harness, "Filter the runs", "old m");
    assert_eq!(order(&harness), [0]);
    harness.check_accessibility();
}
