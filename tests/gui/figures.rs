//! What every plot can do: zoom that stays, a legend that hides, a marker that is taken by itself, files and pictures.

use std::path::Path;
use std::time::{Duration, Instant};

use bayescope::gui::App;
use eframe::egui::{
    Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, OutputCommand, PointerButton, Pos2, Rect, Role,
    TouchPhase, Vec2, vec2,
};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::bayes::{self, panel};
use super::experiments::{click, open, rewrite, run};
use super::fake::SHAPE;
use super::{experiments, full, shows};

const PLOT: &str = "Bayes error over τ";
const ALL: &str = "Show all of Bayes error over τ";
const MARKER: &str = "Marker in the plot";

fn pointer(harness: &mut Harness<'_, App>, pos: Pos2, button: PointerButton, pressed: Option<bool>) {
    harness.event(Event::PointerMoved(pos));
    if let Some(pressed) = pressed {
        harness.event(Event::PointerButton { pos, button, pressed, modifiers: Modifiers::NONE });
    }
    harness.step();
}

fn drag(harness: &mut Harness<'_, App>, button: PointerButton, from: Pos2, to: Pos2) {
    pointer(harness, from, button, None);
    pointer(harness, from, button, Some(true));
    for share in [0.3, 0.6, 1.0] {
        pointer(harness, from + share * (to - from), button, None);
    }
    pointer(harness, to, button, Some(false));
    harness.run_steps(3);
}

fn double_click(harness: &mut Harness<'_, App>, at: Pos2) {
    for pressed in [true, false, true, false] {
        pointer(harness, at, PointerButton::Primary, Some(pressed));
    }
    harness.run_steps(3);
}

fn wheel(harness: &mut Harness<'_, App>, up: f32, modifiers: Modifiers) {
    let (unit, phase, source) = (MouseWheelUnit::Point, TouchPhase::Move, MouseWheelSource::Wheel);
    harness.event(Event::MouseWheel { unit, delta: vec2(0.0, up), phase, modifiers, source });
    harness.run_steps(30);
}

fn plot(harness: &Harness<'_, App>) -> Rect {
    harness.get_by_label(PLOT).rect()
}

/// The column and the number of the marker, which tells what is in view: its number stays.
fn marker(harness: &Harness<'_, App>) -> Option<(f32, f64)> {
    let line = harness.query_by_role_and_label(Role::Slider, MARKER)?;
    Some((line.rect().center().x, line.accesskit_node().numeric_value()?))
}

fn tau(harness: &Harness<'_, App>) -> f64 {
    harness.state().prefs().tau
}

#[test]
fn ctrl_and_the_wheel_zoom_about_the_pointer_and_a_double_click_shows_all() {
    let (mut harness, fake) = panel();
    let (area, (column, number)) = (plot(&harness), marker(&harness).unwrap());
    assert!((number / tau(&harness) - 1.0).abs() < 1e-2 && area.x_range().contains(column));
    assert!(shows(&harness, "Ctrl + wheel: closer") || shows(&harness, "Cmd + wheel: closer"));
    let at = Pos2::new(column + 20.0, area.top() + 100.0);
    harness.hover_at(at);
    harness.run_steps(2);
    // Beyond the whole there is nothing.
    wheel(&mut harness, -200.0, Modifiers::COMMAND);
    assert!(!shows(&harness, ALL) && (marker(&harness).unwrap().0 - column).abs() < 1.0);
    wheel(&mut harness, 200.0, Modifiers::COMMAND);
    assert!(shows(&harness, ALL), "{:?}", super::labels(&harness));
    assert_eq!(plot(&harness).y_range(), area.y_range(), "the panel does not scroll meanwhile");
    let (zoomed, _) = marker(&harness).unwrap();
    let ratio = (zoomed - at.x) / (column - at.x);
    assert!((1.5..3.5).contains(&ratio), "e times as far from the pointer: {column} {zoomed} {ratio}");
    // It stays, whatever is looked at meanwhile.
    harness.state_mut().show_panel("gallery");
    harness.run_steps(3);
    harness.state_mut().show_panel("bayes error");
    harness.run_steps(3);
    bayes::answer_all(&mut harness, &fake);
    assert!((marker(&harness).unwrap().0 - zoomed).abs() < 1.0);
    double_click(&mut harness, at);
    assert!(!shows(&harness, ALL) && (marker(&harness).unwrap().0 - column).abs() < 1.0);
    // Two fingers do the same; the button is there for who has no mouse.
    harness.event(Event::Zoom(2.0));
    harness.run_steps(3);
    assert!(shows(&harness, ALL) && (marker(&harness).unwrap().0 - column).abs() > 10.0);
    harness.get_by_label(ALL).click();
    harness.run_steps(3);
    assert!(!shows(&harness, ALL) && (marker(&harness).unwrap().0 - column).abs() < 1.0);
}

