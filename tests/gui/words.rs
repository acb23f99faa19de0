//! No field of a form without an explanation: pointing at it says what it is, or its name is everyday English.

use bayescope::gui::App;
use eframe::egui::{Pos2, Rect, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::experiments::{click, rewrite};
use super::{bayes, sized, until};

/// Fields whose names say all there is to say. A name that is added here is one that a stranger understands.
const PLAIN: [&str; 14] = [
    "All",
    "Warnings and errors",
    "Name",
    "Name of the run",
    "Name of the ranking",
    "Folder",
    "Real images",
    "Test images",
    "Exported dataset",
    "Dataset",
    "Model",
    "Sort by",
    "Samples n (images)",
    "Unit",
];

/// Entries of a plot's legend. They have no tooltip, which would lie on the plot; their words are in the glossary.
const LEGEND: [&str; 4] = ["1 − max π: guessing", "E at the marker", "Bayes error E(τ)", "marker: the world's τ"];

/// Whether a name, or the name of a numbered or qualified field, is one of [`PLAIN`].
fn plain(name: &str) -> bool {
    let bare = name.split(" (").next().unwrap_or(name).trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    let folder = name.starts_with("Folder of ") || name.starts_with("Browse for: ");
    folder || LEGEND.contains(&name) || PLAIN.contains(&name) || PLAIN.contains(&bare)
}

/// A field as it stands in the window.
struct Field {
    name: String,
    /// The field itself and the label before it.
    places: Vec<Rect>,
}

/// Fields and choices; not buttons, which say what they do, nor images, nor the tabs of panels. Of a list's rows the first, since
/// others may be scrolled out of sight.
fn fields(harness: &Harness<'_, App>) -> Vec<Field> {
    let inside = harness.ctx.content_rect();
    let tabs: Vec<&str> = harness.state().panel_names().iter().map(|(_, title)| *title).collect();
    let other =
        |name: &str| name.starts_with("Sample ") || name.rsplit_once(" of shift ").is_some_and(|(_, row)| row != "1");
    let field = |node: egui_kittest::Node<'_>| {
        let it = node.accesskit_node();
        let role = it.role();
        let chosen = role == Role::Button && it.toggled().is_some();
        let wanted = chosen
            || [Role::CheckBox, Role::ComboBox, Role::RadioButton, Role::Slider, Role::SpinButton, Role::TextInput]
                .contains(&role);
        let name = it.label().unwrap_or_default();
        let rect = it.bounding_box().map(|_| node.rect())?;
        let tab = chosen && tabs.contains(&name.as_str());
        (wanted && !tab && !other(&name) && inside.contains_rect(rect)).then(|| {
            let labels = it.labelled_by().map(|label| label.bounding_box());
            let label = |b: eframe::egui::accesskit::Rect| {
                let at = |x: f64| x as f32 / harness.ctx.pixels_per_point();
                Rect::from_min_max(Pos2::new(at(b.x0), at(b.y0)), Pos2::new(at(b.x1), at(b.y1)))
            };
            Field { name, places: [rect].into_iter().chain(labels.flatten().map(label)).collect() }
        })
    };
    harness.root().children_recursive().filter_map(field).collect()
}

fn explained(harness: &mut Harness<'_, App>, at: Pos2) -> bool {
    harness.hover_at(Pos2::new(1.0, 1.0));
    harness.run_steps(2);
    assert!(harness.query_by_role(Role::Tooltip).is_none(), "nothing is pointed at");
    harness.hover_at(at);
    harness.run_steps(3);
    harness.query_by_role(Role::Tooltip).is_some()
}

/// Fields of this place that nothing explains.
fn silent(harness: &mut Harness<'_, App>, place: &str, out: &mut Vec<String>) {
    harness.run_steps(6);
    for Field { name, places } in fields(harness) {
        let fault = format!("{place}: {name}");
        if !plain(&name) && !out.contains(&fault) && !places.iter().any(|rect| explained(harness, rect.center())) {
            out.push(fault);
        }
    }
}

/// A window in which the whole of every form is in view, and tooltips come at once.
fn tall() -> (Harness<'static, App>, super::fake::Fake) {
    let (mut harness, fake) = sized(bayescope::gui::Prefs { n: 4, ..Default::default() }, [1500.0, 2000.0]);
    fake.open_oracle();
    until(&mut harness, |harness| harness.state().session().oracle.is_some());
    fake.answer();
    harness.ctx.all_styles_mut(|style| {
        style.interaction.tooltip_delay = 0.0;
        style.interaction.show_tooltips_only_when_still = false;
    });
    (harness, fake)
}

#[test]
fn every_field_of_every_panel_is_explained() {
    let (mut harness, fake) = tall();
    let mut faults = Vec::new();
    for (id, title) in harness.state().panel_names() {
        harness.state_mut().show_panel(id);
        harness.run_steps(4);
        bayes::answer_all(&mut harness, &fake);
        silent(&mut harness, title, &mut faults);
    }
    assert!(faults.is_empty(), "{} fields without an explanation:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn what_a_form_shows_only_at_times_is_explained_too() {
    let (mut harness, _) = tall();
    let mut faults = Vec::new();
    harness.state_mut().show_panel("training");
    harness.run_steps(4);
    click(&mut harness, "TarFlow");
    silent(&mut harness, "TarFlow", &mut faults);
    harness.state_mut().show_panel("experiments");
    harness.run_steps(4);
    let kinds = ["Temperature", "Soft labels", "Distribution shift", "Active learning", "Grade the graders"];
    for kind in kinds.into_iter().chain(["Training axes", "Calibration", "When to stop"]) {
        click(&mut harness, &format!("New experiment: {kind}"));
        silent(&mut harness, kind, &mut faults);
    }
    harness.state_mut().show_panel("judge");
    harness.run_steps(4);
    rewrite(&mut harness, "Model 1", "/models/mine.pth");
    silent(&mut harness, "a network", &mut faults);
    harness.state_mut().show_panel("validate");
    harness.run_steps(4);
    harness.get_by_role_and_label(Role::ComboBox, "Features").click();
    harness.run_steps(4);
    click(&mut harness, "weights from a file");
    silent(&mut harness, "features from a file", &mut faults);
    assert!(faults.is_empty(), "{} fields without an explanation:\n{}", faults.len(), faults.join("\n"));
}

/// The walk can fail: it finds fields, and tells those that are explained from those that are not.
#[test]
fn a_field_without_an_explanation_is_found() {
    let (mut harness, _) = tall();
    harness.state_mut().show_panel("training");
    harness.run_steps(6);
    let found = fields(&harness);
    assert!(found.len() > 15, "{:?}", found.iter().map(|field| &field.name).collect::<Vec<_>>());
    let place = |name: &str| found.iter().find(|field| field.name == name).expect(name).places[0].center();
    let (lambda, name) = (place("Class loss λ"), place("Folder of images"));
    assert!(explained(&mut harness, lambda));
    assert!(!explained(&mut harness, name), "it has no tooltip: it counts as plain by its name alone");
    assert!(!plain("Class loss λ") && !plain("Levels") && plain("Folder of images") && plain("Model 2"));
}
