//! Every control has a name and can be reached by the Tab key; what has the focus is in view.

use std::collections::BTreeSet;

use bayescope::gui::{App, Prefs, ThemePreference};
use eframe::egui::accesskit::{Action, NodeId};
use eframe::egui::{Key, Rect, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::{bayes, by_palette, full, shows, sized};

/// What a person works with.
const CONTROLS: [Role; 9] = [
    Role::Button,
    Role::CheckBox,
    Role::ComboBox,
    Role::Link,
    Role::RadioButton,
    Role::Slider,
    Role::SpinButton,
    Role::TextInput,
    Role::MultilineTextInput,
];

/// A control as it stands in the tree.
struct Control {
    id: NodeId,
    about: String,
    named: bool,
    focusable: bool,
}

fn controls(harness: &Harness<'_, App>) -> Vec<Control> {
    let control = |node: egui_kittest::Node<'_>| {
        let node = node.accesskit_node();
        let label = node.label().unwrap_or_default();
        (CONTROLS.contains(&node.role()) && !node.is_disabled()).then(|| Control {
            id: node.locate().0,
            about: format!("{:?} '{label}' at {:?}", node.role(), node.raw_bounds()),
            named: !label.trim().is_empty(),
            focusable: node.data().supports_action(Action::Focus),
        })
    };
    harness.root().children_recursive().filter_map(control).collect()
}

/// Images of the gallery are walked with the arrow keys: hundreds of stops of the Tab key would be a trap.
fn is_image(control: &Control) -> bool {
    control.about.contains("'Sample ")
}

fn focused(harness: &Harness<'_, App>) -> Option<NodeId> {
    let nodes = harness.root().children_recursive();
    nodes.map(|node| node.accesskit_node()).find(|node| node.is_focused()).map(|node| node.locate().0)
}

/// Presses Tab until the focus is where it began; what had it.
fn tabbed(harness: &mut Harness<'_, App>, most: usize) -> BTreeSet<NodeId> {
    let mut seen = BTreeSet::new();
    for _ in 0..most {
        harness.key_press(Key::Tab);
        harness.run_steps(2);
        if let Some(id) = focused(harness)
            && !seen.insert(id)
            && seen.len() > 3
        {
            break;
        }
    }
    seen
}

fn check(harness: &mut Harness<'_, App>, place: &str) -> Vec<String> {
    let found = controls(harness);
    assert!(found.len() > 10, "{place}: only {} controls were found", found.len());
    let reached = tabbed(harness, 3 * found.len() + 40);
    let mut faults = Vec::new();
    for control in found.iter().filter(|control| !is_image(control)) {
        let about = &control.about;
        if !control.named {
            faults.push(format!("{place}: no name: {about}"));
        }
        if !control.focusable {
            faults.push(format!("{place}: takes no focus: {about}"));
        } else if !reached.contains(&control.id) {
            faults.push(format!("{place}: Tab does not come here: {about}"));
        }
    }
    faults
}

#[test]
fn every_control_of_every_panel_has_a_name_and_is_reached_by_tab() {
    let (mut harness, fake) = full();
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    fake.answer();
    fake.train(&mut harness);
    let mut faults = Vec::new();
    for (id, title) in harness.state().panel_names() {
        harness.state_mut().show_panel(id);
        harness.run_steps(4);
        bayes::answer_all(&mut harness, &fake);
        harness.key_press(Key::Escape);
        harness.run_steps(2);
        faults.extend(check(&mut harness, title));
    }
    let mut unique: Vec<&String> = faults.iter().collect();
    unique.dedup_by_key(|fault| fault.split_once(": ").map(|(_, what)| what.to_owned()));
    let list = unique.iter().map(|fault| fault.as_str()).collect::<Vec<_>>().join("\n");
    assert!(faults.is_empty(), "{} faults:\n{list}", faults.len());
}

