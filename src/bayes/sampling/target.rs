//! τ(ε) of a world by draws: the root of the curve of common draws, with the interval that their
//! error leaves.
//!
//! A secant search in 1/τ and Φ⁻¹(E), a line for two Gaussian classes, finds the neighbourhood with
//! few draws. Then draws go to one temperature and, an eighth as many, to two beside it; at first few
//! of them, then twice as many, so that a coarse answer comes soon, and a centre that was off costs
//! little. The interval holds every τ at which E = ε is not refused at 5 %: with y = Φ⁻¹(E) a line in x = 1/τ
//! near the root, Fieller's theorem gives it from the variances of y and of its slope, and their
//! covariance.

use serde::Serialize;

use super::figures::{estimate, relative};
use super::limits::{Ended, Limits, START, Step};
use super::local::{Local, Near, Share, beside, step_for};
use super::pool::{Pool, ROUND};
use super::snapshot::Snapshot;
use super::source::Standing;
use crate::bayes::estimate::{Figure, percent};
use crate::bayes::inverse::TauEstimate;
use crate::bayes::normal::{density, quantile};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::oracle::label_noise::LabelNoise;
use crate::stats::Z95;
use crate::units::Tau;

/// A target this near to the floor of label noise is the floor, rounded.
pub(in crate::bayes) const ROUNDED: f64 = 1.0 + 1e-9;
/// Range of temperatures searched.
pub(in crate::bayes) const RANGE: (f64, f64) = (0.02, 50.0);
/// Errors that the first draws are to hold, about; the rarer errors are, the more draws say nothing.
const FIRST_ERRORS: f64 = 6.0;
/// Standard errors of the search within which it ends: the root of few draws is not that of the world.
const NEAR: f64 = 2.0;
/// Part of the target within which it ends.
pub(in crate::bayes) const CLOSE: f64 = 2e-3;
/// How far from the centre the root may lie, in steps of the parabola, by the draws made so far: early a
/// new centre costs little, and a root near it is more certain; later only one that the parabola does
/// not reach is worth its draws.
const REACH: [(usize, f64); 3] = [(START, 0.6), (4 * START, 1.0), (usize::MAX, 2.0)];
/// Temperatures of the search, at most.
const MOST_STEPS: usize = 24;
/// Times the centre is moved, at most.
const MOST_MOVES: usize = 8;

/// τ(ε) by draws.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampledTau {
    /// τ with its 95 % interval, which is that of the draws; the error at it; the slope.
    pub found: TauEstimate,
    /// How many times the draws plain sampling needs for the same interval of E; none where nothing
    /// varies.
    pub gain: Option<f64>,
    /// The same of the slope, by independent draws at two temperatures.
    pub slope_gain: Option<f64>,
    /// Images classified, those of the search included.
    pub images: usize,
    /// What ended the sampling.
    pub ended: Ended,
}

/// The τ at which the Bayes error is `target`, looked for around τ = `near` where something is known
/// of it; the tolerance is meant for τ, the limit of samples for the last temperature. Where the centre was moved as often as it
/// may be, the error achieved need not be the target: the interval of τ holds the distance between the two.
///
/// # Errors
/// When no τ between 0.02 and 50 is found to have this error, a limit cannot be used, the source
/// fails, or the caller stops.
pub fn tau_by_sampling(
    pool: &mut Pool<'_>,
    target: f64,
    near: Option<Tau>,
    limits: &Limits,
    events: &mut dyn Events<Standing>,
) -> Result<SampledTau> {
    limits.check()?;
    let errors = (pool.least_error(), pool.largest_error());
    refuse_unreachable(target, errors, pool.noise.as_ref(), pool.prior.classes())?;
    let of_classes = pool.error_of_classes(target);
    let mut n = first_draws(of_classes).min(limits.start());
    pool.plan(3 * n + Share::Eighth.images(n), None);
    let (mut tau, mut evaluations) = match near {
        Some(near) => (within(near)?, 0),
        None => neighbourhood(target, (0.5 / n as f64, CLOSE * target), &mut |tau| {
            let snapshot = Snapshot::of(pool, tau, n, events)?;
            let error = snapshot.fit(&snapshot.doubts);
            Ok((error.value, error.variance.sqrt()))
        })?,
    };
    let (mut moves, step) = (0, step_for(of_classes));
    loop {
        let local = Local::measure(pool, (tau, step), (n, Share::Eighth), events)?;
        evaluations += 1;
        let delta = local.root(target);
        let near = local.near(delta);
        let figure = interval(beside(tau, delta)?.get(), target, &near);
        let reach = REACH.iter().find(|(most, _)| n <= *most).map_or(f64::INFINITY, |(_, reach)| *reach);
        let images = |n: usize| Share::Eighth.images(n);
        if delta.abs() > reach * step && moves < MOST_MOVES {
            (tau, moves) = (within(beside(tau, delta)?)?, moves + 1);
            pool.plan(images(n), None);
            continue;
        }
        let per_draw = pool.per_image() * images(n) as f64 / n as f64;
        let bytes = pool.bytes_per_draw();
        match limits.next(Step { draws: n, relative: relative(&figure), spent: pool.seconds(), per_draw, bytes }) {
            Ok(next) => {
                // Doubled, not more: what is looked at narrows step by step.
                let next = next.min(2 * n);
                pool.plan(images(next) - images(n), Some(figure));
                n = next;
            }
            Err(ended) => {
                let (gain, slope_gain) = local.gains();
                let most = estimate(figure, pool, n, ended).bounds.1;
                let achieved = estimate(Figure::new(near.error, near.half_width, most), pool, n, ended);
                let (slope, seconds) = (local.slope_figure(&near), pool.seconds());
                let found = TauEstimate { target, tau: figure, achieved, slope, evaluations, seconds };
                return Ok(SampledTau { found, gain, slope_gain, images: pool.made(), ended });
            }
        }
    }
}

