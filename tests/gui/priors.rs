//! What was computed for another prior says so, on the screen and in files; what was interrupted does not claim to go on.

use std::time::{Duration, Instant};

use bayescope::gui::App;
use bayescope::units::Smoothing;
use bayescope::worker::bayes::protocol::{Answer, Question};
use bayescope::worker::protocol::Event;
use eframe::egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::bayes::{answer_all, answers, copied, panel, ready, type_target};
use super::experiments::rewrite;
use super::fake::Fake;
use super::{by_palette, labels, shows};

/// Gives class 3 four tenths.
fn move_prior(harness: &mut Harness<'_, App>) {
    harness.get_by_label_contains("Class prior").click();
    harness.run_steps(6);
    harness.get_by_role_and_label(Role::Slider, "Prior of class 3").set_value_accesskit(40.0);
    harness.run_steps(3);
    assert!((harness.state().prefs().prior[3] - 0.4).abs() < 1e-9, "{:?}", harness.state().prefs().prior);
}

/// Unfolds the form of label noise, where there is none, and enters some.
pub fn set_label_noise(harness: &mut Harness<'_, App>, noise: &str) {
    harness.get_by_label_contains("Label noise C (none)").scroll_to_me();
    harness.run_steps(6);
    harness.get_by_label_contains("Label noise C (none)").click();
    harness.run_steps(6);
    rewrite(harness, "Label noise", noise);
    harness.key_press(Key::Enter);
    harness.run_steps(3);
}

#[test]
fn a_saved_curve_is_of_the_prior_it_was_computed_for() {
    let (mut harness, fake) = panel();
    harness.get_by_role_and_label(Role::Button, "Gallery").click();
    harness.run_steps(3);
    move_prior(&mut harness);
    answer_all(&mut harness, &fake);
    by_palette(&mut harness, "save the curve");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("curve.csv");
    rewrite(&mut harness, "Path", &path.display().to_string());
    harness.key_press(Key::Enter);
    let patience = Instant::now() + Duration::from_secs(30);
    let entered = |harness: &Harness<'_, App>| harness.state().session().ledger.iter().len() > 0;
    while !entered(&harness) {
        assert!(Instant::now() < patience, "nothing was saved");
        harness.step();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("# class prior: uniform\n") && !text.contains("# points"), "{text}");
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 1 + 81);
    let made = harness.state().session().ledger.iter().next().unwrap();
    let chain = made.provenance.lines();
    for line in [("class prior π", "uniform"), ("T", "1")] {
        assert!(chain.iter().any(|(name, value)| (name.as_str(), value.as_str()) == line), "{chain:?}");
    }
    let beside = std::fs::read_to_string(place.path().join("curve.csv.provenance.json")).unwrap();
    assert!(beside.contains("uniform"), "{beside}");
}

/// Answers all but the last points of the curve, and not that it ended.
fn answer_in_part(harness: &mut Harness<'_, App>, fake: &Fake) {
    for question in fake.questions() {
        let part = if matches!(question, Question::Curve(_)) { 40 } else { usize::MAX };
        answers(question).into_iter().take(part).for_each(|answer| fake.send(Event::Bayes(Box::new(answer))));
    }
    harness.run_steps(3);
}

#[test]
fn a_curve_that_is_not_complete_is_not_saved() {
    let (mut harness, fake) = ready();
    harness.get_by_role_and_label(Role::Button, "Bayes error").click();
    harness.run_steps(3);
    answer_in_part(&mut harness, &fake);
    assert!(shows(&harness, "40 of 81 points"), "{:?}", labels(&harness));
    by_palette(&mut harness, "save the curve");
    assert!(harness.query_by_role_and_label(Role::TextInput, "Path").is_none(), "it asks where to save");
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains("not complete yet")));
}

#[test]
fn class_hardness_of_another_prior_is_not_shown_as_that_of_this_one() {
    let (mut harness, fake) = panel();
    let bars = "hardest first; ½";
    assert!(shows(&harness, bars) && !shows(&harness, "Of the knobs before"));
    move_prior(&mut harness);
    // Nothing is answered yet.
    for _ in 0..10 {
        assert!(!shows(&harness, bars) || shows(&harness, "Of the knobs before: the uniform class prior."));
        harness.step();
    }
    answer_all(&mut harness, &fake);
    answer_all(&mut harness, &fake);
    assert!(shows(&harness, bars) && !shows(&harness, "Of the knobs before"), "{:?}", labels(&harness));
}

#[test]
fn figures_targets_and_commands_are_of_the_smoothing() {
    let (mut harness, fake) = panel();
    harness.get_by_role_and_label(Role::SpinButton, "Posterior smoothing T").set_value_accesskit(2.0);
    let mut asked = Vec::new();
    for _ in 0..20 {
        harness.step();
        asked.extend(fake.questions());
    }
    type_target(&mut harness, "Target Bayes error", "5 %");
    asked.extend(fake.questions());
    assert_eq!(harness.state().prefs().smoothing, 2.0);
    let of = |question: &Question| match question {
        Question::Readout(at) | Question::Hardness(at) => Some(at.law.smoothing),
        Question::Curve(curve) => Some(curve.law.smoothing),
        Question::Ranking(ranking) => Some(ranking.law.smoothing),
        Question::Target(target) => Some(target.law.smoothing),
        _ => None,
    };
    let two = Smoothing::new(2.0).unwrap();
    assert_eq!(asked.iter().filter_map(of).collect::<Vec<_>>(), [two; 5], "{asked:?}");
    for button in ["Copy bayes-error command", "Copy tau command"] {
        harness.get_by_role_and_label(Role::Button, button).scroll_to_me();
        harness.run_steps(6);
        harness.get_by_role_and_label(Role::Button, button).click();
        let text = copied(&mut harness);
        assert!(text.contains(" --smoothing 2 "), "{text}");
    }
}

