//! External runs: a folder that this program makes, records that others write, and every figure computed anew by the formulas of theory §4.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod common;
#[path = "external/folders.rs"]
mod folders;
#[path = "external/law.rs"]
mod law;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use bayescope::events::silent;
use bayescope::flow::Precision;
use bayescope::flow::glow::GlowFlow;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::judge::Kind;
use bayescope::measure::Estimate;
use bayescope::oracle::world::{SampleSpec, Settings, World};
use bayescope::run::external::{
    Course, ExternalFolder, Header, PREDICTIONS, STEPS, StartExternal, StepFigures, csv, figures,
};
use bayescope::run::{AnyRun, RunFolder};
use bayescope::units::Seed;
use burn::tensor::Device;
use common::reference::GlowReference;
use statrs::distribution::{ContinuousCDF, StudentsT};

const IMAGES: usize = 60;
const CLASSES: usize = 4;

/// The world of config1: 1×8×8, 4 classes that overlap.
fn world() -> World {
    let (config, weights) =
        common::reference::read_glow(&GlowReference::read("config1").checkpoint(".safetensors")).unwrap();
    let flow = GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), Precision::F32).unwrap();
    World::new(Box::new(flow), (0..CLASSES).map(|c| format!("class {c}")).collect(), 16).unwrap()
}

fn start(place: &Path, predictions: Kind) -> StartExternal {
    StartExternal {
        folder: place.join("run"),
        name: "theirs".into(),
        oracle: "config1".into(),
        settings: Settings::default_for(CLASSES),
        precision: Precision::F32,
        images: IMAGES,
        seed: Seed(5),
        predictions,
        train_images: None,
    }
}

fn made(place: &Path, predictions: Kind) -> ExternalFolder {
    start(place, predictions).make(&world(), "0123", &mut silent()).unwrap()
}

/// Numbers without a pattern, in ]-1, 1[.
fn number(seed: u64) -> f64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn logits(step: u64) -> Vec<f32> {
    (0..(IMAGES * CLASSES) as u64).map(|i| (4.0 * number(1000 * step + i)) as f32).collect()
}

