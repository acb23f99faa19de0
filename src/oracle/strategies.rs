//! How the blocks of a world's flow are inverted on this device: measured once for a model and a
//! device, remembered, used.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::{read_json, write_json};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::sampling::{BlockPlan, Strategy};
use crate::flow::{BlockInversion, Flow};

/// How far a block's GS-Jacobi result may be from the loop's, in units of its values.
pub const TOLERANCE: f64 = 5e-5;
/// Version of the measurements: raised when the kernels or the ways that are tried change.
const FORMAT: u32 = 7;

/// What was measured of one model on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Version of these measurements.
    pub format: u32,
    /// SHA-256 of the weights.
    pub weights_sha256: String,
    /// What computed.
    pub device: String,
    /// Images inverted together.
    pub images: usize,
    /// Block after block.
    pub blocks: Vec<BlockPlan>,
}

impl Measured {
    /// The chosen way of every block.
    pub fn strategies(&self) -> Vec<Strategy> {
        self.blocks.iter().map(|block| block.strategy).collect()
    }

    /// In a sentence.
    pub fn describe(&self) -> String {
        let jacobi = self.blocks.iter().filter(|block| block.strategy != Strategy::Loop).count();
        let chosen =
            |b: &BlockPlan| if b.strategy == Strategy::Loop { b.loop_ms } else { b.jacobi_ms.unwrap_or(b.loop_ms) };
        let (loops, best): (f64, f64) =
            (self.blocks.iter().map(|b| b.loop_ms).sum(), self.blocks.iter().map(chosen).sum());
        match jacobi {
            0 => format!("all {} blocks token by token: no GS-Jacobi was faster on {}", self.blocks.len(), self.device),
            n => format!(
                "{n} of {} blocks by GS-Jacobi: {:.1} times as fast as token by token on {}",
                self.blocks.len(),
                loops / best,
                self.device
            ),
        }
    }
}

/// The file of the measurements of a model on a device; `None` without a cache folder.
fn file(weights_sha256: &str, device: &str, images: usize) -> Option<PathBuf> {
    let folder = directories::ProjectDirs::from("", "", "bayescope")?.cache_dir().join("strategies");
    let device: String = device.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Some(folder.join(format!("{}-{device}-{images}.json", weights_sha256.get(..16).unwrap_or(weights_sha256))))
}

/// What is remembered of a model on a device for about that many images at once, if anything.
fn remembered(weights_sha256: &str, device: &str, images: usize) -> Option<Measured> {
    let measured: Measured = read_json(&file(weights_sha256, device, images)?).ok()??;
    (measured.format == FORMAT && measured.weights_sha256 == weights_sha256 && measured.device == device)
        .then_some(measured)
}

/// Measures a model on a device and remembers the result where the system allows. Reports blocks.
///
/// # Errors
/// When the device fails, or the caller stops.
pub fn measure(
    flow: &dyn BlockInversion,
    weights_sha256: &str,
    device: &str,
    images: usize,
    events: &mut dyn Events<Progress>,
) -> Result<Measured> {
    let total = flow.strategies().len();
    let blocks = flow.measure_strategies(images, TOLERANCE, &mut |done| events.report(Progress { done, total }))?;
    let measured = Measured {
        format: FORMAT,
        weights_sha256: weights_sha256.to_owned(),
        device: device.to_owned(),
        images,
        blocks,
    };
    if let Some(file) = file(weights_sha256, device, images)
        && let Err(error) = remember(&file, &measured)
    {
        // Nothing is lost but a repetition.
        tracing::warn!("the strategies of sampling could not be remembered: {error}");
    }
    Ok(measured)
}

fn remember(file: &std::path::Path, measured: &Measured) -> Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    }
    write_json(file, measured)
}

/// Gives the flow the strategies remembered for this device, if it is one that has a choice and any
/// are remembered.
pub fn recall(flow: &dyn Flow, weights_sha256: &str, device: &str, images: usize) {
    if let Some(flow) = flow.block_inversion()
        && let Some(known) = remembered(weights_sha256, device, images)
    {
        flow.set_strategies(known.strategies());
    }
}

/// Gives the flow the strategies remembered for this device, or measures them now. `None` for a
/// flow that is inverted in one way only.
///
/// # Errors
/// As [`measure`].
pub fn adopt(
    flow: &dyn Flow,
    weights_sha256: &str,
    device: &str,
    images: usize,
    events: &mut dyn Events<Progress>,
) -> Result<Option<Measured>> {
    let Some(flow) = flow.block_inversion() else { return Ok(None) };
    let images = images.next_power_of_two();
    let measured =
        match remembered(weights_sha256, device, images).filter(|m| m.blocks.len() == flow.strategies().len()) {
            Some(measured) => measured,
            None => measure(flow, weights_sha256, device, images, events)?,
        };
    flow.set_strategies(measured.strategies());
    Ok(Some(measured))
}
