//! Public checkpoints opened as they are, and the numbers that come out of the world they make.

use bayescope::events::silent;
use bayescope::flow::base::latents;
use bayescope::flow::import::read_checkpoint;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::sampling::{Guess, Strategy};
use bayescope::flow::{Architecture, Precision};
use bayescope::oracle::folder;
use bayescope::oracle::posterior::{Posterior, Prior};
use bayescope::units::{Seed, Smoothing, Tau};
use burn::tensor::Device;

use crate::common::reference::path;
use crate::common::table::{Table, Tolerance};
use crate::common::tarflow::TarFlowReference;

const PUBLIC: &str = "tarflow/afhq_model_2_64_2_2_0.07.pth";

#[test]
fn every_layout_gives_the_weights_of_the_formula() {
    let reference = TarFlowReference::read("config1");
    let public = path(PUBLIC);
    for file in [reference.checkpoint(".pth"), reference.checkpoint(".safetensors"), public.clone()] {
        let checkpoint = read_checkpoint(&file, &mut silent()).unwrap();
        assert_eq!(checkpoint.inferred.architecture, Architecture::TarFlow(reference.config), "{}", file.display());
        let expected = reference.weights();
        assert_eq!(checkpoint.weights, expected, "{}", file.display());
        let noise = if file == public { 0.07 } else { 0.05 };
        assert_eq!(checkpoint.inferred.pixels, Preprocessing::Gaussian { std: noise });
        let told = checkpoint.inferred.sentences.join("; ");
        let source = if file == public { "from the file name" } else { "the file name does not tell" };
        assert!(told.contains("3 classes: from the shape of 'class_embed'") && told.contains(source), "{told}");
    }
}

/// The three configurations as oracles on disk, scored as a world scores: log-likelihoods of every class, posteriors.
#[test]
fn worlds_of_checkpoints_have_the_reference_posteriors() {
    for name in ["config1", "config2", "config3"] {
        let reference = TarFlowReference::read(name);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(format!("{name}.safetensors"));
        reference.weights().write(&file, Default::default()).unwrap();
        for (precision, log_p, posterior) in [(Precision::F64, 1e-6, 1e-7), (Precision::F32, 2e-4, 2e-5)] {
            let oracle = folder::open(file.to_str().unwrap(), &Device::flex(), precision, 8).unwrap();
            let x: Vec<f32> = reference.input().iter().map(|&v| v as f32).collect();
            let scores = oracle.world.flow().score(&x).unwrap();
            let mut table = Table::new(format!("{name} {precision:?} world"));
            let k = reference.config.classes;
            if k == 0 {
                let ours: Vec<f64> = (0..2).flat_map(|i| scores.log_likelihoods(i, Tau::ONE)).collect();
                let golden = reference.golden("forward/none/logp_var");
                table.compare("logp_var", &ours, &golden, Tolerance::Absolute(log_p));
                table.finish();
                continue;
            }
            let prior = Prior::uniform(k);
            let posteriors: Vec<Posterior> = (0..scores.len())
                .map(|i| Posterior::new(scores.log_likelihoods(i, Tau::ONE), &prior, Smoothing::ONE))
                .collect();
            for class in 0..k {
                let ours: Vec<f64> = posteriors.iter().map(|p| p.log_likelihood[class]).collect();
                let golden = reference.golden(&format!("forward/{class}/logp"));
                table.compare(&format!("logp y={class}"), &ours, &golden, Tolerance::Absolute(log_p));
            }
            let gather = |part: fn(&Posterior) -> &[f64]| posteriors.iter().flat_map(part).copied().collect::<Vec<_>>();
            let golden = reference.golden("posterior");
            table.compare("posterior", &gather(|p| &p.probabilities), &golden, Tolerance::Absolute(posterior));
            let log_px: Vec<f64> = posteriors.iter().map(|p| p.log_px).collect();
            table.compare("log_marginal", &log_px, &reference.golden("log_marginal"), Tolerance::Absolute(log_p));
            table.finish();
        }
    }
}

/// Every class scored alone, or in parts, is what scoring all at once gives, bit for bit.
#[test]
fn classes_may_be_scored_in_any_parts() {
    let oracle = folder::open(path(PUBLIC).to_str().unwrap(), &Device::flex(), Precision::F32, 8).unwrap();
    let reference = TarFlowReference::read("config1");
    let x: Vec<f32> = reference.input().iter().map(|&v| v as f32).collect();
    let flow = oracle.world.flow();
    let whole = flow.score(&x).unwrap();
    let parts = flow.score_classes(&x, 0..1).unwrap().with_classes(&flow.score_classes(&x, 1..3).unwrap());
    assert_eq!(whole, parts);
    assert_eq!(whole.select(1..3), flow.score_classes(&x, 1..3).unwrap());
}

