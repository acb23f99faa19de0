//! Kinds of experiments in the panel *Experiments*: choosing one, its own fields, its figures, taking them away.

use std::path::Path;

use bayescope::experiment::{ExperimentSpec, ShiftSpec, TemperatureSpec};
use bayescope::run::RunExperiment;
use eframe::egui::Key;

use super::experiments::{click, open, panel, rewrite, run_of};
use super::{by_palette, shows, tables, tasks};

fn sweep() -> ExperimentSpec {
    toml::from_str(
        "name = 'sweep'\n[world]\noracle = 'mnist'\n[experiment]\nkind = 'temperature'\ntaus = [0.8, 1.6]\n[grid]\n\
         architectures = ['linear', 'convnet']\ntrain_sizes = [100]\nseeds = [0, 1]\n[training]\nepochs = 2",
    )
    .unwrap()
}

#[test]
fn every_kind_is_chosen_by_name_and_started_with_its_own_fields() {
    let (mut harness, fake) = panel();
    click(&mut harness, "New experiment: Temperature");
    assert!(shows(&harness, "How far above the Bayes error"));
    rewrite(&mut harness, "Temperatures τ", "0.5; 1, wide");
    assert!(shows(&harness, "'wide' is no number"));
    rewrite(&mut harness, "Temperatures τ", "0.5; 1");
    rewrite(&mut harness, "Folder of the experiment", "/runs/sweep");
    click(&mut harness, "Start experiment");
    let (_, RunExperiment { spec, folder, .. }) = tasks::asked(&fake);
    let spec = spec.unwrap();
    assert_eq!(folder, Path::new("/runs/sweep"));
    let own: &TemperatureSpec = spec.experiment.get().unwrap();
    let taus: Vec<f64> = own.taus.iter().map(|tau| tau.get()).collect();
    assert_eq!(taus, [0.5, 1.0]);
}

#[test]
fn shifts_and_strategies_are_edited_in_place() {
    let (mut harness, fake) = panel();
    click(&mut harness, "New experiment: Active learning");
    assert!(shows(&harness, "Which labels are worth buying"));
    let old = ["random", "max entropy", "max epistemic", "margin", "BALD", "max aleatoric"];
    for strategy in old.into_iter().chain(["BatchBALD", "core-set", "BADGE", "TypiClust", "look-ahead"]) {
        click(&mut harness, &format!("Strategy {strategy}"));
    }
    assert!(shows(&harness, "experiment.strategies is empty"), "what is wrong is said at once");
    click(&mut harness, "New experiment: Distribution shift");
    rewrite(&mut harness, "Class prior of shift 2", "0.5, much");
    assert!(shows(&harness, "'much' is no number"));
    rewrite(&mut harness, "Class prior of shift 2", "0 0 0 0 5 0 0 3 0 2");
    click(&mut harness, "Remove the setting of shift 3");
    assert!(!shows(&harness, "is no number"));
    // What was removed comes back where it stood.
    click(&mut harness, "Put Moderate Imbalance (50/30/20) back");
    rewrite(&mut harness, "Folder of the experiment", "/runs/shift");
    click(&mut harness, "Start experiment");
    let spec = tasks::asked::<RunExperiment>(&fake).1.spec.unwrap();
    let own: &ShiftSpec = spec.experiment.get().unwrap();
    assert_eq!(own.settings[1].prior, [0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 3.0, 0.0, 2.0]);
    assert_eq!((own.settings.len(), own.settings[2].name.as_str()), (18, "Moderate Imbalance (50/30/20)"));
    assert!(!shows(&harness, "Put Moderate"));
}

#[test]
fn every_preset_is_in_the_palette_and_fills_the_form() {
    let (mut harness, fake) = panel();
    click(&mut harness, "Gallery");
    by_palette(&mut harness, "new experiment soft-labels-quick");
    assert!(shows(&harness, "What is the whole exact posterior worth"), "{:?}", super::labels(&harness));
    rewrite(&mut harness, "Folder of the experiment", "/runs/soft");
    click(&mut harness, "Start experiment");
    let spec = tasks::asked::<RunExperiment>(&fake).1.spec.unwrap();
    assert_eq!((spec.name.as_str(), spec.experiment.about().name), ("soft-labels-quick", "soft-labels"));
}

#[test]
fn figures_and_tables_of_a_run_are_shown_and_saved() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("sweep");
    run_of(&run, &sweep(), 8);
    open(&mut harness, &fake, &run);
    assert!(shows(&harness, "Test error and Bayes error against temperature"));
    assert!(shows(&harness, "Errors over the temperature"), "the table");
    let title = "Test error and Bayes error against temperature, 100 training images";
    assert!(tables::read(&mut harness, title).len() > 4, "its points are in its table");
    click(&mut harness, "Save the figure Test error and Bayes error against temperature, 100 training images");
    let file = place.path().join("mine.svg");
    rewrite(&mut harness, "Path", &file.display().to_string());
    harness.key_press(Key::Enter);
    wait(&mut harness, || file.exists());
    assert!(std::fs::read_to_string(&file).unwrap().contains("Bayes error"));
    click(&mut harness, "Copy figures command");
    let command = format!("bayescope summary {0} --figures {0}/figures", run.display());
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(&command)));
    click(&mut harness, "Save all figures…");
    let folder = place.path().join("all");
    rewrite(&mut harness, "Path", &folder.display().to_string());
    harness.key_press(Key::Enter);
    wait(&mut harness, || folder.join("figures.md").exists());
    let names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for extension in ["svg", "png", "csv"] {
        assert!(names.iter().any(|name| name.ends_with(extension)), "{names:?}");
    }
}

fn wait(harness: &mut egui_kittest::Harness<'_, bayescope::gui::App>, done: impl Fn() -> bool) {
    for _ in 0..3000 {
        if done() {
            return;
        }
        harness.run_steps(1);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("nothing was saved");
}