/// Draws of the search, and of the first interval: one round where errors of the classes are frequent.
fn first_draws(error: f64) -> usize {
    ((FIRST_ERRORS / error / ROUND as f64).ceil() as usize).clamp(1, START / ROUND) * ROUND
}

/// Refuses an error that no posterior of so many classes can have: none is below the `least` or above the `most`.
pub(in crate::bayes) fn refuse_unreachable(
    target: f64,
    (least, most): (f64, f64),
    noise: Option<&LabelNoise>,
    classes: usize,
) -> Result<()> {
    if target > least * ROUNDED && target < most {
        return Ok(());
    }
    if let Some(noise) = noise.filter(|_| target > 0.0 && target <= least * ROUNDED) {
        return Err(below_noise(target, noise, least));
    }
    let meant = if target > 1.0 { format!(" (or is {target} % meant: {target}%?)") } else { String::new() };
    Err(Error::input(format!(
        "no τ gives a Bayes error of {}: with these {classes} classes it lies strictly between {} and {}{meant}",
        percent(target),
        if least > 0.0 { percent(least) } else { "0".into() },
        percent(most)
    )))
}

/// That label noise alone makes more errors.
pub(in crate::bayes) fn below_noise(target: f64, noise: &LabelNoise, floor: f64) -> Error {
    Error::input(format!(
        "no τ gives a Bayes error of {}: the label noise {} alone makes one of {} where images tell their class; ask for \
         more, or for less noise",
        percent(target),
        noise.describe(),
        percent(floor)
    ))
}

fn within(tau: Tau) -> Result<Tau> {
    Tau::new(tau.get().clamp(RANGE.0, RANGE.1))
}

/// A τ near which what is measured, a Bayes error with its standard error, is the target, and how many were looked at.
/// Errors below `least` are not told from it, and those as near to the target as `close` are near enough.
///
/// # Errors
/// When there is none, and those of `measure`.
pub(in crate::bayes) fn neighbourhood(
    target: f64,
    (least, close): (f64, f64),
    measure: &mut dyn FnMut(Tau) -> Result<(f64, f64)>,
) -> Result<(Tau, usize)> {
    let aim = quantile(target);
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut log_tau = 0.0f64;
    for step in 1..=MOST_STEPS {
        let tau = Tau::new(log_tau.exp())?;
        let (error, noise) = match measure(tau) {
            Ok(measured) => measured,
            Err(why) if why.is_numeric() => {
                return Err(Error::Numeric(format!("{why}; {}", nowhere(target, &points))));
            }
            Err(other) => return Err(other),
        };
        if (error - target).abs() <= (NEAR * noise).max(close) {
            return Ok((tau, step));
        }
        // Common draws or points: the curve does not jump about.
        if error < target {
            low = log_tau
        } else {
            high = log_tau
        }
        points.push(((-log_tau).exp(), quantile(error.clamp(least, 1.0 - least))));
        if low.is_finite() && high.is_finite() && (high - low).abs() < 0.01 {
            return Ok((Tau::new((0.5 * (low + high)).exp())?, step));
        }
        let direction = if error < target { 0.5 } else { -0.5 };
        let line = match points[..] {
            [.., (x0, y0), (x1, y1)] if y1 != y0 => x1 + (aim - y1) * (x1 - x0) / (y1 - y0),
            // Through the origin, where both have the sign of errors below ½.
            [(x, y)] if y < -0.2 && aim < -0.2 => x * aim / y,
            _ => f64::NAN,
        };
        let next = if line > 0.0 { -line.ln() } else { log_tau + direction };
        let next = next.clamp(log_tau - 0.6, log_tau + 0.6);
        let bracketed = low.is_finite() && high.is_finite();
        log_tau = match bracketed {
            true if next > low.min(high) && next < low.max(high) => next,
            true => 0.5 * (low + high),
            false if (next - log_tau) * direction > 0.0 => next,
            false => log_tau + direction,
        };
        if log_tau < RANGE.0.ln() || log_tau > RANGE.1.ln() {
            break;
        }
    }
    Err(Error::input(nowhere(target, &points)))
}

