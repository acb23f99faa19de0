//! Evidence maps, galleries that fill in slowly, and looks that leave the world.

use bayescope::gui::{App, Prefs};
use bayescope::worker::save::SaveSamples;
use eframe::egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::fake::{self, Fake};
use super::{full, shows, tasks, until, window};

/// A window on a TarFlow whose gallery is full.
fn tarflow() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = window(Prefs { n: 30, ..Prefs::default() });
    fake.open_oracle();
    fake.open_tarflow(10);
    until(&mut harness, |_| fake.pending().is_some());
    fake.answer();
    until(&mut harness, |harness| harness.state().session().gallery_complete());
    harness.run_steps(2);
    fake.answer();
    harness.run_steps(3);
    fake.answer();
    harness.run_steps(3);
    (harness, fake)
}

#[test]
fn drawing_samples_can_be_stopped_and_gone_on_with() {
    let (mut harness, fake) = window(Prefs { n: 30, ..Prefs::default() });
    fake.open_oracle();
    until(&mut harness, |_| fake.pending().is_some());
    harness.run_steps(3);
    let before = fake.pending().unwrap();
    assert!(!before.halted);
    harness.get_by_label("Stop drawing samples").click();
    harness.run_steps(3);
    let stopped = fake.pending().unwrap();
    assert!(stopped.halted && stopped.generation > before.generation && stopped.spec == before.spec);
    assert!(shows(&harness, "samples stopped: 0 of 30"));
    harness.check_accessibility();
    harness.get_by_label("Go on drawing samples").click();
    harness.run_steps(3);
    assert!(!fake.pending().unwrap().halted);
    assert!(shows(&harness, "drawing samples: 0 of 30"));
    // Whoever moves a knob wants to see what comes of it.
    harness.get_by_label("Stop drawing samples").click();
    harness.run_steps(3);
    harness.get_by_label("New samples").click();
    harness.run_steps(3);
    let other = fake.pending().unwrap();
    assert!(!other.halted && other.spec != before.spec);
    // In a world just opened there is nothing yet, even where every knob stands as it did.
    harness.get_by_label("Stop drawing samples").click();
    harness.run_steps(3);
    assert!(fake.pending().unwrap().halted);
    fake.open_oracle();
    harness.run_steps(4);
    assert!(!fake.pending().unwrap().halted);
    // Nothing is left to stop.
    fake.answer();
    until(&mut harness, |harness| harness.state().session().gallery_complete());
    harness.run_steps(3);
    assert!(harness.query_by_label("Stop drawing samples").is_none());
}

#[test]
fn the_evidence_map_compares_the_leaders_until_classes_are_chosen() {
    let (mut harness, fake) = full();
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    let asked = fake.asked_evidence().expect("the map is asked for");
    let best = fake::tile(7, 1.0).posterior.decision;
    assert_eq!(asked.a, best);
    assert_ne!(asked.b, best);
    fake.answer();
    harness.run_steps(3);
    assert!(shows(&harness, "Evidence map, total +1.375 nats"));
    assert!(shows(&harness, "±3.250 nats a cell"));
    let swap = harness.get_by_label("Swap");
    swap.scroll_to_me();
    harness.run_steps(8);
    harness.get_by_label("Swap").click();
    harness.run_steps(3);
    let swapped = fake.asked_evidence().expect("the map is asked for again");
    assert_eq!((swapped.a, swapped.b), (asked.b, asked.a));
    assert!(swapped.generation > asked.generation);
    fake.answer();
    harness.run_steps(3);
    harness.get_by_label("Evidence map, total +1.375 nats").hover();
    harness.run_steps(20);
    assert!(shows(&harness, "row "), "the cell under the pointer is not told");
}

