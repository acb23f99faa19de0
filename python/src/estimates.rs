//! Bayes errors, the τ of one, their curve over τ and class hardness, as the commands find them.

use bayescope::bayes::sampling::{
    Cache, Limits, Pool, WorldDraws, WorldFigures, curve as curve_by_sampling, figures_at, tau_by_sampling,
};
use bayescope::bayes::{
    Estimate, Figure, GaussianClasses, Information, Method, Spec, TauEstimate, bayes_error, class_hardness,
    class_hardness_by_sampling, curve, derivative, information, tau_of_error,
};
use bayescope::error::{Error, Result};
use bayescope::flow::Precision;
use bayescope::oracle::world::{Settings, World};
use bayescope::units::{Seed, Tau};
use pyo3::prelude::*;
use serde::Serialize;

use crate::engine::{Open, Stop};
use crate::json;

/// How far an estimate goes, as the options of the commands.
#[derive(Clone, Copy)]
pub struct Asked {
    /// Half width of the 95 % interval over the value.
    pub tolerance: Option<f64>,
    /// Of the draws.
    pub seed: Seed,
    /// Images.
    pub samples: Option<usize>,
    /// Seconds.
    pub budget: Option<f64>,
    /// Whether a limit of time is left out where nothing else ends the draws, so that the same is found again.
    pub repeatable: bool,
}

/// The arguments that say how far an estimate goes, for all that estimate: [`Asked`] for Python.
#[pyclass(frozen, module = "bayescope._engine")]
pub struct EstimateLimits(pub Asked);

#[pymethods]
impl EstimateLimits {
    #[new]
    #[pyo3(signature = (tolerance=None, seed=0, samples=None, budget=None, repeatable=false))]
    fn new(tolerance: Option<f64>, seed: u64, samples: Option<usize>, budget: Option<f64>, repeatable: bool) -> Self {
        Self(Asked { tolerance, seed: Seed(seed), samples, budget, repeatable })
    }
}

/// As `bayescope bayes-error --information --json`.
#[derive(Serialize)]
struct Informed {
    #[serde(flatten)]
    estimate: Estimate,
    /// dE/dlog τ.
    slope: Option<Figure>,
    information: Information,
}

impl Asked {
    fn spec(&self) -> Result<Spec> {
        Spec::asked(self.tolerance, self.seed)
    }

    fn limits(&self) -> Limits {
        Limits::asked(self.tolerance, self.samples, self.budget, self.repeatable)
    }

    /// The Gaussian classes of a world that is not to be sampled: by the rule of `bayescope bayes-error`.
    fn classes(&self, world: &World, settings: &Settings) -> Result<Option<GaussianClasses>> {
        let sampled = self.samples.is_some() || self.budget.is_some();
        let base = world.flow().shared_base().filter(|_| !sampled);
        base.map(|base| GaussianClasses::of_world(base, settings)).transpose()
    }

    /// What `ask` finds in a pool of draws, remembered as the commands do.
    fn sampled<T>(
        &self,
        open: &Open,
        settings: &Settings,
        ask: impl FnOnce(&mut Pool<'_>, &Limits) -> Result<T>,
    ) -> Result<T> {
        let (prior, world_id) = (&settings.prior, open.info.world_id());
        let draws = WorldDraws::new(&open.world, self.seed);
        // Draws in 64 bits are no draws of those in 32.
        let cache = if open.precision == Precision::F32 { Cache::of_user() } else { Cache::none() };
        let mut source = draws.remembered(&cache, &world_id, prior, &open.device);
        let pool = Pool::new(&mut source, prior.clone(), settings.smoothing, self.seed)?;
        let mut pool = pool.with_label_noise(settings.label_noise.as_ref())?;
        ask(&mut pool, &self.limits())
    }

    /// The Bayes error at these knobs; with `informed` also its slope, A and I(X;Y). As JSON.
    ///
    /// # Errors
    /// When a number cannot be used, the device fails, or nobody waits any more.
    pub fn error(&self, open: &Open, stop: &Stop, settings: &Settings, informed: bool) -> Result<String> {
        let tau = settings.tau;
        let Some(classes) = self.classes(&open.world, settings)? else {
            return self.sampled(open, settings, |pool, limits| {
                let found = figures_at(pool, tau, informed, limits, &mut stop.sink())?;
                let WorldFigures { estimate, slope, information, .. } = found;
                if informed { json(&Informed { estimate, slope, information }) } else { json(&estimate) }
            });
        };
        let spec = self.spec()?;
        let estimate = bayes_error(&classes, tau, &spec, &mut stop.sink())?;
        if !informed {
            return json(&estimate);
        }
        let slope = Some(derivative(&classes, tau, &spec, &mut stop.sink())?);
        let information = information(&classes, tau, &spec, &mut stop.sink())?;
        json(&Informed { estimate, slope, information })
    }

    /// The τ of a Bayes error under prior, T and label noise of these knobs, as JSON.
    ///
    /// # Errors
    /// As [`Self::error`]; when no τ has this error.
    pub fn tau(&self, open: &Open, stop: &Stop, settings: &Settings, target: f64) -> Result<String> {
        let found: TauEstimate = match self.classes(&open.world, settings)? {
            Some(classes) => tau_of_error(&classes, target, &self.spec()?, &mut stop.sink())?,
            None => self.sampled(open, settings, |pool, limits| {
                Ok(tau_by_sampling(pool, target, None, limits, &mut stop.sink())?.found)
            })?,
        };
        json(&serde_json::json!({
            "value": found.tau.value,
            "interval": found.tau.interval,
            "target": found.target,
            "achieved": found.achieved,
            "slope": found.slope,
            "evaluations": found.evaluations,
            "seconds": found.seconds,
        }))
    }

    /// Class hardness at these knobs, and the order of the classes over τ. As JSON.
    ///
    /// # Errors
    /// As [`Self::error`]; when fewer than two classes occur.
    pub fn hardness(&self, open: &Open, stop: &Stop, settings: &Settings) -> Result<String> {
        let tau = settings.tau;
        match self.classes(&open.world, settings)? {
            Some(classes) => json(&class_hardness(&classes, tau, &self.spec()?, &mut stop.sink())?),
            None => self.sampled(open, settings, |pool, limits| {
                json(&class_hardness_by_sampling(pool, tau, limits, &mut stop.sink())?)
            }),
        }
    }

    /// The Bayes error at each τ under prior, T and label noise of these knobs, as JSON.
    ///
    /// # Errors
    /// As [`Self::error`]; when the τ do not rise.
    pub fn curve(&self, open: &Open, stop: &Stop, settings: &Settings, taus: &[f64]) -> Result<String> {
        let taus = taus.iter().map(|&tau| Tau::new(tau)).collect::<Result<Vec<_>>>()?;
        if taus.is_empty() || taus.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::input("taus: one τ at least is needed, each larger than the one before"));
        }
        match self.classes(&open.world, settings)? {
            Some(classes) => {
                let points = curve(&classes, &taus, &self.spec()?, &mut stop.sink())?;
                json(&serde_json::json!({ "curve": points }))
            }
            None => self.sampled(open, settings, |pool, limits| {
                let (points, ended) = curve_by_sampling(pool, &taus, limits, &mut stop.sink())?;
                json(&serde_json::json!({ "curve": points, "method": Method::Sampling, "ended": ended }))
            }),
        }
    }
}
