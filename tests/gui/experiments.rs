//! The panel *Experiments*: asking, watching, reading, deleting.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bayescope::events::Progress;
use bayescope::experiment::{
    CellEvent, CellResult, DataRecord, DataSpec, ExperimentSpec, Mapped, PRESETS, PartRecord, Watched,
};
use bayescope::flow::preprocess::Dequantisation;
use bayescope::gui::{App, Prefs, ThemePreference};
use bayescope::measure::{Bootstrap, Measured, measure};
use bayescope::run::{Estimate, EstimateTime, Run, RunEvent, RunExperiment, RunFolder, State, Status};
use bayescope::task::{Done, News};
use bayescope::units::Seed;
use bayescope::worker::protocol::{Event, JobId, Outcome};
use bayescope::worker::runs::{Contents, look};
use eframe::egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::fake::Fake;
use super::{full, shows, tasks};

/// A classifier that mixes the truth with guessing: its KL is about `share`² of that of guessing.
pub fn measured(share: f64) -> Measured {
    let images = 60;
    let p: Vec<f64> =
        (0..images).flat_map(|i| [0.05 + 0.9 * i as f64 / images as f64; 1].map(|p| [p, 1.0 - p])).flatten().collect();
    let log_q: Vec<f64> = p.iter().map(|p| ((1.0 - share) * p + share * 0.5).ln()).collect();
    let labels: Vec<usize> = (0..images).map(|i| usize::from(i % 5 != 0)).collect();
    measure(&p, &log_q, &labels, 2, &Bootstrap::with_replicates(Seed(0), 1000).unwrap()).unwrap()
}

pub fn spec(name: &str) -> ExperimentSpec {
    let text = format!(
        "name = '{name}'\n[world]\noracle = 'mnist'\n[grid]\narchitectures = ['linear', 'convnet']\n\
         train_sizes = [100, 200, 400, 800]\nseeds = [0, 1]\n[training]\nepochs = 2"
    );
    toml::from_str(&text).unwrap()
}

/// A run folder whose first cells are finished.
pub fn run(path: &Path, name: &str, finished: usize) -> RunFolder {
    run_of(path, &spec(name), finished)
}

pub fn run_of(path: &Path, spec: &ExperimentSpec, finished: usize) -> RunFolder {
    let folder = RunFolder::create(path, spec, "0123", None).unwrap();
    for planned in folder.plan.iter().take(finished) {
        let cell = planned.cell;
        let share = 0.9 * (cell.train_size as f64).powf(-0.25) * (1.0 + 0.03 * cell.seed as f64);
        std::fs::create_dir_all(folder.cell(&planned.id)).unwrap();
        Status::new(State::Done, 8, 8, None).write(&folder.cell(&planned.id)).unwrap();
        let result = CellResult {
            id: planned.id.clone(),
            cell,
            parameters: 7850,
            steps: 8,
            train_loss: 0.3,
            measured: measured(share),
            blocks: None,
            output: None,
        };
        folder.finish(&result.id, &result).unwrap();
    }
    folder
}

/// Opens a run folder as if dropped, and looks at it as the watcher would.
pub fn open(harness: &mut Harness<'_, App>, fake: &Fake, path: &Path) {
    super::disk::drop_in(harness, [path]);
    harness.run_steps(4);
    assert!(fake.watched().folders.iter().any(|folder| folder == path), "{:?}", fake.watched());
    glance(harness, fake, path);
}

pub fn glance(harness: &mut Harness<'_, App>, fake: &Fake, path: &Path) {
    let asked = fake.watched();
    let cells = asked.cells.filter(|(folder, _)| folder == path).map_or_else(Vec::new, |(_, cells)| cells);
    fake.send(Event::Looked(Box::new(look(path, &cells, asked.all_cells, None))));
    harness.run_steps(4);
}

pub fn click(harness: &mut Harness<'_, App>, label: &str) {
    harness.get_by_label(label).scroll_to_me();
    harness.run_steps(6);
    harness.get_by_label(label).click();
    harness.run_steps(4);
    if harness.state().waits_for_disk() {
        super::disk::looked(harness);
    }
}

pub fn rewrite(harness: &mut Harness<'_, App>, label: &str, text: &str) {
    harness.get_by_role_and_label(Role::TextInput, label).scroll_to_me();
    harness.run_steps(6);
    harness.get_by_role_and_label(Role::TextInput, label).focus();
    harness.run_steps(2);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
    harness.run_steps(2);
    harness.get_by_role_and_label(Role::TextInput, label).type_text(text);
    harness.run_steps(3);
}

