//! Public checkpoints opened as they are: which flow a set of names and shapes means.
//!
//! DataHardness (EBO's code) saves a Glow as a dictionary with `net` inside, its keys prefixed
//! `module.`; neither the number of levels, steps nor channels is in the file, so they are read off
//! the names and shapes. A public TarFlow is a plain state dict in a file called
//! `<dataset>_model_<patch>_<channels>_<blocks>_<layers>_<noise>.pth`; image size, image channels
//! and classes are only in the shapes, the noise only in the name.

mod tarflow;

use std::collections::BTreeMap;
use std::path::Path;

use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Architecture;
use crate::flow::glow::GlowConfig;
use crate::flow::preprocess::Preprocessing;
use crate::flow::weights::{WeightFile, Weights};

/// Shapes by name, wrappers removed: all that is needed to tell what a checkpoint is.
type Shapes = BTreeMap<String, Vec<usize>>;

/// What a checkpoint is, and how that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Inferred {
    /// The flow.
    pub architecture: Architecture,
    /// How 8-bit pixels enter its world.
    pub pixels: Preprocessing,
    /// Number of classes of its world.
    pub classes: usize,
    /// What was inferred and from what, a sentence each.
    pub sentences: Vec<String>,
}

/// An opened checkpoint.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// What it is.
    pub inferred: Inferred,
    /// Its arrays.
    pub weights: Weights,
}

/// Reads a DataHardness Glow, a public TarFlow, or a Bayescope `weights.safetensors`, which uses
/// the same names. A file that is none of them is refused before its arrays are read; reports bytes
/// read.
///
/// # Errors
/// Names the file and the array that is missing or misshapen; [`Error::Cancelled`].
pub fn read_checkpoint(path: &Path, events: &mut dyn Events<Progress>) -> Result<Checkpoint> {
    let file = WeightFile::open(path)?;
    let shapes: Shapes =
        file.names().map(|name| (bare(name).to_owned(), file.shape(name).unwrap_or_default().to_vec())).collect();
    let inferred = infer(path, &shapes)?;
    let weights = file.into_weights(|name| !name.ends_with(tarflow::MASK), events)?;
    checked(path, inferred, weights)
}

/// [`read_checkpoint`] of a safetensors file that is already in memory; `path` is its name in
/// messages.
///
/// # Errors
/// As [`read_checkpoint`].
pub fn checkpoint_from_bytes(path: &Path, bytes: &[u8]) -> Result<Checkpoint> {
    let weights = Weights::from_safetensors(path, bytes)?;
    let shapes: Shapes = weights.0.iter().map(|(name, t)| (bare(name).to_owned(), t.shape.clone())).collect();
    checked(path, infer(path, &shapes)?, weights)
}

/// The name without the wrappers a training script leaves around it: `net.` of its dictionary,
/// `module.` of DataParallel.
fn bare(name: &str) -> &str {
    let inner = name.strip_prefix("net.").unwrap_or(name);
    inner.strip_prefix("module.").unwrap_or(inner)
}

fn infer(path: &Path, shapes: &Shapes) -> Result<Inferred> {
    let is_tarflow = shapes.contains_key("var") && shapes.keys().any(|name| name.starts_with("blocks."));
    let found = if is_tarflow { tarflow::infer(path, shapes) } else { infer_glow(shapes) };
    found.map_err(|cause| Error::file(path, cause))
}

/// The arrays under their own names, with values that make a flow.
fn checked(path: &Path, inferred: Inferred, weights: Weights) -> Result<Checkpoint> {
    let weights = Weights(weights.0.into_iter().map(|(name, t)| (bare(&name).to_owned(), t)).collect());
    let fits = match &inferred.architecture {
        Architecture::Glow(config) => config.check(&weights).map_err(|cause| format!("{NOT_A_GLOW}: {cause}")),
        Architecture::TarFlow(config) => {
            config.check(&weights).map_err(|cause| format!("{}: {cause}", tarflow::NOT_A_TARFLOW))
        }
    };
    fits.map_err(|cause| Error::file(path, cause))?;
    Ok(Checkpoint { inferred, weights })
}

const NOT_A_GLOW: &str = "not a conditional Glow of the DataHardness layout";

fn infer_glow(shapes: &Shapes) -> Result<Inferred, String> {
    let config = glow_config(shapes).map_err(|cause| format!("{NOT_A_GLOW}: {cause}"))?;
    let GlowConfig { shape, classes, hidden, levels, steps } = config;
    Ok(Inferred {
        architecture: Architecture::Glow(config),
        pixels: Preprocessing::Uniform,
        classes,
        sentences: vec![
            format!("{classes} classes of {shape} images: from the shape of 'means'"),
            format!("{levels} levels of {steps} steps: counted in the names"),
            format!("{hidden} hidden channels: from the shape of the first coupling"),
            format!(
                "{}, then the bounded logit: assumed, the file does not tell the noise",
                Preprocessing::Uniform.describe()
            ),
        ],
    })
}

/// The shape of an array that must be there.
fn shape_of<'a>(shapes: &'a Shapes, name: &str) -> Result<&'a [usize], String> {
    shapes.get(name).map(Vec::as_slice).ok_or_else(|| format!("array '{name}' is missing"))
}

/// How many of 0, 1, 2, … have arrays below the prefix made of them.
fn count(shapes: &Shapes, prefix: impl Fn(usize) -> String) -> usize {
    let any_below =
        |prefix: String| shapes.range(prefix.clone()..).next().is_some_and(|(name, _)| name.starts_with(&prefix));
    (0..).take_while(|&i| any_below(prefix(i))).count()
}

/// The architecture from names and shapes.
fn glow_config(shapes: &Shapes) -> Result<GlowConfig, String> {
    let &[classes, channels, height, width] = shape_of(shapes, "means")? else {
        return Err("'means' is not [classes, channels, height, width]".into());
    };
    let &[hidden, ..] = shape_of(shapes, "flows.steps.0.coup.nn.mid_conv.weight")? else {
        return Err("'mid_conv.weight' has no output channels".into());
    };
    let levels = count(shapes, |l| format!("flows{}.steps.0.", ".next".repeat(l)));
    let steps = count(shapes, |k| format!("flows.steps.{k}."));
    let config = GlowConfig { shape: ImageShape { channels, height, width }, classes, hidden, levels, steps };
    config.validate().map_err(|e| e.to_string())?;
    Ok(config)
}
