//! What is shown where no answer to the present knobs is there, or will be.

use bayescope::gui::{App, Prefs};
use bayescope::measure::typicality::{NOT_OF_THIS_WORLD, SAMPLES};
use bayescope::oracle::posterior::Prior;
use bayescope::task::ExternalImage;
use bayescope::units::Tau;
use bayescope::worker::protocol::{Asked, Event, GalleryUpdate, ReferenceNews, Subject};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::fake::{self, Fake, SHAPE};
use super::priors::set_label_noise;
use super::{full, shows, until, window};

/// The largest probability of a tile, as the inspector shows it.
fn best(index: usize, tau: f64) -> String {
    let posterior = fake::tile(index, tau).posterior;
    format!("{:.4}", posterior.probabilities[posterior.decision])
}

#[test]
fn other_images_from_outside_are_inspected_anew() {
    let (mut harness, fake) = full();
    fake.send(fake::external(3));
    harness.run_steps(3);
    fake.answer();
    harness.run_steps(3);
    assert!(fake.asked_inspection().is_none() && shows(&harness, &best(0, 1.0)));
    let Event::External { shape, settings, .. } = fake::external(1) else { panic!("images from outside") };
    let (name, ids, tiles) = ("other".into(), vec!["b.png".into()], vec![fake::tile(5, 1.0)]);
    let (set, labelled, own_knobs) = (2, false, false);
    let (job, verdicts, pictures) = (1, Vec::new(), Vec::new());
    fake.send(Event::External { job, set, name, shape, ids, tiles, labelled, settings, own_knobs, verdicts, pictures });
    harness.run_steps(3);
    let asked = Subject::External(ExternalImage { set, index: 0 });
    assert_eq!(fake.asked_inspection().map(|request| request.subject), Some(asked));
    assert!(shows(&harness, "b.png") && shows(&harness, &best(5, 1.0)), "the figures are those of the image before");
    fake.answer();
    harness.run_steps(3);
    assert!(shows(&harness, &best(0, 1.0)), "the inspection has come");
    // Of the same names, as everything that is pasted, and yet another picture.
    let Event::External { shape, settings, .. } = fake::external(1) else { panic!("images from outside") };
    let (name, ids, tiles) = ("other".into(), vec!["b.png".into()], vec![fake::tile(6, 1.0)]);
    let (job, set, verdicts, pictures) = (2, 3, Vec::new(), Vec::new());
    fake.send(Event::External { job, set, name, shape, ids, tiles, labelled, settings, own_knobs, verdicts, pictures });
    harness.run_steps(3);
    assert!(shows(&harness, &best(6, 1.0)), "the figures are those of the picture before");
}

/// A window with a TarFlow of ten classes, its gallery complete and sample 3 selected.
fn slow_world() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = window(Prefs { n: 20, oracle: "mnist".into(), ..Prefs::default() });
    fake.open_oracle();
    fake.open_tarflow(10);
    until(&mut harness, |harness| fake.pending().is_some() && harness.state().session().oracle.is_some());
    fake.answer();
    until(&mut harness, |harness| harness.state().session().gallery_complete());
    harness.get_by_label_contains("Sample 3,").click();
    harness.run_steps(3);
    (harness, fake)
}

#[test]
fn a_slow_world_shows_the_newer_of_gallery_and_inspector() {
    let (mut harness, fake) = slow_world();
    fake.answer();
    harness.run_steps(3);
    assert!(shows(&harness, &best(3, 1.0)) && harness.query_by_label("of the knobs before").is_none());
    harness.state_mut().slide(1.7);
    harness.run_steps(3);
    assert!(shows(&harness, &best(3, 1.0)) && harness.query_by_label("of the knobs before").is_some());
    fake.answer_inspection();
    harness.run_steps(3);
    assert_ne!(best(3, 1.0), best(3, 1.7));
    assert!(shows(&harness, &best(3, 1.7)) && harness.query_by_label("of the knobs before").is_none());
}

