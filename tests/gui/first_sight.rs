//! The start page: what it shows of each world, what it opens, and how it is left.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bayescope::bayes::{Estimate, Figure, Method};
use bayescope::data::ImageShape;
use bayescope::gui::{App, Prefs, ThemePreference};
use bayescope::oracle::library;
use bayescope::provenance::Badge;
use bayescope::worker::bayes::protocol::Question;
use bayescope::worker::protocol::{Event, Glimpse, Job, Outcome};
use eframe::egui::{Key, Rect, Role, Shape};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::fake::Fake;
use super::{by_palette, full, shows, sized, window};

const SHEET: ImageShape = ImageShape { channels: 1, height: 4, width: 12 };

fn press(harness: &mut Harness<'_, App>, button: &str) {
    harness.get_by_role_and_label(Role::Button, button).click();
    harness.run_steps(3);
}

/// The name of a world's card.
fn card(harness: &Harness<'_, App>, world: &str) -> String {
    let start = format!("Open the world {world}: ");
    let nodes = harness.root().children_recursive().filter_map(|node| node.accesskit_node().label());
    nodes.into_iter().find(|label| label.starts_with(&start)).expect("the world has a card")
}

fn open(harness: &Harness<'_, App>) -> bool {
    shows(harness, "Three things to try")
}

/// A full window with the start page over it.
fn started() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = full();
    harness.state_mut().show_start(false);
    harness.run_steps(3);
    (harness, fake)
}

fn seen(world: &'static str, value: Option<f64>) -> Event {
    let estimate = |value: f64| Estimate {
        figure: Figure::new(value, 1e-6, 1.0),
        log_value: value.ln(),
        bounds: (0.0, 1.0),
        badge: Badge::Estimated,
        method: Method::Sov,
        why: "asked for".into(),
        samples: 9,
        draws: 9,
        seconds: 0.1,
    };
    let picture = (0..SHEET.dims()).map(|i| (i * 5) as u8).collect();
    Event::Glimpsed {
        world,
        outcome: Ok(Arc::new(Glimpse { shape: SHEET, picture, bayes_error: value.map(estimate) })),
    }
}

#[test]
fn every_bundled_world_has_a_card_that_fills_when_it_was_looked_at() {
    let (mut harness, fake) = started();
    assert_eq!(fake.glimpsed(), library::names(), "every world is to be looked at");
    for name in library::names() {
        let classes = library::find(name).unwrap().info().unwrap().class_names;
        assert!(card(&harness, name).contains(&format!("{} classes: {}", classes.len(), classes[0])));
    }
    assert!(shows(&harness, "Drawing samples…") && !shows(&harness, "Bayes error at τ = 1:"));
    for name in library::names() {
        fake.send(seen(name, (name == "mnist").then_some(0.0359)));
    }
    harness.run_steps(3);
    assert!(shows(&harness, "Bayes error at τ = 1: 3.59") && shows(&harness, "Samples of mnist at τ = 1"));
    assert!(shows(&harness, "from samples, in the panel Bayes error") && !shows(&harness, "Drawing samples…"));
    fake.send(Event::Glimpsed { world: "cells", outcome: Err("its weights are broken".into()) });
    harness.run_steps(3);
    assert!(shows(&harness, "its weights are broken"));
    harness.check_accessibility();
    // Opened again, it knows what it knew.
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    by_palette(&mut harness, "Start page");
    assert!(open(&harness) && fake.glimpsed().len() == library::names().len());
}

#[test]
fn a_click_on_a_card_opens_its_world_and_the_open_one_is_not_read_again() {
    let (mut harness, fake) = started();
    assert!(!shows(&harness, "Sample 7,"), "it stands in the place of the gallery");
    let (mnist, cells) = (card(&harness, "mnist"), card(&harness, "cells"));
    press(&mut harness, &mnist);
    assert!(!open(&harness) && shows(&harness, "Sample 7,") && fake.jobs().is_empty());
    by_palette(&mut harness, "Start page");
    // By keyboard.
    harness.get_by_role_and_label(Role::Button, &cells).focus();
    harness.run_steps(2);
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    let jobs = fake.jobs();
    let [(_, Job::OpenOracle(name))] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert!(name == "cells" && !open(&harness));
}

