//! Public checkpoints from the command line, against the reference values.

use bayescope::data::{WorldBatch, write_npz};
use serde_json::Value;

use crate::common::max_abs;
use crate::common::reference::{GlowReference, numbers};
use crate::run::{json, text};

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