/// A record as the document tells others to write it.
fn record(line: &str, descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    header += &" ".repeat(63 - (10 + header.len()) % 64);
    header.push('\n');
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [line.as_bytes(), b"\n\x93NUMPY\x01\x00", &length, header.as_bytes(), data].concat()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn path(run: &ExternalFolder, step: u64) -> PathBuf {
    run.path.join(PREDICTIONS).join(format!("{step:09}.pred"))
}

fn log(run: &ExternalFolder, step: u64, line: &str, values: &[f32]) {
    let bytes = record(line, "<f4", &format!("({IMAGES}, {CLASSES})"), &floats(values));
    let temporary = run.path.join(PREDICTIONS).join("writing");
    std::fs::write(&temporary, bytes).unwrap();
    std::fs::rename(temporary, path(run, step)).unwrap();
}

/// An array of the folder, by another reader than ours.
fn array<T: npyz::Deserialize>(run: &ExternalFolder, name: &str) -> Vec<T> {
    npyz::NpyFile::new(std::fs::File::open(run.path.join("test").join(name)).unwrap()).unwrap().into_vec().unwrap()
}

fn read(run: &ExternalFolder) -> Course {
    run.look(None, usize::MAX).unwrap()
}

fn assert_near(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{what}: {found}, not {expected}");
}

/// Mean and half of Student's 95 % interval, by the textbook.
fn student(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let t = StudentsT::new(0.0, 1.0, n - 1.0).unwrap().inverse_cdf(0.975);
    (mean, t * (squares / (n * (n - 1.0))).sqrt())
}

/// Value and interval of a mean of numbers ≥ 0.
fn assert_mean(what: &str, found: Estimate, values: &[f64]) {
    let (mean, half) = student(values);
    assert_near(what, found.value, mean);
    assert_near(what, found.interval.low, (mean - half).max(0.0));
    assert_near(what, found.interval.high, mean + half);
}

/// The same of shares, with what images that were not seen may add where fewer than 30 are in doubt, or are not: 3 of n may be
/// of another kind.
fn assert_share(what: &str, found: Estimate, values: &[f64]) {
    let (mean, half) = student(values);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let doubtful = values.iter().filter(|value| **value - least > 0.1).count();
    let few = doubtful.min(values.len() - doubtful) < 30;
    let unseen = if few { 3.0 / values.len() as f64 } else { 0.0 };
    assert_near(what, found.value, mean);
    assert_near(what, found.interval.low, ((mean - half).max(0.0) - unseen * mean).max(0.0));
    assert_near(what, found.interval.high, ((mean + half).min(1.0) + unseen * (1.0 - mean)).min(1.0));
}

/// Every figure of a step from p [n, K], q [n, K] and labels [n], image after image.
fn assert_figures(found: &StepFigures, p: &[f64], q: &[f64], labels: &[i64]) {
    let n = labels.len();
    let rows = || p.chunks(CLASSES).zip(q.chunks(CLASSES));
    let sums = |term: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
        rows().map(|(p, q)| p.iter().zip(q).map(|(&p, &q)| if p > 0.0 { term(p, q) } else { 0.0 }).sum()).collect()
    };
    let first_largest = |row: &[f64]| (0..CLASSES).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
    let decisions: Vec<usize> = rows().map(|(_, q)| first_largest(q)).collect();
    let right: Vec<f64> = rows().zip(&decisions).map(|((p, _), &d)| p[d]).collect();
    let sure: Vec<f64> = rows().zip(&decisions).map(|((_, q), &d)| q[d]).collect();
    let hits: Vec<f64> = decisions.iter().zip(labels).map(|(&d, &y)| if d as i64 == y { 1.0 } else { 0.0 }).collect();
    assert_mean("L", found.cross_entropy, &sums(&|p, q| -p * q.ln()));
    assert_near("A", found.aleatoric.value, student(&sums(&|p, _| -p * p.ln())).0);
    assert_mean("KL", found.epistemic, &sums(&|p, q| p * (p / q).ln()));
    let nll: Vec<f64> = q.chunks(CLASSES).zip(labels).map(|(q, &y)| -q[y as usize].ln()).collect();
    assert_mean("NLL", found.nll, &nll);
    assert_share("expected error", found.expected_error, &right.iter().map(|p| 1.0 - p).collect::<Vec<_>>());
    let best = |p: &[f64]| 1.0 - p.iter().copied().fold(0.0, f64::max);
    assert_near("Bayes error", found.bayes_error.value, student(&p.chunks(CLASSES).map(best).collect::<Vec<_>>()).0);
    assert_near("error", found.error.value, 1.0 - hits.iter().sum::<f64>() / n as f64);
    // Wilson's interval as roots of (x − s)² = z² x (1 − x) / n.
    for x in [found.error.interval.low, found.error.interval.high] {
        let z2 = 1.959_963_984_540_054f64.powi(2) / n as f64;
        assert_near("Wilson", (x - found.error.value).powi(2), z2 * x * (1.0 - x));
    }
    let calibration = |truth: &[f64]| -> f64 {
        let bin = |b: usize| {
            let inside = |c: f64| c > b as f64 / 15.0 && c <= (b + 1) as f64 / 15.0;
            sure.iter().zip(truth).filter(|(c, _)| inside(**c)).map(|(c, t)| c - t).sum::<f64>()
        };
        (0..15).map(|b| bin(b).abs()).sum::<f64>() / n as f64
    };
    assert_near("ECE", found.ece, calibration(&hits));
    assert_near("exact calibration error", found.exact_calibration_error, calibration(&right));
    let whole = found.aleatoric.value + found.epistemic.value;
    assert_near("L = A + KL", found.cross_entropy.value, whole);
}

