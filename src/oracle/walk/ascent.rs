//! Gradient ascent on log p(y|x) of a class-map world.

use super::{WalkPoint, Walker};
use crate::error::Result;
use crate::events::Events;
use crate::flow::DifferentiableFlow;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::Settings;
use crate::units::ClassId;

/// Classes whose weight in the gradient is below this are left out: they cost a pass each.
const NEGLIGIBLE: f64 = 1e-12;
/// The ascent has arrived where the target has this posterior.
const ARRIVED: f64 = 0.99;
/// No step moves x by more than this, root mean square over dimensions.
const LONGEST: f64 = 0.25;
/// How often a step is halved before the ascent gives up.
const HALVINGS: usize = 40;
/// Least share of the gain the gradient promises (Armijo).
const SUFFICIENT: f64 = 1e-4;
/// How much longer the step after one that was accepted at once is.
const GROWTH: f64 = 1.5;

/// ∇_x log p_T(target|x) of one image, [D], per unit of x:
/// (∇ log p(x|target) − Σ_k p_T(k|x) ∇ log p(x|k))/T.
///
/// # Errors
/// When the device fails.
pub fn posterior_gradient(
    flow: &dyn DifferentiableFlow,
    x: &[f32],
    posterior: &Posterior,
    target: ClassId,
    settings: &Settings,
) -> Result<Vec<f64>> {
    let weight = |class: ClassId| f64::from(u8::from(class == target)) - posterior.probabilities[class];
    let classes: Vec<ClassId> = (0..posterior.probabilities.len())
        .filter(|&class| class == target || posterior.probabilities[class] > NEGLIGIBLE)
        .collect();
    let mut gradient = vec![0f64; x.len()];
    // A reverse pass keeps what every layer leaves behind.
    for classes in classes.chunks((flow.images_per_pass() / 8).max(1)) {
        let copies = x.repeat(classes.len());
        let each = flow.log_likelihood_gradient(&copies, classes, settings.tau)?;
        for (&class, each) in classes.iter().zip(each.chunks(x.len())) {
            let weight = weight(class) / settings.smoothing.get();
            gradient.iter_mut().zip(each).for_each(|(sum, g)| *sum += weight * g);
        }
    }
    Ok(gradient)
}

/// Steps from `start` until the target has most of the posterior, no step raises it any more, or
/// `steps` are done. The position of a point is the way so far, root mean square over dimensions.
pub fn climb(
    walker: &Walker<'_>,
    flow: &dyn DifferentiableFlow,
    start: WalkPoint,
    target: ClassId,
    steps: usize,
    events: &mut dyn Events<WalkPoint>,
) -> Result<Vec<WalkPoint>> {
    let root = (start.x.len() as f64).sqrt();
    let mut points = vec![start];
    let mut length: Option<f64> = None;
    for _ in 0..steps {
        let here = &points[points.len() - 1];
        if here.posterior.probabilities[target] >= ARRIVED {
            break;
        }
        let gradient = posterior_gradient(flow, &here.x, &here.posterior, target, walker.settings)?;
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        if norm == 0.0 || !norm.is_finite() {
            break;
        }
        // At first so long that, were the gradient to stay, half the steps would lead to certainty.
        let promised = 2.0 * (-here.posterior.log_probabilities[target]).max(1.0) / steps as f64;
        let first = length.unwrap_or(promised / norm).min(LONGEST * root);
        let Some((next, tried)) = step(walker, here, &gradient, (norm, first), target)? else { break };
        let taken = first / f64::from(2u32).powi(tried);
        length = Some(if tried == 0 { GROWTH * taken } else { taken });
        events.report(next.clone())?;
        points.push(next);
    }
    Ok(points)
}

/// The first of `longest`, `longest`/2, … that raises log p(target|x) enough, and the number of
/// halvings.
fn step(
    walker: &Walker<'_>,
    here: &WalkPoint,
    gradient: &[f64],
    (norm, longest): (f64, f64),
    target: ClassId,
) -> Result<Option<(WalkPoint, i32)>> {
    let root = (here.x.len() as f64).sqrt();
    let mut length = longest;
    for tried in 0..HALVINGS {
        let moved = here.x.iter().zip(gradient).map(|(x, g)| (f64::from(*x) + length * g / norm) as f32);
        let position = here.position + length / root;
        let next = walker.look(&[position], moved.collect())?.swap_remove(0);
        let gain = next.posterior.log_probabilities[target] - here.posterior.log_probabilities[target];
        if gain > SUFFICIENT * length * norm {
            return Ok(Some((next, tried as i32)));
        }
        length /= 2.0;
    }
    Ok(None)
}
