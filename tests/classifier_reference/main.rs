//! The zoo against torchvision's numbers (tests/reference/classifiers): logits of every architecture in f64 and f32.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;

use bayescope::classifier::{Architecture, Classifier, ClassifierConfig, Pass, Trainee, TrainingSpec};
use bayescope::data::ImageShape;
use bayescope::device::{DeviceChoice, choose};
use bayescope::flow::Precision;
use bayescope::flow::weights::{HostTensor, Weights};
use bayescope::units::Seed;
use burn::tensor::Device;
use serde_json::Value;

use common::fill::Filled;
use common::reference::{numbers, path};
use common::table::{Table, Tolerance};

/// Their file and our name for it.
const NETWORKS: [(&str, Architecture); 11] = [
    ("linear", Architecture::Linear),
    ("mlp", Architecture::Mlp500),
    ("mnist_convnet", Architecture::Convnet),
    ("alexnet", Architecture::AlexNet),
    ("resnet18", Architecture::ResNet18),
    ("resnet50", Architecture::ResNet50),
    ("wide_resnet28_10", Architecture::WideResNet),
    ("mobilenet_v3_large", Architecture::MobileNet),
    ("convnext_tiny", Architecture::ConvNext),
    ("vit_b_16", Architecture::VitB16),
    ("swin_t", Architecture::SwinT),
];

/// Bytes a buffer of Mesa's software Vulkan may hold.
const SOFTWARE_BUFFER: usize = 128 << 20;

struct Reference {
    json: Value,
    seed: u64,
    config: ClassifierConfig,
}

impl Reference {
    fn read(file: &str, architecture: Architecture) -> Self {
        let text = std::fs::read(path(&format!("classifiers/{file}.json"))).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        let extent = |i: usize| json["input"]["shape"][i].as_u64().unwrap() as usize;
        let shape = ImageShape { channels: extent(1), height: extent(2), width: extent(3) };
        let classes = json["num_classes"].as_u64().unwrap() as usize;
        let config = ClassifierConfig { architecture, shape, classes, resize: None };
        Self { seed: json["seed"].as_u64().unwrap(), config, json }
    }

    fn weights(&self) -> Weights {
        let table = self.json["params"].as_array().unwrap();
        let array = |entry: &Value| {
            let filled = Filled::parameter(entry, self.seed)?;
            Some((filled.name, HostTensor::new(filled.shape, filled.values)))
        };
        Weights(table.iter().filter_map(array).collect())
    }

    fn logits(&self, weights: Weights, precision: Precision, device: &Device) -> Vec<f64> {
        let network = Classifier::from_weights(&self.config, weights, device, precision).unwrap();
        assert_eq!(network.parameters() as u64, self.json["trainable_params"].as_u64().unwrap());
        let images = Filled::described(&self.json["input"], self.seed).unwrap().values;
        let logits = network.forward(network.upload(&images, device), &mut Pass::evaluation());
        logits.try_into_vec_as::<f64>().unwrap()
    }
}

#[test]
fn every_architecture_gives_torchvisions_logits() {
    let mut table = Table::new("logits".into());
    for (file, architecture) in NETWORKS {
        let reference = Reference::read(file, architecture);
        let golden = numbers(&reference.json["logits"]);
        let weights = reference.weights();
        // They are printed with nine digits.
        let exact = Tolerance::Absolute(1e-8 * golden.iter().fold(0.0_f64, |most, v| most.max(v.abs())));
        let single = Tolerance::Absolute(if file == "alexnet" { 2e-5 } else { 1e-5 });
        for (precision, limit) in [(Precision::F64, exact), (Precision::F32, single)] {
            let ours = reference.logits(weights.clone(), precision, &Device::flex());
            table.compare(&format!("{file} {precision:?}"), &ours, &golden, limit);
        }
    }
    table.finish();
}

/// Convolutions and normalisations take other paths there than on the CPU.
#[test]
fn every_architecture_on_a_graphics_adapter() {
    let chosen = match choose(DeviceChoice::Wgpu(None)) {
        Ok(chosen) => chosen,
        Err(error) => return println!("skipped: {error}"),
    };
    let mut table = Table::new(format!("logits on {}", chosen.report.used.name));
    for (file, architecture) in NETWORKS {
        let reference = Reference::read(file, architecture);
        let weights = reference.weights();
        let largest = weights.0.values().map(|array| 4 * array.values.len()).max().unwrap_or(0);
        if chosen.report.used.software && largest > SOFTWARE_BUFFER {
            println!(
                "skipped: {file} has an array of {largest} bytes, more than a buffer of a software adapter may hold"
            );
            continue;
        }
        let ours = reference.logits(weights, Precision::F32, &chosen.device);
        let limit = Tolerance::Absolute(if file == "alexnet" { 4e-5 } else { 2e-5 });
        table.compare(file, &ours, &numbers(&reference.json["logits"]), limit);
    }
    table.finish();
}

