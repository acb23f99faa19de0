//! Figures of what is predicted, the label: the class itself, or drawn from p_T (T ≠ 1) and by a matrix C (label noise,
//! theory §1 and §3). These are the functions that other rooms call; the methods beside know classes alone.
//!
//! Where C is symmetric, max_y p~ = η/(K − 1) + a·max_y p with a = 1 − ηK/(K − 1) ≥ 0, so that E~ = η + a·E by the closed
//! forms and integrals of the classes. Beyond η = (K − 1)/K the least probable class has the likeliest label: of two
//! classes that is the other one, and E~ = (1 − η) + (2η − 1)·E; of more there is no such form. Bayes errors of any other
//! C, whose decisions have other boundaries than those between classes, and all with T ≠ 1, where E = E_x[1 − max_y p_T(y|x)]
//! is no integral over where a class wins, come from points between pairs of classes ([`overlap`]); entropies, and figures
//! of one class or two, from draws of the classes.

mod limits;
mod overlap;

use super::classes::GaussianClasses;
use super::compute::{self, Spec, usable};
use super::estimate::{Estimate, Figure, Method};
use super::hardness::{self, ClassHardness, HardnessNews};
use super::information::{self as entropies, Information};
use super::inverse::{self, TauEstimate};
use super::ranking::{self, ClassRanking};
use super::sampling::{
    GaussianDraws, Limits, Pool, ROUNDED, Standing, WorldFigures, below_noise, figures_at, hardness_at,
};
use super::slope;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::posterior::Prior;
use crate::provenance::Badge;
use crate::units::{Smoothing, Tau};
pub(super) use limits::at_zero;
pub use limits::{information_at_zero, limit_at_zero};
use limits::{label_of, limit};

/// Log-likelihoods of draws that are held at once: at ten classes an interval of about half a per cent of E.
const NUMBERS: usize = 1 << 20;
/// Draws at least, however many classes.
const LEAST: usize = 4096;

/// E~ = offset + scale·E with 0 ≤ scale.
#[derive(Debug, Clone, Copy)]
struct Affine {
    offset: f64,
    scale: f64,
}

impl Affine {
    /// Of labels at T = 1 whose noise has such a form.
    fn of(classes: &GaussianClasses) -> Option<Self> {
        let noise = classes.label_noise().filter(|_| classes.smoothing() == Smoothing::ONE)?;
        let classes = classes.classes();
        let rate = noise.symmetric_rate(classes)?;
        let kept = 1.0 - rate * classes as f64 / (classes as f64 - 1.0);
        match (classes, kept) {
            // Labels that tell nothing, up to rounding.
            (_, kept) if kept.abs() <= 4.0 * f64::EPSILON => Some(Self { offset: rate, scale: 0.0 }),
            (_, kept) if kept > 0.0 => Some(Self { offset: rate, scale: kept }),
            (2, kept) => Some(Self { offset: 1.0 - rate, scale: -kept }),
            _ => None,
        }
    }

    fn at(self, error: f64) -> f64 {
        self.offset + self.scale * error
    }

    fn figure(self, Figure { value, std_error, interval: (low, high) }: Figure) -> Figure {
        Figure { value: self.at(value), std_error: self.scale * std_error, interval: (self.at(low), self.at(high)) }
    }

    fn estimate(self, clean: Estimate) -> Estimate {
        let figure = self.figure(clean.figure);
        let (low, high) = clean.bounds;
        let why = format!(
            "symmetric label noise, {} + {}·E of the classes by {}: {}",
            self.offset,
            self.scale,
            clean.method.name(),
            clean.why
        );
        let (log_value, bounds) = (figure.value.ln(), (self.at(low), self.at(high)));
        Estimate { figure, log_value, bounds, why, ..clean }
    }
}

