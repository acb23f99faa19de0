//! A dataset is made, a model judged on it, and its worst images are brought into the gallery: all by the worker.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bayescope::data::{Column, Split, Stored, read_array, read_logp, write_table};
use bayescope::export::{ExportDataset, ExportSpec, Format};
use bayescope::figure::Illustrated;
use bayescope::flow::Precision;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::judge::{Candidate, ReadOptions, Report};
use bayescope::oracle::folder::{self, OracleInfo};
use bayescope::oracle::world::Settings;
use bayescope::run::JudgeModels;
use bayescope::units::{Seed, Tau};
use bayescope::worker::judged_images::{JudgedImagesRequest, WorstBy};
use bayescope::worker::protocol::{Event, Job, Outcome};

use super::Bench;
use super::common::tiny;

const IMAGES: usize = 400;

/// Exports test images at τ = 1.1 under a seed.
fn export(bench: &mut Bench, oracle: &Path, folder: &Path, seed: u64) {
    let settings = Settings { tau: Tau::new(1.1).unwrap(), ..Settings::default_for(2) };
    let (oracle, formats) = (oracle.display().to_string(), vec![Format::Npz]);
    let spec =
        ExportSpec { oracle, train: 0, test: IMAGES, settings, precision: Precision::F32, seed: Seed(seed), formats };
    let job = bench.worker.submit(Job::task(ExportDataset { spec, folder: folder.to_owned(), remembers: false }));
    let outcome = bench.outcome(job);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}

/// Log-odds that are 0.7 of the truth, with those of every seventh image turned round.
fn predictions(place: &Path, odds: &[f64]) -> (PathBuf, Vec<f64>) {
    let path = place.join("tempered.npz");
    let of = |(i, odds): (usize, &f64)| if i % 7 == 0 { -0.7 * odds } else { 0.7 * odds };
    let said: Vec<f64> = odds.iter().enumerate().map(of).collect();
    let column = [Column { name: "logits", stored: Stored::F64, shape: vec![2] }];
    let rows = |rows: std::ops::Range<usize>| said[rows].iter().flat_map(|odds| [*odds, 0.0]).collect();
    write_table(&path, said.len(), &column, &mut |_, range| Ok(rows(range))).unwrap();
    (path, said)
}

fn judged(bench: &mut Bench, dataset: &Path, path: PathBuf) -> Arc<Illustrated<Report>> {
    let candidates = vec![Candidate::Predictions { path, options: ReadOptions::default() }];
    let task = JudgeModels { dataset: dataset.to_owned(), split: Split::Test, candidates, seed: Seed(0) };
    let job = bench.worker.submit(Job::task(task));
    let outcome = bench.outcome(job);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    let told = bench.seen.iter().any(
        |event| matches!(event, Event::JobProgress { id, note, .. } if *id == job && note.contains("judging tempered")),
    );
    assert!(told, "nothing was told on the way");
    let report = bench.seen.iter().find_map(|event| match event {
        Event::Task { id, news } if *id == job => news.report::<JudgeModels>(),
        _ => None,
    });
    report.unwrap()
}

/// The worst images of the model that was judged, asked for in a world.
fn worst_of(report: &Report, by: WorstBy, info: &Arc<OracleInfo>) -> JudgedImagesRequest {
    let model = &report.models[0];
    let images = if by == WorstBy::Kl { model.worst_kl.clone() } else { model.worst_gap.clone() };
    let (model, oracle, info) = (model.name.clone(), "gaussian".into(), info.clone());
    JudgedImagesRequest { model, by, images, tested: IMAGES, origin: report.origin.clone(), oracle, info }
}

/// Other worlds: of other weights, and of the same ones that pixels enter otherwise.
fn strangers(info: &OracleInfo) -> [OracleInfo; 2] {
    let pixels = Preprocessing::Gaussian { std: 0.07 };
    assert_ne!(pixels, info.pixels);
    [OracleInfo { weights_sha256: "another".into(), ..info.clone() }, OracleInfo { pixels, ..info.clone() }]
}