#[test]
fn one_flow_per_class_makes_a_world() {
    let reference = TarFlowReference::read("config3");
    let folder = tempfile::tempdir().unwrap();
    let mut other = reference.weights();
    other.0.get_mut("blocks.0.proj_out.bias").unwrap().values.iter_mut().for_each(|v| *v += 0.05);
    reference.weights().write(&folder.path().join("a_model_4_128_3_2_0.10.safetensors"), Default::default()).unwrap();
    other.write(&folder.path().join("b_model_4_128_3_2_0.10.safetensors"), Default::default()).unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("flows.json"), text).unwrap();
    let open = || folder::open(folder.path().to_str().unwrap(), &Device::flex(), Precision::F64, 8);
    write(
        r#"{"name": "pair", "classes": [{"name": "first", "file": "a_model_4_128_3_2_0.10.safetensors"},
            {"name": "second", "file": "b_model_4_128_3_2_0.10.safetensors"}]}"#,
    );
    let oracle = open().unwrap();
    assert_eq!(oracle.info.class_names, ["first", "second"]);
    assert_eq!(oracle.info.pixels, Preprocessing::Gaussian { std: 0.1 });
    let x: Vec<f32> = reference.input().iter().map(|&v| v as f32).collect();
    let scores = oracle.world.flow().score(&x).unwrap();
    let golden = reference.golden("forward/none/logp_var");
    for (i, golden) in golden.iter().enumerate() {
        let log_p = scores.log_likelihoods(i, Tau::ONE);
        assert!((log_p[0] - golden).abs() < 1e-6 && (log_p[1] - golden).abs() > 1.0, "{log_p:?}, not {golden}");
    }
    // A sample of the second class comes from the second flow.
    let noise = vec![0.1; 3072];
    let x = oracle.world.flow().decode(&noise, &[1], Tau::ONE, &mut silent()).unwrap().x;
    let scores = oracle.world.flow().score(&x).unwrap();
    let length: f64 = noise.iter().map(|e| f64::from(*e) * f64::from(*e)).sum();
    assert!((scores.quad[1] - length).abs() < 1e-3, "{:?}", scores.quad);
    assert!((scores.quad[0] - length).abs() > 1e-2, "{:?}", scores.quad);
    write(r#"{"name": "pair", "classes": [{"name": "first", "file": "missing.pth"}]}"#);
    assert!(open().err().unwrap().to_string().contains("missing.pth"));
}

#[test]
fn a_renamed_or_broken_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(path(PUBLIC)).unwrap();
    let refusal = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let message = read_checkpoint(&file, &mut silent()).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
        message
    };
    assert!(refusal("afhq_model_2_64_2_4_0.07.pth", &bytes).contains("was it renamed?"));
    refusal("afhq_model_2_64_2_2_0.07.pth", &bytes[..bytes.len() / 2]);
    let reference = TarFlowReference::read("config1");
    let mut weights = reference.weights();
    weights.0.remove("blocks.1.proj_in.bias");
    let bytes = weights.to_safetensors(Default::default()).unwrap();
    assert!(refusal("x.safetensors", &bytes).contains("'blocks.1.proj_in.bias' is missing"));
}

/// Cached, masked and GS-Jacobi in a trained world with a map for each class, and in one with a map for all: one image, within 1e-4 in
/// f32; and the evidence of a sample adds up.
#[test]
fn a_trained_tarflow_samples_alike_every_way() {
    for world in ["tests/worlds/animals", "cells"] {
        samples_alike_every_way(world);
    }
}

fn samples_alike_every_way(world: &str) {
    let oracle = folder::open(world, &Device::flex(), Precision::F32, 8).unwrap();
    let flow = oracle.world.flow().block_inversion().unwrap();
    let noise = latents(Seed(3), 0, 3, flow.shape().dims());
    let decode = |strategy| {
        flow.set_strategies(vec![strategy; flow.strategies().len()]);
        flow.decode(&noise, &[0, 1, 2], Tau::ONE, &mut silent()).unwrap().x
    };
    let cached = decode(Strategy::Loop);
    let ways = [
        ("masked", Strategy::Jacobi { modules: 1, guess: Guess::Z, tolerance: -1.0 }),
        ("Jacobi", Strategy::Jacobi { modules: 1, guess: Guess::Z, tolerance: 1e-6 }),
        ("GS-Jacobi", Strategy::Jacobi { modules: 8, guess: Guess::Zero, tolerance: 1e-6 }),
    ];
    for (name, strategy) in ways {
        let x = decode(strategy);
        let difference = x.iter().zip(&cached).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("{world}, {name}: {difference:e}");
        assert!(difference <= 1e-4, "{world}, {name}: {difference}");
    }
    let evidence = flow.evidence(&cached[..3072], 0, 2, Tau::ONE).unwrap();
    let sum: f64 = evidence.cells.iter().sum();
    assert!((sum - evidence.total).abs() <= 1e-6 * (1.0 + evidence.total.abs()), "{sum}, {}", evidence.total);
}
