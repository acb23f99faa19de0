//! Against numpy (tests/reference/judge/make.py), and the folder of a report.

use std::ops::ControlFlow;
use std::path::PathBuf;

use burn::tensor::Device;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;

use super::*;
use crate::data::{Column, Split, Stored};
use crate::events::{Progress, silent};

fn reference() -> PathBuf {
    std::path::absolute("tests/reference/judge").unwrap()
}

pub(super) fn truth() -> Truth {
    Truth::open(&reference().join("dataset"), Split::Test, &mut silent()).unwrap()
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(reference().join("expected.json")).unwrap()).unwrap()
}

fn read(name: &str, truth: &Truth) -> Predictions {
    Predictions::read(&reference().join(name), truth, &ReadOptions::default()).unwrap()
}

/// A truth of `n` images and `k` classes: normal logits of deviation `spread`, labels drawn.
pub(super) fn toy(n: usize, k: usize, spread: f64, seed: Seed) -> Truth {
    let mut rng = seed.rng(0);
    let normal = |rng: &mut rand_chacha::ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
    let logits: Vec<f64> = (0..n * k).map(|_| spread * normal(&mut rng)).collect();
    let posterior: Vec<f64> = crate::measure::log_softmax(&logits, k).into_iter().map(f64::exp).collect();
    let mut truth = Truth {
        classes: k,
        class_names: (0..k).map(|k| format!("class {k}")).collect(),
        posterior,
        source: PosteriorSource::LogLikelihoods,
        class_decisions: None,
        labels: vec![0; n],
        ids: (0..n as i64).collect(),
        pixel_range: Some([0.0, 1.0]),
        typicality: None,
        rounding: None,
        origin: Origin { path: "toy".into(), split: "test".into(), ..Origin::default() },
    };
    redraw(&mut truth, seed.split("labels"));
    truth
}

/// New labels for the same images.
pub(super) fn redraw(truth: &mut Truth, seed: Seed) {
    let mut rng = seed.rng(0);
    for i in 0..truth.len() {
        let (u, mut sum): (f64, f64) = (rng.random(), 0.0);
        let drawn = truth.row(i).iter().position(|p| {
            sum += p;
            u < sum
        });
        truth.labels[i] = drawn.unwrap_or(truth.classes - 1);
    }
}

fn near(found: f64, expected: &Value, tolerance: f64, what: &str) {
    let expected = expected.as_f64().unwrap_or_else(|| panic!("{what}"));
    assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: {found}, numpy has {expected}");
}

fn agrees(name: &str, verdict: &Verdict, expected: &Value) {
    let found = serde_json::to_value(verdict.evaluated()).unwrap();
    let figures = "n cross_entropy aleatoric epistemic error bayes_error gap ece \
                   exact_calibration_error expected_error label_gap bayes_label_error nll";
    for figure in figures.split_whitespace() {
        near(found[figure].as_f64().unwrap(), &expected[figure], 1e-9, &format!("{name}: {figure}"));
    }
    let Examined { hits, likelihood, order, .. } = &verdict.examined;
    assert_eq!(hits.hits as u64, expected["hits"].as_u64().unwrap());
    near(hits.p_value, &expected["hits_p"], 1e-9, "hits");
    near(likelihood.z, &expected["likelihood_z"], 1e-9, "z");
    near(likelihood.p_value, &expected["likelihood_p"], 1e-6, "Chernoff");
    near(order.agreement, &expected["agreement"], 1e-9, "agreement");
    near(order.shuffled, &expected["shuffled"], 1e-9, "shuffled");
    for (class, gap) in verdict.per_class.iter().enumerate() {
        near(gap.gap.unwrap().value, &expected["class_gap"][class], 1e-9, "class gap");
        near(gap.epistemic.unwrap().value, &expected["class_kl"][class], 1e-9, "class KL");
    }
    let worst: Vec<u64> = verdict.worst_kl.iter().take(5).map(|image| image.index as u64).collect();
    assert_eq!(Value::from(worst), expected["worst_kl"]);
}

