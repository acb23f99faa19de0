//! Numbers nobody means: refused by name or begun and stopped, at once, never an abort for lack of memory.

use std::ops::ControlFlow;
use std::path::Path;

use bayescope::bayes::by_sampling;
use bayescope::data::{ImageShape, WorldBatch, write_npz};
use bayescope::device::MatmulPrecision;
use bayescope::error::Error;
use bayescope::events::Progress;
use bayescope::flow::Precision;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::sampling::SamplerOptions;
use bayescope::flow::tarflow::TarFlowOracle;
use bayescope::oracle::export::save_samples;
use bayescope::oracle::look::save_pictures_with;
use bayescope::oracle::world::{SampleSpec, Settings, World};
use bayescope::units::{Seed, Tau};
use burn::tensor::Device;

use crate::common::tiny;
use crate::experiments::Grid;
use crate::run::{fail, json, succeed, text};

/// More than any memory holds a byte each of.
const MANY: usize = 1_000_000_000_000_000;

/// A class-map world of grey 8×8 images of four classes.
fn world() -> (World, Settings) {
    let config = tiny::tarflow_config(1, 8, 2, 4);
    let pixels = Preprocessing::Gaussian { std: 0.05 };
    let flow = TarFlowOracle::new(&config, tiny::tarflow_weights(&config, 9), pixels, &Device::flex(), Precision::F32)
        .unwrap();
    let names = (0..4).map(|c| format!("class {c}")).collect();
    (World::new(Box::new(flow), names, 8).unwrap(), Settings::default_for(4))
}

/// Stops at the first word, which must tell of `total`.
fn first(total: usize) -> impl FnMut(Progress) -> ControlFlow<()> {
    move |told: Progress| {
        assert_eq!(told.total, total);
        ControlFlow::Break(())
    }
}

#[test]
fn samples_beyond_number_are_drawn_pass_by_pass() {
    let (world, settings) = world();
    let place = tempfile::tempdir().unwrap();
    let n = MANY;
    let spec = SampleSpec { n, class: None, seed: Seed(0), products: MatmulPrecision::F32 };
    let look = SamplerOptions { guidance: None, denoise: true };
    for name in ["x.npz", "folder"] {
        let done = save_samples(&world, &spec, &[], &settings, &place.path().join(name), &mut first(n));
        assert!(matches!(done, Err(Error::Cancelled)), "{name}: {done:?}");
    }
    let done = save_pictures_with(&world, &spec, &[], &settings, &look, &place.path().join("denoised"), &mut first(n));
    assert!(matches!(done, Err(Error::Cancelled)), "{done:?}");
    // A sheet is held in memory: what cannot be one is refused before a picture is drawn.
    let sheet = place.path().join("x.png");
    let refused = [
        save_samples(&world, &spec, &[], &settings, &sheet, &mut first(0)).map(drop),
        save_pictures_with(&world, &spec, &[], &settings, &look, &sheet, &mut first(0)).map(drop),
    ];
    for refused in refused {
        let why = refused.unwrap_err().to_string();
        assert!(why.contains(&format!("n = {n}")) && why.contains("folder"), "{why}");
    }
    assert!(!place.path().join("x.npz").exists() && !place.path().join("x.png").exists());
    let done = by_sampling(&world, &settings, &[Tau::ONE], n, Seed(0), &mut first(n));
    assert!(matches!(done, Err(Error::Cancelled)), "{done:?}");
}

/// As many images as no disk holds, for each form: refused before a folder or file is begun.
#[test]
#[cfg(target_os = "linux")]
fn what_no_disk_holds_is_refused_before_a_draw() {
    let place = tempfile::tempdir().unwrap();
    let many = "1000000000000000";
    for (command, name) in [("sample", "x.npz"), ("sample", "pictures"), ("export", "dataset")] {
        let out = place.path().join(name);
        let count = if command == "sample" { "--n" } else { "--train" };
        let said = fail(1, &[command, "mnist", count, many, "--device", "cpu", "--out", text(&out)]);
        let last = said.lines().last().unwrap();
        assert!(last.contains(text(place.path())) && last.contains("No space left for it"), "{said}");
        assert!(last.contains("GiB, and") && last.contains("fewer images"), "{said}");
        assert!(!out.exists(), "{name}");
    }
}

#[test]
fn a_walk_without_end_is_refused() {
    for steps in ["0", "10001", "1000000000000", "18446744073709551615"] {
        let args = ["walk", "mnist", "--from", "sample:0", "--to", "sample:1", "--steps", steps, "--device", "cpu"];
        let why = fail(1, &args);
        assert!(why.contains("1 to 10000 steps") && why.contains(steps), "{why}");
    }
}

