//! Laws over several external runs and the worst images of a step, on disk and by the command line.

use super::*;

/// Logits whose q mixes the exact posterior with other numbers.
fn mixed(run: &ExternalFolder, share: f64) -> Vec<f32> {
    let p: Vec<f64> = array(run, "posterior.npy");
    let other = softmax(&logits(1));
    p.iter().zip(other).map(|(p, other)| ((1.0 - share) * p + share * other).ln() as f32).collect()
}

fn trained_on(place: &Path, name: &str, train_images: Option<u64>) -> ExternalFolder {
    let start = StartExternal { folder: place.join(name), train_images, ..start(place, Kind::Logits) };
    start.make(&world(), "0123", &mut silent()).unwrap()
}

fn command(args: &[&str], runs: &[&ExternalFolder]) -> (bool, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bayescope"));
    let out = command.args(args).args(runs.iter().map(|run| &run.path)).output().unwrap();
    let fine = out.status.success();
    (fine, String::from_utf8(if fine { out.stdout } else { out.stderr }).unwrap())
}

#[test]
fn several_runs_give_a_law_over_their_training_images() {
    let place = tempfile::tempdir().unwrap();
    let sizes = [50, 200, 800, 3200_u64];
    let runs = sizes.map(|n| {
        let run = trained_on(place.path(), &format!("n{n}"), Some(n));
        // The best step is in the middle.
        for (step, worse) in [(1, 2.0), (2, 1.0), (3, 1.5)] {
            log(&run, step, "{}", &mixed(&run, worse * 2.0 / (n as f64).sqrt()));
        }
        run
    });
    let all: Vec<&ExternalFolder> = runs.iter().collect();
    let (fine, json) = command(&["summary", "--json"], &all);
    assert!(fine, "{json}");
    let law: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (run, point) in runs.iter().zip(law["points"].as_array().unwrap()) {
        let best = read(run).steps().find(|step| step.step == 2).unwrap().epistemic.value;
        assert_eq!(point["step"], 2);
        assert_near("KL", point["epistemic"]["value"].as_f64().unwrap(), best);
    }
    let pure = &law["fits"]["pure"];
    let [alpha, low, high] = [&pure["alpha"]["value"], &pure["alpha"]["interval"][0], &pure["alpha"]["interval"][1]]
        .map(|number| number.as_f64().unwrap());
    // KL falls as the square of the share, at most: N^-1, and slower where the share is not small.
    assert!(alpha > 0.4 && alpha < 1.1 && low < alpha && alpha < high, "{pure}");
    assert_eq!(pure["image_error"], "resampled");
    let (fine, text) = command(&["summary"], &all);
    let words = ["4 external runs", "smallest KL", "α = ", "R²", "4 runs of 4 sizes and 1 seeds"];
    assert!(fine && words.iter().all(|words| text.contains(words)), "{text}");
    let figures = place.path().join("figures");
    assert!(command(&["summary", "--figures", figures.to_str().unwrap()], &all).0);
    assert!(figures.join("external-law.svg").exists());
    // Another N is another run.
    let again =
        StartExternal { folder: runs[0].path.clone(), train_images: Some(51), ..start(place.path(), Kind::Logits) };
    let said = again.make(&world(), "0123", &mut silent()).unwrap_err().to_string();
    assert!(said.contains("another number of training images"), "{said}");
    // A run is no second seed of itself, by whatever name.
    let mut linked = runs[1].clone();
    #[cfg(unix)]
    {
        linked.path = place.path().join("linked");
        std::os::unix::fs::symlink(&runs[1].path, &linked.path).unwrap();
    }
    for again in [&runs[1], &linked] {
        let (fine, said) = command(&["summary"], &[all[0], all[1], all[2], all[3], again]);
        assert!(!fine && said.contains("n200") && said.contains("name it once"), "{said}");
    }
    // What makes no law.
    let (fine, said) = command(&["summary"], &all[..2]);
    assert!(!fine && said.contains("at least 3 different numbers"), "{said}");
    let stream = trained_on(place.path(), "endless", None);
    log(&stream, 1, "{}", &logits(1));
    let (fine, said) = command(&["summary"], &[all[0], all[1], &stream]);
    assert!(!fine && said.contains("endless") && said.contains("external.train_images"), "{said}");
    let other =
        StartExternal { folder: place.path().join("other"), seed: Seed(6), ..start(place.path(), Kind::Logits) };
    let other = other.make(&world(), "0123", &mut silent()).unwrap();
    let (fine, said) = command(&["summary"], &[all[0], &other]);
    assert!(!fine && ["n50", "other", "seed of the test images"].iter().all(|words| said.contains(words)), "{said}");
}

#[test]
fn the_worst_images_of_a_step_are_those_of_its_record() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    for step in [1, 2] {
        log(&run, step, "{}", &logits(step));
    }
    let p: Vec<f64> = array(&run, "posterior.npy");
    let x: Vec<f32> = array(&run, "x.npy");
    for step in [1, 2] {
        let q = softmax(&logits(step));
        let kl = |i: usize| (i * CLASSES..(i + 1) * CLASSES).map(|c| p[c] * (p[c] / q[c]).ln()).sum::<f64>();
        let mut order: Vec<usize> = (0..IMAGES).collect();
        order.sort_by(|&a, &b| kl(b).total_cmp(&kl(a)));
        let found = run.worst_pictures(step, 7).unwrap();
        let images: Vec<usize> = found.found.images.iter().map(|one| one.worst.image).collect();
        assert_eq!(images, order[..7]);
        let dims = x.len() / IMAGES;
        for (i, one) in found.found.images.iter().enumerate() {
            let at = one.worst.image;
            assert_near("KL", one.worst.kl, kl(at));
            assert_near("q", one.q_decision, q[at * CLASSES..][..CLASSES].iter().copied().fold(0.0, f64::max));
            assert_near("p", one.p_decision, p[at * CLASSES + one.decision]);
            assert_eq!(found.x[i * dims..][..dims], x[at * dims..][..dims]);
        }
    }
    assert_eq!(run.worst(None, 3).unwrap(), run.worst(Some(2), 3).unwrap());
    assert_eq!(run.worst(None, 1000).unwrap().images.len(), IMAGES);
    let (fine, json) = command(&["external", "worst", "--step", "1", "--count", "2", "--json"], &[&run]);
    assert!(fine, "{json}");
    let listed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((listed["step"].as_u64(), listed["images"].as_array().map(Vec::len)), (Some(1), Some(2)));
    let first = &listed["images"][0];
    assert!(
        ["image", "label", "kl", "entropy", "decision", "p_decision", "q_decision"]
            .iter()
            .all(|&of| !first[of].is_null())
    );
    let (fine, said) = command(&["external", "worst", "--step", "9"], &[&run]);
    assert!(!fine && said.contains("no record of step 9"), "{said}");
}
