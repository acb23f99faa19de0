//! The gallery while τ moves: drafts for exactly this τ, exact images when it rests, never two worlds unmarked.

use std::thread::sleep;
use std::time::{Duration, Instant};

use bayescope::worker::protocol::GalleryUpdate;
use egui_kittest::kittest::Queryable;

use super::fake::{self, SHAPE};
use super::{full, shows};

/// Labels of images that are drafts, and of those that are exact.
fn drafts_and_exact(harness: &egui_kittest::Harness<'_, bayescope::gui::App>) -> [usize; 2] {
    let drafts = harness.query_all_by_label_contains(", a draft for τ = ").count();
    [drafts, harness.query_all_by_label_contains(", decision ").count()]
}

#[test]
fn drafts_follow_tau_and_exact_images_are_asked_for_when_it_rests() {
    let (mut harness, fake) = full();
    let idle = fake.key_requests();
    let rest = idle.last().expect("key pictures are prepared at rest").clone();
    assert!(!rest.moving && rest.wanted.len() >= 6);
    let shown = fake.shown();
    fake.answer_keys(rest);
    harness.run_steps(2);
    let [drafts, exact] = drafts_and_exact(&harness);
    assert!(drafts == 0 && exact > 10, "at rest all are exact: {drafts} drafts, {exact} exact");
    assert!(!shows(&harness, ", of the knobs before"));
    for tau in [1.2, 1.31, 1.4] {
        let (before, moved) = (fake.shown(), Instant::now());
        harness.state_mut().slide(tau);
        harness.step();
        assert_eq!(drafts_and_exact(&harness), [exact, 0], "every image follows in the next frame");
        // On a machine that takes so long for a frame, τ rests in it.
        if moved.elapsed() < Duration::from_millis(100) {
            assert_eq!(fake.shown(), before, "no gallery is asked for that would be out of date");
        }
    }
    harness.step();
    assert!(shows(&harness, "exact when τ rests"));
    let asked = fake.key_requests();
    assert!(asked.iter().all(|request| request.moving) && !asked.is_empty());
    sleep(Duration::from_millis(150));
    harness.run_steps(2);
    let request = fake.pending().expect("τ rests");
    assert!(fake.shown() > shown && request.settings.tau.get() == 1.4);
    let (generation, tiles) = (request.generation, (0..4).map(|index| fake::tile(index, 1.4)).collect());
    let (drafts, failed) = (Vec::new(), Vec::new());
    let progress = bayescope::events::Progress { done: 4, total: 60 };
    fake.send_gallery(GalleryUpdate { generation, shape: SHAPE, tiles, drafts, failed, progress });
    harness.run_steps(2);
    assert_eq!(drafts_and_exact(&harness), [exact - 4, 4]);
    fake.answer();
    harness.run_steps(2);
    assert_eq!(drafts_and_exact(&harness), [0, exact]);
}

#[test]
fn without_key_pictures_the_gallery_is_asked_for_at_every_tau() {
    let (mut harness, fake) = full();
    let shown = fake.shown();
    for tau in [1.2, 1.3] {
        harness.state_mut().slide(tau);
        harness.step();
    }
    assert_eq!(fake.shown(), shown + 2);
    let [drafts, exact] = drafts_and_exact(&harness);
    assert!(drafts == 0 && exact > 10, "those of before stay");
    let before = harness.query_all_by_label_contains(", of the knobs before").count();
    assert_eq!(before, exact, "and say so");
}

#[test]
fn key_pictures_of_other_samples_are_asked_for_at_once() {
    let (mut harness, fake) = full();
    let rest = fake.key_requests().pop().expect("key pictures are prepared at rest");
    let seed = harness.state().prefs().seed;
    fake.answer_keys(rest.clone());
    harness.run_steps(2);
    harness.key_press(eframe::egui::Key::Space);
    harness.run_steps(3);
    assert_ne!(harness.state().prefs().seed, seed);
    fake.answer();
    harness.run_steps(3);
    let asked = fake.key_requests().pop().expect("they are other pictures");
    assert_ne!(asked.origin, rest.origin);
}
