//! The window, driven by role and label against an engine that answers when it is told to.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]
#![cfg(feature = "gui")]

#[path = "gui/access.rs"]
mod access;
#[path = "gui/bayes.rs"]
mod bayes;
#[path = "gui/cells.rs"]
mod cells;
#[path = "gui/device.rs"]
mod device;
#[path = "gui/disk.rs"]
mod disk;
#[path = "gui/draw.rs"]
mod draw;
#[path = "gui/experiments.rs"]
mod experiments;
#[path = "gui/export.rs"]
mod export;
#[path = "gui/external.rs"]
mod external;
#[path = "gui/failures.rs"]
mod failures;
#[path = "gui/fake.rs"]
mod fake;
#[path = "gui/far.rs"]
mod far;
#[path = "gui/fetch.rs"]
mod fetch;
#[path = "gui/figures.rs"]
mod figures;
#[path = "gui/first_sight.rs"]
mod first_sight;
#[path = "gui/glide.rs"]
mod glide;
#[path = "gui/hardness.rs"]
mod hardness;
#[path = "gui/help.rs"]
mod help;
#[path = "gui/images.rs"]
mod images;
#[path = "gui/jobs.rs"]
mod jobs;
#[path = "gui/judge.rs"]
mod judge;
#[path = "gui/kinds.rs"]
mod kinds;
#[path = "gui/ledger.rs"]
mod ledger;
#[path = "gui/looking.rs"]
mod looking;
#[path = "gui/named_runs.rs"]
mod named_runs;
#[path = "gui/pictures.rs"]
mod pictures;
#[path = "gui/plots.rs"]
mod plots;
#[path = "gui/priors.rs"]
mod priors;
#[path = "gui/sampled.rs"]
mod sampled;
#[path = "gui/saving.rs"]
mod saving;
#[path = "gui/stale.rs"]
mod stale;
#[path = "gui/start.rs"]
mod start;
#[path = "gui/tables.rs"]
mod tables;
#[path = "gui/tasks.rs"]
mod tasks;
#[path = "gui/tour.rs"]
mod tour;
#[path = "gui/training.rs"]
mod training;
#[path = "gui/validate.rs"]
mod validate;
#[path = "gui/verify.rs"]
mod verify;
#[path = "gui/walk.rs"]
mod walk;
#[path = "gui/what_if.rs"]
mod what_if;
#[path = "gui/words.rs"]
mod words;
#[path = "gui/worlds.rs"]
mod worlds;
#[path = "gui/worst.rs"]
mod worst;

use std::path::Path;
use std::sync::Arc;

use bayescope::gui::{App, Prefs};
use bayescope::oracle::library;
use bayescope::worker::protocol::{Event, Job, Outcome};
use bayescope::worker::save::SaveSamples;
use eframe::egui::{self, Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use disk::{drop_in, looked};
use fake::Fake;

const SIZE: [f32; 2] = [1280.0, 800.0];

fn window(prefs: Prefs) -> (Harness<'static, App>, Fake) {
    sized(prefs, SIZE)
}

/// The world of the fake engine is `mnist`, where a test names no other.
fn sized(mut prefs: Prefs, size: [f32; 2]) -> (Harness<'static, App>, Fake) {
    if prefs.oracle == library::DEFAULT {
        prefs.oracle = "mnist".into();
    }
    let fake = Fake::default();
    let engine = std::rc::Rc::new(fake.clone());
    let builder = Harness::builder().with_size(size).with_step_dt(1.0 / 30.0);
    (builder.build_eframe(move |cc| App::new(&cc.egui_ctx, prefs, engine)), fake)
}

/// A window whose gallery is full.
fn full() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = window(Prefs { n: 60, ..Prefs::default() });
    fake.open_oracle();
    until(&mut harness, |harness| fake.pending().is_some() && harness.state().session().oracle.is_some());
    fake.answer();
    until(&mut harness, |harness| harness.state().session().gallery_complete());
    fake.answer();
    harness.run_steps(3);
    (harness, fake)
}

/// Steps until something holds; never sleeps.
fn until(harness: &mut Harness<'_, App>, holds: impl Fn(&Harness<'_, App>) -> bool) {
    for _ in 0..200 {
        if holds(harness) {
            return;
        }
        harness.step();
    }
    panic!("it did not come to hold in 200 frames; the window shows:\n{harness:?}");
}

/// Has a command carried out that the palette finds by these words.
fn by_palette(harness: &mut Harness<'_, App>, words: &str) {
    harness.key_press_modifiers(Modifiers::COMMAND, Key::P);
    harness.run_steps(3);
    harness.get_by_label("Command").type_text(words);
    harness.run_steps(2);
    harness.key_press(Key::Enter);
    harness.run_steps(4);
}

fn shows(harness: &Harness<'_, App>, text: &str) -> bool {
    harness.query_all_by_label_contains(text).next().is_some()
}