#[test]
fn the_wheel_alone_scrolls_the_panel_wherever_the_pointer_is() {
    let (mut harness, _fake) = panel();
    let area = plot(&harness);
    // On the plot from the first turn on, and with the plot coming under the pointer.
    for from in [area.top() + 100.0, area.bottom() + 150.0] {
        harness.hover_at(Pos2::new(area.center().x, from));
        harness.run_steps(20);
        let mut before = plot(&harness);
        for turn in [-40.0, -40.0, 80.0] {
            wheel(&mut harness, turn, Modifiers::NONE);
            let now = plot(&harness);
            let moved = now.top() - before.top();
            assert!(moved * turn > 0.0 && moved.abs() > 10.0, "from {from}, turn {turn}: {before:?} {now:?}");
            before = now;
        }
        assert!(!shows(&harness, ALL), "from {from}: nothing was zoomed");
    }
}

#[test]
fn a_drag_beside_the_marker_looks_closer_and_one_of_the_marker_moves_tau() {
    let (mut harness, _fake) = panel();
    let (area, (column, _)) = (plot(&harness), marker(&harness).unwrap());
    let before = tau(&harness);
    let up = area.top() + 60.0;
    // A frame around the marker.
    drag(&mut harness, PointerButton::Primary, Pos2::new(column - 60.0, up), Pos2::new(column + 60.0, up + 120.0));
    assert_eq!(tau(&harness), before, "a drag elsewhere leaves the marker alone");
    assert!(shows(&harness, ALL));
    let (framed, _) = marker(&harness).unwrap();
    // The right button moves what is seen.
    let from = Pos2::new(framed + 40.0, up);
    drag(&mut harness, PointerButton::Secondary, from, from + vec2(50.0, 0.0));
    let (moved, _) = marker(&harness).unwrap();
    assert!((20.0..60.0).contains(&(moved - framed)), "{framed} {moved}");
    assert_eq!(tau(&harness), before);
    let number = before;
    drag(&mut harness, PointerButton::Primary, Pos2::new(moved, up), Pos2::new(moved + 30.0, up));
    let after = tau(&harness);
    assert!(after > number && after < 2.0 * number, "{number} {after}");
    let (now, shown) = marker(&harness).unwrap();
    assert!((now - moved - 30.0).abs() < 3.0 && (shown / after - 1.0).abs() < 1e-2, "{moved} {now} {shown} {after}");
    // A click elsewhere does not call it.
    harness.hover_at(Pos2::new(now + 80.0, up));
    harness.drag_at(Pos2::new(now + 80.0, up));
    harness.drop_at(Pos2::new(now + 80.0, up));
    harness.run_steps(3);
    assert_eq!(tau(&harness), after);
}

#[test]
fn the_marker_follows_the_arrow_keys() {
    let (mut harness, _fake) = panel();
    harness.get_by_role_and_label(Role::Slider, MARKER).focus();
    harness.run_steps(3);
    let before = tau(&harness);
    harness.key_press(Key::ArrowRight);
    harness.run_steps(3);
    let after = tau(&harness);
    assert!(after > before && after < 1.2 * before, "{before} {after}");
    harness.key_press(Key::ArrowLeft);
    harness.run_steps(3);
    assert!((tau(&harness) / before - 1.0).abs() < 0.01);
}

/// Whether the user was told so.
fn told(harness: &Harness<'_, App>, text: &str) -> bool {
    harness.state().session().log.iter().any(|entry| entry.text.contains(text))
}