/// A window with the panel in front.
pub fn panel() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = full();
    harness.get_by_role_and_label(Role::Button, "Experiments").click();
    harness.run_steps(4);
    (harness, fake)
}

#[test]
fn an_experiment_is_started_with_the_bayes_error_that_was_typed() {
    const TARGET: &str = "Target Bayes error of the experiment";
    let (mut harness, fake) = panel();
    rewrite(&mut harness, "Folder of the experiment", "/runs/mine");
    rewrite(&mut harness, TARGET, "5");
    assert!(shows(&harness, "Target Bayes error: Type a share"), "{:?}", super::labels(&harness));
    rewrite(&mut harness, TARGET, "5 %");
    assert!(shows(&harness, "τ is found when the run is planned"));
    let tau = harness.get_by_role_and_label(Role::SpinButton, "Base temperature τ of the experiment");
    assert!(tau.accesskit_node().is_disabled(), "a target and a τ are not both given");
    click(&mut harness, "Start experiment");
    let (_, RunExperiment { spec, .. }) = tasks::asked(&fake);
    let world = spec.unwrap().world;
    assert_eq!((world.target, world.tau, world.found), (Some(0.05), bayescope::units::Tau::ONE, None));
    harness.check_accessibility();
}

#[test]
fn an_experiment_is_estimated_and_started_with_edited_numbers() {
    let (mut harness, fake) = panel();
    assert!(shows(&harness, "No experiment yet") && shows(&harness, "54 cells"));
    rewrite(&mut harness, "Training images N", "50, 100, x");
    assert!(shows(&harness, "'x' is no whole number"));
    rewrite(&mut harness, "Training images N", "50, 100, 200");
    rewrite(&mut harness, "Folder of the experiment", "/runs/mine");
    click(&mut harness, "Architecture MLP-500");
    click(&mut harness, "Tell exact posteriors");
    assert!(shows(&harness, "36 cells"));
    click(&mut harness, "Estimate time");
    let (id, EstimateTime { spec, .. }) = tasks::asked(&fake);
    let estimates = spec.grid.architectures.iter().map(|&architecture| Estimate {
        architecture,
        parameters: 7850,
        cells: 18,
        steps: 1000,
        step_secs: 0.002,
        seconds: 100.0,
    });
    tasks::done::<EstimateTime>(&fake, id, Done::new(estimates.collect(), "about 200 s"));
    harness.run_steps(4);
    assert!(shows(&harness, "About 3 min 20 s on this device"));
    click(&mut harness, "Start experiment");
    let (_, RunExperiment { spec, folder, .. }) = tasks::asked(&fake);
    let spec = spec.unwrap();
    assert_eq!((folder.as_path(), spec.grid.train_sizes.as_slice()), (Path::new("/runs/mine"), &[50, 100, 200][..]));
    assert_eq!((spec.grid.architectures.len(), spec.grid.labels.len()), (2, 2));
    assert_eq!(harness.state().prefs().runs, [Path::new("/runs/mine")]);
    assert_eq!(fake.watched().folders, [Path::new("/runs/mine")]);
    assert!(shows(&harness, "Cancel run") && shows(&harness, "waiting"));
}

#[test]
fn an_experiment_is_started_on_a_dataset_and_its_run_says_so() {
    let (mut harness, fake) = panel();
    rewrite(&mut harness, "Folder of the experiment", "/runs/mine");
    let images = |harness: &mut Harness<'_, App>| {
        harness.get_by_role_and_label(Role::ComboBox, "Training images").scroll_to_me();
        harness.run_steps(6);
        harness.get_by_role_and_label(Role::ComboBox, "Training images").click();
        harness.run_steps(4);
    };
    images(&mut harness);
    click(&mut harness, "a dataset…");
    assert!(shows(&harness, "Name the dataset"));
    rewrite(&mut harness, "Dataset (folder or .npz)", "/data/digits");
    click(&mut harness, "Start experiment");
    let spec = tasks::asked::<RunExperiment>(&fake).1.spec.unwrap();
    assert_eq!(spec.data, Some(DataSpec { train: "/data/digits".into(), ..DataSpec::default() }));

    // A run on a dataset says of what its figures are.
    let place = tempfile::tempdir().unwrap();
    run(place.path(), "digits", 3);
    let part = |path: &str, dequantisation| PartRecord {
        path: path.into(),
        images: 9000,
        sha256: "0123".into(),
        dequantisation,
        noise_from: 0,
        note: None,
        classes: Mapped::ByName,
        of_this_world: false,
    };
    let pixels = part("/data/digits/test", Some(Dequantisation::MidPoint));
    let data = DataRecord { train: part("/data/digits/train", None), test: Some(pixels), both: false };
    std::fs::write(place.path().join("data.json"), serde_json::to_string(&data).unwrap()).unwrap();
    open(&mut harness, &fake, place.path());
    assert!(shows(&harness, "this world's opinion of them") && shows(&harness, "/data/digits/train (9000 world-space"));
}