fn softmax(logits: &[f32]) -> Vec<f64> {
    let of = |row: &[f32]| {
        let weights: Vec<f64> = row.iter().map(|&v| f64::from(v).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(move |w| w / sum)
    };
    logits.chunks(CLASSES).flat_map(of).collect()
}

#[test]
fn every_figure_follows_from_the_logged_predictions() {
    let place = tempfile::tempdir().unwrap();
    let kinds = [(Kind::Logits, "a"), (Kind::LogProbabilities, "b"), (Kind::Probabilities, "c")];
    for (kind, name) in kinds {
        let run = made(&place.path().join(name), kind);
        let (p, y): (Vec<f64>, Vec<i64>) = (array(&run, "posterior.npy"), array(&run, "y.npy"));
        for step in [3, 40, 500] {
            let q = softmax(&logits(step));
            let values: Vec<f32> = match kind {
                Kind::Logits => logits(step),
                Kind::LogProbabilities => q.iter().map(|q| q.ln() as f32).collect(),
                Kind::Probabilities => q.iter().map(|&q| q as f32).collect(),
            };
            let line = r#"{"epoch": 1.5, "images": 640, "seconds": 2.25, "train_loss": 0.75, "lr": 0.1}"#;
            log(&run, step, if step == 40 { "{}" } else { line }, &values);
        }
        let course = read(&run);
        let steps: Vec<StepFigures> = course.steps().collect();
        assert_eq!(steps.iter().map(|s| s.step).collect::<Vec<_>>(), [3, 40, 500]);
        assert_eq!((steps[0].epoch, steps[0].images, steps[0].seconds), (Some(1.5), Some(640), Some(2.25)));
        assert_eq!((steps[0].train_loss, steps[1].train_loss, course.refused().len()), (Some(0.75), None, 0));
        // Bootstrap intervals, the same at every step and of the last one's figures.
        let (summary, _) = run.summary().unwrap();
        let (last, whole) = (summary.steps.last().unwrap(), summary.last.clone().unwrap());
        let common = (whole.aleatoric, whole.bayes_accuracy.complement());
        for found in steps {
            assert_eq!((found.aleatoric, found.bayes_error), common);
            // What was logged, not what was meant: 32-bit probabilities are normalised anew.
            let logged = softmax(&logits(found.step));
            let q: Vec<f64> = match kind {
                Kind::Logits => logged,
                Kind::LogProbabilities => normalised(logged.iter().map(|q| f64::from(q.ln() as f32).exp())),
                Kind::Probabilities => normalised(logged.iter().map(|&q| f64::from(q as f32))),
            };
            assert_figures(&found, &p, &q, &y);
        }
        assert_near("L of all figures", whole.cross_entropy.value, last.cross_entropy.value);
        assert_near("ECE of all figures", whole.ece.value, last.ece);
        let best = summary.steps.iter().map(|s| s.epistemic.value).fold(f64::INFINITY, f64::min);
        assert_eq!(summary.best().unwrap().epistemic.value, best);
        let drawn = figures(&run.spec, &course);
        assert_eq!(drawn.len(), 3);
        assert_eq!(drawn[0].series[1].points[2].y, last.epistemic.value);
        assert_eq!(csv(&course).lines().count(), 4);
    }
}

fn normalised(q: impl Iterator<Item = f64>) -> Vec<f64> {
    let q: Vec<f64> = q.collect();
    q.chunks(CLASSES).flat_map(|row| row.iter().map(|q| q / row.iter().sum::<f64>())).collect()
}

#[test]
fn what_this_program_logs_is_what_others_log() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    assert_eq!(run.last_step().unwrap(), None);
    let header = Header { epoch: Some(0.5), images: Some(7), seconds: None, train_loss: Some(f64::NAN) };
    run.log(12, &header, &logits(12)).unwrap();
    run.log(12, &header, &logits(13)).unwrap();
    let (ours, step) = (std::fs::read(path(&run, 12)).unwrap(), read(&run).steps().next().unwrap());
    assert_eq!((step.epoch, step.images, step.train_loss), (Some(0.5), Some(7), None));
    let line = String::from_utf8(ours.split(|&c| c == b'\n').next().unwrap().to_vec()).unwrap();
    log(&run, 12, &line, &logits(13));
    assert_eq!(read(&run).steps().next().unwrap(), step);
    assert_eq!(ours[line.len() + 1..], std::fs::read(path(&run, 12)).unwrap()[line.len() + 1..]);
    assert!(run.log(13, &header, &logits(13)[1..]).unwrap_err().to_string().contains("239 predictions"));
    assert_eq!(run.last_step().unwrap(), Some(12));
    run.finish().unwrap();
    assert!(read(&run).finished);
}

