//! Weights: what PyTorch wrote over the years, safetensors, flows and oracle folders made of them, classifiers.

use std::ops::ControlFlow;
use std::path::Path;

use bayescope::classifier::onnx::Normalisation;
use bayescope::classifier::{
    Architecture, CheckpointClassifier, CheckpointOptions, ClassifierConfig, ExpectedImages, Saved, Trainee,
    TrainingSpec,
};
use bayescope::data::{ImageShape, sha256_of_file};
use bayescope::error::{Error, Result};
use bayescope::events::silent;
use bayescope::flow::Precision;
use bayescope::flow::import::read_checkpoint;
use bayescope::flow::weights::{HostTensor, Storage, Weights};
use bayescope::oracle::folder as oracle_folder;
use bayescope::units::Seed;
use burn::tensor::Device;

use super::{folder, reference, runs, written};
use crate::common::tiny;
use crate::forge::{self, Content, dict, tensor, text};
use crate::forms::Form;
use crate::watch::{Reader, Whole};

fn read(path: &Path) -> Result<()> {
    Weights::read(path).map(drop)
}

/// Two arrays, one of them seen from two sides, and what stands around them in a training script.
fn object() -> Vec<u8> {
    let a = tensor("Float", "0", 6, 0, &[2, 3], &[3, 1]);
    let turned = tensor("Float", "0", 6, 0, &[3, 2], &[1, 3]);
    let b = tensor("Half", "1", 4, 1, &[3], &[1]);
    let state = dict(&[("fc.weight", a), ("fc.turned", turned), ("fc.bias", b)]);
    dict(&[("net", state), ("epoch", forge::int(3)), ("name", text("x"))])
}

