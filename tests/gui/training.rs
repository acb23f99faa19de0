//! The panel Oracle training.

use std::path::Path;
use std::time::{Duration, Instant};

use bayescope::gui::App;
use bayescope::oracle::evaluate::Evaluation;
use bayescope::oracle::folder::TrainingRecord;
use bayescope::oracle::train::{StepLoss, TrainEvent};
use bayescope::run::TrainOracle;
use bayescope::task::News;
use bayescope::worker::protocol::{Event, Job, Outcome};
use eframe::egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::{click, rewrite};
use super::fake::{Fake, SHAPE, tile};
use super::images::bytes;
use super::{full, shows, tasks};

#[test]
fn a_run_is_started_from_a_preset_with_edited_numbers() {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("training");
    harness.run_steps(3);
    assert!(shows(&harness, "Give the folder of images.") && shows(&harness, "No training yet"));
    harness.get_by_role_and_label(Role::SpinButton, "Epochs").scroll_to_me();
    harness.run_steps(8);
    harness.get_by_label("TarFlow").click();
    harness.run_steps(3);
    click(&mut harness, "A part of the images");
    harness.get_by_role_and_label(Role::SpinButton, "Images taken").set_value_accesskit(700.0);
    harness.get_by_role_and_label(Role::SpinButton, "Seed of the training").set_value_accesskit(5.0);
    harness.run_steps(3);
    harness.get_by_role_and_label(Role::TextInput, "Folder of images").focus();
    harness.run_steps(2);
    harness.get_by_role_and_label(Role::TextInput, "Folder of images").type_text("/data/mine");
    harness.run_steps(3);
    harness.get_by_role_and_label(Role::TextInput, "Folder of the run").focus();
    harness.run_steps(2);
    harness.get_by_role_and_label(Role::TextInput, "Folder of the run").type_text("/runs/mine");
    harness.run_steps(3);
    harness.get_by_label("Start training").scroll_to_me();
    harness.run_steps(8);
    harness.get_by_label("Start training").click();
    harness.run_steps(3);
    let (_, TrainOracle { spec, folder }) = tasks::asked(&fake);
    assert!(spec.tarflow.is_some());
    assert_eq!((spec.data.limit, spec.training.seed.0), (Some(700), 5));
    assert!(harness.query_by_label("waiting").is_some(), "{:?}", super::labels(&harness));
    assert_eq!((spec.data.path.as_path(), folder.as_path()), (Path::new("/data/mine"), Path::new("/runs/mine")));
}

#[test]
fn specs_are_read_beside_the_window() {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("training");
    harness.run_steps(3);
    // A thread reads.
    let until = |harness: &mut Harness<'_, App>, what: &str, seen: &dyn Fn(&Harness<'_, App>) -> bool| {
        let patience = Instant::now() + Duration::from_secs(30);
        while !seen(harness) {
            assert!(Instant::now() < patience, "{what}: {:?}", super::labels(harness));
            harness.step();
        }
    };
    let place = tempfile::tempdir().unwrap();
    let spec = place.path().join("train.toml");
    rewrite(&mut harness, "Spec file (.toml)", &spec.display().to_string());
    click(&mut harness, "Load spec");
    let missing = format!("{}: ", spec.display());
    until(&mut harness, "not said", &|harness| shows(harness, &missing));
    std::fs::write(&spec, "name = 'mine'\n[data]\npath = '/data/of mine'\n").unwrap();
    click(&mut harness, "Load spec");
    until(&mut harness, "not read", &|harness| !shows(harness, &missing));
    let images = harness.get_by_role_and_label(Role::TextInput, "Folder of images").value();
    assert_eq!(images.as_deref(), Some("/data/of mine"));
    // A run goes on with its own spec.
    rewrite(&mut harness, "Folder of a stopped run", &place.path().display().to_string());
    click(&mut harness, "Continue this run");
    until(&mut harness, "not begun", &|_| {
        fake.jobs().iter().any(|(_, job)| tasks::task_of::<TrainOracle>(job).is_some())
    });
    let (_, TrainOracle { spec, folder }) = tasks::asked(&fake);
    assert_eq!((&*spec.name, folder.as_path()), ("mine", place.path()));
}

