//! The readout beside the slider, the target field and the panel *Bayes error*.

use bayescope::bayes::{
    Badge, ClassHardness, ClassRanking, Estimate, Figure, GaussianClasses, Information, Method, PairErrors, RANKED_AT,
    RankingsOverTau, Spec, TauEstimate, pairwise,
};
use bayescope::units::Tau;
use bayescope::worker::bayes::protocol::{
    Answer, At, CurveQuestion, Figure1Point, Question, RankingQuestion, Study, TargetQuestion, WorldProblem,
};

use super::*;

/// An error that grows with τ, between 0 and 90 %.
fn error_at(tau: f64) -> f64 {
    0.9 * (1.0 - (-0.04 * tau.powi(3)).exp())
}

fn estimate(value: f64, method: Method) -> Estimate {
    Estimate {
        figure: Figure::new(value, 1e-4 * value, 0.9),
        log_value: value.ln(),
        bounds: (0.0, 0.9),
        badge: if method == Method::Closed { Badge::Exact } else { Badge::Estimated },
        method,
        why: "ten classes in 9 dimensions".into(),
        samples: 81_920,
        draws: 0,
        seconds: 0.0031,
    }
}

fn figure(value: f64) -> Figure {
    Figure::new(value, 1e-3 * value, f64::INFINITY)
}

fn information(tau: f64) -> Information {
    Information {
        aleatoric_nats: figure(0.1 * tau),
        label_entropy_nats: 10f64.ln(),
        mutual_information_bits: figure((10f64.ln() - 0.1 * tau) / std::f64::consts::LN_2),
        normalised: figure(1.0 - 0.1 * tau / 10f64.ln()),
        badge: Badge::Estimated,
        samples: 4096,
    }
}

/// Classes on a circle.
fn pairs(count: usize, tau: f64) -> PairErrors {
    let angle = |k: usize| k as f64 * std::f64::consts::TAU / count as f64;
    let means = (0..count).map(|k| vec![4.0 * angle(k).cos(), 4.0 * angle(k).sin()]).collect();
    let classes = GaussianClasses::new(means, vec![1.0 / count as f64; count]).unwrap();
    pairwise(&classes, Tau::new(tau).unwrap(), &Spec::default(), &mut bayescope::events::silent()).unwrap()
}

/// What the real lanes would answer.
pub fn answers(question: Question) -> Vec<Answer> {
    match question {
        Question::Readout(at) => {
            let (generation, tau) = (at.generation, at.tau.get());
            let outcome = Ok(estimate(error_at(tau), Method::Sov));
            let readout = Answer::Readout { generation, tau, tolerance: 1e-4, outcome };
            vec![readout, Answer::Information { generation, tau, information: information(tau) }]
        }
        Question::Target(TargetQuestion { generation, error, .. }) => {
            vec![Answer::Target { generation, error, outcome: tau_of(error) }]
        }
        Question::Curve(CurveQuestion { generation, taus, .. }) => {
            let at = |tau: &Tau| estimate(error_at(tau.get()), Method::Sov);
            let point = |(index, tau)| Answer::Curve { generation, index, estimate: at(tau) };
            taus.iter().enumerate().map(point).chain([ended(generation, Study::Curve)]).collect()
        }
        Question::Hardness(At { generation, tau, law }) => {
            let count = law.prior.classes();
            let value = |class: usize| figure(0.01 * (1.0 + (class * 7 % count) as f64));
            let one = |class| ClassHardness { class, one_vs_rest: value(class) };
            let classes = (0..count).map(|class| Answer::Hardness { generation, hardness: one(class) });
            let pairs = Answer::Pairs { generation, pairs: pairs(count, tau.get()) };
            [pairs].into_iter().chain(classes).chain([ended(generation, Study::Hardness)]).collect()
        }
        Question::Ranking(RankingQuestion { generation, law }) => {
            let order: Vec<usize> = (0..law.prior.classes()).collect();
            let rankings = rankings(RANKED_AT.map(|_| order.clone()));
            vec![Answer::Ranking { generation, rankings }, ended(generation, Study::Ranking)]
        }
        Question::Compare(At { generation, tau, .. }) => {
            let outcome = |method| match method {
                Method::Closed => Err("this problem has no closed form".into()),
                method => Ok(estimate(error_at(tau.get()), method)),
            };
            let compared = |method| Answer::Compared { generation, method, outcome: outcome(method) };
            Method::ALL.into_iter().map(compared).chain([ended(generation, Study::Compare)]).collect()
        }
        Question::Figure1 { generation } => figure1(generation),
        // Nothing was kept.
        Question::Kept { .. } => Vec::new(),
    }
}

