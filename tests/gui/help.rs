//! Undo in words, sizes, keys and words listed, tables of plots.

use bayescope::gui::{App, Prefs};
use eframe::egui::{Event, Key, Modifiers, PointerButton, Pos2, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::tour::focused;
use super::{bayes, full, shows, sized};

const CTRL: Modifiers = Modifiers::COMMAND;

fn press(harness: &mut Harness<'_, App>, label: &str) {
    harness.get_by_role_and_label(Role::Button, label).click();
    harness.run_steps(3);
}

fn key(harness: &mut Harness<'_, App>, modifiers: Modifiers, key: Key) {
    harness.key_press_modifiers(modifiers, key);
    harness.run_steps(2);
}

fn pointer(harness: &mut Harness<'_, App>, pos: Pos2, pressed: Option<bool>) {
    harness.event(Event::PointerMoved(pos));
    if let Some(pressed) = pressed {
        let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
        harness.event(Event::PointerButton { pos, button, pressed, modifiers });
    }
    harness.step();
}

#[test]
fn a_drag_of_a_slider_is_one_step_back() {
    let (mut harness, _) = full();
    let rect = harness.get_by_role_and_label(Role::Slider, "Base temperature τ").rect();
    let at = |share: f32| Pos2::new(rect.left() + share * rect.width(), rect.center().y);
    pointer(&mut harness, at(0.4), Some(true));
    let mut passed = Vec::new();
    for share in [0.5, 0.6, 0.7, 0.8] {
        pointer(&mut harness, at(share), None);
        passed.push(harness.state().prefs().tau);
    }
    pointer(&mut harness, at(0.8), Some(false));
    harness.run_steps(2);
    assert!(passed.windows(2).all(|pair| pair[0] < pair[1]), "the slider did not move: {passed:?}");
    let end = harness.state().prefs().tau;
    key(&mut harness, CTRL, Key::Z);
    assert_eq!(harness.state().prefs().tau, 1.0, "one step takes the whole drag back");
    key(&mut harness, CTRL | Modifiers::SHIFT, Key::Z);
    assert_eq!(harness.state().prefs().tau, end);
}

#[test]
fn a_held_arrow_key_is_one_step_back() {
    let (mut harness, _) = full();
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").focus();
    harness.run_steps(2);
    let arrow = |pressed, repeat| Event::Key {
        key: Key::ArrowRight,
        physical_key: None,
        pressed,
        repeat,
        modifiers: Modifiers::NONE,
    };
    for repeat in 0..6 {
        harness.event(arrow(true, repeat > 0));
        harness.step();
    }
    let end = harness.state().prefs().tau;
    harness.event(arrow(false, false));
    harness.run_steps(2);
    assert!(end > 1.0, "the slider did not move");
    key(&mut harness, CTRL, Key::Z);
    assert_eq!(harness.state().prefs().tau, 1.0);
}

#[test]
fn the_menu_says_what_would_be_undone() {
    let (mut harness, _) = full();
    key(&mut harness, Modifiers::NONE, Key::Space);
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.5);
    harness.run_steps(3);
    press(&mut harness, "Edit");
    press(&mut harness, "Undo: τ");
    assert_eq!((harness.state().prefs().tau, harness.state().prefs().seed), (1.0, 1));
    press(&mut harness, "Edit");
    assert!(shows(&harness, "Undo: seed") && shows(&harness, "Redo: τ"));
}

#[test]
fn everything_grows_and_shrinks_by_keys_and_menu() {
    let (mut harness, _) = full();
    key(&mut harness, CTRL, Key::Plus);
    key(&mut harness, CTRL, Key::Equals);
    assert_eq!(harness.state().prefs().scale, 120);
    assert!((harness.ctx.zoom_factor() - 1.2).abs() < 1e-3);
    key(&mut harness, CTRL, Key::Minus);
    assert_eq!(harness.state().prefs().scale, 110);
    key(&mut harness, CTRL, Key::Num0);
    assert_eq!((harness.state().prefs().scale, harness.ctx.zoom_factor()), (100, 1.0));
}

#[test]
fn a_key_and_the_palette_lead_into_the_panel_in_front() {
    let (mut harness, _) = full();
    key(&mut harness, Modifiers::NONE, Key::F6);
    assert_eq!(focused(&harness).as_deref(), Some("Panel Gallery"));
    // On into the panel, and back to the gallery's own keys.
    key(&mut harness, Modifiers::NONE, Key::Tab);
    assert_eq!(focused(&harness).as_deref(), Some("World samples"));
    key(&mut harness, Modifiers::NONE, Key::Escape);
    assert_eq!(focused(&harness), None);
    key(&mut harness, CTRL, Key::P);
    harness.event(Event::Text("draw".into()));
    harness.run_steps(2);
    key(&mut harness, Modifiers::NONE, Key::Enter);
    harness.run_steps(2);
    assert_eq!(focused(&harness).as_deref(), Some("Panel Draw"));
}

