//! Experiments as jobs of the worker, and looks at their folders.

use std::path::Path;

use bayescope::data::ImageShape;
use bayescope::experiment::{CellEvent, ExperimentSpec, read_pool};
use bayescope::oracle::posterior::Posterior;
use bayescope::oracle::world::Settings;
use bayescope::run::{EstimateTime, Run, RunEvent, RunExperiment, RunFolder, RunSettings};
use bayescope::units::Smoothing;
use bayescope::worker::cell_images::{CellImages, CellImagesRequest};
use bayescope::worker::protocol::{Event, InspectRequest, Job, Outcome};
use bayescope::worker::runs::{Contents, Found, WatchRequest, look};
use bayescope::worker::save::SaveSamples;

use super::common::reference::path;
use super::{Bench, request};

fn spec(changes: &str) -> ExperimentSpec {
    let text = format!(
        "name = 'tiny'\n[world]\noracle = 'mnist'\ntau = 1.3\n[grid]\narchitectures = ['linear']\n\
         train_sizes = [50, 100, 200]\nseeds = [0, 1]\n[test]\nimages = 100\nwatched = 50\n[training]\nepochs = 2\n{changes}"
    );
    toml::from_str(&text).unwrap()
}

fn job(folder: &Path) -> Job {
    Job::task(RunExperiment { spec: Some(spec("")), folder: folder.to_owned(), settings: RunSettings::default() })
}

/// What an experiment tells.
fn event(told: &Event) -> Option<&RunEvent> {
    match told {
        Event::Task { news, .. } => news.event::<RunExperiment>(),
        _ => None,
    }
}

fn summary(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("summary.json")).unwrap()
}