fn storages() -> [(&'static str, u64, Content); 2] {
    [
        ("0", 4, Content::floats(&[0.5, 1.0, -2.0, 3.0, 4.0, 5.0])),
        ("1", 2, Content::Bytes(vec![0, 0x3c, 0, 0x40, 0, 0x42, 0, 0x44])),
    ]
}

#[test]
fn fuzz_pth() {
    let zip = |deflate| {
        let entries = storages().map(|(key, _, content)| (key, content));
        written("x.pth", |path| forge::zip_checkpoint(path, "archive", &object(), &entries, deflate))
    };
    let legacy = written("x.pth", |path| forge::legacy_checkpoint(path, &forge::machine(b"N"), &object(), &storages()));
    let tar = written("x.pth", |path| {
        let object = dict(&[("w", [&text("7")[..], b"Q"].concat())]);
        forge::tar_checkpoint(path, &object, &[1.0, 2.0, 3.0]);
    });
    Reader {
        name: "pth",
        wholes: vec![
            Whole::new("x.pth", Form::Zip, zip(false)),
            Whole::new("x.pth", Form::Zip, zip(true)),
            Whole::new("y.pth", Form::Bytes, legacy),
            Whole::new("z.pth.tar", Form::Bytes, tar),
        ],
        few: 4000,
        read: &read,
    }
    .run();
}

#[test]
fn fuzz_safetensors() {
    let mut weights = Weights::default();
    weights.0.insert("b.weight".into(), HostTensor::new([2, 2], vec![1.0, -2.5, 1e-3, 0.1]));
    weights.0.insert("a".into(), HostTensor::full([3], 0.3));
    let whole = |storage| Whole::new("x.safetensors", Form::Headed, weights.to_safetensors(storage).unwrap());
    Reader {
        name: "safetensors",
        wholes: vec![whole(Storage::F32), whole(Storage::F16)],
        few: 3000,
        read: &|path| {
            let bytes = std::fs::read(path).unwrap();
            let _ = Weights::from_safetensors(path, &bytes);
            read(path)
        },
    }
    .run();
}

/// Small flows of both families.
fn flows() -> Vec<Whole> {
    let glow = tiny::weights(&tiny::config(1, 4, 1, 1), 3).to_safetensors(Storage::F32).unwrap();
    let tarflow = written("t.safetensors", |path| {
        let file = tiny::gaussian_file(path.parent().unwrap());
        std::fs::rename(file, path).unwrap();
    });
    vec![
        Whole::new("glow.safetensors", Form::Headed, glow),
        Whole::new("gaussian_model_2_64_1_1_0.05.safetensors", Form::Headed, tarflow),
    ]
}

/// A flow is built where the file is read.
fn build(oracle: &Path) -> Result<()> {
    let (info, weights) = oracle_folder::read(oracle.to_str().unwrap())?;
    info.build(weights, &Device::flex(), Precision::F32, 8).map(drop).map_err(|e| match e {
        // Read without complaint, but no map: whoever opens it names it.
        Error::Numeric(_) | Error::Overflow { .. } | Error::Input(_) => Error::file(oracle, e.to_string()),
        e => e,
    })
}

#[test]
fn fuzz_flow() {
    let mut wholes = flows();
    wholes.push(Whole::new("config1.safetensors", Form::Headed, reference("glow/config1.safetensors")));
    Reader {
        name: "flow",
        wholes,
        few: 300,
        read: &|path| {
            read_checkpoint(path, &mut silent())?;
            build(path)
        },
    }
    .run();
}

#[test]
fn fuzz_oracle_folder() {
    let files = tempfile::tempdir().unwrap();
    let mut wholes = Vec::new();
    for flow in flows() {
        let path = files.path().join(&flow.name);
        std::fs::write(&path, &flow.bytes).unwrap();
        let (mut info, _) = oracle_folder::read(path.to_str().unwrap()).unwrap();
        info.weights_sha256 = sha256_of_file(&path, &mut |_| ControlFlow::Continue(())).unwrap();
        let text = serde_json::to_vec_pretty(&info).unwrap();
        wholes.push(Whole::new("oracle.json", Form::Text, text).beside("weights.safetensors", flow.bytes));
    }
    let class = |seed| {
        written("c.safetensors", |path| {
            let file = tiny::tarflow_file(path.parent().unwrap(), 0, seed);
            std::fs::rename(file, path).unwrap();
        })
    };
    let list = r#"{"name": "two", "classes": [{"name": "a", "file": "0_model_2_64_2_2_0.05.safetensors"}, {"name": "b", "file": "1_model_2_64_2_2_0.05.safetensors"}]}"#;
    let names = ["0", "1"].map(|k| format!("{k}_model_2_64_2_2_0.05.safetensors"));
    wholes.push(Whole::new("flows.json", Form::Text, list).beside(&names[0], class(1)).beside(&names[1], class(2)));
    Reader {
        name: "oracle-folder",
        wholes,
        few: 500,
        read: &|path| {
            let folder = folder(path);
            let _ = oracle_folder::glance(folder.to_str().unwrap());
            build(&folder)
        },
    }
    .run();
}

const SHAPE: ImageShape = ImageShape { channels: 1, height: 4, width: 4 };

fn config() -> ClassifierConfig {
    ClassifierConfig { architecture: Architecture::Linear, shape: SHAPE, classes: 2, resize: None }
}

#[test]
fn fuzz_classifier() {
    let run = runs::finished();
    let asked = ExpectedImages { shape: SHAPE, classes: 2, range: Some([-1.0, 1.0]) };
    let told = CheckpointOptions {
        architecture: Some(Architecture::Linear),
        normalisation: Some(Normalisation::ZeroToOne),
        side: None,
    };
    Reader {
        name: "classifier",
        wholes: vec![Whole::new("last.safetensors", Form::Headed, run.file("last.safetensors"))],
        few: 1000,
        read: &|path| {
            let own =
                CheckpointClassifier::open(path, &asked, &CheckpointOptions::default(), &Device::flex()).map(drop);
            let _ = CheckpointClassifier::open(path, &asked, &told, &Device::flex());
            own
        },
    }
    .run();
}

#[test]
fn fuzz_optimizer_moments() {
    let (spec, seed, device) = (TrainingSpec::default(), Seed(3), Device::flex());
    let mut trainee = Trainee::new(&config(), &spec, seed, &device).unwrap();
    trainee.step(&[0.5; 32], &[1.0, 0.0, 0.0, 1.0], 1e-2, 0).unwrap();
    let Saved { weights, optimizer } = trainee.saved().unwrap();
    Reader {
        name: "optimizer-moments",
        wholes: vec![Whole::new("moments", Form::Bytes, optimizer)],
        few: 500,
        read: &|path| {
            let saved = Saved { weights: weights.clone(), optimizer: std::fs::read(path).unwrap() };
            let mut trainee = Trainee::resume(&config(), &spec, saved, seed, &device)
                .map_err(|e| Error::file(path, e.to_string()))?;
            // Moments of another shape show when they are used.
            trainee
                .step(&[0.5; 32], &[1.0, 0.0, 0.0, 1.0], 1e-2, 1)
                .map(drop)
                .map_err(|e| Error::file(path, e.to_string()))
        },
    }
    .run();
}
