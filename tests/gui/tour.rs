//! The tour: taken with the real controls or by its buttons, left at any time, offered once.

use bayescope::gui::{App, Prefs};
use eframe::egui::accesskit::Live;
use eframe::egui::{self, Key, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::fake::Fake;
use super::{bayes, by_palette, full, shows, until, window};

fn press(harness: &mut Harness<'_, App>, button: &str) {
    harness.get_by_role_and_label(Role::Button, button).click();
    harness.run_steps(3);
}

fn enabled(harness: &Harness<'_, App>, button: &str) -> bool {
    !harness.get_by_role_and_label(Role::Button, button).accesskit_node().is_disabled()
}

/// A full window in which the tour is offered.
fn offered() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = full();
    harness.state_mut().offer_tour();
    harness.run_steps(3);
    (harness, fake)
}

#[test]
fn it_is_taken_with_the_real_controls_and_ends_with_a_posterior() {
    let (mut harness, fake) = offered();
    assert!(shows(&harness, "A world in which the truth is known"));
    press(&mut harness, "Begin");
    assert!(shows(&harness, "Choose a sample"));
    assert!(!enabled(&harness, "Next"), "nothing is chosen yet");
    // It blocks nothing: the gallery below it is clicked.
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    fake.answer();
    harness.run_steps(3);
    assert!(shows(&harness, "Sample 7 is chosen. Its label is 7."));
    press(&mut harness, "Next");
    assert!(shows(&harness, "Move the base temperature τ"));
    assert!(!enabled(&harness, "Next"), "τ has not moved");
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(1.7);
    harness.run_steps(3);
    bayes::answer_all(&mut harness, &fake);
    assert!(shows(&harness, "τ is now 1.700. The Bayes error of this world is"));
    press(&mut harness, "Next");
    assert!(shows(&harness, "Its posterior at this τ is being computed"));
    assert!(!enabled(&harness, "Finish"), "an old posterior is not read out");
    fake.answer();
    until(&mut harness, |harness| shows(harness, "Sample 7 at τ = 1.700"));
    let tile = super::fake::tile(7, 1.7);
    let p = 100.0 * tile.posterior.probabilities[7];
    assert!(shows(&harness, &format!("{p:.1} % for 7")), "{p}");
    press(&mut harness, "Finish");
    assert!(!shows(&harness, "Skip the tour") && harness.state().prefs().toured);
    harness.state_mut().offer_tour();
    harness.run_steps(2);
    assert!(!shows(&harness, "Skip the tour"), "it was offered again");
}

#[test]
fn its_buttons_do_what_it_asks_for() {
    let (mut harness, fake) = offered();
    press(&mut harness, "Begin");
    press(&mut harness, "Choose the most ambiguous one in view");
    let chosen = harness.state().view().cursor.expect("a sample is chosen");
    let entropy = |index: usize| super::fake::tile(index, 1.0).posterior.entropy_nats;
    assert!(harness.state().view().in_view.iter().all(|&other| entropy(other) <= entropy(chosen)));
    press(&mut harness, "Next");
    press(&mut harness, "Move it for me");
    assert_eq!(harness.state().prefs().tau, 1.6);
    press(&mut harness, "Next");
    fake.answer();
    until(&mut harness, |harness| shows(harness, &format!("Sample {chosen} at τ = 1.600")));
    press(&mut harness, "Back");
    assert!(shows(&harness, "τ is now 1.600.") && enabled(&harness, "Next"), "what is done stays done");
    press(&mut harness, "Back");
    assert!(shows(&harness, &format!("Sample {chosen} is chosen")));
    harness.check_accessibility();
}

#[test]
fn escape_leaves_it_and_the_menu_and_the_palette_have_it_again() {
    let (mut harness, _) = offered();
    press(&mut harness, "Begin");
    harness.key_press(Key::Escape);
    harness.run_steps(3);
    assert!(!shows(&harness, "Skip the tour") && harness.state().prefs().toured);
    press(&mut harness, "Help");
    press(&mut harness, "Take the tour");
    assert!(shows(&harness, "A world in which the truth is known"));
    press(&mut harness, "Skip the tour");
    assert!(!shows(&harness, "Skip the tour"));
    by_palette(&mut harness, "take the tour");
    assert!(shows(&harness, "A world in which the truth is known"));
}

#[test]
fn without_a_world_it_waits_and_says_for_what() {
    let (mut harness, fake) = window(Prefs { oracle: "/gone".into(), ..Prefs::default() });
    harness.state_mut().offer_tour();
    harness.run_steps(3);
    press(&mut harness, "Begin");
    assert!(shows(&harness, "The world is being opened…") && !enabled(&harness, "Next"));
    fake.send(bayescope::worker::protocol::Event::Failed("'/gone' is no oracle".into()));
    harness.run_steps(3);
    assert!(shows(&harness, "No oracle is open: choose one on the left."));
}

#[test]
fn hidden_sides_come_back_for_it() {
    let (mut harness, _) = offered();
    for side in ["World card", "Inspector"] {
        press(&mut harness, "View");
        press(&mut harness, side);
    }
    assert!(!harness.state().prefs().world_card && !harness.state().prefs().inspector);
    press(&mut harness, "Begin");
    press(&mut harness, "Choose the most ambiguous one in view");
    press(&mut harness, "Next");
    assert!(harness.state().prefs().world_card);
    press(&mut harness, "Move it for me");
    press(&mut harness, "Next");
    assert!(harness.state().prefs().inspector);
}

