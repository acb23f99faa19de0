//! Saving where something lies already.

use bayescope::worker::save::SaveSamples;
use eframe::egui::{Event, Key, Modifiers};
use egui_kittest::kittest::Queryable;

use super::experiments::{click, rewrite};
use super::{full, shows, tasks};

#[test]
fn what_is_there_is_replaced_only_by_a_second_press() {
    let (mut harness, fake) = full();
    let place = tempfile::tempdir().unwrap();
    let [file, other] = ["samples.npz", "others.npz"].map(|name| place.path().join(name));
    std::fs::write(&file, "before").unwrap();
    harness.key_press_modifiers(Modifiers::COMMAND, Key::S);
    harness.run_steps(3);
    let here = std::env::current_dir().unwrap().join("samples.npz");
    assert!(shows(&harness, &format!("In full: {}", here.display())), "{:?}", super::labels(&harness));
    rewrite(&mut harness, "Path", &file.display().to_string());
    assert!(!shows(&harness, "In full:"));
    click(&mut harness, "Save");
    assert!(fake.jobs().is_empty() && shows(&harness, "A file of this name is there already"));
    // Another path is another question.
    rewrite(&mut harness, "Path", &other.display().to_string());
    assert!(!shows(&harness, "is there already") && harness.query_by_label("Replace").is_none());
    rewrite(&mut harness, "Path", &place.path().display().to_string());
    click(&mut harness, "Save");
    assert!(fake.jobs().is_empty() && shows(&harness, "This folder is not empty"));
    assert!(harness.query_by_label("Write into it").is_some());
    rewrite(&mut harness, "Path", &file.display().to_string());
    click(&mut harness, "Save");
    assert!(fake.jobs().is_empty());
    click(&mut harness, "Replace");
    assert_eq!(tasks::asked::<SaveSamples>(&fake).1.path, file);
    assert!(!shows(&harness, "Save 60 samples"), "it is answered");
}

#[test]
fn an_enter_key_that_is_held_down_replaces_nothing() {
    let (mut harness, fake) = full();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("samples.npz");
    std::fs::write(&file, "before").unwrap();
    harness.key_press_modifiers(Modifiers::COMMAND, Key::S);
    harness.run_steps(3);
    rewrite(&mut harness, "Path", &file.display().to_string());
    let enter = |pressed| Event::Key {
        key: Key::Enter,
        physical_key: None,
        pressed,
        repeat: false,
        modifiers: Modifiers::NONE,
    };
    for _ in 0..5 {
        harness.input_mut().events.push(enter(true));
        super::disk::looked(&mut harness);
    }
    assert!(fake.jobs().is_empty() && shows(&harness, "A file of this name is there already"));
    harness.input_mut().events.push(enter(false));
    harness.run_steps(2);
    harness.key_press(Key::Enter);
    super::disk::looked(&mut harness);
    assert_eq!(tasks::asked::<SaveSamples>(&fake).1.path, file);
}
