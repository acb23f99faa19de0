//! `evaluate --uncertainty`: every grade computed anew from the arrays.

use std::io::Write;
use std::path::{Path, PathBuf};

use bayescope::data::{NpyElement, write_npy};
use serde_json::Value;

use super::export::export;
use crate::common::npz::npz_array;
use crate::common::tiny;
use crate::run::{fail, json, succeed, text};

const N: usize = 60;
const K: usize = 2;
const M: usize = 3;

/// Numbers without a pattern, in ]0, 1[.
fn number(seed: usize) -> f64 {
    let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// An archive of `.npy` files.
fn archive(path: &Path, arrays: &[(&str, PathBuf)]) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, file) in arrays {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(&std::fs::read(file).unwrap()).unwrap();
    }
    zip.finish().unwrap();
}

fn array<T: NpyElement>(path: PathBuf, shape: &[usize], values: &[T]) -> PathBuf {
    write_npy(&path, shape, |put| put(values)).unwrap();
    path
}

fn value(estimate: &Value) -> f64 {
    let end = |end: usize| estimate["interval"][end].as_f64().unwrap();
    let value = estimate["value"].as_f64().unwrap();
    assert!(end(0) <= value && value <= end(1), "{estimate}");
    value
}

fn assert_near(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{what}: {found}, not {expected}");
}

/// Spearman's correlation by counting, for numbers of which no two are the same.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |v: &[f64]| -> Vec<f64> { v.iter().map(|x| v.iter().filter(|y| *y < x).count() as f64).collect() };
    let squares: f64 = ranks(a).iter().zip(ranks(b)).map(|(a, b)| (a - b) * (a - b)).sum();
    let n = a.len() as f64;
    1.0 - 6.0 * squares / (n * (n * n - 1.0))
}

/// Exact posteriors of the test images of two classes in equal parts, from log p(x|y).
fn posteriors(data: &Path) -> Vec<f64> {
    let logp: Vec<f64> = npz_array(&data.join("test.npz"), "logp");
    logp.chunks(K).flat_map(|l| [1.0 / (1.0 + (l[1] - l[0]).exp()), 1.0 / (1.0 + (l[0] - l[1]).exp())]).collect()
}

