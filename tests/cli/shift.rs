//! Shifts of the training images in a world of two Gaussian classes, where what they cost is a formula; kills; refusals.

use std::process::Stdio;
use std::time::Duration;

use bayescope::flow::base::latents;
use bayescope::units::Seed;
use serde_json::Value;
use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use crate::common::{fill, tiny};
use crate::experiments::{Grid, summary};
use crate::run::{bayescope, fail, json, succeed, text};

const MEAN_KL: f64 = 2.0;
const NOISE: f64 = 0.4;

/// Φ.
fn below(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// Accuracy where the boundary between the classes lies `s` standard deviations off the middle.
fn accuracy_off_by(s: f64) -> f64 {
    let half = tiny::GAUSSIAN_DISTANCE / 2.0;
    0.5 * (below(half - s) + below(half + s))
}

/// Cosine of the random direction of a seed and the line between the classes: every pixel alike but those of the first token.
fn share(seed: u64) -> f64 {
    let way = latents(Seed(seed).split("shift").split("direction"), 0, 1, 16);
    let length = way.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
    let along: f64 = (0..16).filter(|d| d / 4 >= 2 || d % 4 >= 2).map(|d| f64::from(way[d])).sum();
    along / 12f64.sqrt() / length
}

/// E[(clip(y, −1, 1) − m)²] for y ~ N(m, 1 + σ²).
fn clipped_square(m: f64) -> f64 {
    let law = Normal::new(m, (1.0 + NOISE * NOISE).sqrt()).unwrap();
    let step = 1e-3;
    let points = (-10_000..10_000).map(|i| (f64::from(i) + 0.5) * step);
    points.map(|y| law.pdf(y) * (y.clamp(-1.0, 1.0) - m).powi(2)).sum::<f64>() * step
}

fn settings(list: &str) -> String {
    format!("[experiment]\nkind = 'shift'\npool = 16000\nsettings = [{list}]\n")
}

fn harm<'a>(found: &'a Value, name: &str) -> &'a Value {
    let harms = found["finding"]["groups"][0]["harms"].as_array().unwrap();
    harms.iter().find(|harm| harm["name"] == name).unwrap()
}

#[test]
fn shifts_of_two_gaussians_cost_what_the_formulas_say() {
    // Of random directions one that goes along it far enough to hurt.
    let seed = (0..100).find(|&seed| share(seed).abs() > 0.3).unwrap();
    let list = format!(
        "{{ name = 'none' }}, {{ name = 'prior', prior = [0.7, 0.3] }}, {{ name = 'noise', noise = {NOISE} }}, \
         {{ name = 'mean', base = {{ kind = 'mean', kl = {MEAN_KL} }} }}, \
         {{ name = 'hardly', base = {{ kind = 'wider', kl = 1e-9 }} }}"
    );
    let grid = Grid::new(&format!(
        "{}[grid]\narchitectures = ['linear']\ntrain_sizes = [40000]\nseeds = [{seed}]\n[test]\nimages = 40000\n\
         [training]\nepochs = 4\nbatch = 50\nlearning_rate = 1e-2\n",
        settings(&list).replace("16000", "60000")
    ));
    let out = grid.path("run");
    let found = grid.run(&out);
    let accuracy = |name: &str| harm(&found, name)["accuracy"]["mean"].as_f64().unwrap();
    let near = |name: &str, truth: f64| {
        let found = accuracy(name);
        assert!((found - truth).abs() < 0.01, "{name}: {found}, {truth} expected");
    };
    near("none", accuracy_off_by(0.0));
    // The boundary moves by log(π₀/π₁)/Δ.
    near("prior", accuracy_off_by((7.0f64 / 3.0).ln() / tiny::GAUSSIAN_DISTANCE));
    // It moves with the means, as far as their way goes along the line between the classes.
    near("mean", accuracy_off_by((2.0 * MEAN_KL).sqrt() * share(seed)));
    // So does that of the Bayes classifier of the shifted world: no learner can avoid it.
    let lost = |name: &str| harm(&found, name)["unavoidable_loss"].clone();
    let unavoidable = |name: &str, off: f64| {
        let (loss, truth) = (lost(name), 100.0 * (accuracy_off_by(0.0) - accuracy_off_by(off)));
        let [value, low, high] =
            [&loss["value"], &loss["interval"][0], &loss["interval"][1]].map(|v| v.as_f64().unwrap());
        assert!((value - truth).abs() < 1.5 * (high - low) / 2.0 + 1e-9, "{name}: {loss} for {truth}");
    };
    unavoidable("none", 0.0);
    unavoidable("prior", (7.0f64 / 3.0).ln() / tiny::GAUSSIAN_DISTANCE);
    unavoidable("mean", (2.0 * MEAN_KL).sqrt() * share(seed));
    unavoidable("hardly", 0.0);
    assert!(lost("noise").is_null());
    // The pool's own images, all but untouched, one for one: the classifier is the baseline's, not merely like it.
    let epistemic = |name: &str| harm(&found, name)["epistemic"]["mean"].as_f64().unwrap();
    let (hardly, none) = (epistemic("hardly"), epistemic("none"));
    assert!((hardly / none - 1.0).abs() < 0.02, "{hardly} {none}");

    let shifted = |at: usize| &found["cells"][at]["found"]["shift"];
    let number = |at: usize, what: &str| shifted(at)[what].as_f64().unwrap();
    let prior_kl = 0.7 * 1.4f64.ln() + 0.3 * 0.6f64.ln();
    assert!((number(1, "joint_kl") - prior_kl).abs() < 1e-12 && (number(1, "kl_y") - prior_kl).abs() < 0.01);
    assert!((number(3, "joint_kl") - MEAN_KL).abs() < 1e-12);
    assert!(shifted(2)["joint_kl"].is_null(), "the KL of noised images is not known");
    // What noise takes from log p(x|y): the squares of 4 pixels of mean 0 and 12 of mean ±w, of variance 1 before.
    let w = tiny::GAUSSIAN_DISTANCE / 2.0 / 12f64.sqrt();
    let truth = 0.5 * (4.0 * clipped_square(0.0) + 12.0 * clipped_square(w) - 16.0);
    let lost = &shifted(2)["log_likelihood_drop"];
    let end = |end: usize| lost["interval"][end].as_f64().unwrap();
    let (value, half) = (lost["value"].as_f64().unwrap(), 0.5 * (end(1) - end(0)));
    assert!((value - truth).abs() < 2.0 * half && half < 0.6, "{lost}: {truth}");
    assert_eq!(shifted(0)["log_likelihood_drop"]["value"], 0.0);
    assert!(shifted(3)["log_likelihood_drop"].is_null());
    let validated = shifted(1)["validation"]["value"].as_f64().unwrap();
    // Validated where its prior is right: better than on the test images.
    let (half, off) = (tiny::GAUSSIAN_DISTANCE / 2.0, (7.0f64 / 3.0).ln() / tiny::GAUSSIAN_DISTANCE);
    let truth = 0.7 * below(half + off) + 0.3 * below(half - off);
    assert!((validated - truth).abs() < 0.015, "{validated} for {truth}");
    let left =
        std::fs::read_dir(out.join("cells")).unwrap().any(|cell| cell.unwrap().path().join("shifted.npz").exists());
    assert!(!left, "drawn images of finished cells stay");
}

