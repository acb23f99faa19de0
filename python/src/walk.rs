//! Walks between images, and from one towards a class.

use bayescope::error::Result;
use bayescope::oracle::walk::{Goal, Subject, TOLERANCE, Walk, WalkSpec, walk};
use bayescope::oracle::world::{SampleSpec, Settings};
use bayescope::units::{ClassId, Seed};
use numpy::{PyArray3, PyArrayMethods};
use pyo3::prelude::*;

use crate::engine::{Open, Stop};
use crate::json;

/// A walk that was walked.
pub struct Walked {
    /// World-space images of its points, [points, C, H, W].
    pub x: Vec<f32>,
    /// That of the 50/50 point, [C, H, W].
    pub boundary: Vec<f32>,
    /// All of it but the images, as JSON by the names of `bayescope walk --json`.
    pub told: String,
}

/// Where a walk begins or ends: the running number of a sample, or an image [C, H, W].
fn subject(given: &Bound<'_, PyAny>) -> PyResult<Subject> {
    if let Ok(number) = given.extract::<usize>() {
        return Ok(Subject::Sample(number));
    }
    let image = given.cast::<PyArray3<f32>>()?.try_readonly()?;
    Ok(Subject::Image(image.as_array().iter().copied().collect()))
}

/// The walk from `from` to `to`, or towards a class; samples are those of a seed, of one class where it is given.
///
/// # Errors
/// Where an end is neither number nor image.
pub fn asked(
    from: &Bound<'_, PyAny>,
    to: &Bound<'_, PyAny>,
    towards: Option<ClassId>,
    steps: usize,
    (seed, class): (Seed, Option<ClassId>),
) -> PyResult<WalkSpec> {
    let to = match towards {
        Some(class) => Goal::Class(class),
        None => Goal::Subject(subject(to)?),
    };
    let products = SampleSpec::new(0, seed).products;
    Ok(WalkSpec { from: subject(from)?, to, steps, class, seed, products, tolerance: TOLERANCE })
}

/// Walks as `bayescope walk`.
///
/// # Errors
/// At τ = 0 and under label noise; when the walk does not fit the world, an image has no density, the device fails, or nobody
/// waits any more.
pub fn walked(open: &Open, stop: &Stop, settings: &Settings, spec: &WalkSpec) -> Result<Walked> {
    let found: Walk = walk(&open.world, spec, settings, &mut stop.sink())?;
    let told = json(&found)?;
    let x = found.points.into_iter().flat_map(|point| point.x).collect();
    Ok(Walked { x, boundary: found.boundary.point.x, told })
}
