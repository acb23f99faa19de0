//! The arguments of the commands about Bayes errors.

use clap::{Args, ValueEnum};

use super::super::output::Output;
use super::DeviceArg;
use crate::bayes::Method;

/// Which class problem, at which precision.
#[derive(Debug, Args)]
pub struct ProblemArgs {
    /// PROBLEM.json (`{"means":[[…]],"cov_diag":[…],"priors":[…]}`), or bundled name, oracle folder, or checkpoint file.
    #[arg(value_name = "ORACLE|PROBLEM.json")]
    pub problem: String,
    /// Class prior π, one weight per class, normalised; the problem's own (an oracle's: uniform) if not given.
    #[arg(long, value_delimiter = ',', value_name = "P,P,…")]
    pub prior: Option<Vec<f64>>,
    /// Half width of the 95 % interval, relative, at which to stop.
    #[arg(long, default_value_t = 1e-4)]
    pub tolerance: f64,
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
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    pub tau: f64,
    /// How to compute it.
    #[arg(long, value_enum, default_value = "auto")]
    pub method: MethodArg,
    /// Also the derivative dE/dlog τ, aleatoric uncertainty and mutual information.
    #[arg(long)]
    pub information: bool,
    /// Draw so many samples of the world and average 1 − max p instead: works for every world, also where no integral does.
    #[arg(long, value_name = "N", conflicts_with_all = ["method", "information"])]
    pub samples: Option<usize>,
    #[command(flatten)]
    pub device: DeviceArg,
}

/// Arguments of `tau`.
#[derive(Debug, Args)]
pub struct TauArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// The Bayes error wanted: a fraction (0.05) or percents (5%).
    #[arg(long, value_parser = fraction)]
    pub target: f64,
}

/// Arguments of `hardness`.
#[derive(Debug, Args)]
pub struct HardnessArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,
    /// Base temperature τ.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    pub tau: f64,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Number of classes, equally likely.
    #[arg(long, required_unless_present_any = ["prior", "papers"])]
    pub classes: Option<usize>,
    /// Class prior π, one weight per class, normalised.
    #[arg(long, value_delimiter = ',', value_name = "P,P,…")]
    pub prior: Option<Vec<f64>>,
    /// Aleatoric uncertainty H(Y|X), nats, with the digits it was published with.
    #[arg(long, value_name = "NATS")]
    pub aleatoric: Option<String>,
    /// Mutual information I(X;Y), bits.
    #[arg(long, value_name = "BITS")]
    pub mutual_information: Option<String>,
    /// Bayes error, a fraction (0.03) or percents (3%).
    #[arg(long, value_name = "E")]
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
