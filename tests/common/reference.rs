//! The folder of reference values: `tests/reference`, or the one named by `BAYESCOPE_REFERENCE`.

use std::path::PathBuf;

use bayescope::data::ImageShape;
use bayescope::error::Result;
use bayescope::flow::Architecture;
use bayescope::flow::glow::GlowConfig;
use bayescope::flow::import::read_checkpoint;
use bayescope::flow::weights::Weights;
use serde_json::Value;

use super::fill::{Filled, to_f64};

/// A file of the reference.
pub fn path(name: &str) -> PathBuf {
    let bundled = || std::path::absolute("tests/reference").unwrap();
    std::env::var_os("BAYESCOPE_REFERENCE").map_or_else(bundled, PathBuf::from).join(name)
}

/// The numbers of a value: a nested list, or `{shape, data}`.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Object(array) => numbers(&array["data"]),
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap_or_else(|| panic!("no number: {number}"))],
    }
}

/// A checkpoint that must be a Glow.
pub fn read_glow(path: &std::path::Path) -> Result<(GlowConfig, Weights)> {
    let checkpoint = read_checkpoint(path, &mut bayescope::events::silent())?;
    let Architecture::Glow(config) = checkpoint.inferred.architecture else { panic!("{} is no Glow", path.display()) };
    Ok((config, checkpoint.weights))
}

/// One reference Glow.
pub struct GlowReference {
    /// `config1` or `config2`.
    pub name: &'static str,
    pub json: Value,
    pub seed: u64,
    pub config: GlowConfig,
}

impl GlowReference {
    pub fn read(name: &'static str) -> Self {
        let text = std::fs::read(path(&format!("glow/{name}.json"))).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        let model = &json["model"];
        let number = |key: &str| model[key].as_u64().unwrap() as usize;
        let [channels, height, width] = [0, 1, 2].map(|i| model["input_shape"][i].as_u64().unwrap() as usize);
        let config = GlowConfig {
            shape: ImageShape { channels, height, width },
            classes: number("num_classes"),
            hidden: number("num_channels"),
            levels: number("num_levels"),
            steps: number("num_steps"),
        };
        Self { name, seed: json["seed"].as_u64().unwrap(), config, json }
    }

    /// The path of one of its checkpoints, by the end of its name.
    pub fn checkpoint(&self, ending: &str) -> PathBuf {
        path(&format!("glow/{}{ending}", self.name))
    }

    pub fn dims(&self) -> usize {
        self.config.shape.dims()
    }

    /// Golden numbers under a key, or under `key/key/…`.
    pub fn golden(&self, key: &str) -> Vec<f64> {
        numbers(key.split('/').fold(&self.json, |value, key| &value[key]))
    }

    /// The filled parameters, in state-dict order.
    pub fn parameters(&self) -> Vec<Filled> {
        let table = self.json["params"].as_array().unwrap();
        table.iter().filter_map(|entry| Filled::parameter(entry, self.seed)).collect()
    }

    /// Dequantised images v = (255 x + u)/256 in f64.
    pub fn input(&self) -> Vec<f64> {
        let x = to_f64(&Filled::described(&self.json["input"], self.seed).unwrap().values);
        let u = to_f64(&Filled::described(&self.json["dequant"], self.seed).unwrap().values);
        x.iter().zip(u).map(|(x, u)| (255.0 * x + u) / 256.0).collect()
    }

    /// Base-space noise of the inverse pass.
    pub fn noise(&self) -> Vec<f32> {
        Filled::described(&self.json["z_input"], self.seed).unwrap().values
    }

    /// Classes of the inverse pass.
    pub fn classes(&self) -> Vec<usize> {
        self.golden("sample_classes").into_iter().map(|c| c as usize).collect()
    }
}
