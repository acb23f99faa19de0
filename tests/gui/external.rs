//! External runs in the panel *Experiments*: found, followed, and left to their own program.

use std::path::Path;

use bayescope::data::{sha256_of_file, write_npy};
use bayescope::events::silent;
use bayescope::gui::App;
use bayescope::run::external::PREDICTIONS;
use bayescope::worker::cell_images::CellImages;
use bayescope::worker::protocol::{Event, Outcome};
use eframe::egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};

use super::experiments::{click, glance, open, panel, rewrite};
use super::{labels, shows};

/// The folder of a run on three images of two classes, without records.
pub fn make(path: &Path) {
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
    // The form makes room for the run.
    let form = |harness: &Harness<'_, App>| shows(harness, "Start experiment");
    assert!(form(&harness));
    open(&mut harness, &fake, &path);
    assert!(!form(&harness));
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

#[test]
fn the_courses_of_several_runs_are_laid_over_each_other() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| place.path().join(name));
    for (path, share) in [(&first, 0.2), (&second, 0.6)] {
        make(path);
        for step in 1..=4_u32 {
            // Ever nearer to the posterior; the second logs no epochs.
            let off = share / f64::from(step);
            let q = |p: f64| (1.0 - off) * p + off * 0.5;
            let head = if share < 0.5 { format!("{{\"epoch\": {step}}}") } else { "{}".into() };
            log(path, u64::from(10 * step), &head, &[0.75, 0.25, 0.5, 0.5, 0.1, 0.9].map(q));
        }
        open(&mut harness, &fake, path);
    }
    harness.state_mut().show_panel("monitor");
    harness.run_steps(4);
    assert_eq!(fake.watched().folders.len(), 2, "the panel has the folders watched");
    // Three images: the drawn labels of all are within chance of their floor.
    let (one, two) = ("theirs in first", "theirs in second");
    // In the list below, and in the legend of the plot.
    let drawn = |harness: &Harness<'_, App>, name: &str| harness.query_all_by_label(name).count() > 1;
    let floor = |harness: &Harness<'_, App>| harness.query_by_label("aleatoric A").is_some();
    assert!(drawn(&harness, one) && drawn(&harness, two) && floor(&harness), "{:?}", labels(&harness));
    assert!(shows(&harness, "Courses of all runs"));
    assert!(!shows(&harness, "may have leaked"));
    rewrite(&mut harness, "Filter", "second");
    assert!(!drawn(&harness, one) && drawn(&harness, two), "{:?}", labels(&harness));
    rewrite(&mut harness, "Filter", " ");
    let choose = |harness: &mut Harness<'_, App>, list: &str, entry: &str| {
        harness.get_by_role_and_label(Role::ComboBox, list).click();
        harness.run_steps(4);
        click(harness, entry);
    };
    choose(&mut harness, "Axis of the courses", "epoch");
    assert!(drawn(&harness, one) && !drawn(&harness, two), "who says no epochs has no place: {:?}", labels(&harness));
    choose(&mut harness, "Axis of the courses", "optimisation step");
    choose(&mut harness, "Figure of the courses", "ECE");
    assert!(!floor(&harness), "a calibration error has no floor");
    // A run that is left out comes back with its line.
    let tables = |harness: &mut Harness<'_, App>| super::tables::read(harness, "ECE over optimisation step").len() - 1;
    assert_eq!(tables(&mut harness), 8);
    let entries = harness.query_all_by_label(two);
    entries.max_by(|a, b| a.rect().top().total_cmp(&b.rect().top())).unwrap().click();
    harness.run_steps(4);
    assert_eq!(tables(&mut harness), 4);
    harness.check_accessibility();
}

#[test]
fn the_worst_images_of_a_chosen_step_are_asked_for() {
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mine");
    make(&path);
    open(&mut harness, &fake, &path);
    assert!(harness.query_by_label("Show worst images").is_none(), "there is no step yet");
    for step in [10, 20, 30] {
        log(&path, step, "{}", &[0.5; 6]);
    }
    glance(&mut harness, &fake, &path);
    click(&mut harness, "Show worst images");
    let which = || fake.cell_images().last().map(|(_, request)| (request.which, request.folder.clone()));
    assert_eq!(which(), Some((CellImages::AtStep(30), path.clone())), "the last, as nothing is chosen");
    let job = fake.cell_images()[0].0;
    let outcome = Outcome::Failed("these images are of another world".into());
    fake.send(Event::JobEnded { id: job, outcome });
    harness.run_steps(4);
    assert!(shows(&harness, "these images are of another world"), "{:?}", labels(&harness));
    harness.get_by_role_and_label(Role::Slider, "Step of the images").set_value_accesskit(0.0);
    harness.run_steps(4);
    click(&mut harness, "Show worst images");
    assert_eq!(which(), Some((CellImages::AtStep(10), path)));
    harness.check_accessibility();
}

#[test]
fn runs_of_three_sizes_have_a_law_below_their_courses() {
    const LAW: &str = "KL over the number of training images";
    let (mut harness, fake) = panel();
    let place = tempfile::tempdir().unwrap();
    let add = |harness: &mut Harness<'_, App>, name: &str, images: Option<u32>, share: f64| {
        let path = place.path().join(name);
        make(&path);
        if let Some(images) = images {
            let file = path.join("run.toml");
            let text = std::fs::read_to_string(&file).unwrap();
            let text = text.replace("format = 1\n", &format!("format = 1\ntrain_images = {images}\n"));
            std::fs::write(file, text).unwrap();
        }
        log(&path, 10, "{}", &[0.75, 0.25, 0.5, 0.5, 0.1, 0.9].map(|p: f64| (1.0 - share) * p + share * 0.5));
        open(harness, &fake, &path);
        // An opened run comes with its own panel in front.
        harness.state_mut().show_panel("monitor");
        harness.run_steps(4);
    };
    add(&mut harness, "endless", None, 0.5);
    assert!(!shows(&harness, "train_images") && !shows(&harness, LAW), "no run says its N");
    add(&mut harness, "few", Some(100), 0.8);
    add(&mut harness, "some", Some(400), 0.4);
    assert!(
        shows(&harness, "external.train_images: theirs in endless") && !shows(&harness, LAW),
        "{:?}",
        labels(&harness)
    );
    add(&mut harness, "many", Some(1600), 0.2);
    let begun = std::time::Instant::now();
    while !shows(&harness, "α = ") && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        harness.run_steps(1);
    }
    assert!(shows(&harness, LAW) && shows(&harness, "α = "), "{:?}", labels(&harness));
    harness.check_accessibility();
}
