//! The world card and the panel *Bayes error* of a world whose map depends on the class: everything comes from draws.

use bayescope::bayes::sampling::{CurvePoint, Ended, SampledHardness, SampledTau, Standing, Survey};
use bayescope::bayes::{Badge, ClassHardness, Estimate, Figure, Method, RANKED_AT, RankingsOverTau, TauEstimate};
use bayescope::events::Progress;
use bayescope::oracle::label_noise::LabelNoise;
use bayescope::oracle::posterior::Prior;
use bayescope::oracle::world::LabelLaw;
use bayescope::task::{Done, News};
use bayescope::units::Tau;
use bayescope::worker::bayes::protocol::{Answer, Question};
use bayescope::worker::sampling::{FindTau, SurveyWorld};

use super::bayes::{copied, type_target};
use super::priors::set_label_noise;
use super::*;

/// A window with a TarFlow of ten classes.
fn ready() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = full();
    fake.open_tarflow(10);
    fake.send(Event::Bayes(Box::new(Answer::World(Err("the map of this world depends on the class".into())))));
    harness.run_steps(3);
    (harness, fake)
}

fn panel() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = ready();
    harness.get_by_role_and_label(Role::Button, "Bayes error").click();
    harness.run_steps(3);
    (harness, fake)
}

fn figure(value: f64, half: f64) -> Figure {
    Figure::new(value, half, f64::INFINITY)
}

/// E(τ) = 0.1 τ up to 3, at some τ, with hardness at 1.
fn survey(prior: Prior, samples: usize) -> Survey {
    let half = 1.0 / samples as f64;
    let point = |tau: f64| CurvePoint {
        tau: Tau::new(tau).unwrap(),
        bayes_error: figure(0.1 * tau, half),
        aleatoric_nats: figure(0.2 * tau, half),
        slope_from_last: None,
        samples,
    };
    let one = |class: usize| ClassHardness { class, one_vs_rest: figure(0.01 * (class + 1) as f64, half) };
    let pair = |i: usize, j: usize| (i != j).then(|| figure(0.001 * (i + j) as f64, half));
    let hardness = SampledHardness {
        tau: Tau::ONE,
        one_vs_rest: (0..10).map(one).collect(),
        gains: vec![None; 10],
        pairs: (0..10).map(|i| (0..10).map(|j| pair(i, j)).collect()).collect(),
        samples,
        ended: Ended::Samples,
    };
    let mut rankings = RankingsOverTau::default();
    for tau in RANKED_AT {
        rankings.add(bayescope::bayes::ClassRanking { tau, ..hardness.ranking() });
    }
    let curve = [0.5, 0.7, 1.0, 1.5, 2.0, 3.0].into_iter().map(point).collect();
    Survey { law: prior.into(), curve, hardness: Some(hardness), rankings }
}

fn start(fake: &Fake, id: u64) {
    fake.send(Event::JobStarted { id });
}

fn press(harness: &mut Harness<'_, App>, label: &str) {
    harness.get_by_role_and_label(Role::Button, label).click();
    harness.run_steps(3);
}

fn standing(tau: f64, half: f64) -> Standing {
    let progress = Progress { done: 640, total: 4000 };
    Standing { progress, seconds_left: Some(9.0), figure: Some(figure(tau, half)) }
}

/// Questions for what was found before.
fn kept(fake: &Fake) -> Vec<(u64, Prior)> {
    let of = |question| match question {
        Question::Kept { generation, key } => Some((generation, key.prior)),
        _ => None,
    };
    fake.questions().into_iter().filter_map(of).collect()
}

