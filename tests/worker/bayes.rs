//! The Bayes error lanes beside the desk.

use std::time::Instant;

use bayescope::bayes::{Badge, Method, RANKED_AT, RankingsOverTau};
use bayescope::oracle::posterior::Prior;
use bayescope::oracle::world::LabelLaw;
use bayescope::units::Smoothing;
use bayescope::worker::bayes::protocol::{Answer, At, CurveQuestion, Question, RankingQuestion, Study, TargetQuestion};

use super::*;

fn at(generation: u64, tau: f64) -> At {
    At { generation, tau: Tau::new(tau).unwrap(), law: Prior::uniform(10).into() }
}

fn answer<T>(bench: &mut Bench, mut found: impl FnMut(&Answer) -> Option<T>) -> T {
    bench.until(|event| match event {
        Event::Bayes(answer) => found(answer),
        _ => None,
    })
}

/// The same among what has come already, too.
fn answered<T>(bench: &mut Bench, mut found: impl FnMut(&Answer) -> Option<T>) -> T {
    let before = bench.seen.iter().find_map(|event| match event {
        Event::Bayes(answer) => found(answer),
        _ => None,
    });
    before.unwrap_or_else(|| answer(bench, found))
}

/// The readout of one question that was computed to this tolerance.
fn readout(bench: &mut Bench, wanted: u64, finest: f64) -> bayescope::bayes::Estimate {
    answer(bench, |answer| match answer {
        Answer::Readout { generation, outcome: Ok(estimate), .. }
            if *generation == wanted && estimate.figure.relative_half_width() <= finest =>
        {
            Some(estimate.clone())
        }
        _ => None,
    })
}

#[test]
fn a_readout_waits_neither_for_a_job_nor_for_a_gallery() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.npz");
    let (spec, indices, settings) = (spec(100_000), vec![], settings(1.0));
    let job = bench.worker.submit(Job::task(SaveSamples { spec, indices, settings, look: None, sheet: false, path }));
    bench.until(|event| matches!(event, Event::JobProgress { .. }).then_some(()));
    bench.worker.show(request(1, 5_000, 1.0, Vec::new()));
    let mut values = Vec::new();
    for (generation, tau) in [(1, 0.5), (2, 1.0), (3, 2.0)] {
        let asked = Instant::now();
        bench.worker.ask(Question::Readout(at(generation, tau)));
        let estimate = readout(&mut bench, generation, 1e-4);
        println!(
            "τ = {tau}: {} after {:.1} ms beside a job",
            estimate.figure.value,
            asked.elapsed().as_secs_f64() * 1e3
        );
        values.push(estimate.figure.value);
    }
    assert!(values.is_sorted() && values[0] > 0.0, "{values:?}");
    let ended = bench.seen.iter().any(|event| matches!(event, Event::JobEnded { .. }));
    assert!(!ended, "the job was over before it could be in the way");
    bench.worker.cancel(job);
    assert_eq!(bench.outcome(job), Outcome::Cancelled);
}

#[test]
fn a_slider_at_rest_gets_six_digits_and_the_entropies() {
    let mut bench = Bench::new();
    let told = |answer: &Answer| match answer {
        Answer::World(world) => Some(world.clone()),
        _ => None,
    };
    // The lane may have told it before the desk told the oracle.
    let problem = answered(&mut bench, told);
    let problem = problem.expect("the bundled oracle has one base for all classes");
    assert_eq!((problem.classes, problem.rank, problem.dims), (10, 9, 1024));
    let asked = Instant::now();
    bench.worker.ask(Question::Readout(at(1, 1.0)));
    let first = readout(&mut bench, 1, 1e-4);
    println!("1e-4 after {:.1} ms", asked.elapsed().as_secs_f64() * 1e3);
    let fine = readout(&mut bench, 1, 1e-6);
    println!("1e-6 after {:.1} ms, the slider's rest included", asked.elapsed().as_secs_f64() * 1e3);
    assert!((first.figure.value / fine.figure.value - 1.0).abs() < 3e-4);
    assert_eq!(fine.badge, Badge::Estimated);
    // The two lanes race.
    let information = answered(&mut bench, |answer| match answer {
        Answer::Information { information, .. } if information.aleatoric_nats.relative_half_width() < 1e-3 => {
            Some(*information)
        }
        _ => None,
    });
    assert!((information.label_entropy_nats - 10f64.ln()).abs() < 1e-12);
    assert!(information.aleatoric_nats.value > 0.0);
}

#[test]
fn of_many_readouts_the_newest_is_answered_in_full() {
    let mut bench = Bench::new();
    for generation in 1..=60 {
        bench.worker.ask(Question::Readout(at(generation, 0.05 * generation as f64)));
    }
    readout(&mut bench, 60, 1e-6);
    let fine = bench.seen.iter().filter(|event| match event {
        Event::Bayes(answer) => {
            matches!(&**answer, Answer::Readout { generation, tolerance, .. } if *generation < 60 && *tolerance < 1e-5)
        }
        _ => false,
    });
    assert_eq!(fine.count(), 0, "nobody looks at those any more");
}