#[test]
fn every_key_and_every_word_is_listed() {
    let (mut harness, _) = full();
    key(&mut harness, Modifiers::NONE, Key::F1);
    for text in
        ["Take the last change of a setting back", "New samples: other classes", "Drag the marker of the curve E(τ)"]
    {
        assert!(shows(&harness, text), "{text}");
    }
    harness.get_by_role_and_label(Role::Button, "Glossary").click();
    harness.run_steps(2);
    harness.get_by_label("Find").focus();
    harness.run_steps(2);
    harness.get_by_label("Find").type_text("calibration");
    harness.run_steps(3);
    assert!(shows(&harness, "Expected calibration error ECE") && shows(&harness, "ECE = Σ_b"));
    assert!(!shows(&harness, "Memorisation"));
    harness.get_by_label("Find").type_text("xyz");
    harness.run_steps(3);
    assert!(shows(&harness, "No entry mentions"));
    harness.check_accessibility();
    key(&mut harness, Modifiers::SHIFT, Key::F1);
    assert!(!shows(&harness, "No entry mentions"), "its key closes it");
}

#[test]
fn a_plot_shows_its_numbers_and_follows_them() {
    let (mut harness, fake) = full();
    press(&mut harness, "Bayes error");
    bayes::answer_all(&mut harness, &fake);
    harness.get_by_label("Table of Bayes error over τ").click();
    harness.run_steps(4);
    assert!(shows(&harness, "Table: Bayes error over τ") && shows(&harness, "bayes_error"));
    let rows = || harness.query_all_by_label_contains(" rows").next().is_some();
    assert!(rows());
    harness.check_accessibility();
    harness.get_by_label("Copy as TSV").click();
    let copied = bayes::copied(&mut harness);
    assert!(copied.starts_with("tau\tbayes_error\tlow_95") && copied.lines().count() > 40, "{copied}");
    harness.get_by_label("Save table…").click();
    harness.run_steps(3);
    assert!(shows(&harness, "Save the points of the plot"));
    key(&mut harness, Modifiers::NONE, Key::Escape);
    key(&mut harness, Modifiers::NONE, Key::Escape);
    assert!(!shows(&harness, "Table: Bayes error over τ"), "Escape closes it");
}

#[test]
fn where_there_is_no_room_for_both_sides_the_one_in_use_shows() {
    let (mut harness, _) = full();
    let sides = |harness: &Harness<'_, App>| {
        [
            shows(harness, "Posterior smoothing T"),
            shows(harness, "Click an image in the gallery") || shows(harness, "Posterior p(y|x)"),
        ]
    };
    assert_eq!(sides(&harness), [true, true]);
    // As large as a window of 1280 by 800 is at 200 %.
    harness.set_size([640.0, 400.0].into());
    harness.run_steps(4);
    assert_eq!(sides(&harness), [true, false]);
    harness.get_by_label_contains("Sample 3,").click();
    harness.run_steps(4);
    assert_eq!(sides(&harness), [false, true]);
    assert!(shows(&harness, "Show the world card") && shows(&harness, "Bayes error"), "τ stays within reach");
    press(&mut harness, "View");
    press(&mut harness, "World card");
    assert_eq!(sides(&harness), [true, false]);
}

#[test]
fn every_line_of_a_menu_comes_into_view_in_a_low_window() {
    let (mut harness, fake) = sized(Prefs { n: 12, ..Prefs::default() }, [1280.0, 420.0]);
    fake.open_oracle();
    harness.run_steps(6);
    press(&mut harness, "View");
    for line in ["Reset the layout", "Fullscreen", "Exactness ledger"] {
        harness.get_by_role_and_label(Role::Button, line).scroll_to_me();
        harness.run_steps(12);
        let rect = harness.get_by_role_and_label(Role::Button, line).rect();
        assert!(harness.ctx.content_rect().contains_rect(rect), "{line} is at {rect:?}");
    }
}

#[test]
fn the_list_of_keys_is_no_wider_than_its_window() {
    let (mut harness, _) = full();
    key(&mut harness, Modifiers::NONE, Key::F1);
    let about = "Select the region to zoom into; with Shift or the right button, move the view";
    // 600 points in the middle of 1280, and its edge.
    let right = harness.get_by_label(about).rect().right();
    assert!(right < 960.0, "it ends at {right}");
}
