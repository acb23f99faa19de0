//! The feature networks against pytorch-fid and torchvision (tests/reference/features), the files they are opened from, and the
//! features of classifiers of ours.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "common/mod.rs"]
mod common;

use std::ops::ControlFlow;
use std::path::Path;

use bayescope::classifier::features::{Embedded, FeatureNet};
use bayescope::classifier::{Architecture, Classifier, ClassifierConfig, STATE};
use bayescope::data::ImageShape;
use bayescope::device::{DeviceChoice, choose};
use bayescope::error::Error;
use bayescope::events::{Progress, silent};
use bayescope::flow::Precision;
use bayescope::flow::weights::{HostTensor, Storage, Weights};
use bayescope::measure::log_softmax;
use bayescope::units::Seed;
use burn::tensor::Device;
use serde_json::Value;
use sha2::{Digest, Sha256};

use common::fill::Filled;
use common::reference::{numbers, path};
use common::table::{Table, Tolerance};

/// The networks of the reference: which tables fill them.
const INCEPTIONS: [(&str, &[&str]); 2] = [("inception_fid", &["fc"]), ("inception_torchvision", &["fc", "aux"])];
/// … and their file of parameters, images, name and number of features.
const RESNETS: [(&str, &str, &str); 3] =
    [("resnet18", "resnet18", "small"), ("resnet18_large", "resnet18", "large"), ("resnet50", "resnet50", "small")];

/// Allowed in f32, of the largest number.
const SINGLE: f64 = 1e-5;

fn read(file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(path(file)).unwrap()).unwrap()
}

fn filled(tables: &[&Value], seed: u64) -> Weights {
    let rows = tables.iter().flat_map(|table| table.as_array().unwrap());
    let array = |row: &Value| {
        let filled = Filled::parameter(row, seed)?;
        Some((filled.name, HostTensor::new(filled.shape, filled.values)))
    };
    Weights(rows.filter_map(array).collect())
}

fn inception(reference: &Value, key: &str, tables: &[&str]) -> Weights {
    let own = tables.iter().map(|table| &reference[key][table]);
    let tables: Vec<&Value> = std::iter::once(&reference["params"]).chain(own).collect();
    filled(&tables, reference["seed"].as_u64().unwrap())
}

fn resnet(file: &str) -> Weights {
    let described = read(&format!("classifiers/{file}.json"));
    filled(&[&described["params"]], described["seed"].as_u64().unwrap())
}

/// Images with values between 0 and 1.
fn images(reference: &Value, which: &str) -> (Vec<f32>, ImageShape) {
    let filled = Filled::described(&reference[which], reference["seed"].as_u64().unwrap()).unwrap();
    let [_, channels, height, width] = filled.shape[..] else { panic!("{which} are no images") };
    (filled.values, ImageShape { channels, height, width })
}

fn build(weights: Weights, precision: Precision) -> FeatureNet {
    FeatureNet::from_weights("w.pth", weights, &Device::flex(), precision).unwrap()
}

fn embed(net: &FeatureNet, (images, shape): &(Vec<f32>, ImageShape)) -> Embedded {
    net.embed(images, *shape, 8, &mut silent()).unwrap()
}

/// Features and log p in both number formats, and that the format's noise is far below what typical mistakes do.
fn compare(table: &mut Table, golden: &Value, name: &str, weights: &Weights, seen: &(Vec<f32>, ImageShape)) {
    let features = numbers(&golden["features"]);
    let count = seen.0.len() / seen.1.dims();
    let logits = numbers(&golden["logits"]);
    let log_p = log_softmax(&logits, logits.len() / count);
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    for (mistake, moved) in golden["mistakes"].as_object().unwrap() {
        assert!(moved.as_f64().unwrap() > 100.0 * SINGLE, "{name}: the tolerance does not see {mistake}");
    }
    // Features are handed out in 32 bits; log p shows what the 64 bits inside are worth.
    for (precision, of_features, of_log_p) in [(Precision::F64, 1e-7, 1e-9), (Precision::F32, SINGLE, SINGLE)] {
        let net = build(weights.clone(), precision);
        let ours = embed(&net, seen);
        assert_eq!((net.dim(), net.classes()), (features.len() / count, logits.len() / count));
        let wide: Vec<f64> = ours.features.iter().map(|&v| f64::from(v)).collect();
        let of = |limit: f64, values: &[f64]| Tolerance::Absolute(limit * largest(values));
        table.compare(&format!("{name} {precision:?}"), &wide, &features, of(of_features, &features));
        table.compare(&format!("{name} {precision:?} log p"), &ours.log_p, &log_p, of(of_log_p, &logits));
    }
}

