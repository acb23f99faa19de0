//! Arguments of `posterior --out` and of `walk`.

use std::path::PathBuf;

use clap::Args;

use super::super::output::Output;
use super::{Compute, FitArgs, WorldArgs, count};

/// A job of many images or many classes.
// --typicality rules --out out, which is then not required: what needs --out rules --typicality out, too.
#[derive(Debug, Args)]
pub struct ScaleArgs {
    /// Compute into this folder, batch after batch: a job that was stopped or killed goes on where it was. The result is its
    /// `posteriors.npz`: logp float64 [N,K], posterior float32 [N,K], aleatoric and log_px float64 [N], in nats.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Compute only shard I of --of N, counted from 0; the one that ends last writes the result.
    #[arg(long, value_name = "I", requires_all = ["out", "of"], conflicts_with = "typicality")]
    pub shard: Option<usize>,
    /// Number of shards the images are divided into.
    #[arg(long, value_name = "N", requires_all = ["out", "shard"], conflicts_with = "typicality")]
    pub of: Option<usize>,
    /// Classes computed before they are written; at most 50 and sized to the device if not given. Changes no number.
    #[arg(long, value_name = "K", requires = "out", conflicts_with = "typicality", value_parser = count, allow_negative_numbers = true)]
    pub class_batch: Option<usize>,
    /// Images computed before they are written, at most: what has taken 15 s is written at once. Sized to the device if not given. Changes no number.
    #[arg(long, value_name = "N", requires = "out", conflicts_with = "typicality", value_parser = count, allow_negative_numbers = true)]
    pub image_batch: Option<usize>,
    /// Do not compute the first images again in 64 bits.
    #[arg(long, requires = "out", conflicts_with = "typicality")]
    pub no_compare: bool,
}

/// Arguments of `walk`.
#[derive(Debug, Args)]
pub struct WalkArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    /// Where to begin: an image file or .npz (one of several images: FILE#3), or sample:INDEX under --seed.
    #[arg(long, value_name = "FILE[#I]|sample:I")]
    pub from: String,
    /// Where to go: an image, a sample, or class:NAME.
    #[arg(long, value_name = "FILE[#I]|sample:I|class:NAME")]
    pub to: String,
    #[command(flatten)]
    pub pictures: FitArgs,
    /// Steps from the first point to the last; of a walk along the gradient, at most.
    #[arg(long, default_value_t = 32, value_parser = count, allow_negative_numbers = true)]
    pub steps: usize,
    /// Samples are of this class: its name or number.
    #[arg(long)]
    pub class: Option<String>,
    /// Seed of samples.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub world: WorldArgs,
    #[command(flatten)]
    pub compute: Compute,
    /// `.png` (contact sheet) or `.npz` (x, position, posterior, logp, aleatoric, log_px); the 50/50 point comes last.
    #[arg(long, value_name = "FILE.png|FILE.npz")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}
