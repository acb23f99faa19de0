//! Bayes errors of labels that are not the classes, their slope, and the τ of one: E~(0) and what overlap adds to it, by
//! points between pairs of classes ([`Doubt`]).
//!
//! Slopes are differences of the same points at five τ, h apart in log τ, replicate by replicate. τ(ε) is where the line of
//! a replicate through its errors around τ has ε, in the mean of the replicates: Student's t over these roots is its
//! interval.

use std::time::Instant;

use super::{at_zero, limit, reachable};
use crate::bayes::classes::{GaussianClasses, Merge};
use crate::bayes::compute::{Spec, hold, usable};
use crate::bayes::doubt::Doubt;
use crate::bayes::estimate::{Estimate, Figure, Method};
use crate::bayes::inverse::TauEstimate;
use crate::bayes::middle::{Integrand, MiddleSum};
use crate::bayes::quadrature::Scaled;
use crate::bayes::refine::{Look, MOST_WORK, PIECE_OF_WORK, Refined, Status, refine};
use crate::bayes::rqmc::REPLICATES;
use crate::bayes::sampling::{CLOSE, RANGE, neighbourhood, refuse_unreachable, signed, step_for};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::provenance::Badge;
use crate::stats::{Z95, mean_and_error, student_95};
use crate::units::{Seed, Smoothing, Tau};

/// Part of the tolerance that every interval keeps. Replicates of smooth integrals may agree by chance in more digits than
/// they have: of 16 classes on a ring in five, where 80 % of the intervals held the truth.
const FLOOR: f64 = 0.1;
/// Smallest tolerance that is aimed at: narrower intervals were the ones that held the truth in 80 % there. At this one
/// they do in 95 of 100 (a test).
const TIGHTEST: f64 = 1e-4;
/// What an explanation says where a smaller one was asked for.
const NO_CLOSER: &str = "; no closer than 1e-4 of the value";
/// Half width of the errors by which τ is looked for, as a part of what overlap adds to them; [`TIGHTEST`] of the whole at
/// least.
const ROUGH: f64 = 2e-3;
/// Smallest error that the search for τ tells from 0.
const LEAST: f64 = 1e-290;
/// Part of the step of a parabola through draws at which slopes are taken: these points are far more certain.
const STEP: f64 = 0.25;
/// Farthest that one step of the search goes, in log τ.
const FARTHEST: f64 = 0.3;
/// Times the centre is moved, at most.
const MOST_MOVES: usize = 12;
/// Growth of the points of a search at once.
const GROWTH: (f64, f64) = (1.5, 8.0);

/// The relative tolerance of the error that is aimed at.
fn aim(spec: &Spec) -> f64 {
    spec.tolerance.max(TIGHTEST)
}

/// What estimates of one problem have in common.
struct Teller<'a> {
    spec: &'a Spec,
    bounds: (f64, f64),
    why: String,
    begun: Instant,
}

impl<'a> Teller<'a> {
    fn new(classes: &GaussianClasses, spec: &'a Spec) -> Self {
        let (count, rank) = (classes.classes(), classes.rank());
        let smoothing = Some(classes.smoothing()).filter(|smoothing| *smoothing != Smoothing::ONE);
        let smoothed = smoothing.map_or(String::new(), |smoothing| format!(", labels at T = {}", smoothing.get()));
        let noisy = if classes.label_noise().is_some() { ", label noise" } else { "" };
        let near = if spec.tolerance < TIGHTEST { NO_CLOSER } else { "" };
        let why = format!("{count} classes in {rank} dimensions: points between pairs of them{smoothed}{noisy}{near}");
        Self { spec, bounds: reachable(classes), why, begun: Instant::now() }
    }

    fn estimate(&self, now: Scaled, samples: u64, ending: &str) -> Estimate {
        let scale = now.log_scale.exp();
        let value = scale * now.value;
        let half_width = (scale * now.half_width).max(FLOOR * aim(self.spec) * value);
        let (figure, note) = hold(value, half_width, self.bounds, self.spec.method.is_some());
        let own = now.log_scale + now.value.ln();
        let log_value = if figure.value == value { own } else { figure.value.ln() };
        let why = format!("{}{ending}{}", self.why, note.unwrap_or_default());
        self.told(figure, log_value, (Badge::Estimated, why, samples))
    }

