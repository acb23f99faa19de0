//! The Bayes error by a chosen method, or by the one that suits the problem.

use std::cell::OnceCell;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::classes::{GaussianClasses, Merge, Scene};
use super::estimate::{Estimate, Figure, Method};
use super::hdr::{self, HdrSpec, Outcome};
use super::monte_carlo::{FIRST, MonteCarlo};
use super::pair::{PairSum, Target};
use super::product;
use super::quadrature::Scaled;
use super::refine::{MOST_WORK, Refined, Status, refine};
use super::rqmc::WedgeSum;
use super::{biorthogonal, equidistant, line, memory, plane, sov, tensor, work};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::provenance::Badge;
use crate::units::{Seed, Tau};

/// Largest K at which `auto` takes separation of variables.
pub(super) const SOV_UP_TO: usize = 100;
/// Largest K separation of variables is offered for: its factors grow as K⁴.
const SOV_AT_MOST: usize = 160;
/// Closest tolerance: sums of f64 keep no more than that.
pub(super) const LEAST_TOLERANCE: f64 = 1e-12;

/// K from which a tolerance of 1e-3 or worse is met sooner by pair importance sampling.
const QUICK_PAIR_FROM: usize = 50;
/// Tolerance that one block of points for every pair of classes would overdo, whatever K.
const QUICK_TOLERANCE: f64 = 5e-3;
/// Relative rounding of the certain bounds, and more.
const ROUNDING: f64 = 1e-9;
/// Largest K for tensor quadrature.
pub(super) const TENSOR_UP_TO: usize = 6;
/// How to compute a Bayes error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// The method; by itself where none is given.
    pub method: Option<Method>,
    /// Half width of the 95 % interval over the value that ends the refinement.
    pub tolerance: f64,
    /// Seed of the random points.
    pub seed: Seed,
    /// Settings of Holmes-Diaconis-Ross.
    pub hdr: HdrSpec,
}

impl Default for Spec {
    fn default() -> Self {
        Self { method: None, tolerance: 1e-4, seed: Seed(0), hdr: HdrSpec::default() }
    }
}

impl Spec {
    /// To a relative half width of the 95 % interval of `tolerance`, by default 1e-4, with points of a seed.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn asked(tolerance: Option<f64>, seed: Seed) -> Result<Self> {
        let default = Self::default();
        let spec = Self { tolerance: tolerance.unwrap_or(default.tolerance), seed, ..default };
        spec.check().map(|()| spec)
    }

    /// Checks the tolerance.
    ///
    /// # Errors
    /// When it is not a number, or closer than sums in f64 are.
    pub fn check(&self) -> Result<()> {
        if self.tolerance >= LEAST_TOLERANCE {
            return Ok(());
        }
        let cause = format!("the tolerance must be a number of at least {LEAST_TOLERANCE:e}, not {:e}", self.tolerance);
        Err(Error::input(cause))
    }
}

/// Refuses a temperature at which nothing can be integrated.
pub(super) fn positive(tau: Tau) -> Result<Tau> {
    if tau.get() > 0.0 {
        return Ok(tau);
    }
    Err(Error::input("the base temperature τ must be above 0: at τ = 0 every class is a point"))
}

/// A temperature at which these classes can be integrated: not 0, and none at which rounding hides what matters.
pub(super) fn usable(classes: &GaussianClasses, tau: Tau) -> Result<Tau> {
    classes.check_at(positive(tau)?)?;
    Ok(tau)
}

/// The Bayes error E = 1 − E[max_y p(y|x)] at base temperature τ. Reports every refinement.
///
/// # Errors
/// When τ, the tolerance or the method cannot be used, or the caller stops.
pub fn bayes_error(
    classes: &GaussianClasses,
    tau: Tau,
    spec: &Spec,
    events: &mut dyn Events<Estimate>,
) -> Result<Estimate> {
    spec.check()?;
    let scene = classes.scene(usable(classes, tau)?, Merge::Best);
    let run = Run { scene: &scene, spec, begun: Instant::now(), bounds: OnceCell::new() };
    let estimate = match spec.method {
        None => run.auto(events),
        Some(Method::Closed) => run.closed().map_or_else(|| run.quadrature(), Ok),
        Some(Method::Quadrature) => run.quadrature(),
        Some(_) if scene.count() < 2 => run.closed().map_or_else(|| run.quadrature(), Ok),
        Some(Method::Sov) => run.sov("asked for", events),
        Some(Method::Pair) => run.pair("asked for", events),
        Some(Method::Mc) => run.monte_carlo(events),
        Some(Method::Hdr) => run.hdr(events),
        Some(Method::Sampling) => Err(Error::input("sampling needs a world, not its Gaussian classes")),
    }?;
    events.report(estimate.clone())?;
    Ok(estimate)
}

