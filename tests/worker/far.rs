//! The worker on another machine's device: the gallery comes from there, the way is timed, and a connection that is gone is told,
//! tried again, and replaced by the CPU.

use std::time::{Duration, Instant};

use bayescope::device::{DeviceChoice, DeviceReport};
use bayescope::worker::protocol::{Event, Job, Outcome, RemoteNews};

use super::{Bench, request};
use crate::common::lender::Lender;

fn choice(lender: &Lender) -> DeviceChoice {
    lender.address.parse().unwrap()
}

/// The next report of a device.
fn device(bench: &mut Bench) -> DeviceReport {
    bench.until(|event| match event {
        Event::Device(report) => Some(report.clone()),
        _ => None,
    })
}

/// The next news that the connection is tried again.
fn trying(bench: &mut Bench) -> (String, usize) {
    bench.until(|event| match event {
        Event::Remote(RemoteNews::Trying { reason, attempt, .. }) => Some((reason.clone(), *attempt)),
        _ => None,
    })
}

fn tiles(bench: &mut Bench, generation: u64) -> usize {
    bench.worker.show(request(generation, 40, 1.0, Vec::new()));
    bench.gallery(generation).iter().filter(|update| update.generation == generation).map(|u| u.tiles.len()).sum()
}

/// A worker that has moved to a lent device.
fn moved_to(lender: &Lender) -> Bench {
    let mut bench = Bench::new();
    bench.worker.submit(Job::UseDevice(choice(lender)));
    device(&mut bench);
    bench.until(|event| matches!(event, Event::Oracle { .. }).then_some(()));
    bench
}

#[test]
fn a_lender_that_dies_and_comes_back_is_connected_again() {
    let mut lender = Lender::start();
    let mut bench = Bench::new();
    let job = bench.worker.submit(Job::UseDevice(choice(&lender)));
    assert_eq!(device(&mut bench).used.choice, choice(&lender));
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    assert_eq!(tiles(&mut bench, 1), 40);
    let latency = bench.until(|event| match event {
        Event::Remote(RemoteNews::Latency(latency)) => latency.median_and_worst_ms(),
        _ => None,
    });
    assert!(latency[0] > 0.0 && latency[0] <= latency[1] && latency[1] < 60_000.0, "{latency:?}");
    // An open gallery, and the lender dies.
    bench.worker.show(request(2, 2000, 1.1, Vec::new()));
    bench.wait(|bench| bench.worker.take_gallery().filter(|update| update.generation == 2));
    lender.kill();
    let (reason, attempt) = trying(&mut bench);
    assert!(reason.contains(&lender.address) && reason.contains("connection is gone") && attempt == 1, "{reason}");
    let _back = lender.again();
    let report = device(&mut bench);
    assert_eq!((report.used.choice, report.asked), (choice(&lender), choice(&lender)));
    bench.until(|event| matches!(event, Event::Oracle { .. }).then_some(()));
    assert_eq!(tiles(&mut bench, 3), 40);
    let restarted = bench.seen.iter().any(|event| matches!(event, Event::Restarted { .. }));
    assert!(!restarted, "the worker fell");
}

#[test]
fn nobody_comes_back_and_the_cpu_takes_over_with_what_was_asked() {
    let mut lender = Lender::start();
    let mut bench = moved_to(&lender);
    lender.kill();
    // It is noticed with nothing to do, too.
    assert_eq!(trying(&mut bench).1, 1);
    // What is asked for meanwhile waits, and is done afterwards.
    let job = bench.worker.submit(Job::OpenOracle("mnist".into()));
    let report = device(&mut bench);
    assert_eq!((report.used.choice, report.asked), (DeviceChoice::Cpu, choice(&lender)));
    assert!(report.reason.contains(&lender.address) && report.reason.contains("nobody listens"), "{}", report.reason);
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    assert_eq!(tiles(&mut bench, 1), 40);
    // The button "Connect again".
    let _back = lender.again();
    bench.worker.submit(Job::UseDevice(report.asked));
    assert_eq!(device(&mut bench).used.choice, choice(&lender));
}

#[test]
fn choosing_another_device_ends_the_tries() {
    let mut lender = Lender::start();
    let mut bench = moved_to(&lender);
    lender.kill();
    while trying(&mut bench).1 < 3 {}
    let chosen = Instant::now();
    let job = bench.worker.submit(Job::UseDevice(DeviceChoice::Cpu));
    let report = device(&mut bench);
    assert_eq!((report.used.choice, report.asked), (DeviceChoice::Cpu, DeviceChoice::Cpu));
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
    assert!(chosen.elapsed() < Duration::from_secs(20), "the waits went on for {:?}", chosen.elapsed());
    assert_eq!(tiles(&mut bench, 1), 40);
}

#[test]
fn a_wrong_token_leaves_the_device_as_it_was() {
    let lender = Lender::with(&["--device", "cpu", "--bind", "127.0.0.1:0"], "hunter2");
    let mut bench = Bench::new();
    let job = bench.worker.submit(Job::UseDevice(choice(&lender)));
    let Outcome::Failed(message) = bench.outcome(job) else { panic!("connected without the token") };
    assert!(message.contains(&lender.address) && message.contains("token is wanted"), "{message}");
    assert_eq!(tiles(&mut bench, 1), 40);
}
