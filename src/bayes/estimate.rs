//! A Bayes error with everything that must be known about it.

use serde::{Deserialize, Serialize};

use crate::provenance::Badge;
use crate::stats::Z95;

/// How a Bayes error was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// A closed form: one dimension, equidistant classes, or products of such problems.
    Closed,
    /// Deterministic quadrature: two dimensions, or at most six classes.
    Quadrature,
    /// First-violation separation of variables with scrambled Sobol' points.
    Sov,
    /// Pair importance sampling.
    Pair,
    /// Holmes-Diaconis-Ross with LIN-ESS (EBO; Gessner et al. 2020).
    Hdr,
    /// Rao-Blackwellised Monte Carlo: E[1 − max p] over samples of every class.
    Mc,
    /// Draws of the world itself, stratified by class, with posteriors as control variates where enough draws are in doubt.
    Sampling,
}

impl Method {
    /// All of Gaussian classes, in the order of the paper of this house: exact first.
    pub const ALL: [Self; 6] = [Self::Closed, Self::Quadrature, Self::Sov, Self::Pair, Self::Hdr, Self::Mc];

    /// Name for a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed form",
            Self::Quadrature => "quadrature",
            Self::Sov => "separation of variables",
            Self::Pair => "pair importance sampling",
            Self::Hdr => "Holmes-Diaconis-Ross",
            Self::Mc => "Monte Carlo",
            Self::Sampling => "sampling of the world",
        }
    }
}

/// A number ≥ 0 with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// Half the width of its 95 % interval, divided by 1.96.
    pub std_error: f64,
    /// The 95 % interval (of an exact number: what rounding leaves open).
    pub interval: (f64, f64),
}

impl Figure {
    /// From a half width, the interval cut to [0, `largest`].
    pub fn new(value: f64, half_width: f64, largest: f64) -> Self {
        Self::between(value, [half_width; 2], largest)
    }

    /// The same with ends that are not equally far down and up.
    pub(super) fn between(value: f64, [down, up]: [f64; 2], largest: f64) -> Self {
        let interval = ((value - down).max(0.0), (value + up).min(largest.max(value)));
        Self { value, std_error: 0.5 * (down + up) / Z95, interval }
    }

    /// Half the width of the interval over the value; 0 of 0.
    pub fn relative_half_width(&self) -> f64 {
        if self.std_error == 0.0 { 0.0 } else { Z95 * self.std_error / self.value }
    }
}

/// A Bayes error: method, value, error, cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The Bayes error E = 1 − E[max_y p(y|x)].
    #[serde(flatten)]
    pub figure: Figure,
    /// ln E, finite also where E is below the smallest double; −∞ (null in JSON) where E = 0.
    #[serde(serialize_with = "finite_or_null", deserialize_with = "null_is_minus_infinity")]
    pub log_value: f64,
    /// U/(K − 1) ≤ E ≤ min(U, 1 − max π), U the union bound over pairs: certain.
    pub bounds: (f64, f64),
    /// What the interval means.
    pub badge: Badge,
    /// The method.
    pub method: Method,
    /// What was done and why, in words.
    pub why: String,
    /// Points at which an integrand was evaluated, all replicates together.
    pub samples: u64,
    /// Variables drawn inside their bounds; counted by separation of variables only.
    pub draws: u64,
    /// Wall time.
    pub seconds: f64,
}

impl Estimate {
    /// The same a little further on, where it is larger by `by`, give or take `error`.
    pub(super) fn moved(self, by: f64, error: f64) -> Self {
        let Figure { value, std_error, .. } = self.figure;
        let figure = Figure::new(value + by, Z95 * std_error + error, self.bounds.1);
        let log_value = if value > 0.0 { self.log_value + (by / value).ln_1p() } else { (value + by).ln() };
        Self { figure, log_value, ..self }
    }
}

/// A Bayes error in messages.
pub(super) fn percent(x: f64) -> String {
    format!("{:.4} %", 100.0 * x)
}

fn finite_or_null<S: serde::Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if x.is_finite() { serializer.serialize_some(x) } else { serializer.serialize_none() }
}

fn null_is_minus_infinity<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NEG_INFINITY))
}