#[test]
fn a_target_narrows_can_be_stopped_and_sets_tau_only_when_it_is_accepted() {
    let (mut harness, fake) = ready();
    type_target(&mut harness, "Target Bayes error", "20 %");
    let (id, task) = tasks::asked::<FindTau>(&fake);
    assert_eq!((task.target, task.law), (0.2, Prior::uniform(10).into()));
    assert!(shows(&harness, "Looking for τ with E = 20 %"));
    start(&fake, id);
    for (tau, half, low, high) in [(0.9, 0.2, "0.7", "1.1"), (0.95, 0.05, "0.9", "1")] {
        fake.send(Event::Task { id, news: News::of_event::<FindTau>(standing(tau, half)) });
        harness.run_steps(3);
        let text = format!("τ = {tau}");
        assert!(shows(&harness, &text) && shows(&harness, "narrowing"), "{:?}", labels(&harness));
        assert!(shows(&harness, low) && shows(&harness, high), "{:?}", labels(&harness));
        assert_eq!(harness.state().prefs().tau, 1.0, "nothing is set that was not accepted");
    }
    press(&mut harness, "Stop the search of Target Bayes error");
    assert_eq!(fake.cancelled(), [id]);
    fake.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
    harness.run_steps(3);
    assert!(shows(&harness, "; stopped"), "what was found by then stays");
    press(&mut harness, "Use the τ of Target Bayes error");
    assert_eq!(harness.state().prefs().tau, 0.95);
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    harness.run_steps(3);
    assert_eq!(harness.state().prefs().tau, 1.0);
    harness.check_accessibility();
}

#[test]
fn a_newer_target_takes_the_place_of_the_one_under_way_and_its_report_is_shown() {
    let (mut harness, fake) = ready();
    type_target(&mut harness, "Target Bayes error", "20 %");
    let (first, _) = tasks::asked::<FindTau>(&fake);
    harness.get_by_role_and_label(Role::TextInput, "Target Bayes error").click();
    harness.run_steps(2);
    // What is selected is written over.
    harness.key_press_modifiers(Modifiers::COMMAND, Key::A);
    harness.run_steps(2);
    harness.get_by_role_and_label(Role::TextInput, "Target Bayes error").type_text("5 %");
    harness.run_steps(2);
    harness.key_press(Key::Enter);
    harness.run_steps(2);
    let (second, task) = tasks::asked::<FindTau>(&fake);
    assert_eq!((fake.cancelled(), task.target), (vec![first], 0.05));
    let tau = figure(0.42, 0.004);
    let achieved = Estimate {
        figure: figure(0.05, 0.0005),
        log_value: 0.05f64.ln(),
        bounds: (0.0, 0.9),
        badge: Badge::Estimated,
        method: Method::Sampling,
        why: "draws".into(),
        samples: 4096,
        draws: 0,
        seconds: 9.0,
    };
    let found = TauEstimate { target: 0.05, tau, achieved, slope: figure(0.1, 0.01), evaluations: 5, seconds: 9.0 };
    let report = SampledTau { found, gain: None, slope_gain: None, images: 9000, ended: Ended::Tolerance };
    tasks::done::<FindTau>(&fake, second, Done::new(report, "found"));
    // The one before has nothing more to say.
    fake.send(Event::Task { id: first, news: News::of_event::<FindTau>(standing(2.5, 0.1)) });
    harness.run_steps(3);
    assert!(shows(&harness, "E = 5 % at τ = 0.42") && !shows(&harness, "narrowing"), "{:?}", labels(&harness));
    assert_eq!(harness.state().prefs().tau, 1.0);
}

#[test]
fn where_a_curve_is_known_the_target_is_answered_from_it_at_once() {
    let (mut harness, fake) = ready();
    let (generation, prior) = kept(&fake).remove(0);
    let survey = Box::new(survey(prior, 512));
    let (low, high) = survey.tau_of(0.15).unwrap().interval;
    assert!(1.0 < low && low < 1.5 && 1.5 < high && high < 1.6, "{low} to {high}");
    fake.send(Event::Bayes(Box::new(Answer::Kept { generation, survey })));
    harness.run_steps(3);
    type_target(&mut harness, "Target Bayes error", "15 %");
    let (id, task) = tasks::asked::<FindTau>(&fake);
    assert_eq!(task.target, 0.15);
    // The search waits for other jobs and has drawn nothing; the curve is E = 0.1 τ, and its band ± 1/512.
    let told = format!("E = 15 % at τ = 1.500 (95 %: {low:.3} to {high:.3}); narrowing");
    assert!(shows(&harness, &told), "{told}: {:?}", labels(&harness));
    assert!(shows(&harness, "narrowing") && !shows(&harness, "Looking for τ"));
    assert_eq!(harness.state().prefs().tau, 1.0, "nothing is set that was not accepted");
    press(&mut harness, "Use the τ of Target Bayes error");
    assert!((harness.state().prefs().tau - 1.5).abs() < 1e-3, "{}", harness.state().prefs().tau);
    // What the search says takes its place.
    start(&fake, id);
    fake.send(Event::Task { id, news: News::of_event::<FindTau>(standing(1.503, 0.004)) });
    harness.run_steps(3);
    assert!(shows(&harness, "τ = 1.503 (95 %: 1.499 to 1.507)"), "{:?}", labels(&harness));
    harness.check_accessibility();
}

