//! The bundled oracles on the device, compared with themselves in 64 bits on the CPU, and their
//! pictures on the device.

use burn::tensor::Device;

use super::bounds::{self, Bounds};
use super::checks::Checks;
use super::flows::{self, compare, drawn, wide};
use super::reference::sampled;
use super::small;
use super::subject::{SEED, Subject};
use crate::device::to_host;
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::weights::Weights;
use crate::flow::{Architecture, Flow, Precision, Resident, Scores};
use crate::oracle::folder::OracleInfo;
use crate::oracle::library;
use crate::oracle::precision;
use crate::oracle::world::World;
use crate::units::Tau;

/// Share of pixels that may be one level off where they stay on the device
/// (tests/shared_device.rs).
const PIXELS_OFF: f64 = 1.0 / 200.0;

fn bundled(name: &str) -> Result<(OracleInfo, Weights)> {
    library::find(name).ok_or_else(|| Error::input(format!("no oracle {name} is bundled")))?.read()
}

fn bounds_of(subject: &Subject, info: &OracleInfo) -> Bounds {
    match info.architecture {
        Architecture::Glow(_) => bounds::trained_glow(),
        Architecture::TarFlow(_) => bounds::trained_tarflow(subject.is_adapter(), info.architecture.shape().dims()),
    }
}

/// A world on the device, and the same in 64 bits.
struct Both {
    info: OracleInfo,
    weights: Weights,
    here: World,
    exact: World,
    bounds: Bounds,
}

fn both(subject: &Subject, name: &str) -> Result<Both> {
    let (info, weights) = bundled(name)?;
    let here = subject.world(&info, weights.clone())?.world;
    let exact = info.clone().build(weights.clone(), &Device::flex(), Precision::F64, 1)?.world;
    let bounds = bounds_of(subject, &info);
    Ok(Both { info, weights, here, exact, bounds })
}

/// A Glow trained on digits; its samples as a user draws them.
pub fn mnist(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let Both { info, weights, here, exact, bounds } = both(subject, "mnist")?;
    compare(here.flow(), exact.flow(), checks, bounds)?;
    let measured = precision::measure(&info, weights, &here)?;
    checks.at_most("p(y|x) of samples, f32 against f64", measured.max_posterior_error, bounds.posterior);
    checks.at_most("log p(x|y) of samples, f32 against f64", measured.max_log_likelihood_error, bounds.log_p);
    Ok(())
}

/// A TarFlow of one map for all classes, trained on blood cells.
pub fn cells(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let Both { here, exact, bounds, .. } = both(subject, "cells")?;
    compare(here.flow(), exact.flow(), checks, bounds)
}

/// Its ways of sampling.
pub fn cells_sampling(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let Both { here, exact, bounds, .. } = both(subject, "cells")?;
    let (noise, classes) = drawn(exact.flow());
    let expected = wide(&exact.flow().decode(&noise, &classes, Tau::ONE, &mut silent())?.x);
    sampled(here.flow(), checks, (&noise, &classes), &expected, bounds.x)
}

/// The levels that a window paints on the device, compared with the pictures of the host's path
/// (tests/shared_device.rs).
pub fn painting(subject: &Subject, checks: &mut Checks, name: &str) -> Result<()> {
    let (info, weights) = bundled(name)?;
    let bounds = bounds_of(subject, &info);
    let world = subject.world(&info, weights)?.world;
    painted(world.flow(), checks, bounds)
}

/// The same of a small TarFlow of a map for each class: of those that are bundled none is one.
pub fn painting_tarflow(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let (config, pixels) = flows::class_maps();
    let bounds = bounds::tarflow(subject.is_adapter(), config.shape.dims());
    let weights = small::tarflow_weights(&config, SEED);
    let flow = subject.flow(&Architecture::TarFlow(config), weights, pixels)?;
    painted(flow.as_ref(), checks, bounds)
}

fn painted(flow: &dyn Flow, checks: &mut Checks, bounds: Bounds) -> Result<()> {
    let Some(resident) = flow.resident() else {
        checks.skip("pictures on the device", "this device is the host: its pictures are uploaded");
        return Ok(());
    };
    let (noise, classes) = drawn(flow);
    let Resident { images, levels, scores } = resident.decode_resident(&noise, &classes, Tau::ONE, &mut silent())?;
    let made = flow.decode(&noise, &classes, Tau::ONE, &mut silent())?.x;
    checks.within("x that stays is x that is read", &wide(&resident.fetch(images)?), &wide(&made), 0.0);
    let expected = flow.score(&made)?;
    let log_p =
        |scores: &Scores| -> Vec<f64> { (0..scores.len()).flat_map(|i| scores.log_likelihoods(i, Tau::ONE)).collect() };
    checks.within("log p(x|y) of what stays", &log_p(&scores), &log_p(&expected), bounds.log_p);
    let (levels, pictures) = (to_host(levels)?, flow.pixels().picture(&made));
    let pictures: Vec<f64> = pictures.into_iter().map(f64::from).collect();
    checks.within("levels of pixels", &levels, &pictures, 1.0);
    let off = levels.iter().zip(&pictures).filter(|(level, byte)| level != byte).count();
    checks.at_most("share of pixels a level off", off as f64 / levels.len().max(1) as f64, PIXELS_OFF);
    Ok(())
}
