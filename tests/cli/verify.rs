//! `verify`: every case passes on the CPU within its time; quick ones on an adapter, where there is one; the report as JSON and in a file.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::run::{fail, json, output, succeed, text};

/// Cases of seconds on a software adapter.
const QUICK: &str = "glow-reference,convnet-logits,resnet-logits,glow";

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap()
}

/// Every row is what it says: within its bound where it passed.
fn check(report: &Value) {
    assert_eq!((report["format"].as_u64(), report["passed"].as_bool()), (Some(1), Some(true)), "{report:#}");
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert!(report["instructions"].is_string() && report["system"].as_str().unwrap().contains(std::env::consts::ARCH));
    for row in rows(report) {
        match row["verdict"].as_str().unwrap() {
            "passed" if row["bound"].is_null() => assert_eq!(row["case"], "device"),
            "passed" => assert!(row["error"].as_f64().unwrap() <= row["bound"].as_f64().unwrap(), "{row}"),
            verdict => assert_eq!((verdict, row["reason"].is_string()), ("skipped", true), "{row}"),
        }
    }
}

#[test]
fn every_case_passes_on_the_cpu_within_two_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let begun = Instant::now();
    let printed = json(&["verify", "--device", "cpu", "--json", "--report", text(&file)]);
    assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
    check(&printed);
    assert_eq!(printed["used"]["used"]["choice"], "cpu");
    assert!(printed["sentence"].as_str().unwrap().contains("computes correctly"));
    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(written, printed);
    // What the CPU computes is not what it is compared with: nearly every comparison finds a difference.
    let compared: Vec<f64> = rows(&printed).iter().filter_map(|row| row["error"].as_f64()).collect();
    let exact = compared.iter().filter(|error| **error == 0.0).count();
    assert!(compared.len() > 50 && exact < 5, "{exact} of {} comparisons find nothing at all", compared.len());
}

#[test]
fn a_table_for_the_eye_and_what_cannot_be_verified() {
    let told = succeed(&["verify", "--device", "cpu", "--cases", "glow-reference"]);
    for part in ["cpu: CPU", "largest error", "log p(x|y), τ = 0.7", "passed", "checks are within their bounds"] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
    assert!(!told.contains("tarflow"), "{told}");
    let why = fail(1, &["verify", "--device", "cpu", "--cases", "glwo"]);
    assert!(why.contains("glwo") && why.contains("glow-reference"), "{why}");
    // A device that is not there is a failed row, for the file of a bug report.
    let missing = output(&["verify", "--device", "cuda:97", "--json"]);
    let report: Value = serde_json::from_slice(&missing.stdout).unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert_eq!((report["passed"].as_bool(), rows(&report).len()), (Some(false), 1));
    assert!(rows(&report)[0]["reason"].as_str().unwrap().contains("cuda:97"));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("bayescope-verify-cuda-97.json"));
}

/// Burn's softmax on the CPU takes e^x from the C library. With another one in its place, the device has one kernel that computes wrongly.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn one_kernel_broken_on_purpose_fails_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("exponential.so");
    for (factor, passes) in [("1.0", true), ("1.01", false)] {
        let source = folder.path().join("exponential.c");
        std::fs::write(
            &source,
            format!("double exp(double);\nfloat expf(float x) {{ return (float)exp({factor} * x); }}\n"),
        )
        .unwrap();
        let compiler =
            Command::new("cc").args(["-shared", "-fPIC", "-fno-builtin", "-o"]).args([&library, &source]).output();
        let Ok(compiled) = compiler else {
            eprintln!("skipped: no C compiler here");
            return;
        };
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let cases = ["verify", "--device", "cpu", "--json", "--cases", "convnet-logits,resnet-logits,swin-logits"];
        let told = crate::run::bayescope(&cases).env("LD_PRELOAD", &library).output().unwrap();
        let report: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert_eq!((told.status.success(), report["passed"].as_bool()), (passes, Some(passes)), "{report:#}");
        let failed: Vec<&Value> = rows(&report).iter().filter(|row| row["verdict"] == "failed").collect();
        if passes {
            assert!(failed.is_empty(), "{failed:?}");
            continue;
        }
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(failed[0]["case"], "swin-logits");
        assert!(failed[0]["error"].as_f64().unwrap() > failed[0]["bound"].as_f64().unwrap());
        assert!(report["sentence"].as_str().unwrap().contains("first swin-logits"), "{}", report["sentence"]);
    }
}

/// The first graphics adapter.
fn adapter() -> Option<String> {
    let found = json(&["doctor", "--json"]);
    let choices = found["devices"].as_array().unwrap().iter().filter_map(|device| device["choice"].as_str());
    let adapter = choices.into_iter().find(|choice| choice.starts_with("wgpu"));
    if adapter.is_none() {
        eprintln!("skipped: no adapter beside the CPU");
    }
    adapter.map(ToOwned::to_owned)
}

/// Kernels that need more threads in a workgroup or larger buffers than a small card has would be refused.
#[test]
fn every_case_passes_with_the_limits_of_a_small_card() {
    let why = fail(1, &["verify", "--small-device", "--device", "cpu"]);
    assert!(why.contains("--device wgpu"), "{why}");
    let Some(adapter) = adapter() else { return };
    let report = json(&["verify", "--small-device", "--device", &adapter, "--json"]);
    check(&report);
    assert!(report["used"]["reason"].as_str().unwrap().contains("limits of a small card"), "{}", report["used"]);
}

#[test]
fn quick_cases_pass_on_an_adapter() {
    let Some(adapter) = adapter() else { return };
    let adapter = adapter.as_str();
    let report = json(&["verify", "--device", adapter, "--cases", QUICK, "--json"]);
    check(&report);
    assert_eq!(report["used"]["used"]["choice"], adapter);
    assert!(QUICK.split(',').all(|case| rows(&report).iter().any(|row| row["case"] == case)), "{report:#}");
}
