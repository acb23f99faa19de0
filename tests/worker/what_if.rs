//! Pinned images, the grid between them and passes under every class, as jobs of the worker.

use std::path::Path;
use std::sync::Arc;

use bayescope::data::Fit;
use bayescope::oracle::pictures::Fits;
use bayescope::task::Task;
use bayescope::worker::protocol::{Asked, Event, EvidenceRequest, Job, JobId, Outcome, Pasted, Subject, Tile};
use bayescope::worker::save::SaveSamples;
use bayescope::worker::what_if::{CompareImages, GridBetween, Pin, SideBySide, UnderEveryClass};

use super::{Bench, settings, spec};

fn pin(subject: Subject) -> Pin {
    Pin { name: format!("{subject:?}"), subject, settings: settings(1.0), x: None }
}

fn sample(index: usize) -> Pin {
    pin(Subject::Sample { spec: spec(8), index })
}

/// Does a job that must succeed.
fn done(bench: &mut Bench, job: Job) -> JobId {
    let id = bench.worker.submit(job);
    let outcome = bench.outcome(id);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    id
}

fn compared(bench: &mut Bench, pins: &[Pin]) -> Arc<SideBySide> {
    let task = CompareImages { pins: pins.to_vec(), pair: None, settings: settings(1.0) };
    let job = done(bench, Job::task(task));
    let report = bench.seen.iter().find_map(|event| match event {
        Event::Task { id, news } if *id == job => news.report::<CompareImages>(),
        _ => None,
    });
    report.expect("the images were compared")
}

/// Shows a sample as an image from outside.
fn outside(bench: &mut Bench, index: usize, path: &Path) {
    let save = SaveSamples {
        spec: spec(8),
        indices: vec![index],
        settings: settings(1.0),
        look: None,
        sheet: false,
        path: path.to_owned(),
    };
    done(bench, Job::task(save));
    let (paths, fits) = (vec![path.to_owned()], Fits::default());
    done(bench, Job::Classify { paths, fits, settings: settings(1.0), again: None });
}

/// The images that a job of this type told.
fn told<T: Task<Event = Tile>>(bench: &Bench, job: JobId) -> Vec<Tile> {
    let tile = |event: &Event| match event {
        Event::Task { id, news } if *id == job => news.event::<T>().cloned(),
        _ => None,
    };
    bench.seen.iter().filter_map(tile).collect()
}

#[test]
fn a_pinned_image_stays_what_it_was_when_others_take_its_place() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    outside(&mut bench, 2, &folder.path().join("a.npz"));
    let mut pins = vec![pin(bench.image(0)), sample(5)];
    let before = compared(&mut bench, &pins);
    outside(&mut bench, 6, &folder.path().join("b.npz"));
    // Another image of the same name and number lies there now. It is taken for the pinned one by nothing.
    let (subject, settings) = (pins[0].subject.clone(), settings(1.0));
    let gone = CompareImages { pins: pins.clone(), pair: None, settings: settings.clone() };
    let gone = bench.worker.submit(Job::task(gone));
    assert!(matches!(bench.outcome(gone), Outcome::Failed(why) if why.contains("no longer open")));
    bench.worker.explain(EvidenceRequest { generation: 1, subject, settings, a: 0, b: 1 });
    let why = bench.until(|event| match event {
        Event::Unanswered { asked: Asked::Evidence, why } => Some(why.clone()),
        _ => None,
    });
    assert!(why.contains("no longer open"), "{why}");
    pins[0].x = Some(before.images[0].x.clone());
    let after = compared(&mut bench, &pins);
    assert_eq!(after.pair, before.pair);
    for (after, before) in after.images.iter().zip(&before.images) {
        assert_eq!((&after.x, &after.tile.posterior), (&before.x, &before.tile.posterior));
        assert_eq!((&after.evidence, &after.difference), (&before.evidence, &before.difference));
    }
}

#[test]
fn a_picture_that_is_pasted_after_another_is_not_taken_for_it() {
    let mut bench = Bench::new();
    let paste = |bench: &mut Bench, light: usize, tau: f64| {
        // Light from one side.
        let level = |i: usize| (light + 3 * (i % 32) + 2 * (i / 32)) as u8;
        let picture = Pasted::of_rgba([32, 32], (0..32 * 32).map(|i| [level(i), level(i), level(i), 255]));
        let (fit, settings) = (Fit::default(), settings(tau));
        done(bench, Job::ClassifyPasted { picture, fit, settings, again: None });
        bench.image(0)
    };
    let a = paste(&mut bench, 40, 1.0);
    assert_eq!(paste(&mut bench, 40, 1.4), a, "at other knobs it is the same picture");
    let b = paste(&mut bench, 80, 1.4);
    assert_ne!(b, a);
    let job = bench.worker.submit(Job::task(UnderEveryClass { image: pin(a), settings: settings(1.0) }));
    assert!(matches!(bench.outcome(job), Outcome::Failed(why) if why.contains("no longer open")));
    compared(&mut bench, &[pin(b)]);
}

#[test]
fn grids_and_classes_are_told_image_by_image() {
    let mut bench = Bench::new();
    let ends = compared(&mut bench, &[sample(0), sample(1), sample(2), sample(3)]);
    let corners = (0..4).map(sample).collect();
    let job = done(&mut bench, Job::task(GridBetween { corners, columns: 4, rows: 3, settings: settings(1.0) }));
    let grid = told::<GridBetween>(&bench, job);
    assert!(grid.iter().map(|tile| tile.index).eq(0..12));
    for (corner, at) in [(0, 0), (1, 3), (2, 8), (3, 11)] {
        let (tile, end) = (&grid[at], &ends.images[corner].tile);
        assert_eq!(tile.pixels.bytes(), end.pixels.bytes());
        assert!(tile.posterior.distance(&end.posterior) < 1e-6);
    }
    let job = done(&mut bench, Job::task(UnderEveryClass { image: sample(1), settings: settings(1.0) }));
    let under = told::<UnderEveryClass>(&bench, job);
    assert!(under.iter().map(|tile| tile.label).eq(0..10));
    let own = bench.seen.iter().find_map(|event| match event {
        Event::Task { id, news } if *id == job => news.report::<UnderEveryClass>(),
        _ => None,
    });
    let own = &under[*own.expect("it came to its end")];
    assert_eq!(own.pixels.bytes(), ends.images[1].tile.pixels.bytes(), "under its own class it is itself");
    // Nothing lies between three.
    let corners = (0..3).map(sample).collect();
    let job = bench.worker.submit(Job::task(GridBetween { corners, columns: 4, rows: 3, settings: settings(1.0) }));
    assert!(matches!(bench.outcome(job), Outcome::Failed(why) if why.contains("2 or 4 images")));
}
