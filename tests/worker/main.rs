//! The worker as a face sees it, on the CPU and the bundled oracle.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;

mod bayes;
mod checkpoint;
mod class_map;
mod draw;
mod experiment;
mod external;
#[cfg(feature = "lend")]
mod far;
mod faults;
mod fetch;
mod hardness;
mod judge;
mod keys;
mod outside;
mod queue;
#[allow(dead_code)]
#[path = "../fetch/server.rs"]
mod server;
mod task;
mod walk;
mod what_if;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bayescope::device::DeviceChoice;
use bayescope::flow::Evidence;
use bayescope::oracle::pictures::Fits;
use bayescope::oracle::train::{TrainEvent, TrainSpec};
use bayescope::oracle::world::{SampleSpec, Settings};
use bayescope::run::TrainOracle;
use bayescope::task::ExternalImage;
use bayescope::units::{Seed, Tau};
use bayescope::worker::Worker;
use bayescope::worker::protocol::{Event, GalleryRequest, GalleryUpdate, InspectRequest, Job, JobId, Outcome, Subject};
use bayescope::worker::save::SaveSamples;
use crossbeam_channel::{Receiver, bounded};

/// A worker and the bell it rings.
struct Bench {
    worker: Worker,
    bell: Receiver<()>,
    seen: Vec<Event>,
}

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

impl Bench {
    fn new() -> Self {
        Self::on("mnist")
    }

    /// On another oracle than the bundled one.
    fn on(oracle: &str) -> Self {
        Self::at(DeviceChoice::Cpu, oracle)
    }

    /// On another device, too.
    fn at(device: DeviceChoice, oracle: &str) -> Self {
        let (ring, bell) = bounded(1);
        let wake = Arc::new(move || {
            let _ = ring.try_send(());
        });
        let mut bench = Self { worker: Worker::start(device, oracle.into(), wake), bell, seen: Vec::new() };
        bench.until(|event| matches!(event, Event::Oracle { .. }).then_some(()));
        bench
    }

    /// Polls, woken by the bell, until `found` answers.
    fn wait<T>(&mut self, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        loop {
            if let Some(answer) = found(self) {
                return answer;
            }
            if self.bell.recv_timeout(PATIENCE).is_err() {
                let waiting = std::iter::from_fn(|| self.worker.poll());
                let told: Vec<Event> = self.seen.drain(..).chain(waiting).filter(is_word).collect();
                panic!("the worker fell silent; it had said: {told:?}");
            }
        }
    }

    /// Reads events until one gives an answer.
    fn until<T>(&mut self, mut answer: impl FnMut(&Event) -> Option<T>) -> T {
        self.wait(|bench| {
            while let Some(event) = bench.worker.poll() {
                let found = answer(&event);
                bench.seen.push(event);
                if found.is_some() {
                    return found;
                }
            }
            None
        })
    }

    /// How a job ended, also one that ended while something else was waited for.
    fn outcome(&mut self, job: JobId) -> Outcome {
        let of = |event: &Event| match event {
            Event::JobEnded { id, outcome } if *id == job => Some(outcome.clone()),
            _ => None,
        };
        let told = self.seen.iter().find_map(of);
        told.unwrap_or_else(|| self.until(of))
    }

    /// An image of the set from outside that came last.
    fn image(&self, index: usize) -> Subject {
        let set = |event: &Event| match event {
            Event::External { set, .. } => Some(*set),
            _ => None,
        };
        let set = self.seen.iter().rev().find_map(set).expect("images from outside have come");
        Subject::External(ExternalImage { set, index })
    }

    /// Gallery updates until one generation is complete.
    fn gallery(&mut self, generation: u64) -> Vec<GalleryUpdate> {
        let mut updates = Vec::new();
        self.wait(|bench| {
            if let Some(update) = bench.worker.take_gallery() {
                let complete = update.generation == generation && update.progress.done == update.progress.total;
                updates.push(update);
                return complete.then_some(());
            }
            None
        });
        updates
    }
}

