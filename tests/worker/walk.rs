//! Walks to the boundary as jobs of the worker.

use std::sync::Arc;

use bayescope::oracle::walk::Way;
use bayescope::oracle::world::Settings;
use bayescope::worker::protocol::{Event, InspectRequest, Job, JobId, Outcome, Subject};
use bayescope::worker::walk::{Arrival, Destination, SaveWalk, WalkDot, WalkNews, WalkToBoundary, Walked};

use super::common::reference::path;
use super::{Bench, request, settings, spec};

fn from(index: usize) -> Subject {
    Subject::Sample { spec: spec(8), index }
}

fn ask(to: Destination, steps: usize, settings: Settings) -> Job {
    Job::task(WalkToBoundary { from: from(0), to, steps, samples: spec(8), settings })
}

/// What was told of a walk.
fn told(bench: &Bench, job: JobId) -> (Vec<WalkDot>, Option<Arrival>) {
    let (mut dots, mut arrived) = (Vec::new(), None);
    for event in &bench.seen {
        match event {
            Event::Task { id, news } if *id == job => match news.event::<WalkToBoundary>() {
                Some(WalkNews::Point { dot, .. }) => dots.push(dot.clone()),
                Some(WalkNews::Arrived(arrival)) => arrived = Some((**arrival).clone()),
                None => {}
            },
            _ => {}
        }
    }
    (dots, arrived)
}

/// The walk that a job came to.
fn walked(bench: &Bench, job: JobId) -> Arc<Walked> {
    let report = bench.seen.iter().find_map(|event| match event {
        Event::Task { id, news } if *id == job => news.report::<WalkToBoundary>(),
        _ => None,
    });
    report.expect("the walk came to its end")
}

#[test]
fn a_walk_towards_a_class_of_a_class_map_world_climbs() {
    let mut bench = Bench::on(&path("tarflow/config1.pth").display().to_string());
    let knobs = Settings::default_for(3);
    bench
        .worker
        .show(bayescope::worker::protocol::GalleryRequest { settings: knobs.clone(), ..request(1, 1, 1.0, vec![]) });
    let updates = bench.gallery(1);
    let start = updates.iter().flat_map(|update| &update.tiles).next().unwrap().posterior.decision;
    let goal = (start + 1) % 3;
    let job = bench.worker.submit(ask(Destination::Class(goal), 12, knobs.clone()));
    let outcome = bench.outcome(job);
    assert!(matches!(&outcome, Outcome::Done(text) if text.contains("50/50")), "{outcome:?}");
    let (dots, arrival) = told(&bench, job);
    let arrival = arrival.expect("the walk arrived");
    assert_eq!((arrival.way, arrival.start, arrival.target), (Way::Gradient, start, goal));
    assert!((2..=13).contains(&dots.len()), "{} points", dots.len());
    assert!(dots.iter().map(|dot| dot.tile.posterior.log_probabilities[goal]).is_sorted(), "a climb only rises");
    assert!(arrival.why_not.is_some() || arrival.imbalance <= 1e-3);
    let same = bench.worker.submit(ask(Destination::Class(start), 12, knobs.clone()));
    assert!(matches!(bench.outcome(same), Outcome::Failed(why) if why.contains("decided as")));
    // In another world its images have no posteriors.
    let walked = walked(&bench, job);
    let other = bench.worker.submit(Job::OpenOracle("mnist".into()));
    assert!(matches!(bench.outcome(other), Outcome::Done(_)));
    let gone = bench.worker.submit(Job::SendWalk { walked, settings: knobs });
    assert!(matches!(bench.outcome(gone), Outcome::Failed(why) if why.contains("walk again")));
}