fn step(fake: &Fake, id: JobId, folder: &RunFolder, said: CellEvent) {
    let planned = folder.plan[3].clone();
    let event = RunEvent::Cell { planned, said, eta_secs: Some(75.0) };
    fake.send(Event::Task { id, news: News::of_event::<RunExperiment>(event) });
}

#[test]
fn a_run_of_this_window_is_resumed_watched_held_and_stopped() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let folder = run(place.path(), "mine", 3);
    open(&mut harness, &fake, place.path());
    assert!(shows(&harness, "3 of 16") && shows(&harness, "stopped"));
    click(&mut harness, "Resume run");
    let (id, RunExperiment { spec, folder: path, .. }) = tasks::asked(&fake);
    assert_eq!((spec, path.as_path()), (None, place.path()));
    fake.send(Event::JobStarted { id });
    step(&fake, id, &folder, CellEvent::Started { parameters: 1, steps: 5000, resumed_at: 0 });
    for i in 1..=3000 {
        step(&fake, id, &folder, CellEvent::Step { step: i, loss: 2.0 / (i as f64).sqrt(), rate: 1e-3 });
    }
    let watched = Watched {
        step: 3000,
        epoch: 1,
        train_loss: 0.4,
        cross_entropy: 0.6,
        aleatoric: 0.25,
        epistemic: 0.35,
        expected_accuracy: 0.8,
        intervals: None,
    };
    step(&fake, id, &folder, CellEvent::Watched(watched));
    let progress = Progress { done: 3000, total: 5000 };
    fake.send(Event::JobProgress { id, progress, note: "step 3000".into() });
    harness.run_steps(40);
    for text in ["running", "3,000 of 5,000", "1 min 15 s", "Training of ConvNet on 100 images, seed 1"] {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    harness.check_accessibility();
    click(&mut harness, "Pause run");
    assert_eq!(fake.pauses(), [(id, true)]);
    assert!(shows(&harness, "paused"));
    click(&mut harness, "Continue run");
    click(&mut harness, "Cancel run");
    assert_eq!(fake.cancelled(), [id]);
    let why = "/runs/mine/pool/test.npz: No space left on device";
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed(why.into()) });
    harness.run_steps(4);
    assert!(shows(&harness, why) && shows(&harness, "Resume run"));
}

#[test]
fn a_finished_run_shows_its_law_its_verdict_and_its_calibration() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| place.path().join(name));
    run(&first, "first", 16);
    run(&second, "second", 16);
    open(&mut harness, &fake, &first);
    for text in
        ["16 of 16", "α = 0.", "R² = 0.", "The value falls as a power of N", "To KL ≤ 0.01 nats: A run comes within"]
    {
        assert!(shows(&harness, text), "'{text}' is not shown");
    }
    assert!(shows(&harness, "Loss over the number of training images") && shows(&harness, "Reliability diagram"));
    open(&mut harness, &fake, &second);
    let other = format!("Compare with run {}", first.display());
    click(&mut harness, &other);
    assert!(shows(&harness, "ConvNet (first)") && shows(&harness, "ConvNet (second)"));
    click(&mut harness, "Cell: ConvNet on 800 images, seed 1");
    assert!(fake.watched().cells.is_some_and(|(_, cells)| cells.len() == 1));
    assert!(shows(&harness, "ConvNet on 800 images, seed 1, 60 test images"));
    harness.check_accessibility();
    click(&mut harness, "Duplicate");
    click(&mut harness, "Start experiment");
    let (_, RunExperiment { spec: again, folder, .. }) = tasks::asked(&fake);
    assert_eq!((again == Some(spec("second")), folder.ends_with("runs/second")), (true, true));
}