/// Whether an event says how the worker fares.
fn is_word(event: &Event) -> bool {
    matches!(
        event,
        Event::Failed(_) | Event::Unanswered { .. } | Event::Note(_) | Event::Restarted { .. } | Event::JobEnded { .. }
    )
}

/// Whether the cells of a map add up to its total within rounding, nats.
fn adds_up(map: &Evidence) -> bool {
    (map.sum() - map.total).abs() <= 1e-6 * (1.0 + map.total.abs())
}

fn spec(n: usize) -> SampleSpec {
    SampleSpec::new(n, Seed(4))
}

fn settings(tau: f64) -> Settings {
    Settings { tau: Tau::new(tau).unwrap(), ..Settings::default_for(10) }
}

fn request(generation: u64, n: usize, tau: f64, first: Vec<usize>) -> GalleryRequest {
    GalleryRequest { generation, spec: spec(n), settings: settings(tau), first, look: None, halted: false }
}

#[test]
fn the_gallery_comes_whole_with_what_is_in_view_first() {
    let mut bench = Bench::new();
    let first: Vec<usize> = (50..58).collect();
    bench.worker.show(request(1, 80, 1.0, first.clone()));
    let updates = bench.gallery(1);
    let order: Vec<usize> = updates.iter().flat_map(|update| update.tiles.iter().map(|tile| tile.index)).collect();
    assert_eq!(order[..8], first);
    assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), (0..80).collect());
    assert_eq!(order.len(), 80);
}

#[test]
fn only_the_newest_of_many_requests_runs_to_its_end() {
    let mut bench = Bench::new();
    for generation in 1..=40 {
        bench.worker.show(request(generation, 300, 0.05 * generation as f64, Vec::new()));
    }
    let updates = bench.gallery(40);
    let last: usize = updates.iter().filter(|u| u.generation == 40).map(|u| u.tiles.len()).sum();
    let others: usize = updates.iter().filter(|u| u.generation < 40).map(|u| u.tiles.len()).sum();
    assert_eq!(last, 300);
    assert!(others < 300, "{others} tiles of requests nobody looks at any more");
}

#[test]
fn a_gallery_that_is_stopped_keeps_what_there_is_and_goes_on_from_there() {
    let mut bench = Bench::new();
    let n = 1000;
    bench.worker.show(request(1, n, 1.0, Vec::new()));
    let made = bench.wait(|bench| bench.worker.take_gallery()).tiles.len();
    assert!(made < n);
    bench.worker.show(GalleryRequest { halted: true, ..request(2, n, 1.0, Vec::new()) });
    // Between two inspections the worker does a piece of the gallery, if there is one to do. What was made is told once more.
    let (mut kept, mut quiet) = (0, 0);
    for generation in 1.. {
        let subject = Subject::Sample { spec: spec(n), index: n - 1 };
        let (settings, taus) = (settings(1.0), Vec::new());
        bench.worker.inspect(InspectRequest { generation, subject, settings, taus, look: None });
        bench.wait(|bench| bench.worker.take_inspection().filter(|answer| answer.generation == generation));
        match bench.worker.take_gallery().filter(|update| update.generation == 2) {
            Some(update) => (kept, quiet) = (update.progress.done, 0),
            None => quiet += 1,
        }
        if quiet == 3 {
            break;
        }
    }
    assert!((made..n).contains(&kept), "{made} made, {kept} kept of {n}");
    bench.worker.show(request(3, n, 1.0, Vec::new()));
    let mut done = 0;
    while done <= kept + 1 {
        let told = |bench: &mut Bench| bench.worker.take_gallery().filter(|update| update.generation == 3);
        done = bench.wait(told).progress.done;
    }
}