#[test]
fn a_target_gives_its_tau_and_an_unreachable_one_the_interval() {
    let mut bench = Bench::new();
    let prior = Prior::uniform(10);
    let mut ask = |generation: u64, error: f64| {
        bench.worker.ask(Question::Target(TargetQuestion { generation, error, law: prior.clone().into() }));
        answer(&mut bench, |answer| match answer {
            Answer::Target { generation: g, outcome, .. } if *g == generation => Some(outcome.clone()),
            _ => None,
        })
    };
    let found = ask(1, 0.05).expect("5 % is within reach");
    let why = ask(2, 0.95).expect_err("guessing is right in 10 %");
    assert!(why.contains("0.0000 %") && why.contains("90.0000 %"), "{why}");
    bench.worker.ask(Question::Readout(at(3, found.tau.value)));
    let estimate = readout(&mut bench, 3, 1e-4);
    assert!((estimate.figure.value / 0.05 - 1.0).abs() < 3e-4, "{}", estimate.figure.value);
}

#[test]
fn the_curve_of_labels_at_t_passes_through_the_tau_of_their_target() {
    let mut bench = Bench::new();
    let law = LabelLaw { smoothing: Smoothing::new(2.0).unwrap(), ..Prior::uniform(10).into() };
    let asked = Instant::now();
    bench.worker.ask(Question::Target(TargetQuestion { generation: 1, error: 0.05, law: law.clone() }));
    let found = answer(&mut bench, |answer| match answer {
        Answer::Target { generation: 1, outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    let found = found.expect("5 % is within reach");
    println!("τ = {:?} at T = 2 after {:.0} ms", found.tau, asked.elapsed().as_secs_f64() * 1e3);
    assert!(found.tau.relative_half_width() < 1.1e-4, "{found:?}");
    let taus: Vec<Tau> = [0.5, 0.9, 1.0, 1.1].map(|part| Tau::new(part * found.tau.value).unwrap()).to_vec();
    let asked = Instant::now();
    bench.worker.ask(Question::Curve(CurveQuestion { generation: 2, taus, law }));
    let mut points = Vec::new();
    answer(&mut bench, |answer| match answer {
        Answer::Curve { generation: 2, index, estimate } => {
            points.push((*index, estimate.figure));
            None
        }
        Answer::Ended { generation: 2, study: Study::Curve, trouble } => {
            assert_eq!(*trouble, None);
            Some(())
        }
        _ => None,
    });
    println!("four points of the curve after {:.0} ms", asked.elapsed().as_secs_f64() * 1e3);
    points.sort_by_key(|point| point.0);
    let errors: Vec<f64> = points.iter().map(|point| point.1.value).collect();
    assert!(errors.len() == 4 && errors.is_sorted(), "{points:?}");
    assert!((errors[2] / 0.05 - 1.0).abs() < 2e-3, "{points:?}");
    assert!(points.iter().all(|point| point.1.relative_half_width() < 1.01e-3), "{points:?}");
}

#[test]
fn at_temperature_zero_there_is_an_exact_limit() {
    let mut bench = Bench::new();
    bench.worker.ask(Question::Readout(at(1, 0.0)));
    let estimate = readout(&mut bench, 1, 0.0);
    assert_eq!((estimate.figure.value, estimate.badge), (0.0, Badge::Exact));
    let prior = Prior::uniform(3);
    bench.worker.ask(Question::Readout(At { law: prior.into(), ..at(2, 1.0) }));
    let refused = answer(&mut bench, |answer| match answer {
        Answer::Readout { generation: 2, outcome: Err(why), .. } => Some(why.clone()),
        _ => None,
    });
    assert!(refused.contains("3 priors for 10 classes"), "{refused}");
}

#[test]
fn studies_come_in_pieces_and_end() {
    let mut bench = Bench::new();
    let taus = [0.3, 0.6, 1.2, 2.4].map(|tau| Tau::new(tau).unwrap()).to_vec();
    let prior = Prior::uniform(10);
    bench.worker.ask(Question::Compare(at(1, 1.0)));
    bench.worker.ask(Question::Hardness(at(2, 1.0)));
    bench.worker.ask(Question::Curve(CurveQuestion { generation: 3, taus, law: prior.into() }));
    let mut ends = Vec::new();
    answer(&mut bench, |answer| {
        if let Answer::Ended { study, trouble, .. } = answer {
            assert_eq!(*trouble, None);
            ends.push(*study);
        }
        (ends.len() == 3).then_some(())
    });
    assert!(ends.contains(&Study::Curve) && ends.last() == Some(&Study::Compare), "{ends:?}");
    let (mut points, mut classes, mut pairs, mut methods) = (Vec::new(), 0, 0, Vec::new());
    for event in &bench.seen {
        let Event::Bayes(answer) = event else { continue };
        match &**answer {
            Answer::Curve { generation: 3, index, estimate } => points.push((*index, estimate.figure.value)),
            Answer::Hardness { generation: 2, .. } => classes += 1,
            Answer::Pairs { generation: 2, pairs: found } => pairs = found.errors.len(),
            Answer::Compared { generation: 1, method, outcome } => methods.push((*method, outcome.clone())),
            _ => {}
        }
    }
    points.sort_by_key(|point| point.0);
    assert!(points.len() == 4 && points.is_sorted_by_key(|point| point.1), "{points:?}");
    assert!(classes >= 10 && pairs == 100);
    assert_eq!(methods.len(), Method::ALL.len());
    let of = |method: Method| methods.iter().find(|(other, _)| *other == method).unwrap().1.clone();
    assert!(of(Method::Closed).is_err() && of(Method::Quadrature).is_err());
    let sov = of(Method::Sov).unwrap();
    for method in [Method::Pair, Method::Hdr, Method::Mc] {
        let other = of(method).unwrap();
        let apart = (other.figure.value - sov.figure.value).abs();
        let error = other.figure.std_error.hypot(sov.figure.std_error);
        assert!(apart < 5.0 * error, "{method:?}: {apart} apart, standard error {error}");
    }
}

#[test]
fn classes_are_ranked_at_every_temperature_whatever_is_asked_meanwhile() {
    let mut bench = Bench::new();
    bench.worker.ask(Question::Ranking(RankingQuestion { generation: 1, law: Prior::uniform(10).into() }));
    bench.worker.ask(Question::Hardness(at(2, 1.0)));
    let mut last = RankingsOverTau::default();
    answer(&mut bench, |answer| match answer {
        Answer::Ranking { generation: 1, rankings } => {
            assert_eq!(rankings.rankings.len(), last.rankings.len() + 1);
            last.clone_from(rankings);
            None
        }
        Answer::Ended { generation: 1, study: Study::Ranking, trouble } => {
            assert_eq!(*trouble, None);
            Some(())
        }
        _ => None,
    });
    assert!(last.rankings.iter().map(|ranking| ranking.tau).eq(RANKED_AT) && last.agreement.is_some());
    assert!(last.rankings.iter().all(|ranking| ranking.classes.len() == 10));
    let value = |one: &bayescope::bayes::ClassHardness| -one.one_vs_rest.value;
    assert!(last.rankings.iter().all(|ranking| ranking.classes.is_sorted_by_key(value)), "{last:?}");
}

#[test]
fn figure_1_of_ebo_is_drawn_and_its_integrators_hold_the_exact_curve() {
    let mut bench = Bench::new();
    bench.worker.ask(Question::Figure1 { generation: 1 });
    answer(&mut bench, |answer| matches!(answer, Answer::Ended { study: Study::Figure1, .. }).then_some(()));
    let points = bench.seen.iter().filter_map(|event| match event {
        Event::Bayes(answer) => match &**answer {
            Answer::Figure1 { point, .. } => Some(point.clone()),
            _ => None,
        },
        _ => None,
    });
    let points: Vec<_> = points.collect();
    let exact = |tau: f64| points.iter().find(|p| p.method.is_none() && (p.tau / tau - 1.0).abs() < 1e-9).unwrap();
    let marks: Vec<_> = points.iter().filter(|point| point.method.is_some()).collect();
    assert_eq!(marks.len(), 4 * 17);
    let held = marks.iter().filter(|point| {
        let (low, high) = point.estimate.figure.interval;
        let truth = exact(point.tau).estimate.figure.value;
        low <= truth * (1.0 + 1e-12) && truth * (1.0 - 1e-12) <= high
    });
    let held = held.count();
    assert!(held * 100 >= marks.len() * 85, "only {held} of {} intervals hold the exact value", marks.len());
}

#[test]
fn a_comparison_that_an_oracle_opened_anew_interrupts_ends() {
    let mut bench = Bench::new();
    bench.worker.ask(Question::Compare(at(7, 1.0)));
    answer(&mut bench, |answer| matches!(answer, Answer::Compared { .. }).then_some(()));
    let job = bench.worker.submit(Job::OpenOracle("mnist".into()));
    let ended = |answer: &Answer| match answer {
        Answer::Ended { generation: 7, study: Study::Compare, trouble } => Some(trouble.clone()),
        _ => None,
    };
    let trouble = answered(&mut bench, ended);
    assert!(trouble.is_some_and(|why| why.contains("opened anew")));
    let over = |event: &Event| matches!(event, Event::JobEnded { id, .. } if *id == job);
    if !bench.seen.iter().any(over) {
        bench.outcome(job);
    }
}