fn average(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

fn entropy(q: &[f64]) -> f64 {
    -q.iter().map(|q| q * q.ln()).sum::<f64>()
}

/// Of rows of two logits.
fn softmaxes(logits: &[f64]) -> Vec<f64> {
    let row = |l: &[f64]| {
        let e = [l[0].exp(), l[1].exp()];
        [e[0] / (e[0] + e[1]), e[1] / (e[0] + e[1])]
    };
    logits.chunks(K).flat_map(row).collect()
}

/// Entropy of the mean of members q [M, N, K] less their mean entropy, image by image.
fn mutual_information(q: &[f64], mean: &[f64]) -> Vec<f64> {
    let of = |m: usize, i: usize| entropy(&q[(m * N + i) * K..(m * N + i + 1) * K]);
    let one = |i: usize| entropy(&mean[i * K..(i + 1) * K]) - (0..M).map(|m| of(m, i)).sum::<f64>() / M as f64;
    (0..N).map(one).collect()
}

/// The risk over coverage of a score, from p, the mean of the members and the score.
fn check_risk(mine: &Value, [p, mean, doubt]: [&[f64]; 3]) {
    let risk: Vec<f64> = (0..N).map(|i| 1.0 - p[i * K + usize::from(mean[i * K + 1] > mean[i * K])]).collect();
    let curve = |by: &[f64]| -> Vec<f64> {
        let mut order: Vec<usize> = (0..N).collect();
        order.sort_by(|&a, &b| by[a].total_cmp(&by[b]));
        (1..=N).map(|kept| order[..kept].iter().map(|&i| risk[i]).sum::<f64>() / kept as f64).collect()
    };
    assert_near("AURC", value(&mine["risk"]["area"]), average(&curve(doubt)));
    assert_near("least AURC", value(&mine["risk"]["exact_area"]), average(&curve(&risk)));
    for (point, risk) in mine["risk"]["risk"].as_array().unwrap().iter().enumerate() {
        assert_near("risk", risk.as_f64().unwrap(), curve(doubt)[3 * (point + 1) - 1]);
    }
}

fn check_sets(of_sets: &Value, p: &[f64], labels: &[i64], sets: &[i64]) {
    let covers: Vec<f64> = (0..N).map(|i| if i % 3 == 0 { 1.0 } else { p[i * K] }).collect();
    assert_near("exact coverage", value(&of_sets["exact"]), average(&covers));
    let held: Vec<f64> = (0..N).map(|i| if i % 3 == 0 || labels[i] == 0 { 1.0 } else { 0.0 }).collect();
    assert_near("drawn coverage", value(&of_sets["drawn"]), average(&held));
    assert_near(
        "size",
        value(&of_sets["size"]),
        average(&sets.chunks(K).map(|set| (set[0] + set[1]) as f64).collect::<Vec<_>>()),
    );
}

#[test]
fn members_scores_and_sets_are_held_against_the_truth() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let data = at("data");
    export(text(&tiny::gaussian_file(place.path())), &data, &["--train", "10", "--test", &N.to_string()]);
    let labels: Vec<i64> = npz_array(&data.join("test.npz"), "y");
    let p = posteriors(&data);

    // Members in float64: softmax of logits without a pattern around the truth.
    let logits: Vec<f64> = (0..M * N * K).map(|i| p[i % (N * K)].ln().max(-9.0) + 3.0 * number(i)).collect();
    let doubt: Vec<f64> = (0..N).map(|i| number(7000 + i)).collect();
    // Every third set is whole, the others hold the first class.
    let sets: Vec<i64> = (0..N).flat_map(|i| [1, i64::from(i % 3 == 0)]).collect();
    let file = at("mine.npz");
    let arrays = [
        ("members", array(at("a.npy"), &[M, N, K], &logits)),
        ("doubt", array(at("b.npy"), &[N], &doubt)),
        ("conformal", array(at("c.npy"), &[N, K], &sets)),
        ("other", array(at("d.npy"), &[3], &[1.0f64, 2.0, 3.0])),
    ];
    archive(&file, &arrays);
    let found = json(&["evaluate", text(&data), "--uncertainty", text(&file), "--json"]);
    assert_eq!((&found["members"], &found["ignored"][0]), (&M.into(), &"other".into()));

    let q = softmaxes(&logits);
    let mean: Vec<f64> = (0..N * K).map(|at| (0..M).map(|m| q[m * N * K + at]).sum::<f64>() / M as f64).collect();
    let kl: Vec<f64> =
        p.chunks(K).zip(mean.chunks(K)).map(|(p, q)| (0..K).map(|k| p[k] * (p[k] / q[k]).ln()).sum()).collect();
    let h: Vec<f64> = p.chunks(K).map(entropy).collect();
    let information = mutual_information(&q, &mean);
    assert_near("KL", value(&found["classifier"]["epistemic"]), average(&kl));
    let score = |name: &str| -> &Value {
        found["scores"].as_array().unwrap().iter().find(|score| score["name"] == *name).unwrap()
    };
    let (mine, mutual) = (score("doubt"), score("mutual-information"));
    assert_eq!((&mine["scored"]["score"], &mine["scored"]["signed_error"]), (&"given".into(), &Value::Null));
    assert_near("Spearman with H", value(&mine["scored"]["aleatoric"]["spearman"]), spearman(&doubt, &h));
    assert_near("Spearman with KL", value(&mutual["scored"]["epistemic"]["spearman"]), spearman(&information, &kl));
    let bias: Vec<f64> = information.iter().zip(&kl).map(|(i, kl)| i - kl).collect();
    assert_near("bias of the split", value(&mutual["scored"]["signed_error"]), average(&bias));
    // The six largest of 60 against the rest.
    let top = |i: usize| kl.iter().filter(|other| **other > kl[i]).count() < 6;
    let pairs = (0..N).filter(|&i| top(i)).flat_map(|i| (0..N).filter(|&j| !top(j)).map(move |j| (i, j)));
    let wins: Vec<f64> = pairs.map(|(i, j)| if doubt[i] > doubt[j] { 1.0 } else { 0.0 }).collect();
    assert_near("AUROC", value(&mine["scored"]["auroc"]), average(&wins));

    check_risk(mine, [&p, &mean, &doubt]);
    check_sets(&found["sets"][0]["found"], &p, &labels, &sets);
    let told = succeed(&["evaluate", text(&data), "--uncertainty", text(&file)]);
    assert!(told.contains("sets conformal") && told.contains("mutual-information"), "{told}");

    // Sets need no classifier, scores do.
    archive(&file, &arrays[2..3]);
    assert!(json(&["evaluate", text(&data), "--uncertainty", text(&file), "--json"])["classifier"].is_null());
    let refused = |arrays: &[(&str, PathBuf)], cause: &str| {
        archive(&file, arrays);
        let said = fail(1, &["evaluate", text(&data), "--uncertainty", text(&file)]);
        assert!(said.contains("mine.npz") && said.contains(cause), "{said}");
    };
    refused(&arrays[1..2], "add its predictions [60, 2]");
    refused(&arrays[3..], "nothing to judge");
    let counts: Vec<i64> = (0..(N * K) as i64).collect();
    refused(&[("counts", array(at("e.npy"), &[N, K], &counts))], "array counts: holds 2");
    refused(&[("members", array(at("f.npy"), &[M, N, K], &vec![f64::NAN; M * N * K]))], "is NaN");
}

