//! `--device cpu,wgpu:0`: two devices share a run and a posterior job, and come to what one comes to. Where there is no adapter,
//! these tests say so and pass.

use std::path::Path;

use crate::common::max_abs;
use crate::common::reference::path;
use crate::run::{fail, json, succeed, text};
use crate::scale::npz_arrays;

/// The CPU and the first adapter there is.
fn both() -> Option<String> {
    let found = json(&["doctor", "--json"]);
    let choices = found["devices"].as_array().unwrap().iter().filter_map(|device| device["choice"].as_str());
    let adapter = choices.into_iter().find(|choice| choice.starts_with("wgpu"));
    if adapter.is_none() {
        eprintln!("skipped: no adapter beside the CPU");
    }
    adapter.map(|adapter| format!("cpu,{adapter}"))
}

/// A small Glow: 4 classes, grey 8×8 images.
fn oracle() -> String {
    text(&path("glow/config1_best.pth.tar")).to_owned()
}

#[test]
fn two_devices_share_a_posterior_job() {
    let Some(devices) = both() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [input, one, two] = ["x.npz", "one", "two"].map(|name| folder.path().join(name));
    succeed(&["sample", &oracle(), "--n", "700", "--out", text(&input), "--device", "cpu"]);
    let job = |out: &Path, device: &str| {
        let args =
            ["posterior", &oracle(), text(&input), "--out", text(out), "--no-compare", "--json", "--device", device];
        json(&args)
    };
    job(&one, "cpu");
    let report = job(&two, &devices);
    assert_eq!(report["of"], 8, "four shards for each device");
    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(two.join("posteriors.json")).unwrap()).unwrap();
    assert_eq!(result["devices"].as_array().unwrap().len(), 2, "computed by {}", result["devices"]);
    let logp = |folder: &Path| npz_arrays(&folder.join("posteriors.npz"))[0].clone();
    let off = max_abs(&logp(&one), &logp(&two));
    assert!(off < 1e-3, "log p(x|y) differ by {off} nats");
    // A job that is there goes on with its shards, whatever is asked now.
    assert_eq!(job(&two, &devices)["of"], 8);
    let why = fail(1, &["posterior", &oracle(), text(&input), "--device", &devices]);
    assert!(why.contains("--out"), "{why}");
    let why = fail(2, &["posterior", &oracle(), text(&input), "--out", text(&one), "--device", "cpu,cpu"]);
    assert!(why.contains("cpu twice"), "{why}");
}

#[test]
fn two_devices_share_a_run() {
    let Some(devices) = both() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [spec, one, two] = ["spec.toml", "one", "two"].map(|name| folder.path().join(name));
    let grid = format!(
        "name = 'shared'\n[world]\noracle = '{}'\n[grid]\narchitectures = ['linear']\ntrain_sizes = [64, 128]\n\
         seeds = [0, 1, 2]\n[test]\nimages = 64\nwatched = 32\n[training]\nepochs = 2\nbatch = 16\n",
        oracle()
    );
    std::fs::write(&spec, grid).unwrap();
    let run = |out: &Path, device: &str| json(&["run", text(&spec), "--out", text(out), "--json", "--device", device]);
    let (alone, shared) = (run(&one, "cpu"), run(&two, &devices));
    assert_eq!((alone["finished"].as_u64(), shared["finished"].as_u64()), (Some(6), Some(6)));
    let cells = |summary: &serde_json::Value| summary["cells"].as_array().unwrap().clone();
    for (a, b) in cells(&alone).iter().zip(cells(&shared)) {
        assert_eq!((&a["cell"], &a["steps"]), (&b["cell"], &b["steps"]));
        let loss = |cell: &serde_json::Value| cell["measured"]["cross_entropy"]["value"].as_f64().unwrap();
        assert!((loss(a) - loss(&b)).abs() < 1e-3, "{} {}", loss(a), loss(&b));
    }
    let why = fail(1, &["run", "hardness-quick", "--out", text(&folder.path().join("three")), "--device", &devices]);
    assert!(why.contains("one device"), "{why}");
}
