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

/// In a world where exact images take longer than a frame they would be begun again at every τ and never come.
#[test]
fn without_key_pictures_exact_images_follow_until_tau_outruns_them_and_then_drafts_do() {
    let (mut harness, fake) = full();
    let shown = fake.shown();
    harness.state_mut().slide(1.2);
    harness.step();
    assert_eq!(fake.shown(), shown + 1);
    fake.answer();
    harness.run_steps(2);
    fake.key_requests();
    harness.state_mut().slide(1.3);
    harness.step();
    assert_eq!(fake.shown(), shown + 2, "the exact images of the last τ came in time");
    let [drafts, exact] = drafts_and_exact(&harness);
    assert!(drafts == 0 && exact > 10, "those of before stay");
    let before = harness.query_all_by_label_contains(", of the knobs before").count();
    assert_eq!(before, exact, "and say so");
    let moved = Instant::now();
    harness.state_mut().slide(1.4);
    harness.step();
    let asked = fake.key_requests().into_iter().find(|request| request.moving).expect("drafts are to follow");
    // On a machine that takes so long for a frame, τ rests in it.
    if moved.elapsed() < Duration::from_millis(100) {
        assert_eq!(fake.shown(), shown + 2, "a gallery was begun again that cannot keep up");
    }
    assert_eq!(asked.wanted.iter().map(|(tau, _)| tau.get()).take(2).collect::<Vec<_>>(), [1.0, 1.5]);
    assert!(asked.wanted.iter().all(|(_, images)| images.len() == exact), "of what is in view");
    fake.answer_keys(asked);
    harness.step();
    assert_eq!(drafts_and_exact(&harness), [exact, 0]);
    sleep(Duration::from_millis(150));
    harness.run_steps(2);
    assert_eq!(fake.pending().map(|request| request.settings.tau.get()), Some(1.4), "τ rests");
}

#[test]
fn where_key_pictures_take_too_long_the_gallery_is_asked_for_at_every_tau() {
    let (mut harness, fake) = full();
    fake.refuse_keys(fake.key_requests().pop().expect("key pictures are prepared at rest"));
    harness.run_steps(2);
    let shown = fake.shown();
    for tau in [1.2, 1.3, 1.4] {
        harness.state_mut().slide(tau);
        harness.step();
    }
    assert_eq!(fake.shown(), shown + 3);
    assert!(fake.key_requests().is_empty());
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
