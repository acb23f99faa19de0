//! `bayescope bayes-error|tau|hardness|check` of Gaussian classes; of worlds that are sampled: `sampling`.

use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;

use super::args::{BayesErrorArgs, CheckArgs, HardnessArgs, ProblemArgs, SamplingArgs, TauArgs};
use super::open::{is_problem, open_or_problem};
use super::output::Output;
use super::progress::{Bar, Refining};
use super::sampling;
use super::told::{interval, tell_hardness};
use crate::bayes::{
    Claims, CurveNews, Estimate, Figure, GaussianClasses, GaussianPoint, HardnessReport, Information, Method, Problem,
    RANKED_AT, Spec, bayes_error, class_hardness, curve, derivative, information, tau_of_error,
};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::experiment::papers;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::Prior;
use crate::units::{Seed, Smoothing, Tau};

/// A class problem and where it comes from.
struct Given {
    classes: GaussianClasses,
    names: Vec<String>,
    /// SHA-256 of an oracle's weights.
    world: Option<String>,
}

/// Reads PROBLEM.json, or takes the base distribution of an oracle, with the law of the labels that was asked for.
fn given(args: &ProblemArgs, sampling: &SamplingArgs) -> Result<Given> {
    let mut given = if is_problem(&args.problem) {
        let problem = Problem::read(Path::new(&args.problem))?;
        Given { classes: problem.classes()?, names: problem.class_names(), world: None }
    } else {
        let opened = open_or_problem(&args.problem)?;
        let names = opened.world.class_names().to_vec();
        // Others are sampled, and do not come here.
        let no_base = || Error::input(format!("{}: its map depends on the class", args.problem));
        let base = opened.world.flow().shared_base().ok_or_else(no_base)?;
        let classes = GaussianClasses::of_base(base, &Prior::uniform(names.len()))?;
        Given { classes, names, world: Some(opened.info.weights_sha256) }
    };
    if let Some(prior) = args.prior(given.names.len())? {
        given.classes = given.classes.with_priors(prior.probabilities())?;
    }
    let noisy = given.classes.with_label_noise(args.label_noise.as_ref())?;
    given.classes = noisy.with_smoothing(Smoothing::new(sampling.smoothing)?);
    Ok(given)
}

impl ProblemArgs {
    /// The prior that was asked for.
    pub(super) fn prior(&self, classes: usize) -> Result<Option<Prior>> {
        match &self.prior {
            Some(weights) if weights.len() != classes => {
                let entries = weights.len();
                Err(Error::input(format!("--prior has {entries} entries, this problem {classes} classes")))
            }
            weights => weights.as_deref().map(Prior::new).transpose(),
        }
    }

    fn spec(&self) -> Result<Spec> {
        Spec::asked(self.tolerance, Seed(self.seed))
    }
}

/// What every report says about the problem.
#[derive(Serialize)]
struct About<'a> {
    classes: usize,
    dim: usize,
    rank: usize,
    priors: &'a [f64],
    /// Posterior smoothing T, where it is not 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothing: Option<Smoothing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_noise: Option<&'a LabelNoise>,
    class_names: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    weights_sha256: Option<&'a str>,
    seed: Seed,
    tolerance: f64,
}

impl<'a> About<'a> {
    fn new(given: &'a Given, spec: &Spec) -> Self {
        Self {
            classes: given.classes.classes(),
            dim: given.classes.dims(),
            rank: given.classes.rank(),
            priors: given.classes.priors(),
            smoothing: Some(given.classes.smoothing()).filter(|smoothing| *smoothing != Smoothing::ONE),
            label_noise: given.classes.label_noise(),
            class_names: &given.names,
            weights_sha256: given.world.as_deref(),
            seed: spec.seed,
            tolerance: spec.tolerance,
        }
    }
}

#[derive(Serialize)]
struct ErrorReport<'a> {
    #[serde(flatten)]
    estimate: Estimate,
    tau: f64,
    #[serde(flatten)]
    about: About<'a>,
    /// dE/dlog τ.
    #[serde(skip_serializing_if = "Option::is_none")]
    slope: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    information: Option<Information>,
}

