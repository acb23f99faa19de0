//! `run`, `resume`, `plan`, `summary`, `watch`: a grid of classifiers against a world whose truth is a formula; kills; any order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use crate::common::{fill, tiny};
use crate::run::{bayescope, fail, json, output, succeed, text};
use crate::slurm::temporary_files;

/// A spec in a folder of its own.
pub struct Grid {
    folder: tempfile::TempDir,
    pub spec: PathBuf,
}

impl Grid {
    /// A spec over the two Gaussian classes; `rest` is the grid and what follows.
    pub fn new(rest: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let oracle = tiny::gaussian_file(folder.path());
        Self::of(folder, oracle.file_name().unwrap().to_str().unwrap(), rest)
    }

    /// A spec over another world.
    pub fn of(folder: tempfile::TempDir, oracle: &str, rest: &str) -> Self {
        let spec = folder.path().join("spec.toml");
        std::fs::write(&spec, format!("name = 'test'\n[world]\noracle = '{oracle}'\n{rest}")).unwrap();
        Self { folder, spec }
    }

    /// The same in the same folder, changed.
    pub fn change(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.spec).unwrap();
        assert!(text.contains(from), "{from} is not in {text}");
        std::fs::write(&self.spec, text.replace(from, to)).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn run(&self, out: &Path) -> Value {
        json(&["run", text(&self.spec), "--out", text(out), "--device", "cpu", "--json"])
    }
}

pub fn summary(run: &Path) -> Vec<u8> {
    std::fs::read(run.join("summary.json")).unwrap()
}

/// ∫ H(p(y|t)) over t ~ N(Δ/2, 1), the log-odds being tΔ: the mean entropy of two Gaussian classes, nats.
fn mean_entropy(distance: f64) -> f64 {
    let normal = Normal::standard();
    let entropy = |odds: f64| {
        let p = 1.0 / (1.0 + (-odds).exp());
        let term = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
        term(p) + term(1.0 - p)
    };
    let step = 1e-3;
    (-10_000..10_000)
        .map(|i| f64::from(i) * step)
        .map(|t| normal.pdf(t - distance / 2.0) * entropy(t * distance))
        .sum::<f64>()
        * step
}

fn covers(estimate: &Value, truth: f64) -> bool {
    let end = |end: usize| estimate["interval"][end].as_f64().unwrap();
    end(0) <= truth && truth <= end(1)
}

#[test]
fn a_linear_classifier_reaches_the_bayes_error_of_two_gaussians() {
    let grid = Grid::new(
        "[grid]\narchitectures = ['linear']\ntrain_sizes = [20000]\nseeds = [0]\n[test]\nimages = 100000\n\
         [training]\nepochs = 6\nbatch = 50\nlearning_rate = 1e-2\n",
    );
    let found = grid.run(&grid.path("run"));
    let measured = &found["cells"][0]["measured"];
    let bayes_error = Normal::standard().cdf(-tiny::GAUSSIAN_DISTANCE / 2.0);
    assert!(covers(&measured["bayes_accuracy"], 1.0 - bayes_error), "{measured}");
    assert!(covers(&measured["expected_accuracy"], 1.0 - bayes_error), "{measured}");
    assert!(covers(&measured["error"], bayes_error), "{measured}");
    assert!(covers(&measured["aleatoric"], mean_entropy(tiny::GAUSSIAN_DISTANCE)), "{measured}");
    // It is the right model: with 20,000 images for 17 parameters nothing is left to learn but their noise, 17/2N nats.
    assert!(measured["epistemic"]["value"].as_f64().unwrap() < 2e-3, "{measured}");
    assert!(measured["gap"]["value"].as_f64().unwrap() < 1e-3, "{measured}");
    assert!(measured["identity_error"].as_f64().unwrap() < 1e-6);
    // Nothing to fit a law to, and it says so.
    assert!(found["laws"][0]["fits"].is_null() && found["laws"][0]["why_not"].is_string());
}

const SMALL: &str = "[grid]\narchitectures = ['linear', 'mlp-500']\ntrain_sizes = [50, 100, 200]\nseeds = [0, 1]\n\
                     labels = ['drawn', 'posterior']\n[test]\nimages = 400\nwatched = 100\n[training]\nepochs = 5\n\
                     learning_rate = 1e-2\n";

#[test]
fn a_folder_of_the_same_name_does_not_hide_a_preset() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("scaling-quick")).unwrap();
    let mut plan = bayescope(&["plan", "scaling-quick", "--out", "planned", "--device", "cpu"]);
    let output = plan.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(folder.path().join("planned/run.toml").is_file());
}