#[test]
fn a_curve_that_does_not_come_to_the_target_leaves_it_to_the_search() {
    let (mut harness, fake) = ready();
    let (generation, prior) = kept(&fake).remove(0);
    let survey = Box::new(survey(prior, 512));
    fake.send(Event::Bayes(Box::new(Answer::Kept { generation, survey })));
    harness.run_steps(3);
    type_target(&mut harness, "Target Bayes error", "40 %");
    assert!(shows(&harness, "Looking for τ with E = 40 %"), "{:?}", labels(&harness));
    assert!(harness.query_by_role_and_label(Role::Button, "Use the τ of Target Bayes error").is_none());
}

#[test]
fn a_survey_fills_the_panel_and_the_readout_follows_the_slider_along_its_curve() {
    let (mut harness, fake) = panel();
    assert!(shows(&harness, "not sampled yet") && !shows(&harness, "hardest first"));
    press(&mut harness, "Sample");
    let (id, task) = tasks::asked::<SurveyWorld>(&fake);
    assert_eq!((task.tau, &task.law), (Tau::ONE, &Prior::uniform(10).into()));
    start(&fake, id);
    let event = survey(task.law.prior.clone(), 64);
    fake.send(Event::Task { id, news: News::of_event::<SurveyWorld>(event) });
    harness.run_steps(3);
    for text in ["64 draws at each τ", "hardest first", "Bayes errors of pairs of classes", "Ranking of classes over τ"]
    {
        assert!(shows(&harness, text), "{text} is not in {:?}", labels(&harness));
    }
    assert!(shows(&harness, "10.0") && !shows(&harness, "Compare"), "{:?}", labels(&harness));
    fake.questions();
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(2.0);
    harness.run_steps(3);
    assert!(shows(&harness, "20.0"), "{:?}", labels(&harness));
    assert!(fake.questions().is_empty(), "the slider asks for no integral and no new draws");
    assert_eq!(tasks::asked::<SurveyWorld>(&fake).0, id);
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(0.1);
    harness.run_steps(3);
    assert!(shows(&harness, "not sampled at this τ, T and π"), "outside of the curve nothing is made up");
    press(&mut harness, "Stop sampling");
    assert_eq!(fake.cancelled(), [id]);
    fake.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
    harness.run_steps(3);
    assert!(shows(&harness, "hardest first") && shows(&harness, "; stopped"));
    harness.check_accessibility();
}

#[test]
fn what_was_kept_is_asked_for_once_a_prior_and_never_takes_the_place_of_what_was_found_since() {
    let (mut harness, fake) = ready();
    let asked = kept(&fake);
    let [(generation, prior)] = &asked[..] else { panic!("{asked:?}") };
    let answer = |generation: u64, samples| {
        let survey = Box::new(survey(prior.clone(), samples));
        fake.send(Event::Bayes(Box::new(Answer::Kept { generation, survey })));
    };
    answer(generation + 7, 32);
    harness.run_steps(3);
    assert!(shows(&harness, "not sampled yet"), "an answer to another question");
    answer(*generation, 512);
    harness.run_steps(3);
    assert!(!shows(&harness, "not sampled yet"));
    harness.get_by_role_and_label(Role::Button, "Bayes error").click();
    harness.run_steps(3);
    assert!(shows(&harness, "512 draws at each τ"));
    press(&mut harness, "Sample");
    let (id, task) = tasks::asked::<SurveyWorld>(&fake);
    let event = survey(task.law.prior, 1024);
    fake.send(Event::Task { id, news: News::of_event::<SurveyWorld>(event) });
    answer(*generation, 512);
    harness.run_steps(3);
    assert!(shows(&harness, "1,024 draws at each τ"), "{:?}", labels(&harness));
    assert!(kept(&fake).is_empty());
}