/// The classes in these orders, hardest first, each 1 % easier than the one before and known to 0.1 %.
fn rankings(orders: [Vec<usize>; 3]) -> RankingsOverTau {
    let mut all = RankingsOverTau::default();
    for (tau, order) in RANKED_AT.into_iter().zip(orders) {
        let one =
            |(place, class): (usize, usize)| ClassHardness { class, one_vs_rest: figure(0.4 - 0.004 * place as f64) };
        all.add(ClassRanking { tau, classes: order.into_iter().enumerate().map(one).collect() });
    }
    all
}

fn tau_of(error: f64) -> Result<TauEstimate, String> {
    if error >= 0.9 {
        return Err("no τ gives this Bayes error: it lies between 0.0000 % and 90.0000 %".into());
    }
    let tau = figure((-(1.0 - error / 0.9).ln() / 0.04).cbrt());
    let (achieved, slope) = (estimate(error, Method::Sov), figure(0.1));
    Ok(TauEstimate { target: error, tau, achieved, slope, evaluations: 5, seconds: 0.02 })
}

fn figure1(generation: u64) -> Vec<Answer> {
    let taus = (0..21).map(|i| 10f64.powf(-1.0 + 0.1 * f64::from(i)));
    let point = |(method, tau): (Option<Method>, f64)| {
        let point = Figure1Point { tau, method, estimate: estimate(0.5 * (-0.7 / tau).exp(), Method::Closed) };
        Answer::Figure1 { generation, point }
    };
    let methods = [None, Some(Method::Sov), Some(Method::Pair), Some(Method::Hdr), Some(Method::Mc)];
    let all = methods.into_iter().flat_map(|method| taus.clone().map(move |tau| (method, tau)));
    all.map(point).chain([ended(generation, Study::Figure1)]).collect()
}

fn ended(generation: u64, study: Study) -> Answer {
    Answer::Ended { generation, study, trouble: None }
}

/// Answers everything that was asked about the Bayes error, and what is asked after that.
pub fn answer_all(harness: &mut Harness<'_, App>, fake: &Fake) {
    for _ in 0..3 {
        for answer in fake.questions().into_iter().flat_map(answers) {
            fake.send(Event::Bayes(Box::new(answer)));
        }
        harness.run_steps(2);
    }
}

/// A window with a world, a gallery and a readout.
pub fn ready() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = full();
    let world = WorldProblem { classes: 10, rank: 9, dims: 1024 };
    fake.send(Event::Bayes(Box::new(Answer::World(Ok(world)))));
    answer_all(&mut harness, &fake);
    (harness, fake)
}

pub fn panel() -> (Harness<'static, App>, Fake) {
    let (mut harness, fake) = ready();
    harness.get_by_role_and_label(Role::Button, "Bayes error").click();
    harness.run_steps(3);
    answer_all(&mut harness, &fake);
    (harness, fake)
}

fn slide(harness: &mut Harness<'_, App>, tau: f64) {
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(tau);
    harness.run_steps(2);
}

/// The first digits of an error as the window writes it.
fn percent(tau: f64) -> String {
    let digits = format!("{:.6}", 100.0 * error_at(tau));
    digits[..5].to_owned()
}