#[test]
fn predictions_beside_members_are_scored_by_their_own_doubts_too() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let (data, file) = (at("data"), at("mine.npz"));
    export(text(&tiny::gaussian_file(place.path())), &data, &["--train", "10", "--test", &N.to_string()]);
    let posterior = posteriors(&data);
    let mine: Vec<f64> = (0..N).flat_map(|i| [0.05 + 0.9 * number(i), 0.95 - 0.9 * number(i)]).collect();
    let members: Vec<f64> = (0..M * N * K).map(|i| 3.0 * number(i + 1000)).collect();
    archive(
        &file,
        &[("members", array(at("a.npy"), &[M, N, K], &members)), ("probs", array(at("b.npy"), &[N, K], &mine))],
    );
    let found = json(&["evaluate", text(&data), "--uncertainty", text(&file), "--json"]);
    assert_eq!((&found["members"], &found["predictions"]), (&M.into(), &"probs".into()));
    let names: Vec<&str> = found["scores"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    let of_members = ["one-minus-confidence", "predictive-entropy", "mutual-information"];
    assert!(of_members.iter().all(|name| names.contains(name)) && names.len() == 7, "{names:?}");
    let kl: Vec<f64> = posterior
        .chunks(K)
        .zip(mine.chunks(K))
        .map(|(p, q)| p.iter().zip(q).map(|(p, q)| if *p > 0.0 { p * (p / q).ln() } else { 0.0 }).sum())
        .collect();
    let h: Vec<f64> = mine.chunks(K).map(entropy).collect();
    let own = found["scores"].as_array().unwrap().iter().find(|s| s["name"] == "probs: softmax-entropy").unwrap();
    assert_near("Spearman with KL", value(&own["scored"]["epistemic"]["spearman"]), spearman(&h, &kl));
    let told = succeed(&["evaluate", text(&data), "--uncertainty", text(&file)]);
    assert!(told.starts_with("probs, with scores of 3 members, on 60 images"), "{told}");
    // The longest name, too, leaves the figures below each other.
    let table: Vec<&str> = told.lines().skip_while(|line| !line.starts_with("score ")).take(1 + names.len()).collect();
    let width = |line: &&str| line.chars().count();
    assert!(table.len() == 8 && table.iter().all(|line| width(line) == width(&table[0])), "{told}");
}

