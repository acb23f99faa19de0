//! Everything about a world at one τ, and the Bayes error over several.

use serde::{Deserialize, Serialize};

use super::limits::{Ended, Limits, Step};
use super::local::{Local, Share, signed, step_for, unseen_slope};
use super::pool::Pool;
use super::snapshot::Snapshot;
use super::source::Standing;
use crate::bayes::compute::positive;
use crate::bayes::estimate::{Estimate, Figure, Method};
use crate::bayes::information::Information;
use crate::error::Result;
use crate::events::Events;
use crate::provenance::Badge;
use crate::units::Tau;

/// What draws say of a world at one τ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorldFigures {
    /// The Bayes error.
    pub estimate: Estimate,
    /// dE/dlog τ, where it was asked for.
    pub slope: Option<Figure>,
    /// A, I(X;Y) and I/H(Y). With T ≠ 1 labels follow p_T, and H(Y) is an estimate too.
    pub information: Information,
    /// How many times the draws plain sampling needs for this interval of E; none where nothing
    /// varies.
    pub gain: Option<f64>,
    /// The same of the slope, by independent draws at two temperatures.
    pub slope_gain: Option<f64>,
    /// What ended the sampling.
    pub ended: Ended,
}

/// One τ of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The temperature.
    pub tau: Tau,
    /// The Bayes error.
    pub bayes_error: Figure,
    /// Aleatoric uncertainty, nats.
    pub aleatoric_nats: Figure,
    /// The change of E since the temperature before, over that of log τ, from the draws common to
    /// both.
    pub slope_from_last: Option<Figure>,
    /// Draws.
    pub samples: usize,
}

impl CurvePoint {
    /// What n draws say at τ, whatever the temperature before.
    pub(super) fn of(snapshot: &Snapshot, tau: Tau, n: usize) -> Self {
        let (bayes_error, aleatoric_nats) = (snapshot.error().figure, snapshot.information().0.aleatoric_nats);
        Self { tau, bayes_error, aleatoric_nats, slope_from_last: None, samples: n }
    }
}

/// How means over draws are taken.
pub(super) const MEANS: &str = "stratified by class, posteriors as control variates where enough draws are in doubt";

/// A Bayes error that draws have given.
pub(super) fn estimate(figure: Figure, pool: &Pool<'_>, samples: usize, ended: Ended) -> Estimate {
    let most = pool.largest_error();
    let why = format!("draws {MEANS}; {}", ended.words());
    Estimate {
        figure,
        log_value: figure.value.ln(),
        bounds: (0.0, most),
        badge: Badge::Estimated,
        method: Method::Sampling,
        why,
        samples: samples as u64,
        draws: 0,
        seconds: pool.seconds(),
    }
}

/// The longer half of the interval over the value; infinite of 0.
pub(super) fn relative(figure: &Figure) -> f64 {
    let longer = (figure.interval.1 - figure.value).max(figure.value - figure.interval.0);
    if figure.value > 0.0 { longer / figure.value } else { f64::INFINITY }
}

/// E, A, I and, where asked for, dE/dlog τ at one τ, refined until the Bayes error meets a limit.
///
/// # Errors
/// When τ is 0, a limit cannot be used, the source fails, or the caller stops.
pub fn figures_at(
    pool: &mut Pool<'_>,
    tau: Tau,
    with_slope: bool,
    limits: &Limits,
    events: &mut dyn Events<Standing>,
) -> Result<WorldFigures> {
    limits.check()?;
    positive(tau)?;
    let mut n = limits.start();
    let mut beside = None;
    pool.plan(n, None);
    loop {
        let local = if with_slope { Some(neighbourhood(pool, tau, n, &mut beside, events)?) } else { None };
        let own;
        let snapshot = match &local {
            Some(local) => &local.snapshot,
            None => {
                own = Snapshot::of(pool, tau, n, events)?;
                &own
            }
        };
        let error = snapshot.error();
        let images = |n: usize| if with_slope { Share::Quarter.images(n) } else { n };
        let per_draw = pool.per_image() * images(n) as f64 / n as f64;
        let bytes = pool.bytes_per_draw();
        let step = Step { draws: n, relative: relative(&error.figure), spent: pool.seconds(), per_draw, bytes };
        match limits.next(step) {
            Ok(next) => {
                pool.plan(images(next) - images(n), Some(error.figure));
                n = next;
            }
            Err(ended) => {
                return Ok(WorldFigures {
                    estimate: estimate(error.figure, pool, n, ended),
                    slope: local.as_ref().map(|local| local.slope_figure(&local.near(0.0))),
                    information: snapshot.information().0,
                    gain: error.gain,
                    slope_gain: local.and_then(|local| local.gains().1),
                    ended,
                });
            }
        }
    }
}

/// The Bayes error near τ. Its sides stay where the first draws have put them.
fn neighbourhood(
    pool: &mut Pool<'_>,
    tau: Tau,
    n: usize,
    step: &mut Option<f64>,
    events: &mut dyn Events<Standing>,
) -> Result<Local> {
    let step = match *step {
        Some(step) => step,
        None => {
            let snapshot = Snapshot::of(pool, tau, n, events)?;
            // Of the classes: label noise makes E moderate, but its slope turns as before.
            *step.insert(step_for(pool.error_of_classes(snapshot.fit(&snapshot.doubts).value)))
        }
    };
    Local::measure(pool, (tau, step), (n, Share::Quarter), events)
}

/// The Bayes error at several τ with the same draws, refined until the least certain of them meets
/// a limit; the limit of samples is meant for each τ.
///
/// # Errors
/// As [`figures_at`].
pub fn curve(
    pool: &mut Pool<'_>,
    taus: &[Tau],
    limits: &Limits,
    events: &mut dyn Events<Standing>,
) -> Result<(Vec<CurvePoint>, Ended)> {
    limits.check()?;
    taus.iter().try_for_each(|&tau| positive(tau).map(drop))?;
    let mut n = limits.start();
    pool.plan(n * taus.len(), None);
    loop {
        let mut points = Vec::with_capacity(taus.len());
        let mut before: Option<(Tau, Snapshot)> = None;
        for &tau in taus {
            let snapshot = Snapshot::of(pool, tau, n, events)?;
            let slope_from_last =
                before.as_ref().map(|(from, below)| between((*from, below), (tau, &snapshot), pool.kept_doubt()));
            points.push(CurvePoint { slope_from_last, ..CurvePoint::of(&snapshot, tau, n) });
            before = Some((tau, snapshot));
        }
        let worst = points.iter().map(|point| relative(&point.bayes_error)).fold(0.0, f64::max);
        let per_draw = pool.per_image() * taus.len() as f64;
        let bytes = pool.bytes_per_draw();
        match limits.next(Step { draws: n, relative: worst, spent: pool.seconds(), per_draw, bytes }) {
            Ok(next) => {
                pool.plan((next - n) * taus.len(), points.last().map(|point| point.bayes_error));
                n = next;
            }
            Err(ended) => return Ok((points, ended)),
        }
    }
}

/// (E(τ₂) − E(τ₁))/(log τ₂ − log τ₁), of images that may have so much `doubt`.
fn between((from, below): (Tau, &Snapshot), (to, above): (Tau, &Snapshot), doubt: f64) -> Figure {
    let change = above.change_since(below);
    let fit = above.strata.fit(above.control_differences(below).as_ref(), &change);
    let log_step = (to.get() / from.get()).ln();
    let unseen = unseen_slope(if log_step > 0.0 { above } else { below }, &change, log_step, doubt);
    signed(fit.value / log_step, (fit.half_width() / log_step).abs() + unseen)
}
