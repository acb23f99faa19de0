//! dE/dlog τ, which is never negative (EBO Prop. 2; theory §3 derives the sum over faces).

use super::classes::{GaussianClasses, Merge, Scene};
use super::compute::{SOV_UP_TO, Spec, TENSOR_UP_TO, positive};
use super::estimate::Figure;
use super::pair::{PairSum, Target};
use super::quadrature::Scaled;
use super::refine::{Refined, refine};
use super::rqmc::{REPLICATES, WedgeSum, mean_and_error, student_95};
use super::{equidistant, line, plane, product, sov, tensor};
use crate::error::{Error, Result};
use crate::units::Tau;

/// dE/dlog τ with its 95 % interval: exact where E is, else to the tolerance of `spec`.
///
/// # Errors
/// When τ or the tolerance cannot be used.
pub fn derivative(classes: &GaussianClasses, tau: Tau, spec: &Spec) -> Result<Figure> {
    spec.check()?;
    let scene = classes.scene(positive(tau)?, Merge::Best);
    let sum = match exactly(&scene) {
        Some(sum) => sum,
        None if scene.count() <= TENSOR_UP_TO => tensor::integrate(&sov::derivative_terms(&scene), spec.tolerance).0,
        None if scene.count() <= SOV_UP_TO => {
            let mut sum = WedgeSum::new(sov::derivative_terms(&scene), spec.seed.split("derivative"));
            refine(&mut sum, spec.tolerance, |_, now, _| Ok(now))?
        }
        None => by_difference(classes, tau, spec)?,
    };
    let scale = sum.log_scale.exp();
    Ok(Figure::new(scale * sum.value, scale * sum.half_width, f64::INFINITY))
}

fn exactly(scene: &Scene) -> Option<Scaled> {
    match (scene.count(), scene.rank) {
        (0 | 1, _) => Some(Scaled::ZERO),
        (_, 1) => Some(line::derivative(scene)),
        (_, 2) => Some(plane::derivative(scene)),
        _ => equidistant::derivative(scene).or_else(|| product::derivative(&product::factors(scene)?)),
    }
}

/// Too many classes for a sum over faces: the same points at two τ, by replicate.
fn by_difference(classes: &GaussianClasses, tau: Tau, spec: &Spec) -> Result<Scaled> {
    const STEP: f64 = 0.01;
    let scene = |log_step: f64| Ok::<_, Error>(classes.scene(Tau::new(tau.get() * log_step.exp())?, Merge::Best));
    let scenes = [scene(-STEP)?, scene(STEP)?];
    let mut below = PairSum::new(&scenes[0], Target::Error, spec.seed)?;
    let mut above = PairSum::new(&scenes[1], Target::Error, spec.seed)?;
    let now = refine(&mut below, spec.tolerance.max(1e-3), |_, now, _| Ok(now))?;
    above.refine(below.points_per_replicate(), f64::INFINITY);
    // d log E / d log τ by a central difference, whose own error is of the order STEP².
    let (slope, error) = mean_and_error(&above.log_ratios(&below).map(|ratio| ratio / (2.0 * STEP)));
    let half_width = student_95(REPLICATES - 1) * error + STEP * STEP * slope.abs();
    // The sum is that of the lower temperature; E at τ itself lies half the way to the higher one.
    let middle = (STEP * slope).exp();
    Ok(Scaled {
        log_scale: now.log_scale,
        value: middle * now.value * slope,
        half_width: middle * (now.value * half_width + slope.abs() * now.half_width),
    })
}
