//! Experiments as jobs of the worker, and looks at their folders.

use std::path::Path;

use bayescope::experiment::{CellEvent, ExperimentSpec};
use bayescope::run::{RunEvent, RunFolder};
use bayescope::worker::protocol::{Event, Job, Outcome};
use bayescope::worker::runs::{Found, WatchRequest, look};

use super::common::reference::path;
use super::{Bench, request};

fn spec(changes: &str) -> Box<ExperimentSpec> {
    let text = format!(
        "name = 'tiny'\n[world]\noracle = 'mnist'\ntau = 1.3\n[grid]\narchitectures = ['linear']\n\
         train_sizes = [50, 100, 200]\nseeds = [0, 1]\n[test]\nimages = 100\nwatched = 50\n[training]\nepochs = 2\n{changes}"
    );
    Box::new(toml::from_str(&text).unwrap())
}

fn job(folder: &Path) -> Job {
    Job::Experiment { spec: Some(spec("")), folder: folder.to_owned() }
}

fn summary(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("summary.json")).unwrap()
}

/// The newest look at a folder that satisfies.
fn watched(bench: &mut Bench, folder: &Path, holds: impl Fn(&Found) -> bool) -> Found {
    bench.worker.watch(WatchRequest { folders: vec![folder.to_owned()], cell: None });
    bench.until(|event| match event {
        Event::Looked(look) if look.folder == folder => look.found.clone().ok().filter(|found| holds(found)),
        _ => None,
    })
}

#[test]
fn an_experiment_runs_while_the_window_is_served_and_can_be_stopped_and_resumed() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    let first = bench.worker.submit(job(&whole));
    bench.worker.show(request(1, 20, 1.0, Vec::new()));
    assert!(!bench.gallery(1).is_empty());
    let outcome = bench.outcome(first);
    assert!(matches!(&outcome, Outcome::Done(text) if text.contains("6 of 6 cells")), "{outcome:?}");
    let told = |found: fn(&RunEvent) -> bool| {
        bench.seen.iter().filter(|event| matches!(event, Event::Run { event, .. } if found(event))).count()
    };
    assert_eq!(told(|event| matches!(event, RunEvent::Finished(_))), 6);
    assert_eq!(told(|event| matches!(event, RunEvent::Cell { said: CellEvent::Watched(_), .. })), 12);
    let (steps, all) = (told(|event| matches!(event, RunEvent::Cell { said: CellEvent::Step { .. }, .. })), 2 * 2 * 13);
    assert!((1..=all).contains(&steps), "{steps} of {all} steps were told");

    let second = bench.worker.submit(job(&stopped));
    bench.until(|event| {
        matches!(event, Event::Run { id, event } if *id == second && matches!(**event, RunEvent::Finished(_)))
            .then_some(())
    });
    bench.worker.cancel(second);
    assert_eq!(bench.outcome(second), Outcome::Cancelled);
    let run = RunFolder::open(&stopped).unwrap();
    assert!(run.plan.iter().filter(|planned| run.finished(&planned.id)).count() < 6);
    let third = bench.worker.submit(Job::Experiment { spec: None, folder: stopped.clone() });
    let outcome = bench.outcome(third);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    assert_eq!(summary(&whole), summary(&stopped), "a stop changed the run");
}

#[test]
fn a_run_is_watched_whoever_works_on_it() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let missing = look(&run, None, None);
    assert!(missing.found.unwrap_err().contains("is no run folder"));
    let id = bench.worker.submit(job(&run));
    bench.until(|event| {
        matches!(event, Event::Run { event, .. } if matches!(**event, RunEvent::Finished(_))).then_some(())
    });
    watched(&mut bench, &run, |found| found.finished() >= 1);
    assert!(matches!(bench.outcome(id), Outcome::Done(_)));
    let found = watched(&mut bench, &run, |found| found.finished() == 6);
    assert_eq!(found.results.summary.laws.len(), 1);
    let curve = &found.results.curves[0].points;
    assert!(curve.len() > 10 && curve.iter().all(|[_, value, low, high]| low <= value && value <= high));
    assert!(found.course.is_some_and(|course| !course.lines.is_empty()));
    // Nothing has changed: what is costly is taken over, the rest is equal.
    let before = look(&run, None, None).found.unwrap();
    let again = look(&run, None, Some(&before)).found.unwrap();
    assert!(std::sync::Arc::ptr_eq(&before.results, &again.results) && before == again);
}

#[test]
fn what_is_wrong_with_an_experiment_is_named_and_times_are_estimated() {
    // The window shows another world than that of the experiments.
    let mut bench = Bench::on(&path("tarflow/config1.pth").display().to_string());
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let failed = |bench: &mut Bench, job: Job| {
        let id = bench.worker.submit(job);
        match bench.outcome(id) {
            Outcome::Failed(why) => why,
            other => panic!("{other:?}"),
        }
    };
    let gone = Job::Experiment { spec: None, folder: run.clone() };
    assert!(failed(&mut bench, gone).contains(&run.display().to_string()));
    let mut nowhere = spec("");
    nowhere.world.oracle = "/no/oracle/here".into();
    assert!(
        failed(&mut bench, Job::Experiment { spec: Some(nowhere), folder: run.clone() }).contains("/no/oracle/here")
    );
    let broken = spec("learning_rate = -1.0");
    assert!(failed(&mut bench, Job::Experiment { spec: Some(broken), folder: run.clone() }).contains("learning_rate"));
    RunFolder::write_spec(&run, &spec("batch = 16")).unwrap();
    assert!(failed(&mut bench, job(&run)).contains("another spec"));
    let id = bench.worker.submit(Job::Estimate { spec: spec(""), folder: run.clone() });
    let estimates = bench.until(|event| match event {
        Event::Estimated { estimates, .. } => Some(estimates.clone()),
        _ => None,
    });
    assert!(matches!(bench.outcome(id), Outcome::Done(_)));
    assert_eq!((estimates[0].cells, estimates[0].steps), (6, 2 * 2 * 13));
    // Only what runs write is deleted.
    std::fs::write(run.join("mine.txt"), "mine").unwrap();
    RunFolder::delete(&run).unwrap();
    assert!(run.join("mine.txt").exists() && !RunFolder::is_run(&run));
    assert!(RunFolder::delete(&run).unwrap_err().to_string().contains("is no run folder"));
}