#[test]
fn an_inspection_shows_the_same_latent_at_other_temperatures() {
    let mut bench = Bench::new();
    let subject = Subject::Sample { spec: spec(10), index: 3 };
    let taus = [0.0, 0.5, 1.0].map(|tau| Tau::new(tau).unwrap()).to_vec();
    bench.worker.inspect(InspectRequest { generation: 9, subject, settings: settings(1.0), taus, look: None });
    let whole = |bench: &mut Bench| bench.worker.take_inspection().filter(|inspection| inspection.missing == 0);
    let inspection = bench.wait(whole);
    assert_eq!((inspection.generation, inspection.morph.len()), (9, 3));
    assert_eq!(inspection.morph[2].1.pixels, inspection.tile.pixels);
    assert_ne!(inspection.morph[0].1.pixels, inspection.tile.pixels);
    // At τ = 0 every sample is its class mean, and its posterior is certain.
    assert_eq!(inspection.morph[0].1.posterior.entropy_nats, 0.0);
}

#[test]
fn a_device_on_which_the_world_cannot_be_opened_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let file = common::tiny::tarflow_file(folder.path(), 2, 1);
    let mut bench = Bench::on(file.to_str().unwrap());
    std::fs::remove_file(&file).unwrap();
    let told = |bench: &Bench| bench.seen.iter().filter(|event| matches!(event, Event::Device(_))).count();
    let before = told(&bench);
    let job = bench.worker.submit(Job::UseDevice(DeviceChoice::Cpu));
    let Outcome::Failed(message) = bench.outcome(job) else { panic!("a world was made of nothing") };
    assert!(message.contains("tiny1_model"), "{message}");
    assert_eq!(told(&bench), before, "the device was reported");
    bench.worker.show(GalleryRequest { settings: Settings::default_for(2), ..request(1, 4, 1.0, Vec::new()) });
    assert_eq!(bench.gallery(1).iter().map(|update| update.tiles.len()).sum::<usize>(), 4);
}

#[test]
fn a_bad_file_fails_by_name_and_nothing_else_does() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.png");
    std::fs::write(&bad, b"no picture").unwrap();
    let (paths, fits) = (vec![bad], Fits::default());
    let job = bench.worker.submit(Job::Classify { paths, fits, settings: settings(1.0), again: None });
    let Outcome::Failed(message) = bench.outcome(job) else { panic!("a bad file was read") };
    assert!(message.contains("bad.png"), "{message}");
    let job = bench.worker.submit(Job::OpenOracle("/no/oracle/here".into()));
    assert!(matches!(bench.outcome(job), Outcome::Failed(message) if message.contains("/no/oracle/here")));
    bench.worker.show(request(1, 4, 1.0, Vec::new()));
    assert_eq!(bench.gallery(1).len(), 1);
}

#[test]
fn pictures_from_outside_get_posteriors() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("digits");
    let job = bench.worker.submit(Job::task(SaveSamples {
        spec: spec(12),
        indices: vec![1, 5],
        settings: settings(0.7),
        look: None,
        sheet: false,
        path: path.clone(),
    }));
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    let (paths, fits) = (vec![path.clone()], Fits::default());
    let read = |tau| Job::Classify { paths: paths.clone(), fits: fits.clone(), settings: settings(tau), again: None };
    let job = bench.worker.submit(read(1.0));
    let tiles = bench.until(|event| match event {
        Event::External { tiles, labelled: true, .. } => Some(tiles.clone()),
        _ => None,
    });
    assert_eq!(tiles.len(), 2);
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    let subject = bench.image(1);
    let inspect = |generation| InspectRequest {
        generation,
        subject: subject.clone(),
        settings: settings(1.0),
        taus: Vec::new(),
        look: None,
    };
    bench.worker.inspect(inspect(1));
    let inspection = bench.wait(|bench| bench.worker.take_inspection());
    assert_eq!(inspection.tile.posterior, tiles[1].posterior);
    // At other knobs, and after the world was opened again, they are the same images: who names one still means it.
    for job in [read(2.0), Job::RateAgain { settings: settings(1.3) }, Job::OpenOracle("mnist".into()), read(1.0)] {
        let job = bench.worker.submit(job);
        assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    }
    assert_eq!(bench.image(1), subject);
    bench.worker.inspect(inspect(2));
    let again = bench.wait(|bench| bench.worker.take_inspection().filter(|one| one.generation == 2));
    assert_eq!(again.tile.posterior, tiles[1].posterior);
}

