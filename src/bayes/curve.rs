//! The Bayes error of Gaussian classes at several τ, one after the other. Of worlds that are sampled: `sampling::curve`.

use serde::Serialize;

use super::classes::GaussianClasses;
use super::compute::Spec;
use super::estimate::{Estimate, Figure, Method};
use super::information::Information;
use super::labels::{bayes_error, derivative, information};
use crate::error::Result;
use crate::events::Events;
use crate::units::Tau;

/// Gaussian classes at one τ of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GaussianPoint {
    /// Base temperature τ.
    pub tau: Tau,
    /// The Bayes error.
    pub bayes_error: Figure,
    /// Aleatoric uncertainty, nats.
    pub aleatoric_nats: Figure,
    /// dE/dlog τ.
    pub slope: Figure,
    /// How the Bayes error was computed.
    pub method: Method,
}

/// What is computed at one τ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurvePart {
    /// The Bayes error.
    Error,
    /// The aleatoric uncertainty.
    Entropy,
    /// The slope.
    Slope,
}

/// What the computation of a curve tells.
#[derive(Debug, Clone, PartialEq)]
pub enum CurveNews {
    /// A part of the point with this number begins.
    Begun {
        /// Number of the point, from 0.
        at: usize,
        /// Which part.
        part: CurvePart,
    },
    /// What is known of the Bayes error, of which the slope is told too.
    Estimate(Estimate),
    /// What is known of the entropy.
    Information(Information),
}

impl CurvePart {
    /// In a word.
    pub fn label(self) -> &'static str {
        match self {
            Self::Error => "Bayes error",
            Self::Entropy => "entropy",
            Self::Slope => "slope",
        }
    }
}

/// Bayes error, aleatoric uncertainty and slope of the label at each τ, in the order given.
///
/// # Errors
/// When a τ, the tolerance or the method cannot be used, or the caller stops.
pub fn curve(
    classes: &GaussianClasses,
    taus: &[Tau],
    spec: &Spec,
    events: &mut dyn Events<CurveNews>,
) -> Result<Vec<GaussianPoint>> {
    let mut points = Vec::with_capacity(taus.len());
    for (at, &tau) in taus.iter().enumerate() {
        events.report(CurveNews::Begun { at, part: CurvePart::Error })?;
        let found = bayes_error(classes, tau, spec, &mut |now: Estimate| events.emit(CurveNews::Estimate(now)))?;
        events.report(CurveNews::Begun { at, part: CurvePart::Entropy })?;
        let mut tell = |now: Information| events.emit(CurveNews::Information(now));
        let aleatoric_nats = information(classes, tau, spec, &mut tell)?.aleatoric_nats;
        events.report(CurveNews::Begun { at, part: CurvePart::Slope })?;
        let slope = derivative(classes, tau, spec, &mut |now: Estimate| events.emit(CurveNews::Estimate(now)))?;
        points.push(GaussianPoint { tau, bayes_error: found.figure, aleatoric_nats, slope, method: found.method });
    }
    Ok(points)
}
