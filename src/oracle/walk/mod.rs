//! A walk to the boundary: from an image towards another or towards a class, with the exact
//! posterior at every point and the image at which two classes are equally probable; and the grid
//! between two or four images (`grid`).
//!
//! Shared-map worlds: a straight line in the latent space, where the log-odds of two classes are
//! linear. Towards a class t from an image decided as a the line runs along μ_t − μ_a: at its
//! length of 1 the same noise stands under the other mean. Class-map worlds: gradient ascent on log
//! p(t|x), or a straight line between two images.
//!
//! Points are float tensors of the world, and their posteriors are those of these very tensors.

mod ascent;
mod boundary;
mod course;
pub mod grid;
mod save;

use serde::{Deserialize, Serialize};

use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::events::{Events, silent};
use crate::flow::SharedMap;
use crate::flow::base::latents;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::{SampleSpec, Settings, World};
use crate::units::{ClassId, Seed};

pub use ascent::posterior_gradient;
pub use boundary::Boundary;
pub use course::Way;
use course::{Course, Stretch, wide};
pub use save::save;

use boundary::odds;

/// Points looked at together.
const TOGETHER: usize = 7;
/// Steps of a walk, at most.
const MOST_STEPS: usize = 10_000;
/// Numbers in the images of a walk, at most: every point is kept with its image, 4 bytes a number.
const MOST_NUMBERS: usize = 1 << 28;
/// How far beyond the expected crossing a line towards a class goes at least.
const BEYOND: f64 = 1.25;

/// One end of a walk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The sample of this running number under the walk's seed.
    Sample(usize),
    /// A world-space image, CHW.
    Image(Vec<f32>),
}

/// Where a walk goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// To another image.
    Subject(Subject),
    /// Towards a class, until it has most of the posterior.
    Class(ClassId),
}

/// A walk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WalkSpec {
    /// Where it begins.
    pub from: Subject,
    /// Where it goes.
    pub to: Goal,
    /// Steps between the first point and the last, 1 to 10,000, fewer of images above 26,840 numbers: all points take
    /// 1 GiB at most; of a gradient walk, at most.
    pub steps: usize,
    /// Samples are of this class, or of the prior's.
    pub class: Option<ClassId>,
    /// Seed of samples.
    pub seed: Seed,
    /// Format of the matrix products that draw samples.
    pub products: MatmulPrecision,
    /// The crossing is found where |p_a − p_b| ≤ tolerance·(p_a + p_b).
    pub tolerance: f64,
}

/// Tolerance of a crossing where nothing else is asked for.
pub const TOLERANCE: f64 = 1e-3;

/// A point of a walk.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WalkPoint {
    /// Share of a straight way (beyond 1 never); of a gradient walk the way so far in units of x,
    /// root mean square over dimensions.
    pub position: f64,
    /// World-space image, CHW.
    #[serde(skip)]
    pub x: Vec<f32>,
    /// The exact posterior of x.
    #[serde(flatten)]
    pub posterior: Posterior,
}

/// A walk that was walked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Walk {
    /// What it followed.
    pub way: Way,
    /// The class the start is decided as.
    pub start: ClassId,
    /// The class it goes to: that asked for, or the decision at the other image.
    pub target: ClassId,
    /// Points in order.
    pub points: Vec<WalkPoint>,
    /// The 50/50 point.
    pub boundary: Boundary,
    /// Largest difference, over the points and the images looked at for the 50/50 point, of a posterior
    /// from that of the image before it was rounded to 32 bits; absent where there was no such image.
    pub rounding: Option<f64>,
}

/// What stays the same during a walk.
pub(super) struct Walker<'a> {
    world: &'a World,
    settings: &'a Settings,
}

