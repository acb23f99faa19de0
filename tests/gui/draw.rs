//! The panel *Draw*: strokes become requests of which the newest counts, and their answers follow the pen. Typicality in words.

use std::sync::Arc;

use bayescope::gui::{App, Prefs, ThemePreference};
use bayescope::measure::typicality::{NOT_OF_THIS_WORLD, SAMPLES};
use bayescope::oracle::posterior::Prior;
use bayescope::units::Tau;
use bayescope::worker::protocol::{Asked, Event, Job, ReferenceNews, Subject};
use eframe::egui::{Key, Modifiers, Pos2, Rect, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::click;
use super::fake::{self, Fake};
use super::{by_palette, full, shows, until};

/// A window with the panel in front, and its first drawing answered.
fn drawing() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("draw");
    harness.run_steps(4);
    fake.answer_sketch(4);
    until(&mut harness, |harness| harness.state().session().sketch.is_some());
    harness.run_steps(2);
    (harness, fake)
}

fn canvas(harness: &Harness<'_, App>) -> Rect {
    harness.get_by_role_and_label(Role::Canvas, "Canvas").rect()
}

/// A stroke between two points, shares of the canvas.
fn stroke(harness: &mut Harness<'_, App>, from: [f32; 2], to: [f32; 2]) {
    let place = canvas(harness);
    let at = |share: [f32; 2]| place.min + Pos2::from(share).to_vec2() * place.size();
    harness.drag_at(at(from));
    harness.run_steps(2);
    harness.hover_at(at(to));
    harness.run_steps(2);
    harness.drop_at(at(to));
    harness.run_steps(2);
}

fn ink(fake: &Fake) -> usize {
    let (request, _) = fake.asked_sketch();
    request.expect("a drawing is asked about").sketch.inked.iter().filter(|inked| **inked).count()
}

/// Samples at τ = 1 whose log p(x) goes from 0 to 398 nats above a number.
fn reference(fake: &Fake, from: f64) {
    let outcome = Ok((0..SAMPLES).map(|i| from + i as f64).collect());
    let news = ReferenceNews { tau: Tau::ONE, prior: Prior::uniform(10), outcome, complete: true };
    fake.send(Event::Reference(Box::new(news)));
}

#[test]
fn every_stroke_is_asked_about_and_nothing_is_asked_twice() {
    let (mut harness, fake) = drawing();
    let (none, before) = fake.asked_sketch();
    assert!(none.is_none() && before == 1, "the empty image was asked about once, and answered");
    assert!(shows(&harness, "Posterior of the drawing"));
    stroke(&mut harness, [0.2, 0.5], [0.8, 0.5]);
    let (request, asked) = fake.asked_sketch();
    let request = request.expect("the newest drawing waits");
    assert!(asked > before + 1, "a request while the pen was down, and one after");
    assert!(request.sketch.ground.is_none() && !request.evidence);
    assert!(ink(&fake) > 32, "{} pixels", ink(&fake));
    let brightest = request.sketch.levels.iter().max();
    assert_eq!(brightest, Some(&255), "white on black");
    assert!(request.sketch.levels.iter().any(|level| (1..255).contains(level)), "edges are soft");
    harness.run_steps(8);
    assert_eq!(fake.asked_sketch().1, asked, "nothing moves, nothing is asked");
    let old = |harness: &Harness<'_, App>| shows(harness, "Of the drawing before");
    std::thread::sleep(std::time::Duration::from_millis(350));
    harness.run_steps(2);
    assert!(old(&harness), "the answer is of the empty image");
    fake.answer_sketch(7);
    harness.run_steps(3);
    assert!(!old(&harness));
    assert_eq!(harness.state().session().sketch.as_ref().map(|answer| answer.posterior.decision), Some(7));
    assert!(
        harness.state().frame_report().pens >= 2 && harness.state().frame_report().pen_to_posterior_ms_p50.is_some()
    );
}

#[test]
fn strokes_are_undone_by_buttons_and_by_keys_and_settings_stay() {
    let (mut harness, fake) = drawing();
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(1.5);
    harness.run_steps(4);
    stroke(&mut harness, [0.2, 0.2], [0.7, 0.2]);
    let first = ink(&fake);
    stroke(&mut harness, [0.2, 0.8], [0.7, 0.8]);
    let both = ink(&fake);
    assert!(both > first);
    click(&mut harness, "Undo stroke");
    assert_eq!(ink(&fake), first);
    click(&mut harness, "Redo stroke");
    assert_eq!(ink(&fake), both);
    // The canvas has the focus after a stroke: keys mean strokes, not τ.
    stroke(&mut harness, [0.5, 0.3], [0.5, 0.4]);
    let three = ink(&fake);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    harness.run_steps(3);
    assert!(ink(&fake) < three);
    assert_eq!(harness.state().prefs().tau, 1.5);
    click(&mut harness, "Clear ink");
    assert_eq!(ink(&fake), 0);
    click(&mut harness, "Undo stroke");
    assert_eq!(ink(&fake), both);
}

#[test]
fn an_eraser_takes_ink_away_and_keys_alone_can_draw() {
    let (mut harness, fake) = drawing();
    stroke(&mut harness, [0.2, 0.5], [0.8, 0.5]);
    let before = ink(&fake);
    click(&mut harness, "Eraser");
    stroke(&mut harness, [0.2, 0.5], [0.5, 0.5]);
    assert!(ink(&fake) < before);
    click(&mut harness, "Clear ink");
    click(&mut harness, "Pen");
    harness.get_by_role_and_label(Role::Canvas, "Canvas").focus();
    harness.run_steps(2);
    harness.key_press(Key::ArrowLeft);
    harness.key_press(Key::Space);
    harness.run_steps(3);
    assert!(ink(&fake) > 0, "Space draws where the pen is");
    assert_eq!(harness.state().prefs().seed, Prefs::default().seed, "Space asks for no new samples here");
}

