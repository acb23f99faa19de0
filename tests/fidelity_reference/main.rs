//! `measure::fidelity` against pytorch-fid's, prdc's, torch-fidelity's and Meehan's formulas on numpy, scipy and
//! scikit-learn (`tests/reference/fidelity`, whose `make.py` says which and how).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[allow(dead_code)] // Other targets use the rest.
#[path = "../common/fill.rs"]
mod fill;

use std::path::PathBuf;

use bayescope::measure::fidelity::{
    Features, Gaussian, Neighbours, data_copying, diversity, frechet, inception_score, manifold, mmd2,
    nearest_in_cells, percentile, posterior_stability,
};
use bayescope::measure::{Bootstrap, log_softmax};
use bayescope::units::Seed;
use serde_json::Value;

/// A file of the reference: in `tests/reference`, or in the folder named by `BAYESCOPE_REFERENCE`.
fn reference() -> Value {
    let bundled = || PathBuf::from("tests/reference");
    let folder = std::env::var_os("BAYESCOPE_REFERENCE").map_or_else(bundled, PathBuf::from);
    let text = std::fs::read_to_string(folder.join("fidelity/fidelity.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn count(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

/// base + scale u, rounded once to f32.
fn filled(name: &str, seed: u64, n: usize, [base, scale]: [f64; 2]) -> Vec<f32> {
    let value = |u: f64| {
        let scaled = scale * u;
        (base + scaled) as f32
    };
    fill::uniform(name, seed, n).into_iter().map(value).collect()
}

/// One case: its numbers, its features.
struct Case {
    expected: Value,
    dim: usize,
    real: Vec<f32>,
    generated: Vec<f32>,
}

impl Case {
    fn all() -> Vec<Self> {
        let file = reference();
        let seed = file["seed"].as_u64().unwrap();
        let one = |expected: &Value| {
            let (name, dim) = (expected["name"].as_str().unwrap(), count(&expected["d"]));
            Self {
                dim,
                real: filled(&format!("{name}.real"), seed, count(&expected["n"]) * dim, [0.5, 1.0]),
                generated: filled(&format!("{name}.generated"), seed, count(&expected["m"]) * dim, [0.6, 0.9]),
                expected: expected.clone(),
            }
        };
        file["cases"].as_array().unwrap().iter().map(one).collect()
    }

    fn features(&self) -> (Features<'_, f32>, Features<'_, f32>) {
        (Features::new(&self.real, self.dim).unwrap(), Features::new(&self.generated, self.dim).unwrap())
    }

    #[track_caller]
    fn close(&self, what: &str, found: f64, expected: &Value, tolerance: f64) {
        let expected = number(expected);
        assert!(
            (found - expected).abs() <= tolerance * expected.abs().max(1.0),
            "{} {what}: {found} {expected}",
            self.expected["name"]
        );
    }
}

#[test]
fn frechet_distances_also_of_singular_covariances() {
    for case in Case::all() {
        let (real, generated) = case.features();
        let (a, b) = (Gaussian::of(&real).unwrap(), Gaussian::of(&generated).unwrap());
        case.close("mean", a.mean()[0], &case.expected["mean_first"], 1e-14);
        case.close("covariance", a.covariance()[(0, 1)], &case.expected["covariance_first_two"], 1e-14);
        let found = frechet(&a, &b).unwrap().value;
        case.close("fid with 60 digits", found, &case.expected["fid"], 1e-12);
        // scipy's root of a singular product is itself off by 2e-7.
        case.close("fid of pytorch-fid", found, &case.expected["fid_pytorch"], 1e-6);
    }
}

#[test]
fn kernel_distances() {
    for case in Case::all() {
        let (real, generated) = case.features();
        case.close("mmd2", mmd2(&real, &generated).unwrap(), &case.expected["mmd2"], 1e-12);
    }
}

#[test]
fn precision_recall_density_and_coverage() {
    for case in Case::all() {
        let (real, generated) = case.features();
        for (k, expected) in case.expected["prdc"].as_object().unwrap() {
            let found = manifold(&real, &generated, k.parse().unwrap(), &Bootstrap::new(Seed(1))).unwrap();
            case.close("precision", found.precision.value, &expected["precision"], 1e-12);
            case.close("recall", found.recall.value, &expected["recall"], 1e-12);
            case.close("density", found.density.value, &expected["density"], 1e-12);
            case.close("coverage", found.coverage.value, &expected["coverage"], 1e-12);
        }
    }
}

#[test]
fn nearest_neighbours() {
    for case in Case::all() {
        let (real, generated) = case.features();
        let found = Neighbours::of(&generated, &real, 2).unwrap();
        for i in 0..found.n() {
            let list: Vec<(f64, usize)> = found.list(i).collect();
            case.close("first", list[0].0, &case.expected["nearest"][i], 1e-12);
            case.close("second", list[1].0, &case.expected["second"][i], 1e-12);
            assert_eq!(list[0].1, count(&case.expected["index"][i]));
        }
        let ninetieth = percentile(&found.nearest(), 0.9).unwrap();
        case.close("percentile", ninetieth, &case.expected["percentile"], 1e-12);
    }
}

#[test]
fn data_copying_scores() {
    for case in Case::all() {
        let (real, generated) = case.features();
        let cells = |n: usize| -> Vec<usize> { (0..n).map(|i| i % 2).collect() };
        // The later half of the generated images stands for held-out ones.
        let half = generated.n() / 2;
        let (made, held_out) = case.generated.split_at(half * case.dim);
        let (made, held_out) = (Features::new(made, case.dim).unwrap(), Features::new(held_out, case.dim).unwrap());
        let (of_real, of_generated) = (cells(real.n()), cells(generated.n()));
        let (of_made, of_held_out) = of_generated.split_at(half);
        let near = |set: &Features<'_, f32>, of: &[usize]| nearest_in_cells((set, of), (&real, &of_real), 2).unwrap();
        let (to_made, to_held_out) = (near(&made, of_made), near(&held_out, of_held_out));
        let found = data_copying(&of_real, (&to_held_out, of_held_out), (&to_made, of_made), 2, 0.1).unwrap();
        for cell in &found.cells {
            case.close("z", cell.ranks.unwrap().z, &case.expected["copying"]["z"][cell.cell], 1e-12);
        }
        case.close("c_t", found.c_t.unwrap(), &case.expected["copying"]["c_t"], 1e-12);
    }
}

#[test]
fn diversity_ratios() {
    for case in Case::all() {
        let (real, generated) = case.features();
        let (of_real, of_generated) = (vec![0; real.n()], vec![0; generated.n()]);
        let found = diversity((&real, &of_real), (&generated, &of_generated), 1).unwrap();
        case.close("variance", found[0].variance.unwrap().value, &case.expected["variance_ratio"], 1e-12);
        case.close("distance", found[0].distance.unwrap().value, &case.expected["distance_ratio"], 1e-9);
    }
}

#[test]
fn inception_scores_and_posterior_stability() {
    let file = reference();
    let (seed, inception) = (file["seed"].as_u64().unwrap(), &file["inception"]);
    let (n, classes) = (count(&inception["n"]), count(&inception["classes"]));
    let logits = filled("logits", seed, n * classes, [0.0, number(&inception["scale"])]);
    let log_p = log_softmax(&logits, classes);
    for (splits, expected) in inception["splits"].as_object().unwrap() {
        let found = inception_score(&log_p, classes, splits.parse().unwrap(), None).unwrap();
        assert!((found.mean - number(&expected["mean"])).abs() < 1e-12, "{found:?}");
        assert!((found.std - number(&expected["std"])).abs() < 1e-12, "{found:?}");
    }
    let shift = filled("shift", seed, n * classes, [0.0, number(&file["stability"]["scale"])]);
    let shifted: Vec<f32> = logits.iter().zip(&shift).map(|(a, b)| a + b).collect();
    let log_q = log_softmax(&shifted, classes);
    let found = posterior_stability(&log_p, &log_q, classes, &Bootstrap::new(Seed(1))).unwrap();
    let expected = number(&file["stability"]["kl"]);
    // scipy's terms p log(p/q) cancel: 1e-16 of 1e-7.
    assert!((found.kl.value / expected - 1.0).abs() < 1e-8, "{} {expected}", found.kl.value);
}