#[test]
fn probabilities_are_seen_for_what_they_are() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let data = at("data");
    export(text(&tiny::gaussian_file(place.path())), &data, &["--train", "10", "--test", &N.to_string()]);
    let logp: Vec<f64> = npz_array(&data.join("test.npz"), "logp");
    let logits: Vec<f64> = (0..M * N * K).map(|i| logp[i % (N * K)] + number(i)).collect();
    let (members, one) = (softmaxes(&logits), softmaxes(&logits[..N * K]));
    let file = at("mine.npz");
    let judged = |arrays: &[(&str, PathBuf)], more: &[&str]| {
        archive(&file, arrays);
        json(&[&["evaluate", text(&data), "--uncertainty", text(&file), "--json"], more].concat())
    };
    let known = judged(&[("members", array(at("a.npy"), &[M, N, K], &logits))], &[]);
    assert_eq!(known["notes"][0]["note"], "by-order");
    assert_eq!(
        known["notes"][1],
        serde_json::json!({"note": "taken", "kind": "logits", "called": "members", "told": false})
    );
    let arrays = [("members", array(at("b.npy"), &[M, N, K], &members))];
    let found = judged(&arrays, &[]);
    assert_eq!(found["notes"][1]["kind"], "probabilities");
    let kl = |found: &Value| value(&found["classifier"]["epistemic"]);
    assert_near("KL of probabilities", kl(&found), kl(&known));
    let told = succeed(&["evaluate", text(&data), "--uncertainty", text(&file)]);
    assert!(told.contains("The numbers in members were taken as probabilities, by looking at them."), "{told}");
    // Who insists is heard, and that is said, too.
    let insisted = judged(&arrays, &["--kind", "logits"]);
    assert!((kl(&insisted) - kl(&known)).abs() > 1e-3 && insisted["notes"][1]["told"] == true, "{insisted}");
    // One array may hold what another does not.
    let both =
        judged(&[("logits", array(at("c.npy"), &[M, N, K], &logits)), ("q", array(at("d.npy"), &[N, K], &one))], &[]);
    assert_eq!([&both["notes"][1]["kind"], &both["notes"][2]["kind"]], ["logits", "probabilities"]);
    // What is neither is refused by member and image.
    let mut torn = members;
    torn[(N + 3) * K] += 0.25;
    archive(&file, &[("members", array(at("e.npy"), &[M, N, K], &torn))]);
    let said = fail(1, &["evaluate", text(&data), "--uncertainty", text(&file)]);
    assert!(said.contains("array members: member 1, image 3: adds up to 1.25") && said.contains("--kind"), "{said}");
}

/// The same alarms as those of predictions, of the mean of members and of predictions beside a score.
#[test]
fn rows_in_another_order_raise_an_alarm() {
    const IMAGES: usize = 400;
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let (data, file) = (at("data"), at("mine.npz"));
    export(text(&tiny::gaussian_file(place.path())), &data, &["--train", "10", "--test", &IMAGES.to_string()]);
    let logp: Vec<f64> = npz_array(&data.join("test.npz"), "logp");
    let right: Vec<f64> = logp.iter().enumerate().map(|(at, logp)| logp + number(at)).collect();
    let reversed: Vec<f64> = right.chunks(K).rev().flatten().copied().collect();
    let doubt: Vec<f64> = (0..IMAGES).map(number).collect();
    let doubt = array(at("doubt.npy"), &[IMAGES], &doubt);
    let judged = |q: &[f64]| {
        let two = [q, q].concat();
        let members = ("members", array(at("members.npy"), &[2, IMAGES, K], &two));
        let one = ("logits", array(at("logits.npy"), &[IMAGES, K], q));
        [vec![members], vec![one, ("doubt", doubt.clone())]].map(|arrays| {
            archive(&file, &arrays);
            let command = ["evaluate", text(&data), "--uncertainty", text(&file)];
            (json(&[&command[..], &["--json"]].concat())["alarms"].clone(), succeed(&command))
        })
    };
    for (alarms, told) in judged(&right) {
        assert!(alarms == serde_json::json!([]) && !told.contains("ALARM"), "{told}");
    }
    for (alarms, told) in judged(&reversed) {
        assert_eq!(alarms[0]["kind"], "wrong-order", "{alarms}");
        assert!(told.contains("ALARM: The rows seem") && told.contains("They look in reversed order"), "{told}");
    }
}

