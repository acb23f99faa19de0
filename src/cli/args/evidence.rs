//! The arguments of `evidence`.

use std::path::PathBuf;

use clap::Args;

use super::super::output::Output;
use super::{Compute, FitArgs, input_help, number};
use crate::flow::preprocess::Dequantisation;

/// Arguments of `evidence`.
#[derive(Debug, Args)]
pub struct EvidenceArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    #[arg(required = true, help = input_help())]
    pub input: Vec<PathBuf>,
    #[command(flatten)]
    pub pictures: FitArgs,
    /// The class a the evidence speaks for: its name or number; of one image, the most probable one if neither is given.
    #[arg(long = "for", value_name = "CLASS", requires = "b")]
    pub a: Option<String>,
    /// The class b it speaks against: its name or number; of one image, the next most probable one if neither is given.
    #[arg(long = "against", value_name = "CLASS", requires = "a")]
    pub b: Option<String>,
    /// Base temperature τ: the base covariance is multiplied by τ².
    #[arg(long, default_value_t = 1.0, value_parser = number, allow_negative_numbers = true, alias = "temperature")]
    pub tau: f64,
    #[command(flatten)]
    pub compute: Compute,
    /// How 8-bit images become real numbers: with the world's noise of a seed, at the mid-point of their pixels, or within their
    /// levels (of pictures that hold the noise already). By itself seed:0, and levels for pictures of a world's images that this
    /// program wrote.
    #[arg(long, value_name = "seed:N|midpoint|levels")]
    pub dequantise: Option<Dequantisation>,
    /// Draw every image beside its map: blue speaks for b, orange for a.
    #[arg(long, value_name = "FILE.png")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}