#[test]
fn every_control_of_every_window_has_a_name_and_is_reached_by_tab() {
    let (mut harness, _) = full();
    let windows = [
        ("Keyboard shortcuts", "Every key: this list"),
        ("Glossary", "Find"),
        ("Exactness ledger", "Copy ledger"),
        ("Precision", "Copy comparison as command"),
        ("Verify this device", "Copy verification as command"),
        ("Take the tour", "Skip the tour"),
        ("Start page", "Three things to try"),
    ];
    let mut faults = Vec::new();
    for (command, sign) in windows {
        by_palette(&mut harness, command);
        assert!(shows(&harness, sign), "the window '{command}' did not open");
        faults.extend(check(&mut harness, command));
        for _ in 0..2 {
            harness.key_press(Key::Escape);
            harness.run_steps(2);
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn escape_leads_out_of_a_control_before_it_clears_the_selection() {
    let (mut harness, _) = full();
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    let selected = |harness: &Harness<'_, App>| harness.state().view().selection.len();
    harness.key_press(Key::F6);
    harness.run_steps(3);
    assert!(focused(&harness).is_some() && selected(&harness) == 1);
    harness.key_press(Key::Escape);
    harness.run_steps(2);
    assert!(focused(&harness).is_none() && selected(&harness) == 1);
    harness.key_press(Key::Escape);
    harness.run_steps(2);
    assert_eq!(selected(&harness), 0);
}

#[test]
fn what_has_the_focus_is_in_view() {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("bayes error");
    harness.run_steps(3);
    bayes::answer_all(&mut harness, &fake);
    harness.get_by_label("Save CSV…").focus();
    harness.run_steps(2);
    for _ in 0..4 {
        harness.key_press(Key::Tab);
        harness.run_steps(12);
    }
    let window = harness.ctx.content_rect();
    let nodes = harness.root().children_recursive();
    let focused = nodes.filter(|node| node.accesskit_node().is_focused()).map(|node| node.rect()).next();
    let focused = focused.expect("something has the focus");
    assert!(window.contains_rect(focused), "{focused:?} is out of sight");
}

/// Every tab is in the window, beside the others, and brings its panel to the front, however narrow the window.
#[test]
fn no_tab_is_hidden_however_narrow_the_window() {
    for size in [[1024.0, 700.0], [1280.0, 800.0], [2560.0, 1440.0]] {
        let (mut harness, fake) = sized(Prefs { n: 12, ..Prefs::default() }, size);
        fake.open_oracle();
        harness.run_steps(6);
        let titles: Vec<&str> = harness.state().panel_names().into_iter().map(|(_, title)| title).collect();
        let rect = |title: &str| harness.get_by_role_and_label(Role::Button, title).rect();
        let rects: Vec<Rect> = titles.iter().map(|title| rect(title)).collect();
        let rows: BTreeSet<i32> = rects.iter().map(|rect| rect.top() as i32).collect();
        assert_eq!(rows.len() == 1, size[0] > 2000.0, "{size:?}: {rows:?}");
        for (i, (title, rect)) in titles.iter().zip(&rects).enumerate() {
            let inside = rect.left() >= 0.0 && rect.right() <= size[0] && rect.height() > 10.0;
            assert!(inside, "{size:?}: {title} at {rect:?}");
            let apart = rects[..i].iter().all(|other| !other.shrink(0.5).intersects(rect.shrink(0.5)));
            assert!(apart, "{size:?}: {title} at {rect:?}");
        }
        let words = [("Oracle training", "No training yet"), ("Log", "Warnings and errors"), ("Gallery", "Sort by")];
        for (title, there) in words {
            harness.get_by_role_and_label(Role::Button, title).click();
            harness.run_steps(3);
            let shown = words.iter().filter(|(_, words)| shows(&harness, words)).map(|(title, _)| *title);
            assert_eq!(shown.collect::<Vec<_>>(), [title], "{size:?}: '{there}' is shown");
        }
    }
}

/// As large as a window of 1024×700 at 150 %.
#[test]
fn in_a_small_window_no_field_is_cut_off_and_no_list_shrinks_to_a_few_lines() {
    let size = [683.0, 467.0];
    let (mut harness, fake) = sized(Prefs { n: 12, ..Prefs::default() }, size);
    fake.open_oracle();
    harness.run_steps(6);
    for id in ["export", "validate"] {
        harness.state_mut().show_panel(id);
        harness.run_steps(6);
        let controls = harness.root().children_recursive().filter(|node| {
            let node = node.accesskit_node();
            CONTROLS.contains(&node.role()) && node.bounding_box().is_some()
        });
        for node in controls {
            let rect = node.rect();
            assert!(rect.right() <= size[0], "{id}: '{:?}' is cut off: {rect:?}", node.accesskit_node().label());
        }
    }
    harness.state_mut().show_panel("bayes error");
    harness.run_steps(3);
    bayes::answer_all(&mut harness, &fake);
    let last = harness.get_by_label("10.").rect();
    let below = harness.get_by_label("Ranking of classes over τ").rect();
    assert!(last.bottom() <= below.top(), "the hardest ten are cut off: {last:?}, {below:?}");
}

#[test]
fn every_panel_shows_in_light_and_dark_and_in_two_sizes() {
    for look in [ThemePreference::Light, ThemePreference::Dark] {
        for size in [[1000.0, 600.0], [1920.0, 1080.0]] {
            let (mut harness, fake) = sized(Prefs { theme: look, n: 40, ..Prefs::default() }, size);
            harness.run_steps(2);
            fake.open_oracle();
            harness.run_steps(2);
            fake.answer();
            harness.run_steps(2);
            fake.train(&mut harness);
            bayes::answer_all(&mut harness, &fake);
            for (_, title) in harness.state().panel_names() {
                harness.get_by_role_and_label(Role::Button, title).click();
                harness.run_steps(3);
                bayes::answer_all(&mut harness, &fake);
                harness.check_accessibility();
            }
            let dark = harness.ctx.global_style().visuals.dark_mode;
            assert_eq!(dark, look == ThemePreference::Dark);
        }
    }
}