#[test]
fn specs_beyond_number_are_refused_by_the_name_of_the_field() {
    let rest = "[grid]\narchitectures = ['linear']\ntrain_sizes = [100]\n[training]\nepochs = 1\n";
    let refused = |from: &str, to: &str, words: &[&str]| {
        let grid = Grid::new(rest);
        grid.change(from, to);
        let why = fail(1, &["plan", text(&grid.spec)]);
        assert!(words.iter().all(|word| why.contains(word)), "{why}");
    };
    let shift = "experiment]\nkind = 'shift'\npool = 100\nsettings = [{ name = 'none' }]\n[grid]";
    let graders = "experiment]\nkind = 'graders'\ntaus = [1.0]\nannotators = 10000000000\n[grid]";
    refused("[100]", "[100, 1000000000000]", &["1000000000000", "grid.train_sizes"]);
    refused("epochs = 1\n", "epochs = 1\n[test]\nimages = 1000000000000\n", &["1000000000000", "test.images"]);
    refused("grid]", &shift.replace("= 100", "= 1000000000000"), &["1000000000000", "experiment.pool"]);
    refused("grid]", graders, &["experiment.annotators", "1 and 10000,", "10000000000"]);
    let grid = Grid::new(&rest.replace("[100]", "[1000000000000]").replace("grid]", shift));
    let why = fail(1, &["plan", text(&grid.spec)]);
    assert!(why.contains("grid.train_sizes") && why.contains("10,000,000"), "{why}");
}

/// Which image or sample, of which file, and what to do.
#[test]
fn who_leaves_the_finite_numbers_is_named() {
    let place = tempfile::tempdir().unwrap();
    let oracle = tiny::tarflow_file(place.path(), 2, 9);
    let shape = ImageShape { channels: 1, height: 8, width: 8 };
    let mut x = vec![0.1; 80 * shape.dims()];
    x[70 * shape.dims()..71 * shape.dims()].fill(3e38);
    let big = place.path().join("big.npz");
    write_npz(&big, &WorldBatch { shape, x, classes: 2, y: None, posterior: None, logp: None, aleatoric: None })
        .unwrap();
    let job = place.path().join("job");
    for more in [&[][..], &["--out", text(&job)]] {
        let why = fail(1, &[&["posterior", text(&oracle), text(&big), "--device", "cpu"], more].concat());
        assert!(why.contains("big.npz: image 70 leaves the finite numbers"), "{why}");
    }
    let out = place.path().join("x.npz");
    let why = fail(1, &["sample", text(&oracle), "--n", "3", "--tau", "1e18", "--device", "cpu", "--out", text(&out)]);
    assert!(
        why.contains("sample 0 leaves the finite numbers") && why.contains("τ = 1000000000000000000: lower τ"),
        "{why}"
    );
}

#[test]
fn extremes_have_a_posterior_or_an_error() {
    let place = tempfile::tempdir().unwrap();
    let [zero, one] = ["zero.npz", "one.npz"].map(|name| place.path().join(name));
    let drawn = |file: &Path, class: &str| {
        let args = ["sample", "mnist", "--n", "3", "--class", class, "--out", text(file), "--device", "cpu"];
        succeed(&args);
    };
    drawn(&zero, "0");
    drawn(&one, "1");
    let ask = |file: &Path, more: &[&str]| -> Vec<String> {
        let args = ["posterior", "mnist", text(file), "--device", "cpu", "--json"];
        args.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
    };
    fn args(args: &[String]) -> Vec<&str> {
        args.iter().map(String::as_str).collect()
    }
    for smoothing in ["1e-310", "5e-324"] {
        let found = json(&args(&ask(&one, &["--smoothing", smoothing])));
        for image in found["images"].as_array().unwrap() {
            let p: Vec<f64> = serde_json::from_value(image["posterior"].clone()).unwrap();
            assert!(p.iter().all(|p| [0.0, 1.0].contains(p)) && p.iter().sum::<f64>() == 1.0, "{image}");
        }
    }
    let why = fail(1, &args(&ask(&one, &["--tau", "1e-200"])));
    assert!(why.contains("1e-100") && why.contains("1e-200"), "{why}");
    let without = ["--tau", "0", "--prior", "0,1,1,1,1,1,1,1,1,1"];
    let why = fail(1, &args(&ask(&zero, &without)));
    assert!(why.contains("no posterior"), "{why}");
}