#[test]
fn a_job_can_be_held_serves_the_window_meanwhile_and_can_be_cancelled() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.npz");
    let job = bench.worker.submit(Job::task(SaveSamples {
        spec: spec(100_000),
        indices: vec![],
        settings: settings(1.0),
        look: None,
        sheet: false,
        path: path.clone(),
    }));
    bench.until(|event| matches!(event, Event::JobProgress { .. }).then_some(()));
    bench.worker.set_paused(job, true);
    bench.worker.show(request(1, 40, 1.0, Vec::new()));
    assert!(!bench.gallery(1).is_empty());
    bench.seen.clear();
    bench.worker.show(request(2, 40, 2.0, Vec::new()));
    bench.gallery(2);
    while let Some(event) = bench.worker.poll() {
        bench.seen.push(event);
    }
    let moved = bench.seen.iter().filter(|event| matches!(event, Event::JobProgress { .. })).count();
    assert!(moved <= 1, "the held job went on: {moved} reports");
    bench.worker.cancel(job);
    assert_eq!(bench.outcome(job), Outcome::Cancelled);
    assert!(!path.exists(), "a cancelled file is there");
    let leftovers = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(leftovers, 0);
}

#[test]
fn a_job_cancelled_in_the_queue_never_starts() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let long = |name: &str| {
        Job::task(SaveSamples {
            spec: spec(100_000),
            indices: vec![],
            settings: settings(1.0),
            look: None,
            sheet: false,
            path: folder.path().join(name),
        })
    };
    let [first, second] = ["a.npz", "b.npz"].map(|name| bench.worker.submit(long(name)));
    bench.worker.cancel(second);
    // It does not wait for its turn to be told.
    assert_eq!(bench.outcome(second), Outcome::Cancelled);
    assert!(!bench.seen.iter().any(|event| matches!(event, Event::JobEnded { id, .. } if *id == first)));
    bench.worker.cancel(first);
    assert_eq!(bench.outcome(first), Outcome::Cancelled);
    assert!(!bench.seen.iter().any(|event| matches!(event, Event::JobStarted { id } if *id == second)));
}

#[test]
fn an_oracle_is_trained_while_the_window_is_served_and_then_opens() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    common::pictures::pictures(folder.path());
    let text = "name = 'halves'\n[data]\npath = 'data'\npad_to = 8\nheld_out = 16\n[model]\nhidden = 8\nlevels = 2\nsteps = 2\n\
                [training]\nepochs = 3\nbatch = 16";
    let path = folder.path().join("spec.toml");
    std::fs::write(&path, text).unwrap();
    let spec = TrainSpec::read(&path).unwrap();
    let run = folder.path().join("run");
    let job = bench.worker.submit(Job::task(TrainOracle { spec, folder: run.clone() }));
    bench.worker.show(request(1, 8, 1.0, Vec::new()));
    assert!(!bench.gallery(1).is_empty());
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    let told = |found: fn(&TrainEvent) -> bool| {
        let train = |event: &&Event| match event {
            Event::Task { news, .. } => news.event::<TrainOracle>().is_some_and(found),
            _ => false,
        };
        bench.seen.iter().filter(train).count()
    };
    assert_eq!(told(|event| matches!(event, TrainEvent::Epoch { .. })), 3);
    assert_eq!(told(|event| matches!(event, TrainEvent::Samples { pixels, .. } if pixels.len() == 4 * 64)), 3);
    assert!(told(|event| matches!(event, TrainEvent::Step { .. })) > 0);
    let job = bench.worker.submit(Job::OpenOracle(run.join("oracle").display().to_string()));
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    let request = GalleryRequest { settings: Settings::default_for(2), ..request(2, 6, 1.0, Vec::new()) };
    bench.worker.show(request);
    assert_eq!(bench.gallery(2).iter().map(|update| update.tiles.len()).sum::<usize>(), 6);
}
