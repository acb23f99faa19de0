//! Arguments of `evaluate`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::DeviceArg;
use crate::classifier::Architecture;
use crate::classifier::onnx::{Layout, Normalisation, Scores};
use crate::data::Split;
use crate::error::Error;
use crate::judge::Kind;

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("networks").multiple(true).args(["onnx", "checkpoint"])))]
#[command(group(ArgGroup::new("models").required(true).multiple(true).args(["predictions", "onnx", "checkpoint", "uncertainty"])))]
pub struct EvaluateArgs {
    /// Folder of a dataset that `export` made, or an npz archive with labels and posteriors.
    pub dataset: PathBuf,
    /// Predictions of a model: npz, npy, csv or parquet; logits or probabilities; by ids or in order. Several are compared.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub predictions: Vec<PathBuf>,
    /// A classifier as an ONNX file; it is run here.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub onnx: Vec<PathBuf>,
    /// A trained classifier of the zoo; it is run here. The checkpoint of a cell, its folder or a run folder (all finished cells), or a
    /// state dict (.safetensors, .pth) with --architecture and --normalisation.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub checkpoint: Vec<PathBuf>,
    /// Uncertainty of a model in an npz archive, in place of models: members [M, N, K] or predictions [N, K] of --kind, scores [N]
    /// (the larger the less sure), sets of classes [N, K] of booleans; against the true H(p), KL(p‖q) and p.
    #[arg(long, value_name = "FILE.npz", conflicts_with_all = ["predictions", "onnx", "checkpoint", "report"])]
    pub uncertainty: Option<PathBuf>,
    /// The network of a checkpoint that does not say it, such as resnet-18.
    #[arg(long, value_name = "NAME", value_parser = architecture, requires = "checkpoint", conflicts_with = "uncertainty")]
    pub architecture: Option<Architecture>,
    /// Side to which a network from a checkpoint that does not say it has its images scaled first.
    #[arg(long, value_name = "PIXELS", requires = "checkpoint", conflicts_with = "uncertainty")]
    pub side: Option<usize>,
    /// What the numbers of prediction files and of --uncertainty are, and what ONNX classifiers give for each image; found out if
    /// not given.
    #[arg(long, value_enum)]
    pub kind: Option<KindArg>,
    /// How an ONNX classifier, or one from a checkpoint that does not say it, wants its images scaled: as-is, zero-to-one, minus-one-to-one, bytes, imagenet, or
    /// mean=0.5,0.5,0.5;std=0.2,0.2,0.2. What its file says if not given.
    #[arg(long, value_name = "HOW", requires = "networks", conflicts_with = "uncertainty")]
    pub normalisation: Option<Normalisation>,
    /// Grey images may enter an ONNX classifier of colour images, the same in each channel.
    #[arg(long, requires = "onnx", conflicts_with = "uncertainty")]
    pub repeat_channels: bool,
    /// Images of another size are scaled to that of an ONNX classifier.
    #[arg(long, requires = "onnx", conflicts_with = "uncertainty")]
    pub resize: bool,
    /// Order of the axes of an ONNX classifier whose file leaves them open; the one in which it runs if not given.
    #[arg(long, value_enum, requires = "onnx", conflicts_with = "uncertainty")]
    pub layout: Option<LayoutArg>,
    /// The output of an ONNX classifier that is read; the only one if not given.
    #[arg(long, value_name = "NAME", requires = "onnx", conflicts_with = "uncertainty")]
    pub output: Option<String>,
    /// Which images: those the model was not trained on.
    #[arg(long, value_enum, default_value_t = SplitArg::Test)]
    pub split: SplitArg,
    /// Write a report into this folder: pages, figures, tables, JSON.
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub device: DeviceArg,
    /// Seed of resampled images.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Print one JSON document: of the only model its figures, of several a list.
    #[arg(long)]
    pub json: bool,
}

fn architecture(name: &str) -> Result<Architecture, Error> {
    Architecture::try_from(name.to_owned())
}

/// What numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KindArg {
    /// Scores before a softmax.
    Logits,
    /// q(y|x).
    Probabilities,
    /// log q(y|x), natural.
    LogProbabilities,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Logits => Self::Logits,
            KindArg::Probabilities => Self::Probabilities,
            KindArg::LogProbabilities => Self::LogProbabilities,
        }
    }
}

impl From<KindArg> for Scores {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Logits => Self::Logits,
            KindArg::Probabilities => Self::Probabilities,
            KindArg::LogProbabilities => Self::LogProbabilities,
        }
    }
}

/// Order of the axes of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LayoutArg {
    /// Channels, height, width, as PyTorch has it.
    Nchw,
    /// Height, width, channels, as TensorFlow has it.
    Nhwc,
}

impl From<LayoutArg> for Layout {
    fn from(layout: LayoutArg) -> Self {
        match layout {
            LayoutArg::Nchw => Self::Nchw,
            LayoutArg::Nhwc => Self::Nhwc,
        }
    }
}

/// A part of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitArg {
    /// Training images.
    Train,
    /// Test images.
    Test,
}

impl From<SplitArg> for Split {
    fn from(split: SplitArg) -> Self {
        match split {
            SplitArg::Train => Self::Train,
            SplitArg::Test => Self::Test,
        }
    }
}