#[test]
fn cells_give_the_same_in_any_order_and_division() {
    let grid = Grid::new(SMALL);
    let whole = grid.path("whole");
    let found = grid.run(&whole);
    assert_eq!(found["finished"], 24);
    for cell in found["cells"].as_array().unwrap() {
        assert!(cell["measured"]["identity_error"].as_f64().unwrap() < 1e-6);
    }
    let shared = grid.path("shared");
    succeed(&["plan", text(&grid.spec), "--out", text(&shared), "--device", "cpu"]);
    for task in ["2", "0", "1"] {
        succeed(&["run", "--plan", text(&shared), "--task", task, "--of", "3", "--device", "cpu"]);
    }
    assert_eq!(summary(&shared), summary(&whole));
    // Nothing is computed twice.
    let written = || -> Vec<_> {
        let cells = std::fs::read_dir(whole.join("cells")).unwrap().map(|cell| cell.unwrap().path());
        let files = cells.flat_map(|cell| std::fs::read_dir(cell).unwrap().map(|file| file.unwrap().path()));
        let mut files: Vec<_> =
            files.map(|file| (std::fs::metadata(&file).unwrap().modified().unwrap(), file)).collect();
        files.sort();
        files
    };
    let before = written();
    assert!(before.len() >= 2 * 24);
    succeed(&["resume", text(&whole), "--device", "cpu"]);
    assert_eq!(written(), before);
    let csv = succeed(&["summary", text(&whole), "--csv"]);
    assert_eq!(csv.lines().count(), 25);
    let look = json(&["watch", text(&whole), "--once", "--json"]);
    assert_eq!((&look["finished"], &look["planned"]), (&Value::from(24), &Value::from(24)));
    assert!(fail(1, &["run", "--plan", text(&whole), "--task", "3", "--of", "3"]).contains("no task 3 of 3"));
}