/// Waits for a file that a thread writes.
fn written(harness: &mut Harness<'_, App>, path: &Path) -> Vec<u8> {
    let patience = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < patience, "{} was not written", path.display());
        harness.step();
    }
    std::fs::read(path).unwrap()
}

#[test]
fn a_figure_is_saved_in_every_format_as_it_is_shown() {
    let (mut harness, _fake) = panel();
    let place = tempfile::tempdir().unwrap();
    // What is clicked away in the legend is in no file.
    click(&mut harness, "1 − max π: guessing");
    assert!(shows(&harness, "hidden: 1 − max π: guessing"));
    for (format, begins) in [("SVG", "<svg"), ("PDF", "%PDF-1.4"), ("PNG", "\u{89}PNG"), ("CSV", "# title")] {
        click(&mut harness, "Save the figure Bayes error over τ");
        assert!(shows(&harness, "Save the figure"));
        rewrite(&mut harness, "Path", &place.path().join("mine.txt").display().to_string());
        click(&mut harness, format);
        click(&mut harness, "one column");
        click(&mut harness, "Save");
        let path = place.path().join(format!("mine.{}", format.to_lowercase()));
        let bytes = written(&mut harness, &path);
        let head: String = bytes.iter().take(begins.chars().count()).map(|byte| char::from(*byte)).collect();
        assert_eq!(head, begins);
        if format == "SVG" || format == "CSV" {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("Bayes error E(τ)") && !text.contains("guessing"), "{text}");
            // 85 mm are 240.9 points; a pixel is lost by rounding up.
            let width = text.split("width=\"").nth(1).and_then(|rest| rest.split("pt\"").next()?.parse::<f64>().ok());
            assert!(format == "CSV" || width.is_some_and(|width| (width - 240.94).abs() < 1.0), "{width:?}");
        }
    }
    assert_eq!(harness.state().prefs().on_paper.width, 85.0, "the look is kept for the next figure");
    // A name without a known ending is refused with the way out.
    click(&mut harness, "Save the figure Bayes error over τ");
    rewrite(&mut harness, "Path", &place.path().join("mine").display().to_string());
    click(&mut harness, "Save");
    assert!(told(&harness, "ends in .svg, .pdf, .png or .csv"));
    // The menu brings it back, for who has no mouse.
    click(&mut harness, "Legend of Bayes error over τ");
    let entries = harness.query_all_by_label("1 − max π: guessing");
    let lowest = entries.max_by(|a, b| a.rect().top().total_cmp(&b.rect().top())).unwrap();
    lowest.click();
    harness.run_steps(4);
    assert!(!shows(&harness, "hidden:"));
}

#[test]
fn the_legend_stands_above_its_plot_and_takes_clicks_and_keys() {
    let (mut harness, _fake) = panel();
    let names = ["Bayes error E(τ)", "E at the marker", "marker: the world's τ", "1 − max π: guessing"];
    let top = plot(&harness).top();
    for name in names {
        let rect = harness.get_by_role_and_label(Role::CheckBox, name).rect();
        assert!(rect.bottom() <= top && rect.bottom() > top - 60.0, "{name}: {rect:?} on a plot that begins at {top}");
    }
    harness.get_by_role_and_label(Role::CheckBox, names[1]).focus();
    harness.run_steps(2);
    harness.key_press(Key::Enter);
    harness.run_steps(4);
    assert!(shows(&harness, "hidden: E at the marker"), "{:?}", super::labels(&harness));
    // With Alt one is left alone, and once more all come back.
    let alone = |harness: &mut Harness<'_, App>| {
        harness.get_by_role_and_label(Role::CheckBox, names[0]).click_modifiers(Modifiers::ALT);
        harness.run_steps(4);
    };
    alone(&mut harness);
    assert!(shows(&harness, "hidden: 1 − max π: guessing, E at the marker, marker: the world's τ"));
    alone(&mut harness);
    assert!(!shows(&harness, "hidden:"), "{:?}", super::labels(&harness));
}