const FILES: &str = "logits.npz probs.npy half.npz names.csv pandas_index.csv \
                     plain.csv columns.parquet frame_index.parquet list.parquet";

#[test]
fn every_format_gives_the_figures_of_numpy() {
    let (truth, expected) = (truth(), expected());
    assert_eq!(truth.source, PosteriorSource::LogLikelihoods);
    for name in FILES.split_whitespace() {
        let model = read(name, &truth);
        let report = judge(&truth, &[model], Seed(1), &mut silent()).unwrap();
        agrees(name, &report.models[0], &expected[name]);
        assert!(report.models[0].alarms().is_empty(), "{name}: {:?}", report.models[0].alarms());
    }
}

#[test]
fn an_archive_says_its_split_by_its_name() {
    let place = tempfile::tempdir().unwrap();
    for name in ["train.npz", "test.npz", "other.npz", "train.16bit.npz", "test.8bit.npz", "trainer.npz"] {
        std::fs::copy(reference().join("dataset/test.npz"), place.path().join(name)).unwrap();
    }
    let split = |name: &str, asked| {
        let truth = Truth::open(&place.path().join(name), asked, &mut silent()).unwrap();
        (truth.image_name(0).split('/').next().unwrap().to_owned(), truth.origin.split)
    };
    for asked in [Split::Train, Split::Test] {
        assert_eq!(split("train.npz", asked), ("train".into(), "train".into()));
        assert_eq!(split("test.npz", asked), ("test".into(), "test".into()));
        // Beside pictures.
        assert_eq!(split("train.16bit.npz", asked), ("train".into(), "train".into()));
        assert_eq!(split("test.8bit.npz", asked), ("test".into(), "test".into()));
        for other in ["other.npz", "trainer.npz"] {
            assert_eq!(split(other, asked).1, asked.to_string());
        }
    }
}

#[test]
fn pictures_that_lose_the_posteriors_are_told_what_is_judged_instead() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("test.8bit.npz");
    let column = |name, stored, shape| Column { name, stored, shape };
    let columns = [column("y", Stored::I64, vec![]), column("midpoint_posterior", Stored::F32, vec![2])];
    let mut values = |column: usize, rows: std::ops::Range<usize>| -> Result<Vec<f64>> {
        Ok(vec![0.5 * column as f64; rows.len() * (column + 1)])
    };
    crate::data::write_table(&path, 3, &columns, &mut values).unwrap();
    let told = Truth::open(&path, Split::Test, &mut silent()).unwrap_err().to_string();
    assert!(told.contains("test.8bit.npz: pictures of so few bits lose the posteriors"), "{told}");
    assert!(told.contains("--format npz") && told.contains("--format png16"), "{told}");
}

#[test]
fn repairs_are_said() {
    let truth = truth();
    let notes = |name: &str| read(name, &truth).notes;
    let taken = |kind, called: Option<&str>| Note::Taken { kind, called: called.map(str::to_owned), told: false };
    assert_eq!(
        notes("logits.npz"),
        [Note::RowsSorted { moved: 120 }, taken(Kind::Logits, Some("logits"))],
        "37 i + 11 has no fixed point modulo 120"
    );
    assert_eq!(notes("probs.npy")[..2], [Note::ByOrder, taken(Kind::Probabilities, None)]);
    assert!(notes("half.npz").contains(&taken(Kind::LogProbabilities, Some("log_probs"))));
    assert!(matches!(notes("half.npz").last(), Some(Note::Normalised { largest }) if *largest < 1e-2));
    let names = notes("names.csv");
    assert_eq!(names[0], Note::ColumnsSorted { moved: 4 });
    assert_eq!(names[1], Note::ColumnsIgnored { names: vec!["label".into()] });
    let columns = notes("columns.parquet");
    assert_eq!(columns[0], Note::ColumnsSorted { moved: 4 });
    assert_eq!(columns[1], Note::RowsIgnored { count: 3, first: "500".into() });
    for note in names.iter().chain(&columns) {
        assert!(note.to_string().ends_with('.'), "{note}");
    }
}