#[test]
fn the_readout_follows_the_slider_and_the_old_value_stays_until_the_new_one_is_there() {
    let (mut harness, fake) = ready();
    assert!(shows(&harness, &percent(1.0)), "{} %", percent(1.0));
    assert!(shows(&harness, "bits"));
    slide(&mut harness, 2.0);
    let questions = fake.questions();
    assert!(matches!(&questions[..], [Question::Readout(at)] if at.tau.get() == 2.0), "{questions:?}");
    assert!(shows(&harness, &percent(1.0)), "the old value stays");
    for answer in questions.into_iter().flat_map(answers) {
        fake.send(Event::Bayes(Box::new(answer)));
    }
    harness.run_steps(2);
    assert!(shows(&harness, &percent(2.0)) && !shows(&harness, &percent(1.0)));
}

pub fn type_target(harness: &mut Harness<'_, App>, field: &str, text: &str) {
    harness.get_by_role_and_label(Role::TextInput, field).click();
    harness.run_steps(2);
    harness.get_by_role_and_label(Role::TextInput, field).type_text(text);
    harness.run_steps(2);
    harness.key_press(Key::Enter);
    harness.run_steps(2);
}

#[test]
fn a_typed_target_sets_tau_and_can_be_undone() {
    let (mut harness, fake) = ready();
    type_target(&mut harness, "Target Bayes error", "5 %");
    answer_all(&mut harness, &fake);
    let tau = harness.state().prefs().tau;
    assert!((error_at(tau) / 0.05 - 1.0).abs() < 1e-9, "τ = {tau}");
    assert!(shows(&harness, "E = 5 % at τ ="));
    harness.key_press_modifiers(Modifiers::COMMAND, Key::Z);
    harness.run_steps(2);
    assert_eq!(harness.state().prefs().tau, 1.0);
}

#[test]
fn an_unreachable_target_says_what_can_be_reached_and_leaves_tau() {
    let (mut harness, fake) = ready();
    type_target(&mut harness, "Target Bayes error", "0.95");
    answer_all(&mut harness, &fake);
    assert!(shows(&harness, "between 0.0000 % and 90.0000 %"));
    assert_eq!(harness.state().prefs().tau, 1.0);
}

#[test]
fn what_is_no_target_is_not_asked_for() {
    let (mut harness, fake) = ready();
    type_target(&mut harness, "Target Bayes error", "five");
    assert!(shows(&harness, "or per cent with the sign"));
    assert!(fake.questions().iter().all(|question| !matches!(question, Question::Target(_))));
}

#[test]
fn the_panel_shows_curve_bars_pairs_and_answers_in_the_panel_move_the_card() {
    let (mut harness, fake) = panel();
    for text in ["Bayes error over τ", "Bayes errors of pairs of classes", "hardest first", "10."] {
        assert!(shows(&harness, text), "{text}");
    }
    type_target(&mut harness, "Target Bayes error, in the panel", "20 %");
    answer_all(&mut harness, &fake);
    let tau = harness.state().prefs().tau;
    assert!((error_at(tau) / 0.2 - 1.0).abs() < 1e-9);
    harness.get_by_role_and_label(Role::Slider, "Marker τ").set_value_accesskit(1.5);
    harness.run_steps(2);
    assert_eq!(harness.state().prefs().tau, 1.5);
    slide(&mut harness, 0.7);
    let marker = harness.get_by_role_and_label(Role::Slider, "Marker τ").accesskit_node().numeric_value();
    assert_eq!(marker, Some(0.7));
    harness.check_accessibility();
}

#[test]
fn class_hardness_is_asked_for_only_while_the_panel_shows() {
    let (mut harness, fake) = ready();
    slide(&mut harness, 1.5);
    assert!(fake.questions().iter().all(|question| matches!(question, Question::Readout(_))));
    harness.get_by_role_and_label(Role::Button, "Bayes error").click();
    harness.run_steps(3);
    let questions = fake.questions();
    assert!(questions.iter().any(|question| matches!(question, Question::Hardness(at) if at.tau.get() == 1.5)));
    assert!(questions.iter().any(|question| matches!(question, Question::Curve(curve) if curve.taus.len() == 81)));
    slide(&mut harness, 1.6);
    assert!(!fake.questions().iter().any(|question| matches!(question, Question::Curve(_))), "E(τ) is the same curve");
}