#[test]
fn kills_change_nothing() {
    let list = "{ name = 'none' }, { name = 'prior', prior = [0.7, 0.3] }, { name = 'noise', noise = 0.2 }, \
                { name = 'both', prior = [0.7, 0.3], noise = 0.2 }, { name = 'wider', base = { kind = 'wider', kl = 2.0 } }";
    let grid = Grid::new(&format!(
        "{}[grid]\narchitectures = ['mlp-500']\ntrain_sizes = [400]\nseeds = [0, 1]\n[test]\nimages = 300\nwatched = 50\n\
         [training]\nepochs = 60\nlearning_rate = 1e-3\nshards = 2\n",
        settings(list).replace("16000", "500")
    ));
    let whole = grid.path("whole");
    grid.run(&whole);
    let killed = grid.path("killed");
    let args = ["run", text(&grid.spec), "--out", text(&killed), "--device", "cpu", "--checkpoint-every", "0.05"];
    let mut resumed = 0;
    for wait in fill::uniform("kills", 8, 6) {
        let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(0.4 + 0.25 * wait));
        child.kill().unwrap();
        child.wait().unwrap();
        let begun =
            |cell: std::path::PathBuf| cell.join("last.safetensors").exists() && !cell.join("result.json").exists();
        let cells = std::fs::read_dir(killed.join("cells"));
        resumed += usize::from(cells.is_ok_and(|mut cells| cells.any(|cell| begun(cell.unwrap().path()))));
    }
    assert!(resumed > 0, "no kill hit a cell in the middle");
    // A partial run has a finding, too, and every number of it can be read again.
    let partial = json(&["summary", text(&killed), "--json"]);
    assert_eq!(partial["finding"]["groups"][0]["harms"].as_array().unwrap().len(), 5);
    succeed(&args);
    assert_eq!(summary(&killed), summary(&whole));
}

#[test]
fn shifts_that_do_not_fit_are_named() {
    let grid = "[grid]\narchitectures = ['linear']\ntrain_sizes = [50]\nseeds = [0]\n[test]\nimages = 50\n[training]\nepochs = 2\n";
    let why = |list: &str| {
        let grid = Grid::new(&(settings(list).replace("16000", "100") + grid));
        let run = grid.path("run");
        let message = fail(1, &["run", text(&grid.spec), "--out", text(&run), "--device", "cpu"]);
        assert!(message.contains("could not be finished"), "{message}");
        let look = json(&["watch", text(&run), "--once", "--json"]);
        look["cells"]
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .find_map(|cell| Some(cell["status"]["message"].as_str()?.to_owned()))
            .unwrap()
    };
    let message = why("{ name = 'none' }, { name = 'three', prior = [0.3, 0.3, 0.4] }");
    assert!(message.contains("three") && message.contains("3 entries") && message.contains("2 classes"), "{message}");
    let message = why("{ name = 'none' }, { name = 'to 1', base = { kind = 'towards', kl = 0.1, from = 0, to = 1 } }");
    assert!(message.contains("to 1") && message.contains("share one map"), "{message}");
}
