//! The loop beside a flow in training whose steps fail on demand.

mod best;
mod documented;
mod folders;

use std::cell::RefCell;
use std::rc::Rc;

use burn::tensor::Device;

use super::*;
use crate::data::{HeldNoise, ImageShape, write_png, write_png_of_world};
use crate::device::{DeviceChoice, choose};
use crate::events::Progress;
use crate::flow::weights::Weights;

/// A learner of whose steps those move nothing that this says, the last one first.
struct Stumbling {
    learner: Box<dyn Learner>,
    fails: Rc<RefCell<Vec<bool>>>,
}

impl Learner for Stumbling {
    fn parameters(&self) -> usize {
        self.learner.parameters()
    }

    fn step(&mut self, draw: &Draw<'_>, rate: f64, decay: f64) -> Result<StepLoss> {
        let fails = self.fails.borrow_mut().pop().unwrap_or(false);
        if fails { Ok(StepLoss::new(f64::NAN, None, f64::NAN)) } else { self.learner.step(draw, rate, decay) }
    }

    fn saved(&self) -> Result<step::Saved> {
        self.learner.saved()
    }

    fn average(&self) -> Result<Weights> {
        self.learner.average()
    }

    fn frozen(&self) -> Result<Box<dyn Flow>> {
        self.learner.frozen()
    }
}

fn cpu() -> OpenDevice {
    choose(DeviceChoice::Cpu).unwrap()
}

/// All epochs, and the best one on the test images.
fn train(spec: &TrainSpec, folder: &Path, chosen: &OpenDevice, events: &mut dyn Events<TrainEvent>) -> Result<Trained> {
    let (run, _lock) = all_epochs(spec, folder, chosen, events)?;
    run.finish(events)
}

/// Two classes of twelve grey pictures each.
fn pictures(root: &Path) {
    let shape = ImageShape { channels: 1, height: 8, width: 8 };
    for (class, grey) in [("dark", 40), ("light", 200)] {
        std::fs::create_dir_all(root.join(class)).unwrap();
        for i in 0..12_u8 {
            let pixels: Vec<u8> = (0..64).map(|at| grey + (at * (i + 3)) % 17).collect();
            write_png(&root.join(class).join(format!("{i}.png")), shape, &pixels).unwrap();
        }
    }
}

/// A small flow on them for so many epochs; writes them into `root`.
fn spec(root: &Path, epochs: usize) -> TrainSpec {
    let data = root.join("data");
    pictures(&data);
    let text = format!(
        "name = 'x'\n[data]\npath = '{}'\npad_to = 8\nheld_out = 4\n\
         [model]\nlevels = 1\nsteps = 2\nhidden = 4\n[training]\nepochs = {epochs}\nbatch = 4\nshards = 1\n",
        data.display()
    );
    toml::from_str(&text).unwrap()
}

#[test]
fn what_ends_in_skipped_steps_takes_no_checkpoint_away() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path(), 9);
    let out = folder.path().join("run");
    std::fs::create_dir_all(&out).unwrap();
    let mut run = Run::open(&spec, &out, &cpu()).unwrap();
    let learner = learner(&spec, &run.train, None, &Device::flex()).unwrap();
    let plan = Rc::new(RefCell::new(Vec::new()));
    run.learner = Box::new(Stumbling { learner, fails: plan.clone() });
    assert_eq!(run.train.len(), 20, "five steps an epoch");
    // Passes an epoch of whose five steps these fail. Returns the checkpoints after it, and whether it passed.
    let pass = |run: &mut Run<'_>, fails: [bool; 5]| {
        *plan.borrow_mut() = fails.into_iter().rev().collect();
        let epoch = run.state.epoch + 1;
        let passed = run.epoch(epoch, &mut silent()).unwrap();
        if let Some(nll) = passed {
            assert!(nll.is_finite());
            run.finish_epoch(epoch, nll, &mut silent()).unwrap();
        }
        (passed.is_some(), checkpoint::load(&out, &spec.training).unwrap().map(|checkpoint| checkpoint.state.epoch))
    };
    let (good, bad) = (false, true);
    assert_eq!(pass(&mut run, [good, bad, good, bad, good]), (true, Some(1)));
    assert_eq!(pass(&mut run, [good, good, good, good, bad]), (true, Some(1)));
    assert_eq!(run.state.best.as_ref().map(|best| best.epoch), Some(1));
    assert_eq!(pass(&mut run, [bad, good, good, good, good]), (true, Some(3)));
    // Those in a row are counted from one epoch to the next.
    assert_eq!(pass(&mut run, [good, good, good, bad, bad]), (true, Some(3)));
    assert_eq!(pass(&mut run, [bad, bad, bad, bad, good]), (false, Some(3)));
    // An epoch in which nothing moved is none.
    run.skipped = 0;
    assert_eq!(pass(&mut run, [bad; 5]), (false, Some(3)));
}