#[test]
fn the_panel_says_whether_the_order_of_classes_changes_over_tau() {
    let (mut harness, fake) = ready();
    harness.get_by_role_and_label(Role::Button, "Bayes error").click();
    harness.run_steps(3);
    let asked = fake.questions();
    let generation = asked.iter().find_map(|question| match question {
        Question::Ranking(RankingQuestion { generation, .. }) => Some(*generation),
        _ => None,
    });
    let generation = generation.expect("the ranking was asked for");
    let same: Vec<usize> = (0..10).rev().collect();
    let answer = |orders| {
        let rankings = rankings(orders);
        fake.send(Event::Bayes(Box::new(Answer::Ranking { generation, rankings })));
    };
    answer([same.clone(), same.clone(), same.clone()]);
    harness.run_steps(3);
    assert!(shows(&harness, "Ranking of classes over τ") && shows(&harness, "τ = 0.7"));
    assert!(shows(&harness, "the same at each τ, as EBO §4.3 says"), "{:?}", labels(&harness));
    let turned: Vec<usize> = (0..10).collect();
    answer([same.clone(), same, turned]);
    harness.run_steps(3);
    let sentence = "'9' is harder than '8' at τ = 0.7 and easier at τ = 1.5";
    assert!(shows(&harness, "changes over τ, against EBO §4.3") && shows(&harness, sentence), "{:?}", labels(&harness));
    // It is of no one τ: the slider asks for none.
    slide(&mut harness, 1.6);
    assert!(!fake.questions().iter().any(|question| matches!(question, Question::Ranking(_))));
}

#[test]
fn methods_are_compared_and_figure_1_is_drawn() {
    let (mut harness, fake) = panel();
    for command in ["compare all", "figure 1 of ebo"] {
        by_palette(&mut harness, command);
        answer_all(&mut harness, &fake);
    }
    for method in Method::ALL {
        assert!(shows(&harness, method.name()), "{} is not in the table", method.name());
    }
    assert!(shows(&harness, "no closed form") && shows(&harness, "intervals that hold"));
    assert!(shows(&harness, "Figure 1 of EBO"));
}

#[test]
fn the_palette_opens_the_panel_and_values_are_copied_with_their_provenance() {
    let (mut harness, fake) = ready();
    by_palette(&mut harness, "panel: bayes");
    answer_all(&mut harness, &fake);
    assert!(shows(&harness, "Bayes error over τ"));
    harness.get_by_role_and_label(Role::Button, "Copy value").click();
    let copied = copied(&mut harness);
    for part in [
        "Bayes error E = ",
        "95 % interval",
        "weights SHA-256",
        "τ = 1",
        "uniform over 10",
        "bayescope bayes-error mnist --tau 1",
    ] {
        assert!(copied.contains(part), "{part} is not in\n{copied}");
    }
}

/// What came to the clipboard in the next frames.
pub fn copied(harness: &mut Harness<'_, App>) -> String {
    for _ in 0..4 {
        harness.step();
        for command in &harness.output().platform_output.commands {
            if let egui::OutputCommand::CopyText(text) = command {
                return text.clone();
            }
        }
    }
    panic!("nothing was copied");
}

#[test]
fn a_lost_computation_is_told() {
    let (mut harness, fake) = panel();
    type_target(&mut harness, "Target Bayes error", "7 %");
    fake.send(Event::Bayes(Box::new(Answer::Lost { reason: "a bound was wrong".into() })));
    harness.run_steps(3);
    assert!(shows(&harness, "a bound was wrong"));
    assert_eq!(harness.state().prefs().tau, 1.0);
}

#[test]
fn looking_at_a_prior_does_not_change_it() {
    let (mut harness, fake) = ready();
    fake.open_classes((0..26).map(|class| format!("class {class}")).collect());
    harness.run_steps(3);
    harness.get_by_label_contains("Class prior").click();
    harness.run_steps(6);
    assert!(harness.state().prefs().prior.iter().all(|p| (p * 26.0 - 1.0).abs() < 1e-12));
    assert!(shows(&harness, "Class prior π (uniform)"));
}