#[test]
fn a_drawing_on_an_image_keeps_it_below_the_ink_and_goes_to_the_gallery() {
    let (mut harness, fake) = full();
    harness.get_by_label_contains("Sample 3,").click();
    harness.run_steps(3);
    harness.state_mut().show_panel("draw");
    harness.run_steps(4);
    click(&mut harness, "Draw on the inspected image");
    let (request, _) = fake.asked_sketch();
    let request = request.expect("its picture is asked for");
    assert!(matches!(request.sketch.ground.as_ref().unwrap().subject, Subject::Sample { index: 3, .. }));
    assert!(shows(&harness, "Sample 3 is being fetched"));
    fake.answer_sketch(3);
    harness.run_steps(4);
    stroke(&mut harness, [0.0, 0.1], [0.3, 0.1]);
    let sketch = fake.asked_sketch().0.expect("the drawing is asked about").sketch;
    let below = fake::tile(3, 1.0);
    let below = below.pixels.bytes().unwrap();
    let kept = sketch.levels.iter().zip(below).zip(&sketch.inked).filter(|(_, inked)| !**inked);
    assert!(kept.clone().count() > 800 && kept.clone().all(|((now, before), _)| now == before));
    assert!(sketch.inked.contains(&true));
    click(&mut harness, "Send drawing to gallery");
    let sent = fake.jobs().into_iter().find_map(|(_, job)| match job {
        Job::SendSketch { sketch, .. } => Some(sketch),
        _ => None,
    });
    assert!(Arc::ptr_eq(&sent.expect("the drawing is sent"), &sketch));
}

#[test]
fn a_drawing_is_saved_as_the_picture_that_was_asked_about() {
    let (mut harness, fake) = drawing();
    stroke(&mut harness, [0.3, 0.3], [0.6, 0.7]);
    let levels = fake.asked_sketch().0.unwrap().sketch.levels.clone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seven.png");
    click(&mut harness, "Save drawing…");
    super::experiments::rewrite(&mut harness, "Path", path.to_str().unwrap());
    click(&mut harness, "Save");
    for _ in 0..400 {
        harness.step();
        if path.is_file() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let read = bayescope::data::open(&path).unwrap();
    let bayescope::data::Input::Pixels(images) = read else { panic!("a PNG holds pixels") };
    assert_eq!(images.to_channels(1).unwrap().pixels, levels);
}

#[test]
fn without_a_drawing_the_commands_say_where_to_draw() {
    let (mut harness, fake) = full();
    by_palette(&mut harness, "Send the drawing");
    harness.state_mut().show_panel("log");
    harness.run_steps(3);
    assert!(shows(&harness, "use the panel Draw first"));
    assert!(fake.jobs().is_empty());
}

#[test]
fn evidence_is_asked_for_only_when_it_is_wanted() {
    let (mut harness, fake) = drawing();
    click(&mut harness, "Evidence of the drawing");
    let request = fake.asked_sketch().0.expect("asked again, with evidence");
    assert!(request.evidence);
    fake.answer_sketch(1);
    harness.run_steps(3);
    assert!(shows(&harness, "nats for 1 against 2"));
}

#[test]
fn a_drawing_without_an_answer_has_not_the_posterior_of_the_one_before() {
    let (mut harness, fake) = drawing();
    assert!(shows(&harness, "Posterior of the drawing"));
    stroke(&mut harness, [0.3, 0.3], [0.7, 0.7]);
    fake.send(Event::Unanswered { asked: Asked::Sketch, why: "the card has no room".into() });
    harness.run_steps(3);
    assert!(shows(&harness, "the card has no room"));
    assert!(!shows(&harness, "Posterior of the drawing") && !shows(&harness, "Being computed"));
}

#[test]
fn typicality_follows_the_samples_that_were_drawn() {
    let (mut harness, fake) = full();
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    assert!(shows(&harness, "being drawn"));
    let log_px = fake::tile(7, 1.0).posterior.log_px;
    reference(&fake, log_px - 199.5);
    harness.run_steps(3);
    assert!(shows(&harness, "typical, p = ") && shows(&harness, "nats, density"));
    assert!(!shows(&harness, NOT_OF_THIS_WORLD));
    reference(&fake, log_px + 1e4);
    harness.run_steps(3);
    assert!(shows(&harness, "far outside, p ≤ 0.005"));
    assert!(shows(&harness, NOT_OF_THIS_WORLD));
    // Other knobs have other samples.
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(1.5);
    harness.run_steps(4);
    assert!(shows(&harness, "being drawn") && !shows(&harness, NOT_OF_THIS_WORLD));
}

#[test]
fn why_there_are_no_samples_is_said_in_both_themes() {
    for theme in [ThemePreference::Light, ThemePreference::Dark] {
        let (mut harness, fake) = super::window(Prefs { theme, ..Prefs::default() });
        fake.open_oracle();
        until(&mut harness, |harness| fake.pending().is_some() && harness.state().session().oracle.is_some());
        fake.answer();
        harness.run_steps(4);
        fake.answer();
        let outcome = Err("it leaves the finite numbers".to_owned());
        let news = ReferenceNews { tau: Tau::ONE, prior: Prior::uniform(10), outcome, complete: true };
        fake.send(Event::Reference(Box::new(news)));
        harness.state_mut().show_panel("draw");
        harness.run_steps(4);
        fake.answer_sketch(2);
        harness.run_steps(3);
        assert!(shows(&harness, "Posterior of the drawing") && shows(&harness, "unknown"));
        harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(0.0);
        harness.run_steps(4);
        assert!(shows(&harness, "a drawing has no posterior"));
    }
}
