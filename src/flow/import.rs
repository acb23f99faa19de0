//! Public checkpoints opened as they are: which flow a set of names and shapes means.
//!
//! DataHardness (EBO's code) saves a Glow as a dictionary with `net` inside, its keys prefixed `module.`; neither the
//! number of levels, steps nor channels is in the file, so they are read off the names and shapes. A public TarFlow is a plain
//! state dict in a file called `<dataset>_model_<patch>_<channels>_<blocks>_<layers>_<noise>.pth`; image size, image channels and
//! classes are only in the shapes, the noise only in the name.

mod tarflow;

use std::collections::BTreeMap;
use std::path::Path;

use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::flow::Architecture;
use crate::flow::glow::GlowConfig;
use crate::flow::preprocess::Preprocessing;
use crate::flow::weights::Weights;

/// An opened checkpoint, and what was inferred about it.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The flow.
    pub architecture: Architecture,
    /// How 8-bit pixels enter its world.
    pub pixels: Preprocessing,
    /// Number of classes of its world.
    pub classes: usize,
    /// Its arrays.
    pub weights: Weights,
    /// What was inferred and from what, a sentence each.
    pub inferred: Vec<String>,
}

/// Reads a DataHardness Glow, a public TarFlow, or a Bayescope `weights.safetensors`, which uses the same names.
///
/// # Errors
/// Names the file and the array that is missing or misshapen.
pub fn read_checkpoint(path: &Path) -> Result<Checkpoint> {
    checkpoint_of(path, Weights::read(path)?)
}

/// [`read_checkpoint`] of a safetensors file that is already in memory; `path` is its name in messages.
///
/// # Errors
/// As [`read_checkpoint`].
pub fn checkpoint_from_bytes(path: &Path, bytes: &[u8]) -> Result<Checkpoint> {
    checkpoint_of(path, Weights::from_safetensors(path, bytes)?)
}

fn checkpoint_of(path: &Path, weights: Weights) -> Result<Checkpoint> {
    let weights = strip_prefixes(weights);
    let found = if weights.0.contains_key("var") && weights.0.keys().any(|name| name.starts_with("blocks.")) {
        tarflow::infer(path, weights)
    } else {
        infer_glow(weights)
    };
    found.map_err(|cause| Error::file(path, cause))
}

/// Removes the wrappers a training script leaves around the names: `net.` of its dictionary, `module.` of DataParallel.
fn strip_prefixes(weights: Weights) -> Weights {
    let strip = |name: String| {
        let inner = name.strip_prefix("net.").unwrap_or(&name);
        inner.strip_prefix("module.").unwrap_or(inner).to_owned()
    };
    Weights(weights.0.into_iter().map(|(name, t)| (strip(name), t)).collect::<BTreeMap<_, _>>())
}

fn infer_glow(weights: Weights) -> Result<Checkpoint, String> {
    let layout = |cause| format!("not a conditional Glow of the DataHardness layout: {cause}");
    let config = glow_config(&weights).map_err(layout)?;
    config.check(&weights).map_err(layout)?;
    let GlowConfig { shape, classes, hidden, levels, steps } = config;
    Ok(Checkpoint {
        architecture: Architecture::Glow(config),
        pixels: Preprocessing::Uniform,
        classes,
        weights,
        inferred: vec![
            format!("{classes} classes of {shape} images: from the shape of 'means'"),
            format!("{levels} levels of {steps} steps: counted in the names"),
            format!("{hidden} hidden channels: from the shape of the first coupling"),
        ],
    })
}

/// The architecture from names and shapes.
fn glow_config(weights: &Weights) -> Result<GlowConfig, String> {
    let shape_of = |name: &str| weights.shape(name).ok_or_else(|| format!("array '{name}' is missing"));
    let &[classes, channels, height, width] = shape_of("means")? else {
        return Err("'means' is not [classes, channels, height, width]".into());
    };
    let &[hidden, ..] = shape_of("flows.steps.0.coup.nn.mid_conv.weight")? else {
        return Err("'mid_conv.weight' has no output channels".into());
    };
    let count = |exists: &dyn Fn(usize) -> bool| (0..).take_while(|&i| exists(i)).count();
    let level = |l: usize| format!("flows{}", ".next".repeat(l));
    let any_below = |prefix: &str| weights.0.keys().any(|name| name.starts_with(prefix));
    let levels = count(&|l| any_below(&format!("{}.steps.0.", level(l))));
    let steps = count(&|k| any_below(&format!("flows.steps.{k}.")));
    let config = GlowConfig { shape: ImageShape { channels, height, width }, classes, hidden, levels, steps };
    config.validate().map_err(|e| e.to_string())?;
    Ok(config)
}
