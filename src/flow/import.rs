//! Public checkpoints opened as they are: which architecture a set of names and shapes means.
//!
//! DataHardness (EBO's code) saves a Glow as a dictionary with `net` inside, its keys prefixed `module.`; neither the
//! number of levels, steps nor channels is in the file, so they are read off the names and shapes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::flow::glow::GlowConfig;
use crate::flow::weights::Weights;

/// Reads a DataHardness Glow (or a Bayescope `weights.safetensors`, which uses the same names) and its architecture.
///
/// # Errors
/// Names the file and the array that is missing or misshapen.
pub fn read_glow(path: &Path) -> Result<(GlowConfig, Weights)> {
    glow_of(path, Weights::read(path)?)
}

/// [`read_glow`] of a safetensors file that is already in memory; `path` is its name in messages.
///
/// # Errors
/// As [`read_glow`].
pub fn glow_from_bytes(path: &Path, bytes: &[u8]) -> Result<(GlowConfig, Weights)> {
    glow_of(path, Weights::from_safetensors(path, bytes)?)
}

fn glow_of(path: &Path, weights: Weights) -> Result<(GlowConfig, Weights)> {
    let weights = strip_prefixes(weights);
    let config = infer_glow(&weights).and_then(|config| config.check(&weights).map(|()| config));
    let layout = |cause| Error::file(path, format!("not a conditional Glow of the DataHardness layout: {cause}"));
    Ok((config.map_err(layout)?, weights))
}

/// Removes the wrappers a training script leaves around the names: `net.` of its dictionary, `module.` of DataParallel.
fn strip_prefixes(weights: Weights) -> Weights {
    let strip = |name: String| {
        let inner = name.strip_prefix("net.").unwrap_or(&name);
        inner.strip_prefix("module.").unwrap_or(inner).to_owned()
    };
    Weights(weights.0.into_iter().map(|(name, t)| (strip(name), t)).collect::<BTreeMap<_, _>>())
}

/// The architecture from names and shapes.
fn infer_glow(weights: &Weights) -> Result<GlowConfig, String> {
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