/// The limit τ → 0: every class is a point, and only coincident classes are taken for each other.
pub fn limit_at_zero(classes: &GaussianClasses) -> Estimate {
    let hidden = classes.scene(Tau::ONE, Merge::Best).hidden;
    Estimate {
        figure: Figure::new(hidden, 0.0, hidden),
        log_value: hidden.ln(),
        bounds: (hidden, hidden),
        badge: Badge::Exact,
        method: Method::Closed,
        why: "limit τ → 0: every class is a point, and only classes with one mean are taken for each other".into(),
        samples: 0,
        draws: 0,
        seconds: 0.0,
    }
}

/// One computation.
struct Run<'a> {
    scene: &'a Scene,
    spec: &'a Spec,
    begun: Instant,
    /// [`bounds`], once computed.
    bounds: OnceCell<(f64, f64)>,
}

impl Run<'_> {
    fn auto(&self, events: &mut dyn Events<Estimate>) -> Result<Estimate> {
        if let Some(exact) = self.closed() {
            return Ok(exact);
        }
        let count = self.scene.count();
        if self.scene.rank == 2 || count <= TENSOR_UP_TO {
            let estimate = self.quadrature()?;
            if estimate.figure.relative_half_width() <= self.spec.tolerance {
                return Ok(estimate);
            }
        }
        let quick = self.spec.tolerance >= if count >= QUICK_PAIR_FROM { 1e-3 } else { QUICK_TOLERANCE };
        match count {
            _ if quick => self.pair("one sample serves all classes, and the tolerance is loose", events),
            _ if count <= SOV_UP_TO => self.sov("positive terms: the same relative accuracy at every error", events),
            _ => self.pair("one sample serves all classes, however many", events),
        }
    }

    /// A closed form, if the problem has one.
    fn closed(&self) -> Option<Estimate> {
        let (scene, exact) = (self.scene, Badge::Exact);
        if scene.count() < 2 {
            return Some(self.finish(Method::Closed, exact, Scaled::ZERO, 0, "one distinct class".into()));
        }
        if scene.rank <= 1 {
            let why = format!("{} classes on a line: upper envelope in closed form", scene.count());
            return Some(self.finish(Method::Closed, exact, line::bayes_error(scene), 0, why));
        }
        if let Some(sum) = equidistant::bayes_error(scene) {
            let why = format!("{} equidistant classes: one-dimensional integral", scene.count());
            return Some(self.finish(Method::Closed, exact, sum, 0, why));
        }
        if let Some(sum) = biorthogonal::bayes_error(scene) {
            let why = format!("{} antipodal classes on {} axes: one-dimensional integral", scene.count(), scene.rank);
            return Some(self.finish(Method::Closed, exact, sum, 0, why));
        }
        let product = product::factors(scene)?;
        let sum = product::bayes_error(&product)?;
        let why = format!("product of {} independent problems, each in closed form or in a plane", product.count());
        let badge = if product.is_exact() { exact } else { Badge::Bounded };
        Some(self.finish(Method::Closed, badge, sum, 0, why))
    }

    fn quadrature(&self) -> Result<Estimate> {
        let scene = self.scene;
        if scene.rank == 2 {
            let why = format!("{} classes in a plane: piecewise Gauss-Legendre", scene.count());
            return Ok(self.finish(Method::Quadrature, Badge::Bounded, plane::bayes_error(scene), 0, why));
        }
        if scene.count() > TENSOR_UP_TO {
            return Err(Error::input(format!(
                "no closed form or quadrature for {} classes in {} dimensions; use auto, sov or pair",
                scene.count(),
                scene.rank
            )));
        }
        let (sum, nodes, samples) = tensor::integrate(&sov::error_terms(scene), self.spec.tolerance);
        let why = format!("{} classes: first violations by tensor Gauss-Legendre, {nodes} nodes", scene.count());
        Ok(self.finish(Method::Quadrature, Badge::Bounded, sum, samples, why))
    }

    fn sov(&self, reason: &str, events: &mut dyn Events<Estimate>) -> Result<Estimate> {
        let count = self.scene.count();
        if count > SOV_AT_MOST {
            return Err(Error::input(format!(
                "separation of variables of {count} classes would take too long (at most {SOV_AT_MOST}); use pair"
            )));
        }
        memory::for_factors(count)?;
        let mut sum = WedgeSum::new(sov::error_terms(self.scene), self.spec.seed);
        let why = |sum: &WedgeSum, end: &str| {
            format!("{count} classes in {} dimensions, {} terms: {reason}{end}", self.scene.rank, sum.terms())
        };
        refine(&mut sum, self.spec.tolerance, |sum, now, met| {
            let why = why(sum, met.ending());
            let mut estimate = self.finish(Method::Sov, Badge::Estimated, now, sum.samples(), why);
            estimate.draws = sum.work() as u64;
            if met == Status::NotYet {
                events.report(estimate.clone())?
            }
            Ok(estimate)
        })
    }

    fn pair(&self, reason: &str, events: &mut dyn Events<Estimate>) -> Result<Estimate> {
        let mut sum = PairSum::new(self.scene, Target::Error, self.spec.seed)?;
        self.bounds.get_or_init(|| bounds(self.scene, || sum.log_union()));
        let why = format!("{} classes in {} dimensions: {reason}", self.scene.count(), self.scene.rank);
        refine(&mut sum, self.spec.tolerance, |sum, now, met| {
            let why = format!("{why}{}", met.ending());
            let estimate = self.finish(Method::Pair, Badge::Estimated, now, sum.samples(), why);
            if met == Status::NotYet {
                events.report(estimate.clone())?
            }
            Ok(estimate)
        })
    }

    fn monte_carlo(&self, events: &mut dyn Events<Estimate>) -> Result<Estimate> {
        work::for_samples(self.scene.count(), self.scene.rank)?;
        let mut sum = MonteCarlo::new(self.scene, self.spec.seed);
        let cost = (self.scene.count().pow(2) * self.scene.rank.max(4)) as f64;
        let mut level = FIRST.ilog2();
        loop {
            sum.refine(level);
            let met = sum.sum().half_width <= self.spec.tolerance * sum.sum().value;
            let last = met || 2f64.powi(level as i32 + 1) * cost > MOST_WORK;
            let why = format!(
                "{} samples of each of {} classes{}",
                1u64 << level,
                self.scene.count(),
                if last && !met { Status::OutOfWork.ending() } else { "" }
            );
            let estimate = self.finish(Method::Mc, Badge::Estimated, sum.sum(), sum.samples(), why);
            if last {
                return Ok(estimate);
            }
            events.report(estimate)?;
            level += 1;
        }
    }

    fn hdr(&self, events: &mut dyn Events<Estimate>) -> Result<Estimate> {
        self.spec.hdr.check()?;
        work::for_chains(self.scene.count(), self.scene.rank, &self.spec.hdr)?;
        let tell = |outcome: &Outcome| {
            let why = format!(
                "{} classes: {} repetitions of nested LIN-ESS chains, up to {} nestings",
                self.scene.count(),
                outcome.replicates.len(),
                outcome.nestings.iter().max().unwrap_or(&1)
            );
            self.finish(Method::Hdr, Badge::Estimated, outcome.sum(), outcome.samples, why)
        };
        let report = |outcome: &Outcome| events.report(tell(outcome));
        Ok(tell(&hdr::estimate(self.scene, &self.spec.hdr, self.spec.seed, report)?))
    }

    /// Adds the part hidden by merging, holds an estimate against the certain bounds, fills in the rest.
    fn finish(&self, method: Method, badge: Badge, sum: Scaled, samples: u64, mut why: String) -> Estimate {
        let scene = self.scene;
        let scale = sum.log_scale.exp();
        let blurred = if sum.value > 0.0 { scene.blurred(sum.log_scale + sum.value.ln()) } else { 0.0 };
        let open = sum.half_width + sum.value * blurred;
        let (value, half_width) = (scene.hidden + scale * sum.value, scale * open);
        let mut log_value = if scene.hidden > 0.0 { value.ln() } else { sum.log_scale + sum.value.ln() };
        let bounds = *self.bounds.get_or_init(|| bounds(scene, || sov::log_union(scene)));
        let mut figure = Figure::new(value, half_width, bounds.1);
        if badge == Badge::Estimated {
            let (held, note) = hold(value, half_width, bounds, self.spec.method.is_some());
            if held.value != value && held.value > 0.0 {
                log_value = held.value.ln();
            }
            figure = held;
            why += &note.unwrap_or_default();
        } else {
            // Not what rounding alone parts from the bound, which is as uncertain.
            figure.interval.0 = figure.interval.0.max((bounds.0 * (1.0 - ROUNDING)).min(figure.value));
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        Estimate { figure, log_value, bounds, badge, method, why, samples, draws: 0, seconds }
    }
}