#[test]
fn a_stop_while_images_are_measured_keeps_the_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path(), 2);
    let out = folder.path().join("run");
    // What is told until images of an epoch are through, from when on a stop is asked for.
    let sitting = |passed| {
        let (mut told, mut stopped) = (Vec::new(), false);
        let mut events = |event: TrainEvent| {
            if let TrainEvent::Measuring(now) = &event {
                told.push(*now);
                stopped |= now.passed == passed;
            }
            if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let ended = train(&spec, &out, &cpu(), &mut events);
        assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
        let epoch = checkpoint::load(&out, &spec.training).unwrap().map(|checkpoint| checkpoint.state.epoch);
        (told, epoch)
    };
    let all_of = |epoch| {
        let progress = Progress { done: 4, total: 4 };
        Measurement { epoch, passed: epoch, epochs: 2, what: Measured::HeldOut, progress }
    };
    assert_eq!(sitting(1), (vec![all_of(1)], Some(1)));
    assert_eq!(sitting(2), (vec![all_of(2)], Some(2)));
    // All epochs are on disk with their figures: nothing is measured again, and the oracle has those of its epoch.
    let mut told = vec![];
    let mut events = |event: TrainEvent| {
        told.push(matches!(event, TrainEvent::Measuring(_)));
        ControlFlow::Continue(())
    };
    let trained = train(&spec, &out, &cpu(), &mut events).unwrap();
    assert_eq!(told, [false]);
    // A checkpoint of an older version has no figures: they are measured anew, and are the same.
    let state = out.join("checkpoint-00002/state.json");
    let mut older: serde_json::Value = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    assert!(older["best"].as_object_mut().unwrap().remove("held_out").unwrap().is_object());
    std::fs::write(&state, older.to_string()).unwrap();
    // What is left of that is stopped at once.
    let (told, _) = sitting(2);
    assert_eq!(told.len(), 1);
    let anew = train(&spec, &out, &cpu(), &mut silent()).unwrap();
    assert_eq!(anew.held_out, trained.held_out);
}

#[test]
fn a_stop_within_an_epoch_keeps_its_steps_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path(), 3);
    let out = folder.path().join("run");
    let whole = train(&spec, &folder.path().join("whole"), &cpu(), &mut silent()).unwrap();
    // Stopped at a step of the second epoch, then at the last one of the third, then not at all.
    let mut begun = vec![];
    let mut sitting = |stop: (usize, usize)| {
        let mut events = |event: TrainEvent| {
            if let TrainEvent::Started { resumed_at, steps_done, .. } = event {
                begun.push((resumed_at, steps_done));
            }
            match event {
                TrainEvent::Step { epoch, step, .. } if (epoch, step) == stop => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        train(&spec, &out, &cpu(), &mut events)
    };
    let on_disk = || {
        let entries = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut found: Vec<String> = entries.filter(|name| name.contains("checkpoint")).collect();
        found.sort();
        found
    };
    assert!(matches!(sitting((2, 3)), Err(Error::Cancelled)));
    assert_eq!(on_disk(), ["checkpoint-00001", "checkpoint-00001-000003"]);
    assert!(matches!(sitting((3, 5)), Err(Error::Cancelled)));
    assert_eq!(on_disk(), ["checkpoint-00002", "checkpoint-00002-000005"]);
    let resumed = sitting((0, 0)).unwrap();
    assert_eq!(on_disk(), ["checkpoint-00003"]);
    assert_eq!(begun, [(0, 0), (1, 3), (2, 5)]);
    assert_eq!((resumed.epoch, resumed.held_out.nll_nats), (whole.epoch, whole.held_out.nll_nats));
    let bytes = |trained: &Trained| {
        let place = folder.path().join("weights.safetensors");
        trained.weights.write(&place, crate::flow::weights::Storage::F32).unwrap();
        std::fs::read(place).unwrap()
    };
    assert!(bytes(&resumed) == bytes(&whole), "other weights");
}

/// Weights within an epoch were not measured: they may be what diverges.
#[test]
fn a_run_that_diverges_goes_back_to_a_finished_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path(), 3);
    let out = folder.path().join("run");
    let mut events = |event: TrainEvent| match event {
        TrainEvent::Step { epoch: 2, step: 3, .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    assert!(train(&spec, &out, &cpu(), &mut events).is_err());
    let run = Run::open(&spec, &out, &cpu()).unwrap();
    assert_eq!((run.state.epoch, run.state.within.steps, run.state.within.images), (1, 3, 12));
    let run = run.roll_back(2, &mut silent()).unwrap();
    let place = |run: &Run<'_>| (run.state.epoch, run.state.within.steps, run.state.rate_scale);
    assert_eq!(place(&run), (1, 0, 0.5));
    // Who goes on after a stop there goes on at that rate. The second epoch then ends in a step that moves nothing, so that
    // no checkpoint follows it, and in the third a stop waits for the next step that moves something.
    drop(run);
    let mut run = Run::open(&spec, &out, &cpu()).unwrap();
    assert_eq!(place(&run), (1, 0, 0.5));
    let learner = learner(&spec, &run.train, None, &Device::flex()).unwrap();
    let fails = vec![false, true, true, true, false, false, false, false];
    run.learner = Box::new(Stumbling { learner, fails: Rc::new(RefCell::new(fails)) });
    let nll = run.epoch(2, &mut silent()).unwrap().unwrap();
    run.finish_epoch(2, nll, &mut silent()).unwrap();
    let mut stop = |_: TrainEvent| ControlFlow::Break(());
    assert!(matches!(run.epoch(3, &mut stop), Err(Error::Cancelled)));
    drop(run);
    let run = Run::open(&spec, &out, &cpu()).unwrap();
    assert_eq!(place(&run), (2, 3, 0.5));
    let run = run.roll_back(3, &mut silent()).unwrap();
    assert_eq!(place(&run), (1, 0, 0.25));
}

#[test]
fn pauses_are_no_time_of_training() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path(), 2);
    // Whoever pauses holds the training inside a report.
    let mut paused = Duration::ZERO;
    let mut events = |_: TrainEvent| {
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        paused += begun.elapsed();
        ControlFlow::Continue(())
    };
    let begun = Instant::now();
    let trained = train(&spec, &folder.path().join("run"), &cpu(), &mut events).unwrap();
    let worked = (begun.elapsed() - paused).as_secs_f64();
    assert!(trained.seconds > 0.0 && trained.seconds <= worked, "{} s of {worked}", trained.seconds);
}

