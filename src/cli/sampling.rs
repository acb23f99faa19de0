//! `bayescope bayes-error|tau|hardness` of worlds that are sampled: their map depends on the class,
//! or it was asked for.

use serde::Serialize;

use super::args::{BayesErrorArgs, Compute, HardnessArgs, PrecisionArg, ProblemArgs, SamplingArgs, TauArgs};
use super::open::{Opened, is_problem, open_or_problem, reproducible, with_oracle};
use super::progress::Bar;
use super::told::{interval, tell_hardness};
use crate::bayes::sampling::{Cache, CurvePoint, Ended, Limits, Pool, WorldDraws, curve, figures_at, tau_by_sampling};
use crate::bayes::{Estimate, Figure, HardnessDraws, HardnessReport, Information, Method, class_hardness_by_sampling};
use crate::error::{Error, Result};
use crate::oracle::folder::glance;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::Prior;
use crate::units::{Seed, Smoothing, Tau};

/// Whether a world must be sampled, or was asked to be. A problem has its figures at every T without that.
///
/// # Errors
/// When a problem file was asked to be sampled, or the oracle cannot be read.
pub fn is_needed(problem: &ProblemArgs, sampling: &SamplingArgs) -> Result<bool> {
    let name = &problem.problem;
    if is_problem(name) {
        return match sampling.draws_images() {
            true => Err(Error::input(format!(
                "{name}: --samples, --budget and --keep draw images of an oracle; for a problem leave them out, or choose bayes-error \
                 --method mc"
            ))),
            false => Ok(false),
        };
    }
    if sampling.draws_images() {
        return Ok(true);
    }
    if let Some(info) = glance(name) {
        return Ok(!info.architecture.has_shared_map());
    }
    Ok(open_or_problem(name)?.world.flow().shared_base().is_none())
}

/// The user's cache of draws; none where nothing but the arguments may count.
pub fn cache() -> Cache {
    if reproducible() { Cache::none() } else { Cache::of_user() }
}

/// What every report says about the world.
#[derive(Serialize)]
struct About {
    classes: usize,
    dim: usize,
    priors: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_noise: Option<LabelNoise>,
    class_names: Vec<String>,
    weights_sha256: String,
    smoothing: f64,
    seed: Seed,
    #[serde(flatten)]
    limits: LimitsTold,
}

/// The limits as reports have them.
#[derive(Serialize)]
struct LimitsTold {
    tolerance: Option<f64>,
    budget: Option<f64>,
}

