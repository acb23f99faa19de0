//! The panel *Validation*: what is asked, what is said on the way, what is shown.

use std::path::Path;

use bayescope::classifier::Architecture;
use bayescope::events::{Progress, silent};
use bayescope::export::MeasureDepth;
use bayescope::flow::Precision;
use bayescope::oracle::export::save_samples;
use bayescope::oracle::folder;
use bayescope::oracle::world::{SampleSpec, Settings};
use bayescope::task::{Done, Task};
use bayescope::units::Seed;
use bayescope::validate::{
    FeatureChoice, MeasureReality, OnTheSpot, RealitySpec, TwoSampleSpec, ValidateOracle, ValidateSpec,
};
use bayescope::worker::protocol::{Event, Outcome};
use burn::tensor::Device;

use super::experiments::{click, rewrite};
use super::{full, shows, tables, tasks};

#[test]
fn a_validation_is_asked_for_watched_and_can_go_on() {
    let (mut harness, fake) = full();
    click(&mut harness, "Validation");
    assert!(shows(&harness, "Nothing validated yet") && shows(&harness, "Give the folder of the real images"));
    rewrite(&mut harness, "Real images", "/data/mnist");
    assert!(shows(&harness, "Give a new folder for the validation"));
    rewrite(&mut harness, "Folder of the validation", "/runs/validation");
    click(&mut harness, "Copy validation as command");
    let command = "bayescope oracle validate mnist --data /data/mnist --images 2000 --tau 1 --feature-epochs 5 --seed 0 --report /runs/validation";
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(command)));
    click(&mut harness, "Validate");
    let (id, ValidateOracle { spec, folder }) = tasks::asked(&fake);
    assert_eq!((folder.as_deref(), spec.images, spec.limit), (Some(Path::new("/runs/validation")), 2000, None));
    assert_eq!(spec.features, FeatureChoice::OnTheSpot(OnTheSpot::default()));
    fake.send(Event::JobStarted { id });
    let (progress, note) = (Progress { done: 300, total: 2000 }, "drawing images: 300 of 2000".to_owned());
    fake.send(Event::JobProgress { id, progress, note });
    harness.run_steps(4);
    assert!(shows(&harness, "drawing images: 300 of 2000") && shows(&harness, "A validation is on its way"));
    harness.check_accessibility();
    fake.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
    harness.run_steps(4);
    assert!(shows(&harness, "start the same validation again, and it goes on"));
    click(&mut harness, "Validate");
    let (id, _) = fake.jobs().pop().unwrap();
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed("/data/mnist: no such folder".into()) });
    harness.run_steps(4);
    assert!(shows(&harness, "/data/mnist: no such folder"));
}

/// A world beside its own samples, as the engine finds it.
fn found() -> Done<<ValidateOracle as Task>::Report> {
    let place = tempfile::tempdir().unwrap();
    let oracle = folder::open("mnist", &Device::flex(), Precision::F32, 32).unwrap();
    let settings = Settings::default_for(10);
    for (split, seed) in [("train", 1), ("test", 2)] {
        let samples = SampleSpec::new(80, Seed(seed));
        save_samples(&oracle.world, &samples, &[], &settings, &place.path().join(split), &mut silent()).unwrap();
    }
    let spec = ValidateSpec {
        oracle: "mnist".into(),
        data: place.path().to_owned(),
        images: 60,
        limit: None,
        settings,
        precision: Precision::F32,
        features: FeatureChoice::OnTheSpot(OnTheSpot { architecture: Architecture::Mlp500, epochs: 1, images: 80 }),
        two_sample: TwoSampleSpec { images: 40, epochs: 1, ..TwoSampleSpec::default() },
        real_statistics: None,
        threshold: None,
        seed: Seed(0),
    };
    tasks::carry_out(&ValidateOracle { spec, folder: None }, Some(("mnist", &oracle)))
}

#[test]
fn what_was_found_is_shown_with_its_figures_and_pairs() {
    let (mut harness, fake) = full();
    click(&mut harness, "Validation");
    rewrite(&mut harness, "Real images", "/data/digits");
    rewrite(&mut harness, "Folder of the validation", "/runs/validation");
    click(&mut harness, "Validate");
    let (id, _) = fake.jobs().pop().unwrap();
    tasks::done::<ValidateOracle>(&fake, id, found());
    harness.run_steps(8);
    for text in [
        "not those the oracle was trained on",
        "two-sample test, right",
        "FID without its bias in 1/n",
        "Distance to the nearest training image",
        "Nearest pairs",
        "round trip, largest error",
        "Diversity and texture of each class",
    ] {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    let tables = tables::all(&mut harness);
    assert!(tables.iter().any(|title| title == "Distance to the nearest training image"), "{tables:?}");
    click(&mut harness, "Held-out");
    assert!(harness.state().session().ledger.iter().any(|made| made.what == "validation"));
    harness.check_accessibility();
    // Only the report could not be written: what was found stays.
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed("report.json: the disk is full".into()) });
    harness.run_steps(4);
    assert!(shows(&harness, "report.json: the disk is full") && shows(&harness, "Nearest pairs"));
}

#[test]
fn the_bit_depth_of_a_world_is_measured_and_shown() {
    let (mut harness, fake) = full();
    click(&mut harness, "Validation");
    click(&mut harness, "Copy depth as command");
    let command = "bayescope oracle depth mnist --samples 300 --tau 1";
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(command)));
    click(&mut harness, "Measure bit depth");
    let (id, task) = tasks::asked::<MeasureDepth>(&fake);
    assert_eq!(task.samples, 300);
    let oracle = folder::open("mnist", &Device::flex(), Precision::F32, 32).unwrap();
    let few = MeasureDepth { samples: 12, ..task };
    tasks::done::<MeasureDepth>(&fake, id, tasks::carry_out(&few, Some(("mnist", &oracle))));
    harness.run_steps(6);
    assert!(shows(&harness, "What the bits of a picture cost") && shows(&harness, "is lost"));
    harness.check_accessibility();
}

#[test]
fn decisions_are_held_against_labels_and_what_follows_is_said() {
    let (mut harness, fake) = full();
    click(&mut harness, "Validation");
    rewrite(&mut harness, "Test images", "/data/digits");
    click(&mut harness, "Copy reality as command");
    let command = "bayescope oracle reality mnist --data /data/digits --seed 0";
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(command)));
    click(&mut harness, "Hold against labels");
    let (id, task) = tasks::asked::<MeasureReality>(&fake);
    assert_eq!((task.spec.data.as_path(), &task.spec.published), (Path::new("/data/digits"), &None));
    let place = tempfile::tempdir().unwrap();
    let oracle = folder::open("mnist", &Device::flex(), Precision::F32, 32).unwrap();
    let samples = SampleSpec::new(60, Seed(2));
    save_samples(&oracle.world, &samples, &[], &Settings::default_for(10), place.path(), &mut silent()).unwrap();
    let spec = RealitySpec { data: place.path().to_owned(), ..task.spec };
    tasks::done::<MeasureReality>(&fake, id, tasks::carry_out(&MeasureReality { spec }, Some(("mnist", &oracle))));
    harness.run_steps(6);
    for text in
        ["The world's own decision errs on", "no bound", "Bayes error E of the world", "Reliability of the posterior"]
    {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    harness.check_accessibility();
}