#[test]
fn the_inspector_is_as_long_while_the_next_image_is_computed() {
    let (mut harness, fake) = full();
    let choose = |harness: &mut Harness<'_, App>, image: &str| {
        harness.get_by_label_contains(image).click();
        harness.run_steps(3);
    };
    let end = |harness: &Harness<'_, App>| harness.get_by_label("Copy values").rect().top();
    choose(&mut harness, "Sample 7,");
    fake.answer();
    harness.run_steps(3);
    assert!(shows(&harness, "Evidence map, total") && shows(&harness, "Click one to set τ."));
    let whole = end(&harness);
    choose(&mut harness, "Sample 8,");
    assert!(shows(&harness, "Computing…") && !shows(&harness, "Evidence map, total"));
    // A line more or less above is of the image, and known.
    assert!((end(&harness) - whole).abs() < 60.0, "{whole} and {}", end(&harness));
    let computing = end(&harness);
    fake.answer();
    harness.run_steps(3);
    assert!(shows(&harness, "Evidence map, total"));
    assert!((end(&harness) - computing).abs() < 30.0, "{computing} and {}", end(&harness));
}

#[test]
fn a_slow_gallery_shows_what_is_being_made_without_figures() {
    let (mut harness, fake) = window(Prefs { n: 20, ..Prefs::default() });
    fake.open_oracle();
    fake.open_tarflow(10);
    until(&mut harness, |_| fake.pending().is_some());
    fake.draft(3);
    harness.run_steps(4);
    assert!(shows(&harness, "Sample 3, unfinished: block 2 of 4"));
    assert!(shows(&harness, "3 of 20 computed"));
    harness.get_by_label_contains("Sample 3, unfinished").click();
    harness.run_steps(3);
    assert!(shows(&harness, "Sample 3 is being made: block 2 of 4"));
    fake.answer();
    harness.run_steps(4);
    assert!(!shows(&harness, "unfinished"));
    assert!(shows(&harness, "Sample 3, label"));
}

#[test]
fn a_look_is_asked_for_marked_and_never_saved_as_numbers() {
    let (mut harness, fake) = tarflow();
    assert!(fake.pending().is_none());
    harness.get_by_label_contains("Look (leaves the world)").click();
    harness.run_steps(6);
    harness.get_by_role_and_label(Role::Slider, "Guidance g (0 = off)").scroll_to_me();
    harness.run_steps(8);
    harness.get_by_role_and_label(Role::Slider, "Guidance g (0 = off)").set_value_accesskit(2.0);
    harness.run_steps(3);
    let look = fake.pending().and_then(|request| request.look).expect("the gallery is asked for with the look");
    assert_eq!(look.guidance.map(|guidance| guidance.scale), Some(2.0));
    assert_eq!(fake.asked_inspection().and_then(|request| request.look), Some(look));
    assert!(shows(&harness, "Look: guidance 2 on a and b"));
    fake.answer();
    harness.run_steps(4);
    assert!(shows(&harness, "has left the world and has no posterior"));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::S);
    harness.run_steps(3);
    assert!(shows(&harness, "Save 30 pictures"));
    harness.key_press(Key::Enter);
    super::disk::looked(&mut harness);
    assert_eq!(tasks::asked::<SaveSamples>(&fake).1.look, Some(look));
}

#[test]
fn a_glow_has_no_looks_and_a_checkpoint_tells_what_was_inferred() {
    let (harness, _) = full();
    assert!(!shows(&harness, "Look (leaves the world)"));
    assert!(!shows(&harness, "Inferred from the file"));
    let (mut harness, _) = tarflow();
    harness.state_mut().show_panel("log");
    harness.run_steps(3);
    assert!(shows(&harness, "4 blocks of 2 layers: counted in the names"), "the log tells it");
    harness.get_by_label("Inferred from the file").click();
    harness.run_steps(8);
    assert!(shows(&harness, "• 4 blocks of 2 layers"));
}

#[test]
fn a_posterior_is_told_while_classes_are_still_evaluated() {
    let (mut harness, fake) = tarflow();
    harness.get_by_label_contains("Sample 4,").click();
    harness.run_steps(2);
    fake.run_posterior(4);
    harness.run_steps(3);
    assert!(shows(&harness, "4 of 10 classes evaluated"));
    assert!(shows(&harness, "p(y|x) at most"));
    fake.answer();
    harness.run_steps(3);
    assert!(!shows(&harness, "classes evaluated"));
}