/// log p(x) of one τ says nothing among samples of another.
#[test]
fn a_sample_of_the_knobs_before_is_not_held_against_those_of_now() {
    let (mut harness, fake) = slow_world();
    harness.state_mut().slide(1.7);
    harness.run_steps(3);
    fake.answer_inspection();
    harness.run_steps(3);
    // The samples of τ = 1 are far above.
    let outcome = Ok((0..SAMPLES).map(|i| 1e6 + i as f64).collect());
    let news = ReferenceNews { tau: Tau::ONE, prior: Prior::uniform(10), outcome, complete: true };
    fake.send(Event::Reference(Box::new(news)));
    harness.run_steps(3);
    assert!(shows(&harness, &best(3, 1.7)) && !shows(&harness, NOT_OF_THIS_WORLD));
    // Back, where the samples are kept, with the gallery of before the slide no longer the newest.
    until(&mut harness, |_| fake.pending().is_some_and(|pending| pending.settings.tau.get() == 1.7));
    harness.state_mut().slide(1.0);
    harness.step();
    harness.step();
    assert!(shows(&harness, &best(3, 1.7)) && harness.query_by_label("of the knobs before").is_some());
    assert!(!shows(&harness, NOT_OF_THIS_WORLD), "it is held against samples of other knobs");
    fake.answer_inspection();
    harness.run_steps(3);
    assert!(shows(&harness, &best(3, 1.0)) && shows(&harness, NOT_OF_THIS_WORLD));
}

/// Label noise moves labels and posteriors, and no picture.
#[test]
fn figures_of_the_knobs_before_say_so_beside_pictures_that_stay() {
    let (mut harness, fake) = full();
    let before = |harness: &Harness<'_, App>| harness.query_all_by_label_contains(", of the knobs before").count();
    assert_eq!(before(&harness), 0);
    set_label_noise(&mut harness, "symmetric:0.2");
    assert!(before(&harness) > 10, "{} say so", before(&harness));
    fake.answer();
    harness.run_steps(3);
    assert_eq!(before(&harness), 0);
}

#[test]
fn what_cannot_be_had_says_why_until_it_is_asked_for_again() {
    let (mut harness, fake) = window(Prefs { n: 20, ..Prefs::default() });
    fake.open_oracle();
    until(&mut harness, |harness| fake.pending().is_some() && harness.state().session().oracle.is_some());
    fake.send(Event::Unanswered { asked: Asked::Gallery, why: "the card has no room".into() });
    harness.run_steps(3);
    assert!(
        shows(&harness, "The samples cannot be drawn") && shows(&harness, "the samples cannot be drawn: see the log")
    );
    harness.state_mut().slide(1.7);
    harness.run_steps(3);
    assert!(!shows(&harness, "The samples cannot be drawn") && shows(&harness, "Drawing the first samples"));
    // The word on an older request comes after the newer one was made, which is answered.
    fake.send(Event::Unanswered { asked: Asked::Gallery, why: "the card had no room".into() });
    harness.run_steps(3);
    assert!(shows(&harness, "the samples cannot be drawn: see the log"));
    fake.answer();
    harness.run_steps(3);
    assert!(harness.state().session().gallery_complete() && !shows(&harness, "cannot be drawn: see the log"));
}

#[test]
fn samples_that_cannot_be_made_are_told_in_their_places() {
    let (mut harness, fake) = full();
    assert!(shows(&harness, "From 60 samples"));
    harness.state_mut().slide(1.7);
    harness.run_steps(3);
    let generation = fake.pending().expect("a gallery was asked for").generation;
    let tiles = (1..60).map(|index| fake::tile(index, 1.7)).collect();
    let progress = bayescope::events::Progress { done: 60, total: 60 };
    fake.send_gallery(GalleryUpdate { generation, shape: SHAPE, tiles, drafts: Vec::new(), failed: vec![0], progress });
    harness.run_steps(3);
    assert!(
        !shows(&harness, "From 60 samples") && shows(&harness, "No figures from samples: 1 left the finite numbers")
    );
    assert!(shows(&harness, "cannot be made at this τ"), "the inspector shows sample 0");
}