fn sigmoid(t: f64) -> f64 {
    1.0 / (1.0 + (-t).exp())
}

#[test]
fn the_worst_images_of_a_model_are_those_of_the_dataset_with_what_it_says_of_them() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::gaussian_file(place.path());
    let (mut bench, dataset) = (Bench::on(oracle.to_str().unwrap()), place.path().join("data"));
    export(&mut bench, &oracle, &dataset, 0);
    let archive = dataset.join("test.npz");
    let odds: Vec<f64> = read_logp(&archive).unwrap().0.chunks(2).map(|logp| logp[0] - logp[1]).collect();
    let labels = read_array(&archive, "y").unwrap();
    let (file, said) = predictions(place.path(), &odds);
    let judged = judged(&mut bench, &dataset, file);
    let report = &judged.found;
    let info = Arc::new(folder::read(oracle.to_str().unwrap()).unwrap().0);
    assert_eq!(report.origin.weights_sha256.as_ref(), Some(&info.weights_sha256));
    let request = |by: WorstBy| worst_of(report, by, &info);
    for by in [WorstBy::Kl, WorstBy::Gap] {
        let job = bench.worker.open_judged_images(request(by));
        assert!(matches!(bench.outcome(job), Outcome::Done(_)));
        let shown = bench.seen.iter().rev().find_map(|event| match event {
            Event::External { name, ids, tiles, settings, own_knobs, verdicts, .. } => {
                Some((name.clone(), ids.clone(), tiles.clone(), settings.clone(), *own_knobs, verdicts.clone()))
            }
            _ => None,
        });
        let (name, ids, tiles, settings, own, verdicts) = shown.unwrap();
        assert_eq!(name, format!("tempered: 20 worst of 400 test images by {}", by.label()));
        assert!(own && settings.tau.get() == 1.1 && verdicts.len() == 20 && tiles.len() == 20);
        for ((tile, verdict), id) in tiles.iter().zip(&verdicts).zip(&ids) {
            let i = verdict.image;
            let (p, q) = (sigmoid(odds[i]), sigmoid(said[i]));
            assert!((verdict.p[0] - p).abs() < 1e-9 && (verdict.q[0] - q).abs() < 1e-9);
            let kl = p * (p / q).ln() + (1.0 - p) * ((1.0 - p) / (1.0 - q)).ln();
            assert!((verdict.kl - kl).abs() < 1e-6 && (tile.posterior.probabilities[0] - p).abs() < 1e-9);
            assert_eq!((tile.label, verdict.label), (labels[i] as usize, labels[i] as usize));
            assert!(id.starts_with(&format!("test/{i:06}: label ")) && id.contains("tempered says"), "{id}");
        }
        let worst = |i: usize| {
            if by == WorstBy::Kl { verdicts[i].kl } else { (sigmoid(odds[verdicts[i].image].abs()) - 0.5) * 2.0 }
        };
        assert!((1..20).all(|i| worst(i - 1) >= worst(i)));
    }
    let mut failed = |request: JudgedImagesRequest| {
        let job = bench.worker.open_judged_images(request);
        let Outcome::Failed(why) = bench.outcome(job) else { panic!("it was shown") };
        why
    };
    for other in strangers(&info) {
        let elsewhere = failed(JudgedImagesRequest { info: Arc::new(other), ..request(WorstBy::Kl) });
        assert!(
            elsewhere.contains("another world than gaussian") && elsewhere.contains("gaussian_model"),
            "{elsewhere}"
        );
    }
    let mut changed = request(WorstBy::Kl);
    changed.images.iter_mut().for_each(|one| one.index = (one.index + 1) % IMAGES);
    let changed = failed(changed);
    assert!(changed.contains("is not what was judged"), "{changed}");
}