/// What the notes of a report are about.
fn notes(found: &Value) -> Vec<String> {
    found["notes"].as_array().unwrap().iter().map(|note| note["note"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn rows_and_columns_are_paired_as_those_of_predictions() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let data = at("data");
    export(text(&tiny::gaussian_file(place.path())), &data, &["--train", "10", "--test", &N.to_string()]);
    let logp: Vec<f64> = npz_array(&data.join("test.npz"), "logp");
    let members: Vec<f64> = (0..M * N * K).map(|i| logp[i % (N * K)] + number(i)).collect();
    let one: Vec<f64> = (0..N * K).map(|i| logp[i] + number(400 + i)).collect();
    let doubt: Vec<f64> = (0..N).map(|i| number(7000 + i)).collect();
    let sets: Vec<i64> = (0..N).flat_map(|i| [1, i64::from(i % 3 == 0)]).collect();
    // Row j is of image 7 j + 3, an image of another split comes first, and the columns are turned round.
    let images: Vec<usize> = (0..N).map(|j| (7 * j + 3) % N).collect();
    let ids: Vec<i64> = std::iter::once(999).chain(images.iter().map(|&i| i as i64)).collect();
    let rows = || std::iter::once(0).chain(images.iter().copied());
    let turned = |v: &[f64]| -> Vec<f64> { rows().flat_map(|i| [v[i * K + 1], v[i * K]]).collect() };
    let turned_sets: Vec<i64> = rows().flat_map(|i| [sets[i * K + 1], sets[i * K]]).collect();
    let file = at("mine.npz");
    let judged = |arrays: &[(&str, PathBuf)]| {
        archive(&file, arrays);
        json(&["evaluate", text(&data), "--uncertainty", text(&file), "--json"])
    };
    let plain = judged(&[
        ("m", array(at("a.npy"), &[M, N, K], &members)),
        ("q", array(at("b.npy"), &[N, K], &one)),
        ("doubt", array(at("c.npy"), &[N], &doubt)),
        ("sets", array(at("d.npy"), &[N, K], &sets)),
    ]);
    let moved: Vec<f64> = members.chunks(N * K).flat_map(turned).collect();
    let (id, classes) = (("id", array(at("i.npy"), &[N + 1], &ids)), ("classes", array(at("k.npy"), &[K], &[1i64, 0])));
    let paired = judged(&[
        ("m", array(at("e.npy"), &[M, N + 1, K], &moved)),
        ("q", array(at("f.npy"), &[N + 1, K], &turned(&one))),
        ("doubt", array(at("g.npy"), &[N + 1], &rows().map(|i| doubt[i]).collect::<Vec<_>>())),
        ("sets", array(at("h.npy"), &[N + 1, K], &turned_sets)),
        id.clone(),
        classes,
    ]);
    for part in ["classifier", "scores", "sets", "members", "ignored"] {
        assert_eq!(paired[part], plain[part], "{part}");
    }
    assert_eq!(notes(&plain)[0], "by-order");
    assert_eq!(notes(&paired)[..3], ["columns-sorted", "rows-ignored", "rows-sorted"]);

    let refused = |arrays: &[(&str, PathBuf)], cause: &str| {
        archive(&file, arrays);
        let said = fail(1, &["evaluate", text(&data), "--uncertainty", text(&file)]);
        assert!(said.contains("mine.npz") && said.contains(cause), "{said}");
    };
    let q = || ("q", array(at("b.npy"), &[N, K], &one));
    refused(&[q(), id], "array q: its shape [60, 2] does not fit the 61 ids");
    refused(&[q(), ("id", array(at("i.npy"), &[N], &[0i64; N]))], "rows 0 and 1 have the same id 0");
    refused(&[q(), ("classes", array(at("k.npy"), &[K], &[1i64, 2]))], "array classes: columns count classes from 1");
    let broken: Vec<f64> = (0..N).map(|i| if i == 5 { f64::NAN } else { 0.0 }).collect();
    refused(&[q(), ("doubt", array(at("c.npy"), &[N], &broken))], "array doubt: image 5: the score is NaN");
    refused(&[("m", array(at("a.npy"), &[1, N, K], &one))], "array m: an ensemble needs at least two members");
    // A zero where the truth is not 0, of one classifier and of all members.
    let sure = [1.0, 0.0].repeat(N);
    let both = [sure.clone(), sure.clone()].concat();
    for arrays in [("q", array(at("n.npy"), &[N, K], &sure)), ("m", array(at("o.npy"), &[2, N, K], &both))] {
        let said = notes(&judged(&[arrays]));
        assert!(said.contains(&"infinite".into()), "{said:?}");
    }
}
