//! The best epoch of a run, opened while the run goes on.

use bayescope::oracle::train::{SO_FAR, TrainEvent, TrainSpec};
use bayescope::oracle::world::Settings;
use bayescope::run::TrainOracle;
use bayescope::worker::protocol::{Event, GalleryRequest, Job, JobId, Outcome, Subject};
use bayescope::worker::walk::{Destination, WalkToBoundary};

use super::{Bench, common, request, settings};

fn spec(folder: &std::path::Path, family: &str, epochs: usize) -> TrainSpec {
    let text = format!(
        "name = 'halves'\n[data]\npath = 'data'\npad_to = 8\nheld_out = 16\n{family}\n[training]\nepochs = {epochs}\nbatch = 16"
    );
    let path = folder.join("spec.toml");
    std::fs::write(&path, text).unwrap();
    TrainSpec::read(&path).unwrap()
}

/// Weights of a run's oracle.
fn weights(run: &std::path::Path) -> Vec<u8> {
    std::fs::read(run.join("oracle/weights.safetensors")).unwrap()
}

#[test]
fn the_best_epoch_opens_while_the_run_goes_on_undisturbed() {
    for family in
        ["[model]\nhidden = 8\nlevels = 2\nsteps = 2", "[tarflow]\npatch = 2\nchannels = 64\nblocks = 2\nlayers = 1"]
    {
        let mut bench = Bench::new();
        let folder = tempfile::tempdir().unwrap();
        common::pictures::pictures(folder.path());
        let spec = spec(folder.path(), family, 4);
        let [alone, used] = ["alone", "used"].map(|name| folder.path().join(name));
        let job = bench.worker.submit(Job::task(TrainOracle { spec: spec.clone(), folder: alone.clone() }));
        assert!(matches!(bench.outcome(job), Outcome::Done(_)));

        let empty = bench.worker.use_checkpoint(used.clone());
        let Outcome::Failed(why) = bench.outcome(empty) else { panic!("there is no run yet") };
        assert!(why.contains("best.json"), "{why}");

        let job = bench.worker.submit(Job::task(TrainOracle { spec, folder: used.clone() }));
        bench.until(|event| match event {
            Event::Task { news, .. } => {
                news.event::<TrainOracle>().filter(|said| matches!(said, TrainEvent::Samples { .. })).map(drop)
            }
            _ => None,
        });
        let adopted = bench.worker.use_checkpoint(used.clone());
        let info = bench.until(|event| match event {
            Event::Oracle { info, .. } => Some(info.clone()),
            Event::JobEnded { id, outcome: Outcome::Failed(why) } if *id == adopted => panic!("{why}"),
            _ => None,
        });
        assert!(info.name.starts_with("halves after epoch "), "{}", info.name);
        assert_eq!(info.class_names, ["left", "right"]);
        assert_eq!(bench.outcome(adopted), Outcome::Done(format!("{} is open", info.name)));
        let request = GalleryRequest { settings: Settings::default_for(2), ..request(2, 6, 1.0, Vec::new()) };
        bench.worker.show(request);
        assert_eq!(bench.gallery(2).iter().map(|update| update.tiles.len()).sum::<usize>(), 6);
        assert!(matches!(bench.outcome(job), Outcome::Done(_)));
        assert!(weights(&alone) == weights(&used), "using a checkpoint changed the run");

        // The world stays open after the run, and opens again by its folder.
        let job = bench.worker.submit(Job::OpenOracle(used.join(SO_FAR).display().to_string()));
        assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    }
}

/// A walk that has begun. It is of the open oracle: no other opens above it.
fn walk_under_way(bench: &mut Bench) -> JobId {
    let (from, to) = (Subject::Sample { spec: super::spec(8), index: 0 }, Destination::Sample(1));
    let walk = WalkToBoundary { from, to, steps: 10_000, samples: super::spec(8), settings: settings(1.0) };
    let walk = bench.worker.submit(Job::task(walk));
    bench.until(|event| matches!(event, Event::Task { .. }).then_some(()));
    walk
}

#[test]
fn one_that_is_cancelled_or_replaced_while_it_waits_opens_nothing() {
    let mut bench = Bench::new();
    let walk = walk_under_way(&mut bench);
    let first = bench.worker.use_checkpoint("/nosuch/first".into());
    bench.worker.cancel(first);
    assert_eq!(bench.outcome(first), Outcome::Cancelled);
    let second = bench.worker.use_checkpoint("/nosuch/second".into());
    let third = bench.worker.use_checkpoint("/nosuch/third".into());
    assert_eq!(bench.outcome(second), Outcome::Cancelled);
    bench.worker.cancel(walk);
    assert!(matches!(bench.outcome(third), Outcome::Failed(why) if why.contains("third")));
    let count =
        |wanted: fn(&Event) -> Option<u64>, job| bench.seen.iter().filter_map(wanted).filter(|id| *id == job).count();
    let ends = |event: &Event| if let Event::JobEnded { id, .. } = event { Some(*id) } else { None };
    let starts = |event: &Event| if let Event::JobStarted { id } = event { Some(*id) } else { None };
    for job in [first, second] {
        assert_eq!((count(ends, job), count(starts, job)), (1, 0), "job {job}");
    }
}

#[test]
fn one_that_is_held_waits_until_it_is_let_go() {
    let mut bench = Bench::new();
    let walk = walk_under_way(&mut bench);
    let held = bench.worker.use_checkpoint("/nosuch/held".into());
    bench.worker.set_paused(held, true);
    bench.worker.cancel(walk);
    assert_eq!(bench.outcome(walk), Outcome::Cancelled);
    // What was asked for later is done: the worker is past it, and it is no reason to stop other work.
    bench.worker.show(request(3, 6, 1.0, Vec::new()));
    assert!(!bench.gallery(3).is_empty());
    let job = bench.worker.submit(Job::OpenOracle("mnist".into()));
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    let of_it = |event: &Event| matches!(event, Event::JobStarted { id } | Event::JobEnded { id, .. } if *id == held);
    assert!(!bench.seen.iter().any(of_it), "it did not wait");
    bench.worker.set_paused(held, false);
    assert!(matches!(bench.outcome(held), Outcome::Failed(why) if why.contains("held")));
}