/// What `ask` finds in a world, by draws of it.
fn sample<T>(
    (problem, sampling): (&ProblemArgs, &SamplingArgs),
    title: &str,
    mut ask: impl FnMut(&mut Pool<'_>, &Limits, &mut Bar) -> Result<T>,
) -> Result<(T, About)> {
    let limits = sampling.limits(problem.tolerance, reproducible());
    let smoothing = Smoothing::new(sampling.smoothing)?;
    let compute = Compute { device: sampling.device.clone(), precision: PrecisionArg::F32 };
    with_oracle(&problem.problem, &compute, |opened, _| {
        let Opened { world, info, device, .. } = opened;
        let classes = world.class_names().len();
        let prior = problem.prior(classes)?.unwrap_or_else(|| Prior::uniform(classes));
        let seed = Seed(problem.seed);
        let mut source = WorldDraws::new(world, seed);
        source = match &sampling.keep {
            Some(folder) => source.kept_in(folder, &info.world_id(), &prior, device)?,
            None => source.remembered(&cache(), &info.world_id(), &prior, device),
        };
        let pool = Pool::new(&mut source, prior.clone(), smoothing, seed)?;
        let mut pool = pool.with_label_noise(problem.label_noise.as_ref())?;
        let found = ask(&mut pool, &limits, &mut Bar::new(title))?;
        let about = About {
            classes,
            dim: world.shape().dims(),
            priors: prior.probabilities().to_vec(),
            label_noise: problem.label_noise.clone(),
            class_names: world.class_names().to_vec(),
            weights_sha256: info.weights_sha256.clone(),
            smoothing: smoothing.get(),
            seed,
            limits: LimitsTold { tolerance: limits.tolerance, budget: limits.seconds },
        };
        Ok((found, about))
    })
}

#[derive(Serialize)]
struct ErrorReport {
    #[serde(flatten)]
    estimate: Estimate,
    tau: f64,
    #[serde(flatten)]
    about: About,
    /// dE/dlog τ.
    #[serde(skip_serializing_if = "Option::is_none")]
    slope: Option<Figure>,
    information: Information,
    /// How many times the draws plain sampling needs.
    gain: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slope_gain: Option<f64>,
    ended: Ended,
}

#[derive(Serialize)]
struct CurveReport {
    curve: Vec<CurvePoint>,
    method: Method,
    ended: Ended,
    #[serde(flatten)]
    about: About,
}

fn tell(estimate: &Estimate, gain: Option<f64>) {
    println!("Bayes error:  {} ({:.4} %)", interval(&estimate.figure), 100.0 * estimate.figure.value);
    println!("method:       {}: {}", estimate.method.name(), estimate.why);
    println!("cost:         {} draws, {:.1} s", estimate.samples, estimate.seconds);
    if let Some(gain) = gain {
        println!("gain:         plain sampling needs {gain:.2} times the draws");
    }
}

fn tell_curve(report: &CurveReport) -> Result<()> {
    for CurvePoint { tau, bayes_error, slope_from_last, .. } in &report.curve {
        let slope =
            slope_from_last.map_or_else(String::new, |slope| format!("   rise over log τ {}", interval(&slope)));
        println!("τ = {:<8.4} {}{slope}", tau.get(), interval(bayes_error));
    }
    let samples = report.curve.first().map_or(0, |point| point.samples);
    println!("{samples} draws, the same at every τ; {}", report.ended.words());
    Ok(())
}

/// `bayes-error`.
pub fn error(args: &BayesErrorArgs) -> Result<()> {
    let asked = (&args.problem, &args.sampling);
    if let Some(taus) = &args.curve {
        let ((points, ended), about) = sample(asked, "curve", |pool, limits, bar| curve(pool, &taus.0, limits, bar))?;
        let report = CurveReport { curve: points, method: Method::Sampling, ended, about };
        return args.problem.output.print(&report, tell_curve);
    }
    let tau = Tau::new(args.tau)?;
    let (found, about) =
        sample(asked, "bayes-error", |pool, limits, bar| figures_at(pool, tau, args.information, limits, bar))?;
    let (estimate, slope, information) = (found.estimate, found.slope, found.information);
    let (gain, slope_gain, ended, tau) = (found.gain, found.slope_gain, found.ended, tau.get());
    let report = ErrorReport { estimate, tau, about, slope, information, gain, slope_gain, ended };
    args.problem.output.print(&report, |report| {
        tell(&report.estimate, report.gain);
        if let Some(slope) = report.slope {
            println!("dE/dlog τ:    {}", interval(&slope));
        }
        println!("A = H(Y|X):   {} nats", interval(&report.information.aleatoric_nats));
        println!("I(X;Y):       {} bits", interval(&report.information.mutual_information_bits));
        println!("I(X;Y)/H(Y):  {}", interval(&report.information.normalised));
        Ok(())
    })
}

/// `value` is τ, as everywhere the number asked for.
#[derive(Serialize)]
struct TauReport {
    #[serde(flatten)]
    figure: Figure,
    tau: f64,
    target: f64,
    achieved: Estimate,
    slope: Figure,
    method: Method,
    samples: u64,
    evaluations: usize,
    /// Images classified, those of the search included.
    images: usize,
    seconds: f64,
    gain: Option<f64>,
    slope_gain: Option<f64>,
    ended: Ended,
    #[serde(flatten)]
    about: About,
}

/// `tau`.
pub fn tau(args: &TauArgs) -> Result<()> {
    let (sampled, about) = sample((&args.problem, &args.sampling), "tau", |pool, limits, bar| {
        tau_by_sampling(pool, args.target, None, limits, bar)
    })?;
    let found = sampled.found;
    let report = TauReport {
        figure: found.tau,
        tau: found.tau.value,
        target: found.target,
        slope: found.slope,
        method: found.achieved.method,
        samples: found.achieved.samples,
        evaluations: found.evaluations,
        images: sampled.images,
        seconds: found.seconds,
        gain: sampled.gain,
        slope_gain: sampled.slope_gain,
        ended: sampled.ended,
        achieved: found.achieved,
        about,
    };
    args.problem.output.print(&report, |report| {
        println!("τ:            {} (± {:.2} %)", interval(&report.figure), 100.0 * report.figure.relative_half_width());
        tell(&report.achieved, report.gain);
        println!("dE/dlog τ:    {}", interval(&report.slope));
        println!(
            "search:       {} temperatures, {} images, {:.1} s",
            report.evaluations, report.images, report.seconds
        );
        Ok(())
    })
}

#[derive(Serialize)]
struct HardnessTold {
    #[serde(flatten)]
    hardness: HardnessReport,
    #[serde(flatten)]
    about: About,
}

/// `hardness`.
pub fn hardness(args: &HardnessArgs) -> Result<()> {
    let tau = Tau::new(args.tau)?;
    let (hardness, about) = sample((&args.problem, &args.sampling), "hardness", |pool, limits, bar| {
        class_hardness_by_sampling(pool, tau, limits, bar)
    })?;
    args.problem.output.print(&HardnessTold { hardness, about }, |HardnessTold { hardness, about }| {
        tell_hardness(hardness, &about.class_names);
        if let Some(HardnessDraws { samples, ended, .. }) = &hardness.sampling {
            println!("{samples} draws at τ = {}; {}", hardness.tau, ended.words());
        }
        Ok(())
    })
}