/// What is done to a manifest.
type Change<'a> = &'a dyn Fn(&mut Value);

/// A copy of the dataset with other facts in its manifest.
fn altered(change: impl Fn(&mut Value)) -> (tempfile::TempDir, Result<Truth>) {
    let folder = tempfile::tempdir().unwrap();
    let from = reference().join("dataset");
    std::fs::copy(from.join("test.npz"), folder.path().join("test.npz")).unwrap();
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(from.join("dataset.json")).unwrap()).unwrap();
    change(&mut manifest);
    let text = manifest.to_string();
    crate::data::write_atomically(&folder.path().join("dataset.json"), |f| f.write_all(text.as_bytes())).unwrap();
    let truth = Truth::open(folder.path(), Split::Test, &mut silent());
    (folder, truth)
}

#[test]
fn stored_posteriors_stand_in_and_a_wrong_manifest_is_refused() {
    let (_folder, stored) = altered(|m| drop(m.as_object_mut().unwrap().remove("prior")));
    let stored = stored.unwrap();
    assert_eq!(stored.source, PosteriorSource::Stored);
    let report = judge(&stored, &[read("logits.npz", &stored)], Seed(1), &mut silent()).unwrap();
    agrees("stored", &report.models[0], &expected()["stored"]);
    let refusals: [(Change<'_>, &str); 5] = [
        (&|m| m["prior"] = serde_json::json!([]), "prior or T"),
        (&|m| m["smoothing"] = 1.0.into(), "prior or T"),
        (&|m| m["prior"] = serde_json::json!([0.5, 0.5]), "fit no world of 4 classes"),
        (&|m| m["files"]["test.npz"] = "00".into(), "changed after the export"),
        (&|m| m["class_names"] = serde_json::json!(["cat"]), "1 class names"),
    ];
    for (change, cause) in refusals {
        let (_folder, truth) = altered(change);
        let error = truth.unwrap_err().to_string();
        assert!(error.contains(cause), "{error}");
    }
    let missing = Truth::open(&reference(), Split::Test, &mut silent()).unwrap_err().to_string();
    assert!(missing.contains("test.npz"), "{missing}");
}

#[test]
fn posteriors_that_the_export_called_rounded_are_noted_with_its_counts() {
    let counted = |rounded: usize| {
        let counts = serde_json::json!({ "images": 9, "rounded": rounded, "max_drift": 0.16 });
        let (_folder, truth) = altered(|m| m["splits"]["test"]["rounding"] = counts.clone());
        let truth = truth.unwrap();
        let report = judge(&truth, &[read("logits.npz", &truth)], Seed(1), &mut silent()).unwrap();
        report.evaluated()[0].notes.iter().find(|note| note.contains("32-bit x")).cloned()
    };
    let told = counted(4).unwrap();
    assert!(told.contains("differ by more than 0.001 for 4 of 9 images (at most 0.160)"), "{told}");
    assert_eq!(counted(0), None);
}

#[test]
fn the_tests_behind_alarms_stand_beside_their_thresholds() {
    let truth = truth();
    let report = judge(&truth, &[read("logits.npz", &truth)], Seed(1), &mut silent()).unwrap();
    let table = tables(&report).pop().unwrap().text();
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert!(rows.len() == 5 && rows.iter().all(|row| row.contains("p < 2e-5")), "{table}");
    assert!(rows[2].contains("p < 2e-5, or median ≤ 1e-3"), "{table}");
}

#[test]
fn a_judgement_is_told_stage_by_stage_and_stops_where_it_is_asked_to() {
    let candidate = |name: &str| {
        let path = reference().join(name);
        Candidate::Predictions { path, options: ReadOptions::default() }
    };
    let candidates = [candidate("logits.npz"), candidate("plain.csv")];
    let run = |stop: usize| {
        let mut told: Vec<JudgeEvent> = Vec::new();
        let mut sink = |event: JudgeEvent| {
            told.push(event);
            if told.len() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let dataset = reference().join("dataset");
        let done = assess(&dataset, Split::Test, &candidates, Seed(1), &Device::flex(), &mut sink);
        (done, told)
    };
    let (report, told) = run(usize::MAX);
    assert_eq!(report.unwrap().models.len(), 2);
    let mut stages: Vec<Stage> = told.iter().map(|event| event.stage.clone()).collect();
    stages.dedup();
    let [first, second] = ["logits", "plain"].map(String::from);
    let expected = [
        Stage::Truth,
        Stage::Reading(first.clone()),
        Stage::Reading(second.clone()),
        Stage::Labels,
        Stage::Measuring(first),
        Stage::Measuring(second),
        Stage::Comparing,
    ];
    assert_eq!(stages, expected);
    for pair in told.windows(2).filter(|pair| pair[0].stage != pair[1].stage) {
        let Progress { done, total } = pair[0].progress;
        assert!(done == total || matches!(pair[0].stage, Stage::Reading(_)), "{pair:?}");
    }
    for stop in 0..told.len() {
        let (done, told) = run(stop);
        assert!(matches!(done, Err(Error::Cancelled)) && told.len() == stop + 1, "{stop}: {done:?}");
    }
}

#[test]
fn a_report_is_a_complete_folder() {
    let truth = truth();
    let mut other = read("logits.npz", &truth);
    other.name = "tempered <b>".into();
    let tempered: Vec<f64> = other.log_q.iter().map(|l| 0.5 * l).collect();
    other.log_q = crate::measure::log_softmax(&tempered, 4);
    let report = judge(&truth, &[read("logits.npz", &truth), other], Seed(1), &mut silent()).unwrap();
    let pair = &report.pairs[0];
    let [first, second] = [0, 1].map(|model| report.evaluated()[model].compared_with[0].clone());
    assert_eq!([&first.name, &second.name], [&pair.second, &pair.first]);
    assert_eq!((first.error, second.cross_entropy.negated()), (pair.error, pair.cross_entropy));
    let difference = report.models[0].measured.cross_entropy.value - report.models[1].measured.cross_entropy.value;
    assert!((pair.cross_entropy.value - difference).abs() < 1e-12 && pair.error.value == 0.0);
    let folder = tempfile::tempdir().unwrap();
    let written = write_report(folder.path(), &report).unwrap();
    assert_eq!(written.len(), 5 + 2 * 5 + 2);
    let page = std::fs::read_to_string(folder.path().join("report.md")).unwrap();
    for (at, _) in page.match_indices("](") {
        let file: String = page[at + 2..].chars().take_while(|c| *c != ')').collect();
        assert!(folder.path().join(&file).is_file(), "{file}");
    }
    let json: Value = serde_json::from_slice(&std::fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    let model = &json["models"][0];
    near(model["cross_entropy"].as_f64().unwrap(), &expected()["logits.npz"]["cross_entropy"], 1e-9, "report.json");
    assert!(model["alarms"].as_array().unwrap().is_empty() && model["intervals"]["gap"][0].is_number());
    for path in written.iter().filter(|path| path.extension().is_some_and(|e| e == "csv" || e == "svg")) {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(path.extension().unwrap() != "csv" || text.contains(&truth.origin.dataset_sha256), "{path:?}");
        assert!(!text.contains("NaN"), "{path:?}");
    }
    assert!(judge(&truth, &[], Seed(1), &mut silent()).is_err());
    let alone = judge(&toy(1, 3, 1.0, Seed(1)), &[read("logits.npz", &truth)], Seed(1), &mut silent());
    assert!(alone.unwrap_err().to_string().contains("one image says nothing"));
    // Before its file is read.
    let alone =
        judge_uncertainty(&reference().join("none.npz"), &toy(1, 3, 1.0, Seed(1)), None, Seed(1), &mut silent());
    assert!(alone.unwrap_err().to_string().contains("one image says nothing"));
    let twice = judge(&truth, &[read("plain.csv", &truth), read("plain.csv", &truth)], Seed(1), &mut silent());
    assert!(twice.unwrap_err().to_string().contains("plain"));
}

#[test]
fn doubt_about_classes_is_told_from_the_noise_of_their_labels() {
    let noise = crate::oracle::label_noise::LabelNoise::by_class(vec![0.0, 0.3, 0.3]).unwrap();
    let mut truth = toy(30, 3, 1.0, Seed(3));
    let classes: Vec<usize> = (0..30).map(|i| i % 3).collect();
    truth.posterior = classes.iter().flat_map(|&class| noise.row(class, 3)).collect();
    (truth.class_decisions, truth.origin.label_noise) = (Some(classes.clone()), Some(noise));
    let sure = |class: &usize| crate::measure::ImageDoubt { class: *class, of_class: 0.0, of_decision: 0.0 };
    assert_eq!(truth.doubts(&classes), classes.iter().map(sure).collect::<Vec<_>>());
    let wrong: Vec<usize> = classes.iter().map(|class| (class + 1) % 3).collect();
    assert!(truth.doubts(&wrong).iter().all(|doubt| doubt.of_class == 0.0 && doubt.of_decision > 0.5));
    truth.class_decisions = None;
    assert!(truth.doubts(&classes).is_empty());
    // A manifest says whether there is noise; arrays alone do not.
    assert!(self::truth().class_decisions.is_some());
    let place = tempfile::tempdir().unwrap();
    let alone = place.path().join("test.npz");
    std::fs::copy(reference().join("dataset/test.npz"), &alone).unwrap();
    assert!(Truth::open(&alone, Split::Test, &mut silent()).unwrap().class_decisions.is_none());
}

#[test]
fn posteriors_that_are_known_by_their_median_have_no_p() {
    let truth = toy(500, 3, 1.0, Seed(1));
    // Log-odds are off by 3e-4 or 6e-4: known, but no copy to 1e-5.
    let logits: Vec<f64> = truth.posterior.iter().enumerate().map(|(i, p)| p.ln() + 3e-4 * (i % 3) as f64).collect();
    let known = Predictions::of_logits("known", &logits, &truth).unwrap();
    let report = judge(&truth, &[known], Seed(1), &mut silent()).unwrap();
    let model = &report.models[0];
    assert!(model.alarms().iter().any(|alarm| alarm.kind == AlarmKind::KnowsPosteriors), "{:?}", model.alarms());
    assert!(model.examined.copied.p_value > 0.5, "{:?}", model.examined.copied);
    let table = tables(&report).into_iter().find(|table| table.id == "judge-tests").unwrap();
    let text = |text: &str| crate::figure::Value::Text(text.into());
    let row = table.rows.iter().find(|row| row[1] == text("copied posteriors")).unwrap();
    assert_eq!(row[2], crate::figure::Value::Nothing);
    assert!(table.caption.contains("a median error of log-odds of at most 1e-3"), "{}", table.caption);
}

#[test]
fn a_mean_has_the_interval_that_measure_gives_it() {
    let mut truth = toy(500, 3, 1.0, Seed(1));
    // Of one label, so that measure keeps the order of the images.
    truth.labels.fill(1);
    let log_q: Vec<f64> = truth.posterior.chunks(3).flat_map(|p| [p[1].ln(), p[0].ln(), p[2].ln()]).collect();
    let mut images = crate::measure::PerImage::new(3).unwrap();
    images.extend(&truth.posterior, &log_q, &truth.labels).unwrap();
    let bootstrap = Bootstrap::new(Seed(2));
    let (mean, measured) =
        (bootstrap.mean(&images.nll, crate::measure::NATS), images.measured(&bootstrap).unwrap().nll);
    for (a, b) in [
        (mean.value, measured.value),
        (mean.interval.low, measured.interval.low),
        (mean.interval.high, measured.interval.high),
    ] {
        assert!((a - b).abs() < 1e-12, "{mean:?} {measured:?}");
    }
}
