//! Every picture of the window in `docs/`, taken from the window itself with the real engine, by role and label: a label that is gone
//! fails the test, and the picture with it. `docs/screenshots.sh` makes what the scenes open and starts this; skipped
//! unless `BAYESCOPE_PICTURES` names the folder for the pictures, since they take minutes and differ between rasterisers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]
#![cfg(feature = "gui")]

#[path = "screenshots/stage.rs"]
mod stage;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bayescope::gui::App;
use bayescope::run::hardness::RankCorpora;
use bayescope::worker::runs::Found;
use bayescope::worker::walk::WalkToBoundary;
use eframe::egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use stage::Stage;

/// The folder that `docs/screenshots.sh` filled: the guide's dataset and predictions, finished runs.
fn made(name: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("BAYESCOPE_MADE")?);
    let path = folder.join(name);
    path.exists().then_some(path)
}

/// Whether a picture is wanted: `BAYESCOPE_SCENES` holds names, or nothing for all.
fn wanted(name: &str) -> bool {
    match std::env::var("BAYESCOPE_SCENES") {
        Ok(names) if !names.trim().is_empty() => names.split_whitespace().any(|one| one == name),
        _ => true,
    }
}

/// Contact sheets of bundled worlds, each made by the command that stands beside it in `docs/oracles.md`.
const SHEETS: [&str; 3] = ["mnist", "cells", "fashion"];
/// Sheets of real images; their page says which these are.
const REAL: [&str; 3] = ["mnist-real", "cells-real", "fashion-real"];

/// A scene and what it needs from `BAYESCOPE_MADE`, if anything.
type Scene = (&'static str, Option<&'static str>, fn(&str, &Path));

const SCENES: [Scene; 19] = [
    ("explorer-light", None, |name, _| explorer(name, "Light")),
    ("explorer-dark", None, |name, _| explorer(name, "Dark")),
    ("target", None, |name, _| target(name)),
    ("bayes-error", None, |name, _| bayes_error(name)),
    ("animals", None, |name, _| animals(name)),
    ("walk", None, |name, _| walk(name)),
    ("export", None, |name, _| export(name)),
    ("judge", Some("hard"), judge),
    ("experiments-live", None, |name, _| experiments_live(name)),
    ("experiments", Some("runs/guide"), |name, run| figure(name, run, "Scaling with the number of training images")),
    ("worst-images", Some("runs/guide"), worst),
    ("validation", Some("validation"), validation),
    ("experiments/temperature", Some("runs/temperature-quick"), finding),
    ("experiments/self-validation", Some("runs/self-validation-quick"), finding),
    ("experiments/soft-labels", Some("runs/soft-labels-quick"), finding),
    ("experiments/shift", Some("runs/shift-quick"), |name, run| figure(name, run, "Equal KL, other shifts")),
    ("experiments/active-learning", Some("runs/active-learning-quick"), finding),
    ("experiments/graders", Some("runs/graders-quick"), finding),
    ("experiments/hardness", Some("runs/hardness-quick"), hardness),
];

#[test]
fn screenshots() {
    if std::env::var_os("BAYESCOPE_PICTURES").is_none() {
        return println!("skipped: BAYESCOPE_PICTURES names no folder for the pictures");
    }
    for name in std::env::var("BAYESCOPE_SCENES").unwrap_or_default().split_whitespace() {
        assert!(SCENES.iter().any(|(scene, ..)| *scene == name), "there is no scene {name}");
    }
    let mut missing = Vec::new();
    for (name, needs, scene) in SCENES {
        if !wanted(name) {
            continue;
        }
        match needs.map(made) {
            Some(None) => missing.push(name),
            Some(Some(path)) => scene(name, &path),
            None => scene(name, Path::new("")),
        }
    }
    assert!(missing.is_empty(), "BAYESCOPE_MADE lacks what these show: {missing:?}");
}

/// Pages and pictures below a folder of `docs/`.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let inside = entries.flat_map(|path| if path.is_dir() { files(&path, ending) } else { vec![path] });
    inside.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// The pictures that a page shows, each with the words that stand for it.
