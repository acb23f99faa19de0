//! The panel *Validation*: what is asked, what is said on the way, what is shown.

use std::path::Path;

use bayescope::events::Progress;
use bayescope::validate::{FeatureChoice, OnTheSpot};
use bayescope::worker::protocol::{Event, Job, Outcome};

use super::experiments::{click, rewrite};
use super::{full, shows};

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
    let jobs = fake.jobs();
    let [.., (id, Job::Validate { spec, folder })] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!((folder.as_path(), spec.images, spec.limit), (Path::new("/runs/validation"), 2000, None));
    assert_eq!(spec.features, FeatureChoice::OnTheSpot(OnTheSpot::default()));
    fake.send(Event::JobStarted { id: *id });
    let (progress, note) = (Progress { done: 300, total: 2000 }, "drawing images: 300 of 2000".to_owned());
    fake.send(Event::JobProgress { id: *id, progress, note });
    harness.run_steps(4);
    assert!(shows(&harness, "drawing images: 300 of 2000") && shows(&harness, "A validation is on its way"));
    harness.check_accessibility();
    fake.send(Event::JobEnded { id: *id, outcome: Outcome::Cancelled });
    harness.run_steps(4);
    assert!(shows(&harness, "start the same validation again, and it goes on"));
    click(&mut harness, "Validate");
    let (id, _) = fake.jobs().pop().unwrap();
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed("/data/mnist: no such folder".into()) });
    harness.run_steps(4);
    assert!(shows(&harness, "/data/mnist: no such folder"));
}