#[test]
fn a_selected_image_shows_its_exact_posterior() {
    let (mut harness, _) = full();
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    assert_eq!(harness.state().view().cursor, Some(7));
    let tile = fake::tile(7, 1.0);
    let best = tile.posterior.probabilities[tile.posterior.decision];
    assert!(best > 0.1 && best < 1.0);
    assert!(shows(&harness, &format!("{best:.4}")), "p = {best:.4} is not shown");
    assert!(shows(&harness, &format!("{:.2}", tile.posterior.log_likelihood[3])));
}

#[test]
fn sliding_the_base_temperature_asks_once_and_keeps_the_pictures() {
    let (mut harness, fake) = full();
    let before = fake.shown();
    for tau in [1.2, 1.7, 2.0] {
        harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(tau);
        harness.run_steps(2);
    }
    // Where τ outruns the images, they are asked for when it rests.
    until(&mut harness, |_| fake.pending().is_some_and(|pending| pending.settings.tau.get() == 2.0));
    harness.run_steps(5);
    let asked = fake.shown() - before;
    assert!((1..=3).contains(&asked), "a change is one request at most, and nothing is asked twice: {asked}");
    let pending = fake.pending().expect("the newest request waits");
    assert_eq!(pending.settings.tau.get(), 2.0);
    assert_eq!(pending.spec.n, 60);
    assert!(pending.first.len() > 10, "what is in view comes first");
    assert_eq!(harness.state().session().gallery_count(), 60, "old pictures stay until they are replaced");
    assert!(shows(&harness, "0 of 60 computed"));
    fake.answer();
    until(&mut harness, |harness| harness.state().session().gallery_complete());
    harness.run_steps(5);
    assert!(fake.pending().is_none());
}

#[test]
fn a_dropped_file_that_is_no_image_is_named_and_the_window_stays() {
    let (mut harness, fake) = full();
    harness.input_mut().dropped_files.push(Arc::new(Dropped("/data/bad.png".as_ref())));
    looked(&mut harness);
    let jobs = fake.jobs();
    let [(id, Job::Classify { paths, .. })] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!(paths, &[Path::new("/data/bad.png")]);
    let outcome = Outcome::Failed("/data/bad.png: is no picture".into());
    fake.send(Event::JobEnded { id: *id, outcome });
    harness.run_steps(3);
    assert!(shows(&harness, "/data/bad.png: is no picture"));
    assert!(shows(&harness, "Sample 7,"));
}

#[test]
fn jobs_can_be_paused_and_cancelled() {
    let (mut harness, fake) = full();
    drop_in(&mut harness, ["/data/folder"]);
    harness.run_steps(2);
    fake.send(Event::JobStarted { id: 1 });
    let progress = bayescope::events::Progress { done: 3, total: 12 };
    fake.send(Event::JobProgress { id: 1, progress, note: "reading".into() });
    harness.run_steps(2);
    assert!(shows(&harness, "25 % (3 of 12)"));
    harness.get_by_label_contains("Pause job 1").click();
    harness.run_steps(2);
    harness.get_by_label_contains("Resume job 1").click();
    harness.run_steps(2);
    assert_eq!(fake.pauses(), [(1, true), (1, false)]);
    harness.get_by_label_contains("Cancel job 1").click();
    harness.run_steps(2);
    assert!(fake.cancelled() == [1] && shows(&harness, "stopping"));
    fake.send(Event::JobEnded { id: 1, outcome: Outcome::Cancelled });
    harness.run_steps(2);
    assert!(shows(&harness, "cancelled"));
    drop_in(&mut harness, ["/data/second"]);
    drop_in(&mut harness, ["/data/third"]);
    harness.run_steps(2);
    by_palette(&mut harness, "cancel all");
    assert_eq!(fake.cancelled(), [1, 2, 3], "what has ended is not cancelled again");
}

#[test]
fn arrows_walk_the_gallery() {
    let (mut harness, _) = full();
    let columns = harness.state().view().columns;
    assert!(columns > 3);
    let mut press = |modifiers, key, expected| {
        harness.key_press_modifiers(modifiers, key);
        harness.run_steps(2);
        assert_eq!(harness.state().view().cursor, Some(expected), "after {key:?}");
    };
    press(Modifiers::NONE, Key::ArrowRight, 1);
    press(Modifiers::NONE, Key::ArrowDown, 1 + columns);
    press(Modifiers::NONE, Key::ArrowUp, 1);
    press(Modifiers::NONE, Key::End, 59);
    press(Modifiers::NONE, Key::Home, 0);
    press(Modifiers::SHIFT, Key::ArrowRight, 1);
    assert_eq!(harness.state().view().selection.len(), 2);
    assert!(shows(&harness, "2 selected"));
}