#[test]
fn the_value_from_draws_is_copied_with_its_interval_and_is_in_the_ledger() {
    let (mut harness, fake) = panel();
    press(&mut harness, "Copy value");
    let told = |harness: &Harness<'_, App>| {
        harness.state().session().log.iter().any(|entry| entry.text.contains("no Bayes error to copy yet"))
    };
    assert!(told(&harness));
    let (generation, prior) = kept(&fake).remove(0);
    let survey = Box::new(survey(prior, 512));
    let found = survey.error_at(1.0).unwrap();
    fake.send(Event::Bayes(Box::new(Answer::Kept { generation, survey })));
    harness.run_steps(3);
    harness.get_by_role_and_label(Role::Button, "Copy value").scroll_to_me();
    harness.run_steps(6);
    harness.get_by_role_and_label(Role::Button, "Copy value").click();
    let text = copied(&mut harness);
    let (low, high) = found.interval;
    for part in [
        &format!("Bayes error E = {} (fraction), 95 % interval {low} to {high}", found.value),
        "weights SHA-256 tarflow",
        "class prior π: uniform over 10 classes",
        "τ = 1, posterior smoothing T = 1",
        "method: sampling of the world",
        "draws: 512 at each τ",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    by_palette(&mut harness, "exactness ledger");
    harness.get_by_label("Copy ledger").click();
    let ledger = copied(&mut harness);
    assert!(ledger.contains("**Bayes error**: estimated") && ledger.contains("draws at each τ: 512"), "{ledger}");
}

#[test]
fn what_another_law_has_replaced_is_asked_for_again_when_its_own_is_back() {
    let (mut harness, fake) = panel();
    let (generation, prior) = kept(&fake).remove(0);
    fake.send(Event::Bayes(Box::new(Answer::Kept { generation, survey: Box::new(survey(prior.clone(), 512)) })));
    harness.run_steps(3);
    set_label_noise(&mut harness, "symmetric:0.2");
    press(&mut harness, "Sample");
    let (id, task) = tasks::asked::<SurveyWorld>(&fake);
    let noise = LabelNoise::symmetric(0.2).ok();
    assert_eq!(task.law, LabelLaw { label_noise: noise, ..prior.clone().into() });
    start(&fake, id);
    let event = Survey { law: task.law, ..survey(prior.clone(), 64) };
    fake.send(Event::Task { id, news: News::of_event::<SurveyWorld>(event) });
    fake.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
    harness.run_steps(3);
    assert!(kept(&fake).is_empty() && shows(&harness, "64 draws at each τ"), "{:?}", labels(&harness));
    press(&mut harness, "None");
    let asked = kept(&fake);
    let [(generation, of)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(of, &prior);
    let survey = Box::new(survey(prior.clone(), 512));
    fake.send(Event::Bayes(Box::new(Answer::Kept { generation: *generation, survey })));
    harness.run_steps(3);
    assert!(shows(&harness, "512 draws at each τ") && !shows(&harness, "not sampled at this τ, T and π"));
    assert!(kept(&fake).is_empty());
}

#[test]
fn draws_are_asked_for_with_the_smoothing_and_those_of_another_say_so() {
    let (mut harness, fake) = panel();
    let (generation, prior) = kept(&fake).remove(0);
    fake.send(Event::Bayes(Box::new(Answer::Kept { generation, survey: Box::new(survey(prior, 512)) })));
    harness.run_steps(3);
    assert!(!shows(&harness, "has moved since") && !shows(&harness, "not sampled at this"));
    harness.get_by_role_and_label(Role::SpinButton, "Posterior smoothing T").set_value_accesskit(2.0);
    harness.run_steps(3);
    assert!(
        shows(&harness, "T or the label noise has moved since") && shows(&harness, "not sampled at this τ, T and π")
    );
    assert!(kept(&fake).is_empty(), "nothing is kept of T ≠ 1");
    press(&mut harness, "Sample");
    let (_, task) = tasks::asked::<SurveyWorld>(&fake);
    assert_eq!(task.law.smoothing.get(), 2.0);
    type_target(&mut harness, "Target Bayes error", "20 %");
    let (_, task) = tasks::asked::<FindTau>(&fake);
    assert_eq!(task.law.smoothing.get(), 2.0);
}