/// `bayes-error`.
pub fn error(args: &BayesErrorArgs) -> Result<()> {
    if sampling::is_needed(&args.problem, &args.sampling)? {
        only_sampled(args)?;
        return sampling::error(args);
    }
    let given = given(&args.problem, &args.sampling)?;
    let spec = Spec { method: args.method.method(), ..args.problem.spec()? };
    if let Some(taus) = &args.curve {
        return tell_curve(&given, &taus.0, &spec, args.problem.output);
    }
    let tau = Tau::new(args.tau)?;
    let estimate = bayes_error(&given.classes, tau, &spec, &mut Refining::new("bayes-error"))?;
    let slope = || derivative(&given.classes, tau, &spec, &mut Refining::new("slope"));
    let slope = args.information.then(slope).transpose()?;
    let inform = || information(&given.classes, tau, &spec, &mut Refining::new("information"));
    let information = args.information.then(inform).transpose()?;
    let report = ErrorReport { estimate, tau: tau.get(), about: About::new(&given, &spec), slope, information };
    args.problem.output.print(&report, |_| {
        tell_estimate(&report.estimate, &given.classes);
        if let Some(slope) = report.slope {
            println!("dE/dlog τ:    {}", interval(&slope));
        }
        if let Some(i) = report.information {
            println!("A = H(Y|X):   {} nats", interval(&i.aleatoric_nats));
            println!("I(X;Y):       {} bits", interval(&i.mutual_information_bits));
            println!("I(X;Y)/H(Y):  {}", interval(&i.normalised));
        }
        Ok(())
    })
}

/// Refuses a method of Gaussian classes for a world that is sampled.
fn only_sampled(args: &BayesErrorArgs) -> Result<()> {
    let Some(method) = args.method.method() else { return Ok(()) };
    let (world, name) = (&args.problem.problem, method.name());
    Err(Error::input(format!(
        "{world}: its map depends on the class, so that its Bayes error comes from samples, and no --method ({name}) of Gaussian \
         classes applies: leave --method out"
    )))
}

fn tell_estimate(estimate: &Estimate, classes: &GaussianClasses) {
    let (figure, (low, high)) = (&estimate.figure, estimate.bounds);
    println!("Bayes error:  {:.9e} ({:.6} %)", figure.value, 100.0 * figure.value);
    println!("95 %:         {:.9e} to {:.9e}", figure.interval.0, figure.interval.1);
    let by = if classes.labels_are_classes() { "union bound" } else { "of such labels at any τ" };
    println!("certain:      {low:.4e} to {high:.4e} ({by})");
    println!("method:       {}: {}", estimate.method.name(), estimate.why);
    println!("cost:         {} points, {:.4} s", estimate.samples, estimate.seconds);
}

/// `value` is τ, as everywhere the number asked for.
#[derive(Serialize)]
struct TauReport<'a> {
    #[serde(flatten)]
    figure: Figure,
    tau: f64,
    target: f64,
    achieved: &'a Estimate,
    slope: Figure,
    method: Method,
    samples: u64,
    evaluations: usize,
    seconds: f64,
    #[serde(flatten)]
    about: About<'a>,
}

/// `tau`.
pub fn tau(args: &TauArgs) -> Result<()> {
    if sampling::is_needed(&args.problem, &args.sampling)? {
        return sampling::tau(args);
    }
    let given = given(&args.problem, &args.sampling)?;
    let spec = args.problem.spec()?;
    let found = tau_of_error(&given.classes, args.target, &spec, &mut Refining::new("tau"))?;
    args.problem.output.print(
        &TauReport {
            figure: found.tau,
            tau: found.tau.value,
            target: found.target,
            achieved: &found.achieved,
            slope: found.slope,
            method: found.achieved.method,
            samples: found.achieved.samples,
            evaluations: found.evaluations,
            seconds: found.seconds,
            about: About::new(&given, &spec),
        },
        |_| {
            println!("τ:            {}", interval(&found.tau));
            tell_estimate(&found.achieved, &given.classes);
            println!("dE/dlog τ:    {}", interval(&found.slope));
            println!("search:       {} Bayes errors, {:.3} s", found.evaluations, found.seconds);
            Ok(())
        },
    )
}

#[derive(Serialize)]
struct HardnessTold<'a> {
    #[serde(flatten)]
    hardness: HardnessReport,
    #[serde(flatten)]
    about: About<'a>,
}

/// `hardness`.
pub fn hardness(args: &HardnessArgs) -> Result<()> {
    if sampling::is_needed(&args.problem, &args.sampling)? {
        return sampling::hardness(args);
    }
    let (given, spec, tau) = (given(&args.problem, &args.sampling)?, args.problem.spec()?, Tau::new(args.tau)?);
    let mut bar = Bar::new("hardness").of(given.classes.classes() * (1 + RANKED_AT.len()));
    let hardness = class_hardness(&given.classes, tau, &spec, &mut bar)?;
    drop(bar);
    let report = HardnessTold { hardness, about: About::new(&given, &spec) };
    args.problem.output.print(&report, |report| {
        tell_hardness(&report.hardness, &given.names);
        Ok(())
    })
}