#[test]
fn a_walk_between_two_samples_is_saved_and_its_images_are_inspected() {
    let mut bench = Bench::new();
    let job = bench.worker.submit(ask(Destination::Sample(1), 16, settings(1.0)));
    let outcome = bench.outcome(job);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let (dots, arrival) = told(&bench, job);
    let arrival = arrival.expect("the walk arrived");
    assert_eq!((dots.len(), arrival.way), (17, Way::Latent));
    assert_eq!((dots[0].position, dots[16].position), (0.0, 1.0));
    assert!(arrival.rounding.is_some_and(|rounding| rounding < 1e-2));
    let (folder, walked) = (tempfile::tempdir().unwrap(), walked(&bench, job));
    for name in ["walk.npz", "walk.png"] {
        let path = folder.path().join(name);
        let save = bench.worker.submit(Job::task(SaveWalk { walked: walked.clone(), path: path.clone() }));
        assert!(matches!(bench.outcome(save), Outcome::Done(_)) && path.exists(), "{name}");
    }
    let sent = bench.worker.submit(Job::SendWalk { walked, settings: settings(1.0) });
    let external = |event: &Event| match event {
        Event::External { ids, tiles, labelled: false, .. } => Some((ids.clone(), tiles.clone())),
        _ => None,
    };
    let (ids, tiles) = bench.until(external);
    assert_eq!((ids.len(), tiles.len()), (18, 18));
    let middle = ids.iter().position(|id| id.contains("50/50")).expect("the middle is among them");
    assert!(tiles[middle].posterior.distance(&arrival.middle.tile.posterior) < 1e-3);
    assert!(matches!(bench.outcome(sent), Outcome::Done(_)));
    let start = bench.image(middle);
    let ask_for = |generation, tau| {
        let (subject, taus) = (start.clone(), Vec::new());
        InspectRequest { generation, subject, settings: settings(tau), taus, look: None }
    };
    bench.worker.inspect(ask_for(1, 1.0));
    let inspection = bench.wait(|bench| bench.worker.take_inspection());
    assert_eq!(inspection.tile.posterior, tiles[middle].posterior);
    let again = bench.worker.submit(Job::RateAgain { settings: settings(2.0) });
    let (_, flatter) = bench.until(external);
    assert_ne!(flatter[0].posterior, tiles[0].posterior);
    assert!(matches!(bench.outcome(again), Outcome::Done(_)));
    assert_eq!(bench.image(middle), start, "at other knobs it is the same image");
    let mut onwards = WalkToBoundary {
        from: start.clone(),
        to: Destination::Sample(2),
        steps: 4,
        samples: spec(8),
        settings: settings(1.0),
    };
    let job = bench.worker.submit(Job::task(onwards.clone()));
    assert!(matches!(bench.outcome(job), Outcome::Done(_)), "images from outside can be starts");
    onwards.from = bench.image(99);
    let nowhere = bench.worker.submit(Job::task(onwards.clone()));
    assert!(matches!(bench.outcome(nowhere), Outcome::Failed(why) if why.contains("no longer open")));
    // Another walk's images take the place of these: none of them is an end of what was asked before.
    let sent = bench.worker.submit(Job::SendWalk { walked: self::walked(&bench, job), settings: settings(1.0) });
    assert!(matches!(bench.outcome(sent), Outcome::Done(_)));
    let Subject::External(replaced) = start else { panic!("{start:?}") };
    let ends = [(start, Destination::Sample(2)), (from(0), Destination::External(replaced))];
    for (from, to) in ends {
        let job = bench.worker.submit(Job::task(WalkToBoundary { from, to, ..onwards.clone() }));
        assert!(matches!(bench.outcome(job), Outcome::Failed(why) if why.contains("no longer open")), "{to:?}");
    }
}

#[test]
fn a_walk_stops_when_it_is_cancelled() {
    let mut bench = Bench::new();
    let job = bench.worker.submit(ask(Destination::Sample(1), 10_000, settings(1.0)));
    bench.until(|event| matches!(event, Event::Task { .. }).then_some(()));
    bench.worker.cancel(job);
    assert_eq!(bench.outcome(job), Outcome::Cancelled);
    let (dots, arrival) = told(&bench, job);
    assert!(!dots.is_empty() && dots.len() < 10_000 && arrival.is_none());
}
