//! The panel Hardness.

use std::path::Path;

use bayescope::experiment::hardness::Ranking;
use bayescope::gui::{App, Prefs};
use bayescope::run::hardness::{HardnessEvent, RankCorpora};
use bayescope::task::News;
use bayescope::worker::protocol::{Event, Outcome};
use eframe::egui::emath::Rot2;
use eframe::egui::{Rect, Role, Shape, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::{click, rewrite};
use super::fake::Fake;
use super::{full, shows, sized, tables, tasks};

/// Texts that are turned, but for titles of vertical axes: where they stand in coordinates along themselves and across.
fn turned(harness: &Harness<'_, App>) -> Vec<(String, Rect)> {
    fn texts(shape: &Shape, all: &mut Vec<(String, Rect)>) {
        match shape {
            Shape::Vec(shapes) => shapes.iter().for_each(|shape| texts(shape, all)),
            Shape::Text(text) if text.angle < 0.0 && text.angle > -1.5 => {
                let begin = (Rot2::from_angle(-text.angle) * text.pos.to_vec2()).to_pos2();
                let letters = Rect::from_min_size(begin, text.galley.size()).shrink2(vec2(0.0, 2.0));
                all.push((text.galley.text().to_owned(), letters));
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    harness.output().shapes.iter().for_each(|clipped| texts(&clipped.shape, &mut all));
    all
}

#[test]
fn a_list_of_corpora_is_edited_and_ranked() {
    let (mut harness, fake) = sized(Prefs::default(), [1400.0, 1100.0]);
    harness.state_mut().show_panel("hardness");
    harness.run_steps(3);
    assert!(shows(&harness, "No ranking yet"));
    harness.get_by_label("Add corpus").click();
    harness.run_steps(3);
    assert!(shows(&harness, "number 4 has no name"));
    harness.get_by_label("Remove corpus 1").click();
    harness.run_steps(3);
    for (field, typed) in [("Corpus 3", "mine"), ("Folder 3", "/data/mine"), ("Folder of the ranking", "/runs/mine")] {
        harness.get_by_role_and_label(Role::TextInput, field).focus();
        harness.run_steps(2);
        harness.get_by_role_and_label(Role::TextInput, field).type_text(typed);
        harness.run_steps(3);
    }
    harness.get_by_label("Start ranking").scroll_to_me();
    harness.run_steps(8);
    harness.get_by_label("Start ranking").click();
    harness.run_steps(3);
    let (id, request) = tasks::asked::<RankCorpora>(&fake);
    let spec = request.spec.as_ref().unwrap();
    let names: Vec<&str> = spec.corpora.iter().map(|corpus| corpus.name.as_str()).collect();
    assert_eq!((names, request.folder.as_path()), (vec!["4 and 9", "3, 5 and 8", "mine"], Path::new("/runs/mine")));
    assert_eq!(spec.corpora[2].data, Path::new("/data/mine"));
    assert!(shows(&harness, "Figures appear with the first finished corpus"));
    fake.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
    harness.run_steps(4);
    assert!(shows(&harness, "Stopped: 'Resume ranking'") && !shows(&harness, "Figures appear"));
}

/// A window in which the ranking in a folder goes on.
fn continued() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = full();
    harness.state_mut().show_panel("hardness");
    harness.run_steps(3);
    rewrite(&mut harness, "Folder of the ranking", "/runs/mine");
    click(&mut harness, "Continue the ranking in this folder");
    (harness, fake)
}

#[test]
fn a_ranking_fills_in_as_corpora_finish() {
    let (mut harness, fake) = continued();
    let (id, request) = tasks::asked::<RankCorpora>(&fake);
    assert!(request.spec.is_none());
    let say = |event: HardnessEvent| fake.send(Event::Task { id, news: News::of_event::<RankCorpora>(event) });
    fake.send(Event::JobStarted { id });
    say(HardnessEvent::Reading { corpus: "mine".into() });
    harness.run_steps(3);
    assert!(shows(&harness, "mine: reading its images"));
    let evaluation = serde_json::json!({ "on": "test", "images": 400, "nll_nats": 900.0, "nll_std_error": 9.0, "bits_per_dim": 1.27,
        "accuracy": 0.9 });
    let truth = serde_json::json!({ "tau": 1.0, "badge": "estimated", "how": "separation of variables",
        "bayes_error": { "value": 0.02, "std_error": 0.001, "interval": [0.018, 0.022] } });
    let found: Ranking = serde_json::from_value(serde_json::json!({
        "name": "x", "seed": 1, "model": { "hidden": 8, "levels": 1, "steps": 2 }, "planned": 2,
        "corpora": [{ "id": "a", "name": "mine", "classes": 10, "images": 500, "shape": { "channels": 1, "height": 8, "width": 8 },
            "epoch": 2, "epochs": 3, "held_out": evaluation, "truth": truth, "weights_sha256": "", "pixels_sha256": "" }],
        "troubles": [{ "corpus": "gone", "why": "/gone: not there" }],
    }))
    .unwrap();
    say(HardnessEvent::Ranking(Box::new(found)));
    fake.send(Event::JobEnded { id, outcome: Outcome::Done("ranked".into()) });
    harness.run_steps(4);
    assert!(shows(&harness, "1 of 2 corpora finished"));
    assert!(shows(&harness, "gone: /gone: not there"));
    assert!(shows(&harness, "Bayes error at τ = 1 against NLL"));
    assert!(shows(&harness, "2.0000 [1.8000, 2.2000]"));
    // The names of the corpora below a plot that is too narrow for them upright: all, and none on another.
    let names = turned(&harness);
    for corpus in ["mine", "Kuzushiji-MNIST", "CIFAR-10", "Fashion-MNIST"] {
        assert_eq!(names.iter().filter(|(name, _)| name == corpus).count(), 1, "{corpus}: {names:?}");
    }
    for (i, (name, place)) in names.iter().enumerate() {
        let other = names[i + 1..].iter().find(|(_, other)| other.intersects(*place));
        assert!(other.is_none(), "{name} and {other:?} overlap");
    }
    let tables = tables::all(&mut harness);
    assert!(tables.iter().any(|title| title.contains("against NLL")), "{tables:?}");
}

#[test]
fn a_ranking_that_is_opened_while_another_one_shows_is_seen_in_the_form() {
    let (mut harness, fake) = continued();
    let (id, _) = tasks::asked::<RankCorpora>(&fake);
    fake.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
    harness.run_steps(4);
    let field = |harness: &Harness<'_, App>| {
        harness.query_by_role_and_label(Role::TextInput, "Folder of the ranking").and_then(|field| field.value())
    };
    click(&mut harness, "New ranking");
    harness.run_steps(30);
    assert_eq!(field(&harness), None, "the form is folded");
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("run.toml"), "[experiment]\nkind = \"hardness\"\n").unwrap();
    super::disk::drop_in(&mut harness, [place.path()]);
    harness.run_steps(30);
    assert_eq!(field(&harness), Some(place.path().display().to_string()));
}