#[test]
fn a_run_can_be_held_looked_back_at_and_used() {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("training");
    super::disk::drop_in(&mut harness, ["/data/folder"]);
    harness.run_steps(2);
    fake.train(&mut harness);
    assert!(shows(&harness, "Samples after epoch 3"));
    let slider = harness.get_by_role_and_label(Role::Slider, "Sheet");
    slider.scroll_to_me();
    harness.run_steps(8);
    harness.get_by_role_and_label(Role::Slider, "Sheet").set_value_accesskit(0.0);
    harness.run_steps(3);
    assert!(shows(&harness, "Samples after epoch 1"));
    harness.get_by_label("Newest sheet").click();
    harness.run_steps(3);
    assert!(shows(&harness, "Samples after epoch 3"));
    harness.get_by_label("Use this checkpoint now").scroll_to_me();
    harness.run_steps(8);
    harness.get_by_label("Use this checkpoint now").click();
    harness.run_steps(3);
    assert_eq!(fake.checkpoints(), [Path::new("/runs/mine")]);
    fake.open_classes(vec!["left".into(), "right".into()]);
    fake.send(Event::JobEnded { id: 701, outcome: Outcome::Done("mine after epoch 3 is open".into()) });
    harness.run_steps(4);
    assert_eq!(harness.state().prefs().oracle, "/runs/mine/best-so-far");
    assert!(fake.jobs().iter().all(|(_, job)| !matches!(job, Job::OpenOracle(_))), "it is open already");
}

#[test]
fn a_run_that_is_over_says_how_it_ended() {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("training");
    harness.run_steps(2);
    let end = |outcome| fake.send(Event::JobEnded { id: 900, outcome });
    harness.state_mut().watch_task(900, training());
    end(Outcome::Failed("/data/mine: no such folder".into()));
    harness.run_steps(4);
    assert!(shows(&harness, "/data/mine: no such folder") && shows(&harness, "In /runs/mine"));
    assert!(!shows(&harness, ". In /runs/mine") && !shows(&harness, "0.00 of 30"), "nothing has begun");
    fake.train(&mut harness);
    assert!(!shows(&harness, "no such folder"), "another run");
    end(Outcome::Cancelled);
    harness.run_steps(4);
    assert!(shows(&harness, "Stopped: 'Continue training' goes on from here."));
    click(&mut harness, "Continue training");
    assert_eq!(tasks::asked::<TrainOracle>(&fake).1, training());
    assert!(harness.query_by_label("Continue training").is_none(), "it is under way");
    fake.train(&mut harness);
    end(Outcome::Done("the best epoch is 3".into()));
    harness.run_steps(4);
    assert!(shows(&harness, "the best epoch is 3") && !shows(&harness, "Stopped"));
    harness.check_accessibility();
}

/// A run of 30 epochs.
pub fn training() -> TrainOracle {
    let spec = toml::from_str("name = 'mine'\n[data]\npath = 'mine'\n[training]\nepochs = 30").unwrap();
    TrainOracle { spec, folder: "/runs/mine".into() }
}

/// Figures of images of this NLL.
pub fn evaluation(nll: f64) -> Evaluation {
    Evaluation {
        images: 500,
        nll_nats: nll,
        nll_std_error: 4.0,
        bits_per_dim: nll / (1024.0 * std::f64::consts::LN_2),
        accuracy: 0.971,
        entropy_nats: None,
        entropy_std_error: None,
    }
}

/// How the oracle of these tests was trained.
pub fn trained() -> TrainingRecord {
    let spec = toml::from_str("name = 'mnist'\n[data]\npath = 'mnist'").unwrap();
    TrainingRecord {
        data: "mnist".into(),
        pixels_sha256: Default::default(),
        images: 59_500,
        spec,
        epoch: 30,
        seconds: 3600.0,
        device: "CPU".into(),
        finished: "2026-11-20".into(),
        held_out: evaluation(1052.0),
        test: Some(evaluation(1047.0)),
        history: None,
        storage_drift: None,
    }
}

impl Fake {
    /// A training run of three epochs.
    pub fn train(&self, harness: &mut Harness<'_, App>) {
        let started = TrainEvent::Started {
            images: 59_500,
            held_out: 500,
            parameters: 1_200_000,
            dims: 1024,
            resumed_at: 0,
            steps_done: 0,
            epochs: 30,
        };
        harness.state_mut().watch_task(900, training());
        let say = |event| self.send(Event::Task { id: 900, news: News::of_event::<TrainOracle>(event) });
        say(started);
        for epoch in 1..=3 {
            let nll = 900.0 + 400.0 / epoch as f64;
            for step in 1..=20 {
                let loss = StepLoss { nll: nll + (step % 5) as f64 * 9.0, cross_entropy: Some(0.2), grad_norm: 1.0 };
                say(TrainEvent::Step { epoch, epochs: 30, step, steps: 20, loss, learning_rate: 1e-3 });
            }
            let (held_out, train_nll) = (evaluation(nll + 15.0), nll);
            say(TrainEvent::Epoch { epoch, epochs: 30, train_nll, held_out, best: true, seconds: 60.0 });
            let pixels = (0..20).flat_map(|i| bytes(&tile(i, 1.0))).collect();
            say(TrainEvent::Samples { epoch, shape: SHAPE, pixels });
        }
        harness.run_steps(4);
    }
}
