//! Arguments of `oracle validate` and `oracle reality`.

use std::path::PathBuf;

use clap::Args;

use super::super::output::Output;
use super::{Compute, WorldArgs, count};

/// Arguments of `oracle validate`.
#[derive(Debug, Args)]
pub struct ValidateArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    /// Real images: of a folder with splits, the test part is held out and the training part is what samples are compared with.
    #[arg(long)]
    pub data: PathBuf,
    /// Images to draw and compare with the real ones: FID, coverage, memorisation and kin. Without, only likelihood and exactness.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub images: usize,
    /// Weights of the feature net: Inception-v3 of pytorch-fid or torchvision, or torchvision's ResNet-18 or -50. If not given, a
    /// ResNet-18 is trained on the training images on the spot, whose figures compare with no published ones.
    #[arg(long, value_name = "FILE")]
    pub features: Option<PathBuf>,
    /// Epochs of the feature net that is trained on the spot.
    #[arg(long, default_value_t = 5, value_name = "N", conflicts_with = "features", value_parser = count, allow_negative_numbers = true)]
    pub feature_epochs: usize,
    /// Samples, and real images, of the two-sample test at most: half of each to train a small network on, half to test it on; 0: no
    /// such test.
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub two_sample_images: usize,
    /// Epochs of the network of the two-sample test.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub two_sample_epochs: usize,
    /// Statistics that FID compares with in place of the training images': an npz with mu and sigma (pytorch-fid), or torchmetrics' sums.
    /// The file does not say which network made them: it must be that of --features.
    #[arg(long, value_name = "FILE")]
    pub fid_stats: Option<PathBuf>,
    /// Training images at most, evenly spread over all.
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
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

/// Arguments of `oracle reality`.
#[derive(Debug, Args)]
pub struct RealityArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    /// Labelled real images; of a folder with splits, the test part is used.
    #[arg(long)]
    pub data: PathBuf,
    /// Class prior π, one weight per class, normalised; uniform if not given.
    #[arg(long, value_delimiter = ',', value_name = "P,P,…")]
    pub prior: Option<Vec<f64>>,
    /// Error of a classifier on the same kind of real images, to compare: a fraction (0.002) or percents (0.2%).
    #[arg(long, value_name = "ERROR", value_parser = super::bayes::fraction)]
    pub published_error: Option<f64>,
    /// Name of that classifier.
    #[arg(long, value_name = "NAME", default_value = crate::validate::SOMEBODY, requires = "published_error")]
    pub published_name: String,
    /// Seed of the noise of dequantisation, of resampling, and of samples of the world.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub compute: Compute,
    #[command(flatten)]
    pub output: Output,
}