#[derive(Serialize)]
struct CurveReport<'a> {
    curve: Vec<GaussianPoint>,
    #[serde(flatten)]
    about: About<'a>,
}

/// Says which part of a curve is computed, and how close it is by now.
struct Curving<'a> {
    taus: &'a [Tau],
    bar: Refining,
}

impl Events<CurveNews> for Curving<'_> {
    fn emit(&mut self, news: CurveNews) -> ControlFlow<()> {
        match news {
            CurveNews::Begun { at, part } => {
                let (tau, place, of) = (self.taus[at].get(), at + 1, self.taus.len());
                self.bar.begin(format!("τ = {tau} ({place} of {of}), {}", part.label()));
                ControlFlow::Continue(())
            }
            CurveNews::Estimate(estimate) => self.bar.emit(estimate),
            CurveNews::Information(information) => self.bar.emit(information),
        }
    }
}

/// `bayes-error --curve`.
fn tell_curve(given: &Given, taus: &[Tau], spec: &Spec, output: Output) -> Result<()> {
    let points = curve(&given.classes, taus, spec, &mut Curving { taus, bar: Refining::new("curve") })?;
    output.print(&CurveReport { curve: points, about: About::new(given, spec) }, |report| {
        for GaussianPoint { tau, bayes_error, slope, .. } in &report.curve {
            println!("τ = {:<8.4} {}   dE/dlog τ {:.6}", tau.get(), interval(bayes_error), slope.value);
        }
        Ok(())
    })
}

#[derive(Serialize)]
struct CheckReport {
    possible: bool,
    contradictions: Vec<String>,
}

/// A published number and half a unit of its last digit.
fn published(name: &str, text: &Option<String>) -> Result<Option<(f64, f64)>> {
    let Some(text) = text else { return Ok(None) };
    let value: f64 = text.parse().map_err(|_| Error::input(format!("{name}: {text:?} is not a number")))?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let digits = mantissa.split_once('.').map_or(0, |(_, after)| after.len());
    let exponent: i32 = text.split(['e', 'E']).nth(1).and_then(|e| e.parse().ok()).unwrap_or(0);
    Ok(Some((value, 0.5 * 10f64.powi(exponent - digits as i32))))
}

/// The same of a fraction, which may have been published in percents.
fn published_fraction(name: &str, text: &Option<String>) -> Result<Option<(f64, f64)>> {
    let Some(percents) = text.as_deref().and_then(|text| text.trim().strip_suffix('%')) else {
        return published(name, text);
    };
    let number = published(name, &Some(percents.trim().to_owned()))?;
    Ok(number.map(|(value, half_unit)| (value / 100.0, half_unit / 100.0)))
}

/// `check`. Figures that cannot all be true are an error, for scripts; those of the papers are what was asked for.
pub fn check(args: &CheckArgs) -> Result<()> {
    let contradictions = if args.papers { papers::contradictions()? } else { claimed(args)? };
    let report = CheckReport { possible: contradictions.is_empty(), contradictions };
    args.output.print(&report, |report| {
        if report.possible {
            println!("possible: the figures contradict neither each other nor Fano's and Hellman and Raviv's bounds");
        }
        for contradiction in &report.contradictions {
            println!("impossible: {contradiction}");
        }
        Ok(())
    })?;
    match report.possible || args.papers {
        true => Ok(()),
        false => Err(Error::input("these figures cannot all be true")),
    }
}

/// What contradicts itself in the figures given.
fn claimed(args: &CheckArgs) -> Result<Vec<String>> {
    let prior = match (&args.prior, args.classes) {
        (Some(weights), _) => Prior::new(weights)?,
        (None, Some(classes)) if classes > 0 => Prior::uniform(classes),
        _ => return Err(Error::input("--classes must be at least 1")),
    };
    let claims = Claims {
        priors: prior.probabilities().to_vec(),
        aleatoric_nats: published("--aleatoric", &args.aleatoric)?,
        mutual_information_bits: published("--mutual-information", &args.mutual_information)?,
        bayes_error: published_fraction("--bayes-error", &args.bayes_error)?,
    };
    claims.contradictions()
}