#[test]
fn bars_that_are_no_plot_are_saved_as_figures() {
    let (mut harness, _fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("bars.csv");
    click(&mut harness, "Save the figure Class hardness");
    rewrite(&mut harness, "Path", &path.display().to_string());
    click(&mut harness, "Save");
    let text = String::from_utf8(written(&mut harness, &path)).unwrap();
    let classes = harness.state().session().class_names().len();
    assert_eq!(
        text.lines().filter(|line| !line.starts_with('#') && line.contains("one against the rest")).count(),
        classes,
        "{text}"
    );
}

#[test]
fn an_evidence_map_is_saved_as_a_figure_with_its_picture() {
    let (mut harness, fake) = full();
    harness.get_by_label_contains("Sample 7,").click();
    harness.run_steps(3);
    let asked = fake.asked_evidence().expect("the map is asked for");
    fake.answer();
    harness.run_steps(3);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("map.csv");
    click(&mut harness, "Save the figure Evidence map");
    rewrite(&mut harness, "Path", &path.display().to_string());
    click(&mut harness, "Save");
    let text = String::from_utf8(written(&mut harness, &path)).unwrap();
    let [a, b] = [asked.a, asked.b].map(|class| harness.state().session().class_name(class).to_owned());
    assert!(text.contains(&format!("log p(x|{a}) − log p(x|{b}) = +1.375 nats")), "{text}");
    let squares = |grid: &str| text.lines().filter(|line| line.starts_with(grid)).count();
    assert_eq!([squares("evidence,"), squares("image,")], [16, SHAPE.height * SHAPE.width]);
    // The cell that the fake engine gives another number, row by row the sixth.
    assert!(text.lines().any(|line| line == "evidence,2,2,3.25"), "{text}");
}

#[test]
fn a_picture_of_a_plot_comes_to_the_clipboard() {
    let (mut harness, _fake) = panel();
    harness.get_by_label("Copy the picture Bayes error over τ").click();
    let patience = Instant::now() + Duration::from_secs(30);
    let image = loop {
        harness.step();
        let commands = &harness.output().platform_output.commands;
        if let Some(OutputCommand::CopyImage(image)) =
            commands.iter().find(|command| matches!(command, OutputCommand::CopyImage(_)))
        {
            break image.clone();
        }
        assert!(Instant::now() < patience, "nothing was copied");
    };
    let [width, height] = image.size;
    assert!(width > 1000 && height > 500, "{width}×{height}");
    // A drawing on a light ground: most of it is white, and not all.
    let white = image.pixels.iter().filter(|pixel| pixel.to_srgba_unmultiplied() == [255; 4]).count();
    assert!(white > image.pixels.len() / 2 && white < image.pixels.len());
    harness.run_steps(3);
    assert!(told(&harness, &format!("Copied a picture of {width}×{height} pixels")));
}

/// Figures of experiments and the plots of a run have the same row; a click on a mark still means its cell.
#[test]
fn every_plot_of_a_run_has_the_row_and_the_legend() {
    let (mut harness, fake) = experiments::panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mine");
    run(&path, "mine", 16);
    open(&mut harness, &fake, &path);
    for title in ["scaling law", "reliability diagram"] {
        for what in ["Save the figure", "Copy the picture", "Table of", "Legend of"] {
            let label = format!("{what} {title}");
            assert!(harness.query_by_label(&label).is_some(), "{label}: {:?}", super::labels(&harness));
        }
    }
    let entries = |harness: &Harness<'_, App>| {
        let nodes = harness.root().children_recursive().filter(|node| node.accesskit_node().role() == Role::CheckBox);
        nodes.filter(|node| node.accesskit_node().label().is_some_and(|label| label.starts_with("ConvNet, "))).count()
    };
    assert_eq!(
        entries(&harness),
        5,
        "law, law without the largest N, forecast, KL and L: {:?}",
        super::labels(&harness)
    );
    let label = "Loss over the number of training images";
    harness.get_by_label(label).scroll_to_me();
    harness.run_steps(6);
    // The pointer over the plot says what is there.
    let area = harness.get_by_label(label).rect();
    let mut said = false;
    for share in 1..20 {
        harness.hover_at(area.left_center() + Vec2::new(60.0 + 0.03 * share as f32 * area.width(), 0.0));
        harness.run_steps(2);
        said |= shows(&harness, "training images N: ") && shows(&harness, "ConvNet, KL: ");
    }
    assert!(said, "{:?}", super::labels(&harness));
    harness.check_accessibility();
}