/// The box names what is open, and what it does not name can be chosen.
#[test]
fn of_two_worlds_that_were_chosen_the_one_that_opens_is_named() {
    let (mut harness, fake) = started();
    for world in ["cells", "fashion"] {
        let card = card(&harness, world);
        press(&mut harness, &card);
        by_palette(&mut harness, "Start page");
    }
    let jobs = fake.jobs();
    let [(_, Job::OpenOracle(_)), (id, Job::OpenOracle(name))] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert!(name == "fashion" && harness.state().prefs().oracle == "fashion");
    fake.send(Event::JobEnded { id: *id, outcome: Outcome::Cancelled });
    harness.run_steps(3);
    assert_eq!(harness.state().prefs().oracle, "mnist", "it is still open");
    fake.send(Event::Oracle { name: "cells".into(), info: Arc::new(library::find("cells").unwrap().info().unwrap()) });
    harness.run_steps(3);
    assert_eq!((harness.state().prefs().oracle.as_str(), fake.jobs().len()), ("cells", 2));
    let mnist = card(&harness, "mnist");
    press(&mut harness, &mnist);
    assert!(matches!(fake.jobs().as_slice(), [.., (_, Job::OpenOracle(name))] if name == "mnist"));
}

#[test]
fn it_is_left_by_escape_and_keys_of_the_gallery_do_nothing_below_it() {
    let (mut harness, _) = started();
    let before = harness.state().view().cursor;
    for key in [Key::ArrowRight, Key::Space] {
        harness.key_press(key);
        harness.run_steps(2);
    }
    assert_eq!((harness.state().view().cursor, harness.state().prefs().seed), (before, 0));
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    assert!(!open(&harness) && shows(&harness, "Sample 7,"));
    harness.key_press(Key::Space);
    harness.run_steps(2);
    assert_eq!(harness.state().prefs().seed, 1);
}

#[test]
fn three_things_to_try_do_what_they_say() {
    let (mut harness, fake) = started();
    press(&mut harness, "Look at the samples");
    assert!(!open(&harness) && shows(&harness, "Sample 7,"));
    by_palette(&mut harness, "Start page");
    fake.questions();
    press(&mut harness, "Set a Bayes error of 5 %");
    let asked = fake.questions();
    let target = |question: &Question| matches!(question, Question::Target(target) if target.error == 0.05);
    assert!(asked.iter().any(target) && !open(&harness), "{asked:?}");
    by_palette(&mut harness, "Start page");
    press(&mut harness, "Train networks against the truth");
    assert!(
        !open(&harness) && harness.query_all_by_label("Preset").next().is_some(),
        "the form of experiments is in front"
    );
}

#[test]
fn without_a_world_there_is_no_bayes_error_to_set() {
    let (mut harness, _) = window(Prefs::default());
    harness.state_mut().show_start(false);
    harness.run_steps(3);
    let button = harness.get_by_role_and_label(Role::Button, "Set a Bayes error of 5 %");
    assert!(button.accesskit_node().is_disabled());
}

#[test]
fn recent_oracles_and_runs_are_offered() {
    let runs = vec![PathBuf::from("/runs/old/scaling"), PathBuf::from("/runs/new/scaling")];
    let prefs = Prefs { n: 40, runs, oracles: vec!["/worlds/other".into(), "/worlds/mine".into()], ..Prefs::default() };
    let (mut harness, fake) = window(prefs);
    fake.open_oracle();
    harness.run_steps(3);
    harness.state_mut().show_start(false);
    harness.run_steps(3);
    press(&mut harness, "Open oracle /worlds/mine");
    let jobs = fake.jobs();
    let [(_, Job::OpenOracle(name))] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!(name, "/worlds/mine");
    fake.open_oracle();
    harness.run_steps(3);
    assert_eq!(harness.state().prefs().oracles, ["/worlds/mine", "/worlds/other"], "the last one comes first");
    by_palette(&mut harness, "Start page");
    press(&mut harness, "Open run /runs/old/scaling");
    super::disk::looked(&mut harness);
    assert!(!open(&harness));
    assert_eq!(harness.state().view().run.as_deref(), Some("/runs/old/scaling".as_ref()));
}

