//! dE/dlog τ, which is never negative (EBO Prop. 2; theory §3 derives the sum over faces).

use super::classes::{GaussianClasses, Merge, Scene};
use super::compute::{SOV_UP_TO, Spec, TENSOR_UP_TO, usable};
use super::estimate::Figure;
use super::pair::{PairSum, Target};
use super::quadrature::Scaled;
use super::refine::{Refined, refine};
use super::rqmc::{REPLICATES, WedgeSum};
use super::{equidistant, line, plane, product, sov, tensor};
use crate::error::Result;
use crate::stats::{mean_and_error, student_95};
use crate::units::Tau;

/// dE/dlog τ with its 95 % interval: exact where E is, else of up to 100 classes to the tolerance of `spec`. Of more
/// classes it is a difference of Bayes errors, of which the one at τ is known to this tolerance or to 1e-3.
///
/// # Errors
/// When τ or the tolerance cannot be used.
pub fn derivative(classes: &GaussianClasses, tau: Tau, spec: &Spec) -> Result<Figure> {
    spec.check()?;
    let scene = classes.scene(usable(classes, tau)?, Merge::Best);
    let sum = match exactly(&scene) {
        Some(sum) => sum,
        None if scene.count() <= SOV_UP_TO => by_faces(&scene, spec)?,
        None => by_difference(classes, tau, &scene, spec)?,
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

/// The sum over faces: of few classes by quadrature, where that meets the tolerance; else by points.
fn by_faces(scene: &Scene, spec: &Spec) -> Result<Scaled> {
    if scene.count() <= TENSOR_UP_TO {
        let sum = tensor::integrate(&sov::derivative_terms(scene), spec.tolerance).0;
        if sum.half_width <= spec.tolerance * sum.value {
            return Ok(sum);
        }
    }
    let mut sum = WedgeSum::new(sov::derivative_terms(scene), spec.seed.split("derivative"));
    refine(&mut sum, spec.tolerance, |_, now, _| Ok(now))
}

/// Too many classes for a sum over faces: the same points at five τ, by replicate.
///
/// With f = log E and s = log τ, dE/ds = E·f′. The central difference D(h) = (f(s + h) − f(s − h))/2h is too large by
/// h²f‴/6, Richardson's (4D(h) − D(2h))/3 is not; all that parts the two is taken to be open. E is that at τ itself: from
/// a τ beside it, led there by the slope, it would be e^(h²f″/2) times as large. Far in the tail, where f″ = −2f′ and
/// f′ ≈ −2f, that would be 2 % too little at E = 10⁻⁴⁴. D(h) alone misses ⅔h² of f′ there, and up to a tenth of it where a
/// few rare classes near each other make as many errors as many far ones (E = 10⁻²⁰).
fn by_difference(classes: &GaussianClasses, tau: Tau, scene: &Scene, spec: &Spec) -> Result<Scaled> {
    const STEP: f64 = 0.01;
    let mut sum = PairSum::new(scene, Target::Error, spec.seed)?;
    let now = refine(&mut sum, spec.tolerance.max(1e-3), |_, now, _| Ok(now))?;
    // One at a time: each has all pairs in memory.
    let beside = |log_step: f64| -> Result<[f64; REPLICATES]> {
        let scene = classes.scene(Tau::new(tau.get() * log_step.exp())?, Merge::Best);
        let mut other = PairSum::new(&scene, Target::Error, spec.seed)?;
        other.refine(sum.points_per_replicate(), f64::INFINITY);
        Ok(other.log_ratios(&sum))
    };
    let (above, below) = (beside(STEP)?, beside(-STEP)?);
    let (far_above, far_below) = (beside(2.0 * STEP)?, beside(-2.0 * STEP)?);
    let near: [f64; REPLICATES] = std::array::from_fn(|r| (above[r] - below[r]) / (2.0 * STEP));
    let slopes: [f64; REPLICATES] =
        std::array::from_fn(|r| (4.0 * near[r] - (far_above[r] - far_below[r]) / (4.0 * STEP)) / 3.0);
    let (slope, error) = mean_and_error(&slopes);
    let half_width = student_95(REPLICATES - 1) * error + (slope - mean_and_error(&near).0).abs();
    Ok(Scaled {
        log_scale: now.log_scale,
        value: now.value * slope,
        half_width: now.value * half_width + slope.abs() * now.half_width,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_holds_the_slope_where_rare_near_classes_err_as_often_as_far_ones() {
        let count = SOV_UP_TO + 10;
        // The last two are 1 from each other, all others 20.
        let mean = |k: usize| -> Vec<f64> {
            let along = |i: usize| if i == k.min(count - 2) { 200f64.sqrt() } else { 0.0 };
            (0..count).map(|i| if i == count - 1 && k == i { 1.0 } else { along(i) }).collect()
        };
        let rare = 1e-21;
        let prior = |k: usize| if k < count - 2 { (1.0 - 2.0 * rare) / (count - 2) as f64 } else { rare };
        let classes = GaussianClasses::new((0..count).map(mean).collect(), (0..count).map(prior).collect()).unwrap();
        let scene = classes.scene(Tau::ONE, Merge::Best);
        // Beyond one face is hardly a point beyond another: errors and their slopes add up.
        let pairs = (0..count).flat_map(|g| (0..g).map(move |h| (g, h)));
        let of_face = |(g, h): (usize, usize)| {
            scene.distance(g, h) * scene.weights[g] * super::super::normal::density(scene.boundary(g, h))
        };
        let truth: f64 = pairs.map(of_face).sum();
        let found = by_difference(&classes, Tau::ONE, &scene, &Spec { tolerance: 1e-3, ..Spec::default() }).unwrap();
        let scale = found.log_scale.exp();
        let (off, open) = (scale * found.value / truth - 1.0, scale * found.half_width / truth);
        assert!(off.abs() <= open && open < 0.02, "{off:e}, {open:e}");
    }

    #[test]
    fn a_difference_holds_the_slope_far_in_the_tail() {
        let count = SOV_UP_TO + 10;
        for distance in [20.0, 40.0] {
            let mean = |k: usize| (0..count).map(|i| if i == k { distance } else { 0.0 }).collect();
            let priors = vec![1.0 / count as f64; count];
            let classes = GaussianClasses::new((0..count).map(mean).collect(), priors).unwrap();
            let scene = classes.scene(Tau::ONE, Merge::Best);
            let exact = equidistant::derivative(&scene).unwrap();
            let found =
                by_difference(&classes, Tau::ONE, &scene, &Spec { tolerance: 1e-3, ..Spec::default() }).unwrap();
            let truth = exact.value * (exact.log_scale - found.log_scale).exp();
            let (off, open) = (found.value / truth - 1.0, found.half_width / truth);
            assert!(off.abs() <= open && open < 0.004, "{distance}: {off:e}, {open:e}");
        }
    }
}