/// The Bayes error of the label at base temperature τ. Reports every refinement.
///
/// # Errors
/// When τ, the tolerance or the method cannot be used, or the caller stops. T ≠ 1 and label noise that is not symmetric
/// have no methods but points between pairs, which is taken by itself, and draws.
pub fn bayes_error(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<Estimate> {
    if classes.labels_are_classes() {
        return compute::bayes_error(classes, tau, spec, events);
    }
    if let Some(affine) = Affine::of(classes) {
        let mut noisy = |clean: Estimate| events.emit(affine.estimate(clean));
        return Ok(affine.estimate(compute::bayes_error(classes, tau, spec, &mut noisy)?));
    }
    match spec.method {
        None | Some(Method::Pair) => overlap::bayes_error(classes, tau, spec, events),
        Some(Method::Mc | Method::Sampling) => drawn_error(classes, tau, spec, events),
        Some(method) => Err(Error::input(format!(
            "{} integrates over where each class wins, which with T ≠ 1 or label noise that is not symmetric gives no Bayes \
             error: leave the method out, or choose pair (points between pairs of classes) or mc (draws of the classes)",
            method.name()
        ))),
    }
}

/// Whether the Bayes error of the label follows from that of the classes, by their closed forms and integrals.
pub fn follows_the_classes(classes: &GaussianClasses) -> bool {
    classes.labels_are_classes() || Affine::of(classes).is_some()
}

/// The Bayes error of the label by draws.
fn drawn_error(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<Estimate> {
    let mut last = None;
    let mut tell = |standing: Standing| match standing.figure.filter(|figure| last != Some(*figure)) {
        Some(figure) => {
            last = Some(figure);
            events.emit(so_far(figure, standing.progress.done))
        }
        None => std::ops::ControlFlow::Continue(()),
    };
    let found = figures(classes, tau, spec, &mut tell)?.estimate;
    events.report(found.clone())?;
    Ok(found)
}

/// What draws have said so far.
fn so_far(figure: Figure, draws: usize) -> Estimate {
    Estimate {
        figure,
        log_value: figure.value.ln(),
        bounds: (0.0, 1.0),
        badge: Badge::Estimated,
        method: Method::Sampling,
        why: "draws of the classes".into(),
        samples: draws as u64,
        draws: 0,
        seconds: 0.0,
    }
}

/// What `ask` finds by draws of the classes, their labels drawn from p_T and by the noise.
fn by_draws<T>(
    classes: &GaussianClasses,
    spec: &Spec,
    ask: impl FnOnce(&mut Pool<'_>, &Limits) -> Result<T>,
) -> Result<T> {
    spec.check()?;
    let samples = (NUMBERS / classes.classes()).max(LEAST);
    let limits = Limits { tolerance: Some(spec.tolerance), samples: Some(samples), seconds: None };
    let mut source = GaussianDraws::new(classes, spec.seed);
    let pool = Pool::new(&mut source, Prior::new(classes.priors())?, classes.smoothing(), spec.seed)?;
    ask(&mut pool.with_label_noise(classes.label_noise())?, &limits)
}

fn figures(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Standing>,
) -> Result<WorldFigures> {
    usable(classes, tau)?;
    by_draws(classes, spec, |pool, limits| figures_at(pool, tau, false, limits, events))
}

/// dE/dlog τ of the label with its 95 % interval. Where E~ has the form of the classes' E, theirs to a factor; else by the
/// points that E~ needs to meet the tolerance of `spec`: the interval says how open the slope is. Only these points are
/// reported, with the E~ that is known.
///
/// # Errors
/// When τ or the tolerance cannot be used, or the caller stops.
pub fn derivative(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<Figure> {
    if classes.labels_are_classes() {
        return slope::derivative(classes, tau, spec);
    }
    if let Some(affine) = Affine::of(classes) {
        let scaled = Affine { offset: 0.0, ..affine };
        return Ok(scaled.figure(slope::derivative(classes, tau, spec)?));
    }
    overlap::derivative(classes, tau, spec, events)
}

/// Aleatoric uncertainty and mutual information of the label at τ; with T ≠ 1 or under label noise by as many draws as E~
/// needs to meet the tolerance of `spec`.
///
/// # Errors
/// When τ or the tolerance cannot be used, or the caller stops.
pub fn information(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Information>,
) -> Result<Information> {
    if classes.labels_are_classes() {
        return entropies::information(classes, tau, spec, events);
    }
    // With T ≠ 1 the law of the label is not known before its draws.
    let largest = match classes.smoothing() == Smoothing::ONE {
        true => entropies::entropy_of(&label_of(classes, classes.priors())),
        false => (classes.classes() as f64).ln(),
    };
    let before = entropies::unknown(0.0, largest);
    let found = figures(classes, tau, spec, &mut |_: Standing| events.emit(before))?.information;
    events.report(found)?;
    Ok(found)
}

/// The open interval of Bayes errors of the label that some τ > 0 gives; with T ≠ 1 one that holds them all, 0 to 1 − 1/K.
pub fn reachable(classes: &GaussianClasses) -> (f64, f64) {
    if classes.smoothing() != Smoothing::ONE {
        return (0.0, 1.0 - 1.0 / classes.classes() as f64);
    }
    let Some(noise) = classes.label_noise() else { return inverse::reachable(classes) };
    let likeliest = noise.labels(classes.priors()).into_iter().fold(0.0, f64::max);
    (limit(classes).figure.value, 1.0 - likeliest)
}

/// The τ at which the Bayes error of the label is `target`; the tolerance of `spec` is meant for τ.
///
/// # Errors
/// When no τ has this Bayes error (the message gives the reachable interval, or says that the label noise alone makes a
/// larger one), with T ≠ 1 when none is found, when the tolerance cannot be used, or the caller stops.
pub fn tau_of_error(
    classes: &GaussianClasses,
    target: f64,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<TauEstimate> {
    if classes.labels_are_classes() {
        return inverse::tau_of_error(classes, target, spec, events);
    }
    let (low, high) = reachable(classes);
    if target <= low {
        classes.check_limit()?;
    }
    if let Some(noise) = classes.label_noise().filter(|_| target > 0.0 && target <= low * ROUNDED) {
        return Err(below_noise(target, noise, low));
    }
    let affine = Affine::of(classes).filter(|affine| affine.scale > 0.0 && target > low && target < high);
    let Some(affine) = affine else {
        // It also says which errors there are.
        return overlap::tau_of_error(classes, target, spec, events);
    };
    let of_classes = (target - affine.offset) / affine.scale;
    let mut noisy = |clean: Estimate| events.emit(affine.estimate(clean));
    let found = inverse::tau_of_error(classes, of_classes, spec, &mut noisy)?;
    let slope = Affine { offset: 0.0, ..affine }.figure(found.slope);
    Ok(TauEstimate { target, achieved: affine.estimate(found.achieved), slope, ..found })
}

/// The one-vs-rest Bayes error of every label that occurs, in the order of classes: x is drawn under that label with
/// probability ½, otherwise under the others in proportion to their law. Each is reported when known.
///
/// # Errors
/// When τ or the tolerance cannot be used, with one or too many classes, or on a stop.
pub fn one_vs_rest(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<HardnessNews>,
) -> Result<Vec<ClassHardness>> {
    if classes.labels_are_classes() {
        return hardness::one_vs_rest(classes, tau, spec, events);
    }
    usable(classes, tau)?;
    let mut drawing = |standing: Standing| events.emit(HardnessNews::Drawing(standing.progress));
    let found = by_draws(classes, spec, |pool, limits| hardness_at(pool, tau, limits, &mut drawing))?;
    found.one_vs_rest.iter().try_for_each(|one| events.report(HardnessNews::Known(*one)))?;
    Ok(found.one_vs_rest)
}

/// Bayes errors of telling label i from label j alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairErrors {
    /// [K, K], symmetric; 0 on the diagonal, and NaN where neither label occurs.
    pub errors: Vec<f64>,
    /// Their 95 % intervals in the same order, none on the diagonal and where one label does not occur; empty where the
    /// errors are exact.
    pub intervals: Vec<Option<(f64, f64)>>,
}

/// The Bayes error of telling label i from label j alone, their law in proportion. Exact of classes; with T ≠ 1 and of
/// noisy labels from as many draws as [`one_vs_rest`] takes, of the seed of `spec`; the draws are reported.
///
/// # Errors
/// When τ or the tolerance of draws cannot be used, or the caller stops.
pub fn pairwise(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Progress>,
) -> Result<PairErrors> {
    if classes.labels_are_classes() {
        return Ok(PairErrors { errors: hardness::pairwise(classes, tau)?, intervals: Vec::new() });
    }
    usable(classes, tau)?;
    // Whatever T is, the same labels occur.
    let labels = label_of(classes, classes.priors());
    let mut drawing = |standing: Standing| events.emit(standing.progress);
    let found = by_draws(classes, spec, |pool, limits| hardness_at(pool, tau, limits, &mut drawing))?;
    let value = |i: usize, j: usize| match found.pairs[i][j] {
        Some(figure) => figure.value,
        None if i == j || labels[i] + labels[j] > 0.0 => 0.0,
        None => f64::NAN,
    };
    let errors = (0..labels.len()).flat_map(|i| (0..labels.len()).map(move |j| value(i, j))).collect();
    let intervals = found.pairs.iter().flatten().map(|pair| pair.map(|figure| figure.interval)).collect();
    Ok(PairErrors { errors, intervals })
}

/// Ranks the labels at one τ, hardest first; each is reported when known.
///
/// # Errors
/// As [`one_vs_rest`].
pub fn rank_classes(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<HardnessNews>,
) -> Result<ClassRanking> {
    if classes.labels_are_classes() {
        return ranking::rank_classes(classes, tau, spec, events);
    }
    let mut all = one_vs_rest(classes, tau, spec, events)?;
    all.sort_by(|a, b| b.one_vs_rest.value.total_cmp(&a.one_vs_rest.value));
    Ok(ClassRanking { tau: tau.get(), classes: all })
}

#[cfg(test)]
mod stops;
#[cfg(test)]
pub(super) mod tests;
