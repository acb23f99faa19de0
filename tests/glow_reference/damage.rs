//! Damaged and foreign checkpoints: an error that names the file, never a panic, never wrong weights in silence where the
//! format can tell.

use std::path::Path;

use bayescope::error::Result;
use bayescope::flow::glow::GlowFlow;
use bayescope::flow::preprocess::Preprocessing;
use bayescope::flow::weights::{HostTensor, Storage, Weights};
use bayescope::flow::{Flow, Precision};
use bayescope::units::Seed;
use burn::tensor::Device;
use rand::RngExt;

use crate::common::reference::{GlowReference, read_glow};
use crate::files::LAYOUTS;

fn open(path: &Path) -> Result<GlowFlow> {
    let (config, weights) = read_glow(path)?;
    GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), Precision::F32)
}

/// The message of a refusal, which must name the file.
fn refusal(path: &Path) -> String {
    let message = match open(path) {
        Ok(_) => panic!("{} opens", path.display()),
        Err(error) => error.to_string(),
    };
    assert!(message.contains(path.file_name().unwrap().to_str().unwrap()), "{message}");
    message
}

#[test]
fn truncated_files() {
    let folder = tempfile::tempdir().unwrap();
    let (name, endings) = LAYOUTS[0];
    for ending in endings {
        let whole = std::fs::read(GlowReference::read(name).checkpoint(ending)).unwrap();
        let n = whole.len();
        for length in [0, 1, 7, 8, 64, 512, 4096, n / 4, n / 2, 3 * n / 4, n - 4096, n - 100, n - 1] {
            let path = folder.path().join(format!("cut{ending}"));
            std::fs::write(&path, &whole[..length]).unwrap();
            refusal(&path);
        }
    }
}

#[test]
fn random_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Seed(5).rng(0);
    for ending in [".safetensors", ".pth", ".pth.tar"] {
        for length in [1, 10, 1000, 100_000] {
            let path = folder.path().join(format!("noise{ending}"));
            let bytes: Vec<u8> = (0..length).map(|_| rng.random()).collect();
            std::fs::write(&path, bytes).unwrap();
            refusal(&path);
        }
    }
}

/// A flipped byte may fall into the values, where no format but zip can tell: then the flow opens and is another one.
/// Whatever happens, nothing panics and a refusal names the file.
#[test]
fn flipped_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Seed(6).rng(0);
    let (name, endings) = LAYOUTS[0];
    let mut refused = 0;
    for ending in endings {
        let whole = std::fs::read(GlowReference::read(name).checkpoint(ending)).unwrap();
        for attempt in 0..60 {
            let mut bytes = whole.clone();
            // Half of the attempts hit the first kilobytes or the end, where the structure is.
            let range = [0..bytes.len(), 0..4096, bytes.len() - 2048..bytes.len()][attempt % 3].clone();
            for _ in 0..4 {
                bytes[rng.random_range(range.clone())] = rng.random();
            }
            let path = folder.path().join(format!("flipped{ending}"));
            std::fs::write(&path, bytes).unwrap();
            if let Err(error) = open(&path) {
                refused += 1;
                let message = error.to_string();
                let of_the_map = message.contains("singular");
                assert!(of_the_map || message.contains("flipped"), "{message}");
            }
        }
    }
    println!("{refused} of 360 files with flipped bytes refused");
    assert!(refused > 100);
}

#[test]
fn arrays_that_do_not_fit() {
    let reference = GlowReference::read("config1");
    let (_, whole) = read_glow(&reference.checkpoint(".safetensors")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let changed = |change: &dyn Fn(&mut Weights)| {
        let mut weights = whole.clone();
        change(&mut weights);
        let path = folder.path().join("changed.safetensors");
        weights.write(&path, Storage::F32).unwrap();
        refusal(&path)
    };
    let remove = |name: &'static str| changed(&move |w| drop(w.0.remove(name)));
    let insert = |name: &'static str, shape: &'static [usize], value: f32| {
        changed(&move |w| drop(w.0.insert(name.into(), HostTensor::full(shape, value))))
    };
    let names = ["means", "cov_diag", "bounds", "linproj.bias", "flows.steps.0.coup.nn.mid_conv.weight"];
    for name in names.into_iter().chain(["flows.next.steps.2.coup.scale", "flows.steps.1.norm.bias"]) {
        let message = remove(name);
        assert!(message.contains(name) && message.contains("missing"), "{message}");
    }
    assert!(insert("optimizer.step", &[1], 0.0).contains("optimizer.step"));
    assert!(insert("cov_diag", &[64], 1.0).contains("[64]"));
    assert!(insert("means", &[4, 64], 1.0).contains("means"));
    assert!(insert("means", &[4, 1, 9, 8], 1.0).contains("multiples of 4"));
    assert!(insert("means", &[0, 1, 8, 8], 1.0).contains("at least one class"));
    assert!(insert("flows.steps.0.conv.weight", &[2, 8], 1.0).contains("[2, 8]"));
    assert!(insert("linproj.bias", &[4], f32::NAN).contains("NaN"));
    assert!(insert("cov_diag", &[1, 8, 8], 0.0).contains("cov_diag"));
    assert!(insert("bounds", &[1], 0.0).contains("bounds"));
    assert!(insert("flows.steps.0.coup.nn.in_norm.running_var", &[2], -1.0).contains("running_var"));
}

#[test]
fn a_missing_file_and_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    for ending in [".pth", ".safetensors"] {
        refusal(&folder.path().join(format!("nowhere{ending}")));
        let path = folder.path().join(format!("folder{ending}"));
        std::fs::create_dir(&path).unwrap();
        refusal(&path);
    }
}

#[test]
fn a_singular_mixing_and_an_overflowing_flow_are_refused() {
    let reference = GlowReference::read("config1");
    let (config, mut weights) = read_glow(&reference.checkpoint(".safetensors")).unwrap();
    let mut overflowing = weights.clone();
    overflowing.0.insert("flows.steps.0.coup.scale".into(), HostTensor::full([2, 1, 1], 1e30));
    let flow = GlowFlow::new(&config, overflowing, Preprocessing::Uniform, &Device::flex(), Precision::F32).unwrap();
    let message = flow.score(&vec![0.3; config.shape.dims()]).unwrap_err().to_string();
    assert!(message.contains("image 0"), "{message}");
    weights.0.insert("flows.steps.1.conv.weight".into(), HostTensor::full([4, 4], 1.0));
    let message = GlowFlow::new(&config, weights, Preprocessing::Uniform, &Device::flex(), Precision::F64)
        .unwrap_err()
        .to_string();
    assert!(message.contains("singular"), "{message}");
}
