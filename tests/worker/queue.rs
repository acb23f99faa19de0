//! A queue that flows: short work overtakes, a held job gives its place back, and no bit depends on it.

use std::path::{Path, PathBuf};

use bayescope::oracle::pictures::Fits;
use bayescope::worker::protocol::{Event, Job, JobId, Outcome};
use bayescope::worker::save::SaveSamples;

use super::{Bench, settings, spec};

/// Samples whose drawing takes seconds.
const MANY: usize = 3000;

fn save(n: usize, path: &Path) -> Job {
    let (settings, path) = (settings(1.0), path.to_owned());
    Job::task(SaveSamples { spec: spec(n), indices: vec![], settings, look: None, sheet: false, path })
}

fn classify(path: PathBuf) -> Job {
    Job::Classify { paths: vec![path], fits: Fits::default(), settings: settings(1.0), again: None }
}

fn begun(bench: &mut Bench, job: JobId) {
    bench.until(|event| matches!(event, Event::JobProgress { id, .. } if *id == job).then_some(()));
}

fn has_ended(bench: &Bench, job: JobId) -> bool {
    bench.seen.iter().any(|event| matches!(event, Event::JobEnded { id, .. } if *id == job))
}

fn done(bench: &mut Bench, job: JobId) {
    let outcome = bench.outcome(job);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}

#[test]
fn short_work_overtakes_a_long_job_whose_bytes_stay_the_same() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let [few, alone, disturbed] = ["few.npz", "alone.npz", "disturbed.npz"].map(|name| folder.path().join(name));
    for (n, path) in [(3, &few), (MANY, &alone)] {
        let job = bench.worker.submit(save(n, path));
        done(&mut bench, job);
    }
    let long = bench.worker.submit(save(MANY, &disturbed));
    begun(&mut bench, long);
    let wrong = bench.worker.submit(classify("/nosuch.png".into()));
    assert!(matches!(bench.outcome(wrong), Outcome::Failed(why) if why.contains("/nosuch.png")));
    let image = bench.worker.submit(classify(few));
    done(&mut bench, image);
    // Another oracle serves the window from now on; the job stays in its own.
    let other = bench.worker.submit(Job::OpenOracle("cells".into()));
    done(&mut bench, other);
    assert!(!has_ended(&bench, long), "the long job was over before: nothing has overtaken it");
    let waited =
        |event: &Event| matches!(event, Event::JobWaits { id, behind: Some(on) } if (*id, *on) == (long, image));
    assert!(bench.seen.iter().any(waited), "the long job was not told that it waits");
    done(&mut bench, long);
    assert!(std::fs::read(&alone).unwrap() == std::fs::read(&disturbed).unwrap(), "what overtook changed the samples");
}

#[test]
fn a_held_job_gives_its_place_to_long_work_and_goes_on_afterwards() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let [held, next, alone] = ["held.npz", "next.npz", "alone.npz"].map(|name| folder.path().join(name));
    let first = bench.worker.submit(save(MANY, &held));
    begun(&mut bench, first);
    let second = bench.worker.submit(save(MANY, &next));
    let told =
        |event: &Event| matches!(event, Event::JobWaits { id, behind: Some(on) } if (*id, *on) == (second, first));
    bench.until(|event| told(event).then_some(()));
    bench.worker.set_paused(first, true);
    begun(&mut bench, second);
    // The upper one is held, the lower one goes on: the upper one gives way and begins again later.
    bench.worker.set_paused(second, true);
    bench.worker.set_paused(first, false);
    done(&mut bench, first);
    assert!(!has_ended(&bench, second) && !next.exists());
    bench.worker.set_paused(second, false);
    done(&mut bench, second);
    let job = bench.worker.submit(save(MANY, &alone));
    done(&mut bench, job);
    let bytes = [held, next, alone].map(|path| std::fs::read(path).unwrap());
    assert!(bytes[0] == bytes[2] && bytes[1] == bytes[2], "being held changed the samples");
}

#[test]
fn a_device_is_changed_under_a_held_job() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held.npz");
    let held = bench.worker.submit(save(MANY, &path));
    begun(&mut bench, held);
    let device = bench.worker.submit(Job::UseDevice(bayescope::device::DeviceChoice::Cpu));
    bench.worker.set_paused(held, true);
    done(&mut bench, device);
    assert!(!has_ended(&bench, held));
    bench.worker.set_paused(held, false);
    done(&mut bench, held);
    assert!(path.exists());
}

#[test]
fn what_was_asked_for_in_one_world_is_not_done_in_another() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let [before, after] = ["before.npz", "after.npz"].map(|name| folder.path().join(name));
    let mnist = bench.seen.iter().find_map(|event| match event {
        Event::Oracle { info, .. } => Some(info.weights_sha256.clone()),
        _ => None,
    });
    assert!(mnist.is_some());
    let here = bench.worker.submit_within(save(3, &before), mnist.clone());
    done(&mut bench, here);
    let other = bench.worker.submit(Job::OpenOracle("cells".into()));
    // The window has not heard of the other world yet.
    let late = bench.worker.submit_within(save(3, &after), mnist);
    done(&mut bench, other);
    let Outcome::Failed(why) = bench.outcome(late) else { panic!("knobs of one world were used in another") };
    assert!(why.contains("another world than cells") && why.contains("after.npz"), "{why}");
    assert!(before.exists() && !after.exists());
}