#[test]
fn both_inceptions_read_what_their_authors_networks_read() {
    let reference = read("features/features.json");
    let mut table = Table::new("features".into());
    for (key, tables) in INCEPTIONS {
        let weights = inception(&reference, key, tables);
        compare(&mut table, &reference[key], key, &weights, &images(&reference, "small"));
    }
    table.finish();
}

#[test]
fn resnets_read_what_torchvisions_read() {
    let reference = read("features/features.json");
    let mut table = Table::new("features".into());
    for (key, file, which) in RESNETS {
        compare(&mut table, &reference[key], key, &resnet(file), &images(&reference, which));
    }
    table.finish();
}

/// Pools that leave padding out and kernels that are not square take other paths there than on the CPU. One image of one port: a
/// software adapter takes half a minute for it.
#[test]
fn the_inception_of_the_fid_on_a_graphics_adapter() {
    let chosen = match choose(DeviceChoice::Wgpu(None)) {
        Ok(chosen) => chosen,
        Err(error) => return println!("skipped: {error}"),
    };
    let reference = read("features/features.json");
    let (mut pixels, shape) = images(&reference, "small");
    pixels.truncate(shape.dims());
    let weights = inception(&reference, "inception_fid", &["fc"]);
    let net = FeatureNet::from_weights("w.pth", weights, &chosen.device, Precision::F32).unwrap();
    let ours: Vec<f64> = embed(&net, &(pixels, shape)).features.into_iter().map(f64::from).collect();
    let golden = &numbers(&reference["inception_fid"]["features"])[..net.dim()];
    let largest = golden.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    let mut table = Table::new(format!("features on {}", chosen.report.used.name));
    table.compare("inception_fid", &ours, golden, Tolerance::Absolute(SINGLE * largest));
    table.finish();
}

/// A file of weights, opened; the bytes reported meanwhile.
fn opened(path: &Path) -> (FeatureNet, Vec<Progress>) {
    let mut told = Vec::new();
    let mut events = |progress: Progress| {
        told.push(progress);
        ControlFlow::Continue(())
    };
    let net = FeatureNet::open(path, &Device::flex(), &mut events).unwrap();
    (net, told)
}

/// A safetensors file again, with the state of a training in its header.
fn write_with_state(from: &Path, to: &Path) {
    let bytes = std::fs::read(from).unwrap();
    let arrays = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let header = std::collections::HashMap::from([(STATE.to_owned(), "{\"step\":1}".to_owned())]);
    safetensors::serialize_to_file(arrays.tensors(), Some(header), to).unwrap();
}

