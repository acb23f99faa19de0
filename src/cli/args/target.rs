//! A Bayes error that stands in place of τ.

use clap::Args;

use super::{LimitArgs, number};

/// The Bayes error that a world is to have.
#[derive(Debug, Clone, Copy, Args)]
pub struct TargetArgs {
    /// The Bayes error the world is to have, such as 0.05 or 5%, in place of --tau. Where the map depends on the class it is met to
    /// the error of samples.
    #[arg(long, value_name = "ERROR", value_parser = super::bayes::fraction, allow_hyphen_values = true, conflicts_with = "tau")]
    pub target: Option<f64>,
    /// Half width of the 95 % interval of the τ that --target finds by samples, relative; 0.03 if no limit is given.
    // --tau rules --target out, which is then not required.
    #[arg(long, requires = "target", conflicts_with = "tau", value_parser = number, allow_negative_numbers = true)]
    pub tolerance: Option<f64>,
    #[command(flatten)]
    pub limits: LimitArgs,
}