/// What a training tells of one kind.
fn told<T>(spec: &TrainSpec, folder: &Path, kind: impl Fn(TrainEvent) -> Option<T>) -> Vec<T> {
    let mut told = Vec::new();
    let mut events = |event| {
        told.extend(kind(event));
        ControlFlow::Continue(())
    };
    train(spec, folder, &cpu(), &mut events).unwrap();
    told
}

#[test]
fn a_training_says_that_it_is_shorter_than_its_warm_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(folder.path(), 1);
    let said = |spec: &TrainSpec, run: &str| {
        let long = |event| match event {
            TrainEvent::LongWarmUp(long) => Some((long.warm_up_images, long.images)),
            _ => None,
        };
        told(spec, &folder.path().join(run), long)
    };
    assert_eq!(said(&spec, "long"), [(10_000, 20)]);
    assert!(said(&spec, "long").is_empty(), "all is done");
    spec.training.warm_up_images = 8;
    assert!(said(&spec, "short").is_empty());
}

#[test]
fn a_training_says_that_a_picture_is_seen_through() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path(), 1);
    let said = |run: &str| {
        told(&spec, &folder.path().join(run), |event| match &event {
            TrainEvent::AsRead(read) => Some((read.to_string(), serde_json::to_value(&event).unwrap())),
            _ => None,
        })
    };
    assert!(said("opaque").is_empty());
    let veiled = image::RgbaImage::from_pixel(8, 8, image::Rgba([40, 41, 42, 100]));
    veiled.save(folder.path().join("data/dark/0.png")).unwrap();
    let told = said("veiled");
    let [(words, json)] = &told[..] else { panic!("{told:?}") };
    assert!(words.starts_with("1 of 24 pictures have transparent parts"), "{words}");
    assert_eq!((&json["event"], &json["transparent"]), (&"as-read".into(), &1.into()));
}

#[test]
fn a_training_says_that_it_adds_noise_to_pictures_that_hold_some() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(folder.path(), 1);
    let said = |spec: &TrainSpec, run: &str| {
        let noise = |event| match event {
            TrainEvent::SecondNoise(noise) => Some(noise.to_string()),
            _ => None,
        };
        told(spec, &folder.path().join(run), noise)
    };
    spec.model.pixels = Preprocessing::Gaussian { std: 0.05 };
    assert!(said(&spec, "photographs").is_empty());
    let shape = ImageShape { channels: 1, height: 8, width: 8 };
    let held = HeldNoise { std: 0.1, weights_sha256: "0a".repeat(32) };
    for i in 0..3 {
        let picture = folder.path().join(format!("data/dark/{i}.png"));
        write_png_of_world(&picture, shape, &[40 + i; 64], &held).unwrap();
    }
    let told = said(&spec, "some");
    assert!(told.len() == 1 && told[0].starts_with("3 of 24 pictures") && told[0].contains("(σ = 0.1)"), "{told:?}");
    assert!(told[0].contains("adds noise of σ = 0.05") && told[0].contains("model.pixels"), "{told:?}");
    assert!(said(&spec, "some").is_empty(), "all is done");
    spec.model.pixels = Preprocessing::Uniform;
    assert!(said(&spec, "within").is_empty());
}
