//! The reference TarFlows.

use std::path::PathBuf;

use bayescope::data::ImageShape;
use bayescope::flow::sampling::{Guidance, Guided};
use bayescope::flow::tarflow::{Condition, TarFlowConfig};
use bayescope::flow::weights::{HostTensor, Weights};
use serde_json::Value;

use super::fill::{Filled, to_f64};
use super::reference::{numbers, path};

/// One reference TarFlow.
pub struct TarFlowReference {
    /// `config1`, `config2`, `config3` or `shared`.
    pub name: &'static str,
    pub json: Value,
    pub seed: u64,
    pub config: TarFlowConfig,
}

/// One case of the reference's `reverse`.
pub struct Reverse<'a> {
    pub name: &'a str,
    pub conditions: Vec<Condition>,
    pub guidance: Option<Guidance>,
    /// x, NCHW.
    pub x: Vec<f64>,
}

impl TarFlowReference {
    pub fn read(name: &'static str) -> Self {
        let text = std::fs::read(path(&format!("tarflow/{name}.json"))).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        let number = |key: &str| json["model"][key].as_u64().unwrap() as usize;
        let side = number("img_size");
        let config = TarFlowConfig {
            shape: ImageShape { channels: number("in_channels"), height: side, width: side },
            classes: number("num_classes"),
            patch: number("patch_size"),
            channels: number("channels"),
            blocks: number("num_blocks"),
            layers: number("layers_per_block"),
            volume_preserving: false,
            shared_map: false,
        };
        Self { name, seed: json["seed"].as_u64().unwrap(), config, json }
    }

    /// The path of one of its checkpoints, by the end of its name.
    pub fn checkpoint(&self, ending: &str) -> PathBuf {
        path(&format!("tarflow/{}{ending}", self.name))
    }

    /// The weights of the formula.
    pub fn weights(&self) -> Weights {
        let table = self.json["params"].as_array().unwrap();
        let filled = table.iter().filter_map(|entry| {
            let Filled { name, shape, values } = Filled::parameter(entry, self.seed)?;
            Some((name, HostTensor::new(shape, values)))
        });
        Weights(filled.collect())
    }

    /// World-space images in [−1, 1], NCHW.
    pub fn input(&self) -> Vec<f64> {
        to_f64(&Filled::described(&self.json["input"], self.seed).unwrap().values)
    }

    /// Base-space tokens of the inverse passes.
    pub fn noise(&self) -> Vec<f64> {
        to_f64(&Filled::described(&self.json["z_input"], self.seed).unwrap().values)
    }

    /// Golden numbers under `key/key/…`.
    pub fn golden(&self, key: &str) -> Vec<f64> {
        numbers(key.split('/').fold(&self.json, |value, key| &value[key]))
    }

    /// Every class and none, as the keys of `forward`.
    pub fn forward_keys(&self) -> Vec<(String, Condition)> {
        let classes = (0..self.config.classes).map(|c| (c.to_string(), Some(c)));
        classes.chain([("none".to_owned(), None)]).collect()
    }

    pub fn reverses(&self) -> Vec<Reverse<'_>> {
        let cases = self.json["reverse"].as_object().unwrap();
        let n = self.json["z_input"]["shape"][0].as_u64().unwrap() as usize;
        cases.iter().map(|(name, case)| reverse(name, case, n)).collect()
    }
}

fn reverse<'a>(name: &'a str, case: &Value, n: usize) -> Reverse<'a> {
    let conditions = match &case["y"] {
        Value::Null => vec![None; n],
        y => numbers(y).into_iter().map(|class| Some(class as usize)).collect(),
    };
    let scale = case["guidance"].as_f64().unwrap();
    let what = match case["guide_what"].as_str() {
        Some("a") => Guided::A,
        Some("b") => Guided::B,
        _ => Guided::Ab,
    };
    let guidance = (scale > 0.0).then(|| Guidance {
        scale,
        what,
        annealed: case["annealed_guidance"].as_bool().unwrap(),
        attention_temperature: case["attn_temp"].as_f64().unwrap(),
    });
    Reverse { name, conditions, guidance, x: numbers(&case["x"]) }
}