#[test]
fn a_cell_that_fell_silent_is_marked_and_a_missing_folder_is_named() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("theirs");
    let folder = run(&path, "theirs", 1);
    let cell = folder.cell(&folder.plan[1].id);
    std::fs::create_dir_all(&cell).unwrap();
    let status = Status::new(State::Running, 3, 8, Some(9.0));
    Status { host: "node7".into(), ..status.clone() }.write(&cell).unwrap();
    open(&mut harness, &fake, &path);
    assert!(shows(&harness, "running on node7") && shows(&harness, "9.0 s"));
    Status { heartbeat: status.heartbeat - 300.0, ..status }.write(&cell).unwrap();
    glance(&mut harness, &fake, &path);
    assert!(shows(&harness, "silent 5 min") && !shows(&harness, "running on node7"));
    std::fs::remove_dir_all(&path).unwrap();
    glance(&mut harness, &fake, &path);
    assert!(shows(&harness, "This run cannot be read") && shows(&harness, "theirs: is no run folder"));
    click(&mut harness, "Forget run");
    assert!(harness.state().prefs().runs.is_empty() && shows(&harness, "No experiment yet"));
}

#[test]
fn a_damaged_result_is_named_beside_what_the_other_cells_say() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let folder = run(place.path(), "mine", 16);
    // The list scrolls to the last cell.
    let damaged = folder.result_path(&folder.plan[15].id);
    let whole = std::fs::read(&damaged).unwrap();
    std::fs::write(&damaged, "{").unwrap();
    open(&mut harness, &fake, place.path());
    for text in [
        "15 of 16",
        "1 cell damaged",
        "ConvNet on 800 images, seed 1 is left out: ",
        "computes the cell again",
        "α = 0.",
    ] {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    // As long as it is damaged nothing is read and fitted anew. Put back, it is read, though no file has come or gone.
    let before = look(place.path(), &[], false, None).found.unwrap();
    let again = look(place.path(), &[], false, Some(&before)).found.unwrap();
    assert!(Arc::ptr_eq(&again.grid().unwrap().results, &before.grid().unwrap().results));
    std::fs::write(&damaged, whole).unwrap();
    let after = look(place.path(), &[], false, Some(&before)).found.unwrap();
    let summary = |found: &Contents| found.grid().unwrap().results.summary.clone();
    assert_eq!((summary(&before).finished, summary(&before).damaged.len()), (15, 1));
    assert_eq!((summary(&after).finished, summary(&after).damaged.len()), (16, 0));
}

#[test]
fn deleting_a_run_asks_first() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("old");
    run(&path, "old", 2);
    open(&mut harness, &fake, &path);
    click(&mut harness, "Delete run…");
    assert!(shows(&harness, "2 of 16 cells are finished."));
    click(&mut harness, "Keep run");
    assert!(!shows(&harness, "Delete this run?") && path.exists());
    click(&mut harness, "Delete run…");
    click(&mut harness, "Delete run");
    // A thread deletes; the window goes on painting.
    let patience = Instant::now() + Duration::from_secs(30);
    while !harness.state().prefs().runs.is_empty() {
        assert!(Instant::now() < patience, "the run is still there");
        harness.step();
    }
    assert!(!path.exists());
}

#[test]
fn a_preset_is_copied_by_its_name_and_another_spec_is_written_first() {
    let (mut harness, _) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    rewrite(&mut harness, "Folder of the experiment", &path.display().to_string());
    let copied = |harness: &Harness<'_, App>, command: &str| {
        harness.state().session().log.iter().any(|entry| entry.text.contains(command))
    };
    click(&mut harness, "Copy experiment command");
    let command = format!("bayescope run {} --out {}", PRESETS[0].name, path.display());
    assert!(copied(&harness, &command) && !path.exists());
    rewrite(&mut harness, "Seeds", "7");
    click(&mut harness, "Copy experiment command");
    let command = format!("bayescope run {0}/run.toml --out {0}", path.display());
    let patience = Instant::now() + Duration::from_secs(30);
    while !copied(&harness, &command) {
        assert!(Instant::now() < patience, "nothing was copied");
        harness.step();
    }
    assert_eq!(ExperimentSpec::read(&path.join("run.toml")).unwrap().grid.seeds, [7]);
}

#[test]
fn the_panel_shows_in_both_themes() {
    for look in [ThemePreference::Light, ThemePreference::Dark] {
        let (mut harness, fake) = super::window(Prefs { theme: look, ..Prefs::default() });
        let place = tempfile::tempdir().unwrap();
        run(place.path(), "mine", 9);
        open(&mut harness, &fake, place.path());
        assert!(shows(&harness, "9 of 16"));
        harness.check_accessibility();
    }
}