/// Walks. Deterministic. Points are reported as they are found.
///
/// # Errors
/// When the spec does not fit, an image has no density, the device fails, or the caller stops.
pub fn walk(world: &World, spec: &WalkSpec, settings: &Settings, events: &mut dyn Events<WalkPoint>) -> Result<Walk> {
    check(world, spec, settings)?;
    let walker = Walker { world, settings };
    let from = walker.end(spec, &spec.from)?;
    let start = walker.look(&[0.0], from.x.clone())?.swap_remove(0);
    let (a, steps) = (start.posterior.decision, spec.steps);
    let (course, last) = match &spec.to {
        Goal::Class(target) => {
            walker.check_target(&start, *target)?;
            match (world.flow().latent_space(), world.flow().differentiable()) {
                (Some(map), _) => (walker.towards(map, &start, *target)?, None),
                (None, Some(flow)) => {
                    events.report(start.clone())?;
                    let points = ascent::climb(&walker, flow, start, *target, steps, events)?;
                    let boundary = walker.climbed(&points, [a, *target], spec.tolerance)?;
                    return Ok(Walk {
                        way: Way::Gradient,
                        start: a,
                        target: *target,
                        points,
                        boundary,
                        rounding: None,
                    });
                }
                (None, None) => return Err(Error::input("this world's flow knows no way towards a class")),
            }
        }
        Goal::Subject(subject) => {
            let to = walker.end(spec, subject)?;
            let last = to.x.clone();
            (walker.line(spec, from, to)?, Some(last))
        }
    };
    let (points, on_the_way) = walker.along(&course, (start, last), steps, events)?;
    let target = match spec.to {
        Goal::Class(target) => target,
        Goal::Subject(_) => points[points.len() - 1].posterior.decision,
    };
    let (boundary, at_boundary) = walker.crossing(&points, [a, target], spec.tolerance, &course)?;
    let rounding = matches!(course, Course::Latent { .. }).then_some(on_the_way.max(at_boundary));
    Ok(Walk { way: course.way(), start: a, target, points, boundary, rounding })
}

fn check(world: &World, spec: &WalkSpec, settings: &Settings) -> Result<()> {
    check_steps(spec.steps, world.shape().dims())?;
    if !(spec.tolerance > 0.0 && spec.tolerance < 1.0) {
        return Err(Error::input(format!("the tolerance of a 50/50 point is between 0 and 1, not {}", spec.tolerance)));
    }
    if settings.tau.get() == 0.0 {
        return Err(Error::input("at τ = 0 no image between two class means has a density: choose a τ above 0"));
    }
    if settings.label_noise.is_some() {
        return Err(Error::input(
            "a walk follows the posterior of the class, which label noise mixes: leave the label noise out",
        ));
    }
    world.check(settings)
}

/// Refuses walks whose images, of `dims` numbers each, are more than memory should hold.
fn check_steps(steps: usize, dims: usize) -> Result<()> {
    if !(1..=MOST_STEPS).contains(&steps) {
        return Err(Error::input(format!("a walk has 1 to {MOST_STEPS} steps, not {steps}")));
    }
    let most = (MOST_NUMBERS / dims.max(1)).saturating_sub(1).max(1);
    if steps > most {
        let gigabytes = (steps + 1) as f64 * dims as f64 * 4e-9;
        return Err(Error::input(format!(
            "a walk keeps the image of every point: {steps} steps of {dims} numbers are {gigabytes:.1} GB; of images of this size it has \
             at most {most} steps, so ask for fewer, or walk in parts"
        )));
    }
    Ok(())
}

/// An end of a walk, and the running number and class it was drawn with.
struct End {
    x: Vec<f32>,
    drawn: Option<(usize, ClassId)>,
}

