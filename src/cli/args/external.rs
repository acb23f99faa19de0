//! Arguments of `external`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Compute, Output, TargetArgs, WorldArgs, count};
use crate::judge::Kind;

/// What can be done with external runs.
#[derive(Debug, Subcommand)]
pub enum ExternalCommand {
    /// Make the folder of a run that another program trains: test images of a world with exact posteriors, for its predictions.
    Start(Box<ExternalStartArgs>),
    /// List the test images with the largest KL(p‖q) at a step.
    Worst(ExternalWorstArgs),
}

/// Arguments of `external worst`.
#[derive(Debug, Args)]
pub struct ExternalWorstArgs {
    /// Folder of the run.
    pub run: PathBuf,
    /// The step; the last that was logged if not given.
    #[arg(long, value_name = "S")]
    pub step: Option<u64>,
    /// How many images.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub count: usize,
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `external start`.
#[derive(Debug, Args)]
pub struct ExternalStartArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    /// Folder of the run: a new one, or that of the same run, which stays as it is.
    #[arg(long, value_name = "RUN")]
    pub out: PathBuf,
    /// Test images.
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub test: usize,
    /// Name of the run; that of its folder if not given.
    #[arg(long)]
    pub name: Option<String>,
    /// What the program will log: logits, log-probabilities or probabilities.
    #[arg(long, value_name = "KIND", default_value = "logits")]
    pub predictions: Kind,
    /// Different images that the program trains on, for laws over N; none where its stream has no end.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub train_images: Option<usize>,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub world: WorldArgs,
    /// Seed of the test images: they are those of `export` with this seed.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub compute: Compute,
    #[command(flatten)]
    pub output: Output,
}