/// The newest look at a folder that satisfies.
fn watched(bench: &mut Bench, folder: &Path, holds: impl Fn(&Found) -> bool) -> Found {
    bench.worker.watch(WatchRequest { folders: vec![folder.to_owned()], ..WatchRequest::default() });
    bench.until(|event| match event {
        Event::Looked(look) if look.folder == folder => {
            look.found.as_ref().ok()?.grid().cloned().filter(|found| holds(found))
        }
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
    let told = |found: fn(&RunEvent) -> bool| bench.seen.iter().filter_map(event).filter(|event| found(event)).count();
    assert_eq!(told(|event| matches!(event, RunEvent::Finished(_))), 6);
    assert_eq!(told(|event| matches!(event, RunEvent::Cell { said: CellEvent::Watched(_), .. })), 12);
    let (steps, all) = (told(|event| matches!(event, RunEvent::Cell { said: CellEvent::Step { .. }, .. })), 2 * 2 * 13);
    assert!((1..=all).contains(&steps), "{steps} of {all} steps were told");

    let second = bench.worker.submit(job(&stopped));
    bench.until(|told| match told {
        Event::Task { id, .. } if *id == second => {
            event(told).filter(|event| matches!(event, RunEvent::Finished(_))).map(drop)
        }
        _ => None,
    });
    bench.worker.cancel(second);
    assert_eq!(bench.outcome(second), Outcome::Cancelled);
    let run = RunFolder::open(&stopped).unwrap();
    assert!(run.plan.iter().filter(|planned| run.finished(&planned.id)).count() < 6);
    let third = bench.worker.submit(Job::task(RunExperiment {
        spec: None,
        folder: stopped.clone(),
        settings: RunSettings::default(),
    }));
    let outcome = bench.outcome(third);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    assert_eq!(summary(&whole), summary(&stopped), "a stop changed the run");
}

/// A finished run in a folder, and the request for the worst images of one of its cells.
fn finished(bench: &mut Bench, path: &Path) -> (RunFolder, CellImagesRequest) {
    let id = bench.worker.submit(job(path));
    assert!(matches!(bench.outcome(id), Outcome::Done(_)));
    let run = RunFolder::open(path).unwrap();
    let world = bayescope::oracle::library::find("mnist").unwrap().info().unwrap().weights_sha256;
    let (folder, planned, oracle) = (path.to_owned(), &run.plan[0], "mnist".to_owned());
    let (cell, label) = (planned.id.clone(), planned.label());
    (run, CellImagesRequest { which: CellImages::Worst, folder, cell, label, oracle, world })
}

#[test]
fn worst_images_come_with_the_posteriors_of_the_pool_even_while_a_job_is_held() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (run, request) = finished(&mut bench, &path);
    let knobs = run.spec.world.settings(10).unwrap();
    let shape = ImageShape { channels: 1, height: 32, width: 32 };
    let pool = read_pool(&run.pool("test").unwrap(), &knobs, 100, shape).unwrap();
    // An experiment may hold the worker for hours.
    let (spec, indices, settings, long) = (super::spec(100_000), vec![], knobs.clone(), path.join("a.npz"));
    let held =
        bench.worker.submit(Job::task(SaveSamples { spec, indices, settings, look: None, sheet: false, path: long }));
    bench.until(|event| matches!(event, Event::JobProgress { .. }).then_some(()));
    bench.worker.set_paused(held, true);
    let asked = bench.worker.open_cell_images(request.clone());
    let external = |event: &Event| match event {
        Event::External { ids, tiles, settings, own_knobs, verdicts, labelled: true, .. } => {
            Some((ids.clone(), tiles.clone(), settings.clone(), *own_knobs, verdicts.clone()))
        }
        _ => None,
    };
    let (ids, tiles, settings, own, verdicts) = bench.until(external);
    assert!(matches!(bench.outcome(asked), Outcome::Done(_)));
    let kept = run.worst(&request.cell).unwrap().images;
    assert_eq!((tiles.len(), &settings, own, &verdicts), (64, &knobs, true, &kept));
    for ((tile, verdict), name) in tiles.iter().zip(&verdicts).zip(&ids) {
        let i = verdict.image;
        assert_eq!(tile.posterior.probabilities, pool.all.posterior[10 * i..10 * (i + 1)]);
        assert_eq!((tile.posterior.probabilities.as_slice(), tile.label), (verdict.p.as_slice(), pool.all.labels[i]));
        assert!(name.contains(&i.to_string()));
    }
    let inspect = |bench: &mut Bench, generation, settings: &Settings| {
        let (subject, settings, taus) = (bench.image(5), settings.clone(), Vec::new());
        bench.worker.inspect(InspectRequest { generation, subject, settings, taus, look: None });
        bench.wait(|bench| bench.worker.take_inspection())
    };
    let inspection = inspect(&mut bench, 1, &knobs);
    assert_eq!(inspection.tile.posterior, tiles[5].posterior);
    // The pool's posteriors are those before x was rounded: the inspector is told what the stored x makes of it.
    let moved = inspection.rounding.unwrap();
    // At other knobs the image itself is scored. T leaves p(x|y) as it is, and nothing was quantised: it is what the pool has, up
    // to the rounding of x.
    let smooth = Settings { smoothing: Smoothing::new(3.0).unwrap(), ..knobs.clone() };
    let inspection = inspect(&mut bench, 2, &smooth);
    assert_eq!(inspection.rounding, None, "it was computed from x as it is stored");
    let smoother = inspection.tile.posterior;
    assert!(smoother.entropy_nats > tiles[5].posterior.entropy_nats);
    for (again, pool) in smoother.log_likelihood.iter().zip(&tiles[5].posterior.log_likelihood) {
        assert!((again - pool).abs() < 0.05, "{again} {pool}");
    }
    let before = &tiles[5].posterior.probabilities;
    let stored = Posterior::new(smoother.log_likelihood.clone(), &knobs.prior, knobs.smoothing).probabilities;
    let expected = stored.iter().zip(before).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(expected > 0.0 && (moved - expected).abs() < 1e-12, "{moved} {expected}");
    bench.worker.cancel(held);
    assert_eq!(bench.outcome(held), Outcome::Cancelled);
    let again = bench.worker.submit(Job::RateAgain { settings: smooth });
    let (_, tiles, _, own, _) = bench.until(external);
    assert!(matches!(bench.outcome(again), Outcome::Done(_)) && !own);
    assert!(smoother.distance(&tiles[5].posterior) < 1e-4);
}

#[test]
fn worst_images_that_cannot_come_say_why() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let (run, request) = finished(&mut bench, &path);
    let failed = |bench: &mut Bench, request: CellImagesRequest| {
        let id = bench.worker.open_cell_images(request);
        match bench.outcome(id) {
            Outcome::Failed(why) => why,
            other => panic!("{other:?}"),
        }
    };
    let elsewhere = CellImagesRequest { world: "another".into(), ..request.clone() };
    assert!(failed(&mut bench, elsewhere.clone()).contains("other weights"));
    assert!(
        failed(&mut bench, CellImagesRequest { oracle: "digits".into(), ..elsewhere }).contains("open mnist first")
    );
    let nothing = CellImagesRequest { cell: "nothing".into(), ..request.clone() };
    assert!(failed(&mut bench, nothing).contains("no cell nothing"));
    // What was read while another oracle was being opened is not shown in it.
    let other = bench.worker.submit(Job::OpenOracle(path_of_another()));
    assert!(matches!(bench.outcome(other), Outcome::Done(_)));
    assert!(failed(&mut bench, request.clone()).contains("another oracle was opened"));
    std::fs::remove_file(run.cell(&request.cell).join("worst.json")).unwrap();
    assert!(failed(&mut bench, request.clone()).contains("before worst images were kept"));
    // Images of another pool are not taken for those the cell was measured on.
    let (next, pool) = (CellImagesRequest { cell: run.plan[1].id.clone(), ..request }, run.pool("test").unwrap());
    std::fs::copy(run.pool("train-0").unwrap(), &pool).unwrap();
    assert!(failed(&mut bench, next.clone()).contains("is not the pool this cell was measured on"));
    std::fs::remove_file(pool).unwrap();
    assert!(failed(&mut bench, next).contains("test.npz: is missing"));
}

