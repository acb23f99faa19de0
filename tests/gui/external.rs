//! External runs in the panel *Experiments*: found, followed, and left to their own program.

use std::path::Path;

use bayescope::data::{sha256_of_file, write_npy};
use bayescope::events::silent;
use bayescope::gui::App;
use bayescope::run::external::PREDICTIONS;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::experiments::{glance, open, panel};
use super::{labels, shows};

/// The folder of a run on three images of two classes, without records.
fn make(path: &Path) {
    let test = path.join("test");
    std::fs::create_dir_all(path.join(PREDICTIONS)).unwrap();
    std::fs::create_dir_all(&test).unwrap();
    write_npy::<f32>(&test.join("x.npy"), &[3, 1, 2, 2], |put| put(&[0.5; 12])).unwrap();
    write_npy::<i64>(&test.join("y.npy"), &[3], |put| put(&[0, 1, 1])).unwrap();
    write_npy::<f64>(&test.join("posterior.npy"), &[3, 2], |put| put(&[0.75, 0.25, 0.5, 0.5, 0.1, 0.9])).unwrap();
    let hash = |name: &str| format!("'{name}' = '{}'\n", sha256_of_file(&test.join(name), &mut silent()).unwrap());
    let files: String = ["x.npy", "y.npy", "posterior.npy"].map(hash).concat();
    let text = format!(
        "name = 'theirs'\n[external]\nformat = 1\npredictions = 'probs'\n[world]\noracle = 'mnist'\nweights_sha256 = '0123'\ntau = 1.0\n\
         smoothing = 1.0\nprior = [0.5, 0.5]\n[test]\nimages = 3\nseed = 0\nclasses = ['cat', 'dog']\n\
         shape = {{ channels = 1, height = 2, width = 2 }}\n[test.files]\n{files}"
    );
    std::fs::write(path.join("run.toml"), text).unwrap();
}

fn log(path: &Path, step: u64, line: &str, q: &[f64]) {
    let array = path.join("array.npy");
    write_npy::<f64>(&array, &[q.len() / 2, 2], |put| put(q)).unwrap();
    let record = [line.as_bytes(), b"\n", &std::fs::read(array).unwrap()].concat();
    std::fs::write(path.join(PREDICTIONS).join(format!("{step}.pred")), record).unwrap();
}

fn disabled(harness: &Harness<'_, App>, label: &str) -> bool {
    harness.get_by_label(label).accesskit_node().is_disabled()
}

#[test]
fn an_external_run_is_followed_and_left_to_its_own_program() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mine");
    make(&path);
    open(&mut harness, &fake, &path);
    let name = format!("Show run {}", path.display());
    for words in [name.as_str(), "0 records", "planned", "curves appear with the first"] {
        assert!(shows(&harness, words), "{words}: {:?}", labels(&harness));
    }
    log(&path, 10, r#"{"train_loss": 0.5}"#, &[0.75, 0.25, 0.5, 0.5, 0.1, 0.9]);
    log(&path, 20, "{}", &[0.75, 0.25, 0.5, 0.5]);
    glance(&mut harness, &fake, &path);
    // A classifier that knows the posterior is wrong as often as Bayes.
    let bayes = "wrong 28.33 % expected, 28.33 % at least";
    let seen = ["2 records", "logged elsewhere", "Step 10: L", bayes, "that of step 20", "shape [2, 2]"];
    for words in seen.into_iter().chain(["Loss taken apart", "Error beside the Bayes error", "Calibration error"]) {
        assert!(shows(&harness, words), "{words}: {:?}", labels(&harness));
    }
    assert!(disabled(&harness, "Resume run") && !disabled(&harness, "Save all figures…"));
    std::fs::write(path.join("finished"), "").unwrap();
    glance(&mut harness, &fake, &path);
    assert!(shows(&harness, "done"));
}
