//! Any flow on the device compared with itself in 64 bits on the CPU, and small random flows.

use burn::tensor::Device;

use super::bounds::{self, Bounds};
use super::checks::Checks;
use super::reference::{densities, sampled};
use super::small;
use super::subject::{SEED, Subject};
use crate::data::ImageShape;
use crate::error::Result;
use crate::events::silent;
use crate::flow::base::latents;
use crate::flow::glow::GlowConfig;
use crate::flow::preprocess::Preprocessing;
use crate::flow::tarflow::{MEANS, TarFlowConfig};
use crate::flow::weights::Weights;
use crate::flow::{Architecture, Flow, Precision};
use crate::units::{ClassId, Seed, Tau};

/// Images compared.
const IMAGES: usize = 3;
const TARFLOW_PIXELS: Preprocessing = Preprocessing::Gaussian { std: 0.1 };

/// A Glow of three levels, of the shape that tests/flow_properties/suite.rs has: wider ones of such
/// weights lose more than a digit.
pub fn glow(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let shape = ImageShape { channels: 2, height: 8, width: 8 };
    let config = GlowConfig { shape, classes: 3, hidden: 4, levels: 3, steps: 2 };
    let weights = small::glow_weights(&config, SEED);
    let bounds = bounds::glow(subject.is_adapter(), shape.dims());
    random(subject, checks, &Architecture::Glow(config), weights, Preprocessing::Uniform, bounds).map(drop)
}

/// A small TarFlow of a map for each class, and how pixels enter it.
pub fn class_maps() -> (TarFlowConfig, Preprocessing) {
    (small::tarflow_config(3, 8, 2, 3), TARFLOW_PIXELS)
}

/// A TarFlow of a map for each class, and its ways of sampling.
pub fn tarflow(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let (config, pixels) = class_maps();
    let bounds = bounds::tarflow(subject.is_adapter(), config.shape.dims());
    let weights = small::tarflow_weights(&config, SEED);
    every_way(subject, checks, (config, weights, pixels), bounds)
}

/// A TarFlow of one map for all classes, and its ways of sampling.
pub fn shared_tarflow(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let config = TarFlowConfig { shared_map: true, ..small::tarflow_config(1, 8, 2, 3) };
    let mut weights = small::tarflow_weights(&config, SEED);
    if let Some(means) = weights.0.get_mut(MEANS) {
        means.values.iter_mut().for_each(|mean| *mean *= 8.0);
    }
    let bounds = bounds::tarflow(subject.is_adapter(), config.shape.dims());
    every_way(subject, checks, (config, weights, TARFLOW_PIXELS), bounds)
}

fn every_way(
    subject: &Subject,
    checks: &mut Checks,
    (config, weights, pixels): (TarFlowConfig, Weights, Preprocessing),
    bounds: Bounds,
) -> Result<()> {
    let flow = random(subject, checks, &Architecture::TarFlow(config), weights, pixels, bounds)?;
    let (noise, classes) = drawn(flow.exact.as_ref());
    let expected = wide(&flow.exact.decode(&noise, &classes, Tau::ONE, &mut silent())?.x);
    sampled(flow.here.as_ref(), checks, (&noise, &classes), &expected, bounds.x)
}

/// A flow on the device, and the same in 64 bits.
struct Both {
    here: Box<dyn Flow>,
    exact: Box<dyn Flow>,
}

fn random(
    subject: &Subject,
    checks: &mut Checks,
    architecture: &Architecture,
    weights: Weights,
    pixels: Preprocessing,
    bounds: Bounds,
) -> Result<Both> {
    let exact = architecture.build(weights.clone(), pixels, &Device::flex(), Precision::F64)?;
    let here = subject.flow(architecture, weights, pixels)?;
    compare(here.as_ref(), exact.as_ref(), checks, bounds)?;
    Ok(Both { here, exact })
}

/// Latents (NCHW) of some images, and their classes.
pub fn drawn(flow: &dyn Flow) -> (Vec<f32>, Vec<ClassId>) {
    let classes = (0..IMAGES).map(|i| i % flow.classes()).collect();
    (latents(Seed(SEED), 0, IMAGES, flow.shape().dims()), classes)
}

/// Values in 64 bits.
pub fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}

/// z, log p(x|y), posterior, the inverse and an evidence map of a flow, compared with 64 bits.
pub fn compare(here: &dyn Flow, exact: &dyn Flow, checks: &mut Checks, bounds: Bounds) -> Result<()> {
    let (noise, classes) = drawn(exact);
    let x = exact.decode(&noise, &classes, Tau::ONE, &mut silent())?.x;
    checks.within("z", &here.noise(&x, &classes, Tau::ONE)?, &exact.noise(&x, &classes, Tau::ONE)?, bounds.z);
    let (found, expected) = (densities(&here.score(&x)?, Tau::ONE), densities(&exact.score(&x)?, Tau::ONE));
    checks.within("log p(x|y)", &found.0, &expected.0, bounds.log_p);
    checks.within("p(y|x)", &found.1, &expected.1, bounds.posterior);
    let made = here.decode(&noise, &classes, Tau::ONE, &mut silent())?.x;
    checks.within("x of z", &wide(&made), &wide(&x), bounds.x);
    // Two densities are subtracted.
    let (first, [a, b]) = (&x[..exact.shape().dims()], [0, 1]);
    let (found, expected) = (here.evidence(first, a, b, Tau::ONE)?, exact.evidence(first, a, b, Tau::ONE)?);
    checks.within("evidence map", &found.cells, &expected.cells, 2.0 * bounds.log_p);
    checks.within("evidence in all", &[found.total, found.sum()], &[expected.total; 2], 2.0 * bounds.log_p);
    Ok(())
}