#[test]
fn the_test_images_are_those_of_an_export_with_their_posteriors() {
    let place = tempfile::tempdir().unwrap();
    let (run, world) = (made(place.path(), Kind::Logits), world());
    let indices: Vec<usize> = (0..IMAGES).collect();
    let spec = SampleSpec::new(IMAGES, Seed(5).split("export").split("test"));
    let settings = Settings::default_for(CLASSES);
    let drawn = |some: &[usize]| world.sample_indices(&spec, &settings, some).unwrap();
    let samples: Vec<_> = indices.chunks(16).flat_map(drawn).collect();
    let (x, y, p): (Vec<f32>, Vec<i64>, Vec<f64>) =
        (array(&run, "x.npy"), array(&run, "y.npy"), array(&run, "posterior.npy"));
    assert_eq!(x, samples.iter().flat_map(|s| s.x.clone()).collect::<Vec<_>>());
    assert_eq!(y, samples.iter().map(|s| s.label as i64).collect::<Vec<_>>());
    assert_eq!(p, samples.iter().flat_map(|s| s.posterior.probabilities.clone()).collect::<Vec<_>>());
}

#[test]
fn a_killed_writer_harms_nothing_and_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    (1..=3).for_each(|step| log(&run, step, "{}", &logits(step)));
    // Killed while it wrote step 4: the name of a record is not there yet.
    let whole = record("{}", "<f4", &format!("({IMAGES}, {CLASSES})"), &floats(&logits(4)));
    std::fs::write(run.path.join(PREDICTIONS).join("writing"), &whole[..whole.len() / 2]).unwrap();
    let before = read(&run);
    assert_eq!((before.records, before.steps().count(), before.refused().len()), (3, 3, 0));
    // A disk that lost the end of a record that had its name: it alone is refused, wherever it ends.
    for length in [0, 1, 2, 5, 30, 100, whole.len() - 1] {
        std::fs::write(path(&run, 4), &whole[..length]).unwrap();
        let torn = run.look(Some(&before), usize::MAX).unwrap();
        assert_eq!((torn.steps().count(), torn.refused()[0].step), (3, 4), "{length} bytes");
    }
    let torn = read(&run);
    // The resumed writer begins again after step 2: what it logs anew replaces what was there.
    log(&run, 3, r#"{"epoch": 9}"#, &logits(33));
    log(&run, 4, "{}", &logits(4));
    let after = run.look(Some(&torn), usize::MAX).unwrap();
    assert_eq!(after, read(&run), "what was taken over is not what is there");
    assert!(after.refused().is_empty() && after.steps().count() == 4);
    let third = |course: &Course| course.steps().nth(2).unwrap();
    assert_ne!(third(&after), third(&before));
    assert_eq!(third(&after).epoch, Some(9.0));
    assert!(!after.finished);
    std::fs::write(run.path.join("finished"), "").unwrap();
    assert!(read(&run).finished);
}