fn shown(page: &Path) -> Vec<(PathBuf, String)> {
    let text = std::fs::read_to_string(page).unwrap();
    let picture = |part: &str| {
        let (words, rest) = part.split_once("](")?;
        let target = page.parent().unwrap().join(rest.split_once(')')?.0);
        Some((target.canonicalize().unwrap_or(target), words.to_owned()))
    };
    text.split("![").skip(1).filter_map(picture).collect()
}

#[test]
fn every_picture_on_a_page_has_a_scene_and_words_and_every_scene_a_page() {
    let root = Path::new(".").canonicalize().unwrap();
    let docs = root.join("docs");
    let scenes = SCENES.iter().map(|(name, ..)| *name).chain(SHEETS).chain(REAL);
    let scenes: BTreeSet<PathBuf> = scenes.map(|name| docs.join(format!("{name}.png"))).collect();
    let oracles = std::fs::read_to_string(docs.join("oracles.md")).unwrap();
    for name in SHEETS {
        assert!(oracles.contains(&format!("bayescope sample {name} --n 64 --out {name}.png")), "{name}");
    }
    let pages = [files(&docs, "md"), vec![root.join("README.md")]].concat();
    let pictures: Vec<_> = pages.iter().flat_map(|page| shown(page)).collect();
    assert!(pictures.iter().all(|(_, words)| words.len() > 10), "words that stand for a picture: {pictures:?}");
    assert_eq!(pictures.into_iter().map(|(picture, _)| picture).collect::<BTreeSet<_>>(), scenes);
    assert_eq!(files(&docs, "png").into_iter().collect::<BTreeSet<_>>(), scenes);
}

/// The first thing that anybody sees, with an image selected whose class is in doubt.
fn explorer(name: &str, theme: &str) {
    let mut stage = Stage::open("mnist", theme);
    stage.click_containing("Sample 23,");
    stage.shot(name);
}

/// A world of 5 % Bayes error, its most ambiguous images first.
fn target(name: &str) {
    let mut stage = Stage::at_five_percent();
    stage.choose("Sort by", "entropy (nats)");
    stage.click("ascending");
    stage.rest(1.0);
    let first = stage.window.state().view().in_view.first().copied().expect("images in view");
    stage.click_containing(&format!("Sample {first},"));
    stage.shot(name);
}

fn bayes_error(name: &str) {
    let mut stage = Stage::open("mnist", "Light");
    stage.panel("bayes error");
    let unfinished = ["Computing…", " of 81 points"];
    stage.wait("the curve and the hardness of classes", move |window| {
        unfinished.iter().all(|text| window.query_all_by_label_contains(text).next().is_none())
    });
    stage.shot(name);
}

fn animals(name: &str) {
    let mut stage = Stage::open("tests/worlds/animals", "Light");
    stage.click_containing("Sample 0,");
    stage.rest(4.0);
    stage.shot(name);
}

fn walk(name: &str) {
    let mut stage = Stage::open("tests/worlds/animals", "Light");
    stage.click_containing("Sample 0,");
    stage.panel("walk");
    stage.click("Walk to the boundary");
    let walked = |window: &Harness<'_, App>| {
        window.state().session().tasks.get::<WalkToBoundary>().is_some_and(|view| view.report.is_some())
    };
    stage.wait("the walk", walked);
    stage.shot(name);
}

/// A small dataset of the guide's world, made before our eyes.
fn export(name: &str) {
    let place = tempfile::tempdir().unwrap();
    let mut stage = Stage::at_five_percent();
    stage.panel("export");
    stage.write("Folder of the dataset", &place.path().join("hard").display().to_string());
    stage.click("Start export");
    stage.wait("the dataset", |window| window.query_by_label("Judge a classifier on it").is_some());
    stage.shot(name);
}

/// The guide's dataset and classifier.
fn judge(name: &str, dataset: &Path) {
    let mut stage = Stage::at_five_percent();
    stage.panel("judge");
    stage.write("Exported dataset", &dataset.display().to_string());
    stage.write("Model 1", &dataset.with_file_name("mine.npz").display().to_string());
    stage.click("Judge");
    stage.wait("the judgement", |window| window.query_by_label("Models beside the Bayes limit").is_some());
    stage.shot(name);
}