fn nowhere(target: f64, points: &[(f64, f64)]) -> String {
    let near = points.iter().min_by(|a, b| (a.1 - quantile(target)).abs().total_cmp(&(b.1 - quantile(target)).abs()));
    let near = near.map_or_else(String::new, |(x, y)| {
        format!("; nearest was about {} at τ = {:.4}", percent(crate::bayes::normal::cdf(*y)), 1.0 / x)
    });
    format!("no τ between {} and {} was found with a Bayes error of {}{near}", RANGE.0, RANGE.1, percent(target))
}

/// The 95 % interval of the root by Fieller's theorem, around a τ at which E may be another one: it holds that τ, too.
fn interval(tau: f64, target: f64, near: &Near) -> Figure {
    let reached = quantile(near.error);
    // dy/dx of y = Φ⁻¹(E), x = 1/τ from dE/dlog τ; all errors as if they were standard ones times
    // z.
    let (beyond, scale) = (reached - quantile(target), 1.0 / density(reached));
    let turn = -tau * scale;
    let (slope, rise) = (near.slope * turn, near.slope_half_width / Z95 * turn.abs());
    let width = near.half_width / Z95 * scale;
    let covariance = near.covariance * scale * turn;
    let z = Z95 * Z95;
    // Every s = x − 1/τ with (y − Φ⁻¹(target) + βs)² ≤ z²(V_y + 2sC + s²V_β).
    let a = slope * slope - z * rise * rise;
    let (b, c) = (z * covariance - slope * beyond, z * width * width - beyond * beyond);
    let (low, high) = if a > 0.0 && a.is_finite() {
        let root = (b * b + a * c).max(0.0).sqrt();
        let at = |s: f64| if 1.0 / tau + s > 1.0 / RANGE.1 { 1.0 / (1.0 / tau + s) } else { RANGE.1 };
        (at((b + root) / a), at((b - root) / a))
    } else {
        // The slope may be 0, or E is one that no world has: every τ that was looked at may be the one.
        RANGE
    };
    let (low, high) = (low.min(tau), high.max(tau));
    Figure { value: tau, std_error: 0.5 * (high - low) / Z95, interval: (low, high) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bayes::normal::tail;

    /// Two Gaussian classes 3 apart, seen from a τ that the moves of the centre ended at.
    #[test]
    fn an_interval_around_a_tau_that_is_not_the_root_holds_the_root() {
        for tau in [0.7, 1.0, 1.4] {
            let (error, slope) = (tail(1.5 / tau), density(1.5 / tau) * 1.5 / tau);
            let near = |half_width: f64, slope_half_width: f64| {
                interval(tau, tail(1.5), &Near { error, half_width, slope, slope_half_width, covariance: 0.0 })
            };
            // Without error of draws it ends at the root itself.
            let (low, high) = near(0.0, 0.0).interval;
            assert!((low - tau.min(1.0)).abs() < 1e-6 && (high - tau.max(1.0)).abs() < 1e-6, "{tau}: {low} to {high}");
            let (low, high) = near(0.05 * error, 0.1 * slope).interval;
            assert!(low <= tau && tau <= high && low < 1.0 && 1.0 < high && high - low < 0.8, "{tau}: {low} to {high}");
        }
        let flat = Near { error: -0.1, half_width: 0.01, slope: 0.0, slope_half_width: 0.1, covariance: 0.0 };
        assert_eq!(interval(1.0, 0.1, &flat).interval, RANGE);
    }
}
