//! *Help → Verify this device*: asked for, watched, read, copied.

use bayescope::device::DeviceChoice;
use bayescope::events::{Progress, silent};
use bayescope::gui::App;
use bayescope::task::News;
use bayescope::verify::{VerifyDevice, VerifySpec, verify};
use bayescope::worker::protocol::{Event, Job, Outcome};
use eframe::egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::{full, shows};

fn press(harness: &mut Harness<'_, App>, label: &str) {
    harness.get_by_role_and_label(Role::Button, label).click();
    harness.run_steps(3);
}

#[test]
fn a_device_is_verified_watched_and_reported() {
    let (mut harness, fake) = full();
    press(&mut harness, "Help");
    press(&mut harness, "Verify this device");
    assert!(shows(&harness, "Not verified yet"));
    harness.check_accessibility();
    press(&mut harness, "Verify");
    let jobs = fake.jobs();
    let [.., (id, Job::Task(task))] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert!(task.get::<VerifyDevice>().is_some(), "{task:?}");
    fake.send(Event::JobStarted { id: *id });
    let progress = Progress { done: 1, total: 17 };
    fake.send(Event::JobProgress { id: *id, progress, note: "glow-reference".into() });
    harness.run_steps(4);
    assert!(shows(&harness, "glow-reference") && !shows(&harness, "Not verified yet"));
    let spec = VerifySpec { device: DeviceChoice::Cpu, cases: vec!["glow-reference".into()] };
    let report = verify(&spec, &mut silent()).unwrap();
    let sentence = report.sentence.clone();
    fake.send(Event::Task { id: *id, news: News::of_report::<VerifyDevice>(report) });
    fake.send(Event::JobEnded { id: *id, outcome: Outcome::Done(sentence.clone()) });
    harness.run_steps(4);
    assert!(shows(&harness, &sentence) && shows(&harness, "largest error") && shows(&harness, "log p(x|y), τ = 0.7"));
    harness.check_accessibility();
    press(&mut harness, "Copy verification as command");
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains("bayescope verify --device cpu")));
    harness.key_press_modifiers(Modifiers::NONE, Key::Escape);
    harness.run_steps(3);
    assert!(!shows(&harness, "largest error"), "Escape closes it");
}