#[test]
fn a_run_on_the_digits_of_before_goes_on_with_them() {
    let rest = "[grid]\narchitectures = ['linear']\ntrain_sizes = [20, 40]\nseeds = [0]\n[test]\nimages = 20\n\
                watched = 10\n[training]\nepochs = 1\n";
    let grid = Grid::of(tempfile::tempdir().unwrap(), "mnist@9b44f254", rest);
    let run = grid.path("run");
    succeed(&["plan", text(&grid.spec), "--out", text(&run), "--device", "cpu"]);
    // As a version wrote it to whom `mnist` was this world.
    let file = run.join("run.toml");
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap().replace("mnist@9b44f254", "mnist")).unwrap();
    let before = json(&["resume", text(&run), "--device", "cpu", "--json"]);
    assert_eq!(before["finished"], 2, "{before}");
    // The same figures by the name that stays.
    let there = grid.run(&grid.path("again"));
    let measured = |found: &Value| {
        found["cells"].as_array().unwrap().iter().map(|cell| cell["measured"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(measured(&there), measured(&before));
}

/// How the intervals of the first law hold the error of the test images.
fn image_error(run: &Path) -> Value {
    let found = json(&["summary", text(run), "--json"]);
    found["laws"][0]["fits"]["pure"]["image_error"].clone()
}

#[test]
fn laws_draw_the_test_images_anew_where_their_figures_are_kept() {
    let grid = Grid::new(
        "[grid]\narchitectures = ['linear']\ntrain_sizes = [40, 80, 160, 320]\nseeds = [0, 1]\n[test]\nimages = 300\n\
         [training]\nepochs = 3\nlearning_rate = 1e-2\n",
    );
    let run = grid.path("run");
    let found = grid.run(&run);
    assert_eq!(image_error(&run), "resampled");
    let cells = found["cells"].as_array().unwrap();
    let file = |cell: &Value| run.join("cells").join(cell["id"].as_str().unwrap()).join("images.npz");
    for cell in cells {
        let kl = bayescope::data::read_array(&file(cell), "kl").unwrap();
        let mean = kl.iter().sum::<f64>() / 300.0;
        assert!(kl.len() == 300 && (mean - cell["measured"]["epistemic"]["value"].as_f64().unwrap()).abs() < 1e-12);
        let images = |cell: &Value| bayescope::data::read_array(&file(cell), "image").unwrap();
        assert_eq!(images(cell), images(&cells[0]));
    }
    let (first, before) = (file(&cells[0]), summary(&run));
    let bytes = std::fs::read(&first).unwrap();
    // Another cell's, or a damaged one, is named, and what it says to do helps.
    std::fs::copy(file(&cells[1]), &first).unwrap();
    let why = fail(1, &["summary", text(&run)]);
    assert!(why.contains("images.npz") && why.contains("mean KL") && why.contains("remove it"), "{why}");
    std::fs::write(&first, &bytes[..bytes.len() / 2]).unwrap();
    let why = fail(1, &["summary", text(&run)]);
    assert!(why.contains("images.npz") && why.contains("remove it"), "{why}");
    // As older versions left it.
    std::fs::remove_file(&first).unwrap();
    assert_eq!(image_error(&run), "common");
    // Measured again, it is as it was.
    std::fs::remove_file(first.with_file_name("result.json")).unwrap();
    succeed(&["resume", text(&run), "--device", "cpu"]);
    assert_eq!((std::fs::read(&first).unwrap(), summary(&run)), (bytes, before));
}

#[test]
fn one_damaged_result_leaves_the_summary_of_the_others() {
    let grid = Grid::new(
        "[grid]\narchitectures = ['linear']\ntrain_sizes = [40]\nseeds = [0, 1, 2]\n[test]\nimages = 100\nwatched = 50\n\
         [training]\nepochs = 1\n",
    );
    let run = grid.path("run");
    let whole = grid.run(&run);
    let (cells, before) = (whole["cells"].as_array().unwrap(), summary(&run));
    let damaged = run.join("cells").join(cells[1]["id"].as_str().unwrap()).join("result.json");
    std::fs::write(&damaged, "{ \"id\"").unwrap();
    let named = |said: &str| {
        let line = said.lines().find(|line| line.contains("seed 1 is left out")).unwrap_or_default();
        assert!(line.contains("result.json") && line.contains("bayescope resume"), "{said}");
    };
    named(&succeed(&["summary", text(&run)]));
    let found = json(&["summary", text(&run), "--json"]);
    assert_eq!((&found["finished"], &found["planned"]), (&2.into(), &3.into()));
    assert_eq!(found["cells"], serde_json::json!([cells[0], cells[2]]));
    let of = found["damaged"].as_array().unwrap();
    assert_eq!((of.len(), &of[0]["id"]), (1, &cells[1]["id"]));
    let table = output(&["summary", text(&run), "--csv"]);
    assert!(table.status.success() && String::from_utf8_lossy(&table.stdout).lines().count() == 3);
    named(&String::from_utf8_lossy(&table.stderr));
    // It is not computed again unasked, and a run that lacks a cell does not end well.
    let resumed = output(&["resume", text(&run), "--device", "cpu"]);
    assert_eq!(resumed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&resumed.stdout).contains("2 of 3 cells finished"));
    named(&String::from_utf8_lossy(&resumed.stderr));
    std::fs::remove_file(&damaged).unwrap();
    succeed(&["resume", text(&run), "--device", "cpu"]);
    assert_eq!(summary(&run), before);
}

#[test]
fn the_worst_images_of_a_cell_are_listed_and_old_runs_say_how_to_get_them() {
    let grid = Grid::new(
        "[grid]\narchitectures = ['linear', 'mlp-500']\ntrain_sizes = [40]\nseeds = [0]\n[test]\nimages = 300\n\
         [training]\nepochs = 3\nlearning_rate = 1e-2\n",
    );
    let run = grid.path("run");
    let found = grid.run(&run);
    for cell in found["cells"].as_array().unwrap() {
        let id = cell["id"].as_str().unwrap();
        let worst = json(&["summary", text(&run), "--worst", id, "--json"]);
        assert_eq!((&worst["id"], &worst["tested"], &worst["cell"]), (&cell["id"], &Value::from(300), &cell["cell"]));
        let images = worst["images"].as_array().unwrap();
        assert_eq!(images.len(), 64);
        let kl = |image: &Value| image["kl"].as_f64().unwrap();
        let of = |image: &Value, what: &str| -> Vec<f64> {
            image[what].as_array().unwrap().iter().map(|p| p.as_f64().unwrap()).collect()
        };
        for image in images {
            let (p, q) = (of(image, "p"), of(image, "q"));
            let again: f64 = p.iter().zip(&q).filter(|(p, _)| **p > 0.0).map(|(p, q)| p * (p / q).ln()).sum();
            assert!((again - kl(image)).abs() < 1e-12, "{image}");
        }
        assert!(images.is_sorted_by(|a, b| kl(a) >= kl(b)));
        // The mean over all is below that of the worst, and above what the worst alone add up to.
        let mean = cell["measured"]["epistemic"]["value"].as_f64().unwrap();
        let sum: f64 = images.iter().map(kl).sum();
        assert!(sum / 300.0 <= mean + 1e-12 && mean <= (sum + (300.0 - 64.0) * kl(&images[63])) / 300.0 + 1e-12);
        let listed = succeed(&["summary", text(&run), "--worst", id]);
        assert_eq!(listed.lines().count(), 2 + 64);
        assert!(listed.contains(&format!("{:.4}", kl(&images[0]))) && listed.contains("q=0."), "{listed}");
    }
    let id = found["cells"][0]["id"].as_str().unwrap();
    let cell = run.join("cells").join(id);
    let bytes = std::fs::read(cell.join("worst.json")).unwrap();
    std::fs::remove_file(cell.join("worst.json")).unwrap();
    let before = summary(&run);
    let why = fail(1, &["summary", text(&run), "--worst", id]);
    assert!(why.contains("before worst images were kept") && why.contains("resume"), "{why}");
    // What it says to do helps, and changes nothing else.
    std::fs::remove_file(cell.join("result.json")).unwrap();
    let why = fail(1, &["summary", text(&run), "--worst", id]);
    assert!(why.contains("is not finished"), "{why}");
    succeed(&["resume", text(&run), "--device", "cpu"]);
    assert_eq!((std::fs::read(cell.join("worst.json")).unwrap(), summary(&run)), (bytes, before));
    let why = fail(1, &["summary", text(&run), "--worst", "nothing"]);
    assert!(why.contains("no cell nothing") && why.contains("plan"), "{why}");
}

/// The states that cells of a run have saved in the middle of their training: files and when they were written.
fn states(run: &Path) -> BTreeSet<(PathBuf, SystemTime)> {
    let cells = std::fs::read_dir(run.join("cells")).into_iter().flatten().flatten();
    let states = cells.map(|cell| cell.path().join("last.safetensors"));
    states.filter_map(|path| Some((path.clone(), path.metadata().ok()?.modified().ok()?))).collect()
}

#[test]
fn twenty_kills_change_nothing() {
    let rest = "[grid]\narchitectures = ['mlp-500', 'convnet']\ntrain_sizes = [300, 600]\nseeds = [0]\n\
                [test]\nimages = 300\nwatched = 50\n[training]\nepochs = 60\nlearning_rate = 1e-3\n\
                resize = 8\nshards = 2\n";
    let grid = Grid::new(rest);
    let whole = grid.path("whole");
    let begun = Instant::now();
    grid.run(&whole);
    let took = begun.elapsed();
    let killed = grid.path("killed");
    let args = ["run", text(&grid.spec), "--out", text(&killed), "--device", "cpu", "--checkpoint-every", "0.05"];
    let waits = fill::uniform("kills", 7, 20);
    let (mut kills, mut resumed) = (0, 0);
    for wait in waits {
        let before = states(&killed);
        let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The kill comes once it has trained and saved, within a sixtieth of what the whole took, however fast the machine is.
        let begun = Instant::now();
        while states(&killed).is_subset(&before) && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(took.mul_f64((1.0 + wait) / 120.0));
        let running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        kills += usize::from(running);
        resumed += usize::from(std::fs::read_dir(killed.join("cells")).is_ok_and(|mut cells| {
            cells.any(|cell| {
                let cell = cell.unwrap().path();
                cell.join("last.safetensors").exists() && !cell.join("result.json").exists()
            })
        }));
    }
    assert_eq!(kills, 20, "the grid is too small to be killed so often");
    assert!(resumed >= 10, "only {resumed} kills hit a cell in the middle");
    succeed(&args);
    assert_eq!(summary(&killed), summary(&whole));
    if cfg!(target_os = "linux") {
        assert_eq!(temporary_files(&killed), 0, "what the killed have left is not swept");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let grid = Grid::new("[grid]\narchitectures = ['resnet-19']\ntrain_sizes = [10]\n");
    let message = fail(1, &["run", text(&grid.spec), "--out", text(&grid.path("run")), "--device", "cpu"]);
    assert!(
        message.contains("spec.toml") && message.contains("resnet-19") && message.contains("resnet-18"),
        "{message}"
    );
    let grid =
        Grid::new("[grid]\narchitectures = ['alexnet']\ntrain_sizes = [10]\nseeds = [0]\n[training]\nepochs = 1\n");
    let run = grid.path("run");
    let message = fail(1, &["run", text(&grid.spec), "--out", text(&run), "--device", "cpu"]);
    assert!(message.contains("1 cell could not be finished") && message.contains("bayescope resume"), "{message}");
    assert!(message.contains("AlexNet") && message.contains("at least 63"), "{message}");
    let look = json(&["watch", text(&run), "--once", "--json"]);
    let why = look["cells"][0]["status"]["message"].as_str().unwrap();
    assert!(why.contains("at least 63") && why.contains("resize"), "{why}");
    // The folder holds this run, not another.
    let other = Grid::new(SMALL);
    assert!(fail(1, &["run", text(&other.spec), "--out", text(&run), "--device", "cpu"]).contains("run.toml"));
    assert!(fail(1, &["summary", text(&grid.path("nothing"))]).contains("there is no such run"));
    assert!(fail(1, &["summary", "scaling-cels"]).contains("did you mean scaling-cells?"));
}