    /// Before the first points.
    fn unknown(&self) -> Estimate {
        let (low, high) = self.bounds;
        let half = 0.5 * (high - low);
        let why = format!("{}; no more is known yet than certain bounds", self.why);
        self.told(Figure::new(low + half, half, high), (low + half).ln(), (Badge::Bounded, why, 0))
    }

    fn told(&self, figure: Figure, log_value: f64, (badge, why, samples): (Badge, String, u64)) -> Estimate {
        let (bounds, seconds) = (self.bounds, self.begun.elapsed().as_secs_f64());
        Estimate { figure, log_value, bounds, badge, method: Method::Pair, why, samples, draws: 0, seconds }
    }
}

/// The Bayes error of the label at τ. Reports every refinement.
///
/// # Errors
/// When τ or the tolerance cannot be used, this machine has no memory for so many pairs, or the caller stops.
pub(super) fn bayes_error(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<Estimate> {
    Ok(measure(classes, tau, spec, events)?.0)
}

/// The Bayes error, and the points of a replicate that it took; 0 where classes cannot be told apart at any τ.
fn measure(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<(Estimate, f64)> {
    spec.check()?;
    let scene = classes.scene(usable(classes, tau)?, Merge::Sum);
    if scene.count() < 2 {
        let exact = Estimate { why: "one distinct class: the same at every τ".into(), ..limit(classes) };
        events.report(exact.clone())?;
        return Ok((exact, 0.0));
    }
    let teller = Teller::new(classes, spec);
    let mut last = teller.unknown();
    let doubt = Doubt::new(classes, &scene, &at_zero(classes));
    let mut sum = MiddleSum::new(&scene, doubt, spec.seed, &mut || Ok(()))?;
    refine(&mut sum, aim(spec), |sum, now, status| {
        // Between the parts of a stage sums are not whole: what was known before it stays.
        if sum.whole() {
            last = teller.estimate(now, sum.samples(), status.ending());
        }
        if status == Status::NotYet { events.report(last.clone()) } else { Ok(()) }
    })?;
    events.report(last.clone())?;
    Ok((last, sum.points_per_replicate()))
}

/// dE/dlog τ of the label with its 95 % interval, from the points that E~ needs to meet the tolerance of `spec`. Reports
/// every refinement of E~, and E~ while the levels beside are measured.
///
/// # Errors
/// As [`bayes_error`].
pub(super) fn derivative(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<Figure> {
    let (found, points) = measure(classes, tau, spec, events)?;
    if points == 0.0 {
        return Ok(signed(0.0, 0.0));
    }
    let step = step_of(classes, found.figure.value);
    let mut check = || events.report(found.clone());
    Ok(Around::measure(classes, (tau, step), (points, spec.seed), &mut check)?.slope(0.0))
}

/// Distance of the temperatures of a slope, in log τ, where the error is about `error`.
fn step_of(classes: &GaussianClasses, error: f64) -> f64 {
    let certain = limit(classes).figure.value;
    STEP * step_for((error - certain) / (1.0 - certain))
}

/// One τ, from so many points.
struct Level {
    sum: Scaled,
    errors: [f64; REPLICATES],
    samples: u64,
    work: f64,
}

impl Level {
    fn measure(
        classes: &GaussianClasses,
        tau: Tau,
        (points, seed): (f64, Seed),
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        let scene = classes.scene(usable(classes, tau)?, Merge::Sum);
        let doubt = Doubt::new(classes, &scene, &at_zero(classes));
        let certain = doubt.beside();
        let mut sum = MiddleSum::new(&scene, doubt, seed, check)?;
        while !sum.refine(points, PIECE_OF_WORK) {
            check()?;
        }
        check()?;
        let (now, samples, work) = (sum.sum(), sum.samples(), sum.work());
        let errors = sum.replicates().map(|mean| certain + now.log_scale.exp() * mean);
        Ok(Self { sum: now, errors, samples, work })
    }
}

/// E~ around one τ, by the same points.
struct Around {
    /// At τ e^(−2h), τ e^(−h), τ, τ e^h and τ e^(2h).
    levels: [Level; 5],
    step: f64,
    /// Whether E'' may jump.
    jumps: bool,
}

impl Around {
    fn measure(
        classes: &GaussianClasses,
        (tau, step): (Tau, f64),
        points: (f64, Seed),
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self> {
        // One at a time: each has all pairs in memory.
        let mut at = |steps: f64| Level::measure(classes, Tau::new(tau.get() * (steps * step).exp())?, points, check);
        let jumps = classes.classes() > 2;
        Ok(Self { levels: [at(-2.0)?, at(-1.0)?, at(0.0)?, at(1.0)?, at(2.0)?], step, jumps })
    }

    fn centre(&self) -> &Level {
        &self.levels[2]
    }

    /// Richardson's: of the central differences D(h) and D(2h), 4/3 of the first less 1/3 of the second.
    fn slopes(&self) -> [f64; REPLICATES] {
        let [far_below, below, _, above, far_above] = &self.levels;
        std::array::from_fn(|r| {
            let (near, far) = (above.errors[r] - below.errors[r], far_above.errors[r] - far_below.errors[r]);
            (8.0 * near - far) / (12.0 * self.step)
        })
    }

    /// h²E'' of every replicate, derivatives by log τ.
    fn curves(&self) -> [f64; REPLICATES] {
        let [far_below, below, centre, above, far_above] = &self.levels;
        std::array::from_fn(|r| {
            let since = |level: &Level| level.errors[r] - centre.errors[r];
            (16.0 * (since(above) + since(below)) - (since(far_above) + since(far_below))) / 12.0
        })
    }

    /// h²E'', h³E⁽³⁾ and h⁴E⁽⁴⁾.
    fn turns(&self) -> [f64; 3] {
        let [far_below, below, centre, above, far_above] =
            self.levels.each_ref().map(|level| mean_and_error(&level.errors).0 - self.centre().errors[0]);
        let third = 0.5 * (far_above - far_below) - (above - below);
        let fourth = (far_above + far_below) - 4.0 * (above + below) + 6.0 * centre;
        [mean_and_error(&self.curves()).0, third, fourth]
    }

    /// The slope so far on, in log τ, with what Richardson's misses of it, h⁴E⁽⁵⁾/30. That is taken to be at most a tenth
    /// of the step from D(h) to this slope, h²|E⁽³⁾|/6, and twice the term h³|E⁽⁴⁾|/24 of Taylor's series together: these
    /// vanish at different τ. Of two classes (T from 0.2 to 500, four kinds of label noise, priors of ½ to 0.99, slopes
    /// above 3e-6) it was 0.2 of them or less. Of more classes E'' jumps where one between two others on a line stops being
    /// the likeliest, whatever the dimensions of all: up to twice that step is missed there.
    fn slope(&self, delta: f64) -> Figure {
        let (slopes, curves, steps) = (self.slopes(), self.curves(), delta / self.step);
        let moved: [f64; REPLICATES] = std::array::from_fn(|r| slopes[r] + steps * curves[r] / self.step);
        let (slope, error) = mean_and_error(&moved);
        let [_, third, fourth] = self.turns();
        let part = if self.jumps { 2.0 } else { 0.1 };
        let missed = (third.abs() * (part / 6.0 + 0.5 * steps * steps) + fourth.abs() / 12.0) / self.step;
        signed(slope, student_95(REPLICATES - 1) * error + missed)
    }

    /// What a line leaves of E~ so far on, in log τ.
    fn left(&self, delta: f64) -> f64 {
        let ([second, third, _], steps) = (self.turns(), (delta / self.step).abs());
        steps * steps * (0.5 * second.abs() + steps * third.abs() / 6.0)
    }

    fn root(&self, target: f64) -> Root {
        let (slopes, centre) = (self.slopes(), self.centre());
        if !(slopes.iter().all(|slope| *slope > 0.0) || slopes.iter().all(|slope| *slope < 0.0)) {
            return Root { delta: 0.0, scatter: f64::INFINITY, unseen: 0.0, bent: 0.0 };
        }
        let roots: [f64; REPLICATES] = std::array::from_fn(|r| (target - centre.errors[r]) / slopes[r]);
        let ((delta, error), slope) = (mean_and_error(&roots), mean_and_error(&slopes).0.abs());
        let scatter = student_95(REPLICATES - 1) * mean_and_error(&centre.errors).1;
        let unseen = (centre.sum.log_scale.exp() * centre.sum.half_width - scatter).max(0.0) / slope;
        Root { delta, scatter: student_95(REPLICATES - 1) * error, unseen, bent: self.left(delta) / slope }
    }

    fn work(&self) -> f64 {
        self.levels.iter().map(|level| level.work).sum()
    }
}

/// Where E~ is the target by the lines of the replicates, all in log τ.
#[derive(Debug, Clone, Copy)]
struct Root {
    /// The way to it.
    delta: f64,
    /// Half the width of its 95 % interval: infinite where the replicates do not agree whether E~ grows.
    scatter: f64,
    /// What the scatter of the replicates does not say.
    unseen: f64,
    /// What a line leaves, |E''/(2E')| δ² and the next term.
    bent: f64,
}

/// Stages of the search for τ: what ends it must not be a scatter that is small by chance (the module `refine` says more).
struct Stages {
    /// Of a replicate.
    points: f64,
    look: Look,
}

impl Stages {
    /// The scatter of this stage, at least what the earlier ones leave of theirs. Of an infinite one nothing is left.
    fn widen(&mut self, scatter: f64) -> f64 {
        if scatter.is_infinite() {
            return scatter;
        }
        self.look = self.look.after(scatter, self.points, MiddleSum::<Doubt>::LEAST_RATE);
        self.look.scatter
    }

    /// More points, as a half width of so many times what is aimed at needs them.
    fn grow(&mut self, excess: f64, affordable: f64) {
        self.points *= excess.clamp(GROWTH.0, GROWTH.1).min(affordable);
    }
}

/// The τ at which the Bayes error of the label is `target`; the tolerance of `spec` is meant for τ. Where several have it,
/// as may be with T < 1, one of them.
///
/// # Errors
/// When no τ has this error or none is found, the tolerance cannot be used, or the caller stops.
pub(super) fn tau_of_error(
    classes: &GaussianClasses,
    target: f64,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<TauEstimate> {
    spec.check()?;
    let teller = Teller::new(classes, spec);
    let certain = at_zero(classes).into_iter().map(|(_, law)| 1.0 - law.into_iter().fold(0.0, f64::max));
    let (low, high) = teller.bounds;
    let bounds = (low.max(certain.fold(1.0, f64::min)), high);
    refuse_unreachable(target, bounds, classes.label_noise(), classes.classes())?;
    // What is near to the error of τ → 0 may be far from the target.
    let added = (target - limit(classes).figure.value).abs();
    let rough = Spec { tolerance: (ROUGH * added / target).max(TIGHTEST), ..*spec };
    let mut last = (teller.unknown(), 0.0);
    let (mut tau, mut evaluations) = neighbourhood(target, (LEAST, CLOSE * added), &mut |tau| {
        last = measure(classes, tau, &rough, events)?;
        Ok((last.0.figure.value, last.0.figure.std_error))
    })?;
    let ((mut achieved, points), step) = (last, step_of(classes, target));
    if points == 0.0 {
        return Err(Error::input("the classes cannot be told apart: their labels have one Bayes error at every τ"));
    }
    let (mut moves, mut stages) = (0, Stages { points, look: Look::default() });
    loop {
        let mut check = || events.report(achieved.clone());
        let around = Around::measure(classes, (tau, step), (stages.points, spec.seed), &mut check)?;
        evaluations += around.levels.len();
        let centre = around.centre();
        achieved = teller.estimate(centre.sum, centre.samples, "");
        let Root { delta, scatter, unseen, bent } = around.root(target);
        if (bent > 0.01 * (scatter + unseen) || delta.abs() > step) && moves < MOST_MOVES {
            (tau, moves) = (Tau::new(tau.get() * delta.clamp(-FARTHEST, FARTHEST).exp())?, moves + 1);
            continue;
        }
        let half_width = stages.widen(scatter) + unseen + bent;
        let affordable = MOST_WORK / around.work().max(1.0);
        let all = affordable < GROWTH.0 || stages.points >= MiddleSum::<Doubt>::MOST_POINTS;
        if half_width <= aim(spec) || all {
            let (at_centre, slope) = (around.slope(0.0), around.slope(delta));
            let found = figure_of(tau.get() * delta.exp(), half_width.max(FLOOR * aim(spec)));
            let left = delta.abs() * Z95 * at_centre.std_error + around.left(delta);
            achieved = achieved.moved(at_centre.value * delta, left);
            let seconds = teller.begun.elapsed().as_secs_f64();
            return Ok(TauEstimate { target, tau: found, achieved, slope, evaluations, seconds });
        }
        stages.grow(half_width / aim(spec), affordable);
    }
}

/// τ with the half width of log τ.
fn figure_of(tau: f64, half_width: f64) -> Figure {
    let (low, high) = if half_width < FARTHEST { (tau * (-half_width).exp(), tau * half_width.exp()) } else { RANGE };
    let (low, high) = (low.min(tau), high.max(tau));
    Figure { value: tau, std_error: 0.5 * (high - low) / Z95, interval: (low, high) }
}

#[cfg(test)]
mod tests;