/// An estimate and its interval beside the certain bounds of E, and what must be said of them. The interval is cut to the bounds.
/// An estimate beyond them is moved to the nearer one; where its method was `asked` for, perhaps to hold it against others, it
/// stays what the method gives, with the method's own interval.
pub(super) fn hold(value: f64, half_width: f64, (low, high): (f64, f64), asked: bool) -> (Figure, Option<String>) {
    let own = Figure::new(value, half_width, f64::INFINITY);
    let beyond = value < low * (1.0 - ROUNDING) || value > high * (1.0 + ROUNDING);
    if beyond && asked {
        let note = "; the estimate and the interval are those of this method alone: the estimate lies outside the certain bounds";
        return (own, Some(note.into()));
    }
    let note =
        beyond.then(|| format!("; its estimate {value:.6e} lies outside the certain bounds and was moved to them"));
    let held = match beyond {
        true if value < low => low,
        true => high,
        false => value,
    };
    let interval = if own.interval.1 < low || own.interval.0 > high {
        (low, high)
    } else {
        (own.interval.0.max(low.min(held)), own.interval.1.min(high.max(held)))
    };
    (Figure { value: held, interval, ..own }, note)
}

/// U/(K − 1) ≤ E ≤ min(U, 1 − max π): certain, and free.
pub(super) fn bounds(scene: &Scene, log_union: impl FnOnce() -> f64) -> (f64, f64) {
    if scene.count() < 2 {
        return (scene.hidden, scene.hidden);
    }
    let union = log_union().exp();
    let guess = scene.weights.iter().sum::<f64>() - scene.weights.iter().fold(0.0, |a: f64, &b| a.max(b));
    let (low, high) = (union / (scene.count() - 1) as f64, union.min(guess));
    (scene.hidden + low, scene.hidden + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::silent;

    #[test]
    fn an_exact_error_is_as_certain_where_no_other_class_wins_any_more() {
        // At τ = 1e8 the face between the classes is 1e8 standard deviations away: E is what guessing leaves.
        let classes = GaussianClasses::new(vec![vec![0.0], vec![2.0], vec![4.0]], vec![0.5, 0.25, 0.25]).unwrap();
        for tau in [1e3, 1e8, 1e20] {
            let found = bayes_error(&classes, Tau::new(tau).unwrap(), &Spec::default(), &mut silent()).unwrap();
            let Figure { value, std_error, interval: (low, high) } = found.figure;
            let told = format!("τ = {tau}: {found:?}");
            assert!(found.badge == Badge::Exact && (value - 0.5).abs() < 1e-15 && std_error < 1e-14, "{told}");
            assert!(0.5 - low < 1e-14 && high <= 0.5 + 1e-15, "{told}");
        }
    }

    #[test]
    fn the_rounding_of_a_far_mean_is_in_the_interval() {
        let means = vec![vec![0.3, 0.7], vec![0.9, 1.5], vec![0.3 + 0.8e8, 0.7 + 0.1e8]];
        let classes = GaussianClasses::new(means, vec![0.25, 0.25, 0.5]).unwrap();
        let found = bayes_error(&classes, Tau::ONE, &Spec::default(), &mut silent()).unwrap().figure;
        // Of two classes 1 apart.
        let truth = 0.5 * crate::bayes::normal::tail(0.5);
        let (low, high) = found.interval;
        assert!(low <= truth && truth <= high && found.std_error < 1e-8, "{found:?}, not {truth}");
    }

    #[test]
    fn an_estimate_beyond_the_certain_bounds_is_moved_or_said_to_be_the_methods_own() {
        let bounds = (0.2, 0.3);
        let held = |value: f64, half: f64, asked: bool| {
            let (Figure { value, interval, .. }, note) = hold(value, half, bounds, asked);
            (value, interval, note.is_some())
        };
        assert_eq!(held(0.25, 0.125, true), (0.25, bounds, false));
        assert_eq!(held(0.25, 0.03125, false), (0.25, (0.21875, 0.28125), false));
        assert_eq!(held(0.3125, 0.0625, false), (0.3, (0.25, 0.3), true));
        assert_eq!(held(0.125, 0.125, false), (0.2, (0.2, 0.25), true));
        assert_eq!(held(0.5, 0.125, false), (0.3, bounds, true), "its interval holds nothing that can be");
        assert_eq!(held(0.5, 0.125, true), (0.5, (0.375, 0.625), true));
        // What only rounding parts from a bound needs no words.
        assert!(!held(0.3 * (1.0 + 1e-12), 0.0625, true).2);
    }
}