#[test]
fn knobs_can_be_undone_and_made_again() {
    let (mut harness, fake) = full();
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.5);
    harness.run_steps(2);
    harness.key_press(Key::Space);
    harness.run_steps(2);
    assert_eq!((harness.state().prefs().tau, harness.state().prefs().seed), (2.5, 1));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    harness.run_steps(2);
    assert_eq!((harness.state().prefs().tau, harness.state().prefs().seed), (2.5, 0));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    harness.run_steps(2);
    assert_eq!(harness.state().prefs().tau, 1.0);
    until(&mut harness, |_| fake.pending().is_some_and(|pending| pending.settings.tau.get() == 1.0));
    harness.key_press_modifiers(Modifiers::COMMAND | Modifiers::SHIFT, Key::Z);
    harness.run_steps(2);
    assert_eq!(harness.state().prefs().tau, 2.5);
}

#[test]
fn a_tooltip_makes_room_for_a_window_above_it() {
    let (mut harness, _) = full();
    let about = |harness: &Harness<'_, App>| harness.query_by_label("strip: colour of the label").is_some();
    harness.get_by_label_contains("Sample 20,").hover();
    harness.run_steps(60);
    assert!(about(&harness), "a tile tells what it is");
    harness.key_press_modifiers(Modifiers::COMMAND, Key::P);
    harness.run_steps(5);
    assert!(!about(&harness), "the tooltip lies over the palette");
}

#[test]
fn the_palette_finds_commands_and_escape_closes_it() {
    let (mut harness, _) = full();
    by_palette(&mut harness, "new samp");
    assert_eq!(harness.state().prefs().seed, 1);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::P);
    harness.run_steps(3);
    assert!(harness.query_by_label("Command").is_some());
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    assert!(harness.query_by_label("Command").is_none());
}

#[test]
fn samples_are_saved_where_the_path_field_says() {
    let (mut harness, fake) = full();
    harness.key_press_modifiers(Modifiers::COMMAND, Key::S);
    harness.run_steps(3);
    assert!(shows(&harness, "Save 60 samples"));
    harness.key_press(Key::Enter);
    looked(&mut harness);
    let (_, SaveSamples { path, indices, look, .. }) = tasks::asked(&fake);
    let here = std::path::absolute("samples.npz").unwrap();
    assert!(path == here && indices.is_empty() && look.is_none(), "{}", path.display());
}

#[test]
fn an_oracle_that_cannot_be_opened_leaves_the_old_one() {
    let (mut harness, fake) = full();
    drop_in(&mut harness, ["/data/other.safetensors"]);
    harness.run_steps(2);
    let jobs = fake.jobs();
    let [(id, Job::OpenOracle(name))] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!(name, "/data/other.safetensors");
    fake.send(Event::JobEnded { id: *id, outcome: Outcome::Failed("/data/other.safetensors: no Glow".into()) });
    harness.run_steps(3);
    assert_eq!(harness.state().prefs().oracle, "mnist");
    assert!(shows(&harness, "no Glow"));
    assert_eq!(fake.jobs().len(), 1);
}

#[test]
fn images_from_outside_come_to_the_front() {
    let (mut harness, fake) = full();
    fake.send(fake::external(3));
    harness.run_steps(4);
    assert!(shows(&harness, "From outside (3)"));
    assert!(shows(&harness, "outside-2.png"));
    assert!(shows(&harness, "no labels given"));
    harness.get_by_label("World samples").click();
    harness.run_steps(3);
    assert!(shows(&harness, "Sample 7,"));
}

#[test]
fn images_from_outside_follow_the_knobs() {
    let (mut harness, fake) = full();
    drop_in(&mut harness, ["/data/folder"]);
    harness.run_steps(2);
    fake.send(fake::external(3));
    fake.send(Event::JobEnded { id: 1, outcome: Outcome::Done("3 images".into()) });
    harness.run_steps(4);
    harness.get_by_label_contains("outside-2.png").click();
    harness.run_steps(2);
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.0);
    harness.run_steps(3);
    let jobs = fake.jobs();
    let [_, (_, Job::Classify { settings, .. })] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert_eq!(settings.tau.get(), 2.0);
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.5);
    harness.run_steps(3);
    assert_eq!(fake.cancelled(), [2], "nobody waits for the knobs of before");
    fake.send(Event::JobEnded { id: 2, outcome: Outcome::Cancelled });
    fake.send(fake::external(3));
    harness.run_steps(4);
    assert_eq!(fake.jobs().len(), 3, "answered once, asked once");
    assert_eq!(harness.state().view().cursor, Some(2), "the same images keep their place");
}

#[test]
fn without_an_oracle_the_window_says_why() {
    let (mut harness, fake) = window(Prefs { oracle: "/gone".into(), ..Prefs::default() });
    fake.send(Event::Failed("'/gone' is no oracle".into()));
    harness.run_steps(3);
    assert!(shows(&harness, "No oracle is open"));
    assert!(shows(&harness, "'/gone' is no oracle"));
}

#[derive(Debug)]
struct Dropped(&'static Path);

impl egui::DroppedFile for Dropped {
    fn path(&self) -> &Path {
        self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("the window never reads".into())
    }
}

/// The nodes of the tree, for failures.
fn labels(harness: &Harness<'_, App>) -> Vec<String> {
    harness.root().children_recursive().filter_map(|node| node.accesskit_node().label()).collect()
}