#[test]
fn a_graphics_adapter_trains_as_the_cpu_does() {
    let chosen = match choose(DeviceChoice::Wgpu(None)) {
        Ok(chosen) => chosen,
        Err(error) => return println!("skipped: {error}"),
    };
    let shape = ImageShape { channels: 3, height: 32, width: 32 };
    // So many that what ResNet-18's last stage normalises, one position of each, has statistics: of four images the gradient's norm is
    // 1e-4 off its value in 64 bits on every device, of sixteen 1e-6.
    let n = 16;
    let images: Vec<f32> = (0..n * shape.dims()).map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0).collect();
    let targets: Vec<f32> = (0..n * 3).map(|i| if i % 3 == (i / 3) % 3 { 1.0 } else { 0.0 }).collect();
    for architecture in [Architecture::Convnet, Architecture::ResNet18, Architecture::VitSmall] {
        let config = ClassifierConfig { architecture, shape, classes: 3, resize: None };
        let steps = |device: &Device| {
            let spec = TrainingSpec { shards: 1, ..TrainingSpec::default() };
            let mut trainee = Trainee::new(&config, &spec, Seed(1), device).unwrap();
            (0..2).map(|step| trainee.step(&images, &targets, 1e-3, step).unwrap()).collect::<Vec<_>>()
        };
        let (host, adapter) = (steps(&Device::flex()), steps(&chosen.device));
        for (step, (host, adapter)) in host.iter().zip(&adapter).enumerate() {
            println!("{architecture:?}, step {step}: {host:?} on the CPU, {adapter:?}");
            // The first step sees the same weights. AdamW then divides gradients by themselves, noise and all.
            let limit = if step == 0 { 1e-5 } else { 5e-3 };
            let near = |a: f64, b: f64| (a - b).abs() <= limit * a.abs().max(1e-3);
            assert!(near(host.cross_entropy, adapter.cross_entropy), "{architecture:?}, step {step}");
            assert!(near(host.grad_norm, adapter.grad_norm), "{architecture:?}, step {step}");
        }
    }
}

#[test]
fn weights_of_another_task_keep_all_but_the_head() {
    let reference = Reference::read("vit_b_16", Architecture::VitB16);
    let config = ClassifierConfig { classes: 7, ..reference.config };
    let weights = reference.weights();
    // The public files are older than the names.
    let older = |name: &str| name.replace(".mlp.0.", ".mlp.linear_1.").replace(".mlp.3.", ".mlp.linear_2.");
    let file = Weights(weights.0.iter().map(|(name, array)| (older(name), array.clone())).collect());
    let pretrained =
        |weights: Weights| Classifier::from_pretrained(&config, weights, Seed(1), &Device::flex(), Precision::F32);
    let ours = pretrained(file.clone()).unwrap().to_weights().unwrap();
    assert_eq!(ours.0.len(), weights.0.len());
    for (name, array) in &ours.0 {
        match name.as_str() {
            "heads.head.weight" => assert_eq!(array.shape, [7, 768]),
            "heads.head.bias" => assert_eq!(array.shape, [7]),
            _ => assert_eq!(array, &weights.0[name], "{name}"),
        }
    }
    // Images of another size: the positions are resampled, everything else stays.
    let side = config.shape.height + 32;
    let wider = ClassifierConfig { shape: ImageShape { width: side, ..config.shape }, ..config };
    let wider = Classifier::from_pretrained(&wider, file.clone(), Seed(1), &Device::flex(), Precision::F32).unwrap();
    let tokens = (config.shape.height / 16) * (side / 16) + 1;
    let wider = wider.to_weights().unwrap();
    assert_eq!(wider.0["encoder.pos_embedding"].shape, [1, tokens, 768]);
    assert_eq!(wider.0["conv_proj.weight"], weights.0["conv_proj.weight"]);
    let mut short = file;
    short.0.remove("encoder.ln.weight");
    let message = pretrained(short).map(drop).unwrap_err().to_string();
    assert!(message.contains("'encoder.ln.weight' is missing"), "{message}");
}