/// An oracle that is not the bundled one.
fn path_of_another() -> String {
    path("tarflow/config1.pth").display().to_string()
}

#[test]
fn a_run_is_watched_whoever_works_on_it() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let missing = look(&run, &[], false, None);
    assert!(missing.found.unwrap_err().contains("is no run folder"));
    let id = bench.worker.submit(job(&run));
    bench.until(|told| event(told).filter(|event| matches!(event, RunEvent::Finished(_))).map(drop));
    watched(&mut bench, &run, |found| found.finished() >= 1);
    assert!(matches!(bench.outcome(id), Outcome::Done(_)));
    let found = watched(&mut bench, &run, |found| found.finished() == 6);
    assert_eq!(found.results.summary.laws.len(), 1);
    let curve = &found.results.curves[0].points;
    assert!(curve.len() > 10 && curve.iter().all(|[_, value, low, high]| low <= value && value <= high));
    assert!(found.courses.first().is_some_and(|course| !course.lines.is_empty()));
    // Nothing has changed: what is costly is taken over, the rest is equal.
    let before = look(&run, &[], false, None).found.unwrap();
    let again = look(&run, &[], false, Some(&before)).found.unwrap();
    let results = |found: &Contents| found.grid().unwrap().results.clone();
    assert!(std::sync::Arc::ptr_eq(&results(&before), &results(&again)) && before == again);
    // All courses, in the order of the plan; what is finished is read once.
    let all = look(&run, &[], true, Some(&before)).found.unwrap();
    let once_more = look(&run, &[], true, Some(&all)).found.unwrap();
    let [all, once_more] = [&all, &once_more].map(|found| found.grid().unwrap());
    let ids: Vec<&String> = all.cells.iter().map(|cell| &cell.planned.id).collect();
    assert_eq!(all.begun.iter().map(|course| &course.cell).collect::<Vec<_>>(), ids);
    assert!(all.begun.iter().all(|course| !course.lines.is_empty()) && before.grid().unwrap().begun.is_empty());
    assert!(all.begun.iter().zip(&once_more.begun).all(|(one, other)| std::sync::Arc::ptr_eq(one, other)));
}

#[test]
fn what_is_wrong_with_an_experiment_is_named_and_times_are_estimated() {
    // The window shows another world than that of the experiments.
    let mut bench = Bench::on(&path_of_another());
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let failed = |bench: &mut Bench, job: Job| {
        let id = bench.worker.submit(job);
        match bench.outcome(id) {
            Outcome::Failed(why) => why,
            other => panic!("{other:?}"),
        }
    };
    let gone = Job::task(RunExperiment { spec: None, folder: run.clone(), settings: RunSettings::default() });
    assert!(failed(&mut bench, gone).contains(&run.display().to_string()));
    let mut nowhere = spec("");
    nowhere.world.oracle = "/no/oracle/here".into();
    assert!(
        failed(
            &mut bench,
            Job::task(RunExperiment { spec: Some(nowhere), folder: run.clone(), settings: RunSettings::default() })
        )
        .contains("/no/oracle/here")
    );
    let broken = spec("learning_rate = -1.0");
    assert!(
        failed(
            &mut bench,
            Job::task(RunExperiment { spec: Some(broken), folder: run.clone(), settings: RunSettings::default() })
        )
        .contains("learning_rate")
    );
    RunFolder::write_spec(&run, &spec("batch = 16")).unwrap();
    assert!(failed(&mut bench, job(&run)).contains("another spec"));
    let id = bench.worker.submit(Job::task(EstimateTime { spec: spec(""), folder: run.clone() }));
    bench.until(|event| match event {
        Event::JobProgress { id: of, note, .. } if *of == id && note == "timed step 3 of 3" => Some(()),
        _ => None,
    });
    let estimates = bench.until(|event| match event {
        Event::Task { id: of, news } if *of == id => news.report::<EstimateTime>(),
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