/// The guide's experiment while it trains: its last two cells of 24.
fn experiments_live(name: &str) {
    let place = tempfile::tempdir().unwrap();
    let mut stage = Stage::at_five_percent();
    stage.panel("experiments");
    stage.click("As in the window");
    stage.click("Architecture ConvNet");
    stage.write("Training images N", "100, 300, 1000, 3000");
    stage.write("Folder of the experiment", &place.path().join("scaling-quick").display().to_string());
    stage.click("Start experiment");
    stage.wait("a good part of the last cell but one", |window| {
        let founds = window.state().session().runs.iter().filter_map(|run| run.found());
        let half =
            |found: &Found| found.newest().and_then(|cell| cell.status.as_ref()).is_some_and(|cell| cell.step > 300);
        founds.into_iter().any(|found| found.finished() == 22 && half(found))
    });
    stage.shot(name);
}

/// A run that is whole: figures of a part of it would be taken for those of its page.
fn open_run(run: &Path) -> Stage {
    let mut stage = Stage::open("mnist", "Light");
    stage.window.state_mut().open(vec![run.to_owned()]);
    stage.wait("the run", |window| window.state().session().runs.iter().any(|run| run.found().is_some()));
    stage.rest(2.0);
    let session = stage.window.state().session();
    let [finished, planned] =
        session.runs.iter().find_map(|run| run.found()).map(|found| [found.finished(), found.cells.len()]).unwrap();
    assert_eq!(finished, planned, "cells of {} are unfinished: `bayescope resume` it first", run.display());
    stage
}

fn worst(name: &str, run: &Path) {
    let mut stage = open_run(run);
    // The list of cells shows some lines of many.
    stage.window.query_all_by_label_contains("Cell: MLP-500").last().expect("a cell of MLP-500").click();
    stage.rest(1.0);
    stage.click("Worst images");
    stage
        .wait("images from outside", |window| window.query_by_label_contains("The classifier and the truth").is_some());
    stage.wait("samples of the run's world", |window| window.state().session().gallery_complete());
    stage.shot(name);
}

/// The first figure of an experiment that is no scaling.
fn finding(name: &str, run: &Path) {
    figure(name, run, "Save all figures…");
}

/// What stands under a label of a run.
fn figure(name: &str, run: &Path, label: &str) {
    let mut stage = open_run(run);
    stage.raise(label);
    stage.shot(name);
}

fn hardness(name: &str, folder: &Path) {
    let mut stage = Stage::open("mnist", "Light");
    stage.panel("hardness");
    stage.write("Folder of the ranking", &folder.display().to_string());
    stage.click("Continue the ranking in this folder");
    stage.wait("the ranking", |window| window.query_by_label_contains("corpora finished").is_some());
    stage.rest(2.0);
    let view = stage.window.state().session().tasks.get::<RankCorpora>().unwrap();
    let found = &view.live.found.as_ref().unwrap().found;
    assert_eq!(
        found.corpora.len(),
        found.planned,
        "corpora of {} are unfinished: `bayescope resume` it first",
        folder.display()
    );
    stage.raise("Save all ranking figures…");
    stage.shot(name);
}

fn validation(name: &str, folder: &Path) {
    let data = std::env::var("BAYESCOPE_MNIST").expect("the folder of MNIST's four files");
    let mut stage = Stage::open("mnist@9b44f254", "Light");
    stage.panel("validate");
    stage.write("Real images", &data);
    stage.write("Folder of the validation", &folder.display().to_string());
    let draw = stage.window.get_by_role_and_label(Role::SpinButton, "Draw");
    draw.set_value_accesskit(1000.0);
    stage.rest(0.2);
    stage.click("Validate");
    // Their table has the same title, further down.
    stage.wait("the nearest pairs", |window| window.query_all_by_label("Nearest pairs").next().is_some());
    stage.raise("Nearest pairs");
    stage.shot(name);
}