#[test]
fn a_file_says_itself_which_network_it_holds() {
    let reference = read("features/features.json");
    let seen = images(&reference, "small");
    let folder = tempfile::tempdir().unwrap();
    let fid = inception(&reference, "inception_fid", &["fc"]);
    let torchvision = inception(&reference, "inception_torchvision", &["fc", "aux"]);
    let cases = [
        ("a.safetensors", resnet("resnet18"), "ResNet-18 of torchvision (a.safetensors)", 512, 3),
        ("b.pth", fid, "Inception-v3 of pytorch-fid (b.pth)", 2048, 1008),
        ("c.pth", torchvision, "Inception-v3 of torchvision (c.pth)", 2048, 1000),
    ];
    for (file, weights, name, dim, classes) in cases {
        let path = folder.path().join(file);
        weights.write(&path, Storage::F32).unwrap();
        let (net, told) = opened(&path);
        assert_eq!((net.name(), net.dim(), net.classes()), (name, dim, classes));
        let hash: String = Sha256::digest(std::fs::read(&path).unwrap()).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(net.sha256(), Some(hash.as_str()));
        assert_eq!(embed(&net, &seen), embed(&build(weights, Precision::F32), &seen), "{name}");
        let share = |p: &Progress| p.done as f64 / p.total as f64;
        assert!(told.iter().map(share).is_sorted() && told.last().is_some_and(|last| last.done == last.total));
    }
    // torchvision's names and shapes, but a cell's: its images are scaled otherwise.
    let cell = folder.path().join("last.safetensors");
    write_with_state(&folder.path().join("a.safetensors"), &cell);
    let refused = FeatureNet::open(&cell, &Device::flex(), &mut silent()).unwrap_err().to_string();
    assert!(refused.contains("last.safetensors") && refused.contains("checkpoint of a run's cell"), "{refused}");
    let stopped = FeatureNet::open(&folder.path().join("b.pth"), &Device::flex(), &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

#[test]
fn other_files_are_refused_with_what_is_needed() {
    let refused = |weights: Weights| {
        let message = FeatureNet::from_weights("w.pth", weights, &Device::flex(), Precision::F32).unwrap_err();
        let message = message.to_string();
        assert!(message.starts_with("w.pth: "), "{message}");
        message
    };
    let needed = "needed are the weights of Inception-v3 by pytorch-fid";
    let named = |arrays: &[(&str, &[usize])]| {
        Weights(arrays.iter().map(|(name, shape)| ((*name).into(), HostTensor::full(*shape, 0.0))).collect())
    };
    let first = ("Conv2d_1a_3x3.conv.weight", &[32, 3, 3, 3][..]);
    let aux = ("AuxLogits.fc.bias", &[1000][..]);
    for (arrays, found) in [
        (&[("enc.weight", &[3][..])][..], "not those of a feature network"),
        (&[first], "no 'fc.weight', without 'AuxLogits'"),
        (&[first, ("fc.weight", &[1000, 2048])], "[1000, 2048], without 'AuxLogits'"),
        (&[first, aux, ("fc.weight", &[1008, 2048])], "[1008, 2048], with 'AuxLogits'"),
        (&[first, aux, ("fc.weight", &[10, 2048])], "[10, 2048], with 'AuxLogits'"),
    ] {
        let message = refused(named(arrays));
        assert!(message.contains(found) && message.contains(needed), "{message}");
    }
    let mut deeper = resnet("resnet18");
    deeper.0.insert("layer3.2.conv1.weight".into(), HostTensor::full([1], 0.0));
    let message = refused(deeper);
    assert!(message.contains("a ResNet of [2, 2, 3, 2] blocks") && message.contains(needed), "{message}");
    let mut short = resnet("resnet18");
    short.0.remove("bn1.bias");
    assert!(refused(short).contains("'bn1.bias' is missing"));
    let reference = read("features/features.json");
    let mut more = inception(&reference, "inception_fid", &["fc"]);
    more.0.insert("Mixed_8a.bias".into(), HostTensor::full([1], 0.0));
    assert!(refused(more.clone()).contains("'Mixed_8a.bias' has no place in it"));
    more.0.insert("Mixed_7c.branch1x1.conv.weight".into(), HostTensor::full([1], 0.0));
    assert!(refused(more).contains("'Mixed_7c.branch1x1.conv.weight' has shape [1], not [320, 2048, 1, 1]"));
}

#[test]
fn images_of_every_kind_enter() {
    let net = build(resnet("resnet18"), Precision::F32);
    let grey = ImageShape { channels: 1, height: 12, width: 9 };
    let pixels: Vec<f32> = (0..3 * grey.dims()).map(|i| ((i * 37) % 101) as f32 / 100.0).collect();
    let ours = net.embed(&pixels, grey, 8, &mut silent()).unwrap();
    // Grey images are those whose three channels are the same.
    let colour = ImageShape { channels: 3, ..grey };
    let repeated: Vec<f32> = pixels.chunks(grey.dims()).flat_map(|image| image.repeat(3)).collect();
    assert_eq!(ours, net.embed(&repeated, colour, 8, &mut silent()).unwrap());
    // The batch does not matter.
    let mut told = Vec::new();
    let single = net.embed(&pixels, grey, 1, &mut |progress: Progress| {
        told.push(progress.done);
        ControlFlow::Continue(())
    });
    let single = single.unwrap();
    assert_eq!(told, [0, 1, 2, 3]);
    assert!(ours.features.iter().zip(&single.features).all(|(a, b)| (a - b).abs() < 1e-5));
    assert!(ours.log_p.chunks(3).all(|row| (row.iter().map(|v| v.exp()).sum::<f64>() - 1.0).abs() < 1e-12));

    let mut heard = 0;
    let stopped = net.embed(&pixels, grey, 1, &mut |_| {
        heard += 1;
        if heard == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(Error::Cancelled)) && heard == 2);
    let refused = |pixels: &[f32], shape| net.embed(pixels, shape, 2, &mut silent()).unwrap_err().to_string();
    assert!(refused(&pixels, ImageShape { channels: 4, ..grey }).contains("reads images of 3 channels, not 4×12×9"));
    assert!(refused(&pixels[1..], grey).contains("no whole number of images"));
    let mut broken = pixels.clone();
    broken[2 * grey.dims() + 5] = f32::NAN;
    assert!(refused(&broken, grey).contains("features of image 2"), "{}", refused(&broken, grey));
    assert_eq!(net.embed(&[], grey, 2, &mut silent()).unwrap(), Embedded::default());
}

/// State-dict name of the last linear map, and what it reads.
const HEADS: [(Architecture, &str, usize); 10] = [
    (Architecture::Mlp500, "fc2", 500),
    (Architecture::Convnet, "fc2", 128),
    (Architecture::AlexNet, "classifier.6", 4096),
    (Architecture::ResNet18, "fc", 512),
    (Architecture::ResNet50, "fc", 2048),
    (Architecture::WideResNet, "fc", 640),
    (Architecture::MobileNet, "classifier.3", 1280),
    (Architecture::ConvNext, "classifier.2", 768),
    (Architecture::VitSmall, "heads.head", 192),
    (Architecture::SwinT, "head", 768),
];

#[test]
fn logits_of_every_classifier_follow_from_its_features() {
    let shape = ImageShape { channels: 3, height: 32, width: 32 };
    let pixels: Vec<f32> = (0..3 * shape.dims()).map(|i| ((i * 7919) % 1009) as f32 / 1008.0).collect();
    for (architecture, head, dim) in HEADS {
        let resize = (architecture == Architecture::AlexNet).then_some(64);
        let config = ClassifierConfig { architecture, shape, classes: 5, resize };
        let drawn = Classifier::new(&config, Seed(2), &Device::flex(), Precision::F32).unwrap();
        // A Vision Transformer's head starts at 0.
        let mut weights = drawn.to_weights().unwrap();
        let map = weights.0.get_mut(&format!("{head}.weight")).unwrap();
        assert_eq!(map.shape, [5, dim], "{architecture:?}");
        map.values = common::fill::uniform(head, 1, 5 * dim).iter().map(|&u| u as f32).collect();
        let (map, bias) = (map.values.clone(), weights.0[&format!("{head}.bias")].values.clone());
        let classifier = Classifier::from_weights(&config, weights, &Device::flex(), Precision::F32).unwrap();
        let (features, logits) = classifier.features(&pixels, 2).unwrap();
        let scale = logits.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        // Features come from burn, answers from our own kernels where the network has them.
        for (from_features, answer) in logits.iter().zip(classifier.logits(&pixels, 2).unwrap()) {
            assert!((from_features - answer).abs() < 1e-5 * scale, "{architecture:?}: {from_features} is not {answer}");
        }
        for (row, logits) in features.chunks(dim).zip(logits.chunks(5)) {
            for (k, logit) in logits.iter().enumerate() {
                let product = |(a, b): (&f32, &f32)| f64::from(*a) * f64::from(*b);
                let sum: f64 = row.iter().zip(&map[k * dim..]).map(product).sum();
                let ours = sum + f64::from(bias[k]);
                assert!((ours - logit).abs() < 1e-5 * scale, "{architecture:?}: {ours} is not {logit}");
            }
        }
        let net = FeatureNet::of_classifier("trained on the spot".into(), classifier).unwrap();
        assert_eq!((net.name(), net.sha256(), net.dim(), net.classes()), ("trained on the spot", None, dim, 5));
        let embedded = net.embed(&pixels, shape, 2, &mut silent()).unwrap();
        assert_eq!(embedded, Embedded { features, log_p: log_softmax(&logits, 5) }, "{architecture:?}");
    }
    let config = ClassifierConfig { architecture: Architecture::Linear, shape, classes: 5, resize: None };
    let linear = Classifier::new(&config, Seed(2), &Device::flex(), Precision::F32).unwrap();
    assert!(linear.features(&pixels, 2).unwrap_err().to_string().contains("a linear classifier has no features"));
    assert!(FeatureNet::of_classifier("linear".into(), linear).is_err());
}
