//! Public checkpoints from the command line, against the reference values.

use std::path::Path;

use bayescope::data::{Input, WorldBatch, read_npz, write_npz};
use serde_json::Value;

use crate::common::max_abs;
use crate::common::reference::{GlowReference, numbers, path};
use crate::common::tarflow::TarFlowReference;
use crate::run::{json, succeed, text};

fn posteriors(report: &Value, field: &str) -> Vec<f64> {
    report["images"].as_array().unwrap().iter().flat_map(|image| numbers(&image[field])).collect()
}

#[test]
fn posteriors_of_public_checkpoints_agree_at_every_temperature() {
    let folder = tempfile::tempdir().unwrap();
    for (name, endings, nats) in [
        ("config1", &["_best.pth.tar", "_latest.pth.tar", "_best_cuda.pth.tar", "_best_legacy.pth.tar"][..], 2e-4),
        ("config2", &["_best.pth.tar", "_plain.pth", ".safetensors"][..], 1e-3),
    ] {
        let reference = GlowReference::read(name);
        let x = folder.path().join(format!("{name}.npz"));
        let values = reference.input().iter().map(|&v| v as f32).collect();
        let shape = reference.config.shape;
        let batch = WorldBatch { shape, x: values, classes: 0, y: None, posterior: None, logp: None, aleatoric: None };
        write_npz(&x, &batch).unwrap();
        for (ending, precision) in endings.iter().flat_map(|ending| [(ending, "f32"), (ending, "f64")]) {
            for tau in ["1.0", "0.7", "1.5"] {
                let checkpoint = reference.checkpoint(ending);
                let args = ["posterior", text(&checkpoint), text(&x), "--json", "--device", "cpu", "--tau", tau];
                let report = json(&[&args[..], &["--precision", precision]].concat());
                let golden = |field: &str| reference.golden(&format!("tau/{tau}/{field}"));
                let what = format!("{name}{ending} {precision} τ = {tau}");
                let difference = |ours: &str, theirs: &str| max_abs(&posteriors(&report, ours), &golden(theirs));
                assert!(difference("posterior", "posterior") < 1e-5, "{what}: posterior");
                // x itself is rounded to 32 bits on its way through the file.
                assert!(difference("log_likelihood", "logp") < nats, "{what}: log p(x|y)");
                assert!(difference("log_px", "log_marginal") < nats, "{what}: log p(x)");
            }
        }
    }
}

fn write_x(path: &Path, reference: &TarFlowReference, x: &[f64], y: Option<Vec<i64>>) {
    let (shape, classes) = (reference.config.shape, reference.config.classes);
    let x = x.iter().map(|&v| v as f32).collect();
    write_npz(path, &WorldBatch { shape, x, classes, y, posterior: None, logp: None, aleatoric: None }).unwrap();
}

/// The three configurations, and one in the public naming layout as a GPU run writes it.
fn tarflows(folder: &Path) -> Vec<(TarFlowReference, std::path::PathBuf)> {
    let mut all: Vec<_> = ["config1", "config2", "config3"]
        .map(TarFlowReference::read)
        .into_iter()
        .map(|reference| {
            let file = folder.join(format!("{}.safetensors", reference.name));
            reference.weights().write(&file, Default::default()).unwrap();
            (reference, file)
        })
        .collect();
    all.push((TarFlowReference::read("config1"), path("tarflow/afhq_model_2_64_2_2_0.07.pth")));
    all
}

#[test]
fn posteriors_of_tarflows_agree() {
    let folder = tempfile::tempdir().unwrap();
    for (reference, file) in tarflows(folder.path()) {
        let x = folder.path().join("x.npz");
        write_x(&x, &reference, &reference.input(), None);
        for precision in ["f32", "f64"] {
            let args = ["posterior", text(&file), text(&x), "--json", "--device", "cpu", "--precision", precision];
            let report = json(&args);
            let k = reference.config.classes;
            if k == 0 {
                let golden = reference.golden("forward/none/logp_var");
                assert!(max_abs(&posteriors(&report, "log_px"), &golden) < 2e-4, "{precision}");
                continue;
            }
            let golden = reference.golden("posterior");
            assert!(max_abs(&posteriors(&report, "posterior"), &golden) < 2e-5, "{precision}: posterior");
            let ours = posteriors(&report, "log_likelihood");
            for class in 0..k {
                let ours: Vec<f64> = ours.iter().skip(class).step_by(k).copied().collect();
                let golden = reference.golden(&format!("forward/{class}/logp"));
                assert!(max_abs(&ours, &golden) < 2e-4, "{} {precision} class {class}", file.display());
            }
        }
    }
}

/// The reference's base noise, given as latents, becomes the reference's images.
#[test]
fn samples_of_tarflows_agree() {
    let folder = tempfile::tempdir().unwrap();
    for (reference, file) in tarflows(folder.path()) {
        let z = reference.config.unpatchify(&reference.noise());
        for case in reference.reverses().into_iter().filter(|case| case.guidance.is_none()) {
            // The command line samples worlds, and a world's image has a class.
            let classes: Option<Vec<i64>> = match reference.config.classes {
                0 => Some(vec![0; case.conditions.len()]),
                _ => case.conditions.iter().map(|condition| condition.map(|class| class as i64)).collect(),
            };
            let Some(classes) = classes else { continue };
            let (latents, out) = (folder.path().join("latents.npz"), folder.path().join("x.npz"));
            write_x(&latents, &reference, &z, Some(classes));
            let args = ["sample", text(&file), "--latents", text(&latents), "--out", text(&out), "--device", "cpu"];
            for precision in ["f32", "f64"] {
                succeed(&[&args[..], &["--precision", precision, "--force"]].concat());
                let Input::World(made) = read_npz(&out).unwrap() else { panic!("no world-space images") };
                let ours: Vec<f64> = made.x.iter().map(|&v| f64::from(v)).collect();
                assert!(max_abs(&ours, &case.x) < 3e-5, "{} {} {precision}", file.display(), case.name);
            }
        }
    }
}
