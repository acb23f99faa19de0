//! Every public checkpoint layout opens as it is and gives the weights of the formula, bit for bit.

use std::collections::BTreeMap;

use bayescope::flow::glow::GlowFlow;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::{Architecture, Precision};
use bayescope::oracle::folder;
use burn::tensor::Device;

use crate::common::reference::{GlowReference, read_glow};

/// Plain state dict, its safetensors form, and DataHardness' training layouts.
pub const LAYOUTS: [(&str, &[&str]); 2] = [
    (
        "config1",
        &[
            "_plain.pth",
            ".safetensors",
            "_best.pth.tar",
            "_latest.pth.tar",
            "_best_cuda.pth.tar",
            "_best_legacy.pth.tar",
        ],
    ),
    ("config2", &["_plain.pth", ".safetensors", "_best.pth.tar"]),
];

#[test]
fn every_layout_gives_the_weights_of_the_formula() {
    for (name, endings) in LAYOUTS {
        let reference = GlowReference::read(name);
        let expected: BTreeMap<String, _> = reference.parameters().into_iter().map(|p| (p.name.clone(), p)).collect();
        for ending in endings {
            let path = reference.checkpoint(ending);
            let (config, weights) = read_glow(&path).unwrap();
            assert_eq!(config, reference.config, "{}", path.display());
            for (name, parameter) in &expected {
                match weights.0.get(name) {
                    Some(array) => {
                        assert_eq!(array.shape, parameter.shape, "{name} of {}", path.display());
                        let same = array.values.iter().zip(&parameter.values).all(|(a, b)| a.to_bits() == b.to_bits());
                        assert!(same, "{name} of {}", path.display());
                    }
                    // Flags that a file may store as booleans or integers.
                    None => assert!(name.ends_with(".is_initialized"), "{name} is missing in {}", path.display()),
                }
            }
            let unknown = weights.0.keys().find(|name| !expected.contains_key(*name));
            assert_eq!(unknown, None, "{}", path.display());
            GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), Precision::F32).unwrap();
        }
    }
}

#[test]
fn a_checkpoint_opens_as_an_oracle() {
    for ending in ["_best.pth.tar", "_latest.pth.tar", "_best_legacy.pth.tar"] {
        let reference = GlowReference::read("config1");
        let path = reference.checkpoint(ending);
        let oracle = folder::open(path.to_str().unwrap(), &Device::flex(), Precision::F32, 8).unwrap();
        assert_eq!(oracle.info.architecture, Architecture::Glow(reference.config));
        assert_eq!(oracle.info.class_names, ["0", "1", "2", "3"]);
        assert_eq!(oracle.world.flow().shape(), reference.config.shape);
    }
}

/// PyTorch names the folder inside a zip after the file, so the length of the name moves everything inside. A name of 21
/// characters puts the directory's second entry where the zip reader looks for the first ([`LAYOUTS`] has such a file:
/// `config1_best_cuda.pth.tar`).
#[test]
fn a_name_of_any_length() {
    let reference = GlowReference::read("config1");
    let bytes = std::fs::read(reference.checkpoint("_best_cuda.pth.tar")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for ending in [".pth", ".pth.tar", ".pt", ""] {
        let path = folder.path().join(format!("renamed{ending}"));
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read_glow(&path).unwrap().0, reference.config);
    }
}