#[test]
fn methods_and_targets_of_another_prior_say_so() {
    let (mut harness, fake) = panel();
    by_palette(&mut harness, "compare all");
    answer_all(&mut harness, &fake);
    type_target(&mut harness, "Target Bayes error", "5 %");
    answer_all(&mut harness, &fake);
    assert!(!shows(&harness, "moved since"));
    move_prior(&mut harness);
    answer_all(&mut harness, &fake);
    for text in ["which have moved since. Run again.", "has moved since: press Enter in the field again."] {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", labels(&harness));
    }
    by_palette(&mut harness, "compare all");
    answer_all(&mut harness, &fake);
    assert!(!shows(&harness, "Run again."));
}

#[test]
fn pairs_that_were_lost_are_not_said_to_be_computed() {
    let (mut harness, fake) = ready();
    harness.get_by_role_and_label(Role::Button, "Bayes error").click();
    harness.run_steps(3);
    assert!(shows(&harness, "Computing…"));
    fake.send(Event::Bayes(Box::new(Answer::Lost { reason: "a bound was wrong".into() })));
    harness.run_steps(3);
    assert!(!shows(&harness, "Computing…") && shows(&harness, "a bound was wrong"), "{:?}", labels(&harness));
}

#[test]
fn the_field_of_label_noise_says_what_holds_whatever_has_set_it() {
    let (mut harness, _) = ready();
    set_label_noise(&mut harness, "pair:0.2");
    let state = |harness: &Harness<'_, App>| {
        let field = harness.get_by_role_and_label(Role::TextInput, "Label noise").value().unwrap_or_default();
        let noise = harness.state().prefs().label_noise.as_ref();
        (field, noise.map_or_else(String::new, |noise| noise.describe()))
    };
    let [on, off] = ["pair:0.2", ""].map(|text| (text.to_owned(), text.to_owned()));
    assert_eq!(state(&harness), on);
    harness.get_by_role_and_label(Role::Button, "None").click();
    harness.run_steps(3);
    assert_eq!(state(&harness), off);
    for expected in [&on, &off] {
        harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
        harness.run_steps(3);
        assert_eq!(&state(&harness), expected);
    }
}

#[test]
fn label_noise_is_taken_from_its_field_and_asked_for_with_every_figure() {
    let (mut harness, fake) = panel();
    answer_all(&mut harness, &fake);
    harness.get_by_label_contains("Label noise C (none)").click();
    harness.run_steps(6);
    rewrite(&mut harness, "Label noise", "pair:2");
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    assert!(shows(&harness, "no probability") && harness.state().prefs().label_noise.is_none());
    rewrite(&mut harness, "Label noise", "pair:0.2");
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    let noise = harness.state().prefs().label_noise.clone().unwrap();
    assert!(noise.describe() == "pair:0.2" && !shows(&harness, "no probability"));
    assert!(shows(&harness, "Nobody errs less than 20"), "{:?}", labels(&harness));
    let of = |question: &Question| match question {
        Question::Readout(at) => at.law.label_noise.clone(),
        _ => None,
    };
    assert_eq!(fake.questions().iter().find_map(of), Some(noise));
    harness.get_by_role_and_label(Role::Button, "None").click();
    harness.run_steps(3);
    assert!(harness.state().prefs().label_noise.is_none());
    // A file is read on a thread; one that is not there is named.
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("noise.csv");
    let enter = |harness: &mut Harness<'_, App>| {
        rewrite(harness, "Label noise", path.to_str().unwrap());
        harness.key_press(Key::Enter);
        for _ in 0..400 {
            harness.step();
            if harness.state().prefs().label_noise.is_some() || shows(harness, "noise.csv:") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    enter(&mut harness);
    assert!(shows(&harness, "noise.csv:") && harness.state().prefs().label_noise.is_none(), "{:?}", labels(&harness));
    let classes = harness.state().prefs().prior.len();
    let row = |y: usize| {
        (0..classes).map(move |j| if j == y { "0.9".into() } else { format!("{}", 0.1 / (classes - 1) as f64) })
    };
    let rows = (0..classes).map(|y| row(y).collect::<Vec<String>>().join(","));
    std::fs::write(&path, rows.collect::<Vec<_>>().join("\n")).unwrap();
    enter(&mut harness);
    assert!(harness.state().prefs().label_noise.is_some() && !shows(&harness, "noise.csv:"), "{:?}", labels(&harness));
    // What is wrong with a law that is wanted no more is not said any more.
    rewrite(&mut harness, "Label noise", "pair:2");
    harness.key_press(Key::Enter);
    harness.run_steps(3);
    assert!(shows(&harness, "no probability") && harness.state().prefs().label_noise.is_some());
    harness.get_by_role_and_label(Role::Button, "None").click();
    harness.run_steps(3);
    assert!(!shows(&harness, "no probability") && harness.state().prefs().label_noise.is_none());
}
