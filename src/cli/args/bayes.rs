//! The arguments of the commands about Bayes errors.

use clap::{Args, ValueEnum};

use super::super::output::Output;
use super::common::label_noise;
use super::{SamplingArgs, count, number};
use crate::bayes::Method;
use crate::oracle::label_noise::LabelNoise;
use crate::units::Tau;

/// Which class problem, at which precision.
#[derive(Debug, Args)]
pub struct ProblemArgs {
    /// PROBLEM.json (`{"means":[[…]],"cov_diag":[…],"priors":[…]}`), or bundled name, oracle folder, or checkpoint file.
    #[arg(value_name = "ORACLE|PROBLEM.json")]
    pub problem: String,
    /// Class prior π, one weight per class, normalised; the problem's own (an oracle's: uniform) if not given.
    #[arg(long, value_delimiter = ',', value_name = "P,P,…")]
    pub prior: Option<Vec<f64>>,
    /// Label noise: all figures are those of labels drawn by a matrix, row y for class y. symmetric:0.2 (any other label), pair:0.2
    /// (that of the next class), by-class:0.1,0.2,…, or a file of K rows of K numbers, .csv or .json.
    #[arg(long, value_name = "NOISE", value_parser = label_noise)]
    pub label_noise: Option<LabelNoise>,
    /// Half width of the 95 % interval, relative, at which to stop; if not given 1e-4, and 0.03 where the world is sampled without
    /// --samples.
    #[arg(long, value_parser = number, allow_negative_numbers = true)]
    pub tolerance: Option<f64>,
    /// Seed of the random points.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub output: Output,
}

/// [`Method`] for clap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodArg {
    /// What suits the number of classes, the rank and the tolerance.
    Auto,
    /// A closed form, or deterministic quadrature where there is none.
    Closed,
    /// Deterministic quadrature.
    Quadrature,
    /// First-violation separation of variables, scrambled Sobol' points.
    Sov,
    /// Pair importance sampling, scrambled Sobol' points.
    Pair,
    /// Holmes-Diaconis-Ross with LIN-ESS, as EBO.
    Hdr,
    /// Rao-Blackwellised Monte Carlo.
    Mc,
}

impl MethodArg {
    /// The method; `None` for auto.
    pub fn method(self) -> Option<Method> {
        match self {
            Self::Auto => None,
            Self::Closed => Some(Method::Closed),
            Self::Quadrature => Some(Method::Quadrature),
            Self::Sov => Some(Method::Sov),
            Self::Pair => Some(Method::Pair),
            Self::Hdr => Some(Method::Hdr),
            Self::Mc => Some(Method::Mc),
        }
    }
}

/// Arguments of `bayes-error`.
#[derive(Debug, Args)]
pub struct BayesErrorArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// Base temperature τ: the covariance is multiplied by τ².
    #[arg(long, default_value_t = 1.0, value_parser = number, allow_negative_numbers = true, alias = "temperature")]
    pub tau: f64,
    /// How to compute it.
    #[arg(long, value_enum, default_value = "auto", conflicts_with_all = ["samples", "budget", "keep"])]
    pub method: MethodArg,
    /// Also the derivative dE/dlog τ, aleatoric uncertainty and mutual information.
    #[arg(long)]
    pub information: bool,
    /// The Bayes error at so many τ, evenly from LOW to HIGH, in place of one.
    #[arg(long, value_name = "LOW:HIGH:COUNT", value_parser = taus, conflicts_with_all = ["tau", "information"])]
    pub curve: Option<Curve>,
    #[command(flatten)]
    pub sampling: SamplingArgs,
}

/// Temperatures of a curve.
#[derive(Debug, Clone)]
pub struct Curve(pub Vec<Tau>);

/// `0.5:1.5:11`: eleven τ from 0.5 to 1.5.
fn taus(text: &str) -> std::result::Result<Curve, String> {
    let wrong =
        || format!("{text:?} is not LOW:HIGH:COUNT, such as 0.5:1.5:11 with 0 < LOW < HIGH and a COUNT from 2 to 1000");
    let [low, high, count] = text.split(':').collect::<Vec<_>>()[..] else { return Err(wrong()) };
    let (low, high): (f64, f64) = (low.parse().map_err(|_| wrong())?, high.parse().map_err(|_| wrong())?);
    let count: usize = count.parse().map_err(|_| wrong())?;
    if !(low > 0.0 && low < high && (2..=1000).contains(&count)) {
        return Err(wrong());
    }
    let tau = |i: usize| Tau::new(low + (high - low) * i as f64 / (count - 1) as f64);
    (0..count).map(tau).collect::<crate::error::Result<_>>().map(Curve).map_err(|error| error.to_string())
}

/// Arguments of `tau`.
#[derive(Debug, Args)]
pub struct TauArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// The Bayes error wanted: a fraction (0.05) or percents (5%).
    #[arg(long, value_parser = fraction, allow_hyphen_values = true)]
    pub target: f64,
    #[command(flatten)]
    pub sampling: SamplingArgs,
}

/// Arguments of `hardness`.
#[derive(Debug, Args)]
pub struct HardnessArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// Base temperature τ.
    #[arg(long, default_value_t = 1.0, value_parser = number, allow_negative_numbers = true, alias = "temperature")]
    pub tau: f64,
    #[command(flatten)]
    pub sampling: SamplingArgs,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Number of classes, equally likely.
    #[arg(long, value_parser = count, allow_negative_numbers = true, required_unless_present_any = ["prior", "papers"])]
    pub classes: Option<usize>,
    /// Class prior π, one weight per class, normalised.
    #[arg(long, value_delimiter = ',', value_name = "P,P,…")]
    pub prior: Option<Vec<f64>>,
    /// Aleatoric uncertainty H(Y|X), nats, with the digits it was published with.
    #[arg(long, value_name = "NATS", allow_negative_numbers = true)]
    pub aleatoric: Option<String>,
    /// Mutual information I(X;Y), bits.
    #[arg(long, value_name = "BITS", allow_negative_numbers = true)]
    pub mutual_information: Option<String>,
    /// Bayes error, a fraction (0.03) or percents (3%).
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    pub bayes_error: Option<String>,
    /// List what cannot be true of the figures of the two papers.
    #[arg(long, conflicts_with_all = ["classes", "prior", "aleatoric", "mutual_information", "bayes_error"])]
    pub papers: bool,
    #[command(flatten)]
    pub output: Output,
}

/// `0.05`, `5%` or `5 %`.
pub(super) fn fraction(text: &str) -> std::result::Result<f64, String> {
    crate::units::parse_fraction(text).map_err(|error| error.to_string())
}