impl Walker<'_> {
    /// World-space images as points.
    fn look(&self, positions: &[f64], x: Vec<f32>) -> Result<Vec<WalkPoint>> {
        let scores = self.world.score(&x, &mut silent())?;
        let images = x.chunks(self.world.shape().dims()).zip(positions).enumerate();
        Ok(images
            .map(|(i, (x, &position))| WalkPoint {
                position,
                x: x.to_vec(),
                posterior: self.world.posterior(&scores, i, self.settings),
            })
            .collect())
    }

    fn end(&self, spec: &WalkSpec, subject: &Subject) -> Result<End> {
        let dims = self.world.shape().dims();
        match subject {
            Subject::Image(x) if x.len() == dims => Ok(End { x: x.clone(), drawn: None }),
            Subject::Image(x) => {
                let shape = self.world.shape();
                Err(Error::input(format!("{} values are no image of this world of {shape}", x.len())))
            }
            Subject::Sample(index) => {
                let WalkSpec { class, seed, products, .. } = *spec;
                let samples = SampleSpec { class, products, ..SampleSpec::new(index.saturating_add(1), seed) };
                let sample = self.world.sample_indices(&samples, self.settings, &[*index])?.swap_remove(0);
                Ok(End { drawn: Some((*index, sample.source)), x: sample.x })
            }
        }
    }

    fn check_target(&self, start: &WalkPoint, target: ClassId) -> Result<()> {
        self.world.check_class(target)?;
        let name = &self.world.class_names()[target];
        if target == start.posterior.decision {
            return Err(Error::input(format!("the image is decided as {name} already: walk towards another class")));
        }
        if start.posterior.log_probabilities[target] == f64::NEG_INFINITY {
            return Err(Error::input(format!("{name} has prior 0: it is nowhere probable")));
        }
        Ok(())
    }

    /// The line along μ_target − μ_decision, at least [`BEYOND`] the place where the two are
    /// equally probable.
    fn towards<'a>(&self, map: &'a dyn SharedMap, start: &WalkPoint, target: ClassId) -> Result<Course<'a>> {
        let (base, a) = (map.base(), start.posterior.decision);
        let shift: Vec<f64> = base.mean(target).iter().zip(base.mean(a)).map(|(t, a)| t - a).collect();
        let tau = self.settings.tau.get();
        // d/ds of the log-odds at T = 1.
        let slope = shift.iter().zip(base.std()).map(|(d, s)| (d / (tau * s)).powi(2)).sum::<f64>();
        if slope == 0.0 {
            let names = self.world.class_names();
            return Err(Error::input(format!("{} and {} have one mean: no way leads", names[a], names[target])));
        }
        let crossing = -odds(start, [a, target]) * self.settings.smoothing.get() / slope;
        let length = (BEYOND * crossing).max(1.0);
        let from = map.encode_base(&wide(&start.x))?.images;
        let to = from.iter().zip(&shift).map(|(z, d)| z + length * d).collect();
        Ok(Course::Latent { map, corners: vec![from, to] })
    }

    fn line<'a>(&'a self, spec: &WalkSpec, from: End, to: End) -> Result<Course<'a>> {
        if let Some(map) = self.world.flow().latent_space() {
            let encode = |x: &[f32]| Ok::<_, Error>(map.encode_base(&wide(x))?.images);
            return Ok(Course::Latent { map, corners: vec![encode(&from.x)?, encode(&to.x)?] });
        }
        match (from.drawn, to.drawn) {
            (Some((i, class)), Some((j, other))) if class == other => {
                let noise = |index| wide(&latents(spec.seed.split("latents"), index, 1, self.world.shape().dims()));
                let (flow, tau) = (self.world.flow(), self.settings.tau);
                Ok(Course::ClassLatent { flow, corners: vec![noise(i), noise(j)], class, tau })
            }
            _ => Ok(Course::Pixels { corners: vec![wide(&from.x), wide(&to.x)] }),
        }
    }

    /// The points of a straight way, its ends the given images, and the largest effect of rounding.
    fn along(
        &self,
        course: &Course<'_>,
        (start, last): (WalkPoint, Option<Vec<f32>>),
        steps: usize,
        events: &mut dyn Events<WalkPoint>,
    ) -> Result<(Vec<WalkPoint>, f64)> {
        events.report(start.clone())?;
        let mut points = vec![start];
        let mut drift = 0f64;
        let inner = if last.is_some() { steps - 1 } else { steps };
        let places: Vec<[f64; 2]> = (1..=inner).map(|i| [i as f64 / steps as f64, 0.0]).collect();
        for places in places.chunks(TOGETHER) {
            let (found, rounded) = self.stretch(course, places)?;
            drift = drift.max(rounded);
            for point in found {
                events.report(point.clone())?;
                points.push(point);
            }
        }
        if let Some(x) = last {
            let point = self.look(&[1.0], x)?.swap_remove(0);
            events.report(point.clone())?;
            points.push(point);
        }
        Ok((points, drift))
    }

    /// Points at shares of the way across and down, and the largest effect of rounding on them.
    fn stretch(&self, course: &Course<'_>, places: &[[f64; 2]]) -> Result<(Vec<WalkPoint>, f64)> {
        let Stretch { x, unrounded } = course.at(places)?;
        let across: Vec<f64> = places.iter().map(|[across, _]| *across).collect();
        let points = self.look(&across, x)?;
        let drift = |scores: &crate::flow::Scores, i: usize, point: &WalkPoint| {
            self.world.posterior(scores, i, self.settings).distance(&point.posterior)
        };
        let drifts = unrounded.iter().flat_map(|s| points.iter().enumerate().map(move |(i, p)| drift(s, i, p)));
        let most = drifts.fold(0.0, f64::max);
        Ok((points, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_keeps_no_more_images_than_memory_should_hold() {
        assert!(check_steps(10_000, 3 * 64 * 64).is_ok() && check_steps(1, usize::MAX).is_ok());
        let dims = 3 * 256 * 256;
        let refused = check_steps(10_000, dims).unwrap_err().to_string();
        assert!(
            ["10000 steps of 196608", "7.9 GB", "at most 1364 steps"].iter().all(|w| refused.contains(w)),
            "{refused}"
        );
        assert!(check_steps(1364, dims).is_ok() && check_steps(1365, dims).is_err());
        assert!(
            check_steps(0, 1).is_err() && check_steps(10_001, 1).unwrap_err().to_string().contains("1 to 10000 steps")
        );
    }
}