/// What a screen reader says by itself as soon as it changes.
fn announced(harness: &Harness<'_, App>) -> Vec<String> {
    let nodes = harness.root().children_recursive().map(|node| node.accesskit_node());
    nodes.filter(|node| node.live() == Live::Polite).filter_map(|node| node.value()).collect()
}

#[test]
fn every_step_and_what_comes_of_it_is_announced() {
    let (mut harness, fake) = offered();
    assert!(harness.query_by_role_and_label(Role::Dialog, "Tour").is_some());
    let says = |harness: &Harness<'_, App>, beginnings: &[&str]| {
        let said = announced(harness);
        let matches = said.len() == beginnings.len() && said.iter().zip(beginnings).all(|(s, b)| s.starts_with(b));
        assert!(matches, "{said:?} in place of {beginnings:?}");
    };
    says(&harness, &["Tour, 1 of 4. A world in which the truth is known. A flow was trained"]);
    press(&mut harness, "Begin");
    says(&harness, &["Tour, 2 of 4. Choose a sample. Each picture"]);
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    fake.answer();
    harness.run_steps(3);
    says(&harness, &["Tour, 2 of 4. Choose a sample.", "Sample 7 is chosen."]);
    press(&mut harness, "Next");
    says(&harness, &["Tour, 3 of 4. Move the base temperature τ."]);
    press(&mut harness, "Move it for me");
    says(&harness, &["Tour, 3 of 4.", "τ is now 1.600."]);
    press(&mut harness, "Next");
    says(&harness, &["Tour, 4 of 4. Read its exact posterior.", "Its posterior at this τ is being computed"]);
    fake.answer();
    until(&mut harness, |harness| shows(harness, "Sample 7 at τ = 1.600"));
    says(&harness, &["Tour, 4 of 4.", "Sample 7 at τ = 1.600"]);
}

/// What has the focus, by its name.
pub fn focused(harness: &Harness<'_, App>) -> Option<String> {
    let nodes = harness.root().children_recursive().map(|node| node.accesskit_node());
    nodes.filter(|node| node.is_focused()).find_map(|node| node.label())
}

#[test]
fn the_enter_key_alone_takes_it_to_its_end() {
    let (mut harness, fake) = offered();
    harness.get_by_role_and_label(Role::Button, "Begin").focus();
    harness.run_steps(2);
    let mut pressed = Vec::new();
    for _ in 0..7 {
        pressed.extend(focused(&harness));
        harness.key_press(Key::Enter);
        harness.run_steps(3);
        fake.answer();
        harness.run_steps(6);
    }
    let choose = "Choose the most ambiguous one in view";
    assert_eq!(pressed, ["Begin", choose, "Next", "Move it for me", "Next", "Finish"]);
    assert!(harness.state().prefs().toured && !shows(&harness, "Skip the tour"));
}

/// Windows in which a card would cover most of the gallery: the last two are 1280 by 800 at 150 % and at 200 %.
const SMALL: [[f32; 2]; 4] = [[1100.0, 700.0], [860.0, 640.0], [853.0, 533.0], [640.0, 400.0]];

#[test]
fn in_a_small_window_it_covers_nothing() {
    for size in SMALL {
        let (mut harness, fake) = offered();
        harness.set_size(size.into());
        harness.run_steps(4);
        let apart = |harness: &Harness<'_, App>, what: egui::Rect| {
            let card = harness.get_by_role_and_label(Role::Dialog, "Tour");
            let parts = card.children_recursive().filter(|part| part.accesskit_node().bounding_box().is_some());
            let card = parts.map(|part| part.rect()).reduce(|a, b| a.union(b)).expect("it has parts");
            let inside = harness.ctx.content_rect();
            assert!(inside.contains_rect(card), "{size:?}: the tour is cut off: {card:?}");
            assert!(card.height() < 0.45 * size[1], "{size:?}: {card:?} takes most of the window");
            // What lies edge to edge is not covered.
            assert!(!card.shrink(0.5).intersects(what), "{size:?}: {card:?} covers {what:?}");
            assert!(inside.contains_rect(what), "{size:?}: {what:?} is out of sight");
        };
        press(&mut harness, "Begin");
        let shown = harness.state().view().in_view.clone();
        assert!(shown.len() > 3, "{size:?}: {shown:?} are in view");
        apart(&harness, harness.get_by_label_contains(&format!("Sample {},", shown[0])).rect());
        press(&mut harness, "Choose the most ambiguous one in view");
        press(&mut harness, "Next");
        harness.run_steps(20);
        apart(&harness, harness.get_by_role_and_label(Role::Slider, "Base temperature τ").rect());
        press(&mut harness, "Move it for me");
        press(&mut harness, "Next");
        fake.answer();
        until(&mut harness, |harness| shows(harness, "Its entropy is"));
        harness.run_steps(20);
        let heading = harness.query_all_by_label("Posterior p(y|x)").next().expect("the inspector shows it");
        apart(&harness, heading.rect());
        press(&mut harness, "Finish");
        assert!(harness.query_by_role_and_label(Role::Dialog, "Tour").is_none());
    }
}
