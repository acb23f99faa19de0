//! `--reproducible`: what `BAYESCOPE_SIMD=portable` computes, and no promise where it would not hold.

use std::path::Path;

use crate::run::{bayescope, text};

/// Samples of a world, and the instruction set that their record names.
fn sampled(world: &str, folder: &Path, extra: &[&str], simd: Option<&str>) -> (Vec<u8>, String) {
    let file = folder.join("s.npz");
    let args = ["sample", world, "--n", "3", "--seed", "1", "--device", "cpu", "--force", "--out", text(&file)];
    let mut command = bayescope(&[&args[..], extra].concat());
    // Without measurements of earlier runs, which may choose another way of inverting.
    command.env("XDG_CACHE_HOME", folder).env_remove("BAYESCOPE_SIMD");
    if let Some(simd) = simd {
        command.env("BAYESCOPE_SIMD", simd);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = std::fs::read(folder.join("s.npz.provenance.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["device"], "cpu");
    (std::fs::read(&file).unwrap(), record["instructions"].as_str().unwrap().to_owned())
}

#[test]
fn the_flag_takes_the_portable_kernels_and_its_record_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for world in ["tests/worlds/animals", "cells", "mnist"] {
        let asked = sampled(world, folder.path(), &["--reproducible"], None);
        assert_eq!(asked.1, "portable");
        let named = sampled(world, folder.path(), &[], Some("portable"));
        assert!(asked == named, "{world}: the flag and the variable differ");
        let over = sampled(world, folder.path(), &["--reproducible"], Some("avx2"));
        assert!(asked == over, "{world}: the variable outweighs the flag");
    }
}
