//! The worst images of a step of an external run are brought into the gallery by the worker.

use bayescope::flow::Precision;
use bayescope::judge::Kind;
use bayescope::oracle::world::Settings;
use bayescope::run::external::{ExternalFolder, Header, StartExternal};
use bayescope::units::{Seed, Tau};
use bayescope::worker::cell_images::{CellImages, CellImagesRequest};
use bayescope::worker::protocol::{Event, Job, Outcome};

use super::Bench;
use super::common::tiny;

#[test]
fn the_worst_images_of_a_step_come_with_their_exact_posteriors() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path()).display().to_string();
    let (mut bench, path) = (Bench::on(&oracle), place.path().join("run"));
    let settings = Settings { tau: Tau::new(1.1).unwrap(), ..Settings::default_for(2) };
    let start = StartExternal {
        folder: path.clone(),
        name: "theirs".into(),
        oracle,
        settings: settings.clone(),
        precision: Precision::F32,
        images: 100,
        seed: Seed(3),
        predictions: Kind::Logits,
        train_images: None,
    };
    let job = bench.worker.submit(Job::task(start));
    let outcome = bench.outcome(job);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let run = ExternalFolder::open(&path).unwrap();
    // First one class is preferred, then the other: other images are the worst.
    for (step, logit) in [(10, 1.5), (20, -1.5)] {
        run.log(step, &Header::default(), &[logit, 0.0].repeat(100)).unwrap();
    }
    let request = |step: u64, world: &str| CellImagesRequest {
        which: CellImages::AtStep(step),
        folder: path.clone(),
        cell: String::new(),
        label: String::new(),
        oracle: "gaussian".into(),
        world: world.into(),
    };
    let world = run.spec.world.id();
    let mut worst = Vec::new();
    for step in [10, 20] {
        let job = bench.worker.open_cell_images(request(step, &world));
        let outcome = bench.outcome(job);
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        let shown = bench.seen.iter().rev().find_map(|event| match event {
            Event::External { tiles, settings, own_knobs, verdicts, .. } => {
                Some((tiles.clone(), settings.clone(), *own_knobs, verdicts.clone()))
            }
            _ => None,
        });
        let (tiles, knobs, own, verdicts) = shown.unwrap();
        assert_eq!((own, &knobs, tiles.len(), verdicts.len()), (true, &settings, 64, 64));
        let listed: Vec<_> = run.worst(Some(step), 64).unwrap().images.into_iter().map(|one| one.worst).collect();
        assert_eq!(verdicts, listed);
        for (tile, verdict) in tiles.iter().zip(&verdicts) {
            assert!((tile.posterior.probabilities[0] - verdict.p[0]).abs() < 1e-4, "{verdict:?}");
            assert_eq!(tile.label, verdict.label);
        }
        worst.push(verdicts[0].image);
    }
    assert_ne!(worst[0], worst[1]);
    for (request, cause) in [(request(10, "another"), "these images are of the world"), (request(9, &world), "step 9")]
    {
        let job = bench.worker.open_cell_images(request);
        let Outcome::Failed(why) = bench.outcome(job) else { panic!("it was shown") };
        assert!(why.contains(cause), "{why}");
    }
}
