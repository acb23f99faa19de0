//! A graphics device in the window: its kernels being prepared, and the box that keeps the engine apart from it.

use bayescope::device::{Candidate, DeviceChoice, DeviceReport, MatmulPrecision};
use bayescope::gui::Prefs;
use bayescope::worker::protocol::{Event, Job};
use eframe::egui::Role;
use egui_kittest::kittest::Queryable;

use super::{full, shows, until, window};

const PREPARING: &str = "Preparing the kernels of mnist on a card";

#[test]
fn kernels_being_prepared_are_named_where_pictures_will_be() {
    let (mut harness, fake) = window(Prefs::default());
    fake.open_oracle();
    until(&mut harness, |harness| harness.state().session().oracle.is_some());
    fake.send(Event::Preparing(Some(PREPARING.into())));
    harness.run_steps(3);
    // In the empty gallery, with its reason, and in the line at the bottom.
    assert!(harness.query_all_by_label_contains(PREPARING).count() >= 2);
    assert!(shows(&harness, "compiles them at their first use"));
    fake.send(Event::Preparing(None));
    harness.run_steps(3);
    assert!(!shows(&harness, PREPARING) && shows(&harness, "Drawing the first samples"));
}

#[test]
fn the_engine_can_be_kept_apart_from_the_window() {
    let (mut harness, fake) = full();
    assert!(!shows(&harness, "apart from the window"), "a CPU is apart in any case");
    let choice = DeviceChoice::Wgpu(Some(0));
    let (name, driver) = ("a card".into(), "vulkan".into());
    let used = Candidate { choice, name, driver, software: false, place: None };
    fake.send(Event::Device(DeviceReport {
        asked: DeviceChoice::Auto,
        used,
        reason: "the first GPU that works".into(),
    }));
    harness.run_steps(3);
    let before = fake.jobs().len();
    harness.get_by_role_and_label(Role::CheckBox, "apart from the window").scroll_to_me();
    harness.run_steps(6);
    harness.get_by_role_and_label(Role::CheckBox, "apart from the window").click();
    harness.run_steps(4);
    assert!(harness.state().prefs().device_apart);
    let asked: Vec<Job> = fake.jobs().into_iter().skip(before).map(|(_, job)| job).collect();
    assert!(matches!(asked[..], [Job::UseDevice(DeviceChoice::Auto)]), "{asked:?}");
    harness.check_accessibility();
}

#[test]
fn a_window_that_is_opened_again_goes_on_where_the_lost_one_was() {
    let (mut harness, fake) = full();
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    fake.answer();
    harness.run_steps(3);
    let prefs = harness.state().prefs().clone();
    let known = harness.state_mut().retire();
    assert_eq!(harness.state().view().cursor, None);
    assert!(harness.state().session().oracle.is_none());
    harness.state_mut().succeed(Some(known), "the driver was reset");
    assert_eq!((harness.state().view().cursor, harness.state().prefs()), (Some(7), &prefs));
    assert!(fake.pending().is_none());
    harness.run_steps(3);
    assert!(fake.pending().is_some(), "pictures of the lost device are asked for anew");
    assert!(fake.asked_inspection().is_some());
    let said = "The window was opened again, the engine went on";
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(said)));
    fake.answer();
    until(&mut harness, |harness| harness.state().session().gallery_complete());
}

#[test]
fn samples_are_drawn_in_another_format_only_where_there_is_one_and_only_if_asked() {
    let (mut harness, fake) = full();
    assert!(!shows(&harness, "Draw in"), "there is nothing to choose");
    fake.send(Event::Formats(vec![MatmulPrecision::F32, MatmulPrecision::F16]));
    harness.run_steps(3);
    assert_eq!(harness.state().prefs().spec().products, MatmulPrecision::F32);
    harness.get_by_role_and_label(Role::ComboBox, "Draw in").scroll_to_me();
    harness.run_steps(6);
    harness.get_by_role_and_label(Role::ComboBox, "Draw in").click();
    harness.run_steps(3);
    harness.get_by_label("half precision").click();
    harness.run_steps(4);
    assert_eq!(fake.pending().unwrap().spec.products, MatmulPrecision::F16);
    harness.check_accessibility();
    // Another device has no such format: nothing is left of the wish.
    fake.send(Event::Formats(vec![MatmulPrecision::F32]));
    fake.open_oracle();
    harness.run_steps(4);
    assert_eq!(harness.state().prefs().products, MatmulPrecision::F32);
    assert!(!shows(&harness, "Draw in"));
}

#[test]
fn a_restarted_engine_is_asked_again() {
    let (mut harness, fake) = full();
    let before = fake.shown();
    fake.send(Event::Restarted { reason: "out of memory".into() });
    harness.run_steps(3);
    assert_eq!(fake.shown(), before + 1);
    harness.state_mut().show_panel("log");
    harness.run_steps(3);
    assert!(shows(&harness, "out of memory"));
}