#[test]
fn the_tour_comes_after_it_where_the_samples_do() {
    for (key, offered) in [("Look at the samples", true), ("Train networks against the truth", false)] {
        let (mut harness, _) = full();
        harness.state_mut().show_start(true);
        harness.run_steps(3);
        assert!(!shows(&harness, "Skip the tour"), "one after the other");
        press(&mut harness, key);
        assert_eq!(shows(&harness, "Skip the tour"), offered, "{key}");
    }
}

#[test]
fn it_fits_light_and_dark_and_narrow_windows() {
    for look in [ThemePreference::Light, ThemePreference::Dark] {
        for size in [[480.0, 400.0], [1280.0, 800.0]] {
            let (mut harness, fake) = sized(Prefs { theme: look, ..Prefs::default() }, size);
            harness.state_mut().show_start(false);
            fake.send(seen("mnist", Some(0.0359)));
            harness.run_steps(4);
            harness.check_accessibility();
            for name in library::names() {
                let card = card(&harness, name);
                let rect = harness.get_by_role_and_label(Role::Button, &card).rect();
                assert!(rect.left() >= 0.0 && rect.right() <= size[0], "{name} in {size:?}: {rect:?}");
            }
        }
    }
}

/// Where a text is painted, in the order of the painting.
fn painted(harness: &Harness<'_, App>, words: &str) -> Vec<Rect> {
    fn find(shape: &Shape, words: &str, found: &mut Vec<Rect>) {
        match shape {
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| find(shape, words, found)),
            Shape::Text(text) if text.galley.text() == words => found.push(text.visual_bounding_rect()),
            _ => {}
        }
    }
    let mut found = Vec::new();
    harness.output().shapes.iter().for_each(|clipped| find(&clipped.shape, words, &mut found));
    found
}

/// egui lays a frame out twice where a table is new. What comes between the two passes would bring tables that no further
/// pass lays out: they wait for the next frame.
#[test]
fn the_rows_of_the_world_card_stand_below_each_other_from_their_first_frame_on() {
    let (mut harness, fake) = window(Prefs::default());
    harness.run_steps(3);
    let (engine, opened) = (fake.clone(), AtomicBool::new(false));
    let between = move |ui: &mut eframe::egui::Ui| match ui.current_pass_index() {
        0 if !opened.load(Ordering::Relaxed) => ui.request_discard("a test"),
        1 if !opened.swap(true, Ordering::Relaxed) => engine.open_oracle(),
        _ => {}
    };
    harness.ctx.on_begin_pass("news between passes", Arc::new(between));
    let mut frames = 0;
    while harness.state().session().oracle.is_none() {
        frames += 1;
        assert!(frames < 10, "the oracle is not open");
        harness.step();
    }
    let rows = |harness: &Harness<'_, App>| -> Vec<Rect> {
        let row = |name| *painted(harness, name).first().unwrap_or_else(|| panic!("{name} is not painted"));
        ["Name", "Flow", "Images", "Classes", "Held-out NLL"].into_iter().map(row).collect()
    };
    let first = rows(&harness);
    assert!(first.windows(2).all(|pair| pair[0].bottom() <= pair[1].top() + 1.0), "rows overlap: {first:?}");
    harness.run_steps(5);
    let settled = rows(&harness);
    // By no more than a name is moved that is centred beside two lines.
    let moved = first.iter().zip(&settled).map(|(first, settled)| (first.top() - settled.top()).abs());
    assert!(moved.fold(0.0, f32::max) < 14.0, "{first:?} {settled:?}");
}