#[test]
fn a_long_run_is_read_in_parts_and_within_bounds() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    (1..=2000).for_each(|step| log(&run, step, "{}", &logits(step)));
    let begun = Instant::now();
    let whole = read(&run);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!((whole.steps().count(), whole.every, whole.waiting), (2000, 1, 0));
    // In parts: the last at once, the first part over the whole course, in the end the same.
    let mut parts = run.look(None, 100).unwrap();
    let seen: Vec<u64> = parts.steps().map(|step| step.step).collect();
    assert_eq!((seen.len(), parts.waiting, seen[0], seen[99]), (100, 1900, 1, 2000));
    assert!(seen.windows(2).all(|two| two[1] - two[0] <= 64), "{seen:?}");
    while parts.waiting > 0 {
        parts = run.look(Some(&parts), 700).unwrap();
    }
    assert_eq!(parts, whole);
    // Nothing new: no record is opened again, so that the test images are not needed.
    std::fs::remove_file(run.path.join("test/posterior.npy")).unwrap();
    assert_eq!(run.look(Some(&whole), usize::MAX).unwrap(), whole);
    assert!(run.look(None, 1).unwrap_err().to_string().contains("posterior.npy"));
}

#[test]
fn more_records_than_are_kept_are_thinned() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    let folder = run.path.join(PREDICTIONS);
    // Empty files: what is counted is how many are looked at.
    let records = STEPS + 10;
    (0..records).for_each(|step| std::fs::write(folder.join(format!("{step}.pred")), "").unwrap());
    log(&run, records as u64, "{}", &logits(1));
    let course = read(&run);
    assert_eq!((course.records, course.every), (records + 1, 2));
    assert_eq!(course.refused().len() + course.steps().count(), (records + 1).div_ceil(2));
    assert_eq!(course.steps().next_back().unwrap().step, records as u64);
}

#[test]
fn what_is_no_record_is_refused_in_words() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Probabilities);
    let shape = format!("({IMAGES}, {CLASSES})");
    let fine: Vec<f32> = softmax(&logits(1)).iter().map(|&q| q as f32).collect();
    let with = |at: usize, value: f32| {
        let mut values = fine.clone();
        values[at] = value;
        record("{}", "<f4", &shape, &floats(&values))
    };
    let of = |line: &str| record(line, "<f4", &shape, &floats(&fine));
    let whole_numbers: Vec<u8> = (0..IMAGES * CLASSES).flat_map(|i| (i as i64).to_le_bytes()).collect();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"\x89PNG\r\n\x1a\n....".to_vec(), "is no record"),
        (floats(&fine), "is no record"),
        (vec![b'{'; 1 << 13], "is no record"),
        (of(r#"{"train_loss": NaN}"#), "first line is not understood"),
        (of(r#"{"epoch": "one"}"#), "first line is not understood"),
        (b"{}\nstep,loss\n1,0.5\n".to_vec(), "NPY format"),
        (record("{}", "<f4", "(4, 60)", &floats(&fine)), "shape [4, 60]; floating-point numbers of shape [60, 4]"),
        (record("{}", "<i8", &shape, &whole_numbers), "type <i8"),
        (vec![b'{'; 1 << 20], "is larger than"),
        (with(7, f32::NAN), "image 1: class 3 is NaN"),
        (with(8, -0.5), "image 2: class 0 has the negative probability"),
        (with(9, 3.0), "says that predictions are probabilities"),
    ];
    for (step, (bytes, _)) in cases.iter().enumerate() {
        std::fs::write(path(&run, step as u64), bytes).unwrap();
    }
    std::fs::create_dir(path(&run, 90)).unwrap();
    std::fs::write(run.path.join(PREDICTIONS).join("notes.txt"), "mine").unwrap();
    log(&run, 99, "{}", &fine);
    let course = read(&run);
    for (refused, (_, cause)) in course.refused().iter().zip(&cases) {
        assert!(refused.why.contains(cause), "{refused:?}, not {cause:?}");
        assert!(!refused.why.contains("--kind"), "no command that reads records has it: {refused:?}");
    }
    assert_eq!(course.refused().len(), cases.len() + 1);
    assert!(course.refused()[cases.len()].why.contains("is not a regular file"));
    assert_eq!(course.steps().map(|step| step.step).collect::<Vec<_>>(), [99]);
}
