//! Arguments of `oracle validate`.

use std::path::PathBuf;

use clap::Args;

use super::super::output::Output;
use super::{Compute, WorldArgs};

/// Arguments of `oracle validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    /// Real images: of a folder with splits, the test part is held out and the training part is what samples are compared with.
    #[arg(long)]
    pub data: PathBuf,
    /// Images to draw and compare with the real ones: FID, coverage, memorisation and kin. Without, only likelihood and exactness.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub images: usize,
    /// Weights of the feature net: Inception-v3 of pytorch-fid or torchvision, or torchvision's ResNet-18 or -50. If not given, a
    /// ResNet-18 is trained on the training images on the spot, whose figures compare with no published ones.
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
    /// Epochs of the feature net that is trained on the spot.
    #[arg(long, default_value_t = 5, value_name = "N", conflicts_with = "features")]
    pub feature_epochs: usize,
    /// Statistics that FID compares with in place of the training images': an npz with mu and sigma (pytorch-fid), or torchmetrics' sums.
    #[arg(long, value_name = "FILE")]
    pub fid_stats: Option<PathBuf>,
    /// Training images at most, evenly spread over all.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Distance of features below which an image counts as a copy of a training image; the first percentile of held-out images if not
    /// given (the paper has 10 for its own features).
    #[arg(long, value_name = "DISTANCE")]
    pub threshold: Option<f64>,
    #[command(flatten)]
    pub world: WorldArgs,
    /// Seed of noise, images and resampling.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub compute: Compute,
    /// Write a report into this folder: a page, figures, tables, nearest pairs, JSON. A validation that was stopped goes on there.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}
